//! Random choices that a seed fixes.

use ucl_streams::SplitMix64;

pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// 128 bits.
    pub fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let width = most - least;
        least + if width == u64::MAX { self.next() } else { self.next() % (width + 1) }
    }

    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.between(0, end as u64 - 1) as usize
    }

    /// With a probability of 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Mostly small, up to `most`: every order of magnitude is as likely.
    pub fn spread(&mut self, most: u64) -> u64 {
        let bits = self.between(0, u64::from(most.ilog2()));
        self.between(1, (2u64 << bits).wrapping_sub(1).min(most))
    }
}
