//! Questions.

use std::collections::BTreeSet;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Serialize;
use ucl_collector::{Selection, Snapshot, StreamInfo, Streams, Sum, Totals};
use ucl_link::{Times, Unseen};
use ucl_streams::Format;

use super::params::Params;
use super::problem::Problem;
use super::{App, Shared, json};
use crate::tokens::Scope;

/// Keys in an answer, at most.
const MOST_KEYS: usize = 10_000;

/// A key as programs take it: text, or where that is not valid UTF-8, hexadecimal.
#[derive(Debug, Serialize)]
struct KeyJson {
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
}

impl KeyJson {
    fn new(data: Vec<u8>) -> Self {
        match String::from_utf8(data) {
            Ok(text) => Self { key: Some(text), key_hex: None },
            Err(error) => Self { key: None, key_hex: Some(hex(error.as_bytes())) },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key with its count.
#[derive(Debug, Serialize)]
struct RowJson {
    #[serde(flatten)]
    key: KeyJson,
    /// The key as people read it, and as a question takes it.
    shown: String,
    estimate: u64,
    lower: u64,
    upper: u64,
}

impl RowJson {
    fn new(format: &Format, key: &[u8], named: bool, sum: Sum) -> Self {
        let Sum { count, lower, upper, .. } = sum;
        let (key, shown) = if named {
            (KeyJson::new(format.key_data(key).into_owned()), format.key_display(key))
        } else {
            (KeyJson { key: None, key_hex: None }, format!("digest:{}", hex(key)))
        };
        Self { key, shown, estimate: count, lower, upper }
    }
}

/// What the answer is about.
#[derive(Debug, Serialize)]
struct AboutJson {
    format: String,
    incarnations: usize,
    items: u64,
    weight: u64,
    /// Items that are known to be missing.
    unseen_items: u64,
    /// Whether more are missing, nobody knows how many.
    unseen_unknown: bool,
}

impl AboutJson {
    fn new(format: &Format, totals: Totals) -> Self {
        let Totals { items, weight, parts, unseen_items, unseen_unknown } = totals;
        Self { format: format.to_string(), incarnations: parts, items, weight, unseen_items, unseen_unknown }
    }
}

#[derive(Debug, Serialize)]
struct KeysJson {
    #[serde(flatten)]
    about: AboutJson,
    keys: Vec<RowJson>,
}

#[derive(Debug, Serialize)]
struct StreamJson {
    stream: String,
    incarnation: String,
    format: String,
    epochs: u64,
    items: u64,
    keys: usize,
    memory_bytes: usize,
    last: Option<EpochJson>,
    unseen: Option<Unseen>,
    /// Why nothing more is taken of it, if so.
    ended: Option<String>,
}

#[derive(Debug, Serialize)]
struct EpochJson {
    seq: u64,
    items: u64,
    #[serde(flatten)]
    times: Times,
    received_ms: Option<i64>,
}

impl StreamJson {
    fn new(info: StreamInfo) -> Self {
        let StreamInfo { stream, incarnation, format, epochs, items, keys, memory, last, unseen, ended, .. } = info;
        let last = last.map(|epoch| EpochJson {
            seq: epoch.seq,
            items: epoch.items,
            times: epoch.times,
            received_ms: epoch.received_ms,
        });
        Self {
            stream: stream.to_string(),
            incarnation: incarnation.to_string(),
            format,
            epochs,
            items,
            keys,
            memory_bytes: memory,
            last,
            unseen,
            ended,
        }
    }
}

/// A question about some streams.
struct Question<'a> {
    app: &'a App,
    params: Params,
    selection: Selection,
}

impl<'a> Question<'a> {
    fn new(
        app: &'a App,
        tenant: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        known: &[&str],
    ) -> Result<Self, Problem> {
        let tenant = tenant.parse().map_err(|error: ucl_link::NameError| Problem::bad_request(error.to_string()))?;
        let grant = app.authorize(headers, Scope::Read, &tenant, None)?;
        let params = Params::read(query, known)?;
        let mut streams = vec![Streams::Prefix(grant.stream_prefix.clone())];
        let mut named = BTreeSet::new();
        for name in params.all("stream") {
            match name.strip_suffix('*') {
                Some(prefix) => streams.push(Streams::Prefix(prefix.to_owned())),
                None => {
                    let name =
                        name.parse().map_err(|error: ucl_link::NameError| Problem::bad_request(error.to_string()))?;
                    named.insert(name);
                }
            }
        }
        if !named.is_empty() {
            streams.push(Streams::Named(named));
        }
        Ok(Self { app, params, selection: Selection { tenant, streams } })
    }

    /// The counts, with the format that the keys of all streams have.
    async fn snapshot(&self) -> Result<(Snapshot, Format), Problem> {
        let selection = self.selection.clone();
        let mut snapshot = self.app.core.ask(move |collector| collector.snapshot(&selection)).await?.map_err(failed)?;
        if let Some(format) = self.params.one("format")? {
            snapshot.retain(|part| part.format == format);
        }
        let formats = snapshot.formats();
        if formats.len() > 1 {
            let formats: Vec<&str> = formats.into_iter().collect();
            let detail = format!(
                "the streams have keys of different formats: choose streams, or one format of {}",
                formats.join(", ")
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        // An agent may send any text.
        let format = formats.first().and_then(|text| text.parse().ok()).unwrap_or(Format::Lines);
        Ok((snapshot, format))
    }
}

fn failed(error: ucl_collector::CollectorError) -> Problem {
    crate::core::CoreError::from(error).into()
}

/// Runs what takes long where nothing else waits for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the question could not be answered"))
}

/// `GET /v1/{tenant}/streams`
pub async fn streams(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["stream"])?;
    let selection = question.selection.clone();
    let infos = app.core.ask(move |collector| collector.streams(&selection)).await?;
    let streams: Vec<StreamJson> = infos.into_iter().map(StreamJson::new).collect();
    Ok(json(&serde_json::json!({ "streams": streams })))
}

/// `GET /v1/{tenant}/estimate?key=`
pub async fn estimate(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["stream", "format", "key"])?;
    let (snapshot, format) = question.snapshot().await?;
    let keys: Vec<&str> = question.params.all("key").collect();
    if keys.is_empty() || keys.len() > MOST_KEYS {
        return Err(Problem::bad_request(format!("give 1 to {MOST_KEYS} keys as `key`")));
    }
    let row = |text: &str| {
        let key = format.parse_key(text).map_err(|error| Problem::bad_request(error.to_string()))?;
        Ok(RowJson::new(&format, &key, true, snapshot.estimate(&key)))
    };
    let keys = keys.into_iter().map(row).collect::<Result<Vec<RowJson>, Problem>>()?;
    Ok(json(&KeysJson { about: AboutJson::new(&format, snapshot.totals()), keys }))
}

/// `GET /v1/{tenant}/top?n=`
pub async fn top(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["stream", "format", "n"])?;
    let n = question.params.parsed("n")?.unwrap_or(20).min(MOST_KEYS);
    let (snapshot, format) = question.snapshot().await?;
    let answer = blocking(move || {
        let row = |answer: ucl_collector::Answer| RowJson::new(&format, &answer.key, answer.named, answer.sum);
        let keys = snapshot.top(n).into_iter().map(row).collect();
        KeysJson { about: AboutJson::new(&format, snapshot.totals()), keys }
    });
    Ok(json(&answer.await?))
}
