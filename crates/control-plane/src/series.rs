//! Counts over time: what each epoch added to each key.
//!
//! Delta decodes epochs one by one, so their counts can be kept and asked for by range. For hot
//! keys the heavy part's own changes belong to the epoch as well, and a key that loses its slot
//! brings weight into the sketch that was counted, in the heavy part, in earlier epochs:
//!
//! ```text
//! added in epoch e = (held in the heavy part at e - held at e-1) + decoded from the sketch in e
//! ```
//!
//! The sum over all epochs is the key's estimate. Kept are the last [`Series::retention`] epochs,
//! at 8 bytes for every key that an epoch touched.

use std::collections::{HashMap, VecDeque};
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::registry::KeyId;

/// Counts of one epoch.
///
/// ```
/// let nothing = ucl_control_plane::EpochCounts::default();
/// assert_eq!(nothing.of(ucl_control_plane::KeyId(1)), 0.0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpochCounts {
    /// Items inserted before the epoch ended.
    pub items: u64,
    /// Keys with what the epoch added to them, by key number.
    counts: Vec<(KeyId, f32)>,
}

impl EpochCounts {
    /// Adds up what several sources say of the same keys.
    pub(crate) fn new(items: u64, mut parts: Vec<(KeyId, f64)>) -> Self {
        parts.sort_by_key(|&(key, _)| key);
        let mut counts: Vec<(KeyId, f32)> = Vec::with_capacity(parts.len());
        let mut sum = 0.0;
        for (at, &(key, count)) in parts.iter().enumerate() {
            sum += count;
            if parts.get(at + 1).is_none_or(|next| next.0 != key) {
                if sum != 0.0 {
                    counts.push((key, sum as f32));
                }
                sum = 0.0;
            }
        }
        counts.shrink_to_fit();
        Self { items, counts }
    }

    /// Returns the count that the epoch added to a key.
    pub fn of(&self, key: KeyId) -> f64 {
        self.counts.binary_search_by_key(&key, |&(key, _)| key).map_or(0.0, |at| f64::from(self.counts[at].1))
    }

    /// All keys that the epoch touched.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (KeyId, f64)> + '_ {
        self.counts.iter().map(|&(key, count)| (key, f64::from(count)))
    }
}

/// The last epochs, oldest first. Cloning shares the epochs.
///
/// ```
/// use ucl_control_plane::{ControlPlane, DecoderKind, Settings};
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let settings = Settings { decoder: DecoderKind::Delta, retain_epochs: 24, ..Settings::default() };
/// let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, settings)?);
/// for hour in 1..=3u64 {
///     data.insert(b"key1", 10 * hour, &mut control)?;
///     data.cut(&mut control);
/// }
/// let view = control.view(|sink| data.peek(sink))?;
/// let key = view.registry().find(b"key1").unwrap();
/// assert_eq!(view.series().count(key, 0..=1), 30.0);
/// assert_eq!(view.series().changes(0..1, 2..3, 1)[0].after, 30.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    epochs: VecDeque<Arc<EpochCounts>>,
    retention: usize,
    dropped: u64,
}

/// A key whose rate changed. Rates are per epoch of the usual length (see [`Series::changes`]).
///
/// ```
/// use ucl_control_plane::{Change, KeyId};
/// let change = Change { key: KeyId(7), before: 2.0, after: 9.0 };
/// assert_eq!(change.after - change.before, 7.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The key.
    pub key: KeyId,
    /// Count per epoch in the first range.
    pub before: f64,
    /// Count per epoch in the second range.
    pub after: f64,
}

impl Series {
    /// Keeps the last `retention` epochs.
    pub(crate) fn new(retention: usize) -> Self {
        Self { epochs: VecDeque::new(), retention, dropped: 0 }
    }

    /// Returns the greatest number of kept epochs.
    pub fn retention(&self) -> usize {
        self.retention
    }

    /// Returns the number of epochs that were let go: the kept ones are numbered from here.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of kept epochs, the open one included.
    pub fn len(&self) -> usize {
        self.epochs.len()
    }

    /// Returns true if no epoch is kept.
    pub fn is_empty(&self) -> bool {
        self.epochs.is_empty()
    }

    pub(crate) fn push(&mut self, epoch: EpochCounts) {
        if self.retention == 0 {
            return;
        }
        if self.epochs.len() == self.retention {
            self.epochs.pop_front();
            self.dropped += 1;
        }
        self.epochs.push_back(Arc::new(epoch));
    }

