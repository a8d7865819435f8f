//! Augmented Sketch: a small filter of the hottest keys in front of a Count-Min.
//!
//! The filter holds a few keys with two counts each: `new` is the key's estimate, `old` is what of
//! it the sketch already has. An item whose key is in the filter adds to `new` and is done. Any
//! other goes into the sketch; if the sketch then says more of its key than the filter says of its
//! smallest, the two **exchange**: the smallest key's exact hits, `new - old`, go into the sketch,
//! and the other enters with `new = old =` its estimate (its old weight stays in the sketch, so
//! that nothing need be taken out). At most one exchange an item, so there is no cascade.
//!
//! Never too little: a key in the filter has its estimate at entry, which was none too small, plus
//! exact hits. The Count-Min bound holds, over the weight that entered the sketch.
//!
//! # Layout
//! 32 slots of `key | new | old` (the publication's choice; 4 + 4 bytes of counts), searched from
//! one end to the other, for so few need no index. The rest of the budget is a Count-Min of 4 rows
//! of 32-bit counters. Overflow is an error.
//!
//! # Differences
//! - No deletions.
//! - The smallest slot is remembered instead of searched for with every miss.
//!
//! Reference: Roy, Khan and Alonso, "Augmented Sketch: faster and more accurate stream processing",
//! SIGMOD 2016.

use ucl_data_plane::{HashSeed, KeyHash, Memory};

use crate::error::Error;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rows::UnsignedRows;

/// Number of slots in the filter.
pub const FILTER_SLOTS: usize = 32;

/// An Augmented Sketch.
#[derive(Clone, Debug)]
pub struct AugmentedSketch<const N: usize> {
    seed: HashSeed,
    filled: usize,
    keys: [[u8; N]; FILTER_SLOTS],
    new: [u32; FILTER_SLOTS],
    old: [u32; FILTER_SLOTS],
    /// The slot with the smallest `new`, once all are filled.
    smallest: usize,
    sketch: UnsignedRows,
}

impl<const N: usize> AugmentedSketch<N> {
    /// Creates a filter, and a sketch that fills the rest of the budget. The paper gives no shape.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        plan.paper_column()?;
        let filter = FILTER_SLOTS * (N + 8);
        let width = plan.fit(plan.budget.saturating_sub(filter), 4 * ROWS, 1, filter)?;
        Ok(Self {
            seed: plan.hash_seed(),
            filled: 0,
            keys: [[0; N]; FILTER_SLOTS],
            new: [0; FILTER_SLOTS],
            old: [0; FILTER_SLOTS],
            smallest: 0,
            sketch: UnsignedRows::new(ROWS, width),
        })
    }

    #[inline(always)]
    fn slot(&self, key: &[u8; N]) -> Option<usize> {
        // Every slot is compared, and none left early: for small keys this is a handful of vector
        // operations.
        let mut equal = 0u32;
        for (slot, held) in self.keys.iter().enumerate() {
            equal |= u32::from(held == key) << slot;
        }
        // An empty slot holds zeros, as a key may.
        let found = equal.trailing_zeros() as usize;
        (found < self.filled).then_some(found)
    }

    fn find_smallest(&mut self) {
        let slots = 0..FILTER_SLOTS;
        self.smallest = slots.min_by_key(|&slot| self.new[slot]).unwrap_or(0);
    }
}

impl<const N: usize> Sketch<N> for AugmentedSketch<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        if let Some(slot) = self.slot(key) {
            let sum = u64::from(self.new[slot]).saturating_add(weight);
            self.new[slot] = u32::try_from(sum).map_err(|_| Error::Overflow)?;
            if slot == self.smallest {
                self.find_smallest();
            }
            return Ok(());
        }
        if self.filled < FILTER_SLOTS {
            self.keys[self.filled] = *key;
            self.new[self.filled] = u32::try_from(weight).map_err(|_| Error::Overflow)?;
            self.filled += 1;
            self.find_smallest();
            return Ok(());
        }
        self.sketch.add(hash, weight)?;
        let estimate = self.sketch.least(hash);
        let slot = self.smallest;
        if estimate > self.new[slot] {
            let hits = self.new[slot] - self.old[slot];
            if hits > 0 {
                self.sketch.add(self.seed.hash(&self.keys[slot]), hits.into())?;
            }
            (self.keys[slot], self.new[slot], self.old[slot]) = (*key, estimate, estimate);
            self.find_smallest();
        }
        Ok(())
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        self.slot(key).map_or_else(|| self.sketch.least(hash), |slot| self.new[slot]).into()
    }

    /// Hits in the filter are exact.
    fn bounds(&self, key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        let hits = self.slot(key).map_or(0, |slot| self.new[slot] - self.old[slot]);
        Some((hits.into(), self.estimate(key, hash)))
    }

    fn held_weight(&self) -> Option<u64> {
        let hits: u64 = self.new.iter().zip(&self.old).map(|(&new, &old)| u64::from(new - old)).sum();
        Some(hits + self.sketch.held_weight())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("filter", FILTER_SLOTS * (N + 8));
        memory.add("counters", self.sketch.bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let mut shape = self.sketch.shape();
        shape.push(("slots", FILTER_SLOTS as u64));
        shape
    }
}
