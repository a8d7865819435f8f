//! The class `Collector`: asks a collector, and returns its answers as tables.

mod question;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, TimestampMillisecondArray, UInt64Array};
use pyo3::prelude::*;
use ucl_link::{About, ChangeRow, Client, Facts, KeyRow, KeyText, Name, Range, Series, StreamRow};
use ucl_streams::Format;

use self::question::{Question, texts};
use crate::agent::client;
use crate::answers::{self, Answer, batch, key_array};
use crate::column::Column;
use crate::error::Error;
use crate::interrupt;
use crate::key_type::KeyType;
use crate::objects;
use crate::table::Table;
use crate::text_key::{self, TextRows, text_of};

/// Asks a collector.
///
/// url, token: its address (`ucl serve`), and a token of it.
/// keys: type of the keys in answers; by default text.
/// ca: file with the certificate to trust, in PEM format.
///
/// Every question is about the streams `stream` (a name, several, or "shop-*"), and about a time:
/// `last` ("5m" or a timedelta), or from `since` to `until` (datetime, date, or text in UTC).
#[pyclass(frozen, module = "ucl_sketch")]
pub struct Collector {
    client: Client,
    tenant: Name,
    /// The type of the keys in answers.
    keys: KeyType,
}

#[pymethods]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
impl Collector {
    #[new]
    #[pyo3(signature = (url, token, *, tenant = "default", keys = None, ca = None))]
    fn new(
        url: &str,
        token: &str,
        tenant: &str,
        keys: Option<&Bound<'_, PyAny>>,
        ca: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let keys = keys.map(KeyType::from_python).transpose()?.unwrap_or(KeyType::Str);
        Ok(Self { client: client(url, token, ca)?, tenant: tenant.parse()?, keys })
    }

    /// Returns the `n` keys with the largest counts.
    #[pyo3(signature = (n = 10, *, stream = None, last = None, since = None, until = None, format = None))]
    fn top(
        &self,
        py: Python<'_>,
        n: usize,
        stream: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        format: Option<String>,
    ) -> Result<Table, Error> {
        let about = Question { stream, last, since, until, format }.about(&self.tenant)?;
        self.ask(py, about, move |client, about, keys| {
            let answer = client.top(about, n)?;
            counts(answer.keys, keys, &answer.facts)
        })
    }

