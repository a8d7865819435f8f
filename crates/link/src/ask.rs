//! Questions to a collector, and its answers as values.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Client, ClientError, Name, Unseen};

/// Keys in one answer, at most.
pub const MOST_KEYS: usize = 10_000;

/// Streams and time that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Tenant of the streams.
    pub tenant: Name,
    /// Names of streams, or beginnings of names followed by `*`; empty for all streams.
    pub streams: Vec<String>,
    /// Only streams whose keys have this format.
    pub format: Option<String>,
    /// Only the last `5m`, `2h` or `7d`.
    pub last: Option<String>,
    /// Only from this time on: UTC, or milliseconds since 1970.
    pub from: Option<String>,
    /// Only until this time.
    pub to: Option<String>,
}

impl About {
    /// Creates a selection of all streams of a tenant, at any time.
    pub fn all(tenant: Name) -> Self {
        Self { tenant, streams: Vec::new(), format: None, last: None, from: None, to: None }
    }

    fn path(&self, question: &str) -> String {
        format!("/v1/{}/{question}", self.tenant)
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let streams = self.streams.iter().map(|name| ("stream", name.clone()));
        let others = [("format", &self.format), ("last", &self.last), ("from", &self.from), ("to", &self.to)];
        streams.chain(others.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)))).collect()
    }
}

/// A key in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyText {
    /// The key, if it is text.
    pub key: Option<String>,
    /// The key in hexadecimal, if it is not.
    pub key_hex: Option<String>,
    /// The key as people read it. A key whose name never arrived has nothing else.
    pub shown: String,
}

impl KeyText {
    /// Returns the bytes of the key; `None` if its name never arrived.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match (&self.key, &self.key_hex) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(hex)) => from_hex(hex),
            (None, None) => None,
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if is_hex { text.as_bytes().chunks(2).map(pair).collect() } else { None }
}

/// A count, and the range that holds the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Range {
    /// The estimate.
    pub estimate: u64,
    /// The true count is at least this.
    pub lower: u64,
    /// The true count is at most this.
    pub upper: u64,
}

/// A key with its count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KeyRow {
    /// The key.
    #[serde(flatten)]
    pub key: KeyText,
    /// Count of the key.
    #[serde(flatten)]
    pub count: Range,
}

/// The time that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// Start of the time asked for, in milliseconds since 1970.
    pub from_ms: i64,
    /// End of the time range.
    pub to_ms: i64,
    /// Time when the first epoch that was counted began.
    pub covered_from_ms: Option<i64>,
    /// Time when the last epoch that was counted ended.
    pub covered_to_ms: Option<i64>,
    /// Number of epochs counted.
    pub epochs: u64,
    /// False if epochs are left out because they are no longer kept one by one.
    pub complete: bool,
}

/// Streams, items and weight that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Format of the keys.
    pub format: String,
    /// Items counted, in the time asked for.
    pub items: u64,
    /// Weight of the items, if it is known.
    pub weight: Option<u64>,
    /// Items that are known to be missing, at any time.
    pub unseen_items: u64,
    /// True if more items are missing, and nobody knows how many.
    pub unseen_unknown: bool,
    /// The time, if the question had one.
    pub range: Option<Covered>,
    /// Partitions that the answer is about, where collectors share out the streams; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Shared>,
}

/// Partitions that an answer is about: collectors on NATS share out the streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// Number of partitions in all.
    pub of: u32,
    /// Partitions of the collector that answered.
    pub here: Vec<u32>,
}

/// Keys with their counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Keys {
    /// Streams and items that the answer is about.
    #[serde(flatten)]
    pub facts: Facts,
    /// The keys.
    pub keys: Vec<KeyRow>,
}

/// Count of a key before and after a change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ChangeRow {
    /// The key.
    #[serde(flatten)]
    pub key: KeyText,
    /// Count of the key in the time before.
    pub before: Range,
    /// Count of the key in the time asked for.
    pub after: Range,
    /// The estimate after, less the one before.
    pub change: i64,
}

