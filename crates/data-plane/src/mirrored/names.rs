//! Which names were sent: of keys whose code does not tell them.
//!
//! Two Bloom filters, an older and a younger one. A name that neither has is sent. When the younger
//! one is full, the older one is forgotten and takes its place: names that are still in use are
//! remembered, and those that are not make room.

use crate::bloom::{BloomFilter, BloomKind};
use crate::config::Shape;
use crate::hash::KeyHash;
use crate::table::OutOfMemory;

/// A filter that would claim one new name in so many is full.
const FULL: f64 = 1.0 / 512.0;

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NamesSent {
    pub(super) younger: BloomFilter,
    pub(super) older: BloomFilter,
}

impl NamesSent {
    /// None yet. A shape without bits remembers nothing: every name is sent every time.
    pub fn new(shape: &Shape) -> Result<Self, OutOfMemory> {
        let half = || BloomFilter::new(BloomKind::Classic, Self::half_bits(shape), shape.bloom_hashes);
        Ok(Self { younger: half()?, older: half()? })
    }

    /// Bits of each filter: whole words.
    pub fn half_bits(shape: &Shape) -> u32 {
        shape.bloom_bits / 64 * 32
    }

    /// Notes that a name is needed; returns true if it has to be sent.
    pub fn is_new(&mut self, hash: KeyHash) -> bool {
        if self.younger.contains(hash) {
            return false;
        }
        if self.younger.false_positive_rate() >= FULL {
            core::mem::swap(&mut self.younger, &mut self.older);
            self.younger.clear();
        }
        let new = !self.older.contains(hash);
        self.younger.insert(hash);
        new
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        self.younger.clear();
        self.older.clear();
    }

    pub fn memory(&self) -> usize {
        self.younger.memory() + self.older.memory()
    }
}
