//! The class `Agent`: counts inside a Python service, and sends the counts to a collector.
//!
//! Queue, thread and folder are [`ucl_agentd::Embedded`]'s. What is here is what belongs to Python:
//! keys, `logging`, and the end of the interpreter.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCFunction, PyDict, PyString, PyTuple};
use ucl_agentd::{Embedded, EmbeddedError, EmbeddedSettings, EmbeddedStatus};
use ucl_link::{Client, DURATIONS, parse_duration};
use ucl_sketch::Bytes;
use ucl_streams::{BatchBuf, Format, MAX_KEY_BYTES, MAX_WEIGHT};

use crate::column::Column;
use crate::error::Error;
use crate::interrupt;
use crate::key_type::KeyType;
use crate::options;
use crate::sketch::{DEFAULT_MEMORY, Nulls};
use crate::text_key::{TextRows, text_of, too_long};

/// Bytes on disk for epochs that wait, and in memory for items that do, unless told.
const DEFAULT_ROOM: usize = 64 << 20;
/// Rows that are handed over at once.
const SLICE: usize = 1 << 14;
/// How often a column that waits for room looks for it.
const LOOK: Duration = Duration::from_millis(10);
/// How long the end of the interpreter waits for the collector, for all agents together.
const AT_EXIT: Duration = Duration::from_secs(5);

/// Counts inside a service, and sends the counts to a collector.
///
/// to, token: address of the collector (`ucl serve`), and a token of it.
/// stream: name of the stream. Only one agent at a time may send it.
/// memory, mode, interval: as for `Sketch`. Mode "budget" is exact while the collector can be
/// reached; "exact" is none for agents.
/// cut_every: longest time until counts are sent, such as "10s".
/// state: folder for what is not delivered yet.
/// spool, queue: most bytes on disk for epochs, and in memory for keys, that wait.
/// ca: file with the certificate to trust, in PEM format.
#[pyclass(frozen, module = "ucl_sketch")]
pub struct Agent {
    embedded: Arc<Embedded>,
    /// What the end of the interpreter will call.
    at_exit: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Agent {
    #[new]
    #[pyo3(signature = (*, to, token, stream, tenant = "default", memory = None, mode = "budget", interval = None,
                        cut_every = "10s", state = None, spool = None, queue = None, ca = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        to: &str,
        token: &str,
        stream: &str,
        tenant: &str,
        memory: Option<&Bound<'_, PyAny>>,
        mode: &str,
        interval: Option<u64>,
        cut_every: &str,
        state: Option<PathBuf>,
        spool: Option<&Bound<'_, PyAny>>,
        queue: Option<&Bound<'_, PyAny>>,
        ca: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let size = |size: Option<&Bound<'_, PyAny>>, default| size.map_or(Ok(default), options::size);
        let every = parse_duration(cut_every);
        let settings = EmbeddedSettings {
            client: client(to, token, ca)?,
            tenant: tenant.parse()?,
            stream: stream.parse()?,
            format: Format::Lines.to_string(),
            memory: Bytes(size(memory, DEFAULT_MEMORY)?),
            mode: mode.parse()?,
            interval,
            cut_every: every.ok_or_else(|| Error::Value(format!("cut_every is {DURATIONS}, not '{cut_every}'")))?,
            // As the command line has it.
            state: state.unwrap_or_else(|| "ucl-agent-data".into()),
            spool_bytes: size(spool, DEFAULT_ROOM)? as u64,
            queue_bytes: size(queue, DEFAULT_ROOM)?,
        };
        let embedded = Arc::new(interrupt::short(py, || Ok(Embedded::start(settings)?))?);
        let at_exit = at_exit(py, &embedded)?;
        Ok(Self { embedded, at_exit: Mutex::new(Some(at_exit)) })
    }

