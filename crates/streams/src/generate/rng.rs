//! Seeded random numbers: SplitMix64 (Steele, Lea and Flood, 2014), and xoshiro256++ (Blackman and
//! Vigna, 2021) for the generators, seeded by it.
//!
//! Written out here because its outputs are part of what a seed means: no upgrade of a library may
//! change them.

/// A seeded source of random numbers, the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Rng([u64; 4]);

impl Rng {
    pub fn new(seed: u64) -> Self {
        let mut seeds = SplitMix64::new(seed);
        Self(std::array::from_fn(|_| seeds.next_u64()))
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
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

    /// Uniform over (0, 1), see [`unit`].
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Uniform over `0..n`, see [`below`].
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }

    /// Exponentially distributed, with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }
}

/// Random numbers for tests and benchmarks: the same for a seed on every machine and in every
/// version.
///
/// Not for secrets: one output tells all that follow.
///
/// ```
/// use ucl_streams::SplitMix64;
///
/// let mut random = SplitMix64::new(1);
/// assert_eq!(random.next_u64(), 0x910a_2dec_8902_5cc1);
/// assert!(random.below(6) < 6);
/// assert!((0.0..1.0).contains(&random.unit()));
/// ```
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator. Every seed is as good as any other.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number between 0 and 1, never 0 or 1 itself.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Returns a number from 0 to `n - 1`; 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }
}

/// Uniform over (0, 1): 2^53 equally spaced numbers, never an end.
#[inline]
fn unit(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// Uniform over `0..n`, by multiply-shift; the bias is below `n / 2^64`.
#[inline]
fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// The output function of SplitMix64: a bijection of 64-bit numbers.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_zero_is_pinned() {
        // SplitMix64 from 0 gives the well-known state e220a8397b1dcdaf, 6e789e6aa1b965f4, ...
        let mut rng = Rng::new(0);
        assert_eq!(rng.0[..2], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        assert_eq!([rng.next_u64(), rng.next_u64()], [0x5317_5d61_490b_23df, 0x61da_6f3d_c380_d507]);
    }

    #[test]
    fn moments() {
        let mut rng = Rng::new(7);
        let n = 100_000;
        let mean = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        let mean = (0..n).map(|_| rng.exponential()).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 0.015, "{mean}");
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }

    #[test]
    fn split_mix_is_uniform() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0u32; 100];
        (0..100_000).for_each(|_| seen[random.below(100) as usize] += 1);
        let chi_square: f64 = seen.iter().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        // 99 degrees of freedom: the 99.9% point is 148.2.
        assert!(chi_square < 148.2, "chi square {chi_square}");
        let mean = (0..100_000).map(|_| random.unit()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
