//! Zipf's law without a table: `P(rank = k) = k^(-s) / sum over j of j^(-s)`, `k` from 1 to the
//! number of keys.
//!
//! Drawn by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", ACM TOMACS 6(3), 1996): invert the integral of the
//! continuous hat `x^(-s)`, round to the next whole number, and reject in the rare case that the
//! rounding left the histogram. Constant memory and about one draw per sample for any skew and any
//! number of keys, which a table of cumulative probabilities has not.
//!
//! Logarithms and exponentials come from `libm`, so that a seed gives the same stream on every
//! machine.

use super::rng::{Rng, mix};

/// Ranks drawn by Zipf's law.
#[derive(Debug, Clone)]
struct Ranks {
    skew: f64,
    keys: f64,
    /// The integral of the hat at 3/2, less the histogram's first bar, and at `keys + 1/2`: where
    /// to draw from.
    from: f64,
    to: f64,
    /// Within this distance of a whole number no rejection is possible.
    safe: f64,
}

impl Ranks {
    fn new(skew: f64, keys: u64) -> Self {
        let mut ranks = Self { skew, keys: keys as f64, from: 0.0, to: 0.0, safe: 0.0 };
        ranks.from = ranks.integral(1.5) - 1.0;
        ranks.to = ranks.integral(keys as f64 + 0.5);
        ranks.safe = 2.0 - ranks.inverse(ranks.integral(2.5) - ranks.hat(2.0));
        ranks
    }

    fn hat(&self, x: f64) -> f64 {
        libm::exp(-self.skew * libm::log(x))
    }

    /// `(x^(1-s) - 1) / (1-s)`, and `ln x` when `s` is 1, without a jump between the two.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.skew) * log;
        log * if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t / 2.0 }
    }

    fn inverse(&self, y: f64) -> f64 {
        // Rounding may carry the product below the pole at -1.
        let t = (y * (1.0 - self.skew)).max(-1.0);
        libm::exp(y * if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t / 2.0 })
    }

    #[inline]
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let y = self.to + rng.unit() * (self.from - self.to);
            let x = self.inverse(y);
            let rank = libm::floor(x + 0.5).clamp(1.0, self.keys);
            if rank - x <= self.safe || y >= self.integral(rank + 0.5) - self.hat(rank) {
                return rank as u64;
            }
        }
    }
}

/// Endless stream of 4-byte keys with a Zipf distribution: little-endian numbers, as in the `fimi`
/// format.
///
/// Ranks are scattered over all 32-bit numbers by a bijection that depends on the seed, so that hot
/// keys are not small numbers and two seeds share hardly any hot key.
///
/// ```
/// use ucl_streams::ZipfKeys;
///
/// let mut keys = ZipfKeys::new(1.2, 1_000_000, 42);
/// let first: Vec<[u8; 4]> = keys.by_ref().take(3).collect();
/// assert_eq!(first, ZipfKeys::new(1.2, 1_000_000, 42).take(3).collect::<Vec<_>>());
/// ```
#[derive(Debug, Clone)]
pub struct ZipfKeys {
    ranks: Ranks,
    rng: Rng,
    scatter: [u32; 4],
}

impl ZipfKeys {
    /// Largest skew. Above it nearly every item would have rank 1.
    pub const MAX_SKEW: f64 = 16.0;
    /// Largest number of keys, which 4 bytes can represent.
    pub const MAX_KEYS: u64 = 1 << 32;

    /// Creates a stream over `keys` keys, from 1 to 2^32, with `skew` from 0 (uniform) to 16.
    /// Values outside these ranges are clamped.
    pub fn new(skew: f64, keys: u64, seed: u64) -> Self {
        let skew = if skew.is_nan() { 0.0 } else { skew.clamp(0.0, Self::MAX_SKEW) };
        let scatter = std::array::from_fn(|i| mix(seed ^ mix(i as u64 + 1)) as u32);
        Self { ranks: Ranks::new(skew, keys.clamp(1, Self::MAX_KEYS)), rng: Rng::new(seed), scatter }
    }

    /// The key of a rank, from 1.
    fn key(&self, rank: u64) -> u32 {
        // Four Feistel rounds over 16-bit halves: a bijection whatever the round function.
        let rank = (rank - 1) as u32;
        let (mut left, mut right) = (rank >> 16, rank & 0xffff);
        for round_key in self.scatter {
            let f = (right ^ round_key).wrapping_mul(0x9e37_79b1);
            (left, right) = (right, left ^ ((f ^ (f >> 15)).wrapping_mul(0x85eb_ca77) >> 16));
        }
        left << 16 | right
    }
}

