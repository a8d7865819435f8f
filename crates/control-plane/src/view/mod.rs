//! Answers at one consistent moment.

mod answers;
mod likely;
mod moment;
mod network;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use ucl_data_plane::bloom::{offered_keys, recent_coverage};
use ucl_data_plane::{BloomKind, Config, EMPTY_ABOVE, FULL_ABOVE, HeavyKind, LEAST_CUTS, ReportRule};
use ucl_equations::ColumnId;
use ucl_learned::Outputs;

use self::answers::Answers;
pub use self::likely::LIKELY;
use self::likely::LikelyRanges;
pub use self::moment::Peek;
pub use self::network::NetworkQuery;
pub(crate) use self::network::{NetworkAtCut, Unbounded};
use crate::decoder::DecoderKind;
use crate::plane::least;
use crate::probable::{MedianBound, PROBABILITY};
use crate::registry::{KeyId, Registry};
use crate::sealed::{BoundedCount, Past};
use crate::segment::Segment;
use crate::self_check::Check;
use crate::series::Series;
use crate::tally::Tally;

/// Origin of an estimate.
///
/// ```
/// assert_eq!(ucl_control_plane::Source::Unknown.name(), "unknown");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The heavy part holds the key, and nothing of it is known to be in the sketch.
    Heavy,
    /// Every item of the key was counted on its own: by a mirrored table and what it has sent.
    Exact,
    /// The configured decoder.
    Decoded,
    /// A classic decoder, because the learned one is not ready, has collapsed, or predicts a row
    /// left out worse.
    Fallback,
    /// The key was never reported: 0 for the sketch part, as in the paper.
    Unknown,
}

impl Source {
    /// Returns the name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heavy => "heavy",
            Self::Exact => "exact",
            Self::Decoded => "decoded",
            Self::Fallback => "fallback",
            Self::Unknown => "unknown",
        }
    }
}

/// Promise that bounds make.
///
/// ```
/// use ucl_control_plane::BoundKind;
/// let certain = |bound: BoundKind| bound == BoundKind::Guaranteed;
/// assert!(certain(BoundKind::Guaranteed) && !certain(BoundKind::Probable(0.99)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoundKind {
    /// The true count lies within, always.
    Guaranteed,
    /// The true count lies within with at least this probability.
    Probable(f64),
    /// The true count lies within, unless another key has the same code. That has at most this
    /// probability, for keys chosen without knowing the seed.
    Unless(f64),
}

/// Count of a key: a whole number, with the range of the true one.
///
/// ```
/// use ucl_control_plane::{BoundKind, Estimate, Source};
/// let answer = Estimate { estimate: 7, lower: 5, upper: 9, bound: BoundKind::Guaranteed, source: Source::Decoded };
/// println!("{} (from {} to {}), {}", answer.estimate, answer.lower, answer.upper, answer.source.name());
/// assert!((answer.lower..=answer.upper).contains(&answer.estimate));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub estimate: u64,
    /// The true count is at least this.
    pub lower: u64,
    /// The true count is at most this.
    pub upper: u64,
    /// Promise that the bounds make.
    pub bound: BoundKind,
    /// Origin of the guess.
    pub source: Source,
}

/// Decoded counts at one moment: immutable, cheap to share.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings};
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
/// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// # let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
/// for i in 0..9_000u32 {
///     data.insert(&(i % 30).to_le_bytes(), 1, &mut control)?;
/// }
/// let view = control.view(|sink| data.peek(sink))?;
/// assert_eq!((view.items(), view.keys()), (9_000, 30));
/// let (id, answer) = view.top(1)[0];
/// assert_eq!(answer.estimate, 300);
/// assert_eq!(view.estimate(view.registry().key(id)), answer);
/// assert!((view.entropy() - 30f64.log2()).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct QueryView {
    registry: Arc<Registry>,
    answers: Answers,
    /// For keys that are not known: mapping and counters.
    segment: Arc<SegmentAtCut>,
    /// Segments before the open one.
    past: Arc<Past>,
    items: u64,
    weight: u64,
    decoder: DecoderKind,
    answered_by: DecoderKind,
    unexplained: u64,
    crowded: u64,
    series: Series,
    check: Check,
    likely: LikelyRanges,
    /// What a trained decoder said, and the network behind it.
    unbounded: Option<Arc<Unbounded>>,
    outputs: Option<Outputs>,
    /// Keys that went through the filter.
    passed: usize,
    /// Keys that the filter had lost, or may have lost, that became known all the same.
    found_again: usize,
    /// Cuts so far, and the one that ends the open epoch.
    epochs: u64,
}

#[derive(Clone, Debug)]
struct SegmentAtCut {
    mapping: Segment,
    counters: Tally,
    sketch_weight: u64,
    /// Count Sketch only.
    median: Option<MedianBound>,
}

