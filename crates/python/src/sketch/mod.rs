//! The class `Sketch`.
//!
//! Its methods turn arguments into columns while they hold the interpreter lock, release the lock,
//! and then work on [`Inner`]. Whoever waits for the sketch's own lock has released the
//! interpreter's, so that neither can wait for the other for ever.

mod inner;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyString, PyTuple};

use crate::answers::{self, Answer};
use crate::column::Column;
use crate::error::Error;
use crate::interrupt;
use crate::key_type::KeyType;
use crate::objects;
use crate::options::{self, Options};
use crate::table::Table;

pub use inner::{Inner, Nulls};

/// Columns of fewer rows are counted at once, without a thread that watches for signals.
const SMALL: usize = 1 << 16;

/// How often short work tries to get at the sketch, and how long it sleeps in between.
const ATTEMPTS: u32 = 40;
const MOMENT: Duration = Duration::from_micros(50);

/// Counts how often each key occurs, in a fixed memory budget.
///
/// memory: a size such as "64KB" (the default), or a number of bytes.
/// mode: "exact" (the default), or "delta" and "em", which estimate.
/// keys: type of the keys, such as "int64", "str", "ipv4" or a tuple; by default that of the first
///     column.
/// seed: seed of the hash functions; by default a random one. Only sketches of one seed merge.
/// interval: items in an epoch; by default those of mode "delta" end when they are full, and the
///     others have one.
/// expected_keys: number of keys to plan for.
/// keep_epochs: number of epochs to keep for `series` and `changes`.
#[pyclass(frozen, module = "ucl_sketch")]
pub struct Sketch {
    /// Shared with calls that were interrupted and are still at work.
    inner: Arc<Mutex<Inner>>,
}

/// Waits for the sketch. Not to be called with the interpreter lock held.
fn lock(inner: &Mutex<Inner>) -> Result<MutexGuard<'_, Inner>, Error> {
    inner.lock().map_err(|_| Error::Broken)
}

impl Sketch {
    pub fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Takes the sketch, if nobody holds it for longer than a short call does.
    fn lock_soon(&self) -> Result<Option<MutexGuard<'_, Inner>>, Error> {
        for attempt in 0..ATTEMPTS {
            match self.inner.try_lock() {
                Ok(inner) => return Ok(Some(inner)),
                Err(TryLockError::Poisoned(_)) => return Err(Error::Broken),
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS / 2 => thread::yield_now(),
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
            }
        }
        Ok(None)
    }

    /// Runs short work on the sketch. If another call holds it, waits as long work does.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let mut work = Some(work);
        let now = interrupt::short(py, || match self.lock_soon()? {
            Some(mut inner) => work.take().map(|work| work(&mut inner)).transpose(),
            None => Ok(None),
        })?;
        match (now, work) {
            (Some(done), _) => Ok(done),
            (None, Some(work)) => self.with_long(py, work),
            (None, None) => Err(Error::Broken),
        }
    }

    /// Runs work that may take long.
    fn with_long<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.inner);
        interrupt::long(py, move |stop| {
            let mut inner = lock(&inner)?;
            // Whoever asked may have given up while this waited.
            if stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { work(&mut inner) }
        })
    }

    /// Runs work that needs the answers: short if they are there, or else long.
    fn with_view<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let ready = self.with(py, |inner| Ok(inner.has_view()))?;
        if ready { self.with(py, work) } else { self.with_long(py, work) }
    }

    fn insert(&self, py: Python<'_>, column: Column, weights: Option<Vec<u64>>, null: Nulls) -> Result<(), Error> {
        if column.rows() < SMALL {
            let go_on = AtomicBool::new(false);
            return self.with(py, move |inner| inner.insert(&column, weights.as_deref(), null, &go_on));
        }
        let inner = Arc::clone(&self.inner);
        interrupt::long(py, move |stop| lock(&inner)?.insert(&column, weights.as_deref(), null, stop))
    }

    fn table(
        &self,
        py: Python<'_>,
        answers: impl FnOnce(&mut Inner) -> Result<Vec<Answer>, Error> + Send + 'static,
    ) -> Result<Table, Error> {
        self.with_view(py, |inner| {
            let answers = answers(inner)?;
            let keys = inner.keys().cloned();
            Ok(Table::new(answers::counts(keys.as_ref(), &answers)?, keys))
        })
    }
}

