//! Delta: every epoch decoded on its own, and added up.
//!
//! The difference of two successive cuts is the same system `y = A x` for just the items in
//! between, and far sparser: most known keys have an empty counter, and are out. What is left often
//! *peels* (a counter with a single candidate is that key's count), and EM needs to share out only
//! the rest. The sum over epochs is the estimate.
//!
//! For one epoch:
//!
//! 1. **What is known is taken off.** A key that held a heavy slot at the last cut and lost it
//!    since went into the sketch with at least the count it had then.
//! 2. **Candidates**: keys known by the end of the epoch whose counters all changed; of those that
//!    became known later in the block, the ones that the filter had lost.
//! 3. **Peeling** gives exact counts as far as it goes.
//! 4. **EM** on the rest, from the running rate: a key's mean per epoch so far + 0.01, at most its
//!    smallest counter; + 1 if it was first reported in this epoch. The start is the prior.
//!
//! The rates are frozen for a block of [`BLOCK`] epochs (of long ones fewer: [`ROOM`]), so that a
//! block decodes in parallel and the answer does not depend on the number of threads.
//!
//! **Bounds.** In one epoch a key cannot have more than its smallest counter holds; over epochs the
//! minima add up, which is far tighter than the minimum of the sums. A key that the Bloom filter
//! did not have when it was reported was never in the sketch before. For one that the filter lost
//! at first and that became known later, the cumulative counters at that time stand in for the
//! epochs before.
//!
//! **Likely ranges** (`doubt.rs`) are much narrower: an epoch that peeled whole has one solution,
//! and others leave doubts about few of their keys.
//!
//! **Limits.** Mass of lost keys ends up with known keys that share counters with them, except
//! where it can be told: a counter without a candidate, and peels that would leave a counter
//! negative, are counted as *unexplained*.

mod decode;
mod doubt;
mod slices;
mod sums;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Memory, ReportRule};
use ucl_equations::sparse::Candidates;
use ucl_equations::{ColumnId, Columns, em};

use self::decode::{BlockDecoder, Decoded, Search};
pub use self::doubt::Doubts;
use self::slices::Slices;
pub(crate) use self::sums::Sums;
use crate::decoder::DecodeError;
use crate::open_epoch::EpochChanges;
use crate::packed::Packed;
use crate::plane::least;
use crate::registry::KeyId;
use crate::segment::{EpochCounters, Segment};
use crate::series::{EpochCounts, Series};
use crate::tally::Tally;

/// Epochs that share one set of rates, at most. One of them is decoded a second time, for the
/// check: 16 pieces of work, as many for each of 2, 4 or 8 threads. (With 16 epochs one of two
/// threads was idle for half a piece: 1.75 times the speed of one in place of 1.82.)
pub const BLOCK: usize = 15;

/// Epochs of full blocks that wait for each other, at most: with them, those of a block that is not
/// full, and an open one, can be searched in one go.
pub const WAITING: usize = Candidates::MOST_EPOCHS - BLOCK - 1;

/// Full blocks wait for others while there are more than so many known keys for each counter that
/// they touch. To find its candidates a block reads the counters of every known key. Where many
/// keys are known and epochs are short, that would be most of the work: it is done for several
/// blocks in one go. Reading one key takes about a tenth of the time in which a touched counter is
/// decoded.
const KEYS_PER_COUNTER: usize = 4;

/// A block has so many epochs at least: enough for some threads.
const BLOCK_AT_LEAST: usize = 3;

/// Memory per known key, in bytes, for epochs that wait to be decoded; a block is full that would
/// take more with another epoch. (How long blocks are hardly matters for errors: on real and
/// made-up streams they were the same within one percent with blocks of 1 to 16.)
pub const ROOM: usize = 12;

/// Delta's decoder.
#[derive(Clone, Debug)]
pub(crate) struct Delta {
    pub totals: Totals,
    /// Closed epochs that wait: those of full blocks, and then of one that is not full.
    pending: Vec<Epoch>,
    /// Epochs of full blocks.
    full: usize,
    pub series: Series,
    /// Columns read so far in searches for candidates; not part of a state.
    pub columns_read: u64,
    slices: Slices,
}

