//! Questions about counts.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use ucl_collector::{Answer, KeyChange, KeySeries, Slice, TimeRange};
use ucl_streams::Format;

use super::answer::{
    ChangeJson, ChangesJson, CountJson, KeyJson, KeysJson, PointJson, PrefixJson, PrefixesJson, RangeJson, RowJson,
    SeriesJson, StepJson, StreamSeriesJson,
};
use super::params::Params;
use super::problem::Problem;
use super::question::{Counts, Question, blocking};
use super::{Shared, json, time};

/// Keys in an answer, at most.
const MOST_KEYS: usize = 10_000;
/// Keys in an address, at most: it must not be too long.
const MOST_IN_ADDRESS: usize = 1_000;
/// Bytes of a question's body, at most.
const LARGEST_QUESTION: usize = 2 << 20;
/// Prefixes in a question, at most.
const MOST_PREFIXES: usize = 100;
/// Steps of time in an answer, at most.
const MOST_STEPS: i64 = 1_000;

fn read_key(format: &Format, text: &str) -> Result<Vec<u8>, Problem> {
    format.parse_key(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// Reads the number of wanted keys.
fn n(params: &Params) -> Result<usize, Problem> {
    Ok(params.parsed("n")?.unwrap_or(20).min(MOST_KEYS))
}

fn check_number(keys: &[String], most: usize, place: &str) -> Result<(), Problem> {
    let is_fine = (1..=most).contains(&keys.len());
    if is_fine { Ok(()) } else { Err(Problem::bad_request(format!("give 1 to {most} keys as {place}"))) }
}

async fn rows(counts: Counts, keys: Vec<String>) -> Result<Response, Problem> {
    let answer = blocking(move || {
        let slice = counts.slice();
        let row = |text: &String| {
            let key = read_key(&counts.format, text)?;
            Ok(RowJson::new(&counts.format, &key, true, slice.estimate(&key)))
        };
        let keys = keys.iter().map(row).collect::<Result<Vec<RowJson>, Problem>>()?;
        Ok::<_, Problem>(KeysJson { about: counts.about(&slice), keys, next: None })
    });
    Ok(json(&answer.await??))
}

/// `GET /v1/{tenant}/estimate?key=`
pub async fn estimate(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["key"])?;
    let keys: Vec<String> = question.params.all("key").map(str::to_owned).collect();
    check_number(&keys, MOST_IN_ADDRESS, "`key`; more go into the body of a POST")?;
    rows(question.counts().await?, keys).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<String>,
}

/// `POST /v1/{tenant}/estimate`, for more keys than an address holds.
pub async fn estimate_many(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &[])?;
    let body = app.bodies.take(&question.selection.tenant, &headers, body, LARGEST_QUESTION).await?;
    let Keys { keys } = serde_json::from_slice(&body)
        .map_err(|error| Problem::bad_request(format!("the body is not {{\"keys\": [...]}}: {error}")))?;
    check_number(&keys, MOST_KEYS, "`keys`")?;
    rows(question.counts().await?, keys).await
}

/// `GET /v1/{tenant}/top?n=&offset=`
pub async fn top(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["n", "offset"])?;
    let n = n(&question.params)?;
    let offset: usize = question.params.parsed("offset")?.unwrap_or(0);
    let counts = question.counts().await?;
    let answer = blocking(move || {
        let slice = counts.slice();
        let end = offset.saturating_add(n);
        // One more tells whether there is a next page.
        let mut found = slice.top(end.saturating_add(1));
        let next = (found.len() > end).then_some(end);
        found.truncate(end);
        let row = |Answer { key, named, sum }: &Answer| RowJson::new(&counts.format, key, *named, *sum);
        let keys = found.iter().skip(offset).map(row).collect();
        KeysJson { about: counts.about(&slice), keys, next }
    });
    Ok(json(&answer.await?))
}

/// `GET /v1/{tenant}/changes?last=&n=`: a range against the one of the same length before it.
pub async fn changes(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["n"])?;
    let n = n(&question.params)?;
    let range = question.range.ok_or_else(|| Problem::bad_request("give a range of time, as in `last=5m`"))?;
    let counts = question.counts().await?;
    let answer = blocking(move || {
        let after = counts.slice();
        let before = counts.snapshot.over(Some(range.before()));
        let change = |change: KeyChange| {
            let difference = change.difference();
            ChangeJson {
                key: KeyJson::new(&counts.format, &change.key, change.named),
                before: change.before.into(),
                after: change.after.into(),
                change: difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            }
        };
        let keys = after.changes(&before, n).into_iter().map(change).collect();
        let compared = RangeJson::new(range.before(), before.coverage().unwrap_or_default());
        ChangesJson { about: counts.about(&after), before: compared, keys }
    });
    Ok(json(&answer.await?))
}

