//! All keys, as CSV.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, channel};
use ucl_collector::{Answer, Sum};

use super::Shared;
use super::answer::KeyJson;
use super::problem::Problem;
use super::question::{Counts, Question};

/// Bytes that are sent at once.
const CHUNK: usize = 64 << 10;
/// Time that a reader may take for one of them.
const PATIENCE: Duration = Duration::from_secs(60);

/// A table on its way. `None` is its end: without it, the table was given up, and the connection
/// breaks off, so that nobody takes a part for the whole.
struct Table(Receiver<Option<Bytes>>);

#[derive(Debug, thiserror::Error)]
#[error("the table was given up")]
struct GivenUp;

impl HttpBody for Table {
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

/// `GET /v1/{tenant}/export`: every known key with its count, by key.
pub async fn export(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &[])?;
    let turn = Arc::clone(&app.exports).try_acquire_owned();
    let turn = turn.map_err(|_| Problem::busy("other tables are being exported"))?;
    let counts = question.counts().await?;
    let (to, table) = channel(4);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        // A reader that went away, or is too slow, ends it.
        let _: Option<()> = write(&counts, |bytes| {
            let sent = runtime.block_on(tokio::time::timeout(PATIENCE, to.send(bytes)));
            sent.ok().and_then(Result::ok)
        });
        drop(turn);
    });
    let head = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"counts.csv\""),
    ];
    Ok((head, Body::new(Table(table))).into_response())
}

/// Writes the table; `None` if nobody takes it.
fn write(counts: &Counts, mut send: impl FnMut(Option<Bytes>) -> Option<()>) -> Option<()> {
    let empty = || csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    let mut table = empty();
    table.write_record(["key", "estimate", "lower", "upper"]).ok()?;
    counts.slice().each(|Answer { key, named, sum }| {
        let Sum { count, lower, upper, .. } = sum;
        let shown = KeyJson::new(&counts.format, &key, named).shown;
        table.serialize((shown, count, lower, upper)).ok()?;
        if table.get_ref().len() >= CHUNK {
            let full = std::mem::replace(&mut table, empty());
            send(Some(full.into_inner().ok()?.into()))?;
        }
        Some(())
    })?;
    send(Some(table.into_inner().ok()?.into()))?;
    send(None)
}
