//! Answers as Python sees them: a small table that every data frame library can read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyImportError, PyIndexError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};
use ucl_link::Facts;

use crate::answers::COUNTS;
use crate::error::Error;
use crate::key_type::KeyType;
use crate::rows::numbers;

/// Rows and named columns of an answer.
#[pyclass(frozen, module = "ucl_sketch")]
pub struct Table {
    batch: RecordBatch,
    /// The type of the column `key`.
    keys: Option<KeyType>,
    /// What the answer is about, as JSON, if a collector gave it.
    about: Option<String>,
}

/// Under which name the schema of Arrow data has what an answer is about.
const ABOUT: &str = "ucl_sketch.about";

/// The Python value at a row.
type Values<'a> = Box<dyn for<'py> Fn(Python<'py>, usize) -> PyResult<Bound<'py, PyAny>> + 'a>;

impl Table {
    pub fn new(batch: RecordBatch, keys: Option<KeyType>) -> Self {
        Self { batch, keys, about: None }
    }

    /// An answer of a collector, with what it is about.
    pub fn about(batch: RecordBatch, keys: Option<KeyType>, facts: &Facts) -> Result<Self, Error> {
        let about = serde_json::to_string(facts).expect("internal: facts are plain data");
        let schema = batch.schema().as_ref().clone().with_metadata(HashMap::from([(ABOUT.to_owned(), about.clone())]));
        Ok(Self { batch: batch.with_schema(Arc::new(schema))?, keys, about: Some(about) })
    }

    fn columns(&self) -> Result<Vec<Values<'_>>, Error> {
        let schema = self.batch.schema_ref();
        let column = |(at, array)| {
            let keys = self.keys.as_ref().filter(|_| schema.field(at).name() == COUNTS[0]);
            values(array, keys)
        };
        self.batch.columns().iter().enumerate().map(column).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The class of the rows: a named tuple.
    fn row_class<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let names = self.names();
        if names == COUNTS {
            return py.import("ucl_sketch._rows")?.getattr("Count");
        }
        py.import("collections")?.call_method1("namedtuple", ("Row", names))
    }

    /// All rows, as tuples of their class.
    fn rows<'py>(&self, py: Python<'py>, range: std::ops::Range<usize>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let make = self.row_class(py)?.getattr("_make")?;
        let columns = self.columns()?;
        range
            .map(|row| {
                let values = columns.iter().map(|value| value(py, row)).collect::<PyResult<Vec<_>>>()?;
                make.call1((PyTuple::new(py, values)?,))
            })
            .collect()
    }

    /// The only row.
    pub fn one<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut rows = self.rows(py, 0..1)?;
        rows.pop().ok_or_else(|| PyIndexError::new_err("the table has no rows"))
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.names()
    }

    /// What the answer of a collector is about; `None` for the answers of a sketch.
    #[getter]
    fn get_about<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let read = |about: &String| py.import("json")?.call_method1("loads", (about,));
        self.about.as_ref().map(read).transpose()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // A column by its name, or a row by its number.
        if let Ok(name) = index.cast::<PyString>() {
            return Ok(self.column(py, name.to_str()?)?.into_any());
        }
        let index: isize = index.extract()?;
        let len = self.batch.num_rows();
        let row = if index < 0 { index + len as isize } else { index };
        match usize::try_from(row) {
            Ok(row) if row < len => Ok(self.rows(py, row..row + 1)?.remove(0)),
            _ => Err(PyIndexError::new_err(format!("there is no row {index}: the table has {len}"))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = PyList::new(py, self.rows(py, 0..self.batch.num_rows())?)?;
        Ok(rows.try_iter()?.into_any())
    }

    /// Returns one column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let at = self.batch.schema_ref().index_of(name).map_err(|_| {
            let names = self.names().join(", ");
            Error::Value(format!("there is no column '{name}': the columns are {names}"))
        })?;
        let columns = self.columns()?;
        let values = (0..self.batch.num_rows()).map(|row| columns[at](py, row));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns all columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for name in self.names() {
            dict.set_item(name, self.column(py, name)?)?;
        }
        Ok(dict)
    }

    /// Returns a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// Returns a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pandas = py.import("pandas")?;
        match Self::to_arrow(slf) {
            Ok(table) => table.call_method0("to_pandas"),
            Err(error) if error.is_instance_of::<PyImportError>(py) => {
                pandas.call_method1("DataFrame", (slf.get().to_dict(py)?,))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// Hands the table over as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    pub fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to ignore the request, and the importer casts.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("ucl_sketch._show")?.call_method1("table_text", (slf,))?.extract()
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("ucl_sketch._show")?.call_method1("table_html", (slf,))?.extract()
    }
}

/// The values of a column as Python objects.
fn values<'a>(array: &'a ArrayRef, keys: Option<&'a KeyType>) -> Result<Values<'a>, Error> {
    let values: Values<'a> = match array.data_type() {
        DataType::Null => Box::new(|py, _| Ok(py.None().into_bound(py))),
        DataType::Boolean => Box::new(|py, row| array.as_boolean().value(row).into_bound_py_any(py)),
        DataType::Timestamp(..) => {
            Box::new(|py, row| moment(py, array.as_primitive::<TimestampMillisecondType>().value(row)))
        }
        DataType::Float64 => Box::new(|py, row| array.as_primitive::<Float64Type>().value(row).into_bound_py_any(py)),
        DataType::LargeUtf8 => match keys {
            Some(KeyType::Ipv4 | KeyType::Ipv6 | KeyType::Ip) => Box::new(|py, row| {
                py.import("ipaddress")?.call_method1("ip_address", (array.as_string::<i64>().value(row),))
            }),
            _ => Box::new(|py, row| array.as_string::<i64>().value(row).into_bound_py_any(py)),
        },
        DataType::LargeBinary => {
            Box::new(|py, row| Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()))
        }
        DataType::FixedSizeBinary(_) => {
            Box::new(|py, row| Ok(PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any()))
        }
        DataType::Struct(_) => {
            let parts = match keys {
                Some(KeyType::Tuple(parts)) => parts.iter().map(Some).collect(),
                _ => vec![None; array.as_struct().num_columns()],
            };
            let columns = array.as_struct().columns().iter().zip(parts);
            let columns = columns.map(|(column, keys)| self::values(column, keys)).collect::<Result<Vec<_>, _>>()?;
            Box::new(move |py, row| {
                let values = columns.iter().map(|value| value(py, row)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, values)?.into_any())
            })
        }
        _ => {
            let number = numbers(array)?;
            Box::new(move |py, row| match i64::try_from(number(row)) {
                Ok(number) => number.into_bound_py_any(py),
                Err(_) => (number(row) as u64).into_bound_py_any(py),
            })
        }
    };
    Ok(Box::new(move |py, row| if array.is_null(row) { Ok(py.None().into_bound(py)) } else { values(py, row) }))
}

/// A moment, in UTC.
fn moment(py: Python<'_>, milliseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let epoch = datetime.getattr("datetime")?.call_method1("fromtimestamp", (0, utc))?;
    let since = datetime.getattr("timedelta")?.call1((0, 0, 0, milliseconds))?;
    epoch.call_method1("__add__", (since,))
}
