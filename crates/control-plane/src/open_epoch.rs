//! The open epoch: what the reports since the last cut have brought, beside counters and keys.
//!
//! A cut runs it in place ([`ControlPlane::accept`](crate::ControlPlane::accept)). A view runs the
//! same code on a clone, because asking must change nothing
//! ([`ControlPlane::view`](crate::ControlPlane::view)).

use std::ops::RangeFrom;

use ucl_data_plane::{CutTotals, OutOfMemory};
use ucl_equations::ColumnId;

use crate::heavy::{HeavyMirror, Held};
use crate::registry::{KeyId, Registry};
use crate::segment::{ReportError, Segment};

#[derive(Clone, Debug)]
pub(crate) struct OpenEpoch {
    /// Items inserted before it began.
    pub items: u64,
    /// The weight of those items.
    pub weight: u64,
    /// The smallest weight of those items.
    pub smallest_weight: u64,
    /// Columns before it began: those beyond are new.
    pub first_new: usize,
    /// New columns whose keys may have been in the sketch before: the Bloom filter had lost them.
    pub late: Vec<ColumnId>,
    /// Keys that the Bloom filter had lost, or may have lost, that became known all the same: in
    /// this segment.
    pub found_again: usize,
    /// The heavy part as of the last cut, and of the slots that were reported since.
    pub heavy: HeavyMirror,
    /// Changes of the heavy part, by key.
    pub heavy_changes: Vec<(KeyId, i64)>,
    /// Keys that lost their heavy slot, with what they held before.
    pub evicted: Vec<(ColumnId, u64)>,
    /// Content of the heavy part before it changed, until a cut tells who is still there.
    pub moved: Vec<Held>,
}

/// What a closed epoch has brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochChanges {
    /// Items inserted before it began.
    pub items_before: u64,
    /// Items inserted before it ended.
    pub items: u64,
    /// Columns known at its end, the new ones from `first_new`.
    pub known: u32,
    pub first_new: u32,
    pub late: Vec<ColumnId>,
    pub evicted: Vec<(ColumnId, u64)>,
    pub heavy: Vec<(KeyId, i64)>,
}

impl EpochChanges {
    /// Returns true if the epoch has no item.
    pub fn is_without_items(&self) -> bool {
        self.items == self.items_before
    }
}

impl OpenEpoch {
    /// The first epoch of a stream.
    pub fn new(slots: u32) -> Result<Self, OutOfMemory> {
        Ok(Self {
            items: 0,
            weight: 0,
            smallest_weight: 0,
            first_new: 0,
            late: Vec::new(),
            found_again: 0,
            heavy: HeavyMirror::new(slots)?,
            heavy_changes: Vec::new(),
            evicted: Vec::new(),
            moved: Vec::new(),
        })
    }

    /// Returns true if the epoch shows no trace of a report, when the segment has this many
    /// columns.
    pub fn is_fresh(&self, columns: usize) -> bool {
        self.first_new == columns
            && self.late.is_empty()
            && self.heavy_changes.is_empty()
            && self.evicted.is_empty()
            && self.moved.is_empty()
    }

    /// Adds a column for the key, unless it has one. A key that is not `fresh` may have been in the
    /// sketch before.
    pub fn give_column(&mut self, key: KeyId, identity: &[u8], fresh: bool, segment: &mut Segment) -> ColumnId {
        let before = segment.columns().len();
        let column = segment.ensure_column(key, identity);
        if !fresh && column.0 as usize == before {
            self.late.push(column);
            self.found_again += 1;
        }
        column
    }

    /// Gives keys of a mirrored table that became known a column each, if a sketch is behind the
    /// table: it may absorb them at any time without a word, and may have before.
    pub fn give_columns(&mut self, new: RangeFrom<usize>, keys: &Registry, segment: &mut Segment) {
        if segment.config().shape.absorbs() {
            for key in (new.start as u32..keys.len() as u32).map(KeyId) {
                self.give_column(key, keys.identity_of(key), false, segment);
            }
        }
    }

