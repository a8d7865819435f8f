//! Ranges of time, and what of them is known.

use std::collections::HashMap;

use ucl_link::Times;
use ucl_sketch::{EpochCounts, KeyId, QueryView, Source};

use crate::answers::EpochInfo;
use crate::snapshot::Part;

/// Epochs are kept in 32 bits, which hold whole numbers up to this one exactly.
const EXACT_BELOW: f64 = 16_777_216.0;

/// A range of time. An epoch belongs to it if it ended after `from_ms` and not after `to_ms`, by
/// the sender's clock: whole epochs only, so that ranges that follow on each other add up.
///
/// ```
/// use ucl_collector::TimeRange;
/// let minute = TimeRange { from_ms: 60_000, to_ms: 120_000 };
/// assert_eq!(minute.before(), TimeRange { from_ms: 0, to_ms: 60_000 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Start of the range, exclusive, in milliseconds since 1970.
    pub from_ms: i64,
    /// End of the range, inclusive.
    pub to_ms: i64,
}

impl TimeRange {
    /// Returns true if an epoch of these times belongs to the range.
    pub fn has(&self, times: &Times) -> bool {
        self.from_ms < times.ended_ms && times.ended_ms <= self.to_ms
    }

    /// Returns the range of the same length before this one.
    pub fn before(&self) -> Self {
        let length = self.to_ms.saturating_sub(self.from_ms);
        Self { from_ms: self.from_ms.saturating_sub(length), to_ms: self.from_ms }
    }
}

/// Part of a range of time that the answers are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Epochs that were added up.
    pub epochs: usize,
    /// Items in them.
    pub items: u64,
    /// Weight of these items, unless an older version took some of the epochs.
    pub weight: Option<u64>,
    /// Time when the first of the epochs began, if there is one.
    pub from_ms: Option<i64>,
    /// Time when the last of the epochs ended.
    pub to_ms: Option<i64>,
    /// True if no epoch of the range is missing because it is too old to be kept by itself.
    pub complete: bool,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { epochs: 0, items: 0, weight: Some(0), from_ms: None, to_ms: None, complete: true }
    }
}

impl Coverage {
    fn add(&mut self, epoch: &Kept<'_>) {
        let Times { started_ms, ended_ms, .. } = epoch.info.times;
        self.epochs += 1;
        self.items = self.items.saturating_add(epoch.items);
        self.weight = self.weight.zip(epoch.weight).map(|(sum, weight)| sum.saturating_add(weight));
        // A clock may have jumped back within an epoch.
        let (first, last) = (started_ms.min(ended_ms), ended_ms);
        self.from_ms = Some(self.from_ms.map_or(first, |from| from.min(first)));
        self.to_ms = Some(self.to_ms.map_or(last, |to| to.max(last)));
    }
}

/// An epoch with its counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub info: &'a EpochInfo,
    pub counts: &'a EpochCounts,
    /// Items in it.
    pub items: u64,
    /// Weight of the epochs, if known.
    pub weight: Option<u64>,
}

/// A count with its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub count: u64,
    pub lower: u64,
    pub upper: u64,
}

/// What the epochs of a range say of one key, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    sum: f64,
    /// How far the sum can be off because epochs are kept in 32 bits.
    doubt: f64,
}

impl Added {
    fn add(&mut self, count: f64) {
        self.sum += count;
        self.doubt += if count.abs() > EXACT_BELOW { count.abs() / EXACT_BELOW } else { 0.0 };
    }
}

/// Epochs of one incarnation.
#[derive(Clone, Debug)]
pub(crate) struct Stretch<'a> {
    pub part: &'a Part,
    /// The epochs that are kept one by one; `None` if nobody asked for them.
    pub epochs: Option<Vec<Kept<'a>>>,
    /// Whether it is everything that was counted: then the bounds are those of the whole.
    is_whole: bool,
    /// The weight of the epochs, and that of all others, if known.
    weights: Option<(u64, u64)>,
}

impl<'a> Stretch<'a> {
    /// Everything that was counted.
    pub fn whole(part: &'a Part) -> Self {
        Self { part, epochs: None, is_whole: true, weights: None }
    }

    /// Selects these epochs of a part.
    pub fn of(part: &'a Part, epochs: Vec<Kept<'a>>) -> Self {
        let weight = epochs.iter().try_fold(0u64, |sum, epoch| Some(sum.saturating_add(epoch.weight?)));
        let weights = weight.map(|weight| (weight, part.view.weight().saturating_sub(weight)));
        let all = part.epochs.last().map_or(0, |last| last.seq + 1);
        let is_whole = epochs.len() as u64 == all;
        Self { part, epochs: Some(epochs), is_whole, weights }
    }

