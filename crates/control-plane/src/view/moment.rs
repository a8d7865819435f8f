//! How a view comes about: the open epoch goes on, as a clone, to a cut that is never made.

use std::sync::Arc;

use rayon::prelude::*;
use ucl_data_plane::mirrored::Pieces;
use ucl_data_plane::{CutTotals, Report, ReportSink};
use ucl_learned::Outputs;

use super::likely::LikelyRanges;
use super::{NetworkAtCut, QueryView, SegmentAtCut, Source, Unbounded, unknown_upper, upper_bounds};
use crate::decoder::DecoderKind;
use crate::exports::{Exports, KnownKeys, Registered};
use crate::heavy::{HeavyMirror, Held};
use crate::key_state::RaisedFloors;
use crate::open_epoch::{EpochChanges, OpenEpoch};
use crate::plane::{ControlPlane, Fault, Mode};
use crate::probable::MedianBound;
use crate::registry::{KeyId, Registry};
use crate::sealed::{BoundedCount, Past, Sealed};
use crate::segment::{ReportError, Segment};
use crate::self_check::Check;
use crate::series::Series;

/// So many keys are worth another thread.
const KEYS_AT_LEAST: usize = 4096;

/// Collects the reports of a data plane's [`peek`](ucl_data_plane::DataPlane::peek).
///
/// ```
/// use ucl_control_plane::{ControlPlane, Peek, Settings};
/// use ucl_data_plane::DataPlane;
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let data = DataPlane::<4>::new(config)?;
/// let mut control = ControlPlane::new(config, Settings::default())?;
/// let view = control.view(|peek: &mut Peek| data.peek(peek))?;
/// assert_eq!(view.items(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Peek {
    /// Slots that changed since the last cut: their number, holder and count.
    pub(crate) slots: Vec<(u32, Option<Vec<u8>>, u64)>,
    /// What a mirrored table would send: whole messages, and one that is under way.
    pub(crate) exports: Vec<(Vec<u8>, Option<u64>)>,
    pub(crate) open_export: Vec<u8>,
    /// The remainders.
    pub(crate) counters: Vec<i64>,
    pub(crate) totals: CutTotals,
    /// Whether counters and totals came.
    pub(crate) complete: bool,
}

impl ReportSink for Peek {
    fn report(&mut self, report: Report<'_>) {
        match report {
            Report::Slot { slot, holder, count } => self.slots.push((slot, holder.map(<[u8]>::to_vec), count)),
            Report::Export(Pieces::Bytes(bytes)) => self.open_export.extend_from_slice(bytes),
            Report::Export(Pieces::End { cut }) => self.exports.push((std::mem::take(&mut self.open_export), cut)),
            Report::Cut(cut) => {
                self.counters = cut.counters.to_vec();
                self.totals = cut.totals;
                self.complete = true;
            }
            Report::Key { .. } | Report::Carry { .. } | Report::Open { .. } => {
                debug_assert!(false, "a peek brings slots and counters only");
            }
        }
    }
}

/// What a cut at this moment would bring.
struct Moment {
    /// Holders that no report named yet are known to this view alone.
    registry: Arc<Registry>,
    raised: RaisedFloors,
    heavy: HeavyMirror,
    exports: Option<Exports>,
    changes: EpochChanges,
    /// The open epoch's own counters.
    epoch: Vec<i64>,
    /// The whole segment's.
    counters: Vec<i64>,
    totals: CutTotals,
}

/// What the decoder makes of it.
struct Sketch {
    /// By column.
    estimates: Vec<f64>,
    uppers: Vec<u64>,
    /// The segments before the open one.
    past: Arc<Past>,
    answered_by: DecoderKind,
    fallback: bool,
    unexplained: u64,
    series: Series,
    check: Check,
    likely: LikelyRanges,
    /// The network, if it was asked, and the number of its first column of the open segment.
    network: Option<(NetworkAtCut, usize)>,
    outputs: Option<Outputs>,
}

