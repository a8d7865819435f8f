//! One seeded hash for all positions of a key.
//!
//! Slot, columns and Bloom bits all come from disjoint parts of one 128-bit hash, and every
//! position by multiply-shift: `(part * size) >> 32`. Thirteen separate hash functions and `%` run
//! at less than half the speed. The mixing is the 64×64→128 multiply-and-fold of the wyhash family.
//! Golden values in the tests pin it: the same seed gives the same positions on every machine and
//! in every version.
//!
//! # What is promised against whom
//!
//! Positions and digests have different duties, and different strength.
//!
//! - **Digests name keys** ([`DigestKey::digest`]), so two keys with one digest would make
//!   guaranteed bounds false. Keys of up to 15 bytes are their own digest and never collide. Longer
//!   keys get 127 bits of SipHash-2-4 under a 128-bit key. Someone who chooses keys without knowing
//!   the seed, even one who sees digests and answers, finds a colliding pair with probability
//!   2^-127 a pair.
//! - **Positions only spread keys**. Guaranteed bounds hold whatever the positions are; keys that
//!   are crowded together cost accuracy alone. The mixing is fast, not cryptographic: it holds
//!   against someone who chooses keys without knowing the seed and without seeing positions.
//!   Whoever learns the seed (a state file, a wire message that opens a segment) can choose keys
//!   that crowd.
//! - The secrets of positions and of digests come from the seed through SipHash-2-4, so that one
//!   does not tell the other.
//!
//! All of this needs a seed that nobody can guess: draw 128 random bits. A small seed such as 7 is
//! for experiments that are to be repeated.

use siphasher::sip::SipHasher24;

use crate::key::DigestKey;
use crate::seed::{Hashing, Seed};

/// Row multipliers: the odd numbers that follow the golden ratio in a fixed multiplicative walk.
/// Each row takes the top half of `columns * multiplier`; double hashing (`a + i*b`) would make two
/// keys that meet in two rows meet in all.
const ROW_MULTIPLIERS: [u64; MAX_DEGREE] = multipliers(0x9e37_79b9_7f4a_7c15);

/// Spreads the 32 Bloom bits of a hash over 64.
const BLOOM_MULTIPLIER: u64 = 0xd1b5_4a32_d192_ed03;

/// Mixes the slot's bits.
const SLOT_MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// Largest number of counters that one key may touch.
pub const MAX_DEGREE: usize = 16;
/// Largest number of bits that one key may set in the Bloom filter.
pub const MAX_BLOOM_HASHES: usize = 16;

const fn multipliers<const M: usize>(start: u64) -> [u64; M] {
    let mut out = [0; M];
    let mut x = start;
    let mut i = 0;
    while i < M {
        x = split_mix(x);
        out[i] = x | 1;
        i += 1;
    }
    out
}

const fn split_mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Secrets of the hash functions, expanded from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashSeed {
    secret: [u64; 6],
    /// All ones, or zero for [`Hashing::V1`], which lacked what it switches on.
    protect: u64,
    digest: DigestKey,
}

impl HashSeed {
    /// Expands a seed.
    pub fn new(seed: Seed) -> Self {
        match seed.hashing() {
            Hashing::V1 => {
                let mut x = seed.value() as u64;
                let mut next = || {
                    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    split_mix(x)
                };
                let secret = [(); 6].map(|()| next());
                Self { secret, protect: 0, digest: DigestKey::new(next().into(), Hashing::V1) }
            }
            Hashing::V2 => {
                let value = seed.value();
                let keyed = SipHasher24::new_with_keys(value as u64, (value >> 64) as u64);
                let mut counter = 0u64;
                let mut next = || {
                    counter += 1;
                    keyed.hash(&counter.to_le_bytes())
                };
                let secret = [(); 6].map(|()| next());
                let digest = u128::from(next()) | u128::from(next()) << 64;
                Self { secret, protect: !0, digest: DigestKey::new(digest, Hashing::V2) }
            }
        }
    }

    /// Returns the secrets of another seed with the digests of this one: a digest names its key,
    /// whatever becomes of the sketch.
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let first = HashSeed::new(1.into());
    /// let next = first.rehashed(2.into());
    /// assert_eq!(next.digest_key(), first.digest_key());
    /// assert_eq!(next.hash(b"key1"), HashSeed::new(2.into()).hash(b"key1"));
    /// ```
    pub fn rehashed(&self, seed: Seed) -> Self {
        Self { digest: self.digest, ..Self::new(seed) }
    }