/// So many keys are worth another thread.
const KEYS_AT_LEAST: usize = 4096;

/// The largest sketch part each column's key can have.
pub(crate) fn upper_bounds(segment: &Segment, counter: impl Fn(usize) -> i64, sketch_weight: u64) -> Vec<u64> {
    let columns = segment.columns();
    (0..columns.len() as u32)
        .map(ColumnId)
        .map(|id| {
            if !segment.config().shape.signed() {
                return least(columns.indices(id), &counter);
            }
            let entries = columns.indices(id).iter().enumerate();
            let value = |(e, &at): (usize, &u32)| columns.coefficient(id, e) as i128 * i128::from(counter(at as usize));
            signed_upper(entries.map(value), sketch_weight)
        })
        .collect()
}

pub(crate) fn unknown_upper(
    segment: &Segment,
    identity: &[u8],
    counter: impl Fn(usize) -> i64,
    sketch_weight: u64,
) -> u64 {
    let column = segment.positions(identity);
    if !segment.config().shape.signed() {
        return least(column.indices(), counter);
    }
    let entries = column.indices().iter().zip(column.signs());
    signed_upper(entries.map(|(&at, &sign)| i128::from(sign) * i128::from(counter(at as usize))), sketch_weight)
}

/// Count Sketch: `sign · y = x + (the others' weight, some of it negative)`, and the others have at
/// most `W - x`, so `x <= (sign · y + W) / 2` in every row.
fn signed_upper(values: impl Iterator<Item = i128>, sketch_weight: u64) -> u64 {
    // Both may be near 2^63.
    let upper = |value: i128| ((value + i128::from(sketch_weight)) / 2).max(0) as u64;
    values.map(upper).min().unwrap_or(0)
}

impl QueryView {
    /// Returns the answer for one key.
    #[inline]
    pub fn estimate(&self, key: &[u8]) -> Estimate {
        let mut room = [0; 16];
        let Some(identity) = self.registry.identity(key, &mut room) else {
            // No key of this length can be in the sketch.
            return Estimate { estimate: 0, lower: 0, upper: 0, bound: BoundKind::Guaranteed, source: Source::Unknown };
        };
        match self.registry.find(identity) {
            Some(id) => self.of(id),
            None => {
                let segment = &self.segment;
                let counter = |at: usize| segment.counters.get(at);
                let open = unknown_upper(&segment.mapping, identity, counter, segment.sketch_weight);
                let before: u64 = self.past.sealed.iter().map(|sealed| sealed.unknown_upper(identity)).sum();
                let upper = (open + before).min(self.weight - self.past.since_weight());
                Estimate { estimate: 0, lower: 0, upper, bound: BoundKind::Guaranteed, source: Source::Unknown }
            }
        }
    }

