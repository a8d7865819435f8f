//! Answers at one consistent moment.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use ucl_data_plane::bloom::offered_keys;
use ucl_data_plane::{Config, KeyFormat, Report, ReportSink};
use ucl_equations::ColumnId;

use crate::decoder::DecoderKind;
use crate::delta::Epoch;
use crate::plane::{ControlPlane, Fault, Mode, decode_snapshot, least};
use crate::registry::{KeyId, Registry};
use crate::segment::Segment;
use crate::series::Series;

/// Where an estimate comes from.
///
/// ```
/// assert_eq!(ucl_control_plane::Source::Unknown.name(), "unknown");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The heavy part holds the key, and nothing of it is known to be in the sketch.
    Heavy,
    /// The configured decoder.
    Decoded,
    /// A classic decoder, because the learned one is not ready or predicts a row left out worse.
    Fallback,
    /// The key was never reported: 0 for the sketch part, as in the paper.
    Unknown,
}

impl Source {
    /// The name in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heavy => "heavy",
            Self::Decoded => "decoded",
            Self::Fallback => "fallback",
            Self::Unknown => "unknown",
        }
    }
}

/// What bounds promise.
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
}

/// An answer: a whole number, and where the truth lies.
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
    /// What the bounds promise.
    pub bound: BoundKind,
    /// Where the guess comes from.
    pub source: Source,
}

#[derive(Clone, Copy, Debug, Default)]
struct Record {
    estimate: u64,
    lower: u64,
    upper: u64,
}

/// One cut, decoded: immutable, cheap to share.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings};
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
/// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1 };
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
    records: Vec<Record>,
    sources: Vec<Source>,
    /// For keys that are not known: mapping and counters.
    segment: Arc<SegmentAtCut>,
    items: u64,
    weight: u64,
    decoder: DecoderKind,
    answered_by: DecoderKind,
    unexplained: u64,
    series: Series,
    /// Keys that the filter had lost and that became known all the same.
    found_again: Arc<HashSet<KeyId>>,
}

#[derive(Clone, Debug)]
struct SegmentAtCut {
    mapping: Segment,
    counters: Vec<i64>,
    sketch_weight: u64,
}

/// What a peek brings: as reports, but kept apart, since asking never changes state.
#[derive(Default)]
pub(crate) struct Peeked {
    slots: Vec<(u32, Option<Vec<u8>>, u64)>,
    counters: Vec<i64>,
    items: u64,
    weight: u64,
    sketch_weight: u64,
    smallest_weight: u64,
}

impl ReportSink for Peeked {
    fn report(&mut self, report: Report<'_>) {
        match report {
            Report::Slot { slot, holder, count } => self.slots.push((slot, holder.map(<[u8]>::to_vec), count)),
            Report::Cut(cut) => {
                self.counters = cut.counters.iter().collect();
                (self.items, self.weight) = (cut.items, cut.weight);
                (self.sketch_weight, self.smallest_weight) = (cut.sketch_weight, cut.smallest_weight);
            }
            Report::Key { .. } | Report::Carry { .. } => debug_assert!(false, "a peek brings slots and counters only"),
        }
    }
}

impl ControlPlane {
    /// The state at this moment, the open epoch included. `peek` is asked for the data plane's
    /// [`peek`](ucl_data_plane::DataPlane::peek); nothing changes by it, here or there.
    pub fn view(&mut self, peek: impl FnOnce(&mut Peek)) -> Result<QueryView, Fault> {
        if let Some(fault) = self.fault() {
            return Err(fault.clone());
        }
        let mut peeked = Peek(Peeked::default());
        peek(&mut peeked);
        self.view_of(peeked.0)
    }

