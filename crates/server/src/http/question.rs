//! What a question is about: whose streams, which of them, and when.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, StatusCode};
use ucl_collector::{Selection, Slice, Snapshot, Streams, TimeRange};
use ucl_link::{Clock, Name, NameError};
use ucl_streams::Format;

use super::answer::AboutJson;
use super::params::Params;
use super::problem::Problem;
use super::time;
use super::{App, allow};
use crate::cores::PartitionsJson;
use crate::tokens::Scope;

/// A question about some streams.
pub struct Question<'a> {
    app: &'a App,
    pub params: Params,
    pub selection: Selection,
    /// `None` for everything.
    pub range: Option<TimeRange>,
}

/// The counts that answer a question.
pub struct Counts {
    pub snapshot: Snapshot,
    /// The format that the keys of all streams have.
    pub format: Format,
    pub range: Option<TimeRange>,
    /// The partitions that these are of; `None` for all streams.
    partitions: Option<PartitionsJson>,
}

impl Counts {
    pub fn slice(&self) -> Slice<'_> {
        self.snapshot.over(self.range)
    }

    pub fn about(&self, slice: &Slice<'_>) -> AboutJson {
        let range = self.range.zip(slice.coverage());
        AboutJson::new(&self.format, self.snapshot.totals(), range, self.partitions.clone())
    }
}

impl<'a> Question<'a> {
    /// Reads a question. Besides `known`, the parameters of selections and of times are known.
    pub fn new(
        app: &'a App,
        tenant: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        known: &[&str],
    ) -> Result<Self, Problem> {
        let known = [&["stream", "format"], &time::PARAMETERS[..], known].concat();
        let question = Self::about_streams(app, tenant, headers, query, &known, Scope::Read)?;
        let range = time::range(&question.params, Clock::wall_ms())?;
        Ok(Self { range, ..question })
    }

    /// Reads a question about streams, not their counts.
    pub fn about_streams(
        app: &'a App,
        tenant: &str,
        headers: &HeaderMap,
        query: Option<&str>,
        known: &[&str],
        scope: Scope,
    ) -> Result<Self, Problem> {
        let grant = app.grant(headers)?;
        let name = |error: NameError| Problem::bad_request(error.to_string());
        let tenant: Name = tenant.parse().map_err(name)?;
        allow(&grant, scope, &tenant, None)?;
        let params = Params::read(query, known)?;
        let mut wanted = Vec::new();
        let mut named = BTreeSet::new();
        for text in params.all("stream") {
            match text.strip_suffix('*') {
                // What no name starts with is a mistake.
                Some(prefix) if !prefix.is_empty() => {
                    wanted.push(Streams::Prefix(String::from(prefix.parse::<Name>().map_err(name)?)));
                }
                Some(_) => wanted.push(Streams::All),
                None => {
                    named.insert(text.parse().map_err(name)?);
                }
            }
        }
        if !named.is_empty() {
            wanted.push(Streams::Named(named));
        }
        let mut streams = vec![Streams::Prefix(grant.stream_prefix.clone())];
        if !wanted.is_empty() {
            streams.push(Streams::Any(wanted));
        }
        Ok(Self { app, params, selection: Selection { tenant, streams }, range: None })
    }

    /// The counts, if the keys of all streams have one format.
    pub async fn counts(&self) -> Result<Counts, Problem> {
        let (mut snapshot, partitions) = self.app.cores.snapshot(&self.selection).await?;
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
        Ok(Counts { snapshot, format, range: self.range, partitions })
    }
}

/// Runs what takes long where nothing else waits for it.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the question could not be answered"))
}
