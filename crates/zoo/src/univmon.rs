//! UnivMon: one structure for many statistics of a stream, which samples keys in levels.
//!
//! Level 0 sees every item; a key goes on to level `j + 1` if it is in level `j` and a coin of its
//! own falls so: each level has half of the keys of the one before. Every level is a Count Sketch
//! with the keys that it finds heaviest. For any `g` that does not grow too fast, `Σ g(f)` over all
//! keys is had from these few, from the deepest level up ([`UnivMon::universal_sum`]):
//!
//! ```text
//! Y_L = Σ g(f)  over the heavy keys of level L
//! Y_j = 2·Y_(j+1) + Σ (1 - 2·[key goes on to level j+1])·g(f)  over the heavy keys of level j
//! ```
//!
//! A single key's frequency is asked of the deepest level that has seen the key, whose counters it
//! shares with the fewest others: as unbiased as level 0's answer, with less variance. (The
//! publication leaves that open.)
//!
//! # Layout
//! Each level has 4 rows of signed 32-bit counters, and a list of 64 heavy keys with their counts.
//! Two levels, as in the UCL-sketch paper's experiments; up to four can be had. Overflow is an
//! error.
//!
//! # Differences
//! - The lists hold the heaviest keys by what was estimated when each was last seen; the sums ask
//!   the sketches again.
//!
//! Reference: Liu et al., "One sketch to rule them all: rethinking network flow monitoring with
//! UnivMon", SIGCOMM 2016.
//!
//! ```
//! use ucl_data_plane::{HashSeed, KeyFormat};
//! use ucl_zoo::{RivalPlan, Sketch, univmon::UnivMon};
//!
//! let mut univmon = UnivMon::<4>::new(&RivalPlan::new(64 << 10, KeyFormat::Fixed(4), 1))?;
//! let seed = HashSeed::new(1.into());
//! for key in [1u32, 1, 1, 1, 2, 2, 3, 3].map(u32::to_le_bytes) {
//!     univmon.insert(&key, seed.hash(&key), 1)?;
//! }
//! assert_eq!(univmon.universal_sum(|f| f * f), 16.0 + 4.0 + 4.0);
//! assert_eq!(univmon.entropy(), 1.5);
//! # Ok::<(), ucl_zoo::Error>(())
//! ```

use ucl_data_plane::{HashSeed, KeyHash, MAX_DEGREE, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rows::SignedRows;

/// Number of heavy keys in a level.
pub const HEAVY_KEYS: usize = 64;
/// Default number of levels.
pub const LEVELS: usize = 2;

/// A UnivMon.
#[derive(Clone, Debug)]
pub struct UnivMon<const N: usize> {
    seed: HashSeed,
    levels: Vec<Level<N>>,
    weight: u64,
}

#[derive(Clone, Debug)]
struct Level<const N: usize> {
    sketch: SignedRows,
    heavy: Heaviest<N>,
}

impl<const N: usize> UnivMon<N> {
    /// Creates a sketch with two levels.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        match plan.paper_column()? {
            // Four rows in all: with four in each level the paper's widths do not fit its budgets.
            // At 16KB they do not even so, with the lists.
            Some(column) => {
                let room = plan.budget.saturating_sub(LEVELS * HEAVY_KEYS * (N + 4)) / (4 * ROWS);
                Ok(Self::of(plan, LEVELS, ROWS / LEVELS, paper::UNIVMON_WIDTH[column].min(room as u32)))
            }
            None => Self::with_levels(plan, LEVELS),
        }
    }

    /// Creates a sketch with 1 to 4 levels. Each level has its own hash functions, and a key has
    /// 16.
    pub fn with_levels(plan: &RivalPlan<'_>, levels: usize) -> Result<Self, Error> {
        let levels = levels.clamp(1, MAX_DEGREE / ROWS);
        let lists = levels * HEAVY_KEYS * (N + 4);
        let width = plan.fit(plan.budget.saturating_sub(lists), 4 * ROWS * levels, 1, lists)?;
        Ok(Self::of(plan, levels, ROWS, width))
    }

    fn of(plan: &RivalPlan<'_>, levels: usize, rows: usize, width: u32) -> Self {
        let level = |number| Level { sketch: SignedRows::new(rows, width, number * rows), heavy: Heaviest::default() };
        Self { seed: plan.hash_seed(), levels: (0..levels).map(level).collect(), weight: 0 }
    }

    /// The deepest level that samples the key.
    #[inline(always)]
    fn depth(&self, hash: KeyHash) -> usize {
        // Coins from the hash bits that the rows do not use.
        let coins = hash.bloom().position(0, 1 << 16);
        (coins.trailing_ones() as usize).min(self.levels.len() - 1)
    }

    /// Estimates `Σ g(f)` over all keys.
    pub fn universal_sum(&self, g: impl Fn(f64) -> f64) -> f64 {
        let mut sum = 0.0;
        for (number, level) in self.levels.iter().enumerate().rev() {
            let deepest = number + 1 == self.levels.len();
            sum *= if deepest { 1.0 } else { 2.0 };
            for key in level.heavy.keys() {
                let hash = self.seed.hash(key);
                let frequency = level.sketch.median(hash);
                let goes_on = !deepest && self.depth(hash) > number;
                if frequency > 0 {
                    sum += if goes_on { -1.0 } else { 1.0 } * g(frequency as f64);
                }
            }
        }
        sum
    }

    /// Estimates the entropy of the stream in bits: `log2 W - (1/W)·Σ f·log2 f`.
    pub fn entropy(&self) -> f64 {
        let weight = self.weight.max(1) as f64;
        libm::log2(weight) - self.universal_sum(|f| f * libm::log2(f)) / weight
    }
}