impl Iterator for ZipfKeys {
    type Item = [u8; 4];

    #[inline]
    fn next(&mut self) -> Option<[u8; 4]> {
        let rank = self.ranks.draw(&mut self.rng);
        Some(self.key(rank).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        // Small skews, the pole at 1 and large skews, against the probabilities themselves.
        for skew in [0.0, 0.5, 0.999_999_999_9, 1.0, 1.2, 1.5, 3.0] {
            let keys = 50;
            let draws = 200_000;
            let ranks = Ranks::new(skew, keys);
            let mut rng = Rng::new(11);
            let mut counts = vec![0u32; keys as usize];
            (0..draws).for_each(|_| counts[ranks.draw(&mut rng) as usize - 1] += 1);
            let sum: f64 = (1..=keys).map(|k| (k as f64).powf(-skew)).sum();
            let chi_square: f64 = (1..=keys)
                .map(|k| {
                    let expected = f64::from(draws) * (k as f64).powf(-skew) / sum;
                    (f64::from(counts[k as usize - 1]) - expected).powi(2) / expected
                })
                .sum();
            // 49 degrees of freedom: the 99.9% point is 85.4.
            assert!(chi_square < 85.4, "skew {skew}: chi square {chi_square}");
        }
    }

    /// The stream of the benchmarks, key by key against Zipf's law. A generator that draws anew at
    /// every probe of a search once named 11,299 keys in place of some 82,500.
    #[test]
    fn the_stream_of_the_benchmarks_follows_the_law() {
        let skew = 1.1;
        let keys = 100_000;
        let items = 2_000_000;
        let stream = ZipfKeys::new(skew, keys, 7);
        let mut counts = std::collections::HashMap::<[u8; 4], u32>::new();
        stream.clone().take(items).for_each(|key| *counts.entry(key).or_default() += 1);

        let weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-skew)).collect();
        let sum: f64 = weights.iter().sum();
        let expected: Vec<f64> = weights.iter().map(|weight| items as f64 * weight / sum).collect();
        // Every rank that is due 5 times or more on its own, all others together.
        let single = expected.partition_point(|&expected| expected >= 5.0);
        let count = |at: usize| f64::from(counts.get(&stream.key(at as u64 + 1).to_le_bytes()).copied().unwrap_or(0));
        let term = |count: f64, expected: f64| (count - expected).powi(2) / expected;
        let rest = term((single..keys as usize).map(count).sum(), expected[single..].iter().sum());
        let chi_square = (0..single).map(|at| term(count(at), expected[at])).sum::<f64>() + rest;
        // Nearly normal with so many degrees of freedom; beyond 3.1 deviations lies one stream in a
        // thousand.
        let degrees = single as f64;
        assert!(single > 10_000, "{single} ranks on their own");
        assert!((chi_square - degrees).abs() < 3.1 * (2.0 * degrees).sqrt(), "chi square {chi_square} of {degrees}");

        // A key is missing with probability exp(-expected); the sum of all these is more than the
        // variance.
        let missing: f64 = expected.iter().map(|expected| (-expected).exp()).sum();
        let distinct = keys as f64 - missing;
        assert_eq!(distinct.round(), 82_568.0);
        let off = (counts.len() as f64 - distinct).abs();
        assert!(off < 3.1 * missing.sqrt(), "{} distinct keys, {distinct} due", counts.len());
    }

    #[test]
    fn ranks_stay_in_range() {
        for (skew, keys) in [(0.0, 1), (1.2, 1), (16.0, 3), (0.1, 1 << 32), (1.0, 1 << 32)] {
            let ranks = Ranks::new(skew, keys);
            let mut rng = Rng::new(3);
            assert!((0..2000).all(|_| (1..=keys).contains(&ranks.draw(&mut rng))), "{skew} {keys}");
        }
    }

    #[test]
    fn scattering_is_one_to_one() {
        let keys = ZipfKeys::new(1.0, 1 << 32, 5);
        let scattered: std::collections::HashSet<u32> =
            (1..=100_000).chain((1 << 32) - 1000..=1 << 32).map(|r| keys.key(r)).collect();
        assert_eq!(scattered.len(), 101_001);
    }
}
