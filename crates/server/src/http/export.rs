//! All keys, as CSV or Parquet.

use std::collections::HashSet;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, channel};
use ucl_collector::{Answer, Sum};
use ucl_link::Name;
use ucl_streams::table::{Column, Kind as Values, Table, Value};

use super::Shared;
use super::answer::KeyJson;
use super::problem::Problem;
use super::question::{Counts, Question};

/// Bytes that are sent at once.
const CHUNK: usize = 64 << 10;
/// Time that a reader may take for one of them: others wait for their turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tables that are exported at once, at most, and one of a tenant: each takes memory for all keys.
const AT_ONCE: usize = 4;

/// Whose tables are on their way.
#[derive(Default)]
pub struct Exports(Arc<Mutex<HashSet<Name>>>);

/// The turn of a tenant, until it is dropped.
struct Turn {
    tenants: Arc<Mutex<HashSet<Name>>>,
    tenant: Name,
}

impl Exports {
    fn turn(&self, tenant: &Name) -> Option<Turn> {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = tenants.len() < AT_ONCE && tenants.insert(tenant.clone());
        free.then(|| Turn { tenants: Arc::clone(&self.0), tenant: tenant.clone() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tenant);
    }
}

/// A table on its way. `None` is its end: without it, the table was given up, and the connection
/// breaks off, so that nobody takes a part for the whole.
struct Rows(Receiver<Option<Bytes>>);

#[derive(Debug, thiserror::Error)]
#[error("the export was cancelled")]
struct GivenUp;

impl HttpBody for Rows {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        self.0.poll_recv(context).map(|chunk| match chunk {
            Some(Some(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(None) => None,
            None => Some(Err(GivenUp)),
        })
    }
}

/// `GET /v1/{tenant}/export?as=`: every known key with its count, by key.
pub async fn export(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["as"])?;
    let kind = question.params.parsed("as")?.unwrap_or(Kind::Csv);
    let turn = app.exports.turn(&question.selection.tenant);
    let turn = turn.ok_or_else(|| Problem::busy("other tables are being exported"))?;
    let counts = question.counts().await?;
    let (to, table) = channel(4);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        // A reader that went away, or is too slow, ends it.
        let _: Option<()> = write(&counts, kind, |bytes| {
            let sent = runtime.block_on(tokio::time::timeout(PATIENCE, to.send(bytes)));
            sent.ok().and_then(Result::ok)
        });
        drop(turn);
    });
    let (content_type, disposition) = match kind {
        Kind::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"counts.csv\""),
        Kind::Parquet => ("application/vnd.apache.parquet", "attachment; filename=\"counts.parquet\""),
    };
    let head = [(header::CONTENT_TYPE, content_type), (header::CONTENT_DISPOSITION, disposition)];
    Ok((head, Body::new(Rows(table))).into_response())
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Csv,
    Parquet,
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "csv" => Ok(Self::Csv),
            "parquet" => Ok(Self::Parquet),
            _ => Err("write csv or parquet"),
        }
    }
}

/// Writes the table; `None` if nobody takes it.
fn write(counts: &Counts, kind: Kind, mut send: impl FnMut(Option<Bytes>) -> Option<()>) -> Option<()> {
    match kind {
        Kind::Csv => csv(counts, &mut send)?,
        Kind::Parquet => parquet(counts, &mut send)?,
    }
    send(None)
}

/// Sends bytes in pieces, each of which a slow reader can take in time.
fn send_all(bytes: Vec<u8>, send: &mut impl FnMut(Option<Bytes>) -> Option<()>) -> Option<()> {
    let mut bytes = Bytes::from(bytes);
    while !bytes.is_empty() {
        send(Some(bytes.split_to(CHUNK.min(bytes.len()))))?;
    }
    Some(())
}

fn csv(counts: &Counts, send: &mut impl FnMut(Option<Bytes>) -> Option<()>) -> Option<()> {
    let empty = || csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    let mut table = empty();
    table.write_record(["key", "estimate", "lower", "upper"]).ok()?;
    counts.slice().each(|Answer { key, named, sum }| {
        let Sum { count, lower, upper, .. } = sum;
        let shown = KeyJson::new(&counts.format, &key, named).shown;
        table.serialize((shown, count, lower, upper)).ok()?;
        if table.get_ref().len() >= CHUNK {
            let full = std::mem::replace(&mut table, empty());
            send_all(full.into_inner().ok()?, send)?;
        }
        Some(())
    })?;
    send_all(table.into_inner().ok()?, send)
}

fn parquet(counts: &Counts, send: &mut impl FnMut(Option<Bytes>) -> Option<()>) -> Option<()> {
    let count = |name| Column { name, kind: Values::Count };
    let key = Column { name: "key", kind: Values::Text };
    let mut table = Table::new(Vec::new(), &[key, count("estimate"), count("lower"), count("upper")]).ok()?;
    counts.slice().each(|Answer { key, named, sum }| {
        let shown = KeyJson::new(&counts.format, &key, named).shown;
        let [count, lower, upper] = [sum.count, sum.lower, sum.upper].map(Value::Number);
        table.row(&[Value::Bytes(shown.as_bytes()), count, lower, upper]).ok()?;
        send_all(std::mem::take(table.out()), send)
    })?;
    send_all(table.finish().ok()?, send)
}
