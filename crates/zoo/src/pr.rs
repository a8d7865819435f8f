//! PR-sketch: a Count-Min whose equations are solved by least squares.
//!
//! Where the stream is seen there is a Count-Min, and a Bloom filter that sends each key about
//! once. Elsewhere, at the end, the known keys' columns and the counters make a linear system
//! `y = A x`, and LSMR finds the `x` of least length that solves it. Exact, up to rounding, if
//! every key is known and there are enough counters for `A` to have full column rank, about one a
//! key; on fewer the shortest solution spreads weight evenly over the keys that share counters, and
//! some of it is negative.
//!
//! Known keys are answered by the solution, rounded, at least 1 and at most the smallest counter.
//! Keys that the filter lost are answered with 0, and their weight is in the counters nevertheless.
//!
//! # Layout
//! 12% of the budget is the Bloom filter (4 hashes; the share behind the UCL-sketch paper's
//! shapes), the rest 4 rows of 32-bit counters. Overflow is an error. Sent: the keys and, once, the
//! counters.
//!
//! # Differences
//! - LSMR instead of the publication's conjugate gradients on the normal equations: the same limit,
//!   better conditioned.
//! - One measurement period, from the first item to the last.
//!
//! Reference: Sheng et al., "PR-Sketch: monitoring per-key aggregation of streaming data with
//! nearly full accuracy", PVLDB 2021.

use ucl_data_plane::{KeyHash, Memory};
use ucl_equations::{Columns, lsmr};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::recorder::{Recorder, whole};
use crate::rival::{Cost, Sketch};
use crate::rows::UnsignedRows;

/// Percent of the budget for the Bloom filter.
const BLOOM_PERCENT: usize = 12;
const BLOOM_HASHES: u8 = 4;

/// A PR-sketch.
#[derive(Clone, Debug)]
pub struct PrSketch<const N: usize> {
    counters: UnsignedRows,
    recorder: Recorder<N>,
    /// One a known key, once decoded.
    solution: Vec<f64>,
}

impl<const N: usize> PrSketch<N> {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let (width, bloom) = match plan.paper_column()? {
            Some(column) => {
                let width = paper::PR_WIDTH[column];
                (width, plan.budget.saturating_sub(4 * ROWS * width as usize))
            }
            None => {
                let bloom = plan.share(BLOOM_PERCENT).next_multiple_of(4);
                (plan.fit(plan.budget.saturating_sub(bloom), 4 * ROWS, 1, 4)?, bloom)
            }
        };
        Ok(Self {
            counters: UnsignedRows::new(ROWS, width),
            recorder: Recorder::new(plan.hash_seed(), bloom, BLOOM_HASHES)?,
            solution: Vec::new(),
        })
    }
}

impl<const N: usize> Sketch<N> for PrSketch<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.recorder.see(key, hash);
        self.counters.add(hash, weight)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let width = self.counters.width();
        let mut columns = Columns::ones(self.counters.counters().len(), ROWS);
        for (_, hash) in self.recorder.keys() {
            columns.push(&std::array::from_fn::<u32, ROWS, _>(|row| row as u32 * width + hash.row(row, width).0));
        }
        let y: Vec<f64> = self.counters.counters().iter().map(|&counter| counter.into()).collect();
        self.solution = vec![0.0; columns.len()];
        lsmr::lsmr(&columns, &y, &lsmr::Options::default(), &mut self.solution)?;
        self.recorder.close();
        Ok(())
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        let known = self.recorder.find(key, hash).and_then(|place| self.solution.get(place));
        known.map_or(0, |&x| whole(x, self.counters.least(hash).into()))
    }

    fn bounds(&self, _key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        Some((0, self.counters.least(hash).into()))
    }

    fn knows(&self, key: &[u8; N], hash: KeyHash) -> Option<bool> {
        Some(self.recorder.find(key, hash).is_some())
    }

    fn held_weight(&self) -> Option<u64> {
        Some(self.counters.held_weight())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.counters.bytes());
        memory.add("bloom", self.recorder.filter_bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let mut shape = self.counters.shape();
        shape.extend(self.recorder.shape());
        shape
    }

    fn cost(&self) -> Cost {
        Cost {
            uplink_bytes: Some(self.recorder.sent_bytes() + self.counters.bytes() as u64),
            control_bytes: Some(
                self.recorder.held_bytes() + self.counters.bytes() + size_of_val(self.solution.as_slice()),
            ),
        }
    }
}
