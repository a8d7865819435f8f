//! Answers about everything, or about a range of time.

use std::collections::HashMap;

use ucl_link::Identity;

use crate::answers::EpochInfo;
use crate::range::{Count, Coverage, Stretch, TimeRange, kept};
use crate::snapshot::{Answer, Part, Sum};

/// The counts of some streams: all of them, or those of a range of time.
///
/// In a range, whole epochs count ([`TimeRange`]), and [`Slice::coverage`] says which. The bounds
/// hold for the items of these epochs. They are exact for keys of which nothing ever was in a
/// sketch, which are all keys of a device that counts exactly; for others the estimate is what
/// decoding each epoch gave, and the bounds are wide: what the key has in all, and the weight of
/// the epochs.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    stretches: Vec<Stretch<'a>>,
    coverage: Option<Coverage>,
}

/// Count that one epoch added to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The epoch.
    pub epoch: EpochInfo,
    /// Items in the epoch.
    pub items: u64,
    /// The key's count.
    pub sum: Sum,
}

/// Counts that the epochs of one incarnation added to a key, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySeries {
    /// The incarnation.
    pub identity: Identity,
    /// Epochs of the incarnation.
    pub points: Vec<Point>,
}

/// Count of a key in two ranges of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The key; its digest if the name never arrived.
    pub key: Vec<u8>,
    /// True if the key is known in full.
    pub named: bool,
    /// The count in the first range.
    pub before: Sum,
    /// The count in the second range.
    pub after: Sum,
}

impl KeyChange {
    /// Returns the second count minus the first.
    pub fn difference(&self) -> i128 {
        i128::from(self.after.count) - i128::from(self.before.count)
    }
}

impl<'a> Slice<'a> {
    pub(crate) fn new(parts: impl Iterator<Item = &'a Part>, range: Option<TimeRange>) -> Self {
        let mut coverage = range.map(|_| Coverage::default());
        let stretches = parts.map(|part| match range.zip(coverage.as_mut()) {
            Some((range, coverage)) => Stretch::in_range(part, range, coverage),
            None => Stretch::whole(part),
        });
        Self { stretches: stretches.collect(), coverage }
    }

    /// Returns the part of the range that the answers are about; `None` if they are about
    /// everything.
    pub fn coverage(&self) -> Option<Coverage> {
        self.coverage
    }

    /// Returns how often a key occurred.
    pub fn estimate(&self, key: &[u8]) -> Sum {
        self.stretches.iter().fold(Sum::default(), |sum, stretch| {
            let Count { count, lower, upper } = match stretch.part.find(key) {
                Some(id) => stretch.of_id(id),
                None => stretch.of_unknown(key),
            };
            sum.and(count, lower, upper)
        })
    }

    /// The counts of all keys by name, and those of keys without a name.
    fn all(&self) -> (HashMap<&'a [u8], u64>, Vec<Answer>) {
        let mut named: HashMap<&[u8], u64> = HashMap::new();
        let mut unnamed = Vec::new();
        for stretch in &self.stretches {
            let registry = stretch.view().registry();
            for (id, Count { count, lower, upper }) in stretch.known() {
                if registry.is_named(id) {
                    let sum = named.entry(registry.key(id)).or_default();
                    *sum = sum.saturating_add(count);
                } else {
                    // Digests of different streams have different keys: they do not add up.
                    let sum = Sum::default().and(count, lower, upper);
                    unnamed.push(Answer { key: registry.identity_of(id).to_vec(), named: false, sum });
                }
            }
        }
        (named, unnamed)
    }

    /// Returns the `n` keys with the largest counts, largest first; equal ones by key.
    pub fn top(&self, n: usize) -> Vec<Answer> {
        let (named, mut answers) = self.all();
        let mut keys: Vec<(&[u8], u64)> = named.into_iter().collect();
        let by_size = |a: &(&[u8], u64), b: &(&[u8], u64)| (b.1, a.0).cmp(&(a.1, b.0));
        if n < keys.len() {
            keys.select_nth_unstable_by(n, by_size);
            keys.truncate(n);
        }
        let full = |(key, _): (&[u8], u64)| Answer { key: key.to_vec(), named: true, sum: self.estimate(key) };
        answers.extend(keys.into_iter().map(full));
        answers.sort_by(|a, b| (b.sum.count, &a.key).cmp(&(a.sum.count, &b.key)));
        answers.truncate(n);
        answers
    }