impl<const N: usize> Sketch<N> for UnivMon<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.weight += weight;
        let depth = self.depth(hash);
        for level in &mut self.levels[..=depth] {
            level.sketch.add(hash, weight)?;
            level.heavy.offer(key, level.sketch.median(hash));
        }
        Ok(())
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        self.levels[self.depth(hash)].sketch.median(hash)
    }

    fn unrounded(&self, _key: &[u8; N], hash: KeyHash) -> f64 {
        self.levels[self.depth(hash)].sketch.unrounded(hash)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.levels.iter().map(|level| level.sketch.bytes()).sum());
        memory.add("heavy", self.levels.len() * HEAVY_KEYS * (N + 4));
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let mut shape = self.levels[0].sketch.shape();
        shape.push(("levels", self.levels.len() as u64));
        shape
    }
}

/// The keys with the largest estimates.
#[derive(Clone, Debug)]
struct Heaviest<const N: usize> {
    filled: usize,
    keys: [[u8; N]; HEAVY_KEYS],
    counts: [u32; HEAVY_KEYS],
    /// The place of the smallest, once all are filled.
    smallest: usize,
}

impl<const N: usize> Default for Heaviest<N> {
    fn default() -> Self {
        Self { filled: 0, keys: [[0; N]; HEAVY_KEYS], counts: [0; HEAVY_KEYS], smallest: 0 }
    }
}

impl<const N: usize> Heaviest<N> {
    fn keys(&self) -> &[[u8; N]] {
        &self.keys[..self.filled]
    }

    #[inline(always)]
    fn offer(&mut self, key: &[u8; N], estimate: u64) {
        let count = estimate.min(u32::MAX.into()) as u32; // a median of 32-bit counters
        if self.filled == HEAVY_KEYS && count <= self.counts[self.smallest] {
            return;
        }
        self.enter(key, count);
    }

    fn enter(&mut self, key: &[u8; N], count: u32) {
        // All places are compared, none left early: a few vector operations for small keys.
        let mut equal = 0u64;
        for (at, held) in self.keys.iter().enumerate() {
            equal |= u64::from(held == key) << at;
        }
        let known = equal.trailing_zeros() as usize; // an empty place holds zeros, as a key may
        let at = match known < self.filled {
            true => known,
            false if self.filled < HEAVY_KEYS => self.filled,
            false => self.smallest,
        };
        let grown = at < self.filled && at != self.smallest && count >= self.counts[self.smallest];
        self.filled = self.filled.max(at + 1);
        (self.keys[at], self.counts[at]) = (*key, count);
        if !grown {
            self.smallest = (0..self.filled).min_by_key(|&at| self.counts[at]).unwrap_or(0);
        }
    }
}