    /// The last epoch is one with the epoch before, if no item came in it; whether it was so. Such
    /// an epoch comes with a merge: who lost a slot to whom.
    pub(crate) fn fold_last(&mut self) -> bool {
        let [.., before, last] = self.epochs.make_contiguous() else { return false };
        let fold = before.items == last.items;
        if fold {
            *before = Arc::new(EpochCounts::new(last.items, before.iter().chain(last.iter()).collect()));
            self.epochs.pop_back();
        }
        fold
    }

    /// Adds the epochs of another stream, the last one to the last one, and so on back; `id`
    /// numbers its keys here.
    pub(crate) fn merge(&mut self, other: &Self, id: impl Fn(KeyId) -> KeyId) {
        if self.retention == 0 {
            return;
        }
        let renumbered = |epoch: &EpochCounts| epoch.iter().map(|(key, count)| (id(key), count)).collect::<Vec<_>>();
        for (back, theirs) in other.epochs.iter().rev().enumerate().take(self.retention) {
            let mut parts = renumbered(theirs);
            match self.epochs.len().checked_sub(back + 1) {
                Some(at) => {
                    let ours = &self.epochs[at];
                    parts.extend(ours.iter());
                    self.epochs[at] = Arc::new(EpochCounts::new(ours.items + theirs.items, parts));
                }
                None => self.epochs.push_front(Arc::new(EpochCounts::new(theirs.items, parts))),
            }
        }
        self.dropped = self.dropped.max(other.dropped);
    }

    /// The kept epochs of a range, 0 being the oldest kept.
    pub fn epochs(&self, range: impl RangeBounds<usize>) -> impl DoubleEndedIterator<Item = &EpochCounts> {
        self.epochs.range(self.kept(range)).map(|epoch| &**epoch)
    }

    /// What of a range is kept.
    fn kept(&self, range: impl RangeBounds<usize>) -> Range<usize> {
        let bound = |bound: Bound<&usize>, open: usize, past: usize| match bound {
            Bound::Included(&at) => at.saturating_add(past),
            Bound::Excluded(&at) => at.saturating_add(1 - past),
            Bound::Unbounded => open,
        };
        let end = bound(range.end_bound(), self.len(), 1).min(self.len());
        bound(range.start_bound(), 0, 0).min(end)..end
    }

    /// Returns the number of items of a kept epoch. Of the oldest one, if the one before is no
    /// longer kept, as many as the next one has.
    pub fn length(&self, epoch: usize) -> u64 {
        let end = |at: usize| self.epochs.get(at).map(|epoch| epoch.items);
        match (epoch.checked_sub(1).and_then(end), end(epoch)) {
            (_, None) => 0,
            (Some(begin), Some(end)) => end.saturating_sub(begin),
            (None, Some(end)) if self.dropped == 0 => end,
            (None, Some(_)) => self.length(epoch + 1),
        }
    }

    /// A key's count over a range of kept epochs.
    pub fn count(&self, key: KeyId, range: impl RangeBounds<usize>) -> f64 {
        self.epochs(range).fold(0.0, |sum, epoch| sum + epoch.of(key))
    }

    /// A key's count over the last `n` epochs, the open one included.
    pub fn last(&self, key: KeyId, n: usize) -> f64 {
        self.count(key, self.len().saturating_sub(n)..)
    }

    /// A key's count, each epoch weighing half of what the one `half_life` epochs later weighs.
    pub fn decayed(&self, key: KeyId, half_life: f64) -> f64 {
        let factor = 0.5f64.powf(1.0 / half_life.max(f64::MIN_POSITIVE));
        self.epochs(..).fold(0.0, |sum, epoch| sum * factor + epoch.of(key))
    }

    /// The keys of a range with their counts, largest first.
    pub fn top(&self, range: impl RangeBounds<usize>, n: usize) -> Vec<(KeyId, f64)> {
        let mut sums: Vec<(KeyId, f64)> = self.sums(range).into_iter().collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sums.truncate(n);
        sums
    }