/// `GET /v1/{tenant}/series?key=&step=`
pub async fn series(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["key", "step"])?;
    let text = question.params.one("key")?.ok_or_else(|| Problem::bad_request("give a key as `key`"))?.to_owned();
    let step = time::length(&question.params, "step")?;
    if let Some((step, range)) = step.zip(question.range)
        && range.to_ms.saturating_sub(range.from_ms) / step >= MOST_STEPS
    {
        return Err(Problem::bad_request(format!("a range has at most {MOST_STEPS} steps: give a longer `step`")));
    }
    let counts = question.counts().await?;
    let answer = blocking(move || {
        let key = read_key(&counts.format, &text)?;
        let slice = counts.slice();
        let found = slice.series(&key);
        let steps = step.map(|step| steps(&found, counts.range, step)).transpose()?;
        let of_stream = |KeySeries { identity, points }: &KeySeries| StreamSeriesJson {
            stream: identity.stream.to_string(),
            incarnation: identity.incarnation.to_string(),
            epochs: points.iter().map(PointJson::new).collect(),
        };
        let series = found.iter().map(of_stream).collect();
        let key = KeyJson::new(&counts.format, &key, true);
        Ok::<_, Problem>(SeriesJson { about: counts.about(&slice), key, series, steps })
    });
    Ok(json(&answer.await??))
}

/// Sums over all streams: what ended in each step of the range, or of what there is.
fn steps(series: &[KeySeries], range: Option<TimeRange>, step: i64) -> Result<Vec<StepJson>, Problem> {
    let points = || series.iter().flat_map(|series| &series.points);
    let ends = || points().map(|point| point.epoch.times.ended_ms);
    let all =
        ends().min().zip(ends().max()).map(|(first, last)| TimeRange { from_ms: first.saturating_sub(1), to_ms: last });
    let Some(TimeRange { from_ms, to_ms }) = range.or(all) else { return Ok(Vec::new()) };
    let number = to_ms.saturating_sub(from_ms).saturating_add(step - 1) / step;
    if number > MOST_STEPS {
        return Err(Problem::bad_request(format!("there are more than {MOST_STEPS} steps: give a longer `step`")));
    }
    let begin = |number: i64| from_ms.saturating_add(number.saturating_mul(step));
    let empty =
        |number| StepJson { from_ms: begin(number), to_ms: begin(number + 1).min(to_ms), count: CountJson::default() };
    let mut steps: Vec<StepJson> = (0..number).map(empty).collect();
    for point in points() {
        let at = (point.epoch.times.ended_ms.saturating_sub(from_ms) - 1) / step;
        let Some(StepJson { count, .. }) = usize::try_from(at).ok().and_then(|at| steps.get_mut(at)) else { continue };
        count.estimate = count.estimate.saturating_add(point.sum.count);
        count.lower = count.lower.saturating_add(point.sum.lower);
        count.upper = count.upper.saturating_add(point.sum.upper);
    }
    Ok(steps)
}

/// `GET /v1/{tenant}/prefix?prefix=`: sums of all known keys that start with it, as they are shown.
pub async fn prefix(
    State(app): Shared,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let question = Question::new(&app, &tenant, &headers, query.as_deref(), &["prefix"])?;
    let prefixes: Vec<String> = question.params.all("prefix").map(str::to_owned).collect();
    if prefixes.is_empty() || prefixes.len() > MOST_PREFIXES {
        return Err(Problem::bad_request(format!("give 1 to {MOST_PREFIXES} prefixes as `prefix`")));
    }
    let counts = question.counts().await?;
    let answer = blocking(move || {
        let slice: Slice<'_> = counts.slice();
        let sum = |prefix: String| {
            let (keys, sum) = slice.sum_where(|key| counts.format.key_display(key).starts_with(&prefix));
            PrefixJson { prefix, keys, count: sum.into() }
        };
        PrefixesJson { prefixes: prefixes.into_iter().map(sum).collect(), about: counts.about(&slice) }
    });
    Ok(json(&answer.await?))
}
