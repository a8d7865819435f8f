//! What a state must keep to. Every message has the numbers that contradict each other.

use ucl_data_plane::{Config, CutTotals, DigestKey, Inconsistent, Shape, ensure};
use ucl_equations::{ColumnId, em};

use crate::delta::{Epoch, Totals, WAITING};
use crate::exports::reported_slots;
use crate::open_epoch::OpenEpoch;
use crate::plane::{ControlPlane, Mode};
use crate::registry::{KeyId, Registry};
use crate::segment::{ReportError, Segment};
use crate::series::Series;
use crate::settings::Settings;
use crate::view::Peek;

/// More iterations or steps than this would never end.
const MOST_ROUNDS: usize = 1 << 28;
/// More iterations of EM than this would seem never to end; hundreds are the rule.
const MOST_ITERATIONS: usize = 1 << 16;
/// Counts of events stay far from overflowing.
const MOST_EVENTS: u64 = 1 << 60;

impl Settings {
    /// Fails for settings that no control plane of this configuration can have, or with which it
    /// would never answer.
    pub fn check(&self, config: &Config) -> Result<(), Inconsistent> {
        self.decoder.supports(&config.shape.geometry()).map_err(|error| Inconsistent(error.to_string()))?;
        if self.decoder.is_trained() {
            self.learned.validate().map_err(|error| Inconsistent(error.to_string()))?;
        }
        if let Some(budget) = self.train_budget {
            let rounds = budget.epochs.min(budget.steps);
            ensure(rounds <= MOST_ROUNDS, || format!("a training of {rounds} steps, more than {MOST_ROUNDS}"))?;
        }
        let em::Options { iterations, tolerance, .. } = self.em;
        ensure(iterations <= MOST_ITERATIONS, || format!("{iterations} iterations, more than {MOST_ITERATIONS}"))?;
        let positive = tolerance.is_none_or(|tolerance| tolerance.is_finite() && tolerance >= 0.0);
        ensure(positive, || format!("a tolerance of {tolerance:?}"))
    }
}

/// Unsigned: no counter is negative or beyond `weight`, and every row adds up to it, as often as a
/// key has counters in a row. Signed: none is beyond it.
pub(crate) fn check_rows(counters: &[i64], shape: &Shape, weight: u64) -> Result<(), Inconsistent> {
    let geometry = shape.geometry();
    let beyond = counters.iter().position(|counter| counter.unsigned_abs() > weight);
    ensure(beyond.is_none(), || format!("counter {beyond:?} is beyond {weight}, which is all there is"))?;
    if geometry.signed {
        return Ok(());
    }
    let want = u128::from(weight) * u128::from(geometry.per_row());
    for (row, counters) in counters.chunks(geometry.width as usize).enumerate() {
        let sum = counters.iter().try_fold(0u128, |sum, &counter| sum.checked_add(u128::try_from(counter).ok()?));
        ensure(sum == Some(want), || format!("row {row} of the counters adds up to {sum:?}, not {want}"))?;
    }
    Ok(())
}

impl ControlPlane {
    /// Checks all that does not need the data plane.
    pub(super) fn check(&self) -> Result<(), Inconsistent> {
        let keys = self.registry.len();
        let columns = self.segment.columns().len();
        let config = self.segment.config();
        let sketch_weight = self.segment.sketch_weight();
        let known = |key: KeyId| (key.0 as usize) < keys;
        let column = |column: ColumnId| (column.0 as usize) < columns;
        ensure(self.keys.len() == keys, || format!("states of {} keys, of {keys}", self.keys.len()))?;
        let floors = self.keys.iter().try_fold(0u64, |sum, key| sum.checked_add(key.floor()));
        let within = floors.is_some_and(|sum| sum <= sketch_weight);
        ensure(within, || format!("keys have {floors:?} at least, but {sketch_weight} entered the sketch"))?;

        let (slots, want) = (self.open.heavy.len(), reported_slots(config) as usize);
        ensure(slots == want, || format!("a mirror of {slots} heavy slots, not {want}"))?;
        let stray = self.open.heavy.iter().chain(self.open.moved.iter().copied()).find(|held| !known(held.key));
        ensure(stray.is_none(), || format!("a heavy slot holds {stray:?}, of {keys} keys"))?;

        let new = self.open.first_new;
        ensure(new <= columns, || format!("{new} columns at the last cut, {columns} now"))?;
        let late = self.open.late.iter().find(|&&late| !column(late) || (late.0 as usize) < new);
        ensure(late.is_none(), || format!("{late:?} is said to be late, but columns {new} to {columns} are new"))?;
        check_in_order(&self.open.late)?;
        let found = self.open.found_again;
        ensure(found <= columns, || format!("{found} keys found again, of {columns}"))?;
        let evicted = self.open.evicted.iter().all(|&(id, _)| column(id));
        let changed = self.open.heavy_changes.iter().all(|&(key, _)| known(key));
        ensure(evicted && changed, || "a key that is not known lost its heavy slot".into())?;
        ensure(self.cuts <= MOST_EVENTS, || format!("{} cuts", self.cuts))?;

        self.check_earlier()?;
        self.check_window()?;
        match &self.mode {
            Mode::Classic(_) => Ok(()),
            Mode::Learned { network, .. } => {
                let steps = network.solver().steps();
                ensure(steps <= MOST_EVENTS, || format!("{steps} training steps"))
            }
            Mode::Delta(delta) => {
                delta.totals.check(self, delta.pending())?;
                check_pending(delta.pending(), self)?;
                delta.series.check(self)
            }
        }
    }

