//! One error type, and one map from it to Python's exceptions.

use std::io;

use arrow_schema::ArrowError;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyConnectionError, PyException, PyMemoryError, PyOSError, PyPermissionError, PyTypeError, PyValueError,
};
use ucl_agent::AgentError;
use ucl_agentd::EmbeddedError;
use ucl_lab::UnknownMethod;
use ucl_link::{ClientError, NameError};
use ucl_sketch::{BuildError, Fault, InsertError, LoadError, MergeError, SaveError, UnknownMode};
use ucl_streams::{ReadError, ReadErrorKind, SpecError};

pyo3::create_exception!(
    ucl_sketch,
    UclError,
    PyException,
    "A state that cannot be loaded, or a defect of this library."
);

/// Error of a call from Python.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value has the right type and is wrong all the same.
    #[error("{0}")]
    Value(String),
    /// A value has the wrong type.
    #[error("{0}")]
    Type(String),
    /// Python has raised this already.
    #[error(transparent)]
    Raised(#[from] PyErr),
    /// A column cannot be imported.
    #[error("cannot import the column: {0}")]
    Arrow(#[from] ArrowError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Insert(#[from] InsertError),
    #[error(transparent)]
    Merge(#[from] MergeError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    #[error(transparent)]
    Method(#[from] UnknownMethod),
    #[error(transparent)]
    Agent(#[from] EmbeddedError),
    #[error(transparent)]
    Collector(#[from] ClientError),
    #[error(transparent)]
    Name(#[from] NameError),
    /// A file that this crate reads itself.
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    /// A folder cannot be read, or nothing matches a pattern.
    #[error("{0}")]
    Inputs(io::Error),
    /// Nobody waits for the result any more.
    #[error("the call was interrupted")]
    Interrupted,
    /// A call has panicked while it worked on the sketch.
    #[error("an earlier call failed in the middle of its work: this sketch cannot be used any more")]
    Broken,
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Raised(raised) => raised,
            Error::Type(_) => PyTypeError::new_err(text),
            Error::Value(_)
            | Error::Arrow(_)
            | Error::Build(_)
            | Error::Insert(_)
            | Error::Spec(_)
            | Error::Mode(_)
            | Error::Method(_)
            | Error::Name(_)
            | Error::Merge(MergeError::Refused(_)) => PyValueError::new_err(text),
            Error::File { error, .. } | Error::Inputs(error) => os_error(&error, text),
            Error::Agent(agent) => agent_error(&agent, text),
            Error::Collector(collector) => collector_error(&collector, text),
            Error::Load(LoadError::Read { error, .. }) | Error::Save(SaveError::Write { error, .. }) => {
                os_error(&error, text)
            }
            Error::Load(LoadError::OutOfMemory { .. }) => PyMemoryError::new_err(text),
            Error::Load(LoadError::KeyType { .. }) => PyTypeError::new_err(text),
            Error::Read(read) => match read.kind {
                ReadErrorKind::Open { error, .. } | ReadErrorKind::Io { error, .. } => os_error(&error, text),
                _ => PyValueError::new_err(text),
            },
            Error::Thread(_) => PyOSError::new_err(text),
            Error::Merge(_)
            | Error::Load(_)
            | Error::Save(_)
            | Error::Fault(_)
            | Error::Interrupted
            | Error::Broken => UclError::new_err(text),
        }
    }
}

/// `FileNotFoundError` and its like, by the kind of the error.
fn os_error(error: &io::Error, text: String) -> PyErr {
    io::Error::new(error.kind(), text).into()
}

fn agent_error(error: &EmbeddedError, text: String) -> PyErr {
    match error {
        EmbeddedError::Agent(AgentError::Storage(error)) => os_error(error, text),
        EmbeddedError::Agent(AgentError::Load(_) | AgentError::Link(_)) => UclError::new_err(text),
        EmbeddedError::Thread(_) => PyOSError::new_err(text),
        EmbeddedError::Build(_) | EmbeddedError::Agent(_) | EmbeddedError::ExactMode | EmbeddedError::Closed => {
            PyValueError::new_err(text)
        }
        _ => UclError::new_err(text),
    }
}

/// What a collector refuses is the caller's to mend, or the operator's, or nobody's.
fn collector_error(error: &ClientError, text: String) -> PyErr {
    match error {
        ClientError::Address(_) | ClientError::Token | ClientError::Certificate => PyValueError::new_err(text),
        ClientError::Unreachable { .. } => PyConnectionError::new_err(text),
        ClientError::Refused { status: 401 | 403, .. } => PyPermissionError::new_err(text),
        ClientError::Refused { status: 429, .. } => UclError::new_err(text),
        ClientError::Refused { status: 400..=499, .. } => PyValueError::new_err(text),
        _ => UclError::new_err(text),
    }
}