impl Delta {
    pub fn new(retain_epochs: usize) -> Self {
        Self::restored(Totals::default(), Vec::new(), Series::new(retain_epochs))
    }

    /// Continues with what a state has.
    pub fn restored(totals: Totals, pending: Vec<Epoch>, series: Series) -> Self {
        let full = blocks(&pending).take_while(|block| is_full(block)).map(<[Epoch]>::len).sum();
        Self { totals, pending, full, series, columns_read: 0, slices: Slices::None }
    }

    /// Closed epochs that wait.
    pub fn pending(&self) -> &[Epoch] {
        &self.pending
    }

    /// The last epoch that waits, to damage it.
    #[cfg(test)]
    pub fn last_pending(&mut self) -> Option<&mut Epoch> {
        self.pending.last_mut()
    }

    /// Adds an epoch that was just closed, `weight` of which entered the sketch. While `lagging`,
    /// it is added to the one before it that still waits.
    pub fn push(
        &mut self,
        segment: &Segment,
        changes: EpochChanges,
        weight: u64,
        counters: EpochCounters<'_>,
        lagging: bool,
    ) {
        let cumulative = |at| segment.cumulative().get(at);
        self.totals.push_new(segment.columns(), &changes, |at| counters.get(at), cumulative);
        let epoch = Epoch::new(changes, weight, counters.pack(), segment.config().rule);
        let waiting = self.pending.len();
        match self.pending.last_mut() {
            Some(last) if lagging && self.full < waiting => {
                let new = last.first_new..last.known;
                self.totals.new_in_the_first_part(segment.columns(), new, |at| epoch.counters.get(at));
                last.add(epoch);
            }
            _ => self.pending.push(epoch),
        }
    }

    /// Its parts for a state.
    pub fn into_parts(self) -> (Totals, Vec<Epoch>, Series) {
        (self.totals, self.pending, self.series)
    }

    /// Decodes all epochs that wait.
    pub fn decode_pending(&mut self, segment: &Segment, options: &em::Options) -> Result<(), DecodeError> {
        let epochs: Vec<&Epoch> = self.pending.iter().collect();
        self.totals.add_blocks(segment, &blocks_of(&self.pending, &epochs), options, &mut self.series)?;
        self.columns_read += if epochs.is_empty() { 0 } else { segment.columns().len() as u64 };
        self.pending.clear();
        self.full = 0;
        self.slices = Slices::None;
        Ok(())
    }

    /// Decodes the epochs that wait, and with them the open one, of which these are the counters;
    /// `cumulative` are those of the whole segment. Nothing changes by it.
    pub fn with_open(
        &self,
        segment: &Segment,
        changes: EpochChanges,
        weight: u64,
        counters: &[i64],
        cumulative: &Tally,
        options: &em::Options,
    ) -> Result<(Totals, Series), DecodeError> {
        // An epoch has about half as many candidates as it touches counters.
        let touched = counters.iter().filter(|&&counter| counter != 0).count()
            + self.pending.iter().map(|epoch| epoch.counters.touched().count()).sum::<usize>();
        let sums = self.totals.sums.ahead(touched / 2);
        let mut totals = Totals { sums, doubts: self.totals.doubts.clone(), ..self.totals };
        let mut series = self.series.clone();
        totals.push_new(segment.columns(), &changes, |at| counters[at], |at| cumulative.get(at));
        let without_items = changes.is_without_items();
        // Right after a cut there is no open epoch to speak of.
        let quiet = without_items && changes.heavy.is_empty() && counters.iter().all(|&counter| counter == 0);
        let open = (!quiet).then(|| Epoch::new(changes, weight, Packed::new(counters), segment.config().rule));
        let epochs: Vec<&Epoch> = self.pending.iter().chain(&open).collect();
        totals.add_blocks(segment, &blocks_of(&self.pending, &epochs), options, &mut series)?;
        if open.is_some() && without_items {
            series.fold_last();
        }
        Ok((totals, series))
    }

    pub fn add_memory(&self, memory: &mut Memory) {
        memory.add("totals", self.totals.memory());
        memory.add("series", self.series.memory());
        memory.add("pending epochs", self.pending.iter().map(Epoch::memory).sum());
    }
}