    /// Returns the count of one key, or the counts of a column of keys as a table.
    #[pyo3(signature = (key, *, stream = None, last = None, since = None, until = None, format = None))]
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
        last: Option<&Bound<'py, PyAny>>,
        since: Option<&Bound<'py, PyAny>>,
        until: Option<&Bound<'py, PyAny>>,
        format: Option<String>,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let about = Question { stream, last, since, until, format }.about(&self.tenant)?;
        let one = objects::is_key(key)?;
        let wanted = if one { vec![shown(&text_of(key)?)] } else { shown_column(&Column::import(key)?)? };
        let table = self.ask(py, about, move |client, about, keys| {
            if wanted.is_empty() {
                return Ok(Table::new(answers::counts(Some(keys), &[])?, Some(keys.clone())));
            }
            let answer = client.estimate(about, &wanted)?;
            counts(answer.keys, keys, &answer.facts)
        })?;
        if one { Ok(table.one(py)?) } else { Ok(Bound::new(py, table)?.into_any()) }
    }

    /// Returns the keys whose counts changed most, against the time of the same length before.
    #[pyo3(signature = (n = 10, *, stream = None, last = None, since = None, until = None, format = None))]
    fn changes(
        &self,
        py: Python<'_>,
        n: usize,
        stream: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        format: Option<String>,
    ) -> Result<Table, Error> {
        let about = Question { stream, last, since, until, format }.about(&self.tenant)?;
        self.ask(py, about, move |client, about, keys| {
            let answer = client.changes(about, n)?;
            Table::about(changes(&answer.keys, keys)?, Some(keys.clone()), &answer.facts)
        })
    }

    /// Returns the count of a key in each epoch of each stream, or with `step` in each step of
    /// time.
    #[pyo3(signature = (key, *, step = None, stream = None, last = None, since = None, until = None, format = None))]
    fn series(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        step: Option<&Bound<'_, PyAny>>,
        stream: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        format: Option<String>,
    ) -> Result<Table, Error> {
        let about = Question { stream, last, since, until, format }.about(&self.tenant)?;
        let (key, step) = (shown(&text_of(key)?), step.map(question::length).transpose()?);
        self.ask(py, about, move |client, about, _| {
            let answer = client.series(about, &key, step.as_deref())?;
            Table::about(series(&answer)?, None, &answer.facts)
        })
    }

    /// Returns the sum of all known keys that start with each prefix.
    #[pyo3(signature = (prefixes, *, stream = None, last = None, since = None, until = None, format = None))]
    fn prefix(
        &self,
        py: Python<'_>,
        prefixes: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
        since: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        format: Option<String>,
    ) -> Result<Table, Error> {
        let about = Question { stream, last, since, until, format }.about(&self.tenant)?;
        let prefixes = texts("prefixes", prefixes)?;
        self.ask(py, about, move |client, about, _| {
            let answer = client.prefix(about, &prefixes)?;
            let rows = answer.prefixes;
            let batch = batch([
                ("prefix", text(rows.iter().map(|row| Some(row.prefix.as_str())))),
                ("keys", numbers(rows.iter().map(|row| Some(row.keys)))),
                ("count", numbers(rows.iter().map(|row| Some(row.count.estimate)))),
                ("lower", numbers(rows.iter().map(|row| Some(row.count.lower)))),
                ("upper", numbers(rows.iter().map(|row| Some(row.count.upper)))),
            ])?;
            Table::about(batch, None, &answer.facts)
        })
    }

    /// Returns the streams, with one row for each life of their agents.
    #[pyo3(signature = (*, stream = None))]
    fn streams(&self, py: Python<'_>, stream: Option<&Bound<'_, PyAny>>) -> Result<Table, Error> {
        let about = Question { stream, ..Question::default() }.about(&self.tenant)?;
        self.ask(py, about, |client, about, _| Ok(Table::new(streams(&client.streams(about)?)?, None)))
    }

    fn __repr__(&self) -> String {
        format!("<ucl_sketch.Collector {} tenant={}>", self.client.address(), self.tenant)
    }
}

impl Collector {
    /// Asks in a thread of its own: Ctrl-C does not wait for the answer.
    fn ask(
        &self,
        py: Python<'_>,
        about: About,
        question: impl FnOnce(&Client, &About, &KeyType) -> Result<Table, Error> + Send + 'static,
    ) -> Result<Table, Error> {
        let (client, keys) = (self.client.clone(), self.keys.clone());
        interrupt::long(py, move |_| question(&client, &about, &keys))
    }
}

/// A key as a question has it, which shows what is no plain text.
fn shown(text: &[u8]) -> String {
    Format::Lines.key_display(text)
}

fn shown_column(column: &Column) -> Result<Vec<String>, Error> {
    let mut keys = Vec::with_capacity(column.rows());
    TextRows::new(column)?.try_each(|row, text| match text {
        Some(text) => {
            keys.push(shown(text));
            Ok(())
        }
        None => Err(Error::Value(format!("row {row} is null, which is no key here"))),
    })?;
    Ok(keys)
}

/// The bytes of a key in an answer, as the type that was asked for has them.
fn key_bytes(key: &KeyText, keys: &KeyType) -> Result<Option<Vec<u8>>, Error> {
    let Some(text) = key.bytes() else { return Ok(None) };
    let bytes = text_key::read(keys, &text);
    let wrong = || Error::Value(format!("the key '{}' is no {keys}: ask with another type of keys", key.shown));
    bytes.map(Some).ok_or_else(wrong)
}

fn counts(rows: Vec<KeyRow>, keys: &KeyType, facts: &Facts) -> Result<Table, Error> {
    let answer = |KeyRow { key, count: Range { estimate, lower, upper } }: &KeyRow| {
        let key = key_bytes(key, keys)?;
        Ok(Answer { key, count: *estimate, range: (*lower, *upper), likely: (*lower, *upper) })
    };
    let answers: Vec<Answer> = rows.iter().map(answer).collect::<Result<_, Error>>()?;
    Table::about(answers::counts(Some(keys), &answers)?, Some(keys.clone()), facts)
}

