//! What a question is about, as Python says it.

use pyo3::prelude::*;
use pyo3::types::PyString;
use ucl_link::{About, Name};

use crate::error::Error;

/// Streams and time.
#[derive(Default)]
pub struct Question<'a, 'py> {
    pub stream: Option<&'a Bound<'py, PyAny>>,
    pub last: Option<&'a Bound<'py, PyAny>>,
    pub since: Option<&'a Bound<'py, PyAny>>,
    pub until: Option<&'a Bound<'py, PyAny>>,
    pub format: Option<String>,
}

impl Question<'_, '_> {
    pub fn about(self, tenant: &Name) -> Result<About, Error> {
        let Self { stream, last, since, until, format } = self;
        Ok(About {
            tenant: tenant.clone(),
            streams: stream.map(|stream| texts("stream", stream)).transpose()?.unwrap_or_default(),
            format,
            last: last.map(length).transpose()?,
            from: since.map(|moment| self::moment("since", moment)).transpose()?,
            to: until.map(|moment| self::moment("until", moment)).transpose()?,
        })
    }
}

/// One text, or several.
pub fn texts(name: &str, value: &Bound<'_, PyAny>) -> Result<Vec<String>, Error> {
    if value.is_instance_of::<PyString>() {
        return Ok(vec![value.extract()?]);
    }
    let all = value.extract::<Vec<String>>();
    all.map_err(|_| Error::Type(format!("{name} is a str, or a list of str")))
}

/// A length of time: text such as `5m`, or a `timedelta`.
pub fn length(value: &Bound<'_, PyAny>) -> Result<String, Error> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    let seconds = value.call_method0("total_seconds").and_then(|seconds| seconds.extract::<f64>());
    let seconds = seconds.map_err(|_| Error::Type("a length of time is a str such as '5m', or a timedelta".into()))?;
    Ok(format!("{}ms", (seconds * 1_000.0).round()))
}

/// A moment: text, milliseconds since 1970, a `datetime` or a `date`.
fn moment(name: &str, value: &Bound<'_, PyAny>) -> Result<String, Error> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    if let Ok(milliseconds) = value.extract::<i64>() {
        return Ok(milliseconds.to_string());
    }
    if let Ok(seconds) = value.call_method0("timestamp").and_then(|seconds| seconds.extract::<f64>()) {
        return Ok(format!("{}", (seconds * 1_000.0).round()));
    }
    let date = value.call_method0("isoformat").and_then(|date| date.extract::<String>());
    date.map_err(|_| Error::Type(format!("{name} is a datetime, a date, a str, or milliseconds since 1970")))
}