    /// Some seed with these digests.
    #[cfg(feature = "serde")]
    pub(crate) fn with_digest_key(digest: DigestKey) -> Self {
        Self { digest, ..Self::new(0.into()) }
    }

    /// Returns the key for digests of long keys.
    pub fn digest_key(&self) -> DigestKey {
        self.digest
    }

    /// Hashes a key of `N` bytes (4, 8, 13 or 16).
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let seed = HashSeed::new(1.into());
    /// assert_ne!(seed.hash(&7u32.to_le_bytes()), seed.hash(&8u32.to_le_bytes()));
    /// ```
    #[inline(always)]
    pub fn hash<const N: usize>(&self, key: &[u8; N]) -> KeyHash {
        let (low, high) = crate::key::words(key);
        let [a, b, c, d, e, f] = self.secret;
        let (x, y) = (low ^ a, high ^ b);
        // A product with zero forgets its other factor: all keys whose one word is the secret would
        // hash alike. The factors themselves are added, so that each result keeps the other word.
        let mixed = fold(x, y) ^ ((x ^ y) & self.protect);
        // Two folds of the mixed word: the bare halves of one product are too weak (the evenness
        // test below fails). Where only the slot is wanted, the compiler drops the other fold.
        let filter = fold(mixed ^ e, f);
        KeyHash { mixed, columns: fold(mixed ^ c, d), bloom: filter as u32, fingerprint: (filter >> 32) as u32 }
    }
}

/// Secrets for placing keys into the sets of a mirrored table: others than those of [`HashSeed`].
pub(crate) fn set_secrets(seed: Seed) -> [u64; 3] {
    let value = seed.value();
    let keyed = SipHasher24::new_with_keys(value as u64, (value >> 64) as u64);
    [101u64, 102, 103].map(|counter| keyed.hash(&counter.to_le_bytes()))
}

/// Multiplies to 128 bits and folds the halves together.
#[inline(always)]
pub(crate) fn fold(x: u64, y: u64) -> u64 {
    let product = u128::from(x) * u128::from(y);
    product as u64 ^ (product >> 64) as u64
}

/// Hash of a key, 160 bits: 64 for its columns, 32 for its heavy slot, 32 for its Bloom bits, 32
/// for its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    mixed: u64,
    columns: u64,
    bloom: u32,
    fingerprint: u32,
}

impl KeyHash {
    /// Returns 64 bits for a hash table of keys in the control plane.
    #[inline(always)]
    pub fn table(self) -> u64 {
        self.columns
    }

    /// Returns the heavy slot, of `slots`.
    #[inline(always)]
    pub fn slot(self, slots: u32) -> usize {
        // One fold leaves keys that count up on a lattice: even for most seeds and steps, far from
        // it for some (the test of keys in steps below). A multiplication more mends that.
        let word = (self.mixed ^ (self.mixed >> 32)).wrapping_mul(SLOT_MULTIPLIER) >> 32;
        ((word * u64::from(slots)) >> 32) as usize
    }

    /// Returns the position in row `row`, of `width`, and the sign that a signed sketch gives it.
    #[inline(always)]
    pub fn row(self, row: usize, width: u32) -> (u32, bool) {
        let product = self.columns.wrapping_mul(ROW_MULTIPLIERS[row]);
        ((((product >> 32) * u64::from(width)) >> 32) as u32, product & (1 << 31) != 0)
    }

    /// 32 bits that differ from epoch to epoch.
    #[inline(always)]
    pub(crate) fn salted(self, epoch: u32) -> u32 {
        ((self.columns ^ u64::from(epoch).wrapping_mul(BLOOM_MULTIPLIER)).wrapping_mul(SLOT_MULTIPLIER) >> 32) as u32
    }

    /// Bits of a fingerprint.
    pub(crate) const FINGERPRINT_BITS: u32 = 21;

    /// Some bits that tell the key from others, never all zero.
    #[inline(always)]
    pub(crate) fn fingerprint(self) -> u64 {
        // Scattered once more, as the slot is.
        let word = self.fingerprint.wrapping_mul(SLOT_MULTIPLIER as u32);
        u64::from((word >> (32 - Self::FINGERPRINT_BITS)).max(1))
    }