    /// Applies the report of a slot; returns the keys that are known to be in the sketch by it.
    pub fn take_slot(
        &mut self,
        slot: u32,
        holder: Option<KeyId>,
        count: u64,
    ) -> Result<impl Iterator<Item = Held> + use<>, ReportError> {
        if slot as usize >= self.heavy.len() {
            return Err(ReportError::Slot { slot, slots: self.heavy.len() as u32 });
        }
        self.heavy.report(slot).map_err(|before| ReportError::SlotOrder { slot, before })?;
        let former = self.heavy.change(slot, holder, count, &mut self.heavy_changes);
        // Who holds a slot with nothing in it was flushed, or exchanged in: all it has is in the
        // sketch.
        let flushed = holder.filter(|_| count == 0).map(|key| Held { key, count });
        Ok(former.into_iter().chain(flushed))
    }

    /// All slots were reported; returns the keys that were in the heavy part before it changed, and
    /// are no longer.
    pub fn take_missing(&mut self) -> Vec<Held> {
        self.heavy.missing(&std::mem::take(&mut self.moved))
    }

    /// A key lost its place in the heavy part: it is in the sketch, even if the Bloom filter kept
    /// its name from us then.
    pub fn enter_sketch(&mut self, former: Held, identity: &[u8], segment: &mut Segment) {
        let column = self.give_column(former.key, identity, false, segment);
        if former.count > 0 {
            self.evicted.push((column, former.count));
        }
    }

    /// Ends the epoch with a cut, when the segment has this many columns. The next one begins.
    pub fn close(&mut self, totals: &CutTotals, columns: usize) -> EpochChanges {
        let first_new = std::mem::replace(&mut self.first_new, columns);
        let items_before = std::mem::replace(&mut self.items, totals.items);
        self.weight = totals.weight;
        self.smallest_weight = totals.smallest_weight;
        EpochChanges {
            items_before,
            items: totals.items,
            known: columns as u32,
            first_new: first_new as u32,
            late: std::mem::take(&mut self.late),
            evicted: std::mem::take(&mut self.evicted),
            heavy: std::mem::take(&mut self.heavy_changes),
        }
    }

    /// The first epoch of another segment: no column is there yet, and the new Bloom filter has
    /// lost no key. Who still holds a slot will be told at the next cut; until then nobody does.
    pub fn open_segment(&mut self, slots: u32) -> Result<(), OutOfMemory> {
        let next = Self::new(slots)?;
        let moved: Vec<Held> = self.heavy.iter().collect();
        let mut heavy_changes = std::mem::take(&mut self.heavy_changes);
        heavy_changes.extend(moved.iter().map(leaves));
        let Self { items, weight, smallest_weight, .. } = *self;
        *self = Self { items, weight, smallest_weight, heavy_changes, moved, ..next };
        Ok(())
    }

    /// Adds the open epoch of another stream, of which a cut has just been made too. `id` numbers
    /// its keys here, where the segment of both has this many columns.
    pub fn merge(&mut self, other: &Self, columns: usize, id: impl Fn(KeyId) -> KeyId) {
        self.items += other.items;
        self.weight += other.weight;
        self.smallest_weight = match (self.smallest_weight, other.smallest_weight) {
            (0, weight) | (weight, 0) => weight,
            (ours, theirs) => ours.min(theirs),
        };
        self.first_new = columns;
        // Those that both found count twice.
        self.found_again = (self.found_again + other.found_again).min(columns);
        self.moved = other.heavy.iter().map(|held| Held { key: id(held.key), ..held }).collect();
        self.heavy_changes.extend(self.moved.iter().map(leaves));
    }
}

/// The change in the heavy part when a key leaves its slot.
fn leaves(held: &Held) -> (KeyId, i64) {
    (held.key, -(held.count as i64))
}