    /// The epochs of a range, which is noted in `coverage`.
    pub fn in_range(part: &'a Part, range: TimeRange, coverage: &mut Coverage) -> Self {
        let mut epochs = kept(part);
        coverage.complete &= match epochs.first().map(|epoch| epoch.info) {
            // Of what is older than the oldest kept one, nobody knows how it was spread over time.
            Some(oldest) => oldest.seq == 0 || oldest.times.started_ms <= range.from_ms,
            // None is kept: fine if all of them were before the range.
            None => part.epochs.last().is_none_or(|last| last.times.ended_ms <= range.from_ms),
        };
        epochs.retain(|epoch| range.has(&epoch.info.times));
        epochs.iter().for_each(|epoch| coverage.add(epoch));
        Self::of(part, epochs)
    }

    /// The epochs, unless it is everything.
    fn some(&self) -> Option<&[Kept<'a>]> {
        self.epochs.as_deref().filter(|_| !self.is_whole)
    }

    /// A known key's count.
    ///
    /// Exact for a key of which nothing ever was in the sketch: then everything that an epoch added
    /// to it was told by the heavy part, or sent by a mirrored table. Otherwise the key has no more
    /// in these epochs than in all, no more than came in them, and no less than is left when all
    /// other epochs held nothing but this key.
    pub fn of_id(&self, id: KeyId) -> Count {
        let mut added = Added::default();
        self.some().into_iter().flatten().for_each(|epoch| added.add(epoch.counts.of(id)));
        self.count(id, added)
    }

    fn count(&self, id: KeyId, added: Added) -> Count {
        let total = self.part.view.of(id);
        let all = Count { count: total.estimate, lower: total.lower, upper: total.upper };
        if self.is_whole {
            return all;
        }
        let Count { mut lower, mut upper, .. } = self.limits(all);
        let count = (added.sum.max(0.0) + 0.5).floor() as u64;
        let never_in_sketch = matches!(total.source, Source::Heavy | Source::Exact) && total.lower == total.upper;
        if never_in_sketch {
            let doubt = added.doubt.ceil() as u64;
            lower = lower.max(count.saturating_sub(doubt));
            upper = upper.min(count.saturating_add(doubt));
        }
        Count { count: count.min(upper).max(lower), lower, upper }
    }

    /// The count of a key that is not known here.
    pub fn of_unknown(&self, key: &[u8]) -> Count {
        let total = self.part.view.estimate(key);
        let all = Count { count: total.estimate, lower: total.lower, upper: total.upper };
        if self.is_whole { all } else { self.limits(all) }
    }

    fn limits(&self, all: Count) -> Count {
        if self.some().is_some_and(<[Kept<'_>]>::is_empty) {
            return Count { count: 0, lower: 0, upper: 0 };
        }
        let (own, others) = self.weights.unwrap_or((u64::MAX, u64::MAX));
        let upper = all.upper.min(own);
        Count { count: 0, lower: all.lower.saturating_sub(others).min(upper), upper }
    }

    /// Known keys that occurred, with their counts.
    pub fn known(&self) -> Vec<(KeyId, Count)> {
        let Some(epochs) = self.some() else {
            return self.part.view.all().map(|(id, _)| (id, self.count(id, Added::default()))).collect();
        };
        let mut sums: HashMap<KeyId, Added> = HashMap::new();
        for (id, count) in epochs.iter().flat_map(|epoch| epoch.counts.iter()) {
            sums.entry(id).or_default().add(count);
        }
        sums.into_iter().map(|(id, added)| (id, self.count(id, added))).collect()
    }

    pub fn view(&self) -> &'a QueryView {
        &self.part.view
    }
}

/// The epochs whose counts are there one by one, oldest first.
pub(crate) fn kept(part: &Part) -> Vec<Kept<'_>> {
    // Both end with the last cut; how far back they go differs.
    let infos: Vec<&EpochInfo> = part.epochs.iter().collect();
    let counts = part.view.series().epochs(..).rev();
    let mut kept: Vec<Kept<'_>> = Vec::new();
    for (at, counts) in (0..infos.len()).rev().zip(counts) {
        let info = infos[at];
        let before = match (at.checked_sub(1), info.seq) {
            (Some(at), _) => *infos[at],
            (None, 0) => EpochInfo { weight: Some(0), ..EpochInfo::default() },
            // Where it began is not known.
            (None, _) => break,
        };
        let items = info.items.saturating_sub(before.items);
        let weight = info.weight.zip(before.weight).map(|(end, begin)| end.saturating_sub(begin));
        kept.push(Kept { info, counts, items, weight });
    }
    kept.reverse();
    kept
}
