//! Answers as JSON.

use serde::Serialize;
use ucl_collector::{Coverage, Point, Sum, TimeRange, Totals};
use ucl_link::Times;
use ucl_streams::Format;

use crate::cores::PartitionsJson;

/// A key as programs take it: text, or where that is not valid UTF-8, hexadecimal.
#[derive(Debug, Serialize)]
pub struct KeyJson {
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_hex: Option<String>,
    /// The key as people read it, and as a question takes it.
    pub shown: String,
}

impl KeyJson {
    pub fn new(format: &Format, key: &[u8], named: bool) -> Self {
        if !named {
            return Self { key: None, key_hex: None, shown: format!("digest:{}", hex(key)) };
        }
        let shown = format.key_display(key);
        match String::from_utf8(format.key_data(key).into_owned()) {
            Ok(text) => Self { key: Some(text), key_hex: None, shown },
            Err(error) => Self { key: None, key_hex: Some(hex(error.as_bytes())), shown },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A count with its range.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CountJson {
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
}

impl From<Sum> for CountJson {
    fn from(Sum { count, lower, upper, .. }: Sum) -> Self {
        Self { estimate: count, lower, upper }
    }
}

/// A key with its count.
#[derive(Debug, Serialize)]
pub struct RowJson {
    #[serde(flatten)]
    pub key: KeyJson,
    #[serde(flatten)]
    pub count: CountJson,
}

impl RowJson {
    pub fn new(format: &Format, key: &[u8], named: bool, sum: Sum) -> Self {
        Self { key: KeyJson::new(format, key, named), count: sum.into() }
    }
}

/// The range that was asked for, and which part of it the answer is about.
#[derive(Debug, Serialize)]
pub struct RangeJson {
    from_ms: i64,
    to_ms: i64,
    /// When the first epoch that was counted began.
    covered_from_ms: Option<i64>,
    /// When the last one ended.
    covered_to_ms: Option<i64>,
    epochs: usize,
    /// True if no epoch is missing because it is too old to be kept by itself.
    complete: bool,
}

impl RangeJson {
    pub fn new(range: TimeRange, coverage: Coverage) -> Self {
        let TimeRange { from_ms, to_ms } = range;
        let Coverage { epochs, from_ms: first, to_ms: last, complete, .. } = coverage;
        Self { from_ms, to_ms, covered_from_ms: first, covered_to_ms: last, epochs, complete }
    }
}

/// Streams and items that the answer is about.
#[derive(Debug, Serialize)]
pub struct AboutJson {
    format: String,
    incarnations: usize,
    /// Items that were counted, in the range if there is one.
    items: u64,
    /// Weight of the items, if known.
    weight: Option<u64>,
    /// Items that are known to be missing, whenever that was.
    unseen_items: u64,
    /// True if more items are missing, and nobody knows how many.
    unseen_unknown: bool,
    range: Option<RangeJson>,
    /// The partitions that the answer is about, if this collector has a part of the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<PartitionsJson>,
}

impl AboutJson {
    pub fn new(
        format: &Format,
        totals: Totals,
        range: Option<(TimeRange, Coverage)>,
        partitions: Option<PartitionsJson>,
    ) -> Self {
        let Totals { items, weight, parts, unseen_items, unseen_unknown } = totals;
        let (items, weight) = range.map_or((items, Some(weight)), |(_, coverage)| (coverage.items, coverage.weight));
        let range = range.map(|(range, coverage)| RangeJson::new(range, coverage));
        let format = format.to_string();
        let incarnations = parts;
        Self { format, incarnations, items, weight, unseen_items, unseen_unknown, range, partitions }
    }
}

/// Keys with their counts.
#[derive(Debug, Serialize)]
pub struct KeysJson {
    #[serde(flatten)]
    pub about: AboutJson,
    pub keys: Vec<RowJson>,
    /// Value of `offset` for the keys that follow; `None` if there are none.
    pub next: Option<usize>,
}

/// A key in two ranges.
#[derive(Debug, Serialize)]
pub struct ChangeJson {
    #[serde(flatten)]
    pub key: KeyJson,
    pub before: CountJson,
    pub after: CountJson,
    /// The estimate after, less the one before.
    pub change: i64,
}

#[derive(Debug, Serialize)]
pub struct ChangesJson {
    #[serde(flatten)]
    pub about: AboutJson,
    /// The range that `range` is compared with.
    pub before: RangeJson,
    pub keys: Vec<ChangeJson>,
}

/// Count that one epoch added to a key.
#[derive(Debug, Serialize)]
pub struct PointJson {
    seq: u64,
    #[serde(flatten)]
    times: Times,
    items: u64,
    #[serde(flatten)]
    count: CountJson,
}

impl PointJson {
    pub fn new(point: &Point) -> Self {
        Self { seq: point.epoch.seq, times: point.epoch.times, items: point.items, count: point.sum.into() }
    }
}

#[derive(Debug, Serialize)]
pub struct StreamSeriesJson {
    pub stream: String,
    pub incarnation: String,
    pub epochs: Vec<PointJson>,
}

/// The sum of all epochs that ended in a step of time.
#[derive(Debug, Serialize)]
pub struct StepJson {
    pub from_ms: i64,
    pub to_ms: i64,
    #[serde(flatten)]
    pub count: CountJson,
}

#[derive(Debug, Serialize)]
pub struct SeriesJson {
    #[serde(flatten)]
    pub about: AboutJson,
    #[serde(flatten)]
    pub key: KeyJson,
    pub series: Vec<StreamSeriesJson>,
    /// Sums over all streams, if the question has `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepJson>>,
}

#[derive(Debug, Serialize)]
pub struct PrefixJson {
    pub prefix: String,
    /// Known keys that start so.
    pub keys: usize,
    #[serde(flatten)]
    pub count: CountJson,
}

#[derive(Debug, Serialize)]
pub struct PrefixesJson {
    #[serde(flatten)]
    pub about: AboutJson,
    pub prefixes: Vec<PrefixJson>,
}