fn changes(rows: &[ChangeRow], keys: &KeyType) -> Result<RecordBatch, Error> {
    let names = rows.iter().map(|row| key_bytes(&row.key, keys)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<Option<&[u8]>> = names.iter().map(Option::as_deref).collect();
    let of = |number: fn(&ChangeRow) -> u64| numbers(rows.iter().map(|row| Some(number(row))));
    batch([
        ("key", key_array(Some(keys), &names)?),
        ("before", of(|row| row.before.estimate)),
        ("after", of(|row| row.after.estimate)),
        ("change", Arc::new(rows.iter().map(|row| Some(row.change)).collect::<Int64Array>())),
        ("before_lower", of(|row| row.before.lower)),
        ("before_upper", of(|row| row.before.upper)),
        ("after_lower", of(|row| row.after.lower)),
        ("after_upper", of(|row| row.after.upper)),
    ])
}

fn series(answer: &Series) -> Result<RecordBatch, Error> {
    if let Some(steps) = &answer.steps {
        let of = |number: fn(&Range) -> u64| numbers(steps.iter().map(|step| Some(number(&step.count))));
        return batch([
            ("start", times(steps.iter().map(|step| Some(step.from_ms)))),
            ("end", times(steps.iter().map(|step| Some(step.to_ms)))),
            ("count", of(|count| count.estimate)),
            ("lower", of(|count| count.lower)),
            ("upper", of(|count| count.upper)),
        ]);
    }
    let rows = || answer.series.iter().flat_map(|stream| stream.epochs.iter().map(move |epoch| (stream, epoch)));
    let of = |number: fn(&Range) -> u64| numbers(rows().map(|(_, epoch)| Some(number(&epoch.count))));
    batch([
        ("stream", text(rows().map(|(stream, _)| Some(stream.stream.as_str())))),
        ("incarnation", text(rows().map(|(stream, _)| Some(stream.incarnation.as_str())))),
        ("epoch", numbers(rows().map(|(_, epoch)| Some(epoch.seq)))),
        ("start", times(rows().map(|(_, epoch)| Some(epoch.started_ms)))),
        ("end", times(rows().map(|(_, epoch)| Some(epoch.ended_ms)))),
        ("items", numbers(rows().map(|(_, epoch)| Some(epoch.items)))),
        ("count", of(|count| count.estimate)),
        ("lower", of(|count| count.lower)),
        ("upper", of(|count| count.upper)),
    ])
}

fn streams(rows: &[StreamRow]) -> Result<RecordBatch, Error> {
    let of = |number: fn(&StreamRow) -> u64| numbers(rows.iter().map(|row| Some(number(row))));
    batch([
        ("stream", text(rows.iter().map(|row| Some(row.stream.as_str())))),
        ("incarnation", text(rows.iter().map(|row| Some(row.incarnation.as_str())))),
        ("health", text(rows.iter().map(|row| Some(row.health.as_str())))),
        ("format", text(rows.iter().map(|row| Some(row.format.as_str())))),
        ("epochs", of(|row| row.epochs)),
        ("items", of(|row| row.items)),
        ("keys", of(|row| row.keys)),
        ("uplink_bytes", of(|row| row.uplink_bytes)),
        ("last", times(rows.iter().map(|row| row.last.as_ref().map(|last| last.ended_ms)))),
        ("unseen_from", times(rows.iter().map(|row| row.unseen.map(|unseen| unseen.from_ms)))),
        ("unseen_items", numbers(rows.iter().map(|row| row.unseen.and_then(|unseen| unseen.items)))),
        ("ended", text(rows.iter().map(|row| row.ended.as_deref()))),
    ])
}

fn numbers(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.collect::<UInt64Array>())
}

fn text<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<LargeStringArray>())
}

/// Milliseconds since 1970, as moments.
fn times(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<TimestampMillisecondArray>().with_timezone("UTC"))
}