    /// Hands every known key to `take`, by key, those without a name last, until it returns `None`.
    pub fn each(&self, mut take: impl FnMut(Answer) -> Option<()>) -> Option<()> {
        let (named, unnamed) = self.all();
        let mut keys: Vec<&[u8]> = named.into_keys().collect();
        keys.sort_unstable();
        for key in keys {
            take(Answer { key: key.to_vec(), named: true, sum: self.estimate(key) })?;
        }
        unnamed.into_iter().try_for_each(take)
    }

    /// Returns the sum over all known keys of which this is true, and how many they are. Keys that
    /// never became known are in no such sum.
    pub fn sum_where(&self, mut is_wanted: impl FnMut(&[u8]) -> bool) -> (usize, Sum) {
        let mut wanted: HashMap<&[u8], bool> = HashMap::new();
        let mut sum = Sum::default();
        for stretch in &self.stretches {
            let registry = stretch.view().registry();
            for (id, Count { count, lower, upper }) in stretch.known() {
                if !registry.is_named(id) {
                    continue;
                }
                let key = registry.key(id);
                if *wanted.entry(key).or_insert_with(|| is_wanted(key)) {
                    sum = sum.and(count, lower, upper);
                }
            }
        }
        sum.parts = self.stretches.len();
        (wanted.into_values().filter(|wanted| *wanted).count(), sum)
    }

    /// Returns the `n` keys whose counts differ most from those `before`, largest difference first;
    /// equal ones by key.
    pub fn changes(&self, before: &Self, n: usize) -> Vec<KeyChange> {
        let ((were, lost), (are, found)) = (before.all(), self.all());
        let mut both: HashMap<&[u8], (u64, u64)> = HashMap::new();
        were.into_iter().for_each(|(key, count)| both.entry(key).or_default().0 = count);
        are.into_iter().for_each(|(key, count)| both.entry(key).or_default().1 = count);
        let mut named: Vec<(&[u8], (u64, u64))> = both.into_iter().filter(|(_, (was, is))| was != is).collect();
        let by_size = |a: &(&[u8], (u64, u64)), b: &(&[u8], (u64, u64))| {
            (b.1.0.abs_diff(b.1.1), a.0).cmp(&(a.1.0.abs_diff(a.1.1), b.0))
        };
        if n < named.len() {
            named.select_nth_unstable_by(n, by_size);
            named.truncate(n);
        }
        let full = |(key, _): (&[u8], (u64, u64))| KeyChange {
            key: key.to_vec(),
            named: true,
            before: before.estimate(key),
            after: self.estimate(key),
        };
        let mut changes: Vec<KeyChange> = named.into_iter().map(full).collect();
        let mut unnamed: HashMap<Vec<u8>, [Sum; 2]> = HashMap::new();
        lost.into_iter().for_each(|Answer { key, sum, .. }| unnamed.entry(key).or_default()[0] = sum);
        found.into_iter().for_each(|Answer { key, sum, .. }| unnamed.entry(key).or_default()[1] = sum);
        changes.extend(
            unnamed
                .into_iter()
                .map(|(key, [before, after])| KeyChange { key, named: false, before, after })
                .filter(|change| change.difference() != 0),
        );
        let size = |change: &KeyChange| change.difference().unsigned_abs();
        changes.sort_by(|a, b| (size(b), &a.key).cmp(&(size(a), &b.key)));
        changes.truncate(n);
        changes
    }

    /// Returns what each epoch added to a key, for each incarnation in which it can have occurred,
    /// as far back as epochs are kept.
    pub fn series(&self, key: &[u8]) -> Vec<KeySeries> {
        let mut all = Vec::new();
        for stretch in &self.stretches {
            let part = stretch.part;
            let id = part.find(key);
            let epochs = stretch.epochs.clone().unwrap_or_else(|| kept(part));
            let points = epochs.into_iter().map(|epoch| {
                let one = Stretch::of(part, vec![epoch]);
                let Count { count, lower, upper } = id.map_or_else(|| one.of_unknown(key), |id| one.of_id(id));
                Point { epoch: *epoch.info, items: epoch.items, sum: Sum { count, lower, upper, parts: 1 } }
            });
            let points: Vec<Point> = points.collect();
            if id.is_some() || points.iter().any(|point| point.sum.upper > 0) {
                all.push(KeySeries { identity: part.identity.clone(), points });
            }
        }
        all
    }
}