    fn view_of(&mut self, peeked: Peeked) -> Result<QueryView, Fault> {
        // The heavy part as it is now. Holders that no report named yet are known to this view alone.
        let mut registry = Arc::clone(&self.registry);
        let mut heavy = self.heavy.clone();
        let mut floors: Vec<(KeyId, u64)> = Vec::new();
        let mut heavy_changes = Vec::new();
        for (slot, holder, count) in &peeked.slots {
            let holder = holder.as_deref().map(|identity| match registry.find(identity) {
                Some(id) => id,
                None => Arc::make_mut(&mut registry).intern(identity).0,
            });
            if let Some(former) = heavy.change(*slot, holder, *count, &mut heavy_changes) {
                floors.push((former.key, former.count));
            }
        }
        let open: Vec<i64> = self.segment.open_epoch(&peeked.counters);
        let counters: Vec<i64> = self.segment.cumulative().iter().zip(&open).map(|(a, b)| a + b).collect();
        let mut keys = self.keys.clone();
        keys.resize(registry.len(), Default::default());
        for &(key, count) in &floors {
            keys[key.0 as usize].floor += count;
            keys[key.0 as usize].entered = true;
        }

        // A holder that lost its slot since the last cut is in the sketch, even if the Bloom filter kept its key from us:
        // it has a column from now on. Rare enough to copy the segment for it.
        let mut segment = Cow::Borrowed(&self.segment);
        for &(key, _) in &floors {
            if segment.column_of(key).is_none() {
                segment.to_mut().ensure_column(key, registry.identity_of(key));
            }
        }

        // One estimate and one upper bound per column.
        let columns = segment.columns();
        let config = *segment.config();
        let (mut unexplained, mut over_time) = (0, Series::default());
        let (decoded, uppers, answered_by, fallback) = if let Mode::Delta { totals, pending, series } = &self.mode {
            let mut totals = totals.clone();
            let beyond = (self.segment.columns().len()..columns.len()).map(|column| ColumnId(column as u32));
            let late: Vec<ColumnId> = self.late.iter().copied().chain(beyond).collect();
            totals.push_new(columns, columns.len(), &late, &open, &counters);
            let evicted = floors.iter().filter_map(|&(key, count)| Some((segment.column_of(key)?, count))).collect();
            let (known, first_new) = (columns.len() as u32, self.columns_at_cut as u32);
            let mut block = pending.clone();
            block.push(Epoch { counters: open, known, first_new, evicted, heavy: heavy_changes, items: peeked.items });
            over_time = series.clone();
            totals.add_block(columns, segment.keys(), &block, &self.settings.em, &mut over_time)?;
            unexplained = totals.unexplained();
            (totals.estimates().to_vec(), totals.uppers().to_vec(), DecoderKind::Delta, false)
        } else {
            let uppers = upper_bounds(&segment, &counters, peeked.sketch_weight);
            let y: Vec<f64> = counters.iter().map(|&c| c as f64).collect();
            let (decoded, kind, fallback) = decode_snapshot(&mut self.mode, &self.settings, &segment, &y)?;
            (decoded, uppers, kind, fallback)
        };

        // From sketch parts to whole answers.
        let smallest = peeked.smallest_weight;
        let decoded_source = if fallback { Source::Fallback } else { Source::Decoded };
        let mut records = vec![Record::default(); registry.len()];
        let mut sources = vec![Source::Heavy; registry.len()];
        for (key, record) in registry.ids().zip(&mut records) {
            let state = keys[key.0 as usize];
            let lower = if state.entered { state.floor.max(smallest) } else { 0 };
            let (estimate, upper) = match segment.column_of(key) {
                Some(column) => {
                    sources[key.0 as usize] = decoded_source;
                    let upper = uppers[column.0 as usize].max(lower);
                    let rounded = (decoded[column.0 as usize].max(0.0) + 0.5).floor() as u64;
                    (rounded.clamp(lower, upper), upper)
                }
                // Never reported, but seen in the heavy part: what the filter lost of it, if anything, is not counted.
                None => (lower, unknown_upper(&segment, registry.identity_of(key), &counters, peeked.sketch_weight)),
            };
            *record = Record { estimate, lower, upper: upper.max(lower) };
        }
        for held in heavy.iter() {
            let record = &mut records[held.key.0 as usize];
            record.estimate += held.count;
            record.lower += held.count;
            record.upper += held.count;
        }
        // No key can have more than the stream.
        for record in &mut records {
            record.upper = record.upper.min(peeked.weight);
            record.estimate = record.estimate.min(record.upper);
        }
        let segment = SegmentAtCut { mapping: Segment::new(config), counters, sketch_weight: peeked.sketch_weight };
        Ok(QueryView {
            registry,
            records,
            sources,
            segment: Arc::new(segment),
            items: peeked.items,
            weight: peeked.weight,
            decoder: self.settings.decoder,
            answered_by,
            unexplained,
            series: over_time,
            found_again: Arc::clone(&self.found_again),
        })
    }
}

/// Takes what a data plane's `peek` reports.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Peek, Settings};
/// use ucl_data_plane::DataPlane;
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1 };
/// let (data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
/// let view = control.view(|peek: &mut Peek| data.peek(peek))?;
/// assert_eq!(view.items(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Peek(Peeked);

impl ReportSink for Peek {
    fn report(&mut self, report: Report<'_>) {
        self.0.report(report);
    }
}

/// The largest sketch part each column's key can have.
fn upper_bounds(segment: &Segment, counters: &[i64], sketch_weight: u64) -> Vec<u64> {
    let columns = segment.columns();
    (0..columns.len() as u32)
        .map(ColumnId)
        .map(|id| {
            if !segment.config().shape.signed {
                return least(columns.indices(id), counters);
            }
            let entries = columns.indices(id).iter().enumerate();
            signed_upper(
                entries.map(|(e, &at)| (columns.coefficient(id, e) as i64) * counters[at as usize]),
                sketch_weight,
            )
        })
        .collect()
}