/// The keys whose counts changed most.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Changes {
    /// Streams and items that the answer is about.
    #[serde(flatten)]
    pub facts: Facts,
    /// The keys.
    pub keys: Vec<ChangeRow>,
}

/// The count of a key in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Epoch {
    /// Number of the epoch.
    pub seq: u64,
    /// Time when the epoch began, in milliseconds since 1970, by the agent's clock.
    pub started_ms: i64,
    /// Time when the epoch ended.
    pub ended_ms: i64,
    /// Items of the epoch.
    pub items: u64,
    /// The key's count.
    #[serde(flatten)]
    pub count: Range,
}

/// The epochs of one incarnation of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamSeries {
    /// The stream.
    pub stream: String,
    /// The incarnation.
    pub incarnation: String,
    /// Epochs of the stream.
    pub epochs: Vec<Epoch>,
}

/// The count of a key in a step of time, over all streams.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// Start of the step, in milliseconds since 1970.
    pub from_ms: i64,
    /// End of the step.
    pub to_ms: i64,
    /// The key's count.
    #[serde(flatten)]
    pub count: Range,
}

/// Count of a key over time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Series {
    /// Streams and items that the answer is about.
    #[serde(flatten)]
    pub facts: Facts,
    /// Counts by epoch, for each incarnation.
    pub series: Vec<StreamSeries>,
    /// Counts by step of time, if the question had a step.
    pub steps: Option<Vec<Step>>,
}

/// The sum of all known keys that start with a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PrefixRow {
    /// The prefix.
    pub prefix: String,
    /// Number of known keys that start with it.
    pub keys: u64,
    /// Count of these keys.
    #[serde(flatten)]
    pub count: Range,
}

/// Sums by prefix.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Prefixes {
    /// Streams and items that the answer is about.
    #[serde(flatten)]
    pub facts: Facts,
    /// Sums of the prefixes, in the order of the question.
    pub prefixes: Vec<PrefixRow>,
}

/// The last epoch of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LastEpoch {
    /// Time when the epoch ended, in milliseconds since 1970, by the agent's clock.
    pub ended_ms: i64,
}

/// One incarnation of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StreamRow {
    /// The stream.
    pub stream: String,
    /// The incarnation.
    pub incarnation: String,
    /// `ok`, `late`, `replaced` or `ended`.
    pub health: String,
    /// Format of the keys.
    pub format: String,
    /// Epochs taken.
    pub epochs: u64,
    /// Items counted.
    pub items: u64,
    /// Keys known.
    pub keys: u64,
    /// Bytes of all epochs taken.
    pub uplink_bytes: u64,
    /// Milliseconds since the last epoch arrived.
    pub lag_ms: Option<i64>,
    /// The last epoch.
    pub last: Option<LastEpoch>,
    /// Items that nobody counted.
    pub unseen: Option<Unseen>,
    /// Reason why no more epochs are taken of it, if so.
    pub ended: Option<String>,
}

#[derive(Deserialize)]
struct Streams {
    streams: Vec<StreamRow>,
    next: Option<String>,
    #[serde(default)]
    partitions: Option<Shared>,
}