    fn check_window(&self) -> Result<(), Inconsistent> {
        let window = &self.window;
        let counters = self.segment.cumulative().len();
        let length = if self.settings.decoder.is_trained() { self.settings.window } else { 0 };
        ensure(window.length() == length, || format!("a window of {}, not {length}", window.length()))?;
        // A change or a merge starts it again.
        ensure(window.seen() <= self.cuts, || format!("{} snapshots from {} cuts", window.seen(), self.cuts))?;
        ensure(window.len() as u64 == window.seen().min(length as u64), || {
            format!("{} snapshots in a window of {length} that saw {}", window.len(), window.seen())
        })?;
        for (at, snapshot) in window.iter().enumerate() {
            let held = snapshot.counters.len();
            let weight = snapshot.interval_weight;
            ensure(held == counters, || format!("{held} counters in snapshot {at} of {counters}"))?;
            ensure(weight.is_finite() && weight >= 0.0, || format!("a weight of {weight} in snapshot {at}"))?;
        }
        Ok(())
    }

    /// Checks a control plane whose data plane is elsewhere, as it stands at its last cut.
    pub fn check_at_cut(&self) -> Result<(), Inconsistent> {
        ensure(!self.since_cut, || "reports came after the last cut".into())?;
        self.check_against(self.registry.digest_key(), |peek| *peek = self.peek_at_cut())
    }

    /// Checks against what the data plane says of this moment: `peek` is asked for its
    /// [`peek`](ucl_data_plane::DataPlane::peek). `digest_key` is that of its hashes.
    pub fn check_against(&self, digest_key: DigestKey, peek: impl FnOnce(&mut Peek)) -> Result<(), Inconsistent> {
        ensure(self.registry.digest_key() == digest_key, || "the planes have digests of different keys".into())?;
        let mut peeked = Peek::default();
        peek(&mut peeked);
        let Peek { slots, exports: messages, open_export: _, counters, totals, complete: _ } = peeked;
        let CutTotals { items, weight, sketch_weight, smallest_weight, carries } = totals;
        let segment = &self.segment;
        let shape = &self.segment.config().shape;
        let OpenEpoch { items: items_before, weight: weight_before, .. } = self.open;
        ensure(items_before <= items && weight_before <= weight, || {
            format!("{items_before} items (weight {weight_before}) up to the last cut, {items} ({weight}) up to now")
        })?;
        let closed = segment.sketch_weight();
        ensure(segment.carries() == carries, || format!("carries of {} arrived, of {carries}", segment.carries()))?;
        let Some(open_weight) = sketch_weight.checked_sub(closed) else {
            return Err(Inconsistent(format!(
                "{closed} entered the sketch up to the last cut, {sketch_weight} up to now"
            )));
        };
        let inconsistent = |error: ReportError| Inconsistent(error.to_string());
        // Modulo 2^64, as the segment's own sums; a counter that is out of range is refused next.
        let mut counters = segment.open_counters(&totals, counters).map_err(inconsistent)?;
        check_rows(&counters, shape, open_weight)?;
        ensure(self.open.smallest_weight <= weight, || format!("a smallest weight of {}", self.open.smallest_weight))?;
        let entered = self.keys.iter().any(|key| key.entered());
        ensure(!entered || sketch_weight >= smallest_weight, || {
            format!(
                "keys entered the sketch, but only {sketch_weight} did, and no item has less than {smallest_weight}"
            )
        })?;

        // Once the changed slots are taken over, the mirror must be what the heavy part is.
        let mut open = self.open.clone();
        let mut evicted = Vec::new();
        for (slot, holder, count) in slots {
            let known = holder.is_some() || open.heavy.holds(slot) || count == 0;
            ensure(known, || format!("slot {slot} changed, but is not held"))?;
            let holder = holder.map(|identity| self.registry.find(&identity).unwrap_or(KeyId(u32::MAX)));
            let entered = open.take_slot(slot, holder, count).map_err(inconsistent)?;
            // One that brings nothing may not be known yet.
            evicted.extend(entered.filter(|former| former.count > 0));
        }
        let mut registry = Registry::beyond(&self.registry);
        let exports = self.exports_at(&messages, &mut registry, &mut open).map_err(inconsistent)?;
        let held = exports.map_or_else(|| open.heavy.weight(), |exports| Some(exports.weight()));
        let in_heavy = self.weight_in_heavy(weight, sketch_weight);
        ensure(held == in_heavy, || format!("the heavy part holds {in_heavy:?}, its mirror {held:?}"))?;
        evicted.extend(open.take_missing());
        let floors = self.keys.iter().map(|key| key.floor()).chain(evicted.iter().map(|held| held.count));
        let floors = floors.into_iter().try_fold(0u64, |sum, floor| sum.checked_add(floor));
        ensure(floors.is_some_and(|sum| sum <= sketch_weight), || {
            format!("keys have {floors:?} at least once this epoch ends, but {sketch_weight} entered the sketch")
        })?;
        if !shape.signed() {
            for held in evicted {
                let column = segment.positions(self.registry.identity_of(held.key));
                take_off(&mut counters, column.indices(), held.count)?;
            }
        }
        Ok(())
    }
}

