//! xoshiro256++ (Blackman & Vigna, 2019), seeded by SplitMix64.
//!
//! Our own thirty lines because the sequence is part of the result: a seed must give the same
//! weights and the same transformations with every version of every dependency, and the state must
//! fit into a checkpoint as four numbers.

/// The source of every random choice: initial weights, order of the snapshots, transformations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    pub(crate) fn state(&self) -> [u64; 4] {
        self.0
    }

    /// The generator at a saved state; all zeros is no state (the generator would be stuck) and
    /// gives `None`.
    pub(crate) fn from_state(state: [u64; 4]) -> Option<Self> {
        (state != [0; 4]).then_some(Self(state))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform below `n` by multiply-shift; the bias, below `n / 2^64`, is beyond measuring.
    #[inline]
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Uniform in `[-bound, bound)`, 24 bits fine.
    pub(crate) fn symmetric(&mut self, bound: f64) -> f32 {
        let unit = (self.next() >> 40) as f64 / (1u64 << 24) as f64;
        ((2.0 * unit - 1.0) * bound) as f32
    }

    /// Fisher-Yates, from the end.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_pinned() {
        // Values of the published algorithm (checked against make_trace.py, which has its own
        // implementation).
        let mut rng = Rng::new(1);
        assert_eq!(rng.state()[0], 0x910a_2dec_8902_5cc1);
        assert_eq!([rng.next(), rng.next()], [14_971_601_782_005_023_387, 13_781_649_495_232_077_965]);
    }

    #[test]
    fn a_saved_state_continues() {
        let mut a = Rng::new(7);
        a.next();
        let mut b = Rng::from_state(a.state()).unwrap();
        assert_eq!(a.next(), b.next());
        assert_eq!(Rng::from_state([0; 4]), None);
    }

    #[test]
    fn below_and_symmetric_stay_in_range_and_fill_it() {
        let mut rng = Rng::new(3);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[rng.below(7)] += 1;
            assert!(rng.symmetric(0.25).abs() <= 0.25);
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<usize> = (0..100).collect();
        Rng::new(5).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
