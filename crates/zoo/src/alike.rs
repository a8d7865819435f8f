//! Count Sketch with rows that sign all keys alike: an error, rebuilt to explain printed figures.
//!
//! In the public code of the UCL-sketch paper the sign of a 4-byte key in a row does not depend on
//! the key where the row's multiplier is even, that is, in every other row on average. Such a row
//! is a row of a Count-Min: nothing cancels in it, and the median is far too high. The paper's
//! figures for Count Sketch, for learned Count Sketch and for NitroSketch, which is a Count Sketch
//! at these sizes, come from this code.
//!
//! `cs-alike` and `lcs-alike` are our Count Sketch with that one thing changed: each row signs all
//! keys alike with probability 1/2, drawn by the seed. Beside `cs` and `lcs` they show how much of
//! the difference to the paper it makes. They are no sketches to use.

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;
use crate::learned::Rest;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rng::Rng;

/// Rows of signed counters, some of which sign all keys alike.
#[derive(Clone, Debug)]
pub struct AlikeRows {
    width: u32,
    alike: [bool; ROWS],
    counters: Vec<i64>,
    weight: i64,
}

impl AlikeRows {
    /// The counter of a key in a row, and its sign there.
    fn at(&self, row: usize, hash: KeyHash) -> (usize, i64) {
        let (at, negative) = hash.row(row, self.width);
        (row * self.width as usize + at as usize, if negative && !self.alike[row] { -1 } else { 1 })
    }

    /// The mean of the middle two rows.
    fn median(&self, hash: KeyHash) -> f64 {
        let mut values: [i64; ROWS] = std::array::from_fn(|row| {
            let (at, sign) = self.at(row, hash);
            sign * self.counters[at]
        });
        values.sort_unstable();
        (values[(ROWS - 1) / 2] + values[ROWS / 2]) as f64 / 2.0
    }
}

impl Rest for AlikeRows {
    fn new(width: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let alike = std::array::from_fn(|_| rng.unit() < 0.5);
        Self { width, alike, counters: vec![0; ROWS * width as usize], weight: 0 }
    }

    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        let weight = i64::try_from(weight).map_err(|_| Error::Overflow)?;
        self.weight = self.weight.checked_add(weight).ok_or(Error::Overflow)?;
        for row in 0..ROWS {
            let (at, sign) = self.at(row, hash);
            self.counters[at] = self.counters[at].checked_add(sign * weight).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    fn estimate(&self, hash: KeyHash) -> u64 {
        (self.median(hash) + 0.5).floor().max(0.0) as u64
    }

    fn unrounded(&self, hash: KeyHash) -> f64 {
        self.median(hash)
    }

    /// Returns `None`: rows that sign alike bound nothing.
    fn upper(&self, _hash: KeyHash) -> Option<u64> {
        None
    }

    fn held_weight(&self) -> Option<u64> {
        None
    }

    fn merge(&mut self, _other: &Self) -> Result<(), Error> {
        Err(Error::NotMergeable)
    }

    /// As many as the sketch that it stands for: 32 bits a counter.
    fn bytes(&self) -> usize {
        self.counters.len() * 4
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", ROWS as u64), ("width", self.width.into()), ("counter_bits", 32)]
    }
}

/// A Count Sketch with such rows.
#[derive(Clone, Debug)]
pub struct AlikeCountSketch(AlikeRows);

impl AlikeCountSketch {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let width = match plan.paper_column()? {
            Some(column) => paper::WIDTH[column],
            None => plan.fit(plan.budget, 4 * ROWS, 1, 0)?,
        };
        Ok(Self(AlikeRows::new(width, plan.seed)))
    }
}

impl<const N: usize> Sketch<N> for AlikeCountSketch {
    fn insert(&mut self, _key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.0.add(hash, weight)
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        self.0.estimate(hash)
    }

    fn unrounded(&self, _key: &[u8; N], hash: KeyHash) -> f64 {
        self.0.unrounded(hash)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.0.bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.0.shape()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ucl_data_plane::{HashSeed, KeyFormat};

    /// Every key of a stream of ones is far too large where a row signs all alike, and right on
    /// average where none does.
    #[test]
    fn rows_that_sign_alike_add_up_what_should_cancel() {
        let mut sums = [Vec::new(), Vec::new()];
        for seed in 0..40 {
            let mut sketch = AlikeCountSketch::new(&RivalPlan::new(1 << 10, KeyFormat::Fixed(4), seed)).unwrap();
            let hash = HashSeed::new(u128::from(seed).into());
            let keys: Vec<[u8; 4]> = (0..1_000u32).map(u32::to_le_bytes).collect();
            keys.iter().for_each(|key| sketch.insert(key, hash.hash(key), 1).unwrap());
            let mean = keys.iter().map(|key| sketch.unrounded(key, hash.hash(key))).sum::<f64>() / 1_000.0;
            let alike = sketch.0.alike.iter().filter(|alike| **alike).count();
            match alike {
                0 => sums[0].push(mean),
                // The middle two of four rows are then rows of a Count-Min, at least one of them.
                3.. => sums[1].push(mean),
                _ => {}
            }
        }
        let mean = |sums: &[f64]| sums.iter().sum::<f64>() / sums.len() as f64;
        assert!(!sums[0].is_empty() && (mean(&sums[0]) - 1.0).abs() < 1.0, "{sums:?}");
        assert!(mean(&sums[1]) > 8.0, "1,000 keys in 64 counters are 16 to a counter: {sums:?}");
    }
}