/// Takes what an evicted key brought off its counters, which must have it.
fn take_off(counters: &mut [i64], indices: &[u32], count: u64) -> Result<(), Inconsistent> {
    for &at in indices {
        let left = i64::try_from(count).ok().and_then(|count| counters[at as usize].checked_sub(count));
        ensure(left.is_some_and(|left| left >= 0), || {
            format!("an evicted key brought {count}, but counter {at} has not")
        })?;
        counters[at as usize] = left.unwrap_or_default();
    }
    Ok(())
}

impl Totals {
    fn check(&self, control: &ControlPlane, pending: &[Epoch]) -> Result<(), Inconsistent> {
        let want = control.open.first_new;
        let most = control.segment.sketch_weight();
        let [estimates, uppers] = self.sums().lengths();
        let lengths = estimates == want && uppers == want;
        ensure(lengths, || format!("sums of {estimates} and {uppers} columns, of {want}"))?;
        let sums = self.sums();
        let odd =
            sums.iter().map(|(estimate, _)| estimate).find(|estimate| !(estimate.is_finite() && *estimate >= 0.0));
        ensure(odd.is_none(), || format!("an estimate of {odd:?}"))?;
        let beyond = sums.iter().map(|(_, upper)| upper).find(|&upper| upper > most);
        ensure(beyond.is_none(), || format!("an upper bound of {beyond:?}, but {most} entered the sketch"))?;
        ensure(self.unexplained() <= most, || format!("{} unexplained, of {most}", self.unexplained()))?;
        ensure(self.checked().is_sound(), || format!("the checks of epochs add up to {:?}", self.checked()))?;
        self.doubts().check(want)?;
        let epochs = self.epochs().saturating_add(pending.len() as u64);
        ensure(epochs <= control.cuts(), || format!("{epochs} epochs from {} cuts", control.cuts()))
    }
}

fn check_pending(pending: &[Epoch], control: &ControlPlane) -> Result<(), Inconsistent> {
    let segment = &control.segment;
    let keys = control.registry.len();
    let shape = &segment.config().shape;
    let columns = control.open.first_new;
    ensure(pending.len() <= WAITING, || format!("{} epochs wait, but at most {WAITING} can", pending.len()))?;
    let mut before = 0;
    let mut items = 0;
    let mut weights = 0u64;
    for epoch in pending {
        epoch.counters.check(segment.cumulative().len())?;
        let counters = epoch.counters.unpack();
        let first = epoch.first_new;
        let known = epoch.known;
        let grows = before <= first && first <= known && known as usize <= columns;
        ensure(grows, || format!("an epoch of columns up to {known}, new from {first}, after {before}, of {columns}"))?;
        let in_order = items <= epoch.items && epoch.items <= control.open.items;
        ensure(in_order, || format!("an epoch ended at item {}, after {items}", epoch.items))?;
        (before, items) = (known, epoch.items);
        let sum = weights.checked_add(epoch.weight).filter(|&sum| sum <= segment.sketch_weight());
        let Some(sum) = sum else {
            return Err(Inconsistent("epochs that wait have more weight than entered the sketch".into()));
        };
        weights = sum;
        check_rows(&counters, shape, epoch.weight)?;
        check_changes(epoch, counters, segment, keys)?;
    }
    Ok(())
}