/// A closed epoch that waits for its block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Epoch {
    /// The epoch's own counters.
    pub counters: Packed,
    /// The weight that entered the sketch.
    pub weight: u64,
    /// Columns known at its end.
    pub known: u32,
    /// The first of them that was reported in this epoch.
    pub first_new: u32,
    /// New columns whose keys the Bloom filter had lost, and that are looked for in the epochs
    /// before ([`worth_a_look`]).
    pub late: Vec<ColumnId>,
    /// Columns of keys that lost their heavy slot, with the count they held at the last cut.
    pub evicted: Vec<(ColumnId, u64)>,
    /// Changes of the heavy part, by key.
    pub heavy: Vec<(KeyId, i64)>,
    /// Items inserted before it ended.
    pub items: u64,
}

/// The late columns whose keys are looked for in the epochs before. Once a filter has been emptied
/// every new key is late, for it may have been lost before; but hardly any was, and candidates that
/// cannot be told apart would only blur the others.
fn worth_a_look(rule: ReportRule, late: Vec<ColumnId>) -> Vec<ColumnId> {
    if matches!(rule, ReportRule::Rotate | ReportRule::Generations) { Vec::new() } else { late }
}

/// The blocks of epochs that wait: full ones, and then one that is not, if there are more.
fn blocks(mut pending: &[Epoch]) -> impl Iterator<Item = &[Epoch]> {
    std::iter::from_fn(move || {
        let full = (1..=pending.len()).find(|&len| is_full(&pending[..len]));
        let (block, rest) = pending.split_at(full.unwrap_or(pending.len()));
        pending = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// The same for references to them. An open epoch after them is part of the last block, unless that
/// is full.
fn blocks_of<'a, 'b>(pending: &[Epoch], epochs: &'a [&'b Epoch]) -> Vec<&'a [&'b Epoch]> {
    let mut rest = epochs;
    let mut split = Vec::new();
    for full in blocks(pending).filter(|block| is_full(block)) {
        let (block, others) = rest.split_at(full.len());
        split.push(block);
        rest = others;
    }
    split.extend((!rest.is_empty()).then_some(rest));
    split
}

fn is_full(pending: &[Epoch]) -> bool {
    let bytes: usize = pending.iter().map(Epoch::memory).sum();
    let known = pending.last().map_or(0, |last| last.known);
    let epochs = pending.len();
    let pieces = epochs + 1;
    let no_room = bytes + bytes / epochs.max(1) > ROOM * known as usize;
    epochs >= BLOCK || epochs >= BLOCK_AT_LEAST && pieces.is_multiple_of(2) && no_room
}

impl Epoch {
    fn new(changes: EpochChanges, weight: u64, counters: Packed, rule: ReportRule) -> Self {
        let EpochChanges { items_before: _, items, known, first_new, late, evicted, heavy } = changes;
        let late = worth_a_look(rule, late);
        Self { counters, weight, known, first_new, late, evicted, heavy, items }
    }

    /// Whether what it gave a column adds to its bound. A key first reported in this epoch, or
    /// later, already has its bound from the counters.
    pub fn may_raise(&self, column: ColumnId) -> bool {
        column.0 < self.first_new
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        let changes = size_of_val(&self.late[..]) + size_of_val(&self.evicted[..]) + size_of_val(&self.heavy[..]);
        self.counters.memory() + changes
    }

    /// Adds the next epoch to this one: both are linear, so they are one longer epoch.
    pub fn add(&mut self, next: Self) {
        let sums: Vec<i64> = self.counters.unpack().iter().zip(next.counters.unpack()).map(|(a, b)| a + b).collect();
        self.counters = Packed::new(&sums);
        self.weight += next.weight;
        self.known = next.known;
        self.late.extend(next.late);
        self.evicted.extend(next.evicted);
        self.heavy.extend(next.heavy);
        self.items = next.items;
    }
}

/// The running sums.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    sums: Sums,
    epochs: u64,
    unexplained: u64,
    checked: Checked,
    /// Epochs that were too full to be solved. A state does not have them.
    #[serde(skip)]
    crowded: u64,
    /// A section of its own in states.
    #[serde(skip)]
    doubts: Doubts,
}

