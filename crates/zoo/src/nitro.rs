//! NitroSketch: a Count Sketch that samples its updates and scales them up.
//!
//! Instead of adding `v` to all `d` counters of an item, each (item, row) pair is sampled with
//! probability `p` and then gets `v/p`. Every row stays unbiased, with a variance of about
//! `(1/p - 1)·Σ v²` more from the key's own items. Which pair is next is drawn from the geometric
//! distribution, so that what is not sampled costs one subtraction. (Of rows that are sampled the
//! *median* is not quite unbiased: a rare key is 0 in most of them.)
//!
//! Three modes:
//!
//! - **Always correct** (`nitro`): every pair until the guarantee `ε·L2` holds in spite of
//!   sampling: until the median over the rows of `Σ counter²` passes `121·(1 + ε·√p)/(ε⁴·p²)`; then
//!   with probability `p`. We take the publication's `ε` of 5% and `p` of about 1%, which a stream
//!   of a million items in 64KB does not reach: there, NitroSketch *is* a Count Sketch.
//! - **Always line rate** (`nitro-line`): as many updates per epoch as the machine can do, whatever
//!   the rate: after each epoch, `p` becomes the power of two that would have kept to it. An epoch
//!   is a span of time (100 ms in the publication), and only the caller has a clock:
//!   [`NitroSketch::epoch_ended`].
//! - **Fixed**: always with probability `p`.
//!
//! `p` is a power of two, so that `v/p` is a whole number.
//!
//! # Layout
//! As [Count Sketch](crate::count_sketch). Overflow is an error.
//!
//! # Differences
//! - An item is sampled as a whole, as a packet of `v` bytes is; so an item of weight 5 is not five
//!   items.
//! - In mode always correct, sums of squares are looked at every 16,384 items instead of every
//!   1,000.
//! - No top keys beside the sketch.
//!
//! Reference: Liu et al., "NitroSketch: robust and general sketch-based monitoring in software
//! switches", SIGCOMM 2019.

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rng::Rng;
use crate::rows::SignedRows;

/// Exponent of a low sampling probability: `p = 2^-7`, about 1%.
pub const RARELY: u32 = 7;
/// Relative error that the mode *always correct* guarantees.
pub const EPSILON: f64 = 0.05;
/// Items between two looks at the sums of squares.
const CHECK_EVERY: u64 = 1 << 14;

/// Sampling mode. Probabilities are given as `k` in `p = 2^-k`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SamplingMode {
    /// Sampling with a fixed probability.
    Fixed {
        /// Exponent of the sampling probability `p = 2^-shift`.
        shift: u32,
    },
    /// No sampling until the guarantee holds with sampling too.
    AlwaysCorrect {
        /// Exponent of the sampling probability `p = 2^-shift` once the guarantee holds.
        shift: u32,
        /// Guaranteed error as a share of `√Σ f²`.
        epsilon: f64,
    },
    /// Sampling that keeps the updates of an epoch below a limit.
    AlwaysLineRate {
        /// Largest number of counter updates in an epoch.
        updates: u64,
        /// Exponent of the sampling probability `p = 2^-shift` in the first epoch.
        shift: u32,
    },
}

/// A NitroSketch over a Count Sketch.
#[derive(Clone, Debug)]
pub struct NitroSketch {
    counters: SignedRows,
    mode: SamplingMode,
    /// `p = 2^-shift` now.
    shift: u32,
    /// (Item, row) pairs to leave out before the next update.
    skip: u64,
    rng: Rng,
    /// Items since the last look, or in this epoch.
    items: u64,
}

impl NitroSketch {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>, mode: SamplingMode) -> Result<Self, Error> {
        let width = match plan.paper_column()? {
            Some(column) => paper::WIDTH[column],
            None => plan.fit(plan.budget, 4 * ROWS, 1, 0)?,
        };
        let shift = match mode {
            SamplingMode::Fixed { shift } | SamplingMode::AlwaysLineRate { shift, .. } => shift.min(30),
            SamplingMode::AlwaysCorrect { .. } => 0,
        };
        let counters = SignedRows::new(ROWS, width, 0);
        let mut sketch = Self { counters, mode, shift, skip: 0, rng: Rng::new(!plan.seed), items: 0 };
        sketch.skip = sketch.geometric();
        Ok(sketch)
    }

    /// Returns the present probability that a counter is updated.
    pub fn probability(&self) -> f64 {
        1.0 / (1u64 << self.shift) as f64
    }

    /// Ends an epoch. In the mode *always line rate* this sets the sampling probability of the next
    /// epoch.
    pub fn epoch_ended(&mut self) {
        if let SamplingMode::AlwaysLineRate { updates, .. } = self.mode {
            let wanted = self.items.saturating_mul(ROWS as u64);
            self.shift = (0..30).find(|&shift| wanted >> shift <= updates).unwrap_or(30);
            self.items = 0;
            self.skip = self.geometric();
        }
    }

    /// Draws the number of failures before the first success: `⌊ln u / ln(1-p)⌋`.
    #[inline]
    fn geometric(&mut self) -> u64 {
        if self.shift == 0 {
            return 0;
        }
        (libm::log(self.rng.unit()) / libm::log1p(-self.probability())) as u64
    }

    fn check(&mut self, shift: u32, epsilon: f64) {
        let mut squares: Vec<f64> = self.counters.sums_of_squares().collect();
        squares.sort_unstable_by(f64::total_cmp);
        let median = (squares[(ROWS - 1) / 2] + squares[ROWS / 2]) / 2.0;
        let p = 1.0 / (1u64 << shift.min(30)) as f64;
        if median > 121.0 * (1.0 + epsilon * p.sqrt()) / (epsilon.powi(4) * p * p) {
            self.shift = shift.min(30);
            self.skip = self.geometric();
        }
    }
}

