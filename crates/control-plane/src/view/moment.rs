//! How a view comes about: the open epoch goes on, as a clone, to a cut that is never made.

use std::sync::Arc;

use ucl_data_plane::mirrored::Pieces;
use ucl_data_plane::{CutTotals, Report, ReportSink};
use ucl_learned::Outputs;

use super::answers::{Answers, Counts};
use super::likely::LikelyRanges;
use super::{NetworkAtCut, QueryView, SegmentAtCut, Unbounded, upper_bounds};
use crate::decoder::DecoderKind;
use crate::delta::Sums;
use crate::exports::{Exports, KnownKeys, Registered};
use crate::heavy::{HeavyMirror, Held};
use crate::key_state::RaisedFloors;
use crate::open_epoch::{EpochChanges, OpenEpoch};
use crate::plane::{ControlPlane, Fault, Mode};
use crate::probable::MedianBound;
use crate::registry::{KeyId, Registry};
use crate::sealed::{Past, Sealed};
use crate::segment::ReportError;
use crate::self_check::Check;
use crate::series::Series;
use crate::tally::Tally;

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
    counters: Tally,
    totals: CutTotals,
}

/// What the decoder makes of it.
struct Sketch {
    sums: Sums,
    /// The segments before the open one.
    past: Arc<Past>,
    answered_by: DecoderKind,
    fallback: bool,
    unexplained: u64,
    crowded: u64,
    series: Series,
    check: Check,
    likely: LikelyRanges,
    /// Answers of the network alone, if it was asked.
    unbounded: Option<Arc<Unbounded>>,
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
        open.give_columns(self.registry.len().., &registry, &mut self.segment);
        entered.extend(open.take_missing());
        for &former in &entered {
            open.enter_sketch(former, registry.identity_of(former.key), &mut self.segment);
        }
        let raised = RaisedFloors::new(&self.keys, entered);
        let epoch = self.segment.open_counters(&totals, remainders)?;
        let mut counters = self.segment.cumulative().clone();
        counters.add(&epoch);
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
        let crowded = totals.crowded();
        let check = Check::Told(totals.checked().share());
        let likely = LikelyRanges::new(totals.doubts(), totals.sums(), self.segment.keys());
        Ok(Sketch {
            sums: totals.into_sums(),
            past: Arc::clone(&self.past),
            answered_by: DecoderKind::Delta,
            fallback: false,
            unexplained,
            crowded,
            series,
            check,
            likely,
            unbounded: None,
            outputs: None,
        })
    }

    /// Other decoders: the counters as they are, with those of appended segments.
    fn decode_counters_at(&mut self, moment: &Moment) -> Result<Sketch, Fault> {
        let CutTotals { sketch_weight, smallest_weight, .. } = moment.totals;
        let mut decoded = self.decode_snapshot(&moment.counters.to_vec(), &moment.raised, smallest_weight)?;
        let mut past = Arc::clone(&self.past);
        if !decoded.appended.is_empty() {
            Arc::make_mut(&mut past).sealed.extend_from_slice(decoded.appended.as_slice());
        }
        let unbounded = decoded.network.take().map(|network| {
            let first_column = decoded.lowers.len() - decoded.estimates.len();
            Arc::new(self.unbounded((network, first_column), moment, &past, &decoded.estimates))
        });
        let check = match self.network().filter(|_| decoded.answered_by.is_trained()) {
            Some(network) => Check::Told(network.verdict().map(|verdict| verdict.of(decoded.answered_by))),
            None if self.appended.is_empty() => {
                Check::Ask { keys: self.segment.keys().to_vec(), known: decoded.lowers, em: self.settings.em }
            }
            None => Check::Told(None),
        };
        Ok(Sketch {
            sums: Sums::of(decoded.estimates, upper_bounds(&self.segment, |at| moment.counters.get(at), sketch_weight)),
            past,
            answered_by: decoded.answered_by,
            fallback: decoded.fallback,
            unexplained: 0,
            crowded: 0,
            series: Series::default(),
            check,
            likely: LikelyRanges::Guaranteed,
            unbounded,
            outputs: decoded.outputs,
        })
    }

    /// What a trained decoder said of each key, and how to ask its network again.
    fn unbounded(
        &self,
        (network, first): (NetworkAtCut, usize),
        moment: &Moment,
        past: &Past,
        estimates: &[f64],
    ) -> Unbounded {
        let keys = || (0..moment.registry.len() as u32).map(KeyId);
        let sealed = |key: KeyId| {
            let part = |sealed: &Arc<Sealed>| sealed.part(key, moment.registry.identity_of(key)).estimate;
            past.sealed.iter().map(part).sum()
        };
        let mut held: Vec<u64> = keys().map(sealed).collect();
        moment.heavy.iter().for_each(|slot| held[slot.key.0 as usize] += slot.count);
        for slot in past.held_before() {
            let held = &mut held[slot.key.0 as usize];
            *held = held.saturating_sub(slot.count);
        }
        let decoded = keys().map(|key| {
            let column = self.segment.column_of(key)?.0 as usize;
            Some(((first + column) as u32, estimates[column]))
        });
        Unbounded::new(network, decoded, held)
    }

    /// From sketch parts to whole answers.
    fn answers(&self, moment: Moment, sketch: Sketch) -> QueryView {
        let Moment { registry, raised, heavy, exports, counters, totals, .. } = moment;
        let Sketch { past, likely, .. } = sketch;
        // Segments before the open one have guaranteed bounds only.
        let one_segment = past.sealed.is_empty() && past.since_weight() == 0;
        let likely = if one_segment { likely } else { LikelyRanges::Guaranteed };
        let geometry = self.segment.config().shape.geometry();
        let median = if one_segment { MedianBound::new(geometry, &counters, totals.sketch_weight) } else { None };
        let held = heavy.iter().chain(exports.iter().flat_map(Exports::iter));
        let exact = match &exports {
            Some(_) => Counts::of_all(registry.len(), held),
            None => Counts::of_some(held),
        };
        let answers = Answers {
            keys: self.keys.clone(),
            raised,
            sums: sketch.sums,
            fallback: sketch.fallback,
            exact,
            all_exact: exports.is_some() && !self.segment.config().shape.absorbs(),
            mirrored: exports.is_some(),
            // What the heavy part held when counting starts, if segments were dropped, is not
            // counted.
            before: Counts::of_some(past.held_before().copied()),
            smallest_weight: totals.smallest_weight,
            // No key can have more than the stream; and one that is known came, if not before
            // counting starts.
            least: if past.since_items() == 0 { totals.smallest_weight } else { 0 },
            most: totals.weight - past.since_weight(),
        };
        let segment = SegmentAtCut {
            mapping: self.segment.without_columns(),
            counters,
            sketch_weight: totals.sketch_weight,
            median,
        };
        // What this view alone has found again is not counted as such.
        let found_again = self.open.found_again;
        QueryView {
            registry,
            answers,
            segment: Arc::new(segment),
            past,
            items: totals.items,
            weight: totals.weight,
            decoder: self.settings.decoder,
            answered_by: sketch.answered_by,
            unexplained: sketch.unexplained,
            crowded: sketch.crowded,
            series: sketch.series,
            check: sketch.check,
            likely,
            unbounded: sketch.unbounded,
            outputs: sketch.outputs,
            passed: self.segment.columns().len().saturating_sub(found_again),
            found_again,
            epochs: self.cuts + 1,
        }
    }
}
