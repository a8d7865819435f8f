//! Count Sketch: signed counters, and the median.
//!
//! As Count-Min, but a key adds with its own sign in each row, so that other keys cancel on
//! average: each row's estimate is unbiased with variance at most `Σ f² / w`, and the median of `d`
//! rows is off by more than `2·√(Σ f² / w)` with probability at most `e^-Ω(d)`. Better than
//! Count-Min for the frequent keys of a skewed stream, worse for the rare ones, which it scatters
//! to both sides.
//!
//! The median of an even number of rows is the mean of the middle two, which keeps it unbiased (the
//! rows' errors are symmetric). As a count it is rounded and not below 0, and that is no longer
//! unbiased for small keys.
//!
//! A guaranteed upper bound, not in the publication: `(least row + W) / 2`.
//!
//! # Layout
//! 4 rows of signed 32-bit counters that take the whole budget. Overflow is an error.
//!
//! Reference: Charikar, Chen and Farach-Colton, "Finding frequent items in data streams",
//! ICALP 2002.

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rows::SignedRows;

/// A Count Sketch.
#[derive(Clone, Debug)]
pub struct CountSketch {
    counters: SignedRows,
    weight: u64,
}

impl CountSketch {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let width = match plan.paper_column()? {
            Some(column) => paper::WIDTH[column],
            None => plan.fit(plan.budget, 4 * ROWS, 1, 0)?,
        };
        Ok(Self { counters: SignedRows::new(ROWS, width, 0), weight: 0 })
    }
}

impl<const N: usize> Sketch<N> for CountSketch {
    #[inline(always)]
    fn insert(&mut self, _key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.weight += weight;
        self.counters.add(hash, weight)
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        self.counters.median(hash).min(self.counters.upper(hash, self.weight))
    }

    fn unrounded(&self, _key: &[u8; N], hash: KeyHash) -> f64 {
        self.counters.unrounded(hash)
    }

    fn bounds(&self, _key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        Some((0, self.counters.upper(hash, self.weight)))
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.counters.merge(&other.counters)?;
        self.weight += other.weight;
        Ok(())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.counters.bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.counters.shape()
    }
}