impl Client {
    fn ask<T: DeserializeOwned>(
        &self,
        about: &About,
        question: &str,
        more: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<T, ClientError> {
        self.get_json(&about.path(question), about.parameters().into_iter().chain(more))
    }

    /// Returns all streams, page by page. Format and time of `about` do not matter here.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses.
    pub fn streams(&self, about: &About) -> Result<Vec<StreamRow>, ClientError> {
        Ok(self.shared_streams(about)?.0)
    }

    /// As [`Client::streams`], with the partitions that the last page is about.
    pub(crate) fn shared_streams(&self, about: &About) -> Result<(Vec<StreamRow>, Option<Shared>), ClientError> {
        let mut streams: Vec<StreamRow> = Vec::new();
        let mut after = None;
        loop {
            let named = about.streams.iter().map(|name| ("stream", name.clone()));
            let parameters = named.chain(after.take().map(|after| ("after", after)));
            let page: Streams = self.get_json(&about.path("streams"), parameters)?;
            let more = !page.streams.is_empty();
            streams.extend(page.streams);
            match page.next {
                Some(next) if more => after = Some(next),
                _ => return Ok((streams, page.partitions)),
            }
        }
    }

    /// Returns the `n` keys with the largest counts, at most [`MOST_KEYS`].
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses.
    pub fn top(&self, about: &About, n: usize) -> Result<Keys, ClientError> {
        self.top_after(about, n, 0)
    }

    /// As [`Client::top`], without the first keys.
    pub(crate) fn top_after(&self, about: &About, n: usize, offset: usize) -> Result<Keys, ClientError> {
        self.ask(about, "top", [("n", n.to_string()), ("offset", offset.to_string())])
    }

    /// Returns the counts of some keys, in their order. Of more than [`MOST_KEYS`], as many are
    /// asked for at a time, and what is said beside them is of the last answer.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses. At least one key is needed.
    pub fn estimate(&self, about: &About, keys: &[String]) -> Result<Keys, ClientError> {
        let path = about.path("estimate");
        let mut rows = Vec::with_capacity(keys.len());
        let mut chunks = keys.chunks(MOST_KEYS);
        let mut chunk = chunks.next().unwrap_or_default();
        loop {
            let body = serde_json::json!({ "keys": chunk });
            let answer: Keys = self.post_json(&path, about.parameters(), &body)?;
            if answer.keys.len() != chunk.len() {
                return Err(self.garbled(format!("{} keys were asked for, {} came", chunk.len(), answer.keys.len())));
            }
            rows.extend(answer.keys);
            match chunks.next() {
                Some(next) => chunk = next,
                None => return Ok(Keys { facts: answer.facts, keys: rows }),
            }
        }
    }

    /// Returns the keys whose counts changed most, against the time of the same length before.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses: the question needs a time.
    pub fn changes(&self, about: &About, n: usize) -> Result<Changes, ClientError> {
        self.ask(about, "changes", [("n", n.to_string())])
    }

    /// Returns a key over time: in each epoch, and with `step` (as in `1m`) also in each step.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses.
    pub fn series(&self, about: &About, key: &str, step: Option<&str>) -> Result<Series, ClientError> {
        let step = step.map(|step| ("step", step.to_owned()));
        self.ask(about, "series", [("key", key.to_owned())].into_iter().chain(step))
    }

    /// Returns sums of all known keys that start with each prefix, as the keys are shown.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses.
    pub fn prefix(&self, about: &About, prefixes: &[String]) -> Result<Prefixes, ClientError> {
        self.ask(about, "prefix", prefixes.iter().map(|prefix| ("prefix", prefix.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_bytes_unless_they_have_no_name() {
        let key = |key: Option<&str>, hex: Option<&str>| {
            KeyText { key: key.map(Into::into), key_hex: hex.map(Into::into), shown: String::new() }.bytes()
        };
        assert_eq!(key(Some("tea"), None), Some(b"tea".to_vec()));
        assert_eq!(key(None, Some("ff00")), Some(vec![255, 0]));
        assert_eq!(key(None, Some("x0")), None);
        assert_eq!(key(None, Some("ff0")), None);
        assert_eq!(key(None, None), None);
    }

    #[test]
    fn answers_are_read() {
        let answer = r#"{"format":"lines","incarnations":1,"items":3,"weight":3,"unseen_items":0,
            "unseen_unknown":false,"range":null,"keys":[{"key":"a","shown":"a","estimate":3,"lower":3,"upper":3}],
            "next":null}"#;
        let Keys { facts, keys } = serde_json::from_str(answer).unwrap();
        assert_eq!((facts.items, facts.weight, keys.len()), (3, Some(3), 1));
        assert_eq!((keys[0].key.bytes(), keys[0].count.upper), (Some(b"a".to_vec()), 3));
    }
}