impl ControlPlane {
    /// Returns the state at this moment, the open epoch included. `peek` is asked for the data
    /// plane's [`peek`](ucl_data_plane::DataPlane::peek); nothing changes by it, here or there.
    ///
    /// # Errors
    /// If the control plane has failed before, the peek is empty or contradicts the reports, or the
    /// decoder fails.
    pub fn view(&mut self, peek: impl FnOnce(&mut Peek)) -> Result<QueryView, Fault> {
        if let Some(fault) = self.fault() {
            return Err(fault.clone());
        }
        let mut peeked = Peek::default();
        peek(&mut peeked);
        if !peeked.complete {
            return Err(Fault::EmptyPeek);
        }
        let columns = self.segment.columns().len();
        let view = self.view_of(peeked);
        // Columns of keys that lost their slots unseen are this view's alone.
        self.segment.truncate(columns);
        view
    }

    /// Returns the state at the last cut, without asking the data plane: it may be on another
    /// machine. The same as [`ControlPlane::view`] right after that cut.
    ///
    /// ```
    /// use ucl_control_plane::{ControlPlane, Fault, Settings};
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// # let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
    /// data.insert(b"key1", 5, &mut control)?;
    /// data.cut(&mut control);
    /// assert_eq!(control.view_at_cut()?.estimate(b"key1").estimate, 5);
    /// assert_eq!(control.view(|_| {}).unwrap_err(), Fault::EmptyPeek);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the control plane has failed before, a report came after the last cut, or the decoder
    /// fails.
    pub fn view_at_cut(&mut self) -> Result<QueryView, Fault> {
        if let Some(fault) = self.fault() {
            return Err(fault.clone());
        }
        if self.since_cut {
            return Err(Fault::NotAtCut);
        }
        let peek = self.peek_at_cut();
        self.view(|peeked| *peeked = peek)
    }

    /// What the data plane's peek brings right after the last cut.
    pub(crate) fn peek_at_cut(&self) -> Peek {
        let OpenEpoch { items, weight, smallest_weight, .. } = self.open;
        let sketch_weight = self.segment.sketch_weight();
        Peek {
            slots: Vec::new(),
            exports: Vec::new(),
            open_export: Vec::new(),
            counters: vec![0; self.segment.cumulative().len()],
            totals: CutTotals { items, weight, sketch_weight, smallest_weight, carries: 0 },
            complete: true,
        }
    }

    fn view_of(&mut self, peeked: Peek) -> Result<QueryView, Fault> {
        let mut moment = self.moment(peeked)?;
        let sketch = if matches!(self.mode, Mode::Delta(_)) {
            self.decode_epochs_at(&mut moment)?
        } else {
            self.decode_counters_at(&moment)?
        };
        Ok(self.answers(moment, sketch))
    }

    /// Runs a clone of the open epoch up to now, as a cut runs the epoch itself.
    fn moment(&mut self, peeked: Peek) -> Result<Moment, ReportError> {
        let Peek { slots, exports: messages, open_export: _, counters: remainders, totals, complete: _ } = peeked;
        let mut registry = Registry::beyond(&self.registry);
        let mut open = self.open.clone();
        let mut entered: Vec<Held> = Vec::new();
        for (slot, holder, count) in slots {
            let holder = holder.map(|identity| registry.learn(&identity)).transpose()?.map(|(id, _)| id);
            entered.extend(open.take_slot(slot, holder, count)?);
        }
        let exports = self.exports_at(&messages, &mut registry, &mut open)?;
        entered.extend(open.take_missing());
        for &former in &entered {
            open.enter_sketch(former, registry.identity_of(former.key), &mut self.segment);
        }
        let raised = RaisedFloors::new(&self.keys, entered);
        let epoch = self.segment.open_counters(&totals, remainders)?;
        let mut counters = self.segment.cumulative().to_vec();
        counters.iter_mut().zip(&epoch).for_each(|(counter, &open)| *counter = counter.wrapping_add(open));
        let changes = open.close(&totals, self.segment.columns().len());
        let registry = registry.shared();
        Ok(Moment { registry, raised, heavy: open.heavy, exports, changes, epoch, counters, totals })
    }