fn unknown_upper(segment: &Segment, identity: &[u8], counters: &[i64], sketch_weight: u64) -> u64 {
    let column = segment.positions(identity);
    if !segment.config().shape.signed {
        return least(column.indices(), counters);
    }
    let entries = column.indices().iter().zip(column.signs());
    signed_upper(entries.map(|(&at, &sign)| i64::from(sign) * counters[at as usize]), sketch_weight)
}

/// Count Sketch: `sign · y = x + (the others' weight, some of it negative)`, and the others have at most `W - x`, so
/// `x <= (sign · y + W) / 2` in every row.
fn signed_upper(values: impl Iterator<Item = i64>, sketch_weight: u64) -> u64 {
    values.map(|value| ((value + sketch_weight as i64) / 2).max(0) as u64).min().unwrap_or(0)
}

impl QueryView {
    /// The answer for one key.
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
                let upper = unknown_upper(&segment.mapping, identity, &segment.counters, segment.sketch_weight);
                Estimate { estimate: 0, lower: 0, upper, bound: BoundKind::Guaranteed, source: Source::Unknown }
            }
        }
    }

    /// The answer for a known key.
    #[inline]
    pub fn of(&self, id: KeyId) -> Estimate {
        let Record { estimate, lower, upper } = self.records[id.0 as usize];
        Estimate { estimate, lower, upper, bound: BoundKind::Guaranteed, source: self.sources[id.0 as usize] }
    }

    /// The known keys.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Every known key with its answer, in the order in which they became known.
    pub fn all(&self) -> impl ExactSizeIterator<Item = (KeyId, Estimate)> + '_ {
        self.registry.ids().map(|id| (id, self.of(id)))
    }

    /// The `n` keys with the largest estimates, largest first; equal ones in the order in which they became known.
    pub fn top(&self, n: usize) -> Vec<(KeyId, Estimate)> {
        let mut ids: Vec<KeyId> = self.registry.ids().collect();
        let by_size = |id: &KeyId| (std::cmp::Reverse(self.records[id.0 as usize].estimate), id.0);
        if n < ids.len() {
            ids.select_nth_unstable_by_key(n, by_size);
            ids.truncate(n);
        }
        ids.sort_unstable_by_key(by_size);
        ids.into_iter().map(|id| (id, self.of(id))).collect()
    }

    /// How many keys have each estimate, by estimate; keys with estimate 0 are left out.
    pub fn histogram(&self) -> std::collections::BTreeMap<u64, u64> {
        let mut histogram = std::collections::BTreeMap::new();
        for record in self.records.iter().filter(|record| record.estimate > 0) {
            *histogram.entry(record.estimate).or_default() += 1;
        }
        histogram
    }

    /// Shannon entropy of the estimated distribution over keys, in bits.
    pub fn entropy(&self) -> f64 {
        let total: u128 = self.records.iter().map(|record| u128::from(record.estimate)).sum();
        let shares = self.records.iter().map(|record| record.estimate as f64 / total.max(1) as f64);
        -shares.filter(|&p| p > 0.0).map(|p| p * p.log2()).sum::<f64>()
    }

    /// Items inserted up to this moment.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Their weight.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// How many keys are known.
    pub fn keys(&self) -> usize {
        self.registry.len()
    }

    /// How many keys the Bloom filter is expected to have kept from us for good, by its size and the keys that came
    /// through; infinite where it is so full that hardly any key gets through.
    pub fn estimated_lost_keys(&self) -> f64 {
        let Config { keys, shape, .. } = *self.segment.mapping.config();
        // Keys known from the heavy part alone never went through the filter, and those sent again did not either.
        let through = |key: &KeyId| {
            let passed = keys == KeyFormat::Digest || self.sources[key.0 as usize] != Source::Heavy;
            passed && !self.found_again.contains(key)
        };
        let held = self.registry.ids().filter(through).count() as f64;
        let offered = offered_keys(shape.bloom_bits, shape.bloom_hashes, held);
        (offered - held - self.found_again.len() as f64).max(0.0)
    }

    /// The mean of `upper - lower` over the known keys.
    pub fn mean_bound_width(&self) -> f64 {
        let width: u128 = self.records.iter().map(|record| u128::from(record.upper - record.lower)).sum();
        width as f64 / self.records.len().max(1) as f64
    }

    /// The configured decoder.
    pub fn decoder(&self) -> DecoderKind {
        self.decoder
    }

    /// The decoder that answered: another than the configured one while the network is not ready.
    pub fn answered_by(&self) -> DecoderKind {
        self.answered_by
    }

    /// Counts over time, the open epoch last: delta only, and only if epochs are kept
    /// ([`Settings::retain_epochs`](crate::Settings::retain_epochs)).
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Delta only: weight in the sketch that no known key can explain.
    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }
}