    /// Returns the two words from which all Bloom positions come.
    #[inline(always)]
    pub fn bloom(self) -> BloomHash {
        let product = u64::from(self.bloom).wrapping_mul(BLOOM_MULTIPLIER);
        BloomHash { start: (product >> 32) as u32, step: product as u32 | 1 }
    }
}

/// Bloom positions by double hashing: for a filter (unlike for the rows of a sketch) as good as
/// separate hash functions (Kirsch and Mitzenmacher 2006), and one multiplication less per bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomHash {
    start: u32,
    step: u32,
}

impl BloomHash {
    /// Returns position number `i`, of `size`.
    #[inline(always)]
    pub fn position(self, i: u32, size: u32) -> u32 {
        let word = self.start.wrapping_add(i.wrapping_mul(self.step));
        ((u64::from(word) * u64::from(size)) >> 32) as u32
    }

    /// The bit in lane `i` of a block, of 32: by multiplication, for the steps of double hashing
    /// are no good over so few.
    #[inline(always)]
    pub fn lane(self, i: u32) -> u32 {
        self.step.wrapping_mul(ROW_MULTIPLIERS[i as usize] as u32) >> 27
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Positions must never change: state files and merges rely on them.
    #[test]
    fn positions_are_pinned() {
        let of = |h: KeyHash| {
            (h.slot(3000), h.row(0, 1024).0, h.row(3, 1024).0, h.row(1, 9338), h.bloom().position(7, 80_000))
        };
        for (seed, golden) in [(Seed::v1(42), GOLDEN_V1), (42.into(), GOLDEN_V2)] {
            let seed = HashSeed::new(seed);
            assert_eq!(of(seed.hash(&1u32.to_le_bytes())), golden[0]);
            assert_eq!(of(seed.hash(&1u64.to_le_bytes())), golden[0], "a number hashes alike at 4 and 8 bytes");
            assert_eq!(of(seed.hash(b"0123456789abc")), golden[1]);
            assert_eq!(of(seed.hash(b"0123456789abcdef")), golden[2]);
        }
    }
    type Positions = (usize, u32, u32, (u32, bool), u32);
    const GOLDEN_V1: [Positions; 3] = [
        (288, 478, 186, (2211, false), 71888),
        (2625, 230, 492, (7139, false), 28720),
        (100, 599, 524, (6604, true), 49616),
    ];
    // Computed by tests/golden/make_hashes.py.
    const GOLDEN_V2: [Positions; 3] = [
        (251, 992, 615, (8000, false), 64441),
        (2001, 80, 605, (3179, true), 24314),
        (2774, 699, 928, (2523, false), 14078),
    ];

    /// Chi-square of positions over cells, in standard deviations from what chance gives.
    fn unevenness(positions: impl Iterator<Item = usize>, cells: usize) -> f64 {
        let mut counts = vec![0u32; cells];
        let mut n = 0u32;
        for position in positions {
            counts[position] += 1;
            n += 1;
        }
        let expected = f64::from(n) / cells as f64;
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        let degrees = (cells - 1) as f64;
        (chi - degrees) / (2.0 * degrees).sqrt()
    }

    /// The keys of a family all differ in one word, and the other word is the secret that it is
    /// xored with: a product of zero. Once they all hashed alike.
    #[test]
    fn a_word_that_equals_a_secret_crowds_nothing() {
        for number in 0..20u128 {
            let seed = HashSeed::new(number.into());
            for (word, secret) in [(0, seed.secret[0]), (1, seed.secret[1])] {
                let hashes = (0..20_000u64).map(|other| {
                    let mut key = [other; 2];
                    key[word] = secret;
                    let mut bytes = [0; 16];
                    bytes[..8].copy_from_slice(&key[0].to_le_bytes());
                    bytes[8..].copy_from_slice(&key[1].to_le_bytes());
                    seed.hash(&bytes)
                });
                let hashes: Vec<KeyHash> = hashes.collect();
                for uneven in [
                    unevenness(hashes.iter().map(|h| h.slot(500)), 500),
                    unevenness(hashes.iter().map(|h| h.row(0, 500).0 as usize), 500),
                    unevenness(hashes.iter().map(|h| h.bloom().position(0, 500) as usize), 500),
                ] {
                    assert!(uneven < 6.0, "{uneven} standard deviations, seed {number}, word {word}");
                }
            }
        }
    }

    /// Short keys are their own digests, so the hash sees text as it is.
    #[test]
    fn positions_of_short_texts_are_even() {
        for number in 0..50u128 {
            let seed = HashSeed::new(number.into());
            let texts: [fn(u32) -> std::string::String; 4] = [
                |i| std::format!("{i}"),
                |i| std::format!("/page/{i:06}"),
                |i| std::format!("10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255),
                |i| std::format!("{i:x}.example.org"),
            ];
            for text in texts {
                let hashes: Vec<KeyHash> =
                    (0..20_000).map(|i| seed.hash(&seed.digest.digest(text(i).as_bytes()))).collect();
                for uneven in [
                    unevenness(hashes.iter().map(|h| h.slot(500)), 500),
                    unevenness(hashes.iter().map(|h| h.row(0, 500).0 as usize), 500),
                    unevenness(hashes.iter().map(|h| h.row(3, 500).0 as usize), 500),
                    unevenness(hashes.iter().map(|h| h.bloom().position(0, 500) as usize), 500),
                ] {
                    assert!(uneven < 6.0, "{uneven} standard deviations, seed {number}, '{}'", text(1));
                }
            }
        }
    }

    /// Each kind of position is spread evenly over sequential keys (the worst natural case):
    /// chi-square within six standard deviations.
    #[test]
    fn positions_are_even() {
        let seed = HashSeed::new(3.into());
        let n = 200_000u32;
        let check = |name: &str, position: &dyn Fn(KeyHash) -> usize, cells: usize| {
            let uneven = unevenness((0..n).map(|key| position(seed.hash(&key.to_le_bytes()))), cells);
            assert!(uneven.abs() < 6.0, "{name}: {uneven} standard deviations");
        };
        check("slot", &|h| h.slot(1000), 1000);
        for row in 0..MAX_DEGREE {
            check("row", &|h| h.row(row, 1000).0 as usize, 1000);
            check("sign", &|h| usize::from(h.row(row, 1000).1), 2);
        }
        for i in 0..MAX_BLOOM_HASHES as u32 {
            check("bloom", &|h| h.bloom().position(i, 1000) as usize, 1000);
        }
        check("two rows", &|h| h.row(0, 32).0 as usize * 32 + h.row(1, 32).0 as usize, 1024);
        check("slot and row", &|h| h.slot(32) * 32 + h.row(0, 32).0 as usize, 1024);
        check("row and bloom", &|h| h.row(0, 32).0 as usize * 32 + h.bloom().position(0, 32) as usize, 1024);
        check("slot and bloom", &|h| h.slot(32) * 32 + h.bloom().position(0, 32) as usize, 1024);
        check("row and sign", &|h| h.row(2, 512).0 as usize * 2 + usize::from(h.row(2, 512).1), 1024);
    }

    /// The slot is the position with the least mixing: even for keys in steps, under many seeds.
    #[test]
    fn slots_are_even_for_keys_in_steps() {
        let mut worst: f64 = 0.0;
        for seed in (0..200u128).map(|seed| HashSeed::new(seed.into())) {
            for step in [1u64, 2, 256, 1000, 65_536, 1 << 24, 1 << 32, 0x0101_0101] {
                let slots = (0..30_000u64).map(|key| seed.hash(&(key * step).to_le_bytes()).slot(500));
                worst = worst.max(unevenness(slots, 500));
            }
        }
        assert!(worst < 8.0, "{worst} standard deviations");
    }

    /// Keys that meet in two rows must not therefore meet in a third (what double hashing would
    /// do).
    #[test]
    fn rows_collide_independently() {
        let seed = HashSeed::new(5.into());
        let mut by_two_rows = std::collections::HashMap::<(u32, u32), Vec<KeyHash>>::new();
        for key in 0..60_000u32 {
            let h = seed.hash(&key.to_le_bytes());
            by_two_rows.entry((h.row(0, 256).0, h.row(1, 256).0)).or_default().push(h);
        }
        let (mut pairs, mut met) = (0u32, 0u32);
        for group in by_two_rows.values() {
            for (i, a) in group.iter().enumerate() {
                for b in &group[..i] {
                    pairs += 1;
                    met += u32::from(a.row(2, 256).0 == b.row(2, 256).0);
                }
            }
        }
        let expected = f64::from(pairs) / 256.0;
        assert!(pairs > 10_000 && (f64::from(met) - expected).abs() < 6.0 * expected.sqrt(), "{met} of {pairs}");
    }
}