    /// What a mirrored table's counts come to with what it has not sent yet.
    pub(crate) fn exports_at(
        &self,
        messages: &[(Vec<u8>, Option<u64>)],
        registry: &mut Registry,
        open: &mut OpenEpoch,
    ) -> Result<Option<Exports>, ReportError> {
        let Some(exports) = &self.exports else { return Ok(None) };
        let mut exports = exports.clone();
        for (message, cut) in messages {
            let changes = (self.settings.retain_epochs > 0).then_some(&mut open.heavy_changes);
            exports.read(message, *cut, KnownKeys { registry: Registered::View(registry), changes })?;
        }
        Ok(Some(exports))
    }

    /// Delta: the epochs that wait, and the open one.
    fn decode_epochs_at(&self, moment: &mut Moment) -> Result<Sketch, Fault> {
        let Mode::Delta(delta) = &self.mode else { unreachable!("other decoders have no epochs") };
        let Moment { changes, epoch, counters, totals, .. } = moment;
        let weight = totals.sketch_weight.saturating_sub(self.segment.sketch_weight());
        let changes = std::mem::take(changes);
        let (totals, series) = delta.with_open(&self.segment, changes, weight, epoch, counters, &self.settings.em)?;
        let unexplained = totals.unexplained();
        let check = Check::Told(totals.checked().share());
        let likely = LikelyRanges::new(totals.doubts(), totals.estimates(), self.segment.keys());
        let (estimates, uppers) = totals.into_sums();
        Ok(Sketch {
            estimates,
            uppers,
            past: Arc::clone(&self.past),
            answered_by: DecoderKind::Delta,
            fallback: false,
            unexplained,
            series,
            check,
            likely,
            network: None,
            outputs: None,
        })
    }

    /// Other decoders: the counters as they are, with those of appended segments.
    fn decode_counters_at(&mut self, moment: &Moment) -> Result<Sketch, Fault> {
        let CutTotals { sketch_weight, smallest_weight, .. } = moment.totals;
        let mut decoded = self.decode_snapshot(&moment.counters, &moment.raised, smallest_weight)?;
        let first_column = decoded.lowers.len() - decoded.estimates.len();
        let network = decoded.network.take().map(|network| (network, first_column));
        let mut past = Arc::clone(&self.past);
        if !decoded.appended.is_empty() {
            Arc::make_mut(&mut past).sealed.extend_from_slice(decoded.appended.as_slice());
        }
        let check = match self.network().filter(|_| decoded.answered_by.is_trained()) {
            Some(network) => Check::Told(network.verdict().map(|verdict| verdict.of(decoded.answered_by))),
            None if self.appended.is_empty() => {
                Check::Ask { keys: self.segment.keys().to_vec(), known: decoded.lowers, em: self.settings.em }
            }
            None => Check::Told(None),
        };
        Ok(Sketch {
            estimates: decoded.estimates,
            uppers: upper_bounds(&self.segment, &moment.counters, sketch_weight),
            past,
            answered_by: decoded.answered_by,
            fallback: decoded.fallback,
            unexplained: 0,
            series: Series::default(),
            check,
            likely: LikelyRanges::Guaranteed,
            network,
            outputs: decoded.outputs,
        })
    }

