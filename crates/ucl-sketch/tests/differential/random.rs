//! Random choices that a seed fixes (SplitMix64).

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