    /// The `n` keys whose rate differs most between two ranges: their counts per epoch of the usual
    /// length, the median of both ranges. The open epoch is mostly shorter than the others, and
    /// epochs that were added together are longer; they count for as much as their items do.
    pub fn changes(
        &self,
        before: impl RangeBounds<usize> + Clone,
        after: impl RangeBounds<usize> + Clone,
        n: usize,
    ) -> Vec<Change> {
        let [earlier, later] = [self.kept(before.clone()), self.kept(after.clone())]
            .map(|range| range.map(|epoch| self.length(epoch)).collect::<Vec<u64>>());
        let mut lengths = [&earlier[..], &later].concat();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let epochs = |lengths: &[u64]| match lengths.iter().sum::<u64>() {
            // Nothing came, or nothing but weightless ends of epochs.
            0 => lengths.len().max(1) as f64,
            items => items as f64 / usual.max(1) as f64,
        };
        let (was, is) = (epochs(&earlier), epochs(&later));
        let (old, new) = (self.sums(before), self.sums(after));
        let gone = old.keys().filter(|key| !new.contains_key(key));
        let mut changes: Vec<Change> = new
            .keys()
            .chain(gone)
            .map(|key| Change {
                key: *key,
                before: old.get(key).copied().unwrap_or(0.0) / was,
                after: new.get(key).copied().unwrap_or(0.0) / is,
            })
            .collect();
        let size = |change: &Change| (change.after - change.before).abs();
        changes.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.key.cmp(&b.key)));
        changes.truncate(n);
        changes
    }

    fn sums(&self, range: impl RangeBounds<usize>) -> HashMap<KeyId, f64> {
        let mut sums = HashMap::new();
        for (key, count) in self.epochs(range).flat_map(EpochCounts::iter) {
            *sums.entry(key).or_insert(0.0) += count;
        }
        sums
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.epochs.iter().map(|epoch| size_of::<EpochCounts>() + epoch.counts.capacity() * 8).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Series {
        let mut series = Series::new(4);
        for epoch in 0..6u32 {
            let parts = vec![(KeyId(1), 10.0), (KeyId(epoch), 2.0), (KeyId(9), 5.0), (KeyId(9), -5.0)];
            series.push(EpochCounts::new(100 * u64::from(epoch + 1), parts));
        }
        series
    }

    #[test]
    fn ranges_count_from_the_oldest_kept() {
        let series = series();
        assert_eq!((series.len(), series.dropped()), (4, 2));
        assert_eq!(series.count(KeyId(1), ..), 40.0);
        assert_eq!(series.count(KeyId(3), 1..=1), 2.0);
        assert_eq!(series.count(KeyId(3), 0..1), 0.0);
        assert_eq!(series.last(KeyId(5), 1), 2.0);
        assert_eq!(series.last(KeyId(1), 100), 40.0);
        assert_eq!(series.count(KeyId(9), ..), 0.0, "what cancels is not kept");
        assert_eq!(series.count(KeyId(1), 0..=usize::MAX), 40.0);
        assert_eq!(series.count(KeyId(1), (Bound::Excluded(usize::MAX), Bound::Unbounded)).to_bits(), 0);
        assert_eq!(series.top(.., 1), [(KeyId(1), 40.0)]);
    }

    #[test]
    fn decay_halves() {
        let series = series();
        let expected = 10.0 * (1.0 + 0.5 + 0.25 + 0.125);
        assert!((series.decayed(KeyId(1), 1.0) - expected).abs() < 1e-9);
    }

    #[test]
    fn changes_compare_means() {
        let series = series();
        let changes = series.changes(0..3, 3..4, 2);
        assert_eq!(changes[0], Change { key: KeyId(5), before: 0.0, after: 2.0 });
        assert!(changes.iter().all(|change| change.key != KeyId(1)));
    }

    /// A tenth of an epoch has a tenth of the items: nothing changed.
    #[test]
    fn an_epoch_that_has_just_begun_is_no_fall() {
        let mut series = series();
        series.push(EpochCounts::new(610, vec![(KeyId(1), 1.0), (KeyId(7), 3.0)]));
        assert_eq!((0..5).map(|epoch| series.length(epoch)).collect::<Vec<_>>(), [100, 100, 100, 10, 0]);
        let changes = series.changes(1..3, 3..4, 9);
        assert_eq!(changes[0], Change { key: KeyId(7), before: 0.0, after: 30.0 });
        assert_eq!(changes.iter().find(|change| change.key == KeyId(1)).map(|change| change.after), Some(10.0));
    }

    #[test]
    fn epochs_without_an_item_can_be_compared() {
        let mut series = Series::new(4);
        for _ in 0..4 {
            series.push(EpochCounts::new(0, vec![(KeyId(1), 6.0)]));
        }
        assert_eq!(series.changes(0..1, 2..4, 1), [Change { key: KeyId(1), before: 6.0, after: 6.0 }]);
        assert_eq!(series.changes(0..1, 4..9, 1), [Change { key: KeyId(1), before: 6.0, after: 0.0 }]);
    }
}