/// What the checks of single epochs add up to ([`self_check`](crate::self_check)).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Checked {
    /// The weight of the rows left out.
    weight: f64,
    /// What of it was predicted in the wrong counters.
    missed: f64,
}

impl Checked {
    pub fn add(&mut self, other: Self) {
        self.weight += other.weight;
        self.missed += other.missed;
    }

    /// Returns true if sums of weights can come to it.
    pub fn is_sound(&self) -> bool {
        [self.weight, self.missed].iter().all(|sum| sum.is_finite() && *sum >= 0.0)
    }

    /// The share of the weight that was predicted wrongly.
    pub fn share(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.missed / self.weight)
    }
}

impl Totals {
    /// What was decoded of each column so far, and upper bounds.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    pub fn into_sums(self) -> Sums {
        self.sums
    }

    /// Returns how far the estimates may be off.
    pub fn doubts(&self) -> &Doubts {
        &self.doubts
    }

    /// The doubts as a state has them. Versions that do not have them did decode epochs.
    pub fn with_doubts(self, doubts: Option<Doubts>) -> Self {
        let nothing = || if self.epochs == 0 { Doubts::default() } else { Doubts::untold() };
        Self { doubts: doubts.unwrap_or_else(nothing), ..self }
    }

    /// Epochs decoded.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }

    /// Epochs decoded that were too full to be solved, since the state was read if one was.
    pub fn crowded(&self) -> u64 {
        self.crowded
    }

    pub fn checked(&self) -> Checked {
        self.checked
    }

    /// Hands over the sums, and starts again from zero for other columns; how well epochs were
    /// decoded stays.
    pub fn restart(&mut self) -> Self {
        let Self { checked, crowded, .. } = *self;
        std::mem::replace(self, Self { checked, crowded, ..Self::default() })
    }

    /// The new columns of an epoch that just ended are there from now on. Their keys can have had
    /// what its `counters` allow; the late ones, which may have been in the sketch before, what the
    /// `cumulative` ones do.
    fn push_new(
        &mut self,
        columns: &Columns,
        changes: &EpochChanges,
        counters: impl Fn(usize) -> i64,
        cumulative: impl Fn(usize) -> i64,
    ) {
        let known = changes.known as usize;
        for column in (self.sums.len()..known).map(|column| ColumnId(column as u32)) {
            self.sums.push(0.0, least(columns.indices(column), &counters));
        }
        for &column in &changes.late {
            self.sums.change(column, |_, upper| *upper = least(columns.indices(column), &cumulative));
        }
    }

    /// An epoch with these counters is added to one in which these columns were new. Their bounds
    /// have what the first part allows, and the sum of both will add nothing to them: they get what
    /// the second part allows now.
    fn new_in_the_first_part(&mut self, columns: &Columns, new: Range<u32>, counters: impl Fn(usize) -> i64) {
        for column in new {
            let more = least(columns.indices(ColumnId(column)), &counters);
            self.sums.change(ColumnId(column), |_, upper| *upper += more);
        }
    }

    /// Decodes blocks of epochs of a segment, the epochs of each in parallel, and adds them up;
    /// `series` gets each epoch's counts.
    fn add_blocks(
        &mut self,
        segment: &Segment,
        blocks: &[&[&Epoch]],
        options: &em::Options,
        series: &mut Series,
    ) -> Result<(), DecodeError> {
        if blocks.is_empty() {
            return Ok(());
        }
        // One way into the thread pool, and not one for every step: each would wait for the threads
        // to wake up.
        rayon::scope(|_| {
            let search = Search::new(segment, blocks)?;
            let mut before = 0;
            for block in blocks {
                self.add_block(segment, block, &search, before, options, series)?;
                before += block.len();
            }
            Ok(())
        })
    }

    /// Decodes a block of a search, with so many epochs before it, and adds it up.
    fn add_block(
        &mut self,
        segment: &Segment,
        block: &[&Epoch],
        search: &Search,
        before: usize,
        options: &em::Options,
        series: &mut Series,
    ) -> Result<(), DecodeError> {
        let decoded = self.decode(segment, block, search, before, options)?;
        self.note(segment.keys(), block, decoded, series);
        Ok(())
    }

    /// Counts the epochs of a block, and keeps their counts in `series`.
    fn note(&mut self, keys: &[KeyId], block: &[&Epoch], decoded: Vec<Decoded>, series: &mut Series) {
        for (epoch, decoded) in block.iter().zip(decoded) {
            self.unexplained += decoded.unexplained;
            self.crowded += u64::from(decoded.crowded);
            self.epochs += 1;
            decoded.doubts.iter().for_each(|&(column, doubt)| self.doubts.add(column, doubt));
            if series.retention() > 0 {
                let key = |column: ColumnId| keys[column.0 as usize];
                let sketch =
                    decoded.candidates.iter().zip(&decoded.values).map(|(&column, &value)| (key(column), value));
                let evicted = epoch.evicted.iter().map(|&(column, count)| (key(column), count as f64));
                let heavy = epoch.heavy.iter().map(|&(key, change)| (key, change as f64));
                series.push(EpochCounts::new(epoch.items, sketch.chain(evicted).chain(heavy).collect()));
            }
        }
    }

    fn decode(
        &mut self,
        segment: &Segment,
        block: &[&Epoch],
        search: &Search,
        before: usize,
        options: &em::Options,
    ) -> Result<Vec<Decoded>, DecodeError> {
        let decoder = BlockDecoder::new(segment, block, search, before, self, options);
        let (decoded, checked) = rayon::join(|| decoder.decode(), || decoder.check());
        let decoded = decoded?;
        self.checked.add(checked?);
        self.sums.add(block, &decoded);
        Ok(decoded)
    }

    /// Adds the totals of another stream. `columns` has those of both, ours first, and `theirs` the
    /// other one's number of each. A key that has no column on one side may still have weight
    /// there: at most what that side's counters (`alone`, `their_counters`) allow.
    pub fn merge(
        &mut self,
        alone: &Tally,
        other: &Self,
        their_counters: &Tally,
        columns: &Columns,
        theirs: &[Option<ColumnId>],
    ) {
        let mut ours = vec![None; other.sums.len()];
        for (column, theirs) in (0..columns.len()).zip(theirs) {
            let id = ColumnId(column as u32);
            let indices = columns.indices(id);
            if column == self.sums.len() {
                self.sums.push(0.0, least(indices, |at| alone.get(at)));
            }
            let (more, most) = match theirs {
                Some(theirs) => {
                    ours[theirs.0 as usize] = Some(id);
                    other.sums.get(theirs.0 as usize)
                }
                None => (0.0, least(indices, |at| their_counters.get(at))),
            };
            self.sums.change(id, |estimate, upper| {
                *estimate += more;
                *upper += most;
            });
        }
        let ours = |theirs: ColumnId| ours.get(theirs.0 as usize).copied().flatten();
        self.doubts.merge(&other.doubts, ours);
        self.epochs += other.epochs;
        self.unexplained += other.unexplained;
        self.crowded += other.crowded;
        self.checked.add(other.checked);
    }

    /// The running rate of a column, per epoch.
    fn rate(&self, column: usize) -> f64 {
        if self.epochs == 0 { 0.0 } else { self.sums.estimate(column) / self.epochs as f64 }
    }

    pub fn memory(&self) -> usize {
        self.sums.memory() + self.doubts.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(counters: usize, known: u32) -> Epoch {
        let (late, evicted, heavy) = (Vec::new(), Vec::new(), Vec::new());
        let counters = Packed::new(&vec![1; counters]);
        Epoch { counters, weight: 0, known, first_new: known, late, evicted, heavy, items: 0 }
    }

    /// Two counters take a byte.
    #[test]
    fn a_block_is_full_by_number_or_by_room() {
        let full = |epochs: usize, counters: usize, known: u32| is_full(&vec![epoch(counters, known); epochs]);
        assert!(!full(0, 1, 1) && !full(14, 10, 1_000) && full(15, 10, 1_000));
        assert!(!full(7, 300, 100) && full(9, 300, 100), "1,200 bytes for 100 keys are not too much, 1,350 are");
        assert!(full(7, 302, 100), "8 epochs would take 1,208 bytes");
        assert!(!full(2, 30_000, 100) && full(3, 30_000, 100), "but there is something to share out");
        assert!(!full(8, 300, 100), "with the check there would be 9 pieces");
    }
}