    /// Returns the answer for one key with its likely range: the tightest bounds there are, and the
    /// guaranteed ones where nothing better is known, as for keys that were never reported.
    ///
    /// - Delta: the true counts of at least [`LIKELY`] of all keys lie within, as measured on many
    ///   streams. A range of one number is *certain*: all epochs with the key have one solution.
    /// - Count Sketch: the range holds with probability [`PROBABILITY`], for keys chosen without
    ///   looking at the seed. The estimate is moved into it.
    ///
    /// ```
    /// use ucl_control_plane::{BoundKind, ControlPlane, DecoderKind, Settings};
    /// use ucl_data_plane::{Base, Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// let shape = Shape { base: Base::CountSketch, slots: 10, ..Shape::PAPER_64KB };
    /// let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
    /// let settings = Settings { decoder: DecoderKind::Cm, ..Settings::default() };
    /// let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, settings)?);
    /// for i in 0..50_000u32 {
    ///     data.insert(&(i % 500).to_le_bytes(), 1, &mut control)?;
    /// }
    /// let view = control.view(|sink| data.peek(sink))?;
    /// let (certain, likely) = (view.estimate(&[7, 0, 0, 0]), view.likely(&[7, 0, 0, 0]));
    /// assert_eq!(likely.bound, BoundKind::Probable(0.95));
    /// assert!(likely.lower <= 100 && 100 <= likely.upper && likely.upper < certain.upper / 10);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn likely(&self, key: &[u8]) -> Estimate {
        let mut room = [0; 16];
        let known = self.registry.identity(key, &mut room).map(|identity| (identity, self.registry.find(identity)));
        match known {
            Some((_, Some(id))) => self.likely_of(id),
            Some((identity, None)) => self.by_median(identity, 0, self.estimate(key)),
            None => self.estimate(key),
        }
    }

    /// Returns the answer for a known key with its likely range ([`QueryView::likely`]).
    pub fn likely_of(&self, id: KeyId) -> Estimate {
        let certain = self.likely.of(id, self.of(id));
        let held = self.answers.exact.of(id);
        self.by_median(self.registry.identity_of(id), held, certain)
    }

    /// Count Sketch: what the median of a key's counters tells.
    fn by_median(&self, identity: &[u8], held: u64, certain: Estimate) -> Estimate {
        let segment = &self.segment;
        let Some(median) = segment.median else { return certain };
        let column = segment.mapping.positions(identity);
        let entries = column.indices().iter().zip(column.signs());
        let (low, high) =
            median.bounds(entries.map(|(&at, &sign)| i64::from(sign) * segment.counters.get(at as usize)));
        let lower = certain.lower.max(held.saturating_add(low));
        let upper = certain.upper.min(held.saturating_add(high));
        if lower > upper {
            // This is one of the 5%, for the guaranteed bounds contradict it.
            return certain;
        }
        let bound = BoundKind::Probable(PROBABILITY);
        Estimate { estimate: certain.estimate.clamp(lower, upper), lower, upper, bound, source: certain.source }
    }

    /// Returns the answer for a known key.
    #[inline]
    pub fn of(&self, id: KeyId) -> Estimate {
        let identity = self.registry.identity_of(id);
        let (count, source) = self.answers.count(id, identity, &self.segment, &self.past);
        let BoundedCount { estimate, lower, upper } = count;
        let confusable = self.registry.is_confusable(identity);
        let bound = if confusable { BoundKind::Unless(self.registry.confusion()) } else { BoundKind::Guaranteed };
        Estimate { estimate, lower, upper, bound, source }
    }

    /// Returns the known keys.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Iterates over every known key with its answer, in the order in which they became known.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (KeyId, Estimate)> + '_ {
        self.registry.ids().map(|id| (id, self.of(id)))
    }

    /// The counts of all known keys, in their order: put together by several threads.
    fn counts(&self) -> impl IndexedParallelIterator<Item = BoundedCount> + '_ {
        let count = move |id| {
            let id = KeyId(id);
            self.answers.count(id, self.registry.identity_of(id), &self.segment, &self.past).0
        };
        (0..self.registry.len() as u32).into_par_iter().with_min_len(KEYS_AT_LEAST).map(count)
    }

    /// Returns the `n` keys with the largest estimates, largest first; equal ones in the order in
    /// which they became known.
    pub fn top(&self, n: usize) -> Vec<(KeyId, Estimate)> {
        let mut sizes: Vec<(u64, KeyId)> =
            self.counts().enumerate().map(|(id, count)| (count.estimate, KeyId(id as u32))).collect();
        let by_size = |&(estimate, id): &(u64, KeyId)| (std::cmp::Reverse(estimate), id);
        if n < sizes.len() {
            sizes.select_nth_unstable_by_key(n, by_size);
            sizes.truncate(n);
        }
        sizes.sort_unstable_by_key(by_size);
        sizes.into_iter().map(|(_, id)| (id, self.of(id))).collect()
    }

    /// Returns the number of keys with each estimate, by estimate; keys with estimate 0 are left
    /// out.
    pub fn histogram(&self) -> BTreeMap<u64, u64> {
        // Most estimates are small.
        let mut small = [0; 1024];
        let mut histogram = BTreeMap::new();
        for estimate in self.counts().map(|count| count.estimate).collect::<Vec<_>>() {
            match small.get_mut(usize::try_from(estimate).unwrap_or(usize::MAX)) {
                Some(keys) => *keys += 1,
                None => *histogram.entry(estimate).or_default() += 1,
            }
        }
        histogram.extend((0..).zip(small).skip(1).filter(|&(_, keys)| keys > 0));
        histogram
    }

    /// Returns the Shannon entropy of the estimated distribution over keys, in bits.
    pub fn entropy(&self) -> f64 {
        let histogram = self.histogram();
        let total: u128 = histogram.iter().map(|(&estimate, &keys)| u128::from(estimate) * u128::from(keys)).sum();
        let part = |(estimate, keys): (u64, u64)| {
            let share = estimate as f64 / total as f64;
            keys as f64 * share * share.log2()
        };
        -histogram.into_iter().map(part).sum::<f64>()
    }

    /// Returns the number of items inserted up to this moment.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns the total weight of all items.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the number of known keys.
    pub fn keys(&self) -> usize {
        self.registry.len()
    }

    /// Returns the number of the first item that is counted: items before it are not in the
    /// answers, for their segments were dropped
    /// ([`ControlPlane::drop_oldest_segment`](crate::ControlPlane::drop_oldest_segment)). 0 unless
    /// that happened.
    pub fn since(&self) -> u64 {
        self.past.since_items()
    }

    /// Returns the expected number of keys that the Bloom filter of the open segment has kept from
    /// us for good, by its size and the keys that came through; infinite where it is so full that
    /// hardly any key gets through. Far too low if [`QueryView::filter_overflows`].
    pub fn estimated_lost_keys(&self) -> f64 {
        let Config { shape, rule, .. } = *self.segment.mapping.config();
        if shape.absorbs() {
            // It names whom it exports; how many it does not is not known
            // ([`QueryView::filter_overflows`]).
            return 0.0;
        }
        let bits = shape.bloom_bits;
        let hashes = shape.bloom_hashes;
        // Keys known from the heavy part alone never went through the filter, and those sent again
        // did not either.
        let (held, found) = (self.passed as f64, self.found_again as f64);
        if rule == ReportRule::Rotate && found > 0.0 {
            // Every filling loses the same share on its way to the limit. Keys that come again
            // later are found: this is for those that do not.
            let full = keys_until(bits, hashes, EMPTY_ABOVE);
            return (held + found) * (offered_keys(bits, hashes, full) / full - 1.0).max(0.0);
        }
        if shape.bloom == BloomKind::Recent {
            let passed = held + found;
            return passed * (1.0 / recent_coverage(bits, passed) - 1.0);
        }
        if rule == ReportRule::Generations {
            let half = bits / 64 * 32;
            let full = keys_until(half, hashes, FULL_ABOVE);
            if held > full {
                // The same, and the other half has its false claims.
                return (held + found) * (offered_keys(half, hashes, full) / full - 1.0 + FULL_ABOVE).max(0.0);
            }
            return (offered_keys(half, hashes, held) - held - found).max(0.0);
        }
        (offered_keys(bits, hashes, held) - held - found).max(0.0)
    }

    /// Returns true if on average more new keys come from one emptying of the Bloom filter to the
    /// next ([`ReportRule::Rotate`]) than it can hold. How many it loses then cannot be told, for
    /// known keys that are sent again fill it as well. Also true if a mirrored table has absorbed
    /// items in place of exporting them: nobody knows how many keys it never named.
    pub fn filter_overflows(&self) -> bool {
        let Config { shape, rule, .. } = *self.segment.mapping.config();
        if shape.absorbs() {
            return self.absorbed() > 0;
        }
        let new_keys = (self.passed + self.found_again) as f64 / self.epochs as f64 * f64::from(LEAST_CUTS);
        rule == ReportRule::Rotate
            && self.found_again > 0
            && new_keys > keys_until(shape.bloom_bits, shape.bloom_hashes, EMPTY_ABOVE)
    }

    /// Returns the mean of `upper - lower` over the known keys.
    pub fn mean_bound_width(&self) -> f64 {
        let width: u128 = self.counts().map(|count| u128::from(count.upper - count.lower)).sum();
        width as f64 / self.keys().max(1) as f64
    }

    /// Returns true if every count is exact: a mirrored table sends what it evicts, and nothing is
    /// decoded.
    pub fn counts_exactly(&self) -> bool {
        let shape = self.segment.mapping.config().shape;
        matches!(shape.heavy, HeavyKind::Mirrored(_)) && !shape.absorbs()
    }

    /// Returns the weight in the sketch of the open segment: in the modes exact and budget, what
    /// was not sent one by one.
    pub fn absorbed(&self) -> u64 {
        self.segment.sketch_weight
    }

    /// The configured decoder.
    pub fn decoder(&self) -> DecoderKind {
        self.decoder
    }

    /// The decoder that answered: another than the configured one while the network is not ready,
    /// has collapsed, or is judged to be worse.
    pub fn answered_by(&self) -> DecoderKind {
        self.answered_by
    }

    /// Counts over time, the open epoch last: delta only, and only if epochs are kept
    /// ([`Settings::retain_epochs`](crate::Settings::retain_epochs)).
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What [`QueryView::self_check`] needs.
    pub(crate) fn check(&self) -> &Check {
        &self.check
    }

    /// The segment's mapping, and its counters at this moment.
    pub(crate) fn segment_at_cut(&self) -> (&Segment, &Tally) {
        (&self.segment.mapping, &self.segment.counters)
    }

    /// Delta only: the number of epochs that were too full to be solved, of those that were decoded
    /// (since a state was read, if one was). More than a few of many make the estimates bad.
    pub fn crowded_epochs(&self) -> u64 {
        self.crowded
    }

    /// Number of epochs so far, the open one included.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Number of known keys whose guaranteed range is a single number.
    pub fn certain_keys(&self) -> u64 {
        self.counts().filter(|count| count.lower == count.upper).count() as u64
    }

    /// Delta only: weight in the open segment that no known key can explain.
    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }
}

/// The keys with which a filter comes to false claims at this rate.
fn keys_until(bits: u32, hashes: u8, rate: f64) -> f64 {
    let hashes = f64::from(hashes.max(1));
    -f64::from(bits) / hashes * (-rate.powf(1.0 / hashes)).ln_1p()
}