#[pymethods]
impl Sketch {
    #[new]
    #[pyo3(signature = (memory = None, *, mode = "exact", keys = None, seed = None, interval = None,
                        expected_keys = None, keep_epochs = 0))]
    fn new(
        memory: Option<&Bound<'_, PyAny>>,
        mode: &str,
        keys: Option<&Bound<'_, PyAny>>,
        seed: Option<u128>,
        interval: Option<u64>,
        expected_keys: Option<u64>,
        keep_epochs: usize,
    ) -> Result<Self, Error> {
        let memory = memory.map_or(Ok(DEFAULT_MEMORY), options::size)?;
        let options = Options::new(memory, mode, seed, interval, expected_keys, keep_epochs)?;
        let keys = keys.map(KeyType::from_python).transpose()?;
        Ok(Self::of(Inner::new(options, keys)?))
    }

    /// Counts one key, with a weight from 0 on.
    #[pyo3(signature = (key, weight = 1))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, weight: u64) -> Result<(), Error> {
        self.insert(py, Column::of_key(key)?, Some(vec![weight]), Nulls::Count)
    }

    /// Counts all keys of a column.
    ///
    /// column: a list or another iterable, a NumPy array, or Arrow data: a column or table of
    ///     pandas, polars, pyarrow or DuckDB. The rows of a table count as tuples.
    /// weights: a column of whole numbers from 0 on, as long as the column; by default 1 each.
    /// null: "skip" leaves nulls out, "count" counts them, "error" refuses the column.
    ///
    /// If the column is refused, the sketch is as it was.
    #[pyo3(signature = (column, *, weights = None, null = "skip"))]
    fn update(
        &self,
        py: Python<'_>,
        column: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        null: &str,
    ) -> Result<(), Error> {
        let null = null.parse()?;
        let column = Column::import(column)?;
        let weights = weights.map(Column::import_weights).transpose()?;
        self.insert(py, column, weights, null)
    }

    /// Returns the count of one key as a `Count`, or the counts of a column of keys as a table.
    fn estimate<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Error> {
        let one = objects::is_key(key)?;
        let column = if one { Column::of_key(key)? } else { Column::import(key)? };
        let table = self.with_view(py, move |inner| {
            let answers = inner.estimate(&column)?;
            let keys = inner.keys().or(column.keys.as_ref()).cloned();
            Ok(Table::new(answers::counts(keys.as_ref(), &answers)?, keys))
        })?;
        if one { Ok(table.one(py)?) } else { Ok(Bound::new(py, table)?.into_any()) }
    }

    /// Returns the `n` keys with the largest counts as a table, or all keys.
    #[pyo3(signature = (n = None))]
    fn top(&self, py: Python<'_>, n: Option<usize>) -> Result<Table, Error> {
        self.table(py, move |inner| inner.top(n.unwrap_or(usize::MAX)))
    }

    /// Returns the count of a key in each epoch that is kept, as a table.
    fn series(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Result<Table, Error> {
        let column = Column::of_key(key)?;
        self.with_long(py, move |inner| Ok(Table::new(inner.series(&column)?, None)))
    }

    /// Returns the `n` keys whose rate changed most between the `last` epochs and as many before.
    #[pyo3(signature = (n = 10, *, last = 1))]
    fn changes(&self, py: Python<'_>, n: usize, last: usize) -> Result<Table, Error> {
        self.with_long(py, move |inner| Ok(Table::new(inner.changes(n, last)?, inner.keys().cloned())))
    }

    /// Ends the epoch now.
    fn cut(&self, py: Python<'_>) -> Result<(), Error> {
        self.with_long(py, |inner| {
            inner.cut();
            Ok(())
        })
    }

    /// Returns all keys as a `pyarrow.Table`, those with the largest counts first.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, self.top(py, None)?)?.call_method0(intern!(py, "to_arrow"))
    }

    /// Hands all keys over as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.top(py, None)?.__arrow_c_stream__(py, requested_schema)
    }

    /// Adds the counts of other sketches to this one, one after the other.
    ///
    /// They need the same settings and the same seed, as copies of one sketch have.
    #[pyo3(signature = (*others))]
    fn merge(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> Result<(), Error> {
        let others = others.iter().map(|other| other.cast_into::<Self>().map_err(PyErr::from));
        let others: Vec<Bound<'_, Self>> = others.collect::<PyResult<_>>()?;
        for other in others {
            // One lock at a time.
            let copy = other.get().with_long(py, |inner| inner.copy())?;
            self.with_long(py, move |inner| inner.merge(copy))?;
        }
        Ok(())
    }

    /// Writes the sketch to a file, which is replaced if it is there.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Result<(), Error> {
        self.with_long(py, move |inner| inner.save(&path))
    }

    /// Reads a sketch from a file that `save` or the command line wrote.
    ///
    /// keys: type of the keys; by default the one that the file names.
    #[staticmethod]
    #[pyo3(signature = (path, *, keys = None))]
    fn load(py: Python<'_>, path: PathBuf, keys: Option<&Bound<'_, PyAny>>) -> Result<Self, Error> {
        let keys = keys.map(KeyType::from_python).transpose()?;
        interrupt::long(py, move |_| Ok(Self::of(Inner::load(&path, keys)?)))
    }

    /// Returns a copy.
    fn copy(&self, py: Python<'_>) -> Result<Self, Error> {
        self.with_long(py, |inner| Ok(Self::of(inner.copy()?)))
    }

    fn __copy__(&self, py: Python<'_>) -> Result<Self, Error> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> Result<Self, Error> {
        // It refers to no other objects.
        let _ = memo;
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let parts = self.with_long(py, |inner| inner.parts())?;
        let restore = py.import("ucl_sketch._native")?.getattr("restore")?;
        let state = parts.state.map(|state| PyBytes::new(py, &state));
        (restore, (parts.options, parts.keys, parts.nulls, state)).into_pyobject(py)
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize, Error> {
        self.with_view(py, |inner| inner.known_keys())
    }

    fn __bool__(&self) -> bool {
        // A sketch without keys is a sketch.
        true
    }

    fn __repr__(&self, py: Python<'_>) -> Result<String, Error> {
        self.with(py, |inner| Ok(inner.describe()))
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("ucl_sketch._show")?.call_method1("sketch_html", (slf,))?.extract()
    }

    /// Number of items counted.
    #[getter]
    fn items(&self, py: Python<'_>) -> Result<u64, Error> {
        self.with(py, |inner| Ok(inner.items()))
    }

    /// Total weight of everything counted, nulls among it.
    #[getter]
    fn weight(&self, py: Python<'_>) -> Result<u64, Error> {
        self.with(py, |inner| Ok(inner.weight()))
    }

    /// Weight of the nulls counted.
    #[getter]
    fn nulls(&self, py: Python<'_>) -> Result<u64, Error> {
        self.with(py, |inner| Ok(inner.nulls()))
    }

    /// Bytes of the sketch itself.
    #[getter]
    fn memory(&self, py: Python<'_>) -> Result<usize, Error> {
        self.with(py, |inner| Ok(inner.memory()))
    }

    /// Bytes of the decoder beside it, which grow with the known keys.
    #[getter]
    fn decoder_memory(&self, py: Python<'_>) -> Result<usize, Error> {
        self.with(py, |inner| Ok(inner.decoder_memory()))
    }

    /// The recovery algorithm.
    #[getter]
    fn mode(&self, py: Python<'_>) -> Result<String, Error> {
        self.with(py, |inner| Ok(inner.mode()))
    }

    /// The type of the keys; `None` as long as nothing was counted.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyString>>, Error> {
        let keys = self.with(py, |inner| Ok(inner.keys().map(ToString::to_string)))?;
        Ok(keys.map(|keys| PyString::new(py, &keys)))
    }

    /// The seed of the hash functions.
    #[getter]
    fn seed(&self, py: Python<'_>) -> Result<u128, Error> {
        self.with(py, |inner| Ok(inner.seed()))
    }
}

/// The budget unless told.
pub const DEFAULT_MEMORY: usize = 64 << 10;

/// Makes a sketch from what `pickle` keeps of one.
#[pyfunction]
#[pyo3(signature = (options, keys, nulls, state))]
pub fn restore(
    py: Python<'_>,
    options: Option<String>,
    keys: Option<String>,
    nulls: u64,
    state: Option<&[u8]>,
) -> Result<Sketch, Error> {
    let state = state.map(Arc::<[u8]>::from);
    interrupt::short(py, || {
        let parts = inner::Parts { options, keys, nulls, state: state.map(|state| state.to_vec()) };
        Ok(Sketch::of(Inner::from_parts(parts)?))
    })
}
