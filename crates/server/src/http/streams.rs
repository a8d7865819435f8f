//! Questions about streams.

use std::collections::BTreeMap;

use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use ucl_collector::{EpochInfo, Part, StreamInfo};
use ucl_link::{Clock, Identity, Incarnation, Times, Unseen};

use super::problem::Problem;
use super::question::{Question, blocking};
use super::{Shared, json};
use crate::cores::{Answers, PartitionsJson};
use crate::tokens::Scope;

/// Streams in an answer, at most.
const MOST_STREAMS: usize = 10_000;
/// A stream is late if nothing came for three of its epochs and this long, in milliseconds.
const LATE_MS: i64 = 60_000;

/// Health of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Epochs come.
    Ok,
    /// No epoch has come for long.
    Late,
    /// A newer incarnation of the stream has taken over.
    Replaced,
    /// The stream's messages contradicted each other, and nothing more is taken.
    Ended,
}

/// One incarnation of a stream, as operators see it.
#[derive(Debug, Serialize)]
pub struct StreamJson {
    pub stream: String,
    incarnation: String,
    pub health: Health,
    format: String,
    epochs: u64,
    items: u64,
    keys: usize,
    memory_bytes: usize,
    uplink_bytes: u64,
    /// Milliseconds since the last epoch arrived, or since it ended if that was before the
    /// collector started.
    pub lag_ms: Option<i64>,
    /// Between the end of the last epoch, by the agent's clock, and its arrival, by ours.
    clock_offset_ms: Option<i64>,
    last: Option<EpochJson>,
    unseen: Option<Unseen>,
    /// Why nothing more is taken of it, if so.
    ended: Option<String>,
    /// With `self_check`: the share of a row of counters that is predicted wrongly without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    self_check: Option<f64>,
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
    fn new(info: StreamInfo, is_newest: bool, now_ms: i64) -> Self {
        let StreamInfo { stream, incarnation, format, epochs, items, keys, memory, uplink_bytes, .. } = info;
        let StreamInfo { last, unseen, ended, .. } = info;
        let since = |epoch: &EpochInfo| epoch.received_ms.unwrap_or(epoch.times.ended_ms);
        let lag_ms = last.map(|epoch| now_ms.saturating_sub(since(&epoch)).max(0));
        let usual = last.map_or(0, |epoch| i64::try_from(epoch.times.duration_ms).unwrap_or(i64::MAX));
        let health = if ended.is_some() {
            Health::Ended
        } else if !is_newest {
            Health::Replaced
        } else if lag_ms.is_some_and(|lag| lag > usual.saturating_mul(3).saturating_add(LATE_MS)) {
            Health::Late
        } else {
            Health::Ok
        };
        let clock_offset_ms =
            last.and_then(|epoch| epoch.received_ms.map(|received| received.saturating_sub(epoch.times.ended_ms)));
        let last = last.map(|epoch| EpochJson {
            seq: epoch.seq,
            items: epoch.items,
            times: epoch.times,
            received_ms: epoch.received_ms,
        });
        Self {
            stream: stream.to_string(),
            incarnation: incarnation.to_string(),
            health,
            format,
            epochs,
            items,
            keys,
            memory_bytes: memory,
            uplink_bytes,
            lag_ms,
            clock_offset_ms,
            last,
            unseen,
            ended,
            self_check: None,
        }
    }

    /// Describes all of these streams, which are in the order of their names.
    pub fn all(infos: Vec<StreamInfo>, now_ms: i64) -> Vec<Self> {
        let newest: BTreeMap<_, _> = infos.iter().map(|info| (info.stream.clone(), info.incarnation)).collect();
        let one = |info: StreamInfo| {
            let is_newest = newest.get(&info.stream) == Some(&info.incarnation);
            Self::new(info, is_newest, now_ms)
        };
        infos.into_iter().map(one).collect()
    }

    fn place(&self) -> String {
        format!("{}/{}", self.stream, self.incarnation)
    }
}

#[derive(Debug, Serialize)]
struct StreamsJson {
    streams: Vec<StreamJson>,
    /// Value of `after` for the streams that follow; `None` if there are none.
    next: Option<String>,
    /// The partitions that the answer is about, if this collector has a part of the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<PartitionsJson>,
}

/// `GET /v1/{tenant}/streams`
pub async fn streams(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let known = ["stream", "n", "after", "self_check"];
    let question = Question::about_streams(&app, &tenant, &headers, query.as_deref(), &known, Scope::Read)?;
    let n = question.params.parsed("n")?.unwrap_or(1_000).clamp(1, MOST_STREAMS);
    let wants_check = question.params.parsed("self_check")?.unwrap_or(false);
    let after = question.params.one("after")?.map(place).transpose()?;
    let selection = question.selection.clone();
    let Answers { answers, about: partitions } = app.cores.ask(move |collector| collector.streams(&selection)).await?;
    let mut infos = answers.concat();
    infos.sort_by(|a, b| (&a.stream, a.incarnation).cmp(&(&b.stream, b.incarnation)));
    let snapshot = if wants_check { Some(app.cores.snapshot(&question.selection).await?.0) } else { None };
    let answer = blocking(move || {
        let mut streams = StreamJson::all(infos, Clock::wall_ms());
        if let Some(snapshot) = snapshot {
            let check = |part: &Part| part.view.self_check().ok().flatten().map(|check| check.residual);
            let name = |Identity { stream, incarnation, .. }: &Identity| format!("{stream}/{incarnation}");
            let checks: BTreeMap<String, Option<f64>> =
                snapshot.parts().map(|part| (name(&part.identity), check(part))).collect();
            streams.iter_mut().for_each(|stream| stream.self_check = checks.get(&stream.place()).copied().flatten());
        }
        if let Some((stream, incarnation)) = after {
            let place = |json: &StreamJson| json.incarnation.parse::<Incarnation>().ok();
            streams.retain(|json| (json.stream.as_str(), place(json)) > (stream.as_str(), Some(incarnation)));
        }
        let next = streams.get(n - 1).filter(|_| streams.len() > n).map(StreamJson::place);
        streams.truncate(n);
        StreamsJson { streams, next, partitions }
    });
    Ok(json(&answer.await?))
}

#[derive(Debug, Serialize)]
struct DeletedJson {
    deleted: Vec<IncarnationJson>,
}

#[derive(Debug, Serialize)]
struct IncarnationJson {
    stream: String,
    incarnation: String,
}

/// `DELETE /v1/{tenant}/streams?stream=`: deletes the streams of these names, for good.
pub async fn delete(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::about_streams(&app, &tenant, &headers, query.as_deref(), &["stream"], Scope::Admin)?;
    if question.params.all("stream").next().is_none() {
        return Err(Problem::bad_request("name what to delete as `stream`; `stream=*` is all of them"));
    }
    let selection = question.selection.clone();
    let deleted = app.cores.try_ask(move |collector| collector.delete(&selection)).await?.answers.concat();
    for identity in &deleted {
        tracing::info!(%identity, "deleted by request");
    }
    let row = |Identity { stream, incarnation, .. }: Identity| IncarnationJson {
        stream: stream.to_string(),
        incarnation: incarnation.to_string(),
    };
    Ok(json(&DeletedJson { deleted: deleted.into_iter().map(row).collect() }))
}

fn place(text: &str) -> Result<(String, Incarnation), Problem> {
    let parsed = text.split_once('/').and_then(|(stream, life)| Some((stream.to_owned(), life.parse().ok()?)));
    parsed.ok_or_else(|| Problem::bad_request("after: give the `next` of the answer before"))
}
