//! Figures for Prometheus, in its text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ucl_collector::{Selection, StreamInfo, Streams};
use ucl_link::Clock;

use super::problem::Problem;
use super::streams::{Health, StreamJson};
use super::{Shared, allow};
use crate::core::CoreMetrics;
use crate::tokens::Scope;

/// Answers by the first digit of their status.
#[derive(Debug, Default)]
pub struct Answered([AtomicU64; 5]);

impl Answered {
    pub fn count(&self, status: StatusCode) {
        if let Some(class) = self.0.get(usize::from(status.as_u16() / 100).wrapping_sub(1)) {
            class.fetch_add(1, Relaxed);
        }
    }
}

/// The text, one family after another.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family<L: Display, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help, [("", value)]);
    }
}

/// Sums over all incarnations of a stream.
#[derive(Debug, Default)]
struct Stream {
    items: u64,
    epochs: u64,
    uplink_bytes: u64,
    keys: usize,
    memory: usize,
    unseen_items: u64,
    incarnations: usize,
}

/// `GET /metrics`: of the service, and of the streams that the token may read.
pub async fn metrics(State(app): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let grant = app.grant(&headers)?;
    allow(&grant, Scope::Read, &grant.tenant, None)?;
    let selection =
        Selection { tenant: grant.tenant.clone(), streams: vec![Streams::Prefix(grant.stream_prefix.clone())] };
    let asked = app
        .cores
        .ask(move |collector| (collector.streams(&selection), collector.log_bytes(), collector.trouble().is_some()))
        .await?;
    let (mut infos, mut log_bytes, mut trouble) = (Vec::new(), 0, false);
    for (more, bytes, is_full) in asked.answers {
        infos.extend(more);
        log_bytes += bytes;
        trouble |= is_full;
    }
    infos.sort_by(|a, b| (&a.stream, a.incarnation).cmp(&(&b.stream, b.incarnation)));
    let mut text = Text::default();
    service(&mut text, app.cores.metrics(), &app.answered);
    text.one("ucl_ready", "gauge", "1 while epochs are taken.", u8::from(app.cores.is_ready()));
    text.one("ucl_log_bytes", "gauge", "Bytes of the log on disk.", log_bytes);
    text.one("ucl_disk_trouble", "gauge", "1 while the disk is full.", u8::from(trouble));
    streams(&mut text, infos);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0).into_response())
}

fn service(text: &mut Text, core: &CoreMetrics, answered: &Answered) {
    let CoreMetrics { requests, bytes, batches, batch_micros, busy, waiting, reopened } = core;
    let load = |number: &AtomicU64| number.load(Relaxed);
    text.one("ucl_ingest_requests_total", "counter", "Requests with epochs that were answered.", load(requests));
    text.one("ucl_ingest_bytes_total", "counter", "Bytes of their bodies.", load(bytes));
    text.one("ucl_batches_total", "counter", "Batches of requests that were committed.", load(batches));
    let seconds = load(batch_micros) as f64 / 1e6;
    text.one("ucl_batch_seconds_total", "counter", "Time spent on batches, in seconds.", seconds);
    text.one("ucl_busy_total", "counter", "Requests turned away because the queue was full.", load(busy));
    text.one("ucl_waiting_requests", "gauge", "Requests that wait.", load(waiting));
    text.one("ucl_reopened_total", "counter", "Times that the collector was opened again.", load(reopened));
    let classes = (1..).zip(&answered.0).map(|(class, number)| (format!("{{class=\"{class}xx\"}}"), load(number)));
    text.family("ucl_http_responses_total", "counter", "Answers by class of their status.", classes);
}

fn streams(text: &mut Text, infos: Vec<StreamInfo>) {
    let mut streams: BTreeMap<String, Stream> = BTreeMap::new();
    for info in &infos {
        let stream = streams.entry(info.stream.to_string()).or_default();
        stream.items = stream.items.saturating_add(info.items);
        stream.epochs += info.epochs;
        stream.uplink_bytes = stream.uplink_bytes.saturating_add(info.uplink_bytes);
        stream.keys += info.keys;
        stream.memory += info.memory;
        let unseen = info.unseen.and_then(|unseen| unseen.items).unwrap_or(0);
        stream.unseen_items = stream.unseen_items.saturating_add(unseen);
        stream.incarnations += 1;
    }
    // Names have no character that would have to be escaped.
    let label = |stream: &str| format!("{{stream=\"{stream}\"}}");
    let mut family = |name: &str, kind: &str, help: &str, value: fn(&Stream) -> u64| {
        text.family(name, kind, help, streams.iter().map(|(name, stream)| (label(name), value(stream))));
    };
    // An incarnation can be deleted, so that these may fall: they are no counters to Prometheus.
    family("ucl_stream_items", "gauge", "Items counted.", |stream| stream.items);
    family("ucl_stream_epochs", "gauge", "Epochs taken.", |stream| stream.epochs);
    family("ucl_stream_uplink_bytes", "gauge", "Bytes of all epochs taken.", |stream| stream.uplink_bytes);
    family("ucl_stream_keys", "gauge", "Keys known.", |stream| stream.keys as u64);
    family("ucl_stream_memory_bytes", "gauge", "Bytes of memory.", |stream| stream.memory as u64);
    family("ucl_stream_unseen_items", "gauge", "Items known to be missing.", |stream| stream.unseen_items);
    family("ucl_stream_incarnations", "gauge", "Incarnations.", |stream| stream.incarnations as u64);
    let now = StreamJson::all(infos, Clock::wall_ms());
    let newest = || now.iter().filter(|stream| stream.health != Health::Replaced);
    let seconds = |stream: &StreamJson| Some((label(&stream.stream), stream.lag_ms? as f64 / 1e3));
    text.family(
        "ucl_stream_lag_seconds",
        "gauge",
        "Time since the last epoch arrived, in seconds.",
        newest().filter_map(seconds),
    );
    let up = |stream: &StreamJson| (label(&stream.stream), u8::from(stream.health == Health::Ok));
    text.family("ucl_stream_up", "gauge", "1 while epochs of the stream come in time.", newest().map(up));
}