    /// Counts one key, with a weight from 0 on. Never waits for the disk or the network.
    #[pyo3(signature = (key, weight = 1))]
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>, weight: u64) -> Result<(), Error> {
        if weight > MAX_WEIGHT {
            return Err(Error::Value(format!("a weight is from 0 to 2^63 - 1, not {weight}")));
        }
        let add = |key: &[u8]| {
            if key.len() > MAX_KEY_BYTES {
                return Err(too_long(0, key.len()));
            }
            if weight > 0 {
                self.embedded.add(key, weight)?;
            }
            Ok(())
        };
        // Most keys are text, which takes no column.
        if let Ok(text) = key.cast::<PyString>() {
            add(text.to_str()?.as_bytes())?;
        } else if let Ok(bytes) = key.cast::<PyBytes>() {
            add(bytes.as_bytes())?;
        } else {
            add(&text_of(key)?)?;
        }
        self.tell(py)
    }

    /// Counts all keys of a column.
    ///
    /// column, weights: as for `Sketch.update`.
    /// null: "skip" leaves nulls out, "error" refuses the column.
    /// wait: waits for room in the queue; without it, keys that find no room are left out and
    ///     counted as dropped.
    #[pyo3(signature = (column, *, weights = None, null = "skip", wait = false))]
    fn update(
        &self,
        py: Python<'_>,
        column: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        null: &str,
        wait: bool,
    ) -> Result<(), Error> {
        let null: Nulls = null.parse()?;
        if null == Nulls::Count {
            return Err(Error::Value("null is 'skip' or 'error': an agent has no key for nulls".into()));
        }
        let column = Column::import(column)?;
        let weights = weights.map(Column::import_weights).transpose()?;
        column.check_weights(weights.as_deref())?;
        let embedded = Arc::clone(&self.embedded);
        let small = column.rows() < SLICE && !wait;
        let work = move |stop: &AtomicBool| {
            let rows = checked(&column, null)?;
            hand_over(&embedded, &rows, weights.as_deref(), wait, stop)
        };
        if small {
            interrupt::short(py, || work(&AtomicBool::new(false)))?;
        } else {
            interrupt::long(py, move |stop| work(stop))?;
        }
        self.tell(py)
    }

    /// Ends the epoch, and waits until the collector has everything that was counted before, or for
    /// `timeout` seconds. Returns whether the collector has it.
    #[pyo3(signature = (timeout = 5.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> Result<bool, Error> {
        let (embedded, patience) = (Arc::clone(&self.embedded), patience(timeout)?);
        let flushed = interrupt::long(py, move |_| Ok(embedded.flush(patience)?));
        self.tell(py)?;
        flushed
    }

    /// Takes no more keys, and tries for `timeout` seconds to deliver what was counted. Returns
    /// whether the collector has it. What it does not have, the next agent of the stream sends.
    #[pyo3(signature = (timeout = 5.0))]
    fn close(&self, py: Python<'_>, timeout: f64) -> Result<bool, Error> {
        let (embedded, patience) = (Arc::clone(&self.embedded), patience(timeout)?);
        let closed = interrupt::long(py, move |_| Ok(embedded.close(patience)?));
        let at_exit = lock(&self.at_exit).take();
        if let Some(at_exit) = at_exit {
            py.import(intern!(py, "atexit"))?.call_method1(intern!(py, "unregister"), (at_exit,))?;
        }
        self.tell(py)?;
        closed
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> Result<(), Error> {
        self.close(py, AT_EXIT.as_secs_f64()).map(|_| ())
    }

    /// Returns how the agent is doing.
    fn status<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>, Error> {
        self.tell(py)?;
        let EmbeddedStatus { agent, queued, dropped, stopped } = self.embedded.status()?;
        let fields = PyDict::new(py);
        fields.set_item("stream", self.embedded.stream().as_str())?;
        fields.set_item("incarnation", agent.incarnation.to_string())?;
        fields.set_item("items", agent.items)?;
        fields.set_item("epochs", agent.epochs)?;
        fields.set_item("waiting", agent.waiting)?;
        fields.set_item("spool_bytes", agent.spool_bytes)?;
        fields.set_item("queued", queued)?;
        fields.set_item("dropped", dropped)?;
        fields.set_item("trouble", stopped.or(agent.trouble).or(agent.refused))?;
        Ok(py.import("ucl_sketch._rows")?.getattr("AgentStatus")?.call((), Some(&fields))?)
    }

    fn __repr__(&self) -> String {
        let (stream, to) = (self.embedded.stream(), self.embedded.address());
        match self.embedded.status() {
            Ok(EmbeddedStatus { agent, queued, dropped, .. }) => format!(
                "<ucl_sketch.Agent stream={stream} to={to} items={} epochs={} waiting={} queued={queued} \
                 dropped={dropped}>",
                agent.items, agent.epochs, agent.waiting
            ),
            Err(_) => format!("<ucl_sketch.Agent stream={stream} to={to} of another process>"),
        }
    }
}

impl Agent {
    /// Logs what an operator should know. The thread that counts cannot: it must not wait for the
    /// interpreter, which may be about to end.
    fn tell(&self, py: Python<'_>) -> Result<(), Error> {
        tell(py, &self.embedded)
    }
}