/// Columns are numbered as they come, so late ones too come one after the other.
fn check_in_order(late: &[ColumnId]) -> Result<(), Inconsistent> {
    ensure(late.is_sorted_by(|a, b| a < b), || format!("{} late columns are not in their order", late.len()))
}

fn check_changes(epoch: &Epoch, mut counters: Vec<i64>, segment: &Segment, keys: usize) -> Result<(), Inconsistent> {
    for &(column, count) in &epoch.evicted {
        ensure(column.0 < epoch.known, || format!("{column:?} was evicted, of {}", epoch.known))?;
        take_off(&mut counters, segment.columns().indices(column), count)?;
    }
    let odd = epoch.late.iter().find(|late| !(epoch.first_new..epoch.known).contains(&late.0));
    ensure(odd.is_none(), || format!("{odd:?} came late, of {} to {}", epoch.first_new, epoch.known))?;
    check_in_order(&epoch.late)?;
    let stray = epoch.heavy.iter().find(|(key, _)| key.0 as usize >= keys);
    ensure(stray.is_none(), || format!("{stray:?} changed in the heavy part, of {keys} keys"))
}

impl Series {
    fn check(&self, control: &ControlPlane) -> Result<(), Inconsistent> {
        let (retention, want) = (self.retention(), control.settings.retain_epochs);
        ensure(retention == want, || format!("{retention} epochs are kept, not {want}"))?;
        // Two series that were merged are as long as the longer one.
        let held = self.len();
        let cuts = if want == 0 { 0 } else { control.cuts };
        let all = held <= want && self.dropped().checked_add(held as u64).is_some_and(|epochs| epochs <= cuts);
        ensure(all, || format!("{held} epochs are kept and {} dropped, of {cuts}", self.dropped()))?;
        let keys = control.registry.len();
        for epoch in self.epochs(..) {
            let mut last = None;
            let mut sound = true;
            for (key, count) in epoch.iter() {
                sound &= last < Some(key) && (key.0 as usize) < keys && count.is_finite();
                last = Some(key);
            }
            sound &= epoch.items <= control.open.items;
            ensure(sound, || format!("the epoch that ended at item {} has keys that are not known", epoch.items))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ucl_data_plane::{Base, BloomKind, CounterBits, DataPlane, HeavyKind, KeyFormat, ReportRule};

    use super::*;
    use crate::decoder::DecoderKind;

    /// Delta adds up by the order of columns: a state that breaks it must not come so far.
    #[test]
    fn late_columns_in_another_order_are_refused() {
        let shape = Shape {
            heavy: HeavyKind::Voting,
            slots: 1,
            vote_ratio: 1,
            base: Base::CountMin,
            rows: 3,
            width: 50,
            counter_bits: CounterBits::B8,
            bloom: BloomKind::Classic,
            bloom_bits: 4_096,
            bloom_hashes: 2,
        };
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
        let settings = Settings { decoder: DecoderKind::Delta, ..Settings::default() };
        let (mut data, mut control) =
            (DataPlane::<4>::new(config).unwrap(), ControlPlane::new(config, settings).unwrap());
        fn last(control: &mut ControlPlane) -> &mut Epoch {
            let Mode::Delta(delta) = &mut control.mode else { unreachable!("delta") };
            delta.last_pending().expect("an epoch that waits")
        }
        for key in 0..40u32 {
            data.insert(&key.to_le_bytes(), 1, &mut control).unwrap();
        }
        data.cut(&mut control);
        let &mut Epoch { first_new, known, .. } = last(&mut control);
        assert!(first_new + 1 < known, "two columns are new");
        let late = |at: [u32; 2]| at.map(|at| ColumnId(first_new + at)).to_vec();
        last(&mut control).late = late([0, 1]);
        assert_eq!(control.check(), Ok(()));
        for at in [[1, 0], [1, 1]] {
            last(&mut control).late = late(at);
            assert_eq!(control.check().unwrap_err().0, "2 late columns are not in their order");
        }
        // The same of those that no cut has closed yet.
        last(&mut control).late.clear();
        for key in 100..140u32 {
            data.insert(&key.to_le_bytes(), 1, &mut control).unwrap();
        }
        let open = |control: &ControlPlane, at: [usize; 2]| {
            at.map(|at| ColumnId((control.open.first_new + at) as u32)).to_vec()
        };
        control.open.late = open(&control, [0, 1]);
        assert_eq!(control.check(), Ok(()));
        control.open.late = open(&control, [1, 0]);
        assert_eq!(control.check().unwrap_err().0, "2 late columns are not in their order");
    }
}