impl<const N: usize> Sketch<N> for NitroSketch {
    #[inline(always)]
    fn insert(&mut self, _key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.items += 1;
        if self.shift == 0 {
            if let SamplingMode::AlwaysCorrect { shift, epsilon } = self.mode
                && self.items.is_multiple_of(CHECK_EVERY)
            {
                self.check(shift, epsilon);
            }
            return self.counters.add(hash, weight);
        }
        while self.skip < ROWS as u64 {
            let weight = weight.checked_mul(1 << self.shift).ok_or(Error::Overflow)?;
            self.counters.add_to_row(self.skip as usize, hash, weight)?;
            self.skip += 1 + self.geometric();
        }
        self.skip -= ROWS as u64;
        Ok(())
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        self.counters.median(hash)
    }

    fn unrounded(&self, _key: &[u8; N], hash: KeyHash) -> f64 {
        self.counters.unrounded(hash)
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

#[cfg(test)]
mod tests {
    use super::*;
    use ucl_data_plane::{HashSeed, KeyFormat};

    fn sketch(seed: u64, mode: SamplingMode) -> NitroSketch {
        NitroSketch::new(&RivalPlan::new(4 << 10, KeyFormat::Fixed(4), seed), mode).unwrap()
    }

    fn insert(sketch: &mut NitroSketch, key: u32, seed: u64, weight: u64) {
        let key = key.to_le_bytes();
        sketch.insert(&key, HashSeed::new(u128::from(seed).into()).hash(&key), weight).unwrap();
    }

    /// A single key, weights and all: `Σ counters · sign` is right on average, and as scattered as
    /// sampling makes it.
    #[test]
    fn sampled_rows_are_unbiased() {
        let seeds = 400u64;
        let items = 1000u64;
        let mut means = Vec::new();
        for seed in 0..seeds {
            let mut nitro = sketch(seed, SamplingMode::Fixed { shift: 4 });
            (0..items).for_each(|i| insert(&mut nitro, 7, seed, 1 + i % 3));
            // All four rows hold this key and nothing else.
            let total: f64 = nitro.counters.sums_of_squares().map(f64::sqrt).sum();
            means.push(total / ROWS as f64);
        }
        let truth: u64 = (0..items).map(|i| 1 + i % 3).sum();
        let squares: u64 = (0..items).map(|i| (1 + i % 3).pow(2)).sum();
        let mean = means.iter().sum::<f64>() / seeds as f64;
        let variance = (16.0 - 1.0) * squares as f64 / ROWS as f64;
        assert!((mean - truth as f64).abs() < 4.5 * (variance / seeds as f64).sqrt(), "{mean} for {truth}");
        let measured = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
        assert!((0.7..1.4).contains(&(measured / variance)), "{measured} for {variance}");
    }

    #[test]
    fn always_correct_samples_once_the_stream_is_heavy_enough() {
        let mut nitro = sketch(1, SamplingMode::AlwaysCorrect { shift: 2, epsilon: 0.5 });
        (0..CHECK_EVERY - 1).for_each(|_| insert(&mut nitro, 1, 1, 1));
        assert_eq!(nitro.probability(), 1.0, "nobody has looked yet");
        insert(&mut nitro, 1, 1, 1);
        assert_eq!(nitro.probability(), 0.25, "2^28 is above 121 · 1.25 · 16 · 16");
        let mut light = sketch(1, SamplingMode::AlwaysCorrect { shift: 7, epsilon: 0.05 });
        (0..2 * CHECK_EVERY).for_each(|_| insert(&mut light, 1, 1, 1));
        assert_eq!(light.probability(), 1.0, "2^30 is not above 121 · 160,000 · 16,384");
    }

    #[test]
    fn line_rate_follows_the_load() {
        let mut nitro = sketch(1, SamplingMode::AlwaysLineRate { updates: 1000, shift: 0 });
        (0..1000).for_each(|_| insert(&mut nitro, 1, 1, 1));
        nitro.epoch_ended();
        assert_eq!(nitro.probability(), 0.25, "4000 updates were wanted");
        (0..10).for_each(|_| insert(&mut nitro, 1, 1, 1));
        nitro.epoch_ended();
        assert_eq!(nitro.probability(), 1.0);
    }
}