fn tell(py: Python<'_>, embedded: &Embedded) -> Result<(), Error> {
    for note in embedded.notes() {
        let logger = py.import(intern!(py, "logging"))?.call_method1(intern!(py, "getLogger"), ("ucl_sketch",))?;
        logger.call_method1(intern!(py, "warning"), ("%s", note))?;
    }
    Ok(())
}

/// All agents that may have to be closed at the end of the interpreter.
static AGENTS: Mutex<Vec<Weak<Embedded>>> = Mutex::new(Vec::new());

/// The time that is left at the end of the interpreter, which begins with the first agent that is
/// closed then. So that none waits for the collector of another, all of them send what they have.
fn left_at_exit() -> Duration {
    static UNTIL: OnceLock<Instant> = OnceLock::new();
    let until = UNTIL.get_or_init(|| {
        for agent in lock(&AGENTS).iter().filter_map(Weak::upgrade) {
            // One that is closed or of another process has nothing to send.
            let _ = agent.flush(Duration::ZERO);
        }
        Instant::now() + AT_EXIT
    });
    until.saturating_duration_since(Instant::now())
}

/// What a lock holds, which is whole after a panic too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the agent closed at the end of the interpreter. Until then the function keeps it alive.
fn at_exit(py: Python<'_>, embedded: &Arc<Embedded>) -> PyResult<Py<PyAny>> {
    let mut agents = lock(&AGENTS);
    agents.retain(|agent| agent.strong_count() > 0);
    agents.push(Arc::downgrade(embedded));
    drop(agents);
    let embedded = Arc::clone(embedded);
    let close = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
        let py = arguments.py();
        match py.detach(|| embedded.close(left_at_exit())) {
            // A forked child ends, and the agent is not its own.
            Err(EmbeddedError::OtherProcess) => Ok(()),
            closed => {
                tell(py, &embedded)?;
                closed.map(|_| ()).map_err(|error| Error::from(error).into())
            }
        }
    };
    let close = PyCFunction::new_closure(py, Some(c"close_agent"), None, close)?.into_any();
    py.import("atexit")?.call_method1("register", (&close,))?;
    Ok(close.unbind())
}

/// A client of a collector, which trusts the certificates of a file, or those that browsers trust.
pub fn client(url: &str, token: &str, ca: Option<PathBuf>) -> Result<Client, Error> {
    let Some(path) = ca else { return Ok(Client::new(url, token)?) };
    let file = |error| Error::File { path: path.display().to_string(), error };
    Ok(Client::trusting(url, token, &std::fs::read(&path).map_err(file)?)?)
}

fn patience(seconds: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|length| length.as_secs() < 1 << 31)
        .ok_or_else(|| Error::Value(format!("a timeout is a number of seconds from 0 on, not {seconds}")))
}

/// The rows, if nothing is wrong with any of them.
fn checked(column: &Column, null: Nulls) -> Result<TextRows<'_>, Error> {
    let rows = TextRows::new(column)?;
    // Only tuples can be longer as text than they were checked for.
    let tuples = matches!(column.keys, Some(KeyType::Tuple(_)));
    if null == Nulls::Error || tuples {
        rows.try_each(|row, text| match text {
            None if null == Nulls::Error => Err(Error::Value(format!("row {row} is null"))),
            Some(text) if text.len() > MAX_KEY_BYTES => Err(too_long(row, text.len())),
            _ => Ok(()),
        })?;
    }
    Ok(rows)
}

/// Hands all rows over that are not null.
fn hand_over(
    embedded: &Embedded,
    rows: &TextRows<'_>,
    weights: Option<&[u64]>,
    wait: bool,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let mut batch = BatchBuf::new();
    rows.try_each(|row, text| {
        let weight = weights.map_or(1, |weights| weights[row]);
        if let (Some(text), 1..) = (text, weight) {
            batch.push(text, weight);
        }
        if batch.len() == SLICE { send(embedded, &mut batch, wait, stop) } else { Ok(()) }
    })?;
    send(embedded, &mut batch, wait, stop)
}

fn send(embedded: &Embedded, batch: &mut BatchBuf, wait: bool, stop: &AtomicBool) -> Result<(), Error> {
    while wait && !batch.is_empty() && !embedded.has_room(&batch.as_batch())? {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        thread::sleep(LOOK);
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    embedded.add_all(&batch.as_batch())?;
    batch.clear();
    Ok(())
}
