//! A mirror of the heavy part, as of the last cut.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Memory, OutOfMemory, filled};

use crate::registry::KeyId;

/// A slot's holder and the exact weight it held: 0 if it was flushed or exchanged into the sketch,
/// and then it may be hit again without a word about who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    pub key: KeyId,
    pub count: u64,
}

/// Per slot, what the last cut said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HeavyMirror {
    slots: Vec<Option<Held>>,
    /// The last slot that was reported for the cut under way.
    #[serde(skip)]
    reported: Option<u32>,
}

impl HeavyMirror {
    pub fn new(slots: u32) -> Result<Self, OutOfMemory> {
        Ok(Self { slots: filled(slots as usize, None)?, reported: None })
    }

    /// Returns the number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// A slot is reported for the cut under way: those that changed are, in their order. The one
    /// before, if that is not so.
    pub fn report(&mut self, slot: u32) -> Result<(), u32> {
        let before = self.reported.replace(slot);
        before.filter(|&before| before >= slot).map_or(Ok(()), Err)
    }

    /// The cut came: all slots that changed were reported.
    pub fn settle(&mut self) {
        self.reported = None;
    }

    /// Returns the sum of all slots, unless it is beyond 64 bits.
    pub fn weight(&self) -> Option<u64> {
        self.iter().try_fold(0u64, |sum, held| sum.checked_add(held.count))
    }

    /// Returns true if the slot is held.
    pub fn holds(&self, slot: u32) -> bool {
        self.slots[slot as usize].is_some()
    }

    /// A slot changed. `holder` is given if it was taken since the last cut; the former holder,
    /// which was then evicted with at least the count it had, is returned. `changes` gets what each
    /// key gained or lost here.
    pub fn change(
        &mut self,
        slot: u32,
        holder: Option<KeyId>,
        count: u64,
        changes: &mut Vec<(KeyId, i64)>,
    ) -> Option<Held> {
        let entry = &mut self.slots[slot as usize];
        let former = entry.take();
        let key = holder.or(former.map(|held| held.key));
        *entry = key.map(|key| Held { key, count });
        changes.extend(former.map(|held| (held.key, -(held.count as i64))));
        changes.extend(entry.map(|held| (held.key, held.count as i64)));
        former.filter(|_| holder.is_some())
    }

    /// Returns those of `before` that hold nothing any more.
    pub fn missing(&self, before: &[Held]) -> Vec<Held> {
        if before.is_empty() {
            return Vec::new();
        }
        let holders: HashSet<KeyId> = self.iter().map(|held| held.key).collect();
        // One that held nothing has nothing to bring along.
        before.iter().filter(|held| held.count > 0 && !holders.contains(&held.key)).copied().collect()
    }

    /// All holders.
    pub fn iter(&self) -> impl Iterator<Item = Held> + '_ {
        self.slots.iter().filter_map(|slot| *slot)
    }

    pub fn add_memory(&self, memory: &mut Memory) {
        memory.add("heavy mirror", self.slots.capacity() * size_of::<Option<Held>>());
    }
}