    /// From sketch parts to whole answers.
    fn answers(&self, moment: Moment, mut sketch: Sketch) -> QueryView {
        let (mut records, sources) = self.sketch_counts(&moment, &sketch);
        let network = sketch.network.take();
        let unbounded = network.map(|network| Arc::new(self.unbounded(network, &moment, &sketch)));
        let Moment { registry, heavy, exports, counters, totals, .. } = moment;
        // Segments before the open one have guaranteed bounds only.
        let one_segment = sketch.past.sealed.is_empty() && sketch.past.since_weight() == 0;
        let likely = if one_segment { sketch.likely } else { LikelyRanges::Guaranteed };
        let Sketch { past, .. } = sketch;
        let config = *self.segment.config();
        // Sealed segments have guaranteed bounds only.
        let median = MedianBound::new(config.shape.geometry(), &counters, totals.sketch_weight)
            .filter(|_| past.sealed.is_empty() && past.since_weight() == 0);
        let mut held_by_key = vec![0; if median.is_some() { registry.len() } else { 0 }];
        for held in heavy.iter() {
            if let Some(by_key) = held_by_key.get_mut(held.key.0 as usize) {
                *by_key += held.count;
            }
            records[held.key.0 as usize].add(BoundedCount::exactly(held.count));
        }
        for counted in exports.iter().flat_map(Exports::iter) {
            records[counted.key.0 as usize].add(BoundedCount::exactly(counted.count));
        }
        // What the heavy part held when counting starts, if segments were dropped, is not counted.
        for held in past.held_before() {
            records[held.key.0 as usize].take_off(held.count);
        }
        // No key can have more than the stream; and one that is known came, if not before counting
        // starts.
        let least = if past.since_items() == 0 { totals.smallest_weight } else { 0 };
        let most = totals.weight - past.since_weight();
        records.iter_mut().for_each(|record| record.clamp(least, most));
        let segment = SegmentAtCut {
            mapping: Segment::without_counters(config),
            counters,
            sketch_weight: totals.sketch_weight,
            median,
            held: held_by_key,
        };
        // What this view alone has found again is not counted as such.
        let found_again = self.open.found_again;
        QueryView {
            registry,
            records,
            sources,
            segment: Arc::new(segment),
            past,
            items: totals.items,
            weight: totals.weight,
            decoder: self.settings.decoder,
            answered_by: sketch.answered_by,
            unexplained: sketch.unexplained,
            series: sketch.series,
            check: sketch.check,
            likely,
            unbounded,
            outputs: sketch.outputs,
            passed: self.segment.columns().len().saturating_sub(found_again),
            found_again,
            epochs: self.cuts + 1,
        }
    }

    /// What a trained decoder said of each key, and how to ask its network again.
    fn unbounded(&self, (network, first): (NetworkAtCut, usize), moment: &Moment, sketch: &Sketch) -> Unbounded {
        let keys = || (0..moment.registry.len() as u32).map(KeyId);
        let sealed = |key: KeyId| {
            let part = |sealed: &Arc<Sealed>| sealed.part(key, moment.registry.identity_of(key)).estimate;
            sketch.past.sealed.iter().map(part).sum()
        };
        let mut held: Vec<u64> = keys().map(sealed).collect();
        moment.heavy.iter().for_each(|slot| held[slot.key.0 as usize] += slot.count);
        for slot in sketch.past.held_before() {
            let held = &mut held[slot.key.0 as usize];
            *held = held.saturating_sub(slot.count);
        }
        let decoded = keys().map(|key| {
            let column = self.segment.column_of(key)?.0 as usize;
            Some(((first + column) as u32, sketch.estimates[column]))
        });
        Unbounded::new(network, decoded, held)
    }

    /// What each key has in the open segment and in those before it, and where that comes from.
    fn sketch_counts(&self, moment: &Moment, sketch: &Sketch) -> (Vec<BoundedCount>, Vec<Source>) {
        let Moment { registry, raised, counters, totals, .. } = moment;
        let decoded_source = if sketch.fallback { Source::Fallback } else { Source::Decoded };
        let count = |key: KeyId| {
            let identity = registry.identity_of(key);
            let lower = raised.of(&self.keys, key).lower(totals.smallest_weight);
            let (mut count, mut source) = match self.segment.column_of(key) {
                Some(column) => {
                    let column = column.0 as usize;
                    let count = BoundedCount::new(sketch.estimates[column], sketch.uppers[column], lower);
                    (count, decoded_source)
                }
                // Never reported, but seen in the heavy part: what the filter lost of it, if
                // anything, is not counted.
                None => {
                    let counter = |at: usize| counters[at];
                    let upper = unknown_upper(&self.segment, identity, counter, totals.sketch_weight);
                    let source = if moment.exports.is_some() { Source::Exact } else { Source::Heavy };
                    (BoundedCount::new(0.0, upper, lower), source)
                }
            };
            for sealed in &sketch.past.sealed {
                count.add(sealed.part(key, identity));
                if matches!(source, Source::Heavy | Source::Exact) && sealed.segment.column_of(key).is_some() {
                    source = Source::Decoded;
                }
            }
            (count, source)
        };
        let keys = (0..registry.len() as u32).into_par_iter().with_min_len(KEYS_AT_LEAST);
        let mut counts = Vec::new();
        let mut sources = Vec::new();
        keys.map(|key| count(KeyId(key))).unzip_into_vecs(&mut counts, &mut sources);
        (counts, sources)
    }
}
