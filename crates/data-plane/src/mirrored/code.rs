//! Keys as a set number and a tag, and back.
//!
//! A slot need not store what its place already says (*quotienting*). A key, read as a number, is
//! divided by the number of sets; the remainder says the set and the quotient is the tag:
//!
//! ```text
//! key = rest ‖ word          word = q · sets + r
//! set = (r + F(q, rest)) mod sets            tag = (q, rest)
//! ```
//! `F` is keyed by the seed. It moves the remainders of each quotient by an amount that nobody can
//! foresee without the seed, so that no choice of keys crowds a set; and since set and tag give `F`
//! again, the key is known from both: nothing collides and nothing is lost. More than this is not
//! scrambled, on purpose: small numbers stay small and ports stay ports, and the models of
//! [`model`](super::model) make use of it.

use crate::hash::fold;
use crate::key::KeyFormat;
use crate::seed::Seed;

/// What a slot stores of a key, beside what its set says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The part of the key that does not choose the set, as it is.
    pub rest: u128,
    /// The quotient of the part that does.
    pub quotient: u64,
}

/// The keyed bijection between keys of one size and (set, tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCode {
    keys: KeyFormat,
    sets: u32,
    /// `ceil(2^63 / sets)`: a multiplication in place of a division, exact for words of 32 bits.
    reciprocal: u64,
    secret: [u64; 3],
}

/// A five-tuple's bytes: source, destination, source port, destination port, protocol.
const FIVE_TUPLE: usize = 13;
/// The destination address chooses the set of a five-tuple.
const DESTINATION: usize = 4;

impl KeyCode {
    /// The code of keys for a table of `sets` sets.
    pub fn new(keys: KeyFormat, sets: u32, seed: Seed) -> Self {
        let secret = crate::hash::set_secrets(seed);
        Self { keys, sets, reciprocal: (1u64 << 63).div_ceil(sets.into()), secret }
    }

    /// How many sets there are.
    pub fn sets(&self) -> u32 {
        self.sets
    }

    /// Bits of the word that chooses the set, and of the rest.
    pub fn bits(&self) -> (u32, u32) {
        match self.keys {
            KeyFormat::Fixed(4) => (32, 0),
            KeyFormat::Fixed(8) => (64, 0),
            KeyFormat::Fixed(13) => (32, 72),
            KeyFormat::Code(bits) => (bits.into(), 0),
            KeyFormat::Fixed(_) | KeyFormat::Digest => (64, 64),
        }
    }

    /// Bits that every quotient fits in.
    pub fn quotient_bits(&self) -> u32 {
        let largest = u64::MAX >> (u64::BITS - self.bits().0);
        u64::BITS - (largest / u64::from(self.sets)).leading_zeros()
    }

    /// Splits a key into its set and its tag.
    #[inline(always)]
    pub fn split<const N: usize>(&self, key: &[u8; N]) -> (u32, Tag) {
        let rest = rest(key);
        let word = match N {
            4 => u32::from_le_bytes(part(key, 0)).into(),
            FIVE_TUPLE => u32::from_le_bytes(part(key, DESTINATION)).into(),
            _ => u64::from_le_bytes(part(key, 0)),
        };
        let quotient = if N == 4 || N == FIVE_TUPLE {
            // Of 2^63, but the upper half of a product is at hand.
            ((u128::from(word << 1) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            word / u64::from(self.sets)
        };
        let remainder = (word - quotient * u64::from(self.sets)) as u32;
        let tag = Tag { rest, quotient };
        let set = remainder + self.shift(&tag);
        (if set >= self.sets { set - self.sets } else { set }, tag)
    }

    /// The tag of a key of the format's size.
    pub fn tag_of(&self, key: &[u8]) -> Tag {
        fn of<const N: usize>(code: &KeyCode, key: &[u8]) -> Tag {
            key.try_into().map_or(Tag::default(), |key: &[u8; N]| code.split(key).1)
        }
        match self.keys.slot_bytes() {
            4 => of::<4>(self, key),
            8 => of::<8>(self, key),
            FIVE_TUPLE => of::<FIVE_TUPLE>(self, key),
            _ => of::<16>(self, key),
        }
    }

    /// The key of a set and a tag: what [`KeyCode::split`] took apart, in the first bytes.
    pub fn join(&self, set: u32, tag: &Tag) -> [u8; 16] {
        let shift = self.shift(tag);
        let remainder = if set >= shift { set - shift } else { set + self.sets - shift };
        // A tag that no key has may not fit its word: it is cut off.
        let word = tag.quotient.wrapping_mul(self.sets.into()).wrapping_add(remainder.into());
        let mut key = [0; 16];
        match self.keys.slot_bytes() {
            4 => key[..4].copy_from_slice(&(word as u32).to_le_bytes()),
            8 => key[..8].copy_from_slice(&word.to_le_bytes()),
            FIVE_TUPLE => {
                key[..4].copy_from_slice(&(tag.rest as u32).to_le_bytes());
                key[4..8].copy_from_slice(&(word as u32).to_le_bytes());
                key[8..13].copy_from_slice(&(tag.rest >> 32).to_le_bytes()[..5]);
            }
            _ => {
                key[..8].copy_from_slice(&word.to_le_bytes());
                key[8..].copy_from_slice(&(tag.rest as u64).to_le_bytes());
            }
        }
        key
    }

    /// `F`: how far the remainders of a quotient are moved.
    #[inline(always)]
    fn shift(&self, tag: &Tag) -> u32 {
        let [a, b, c] = self.secret;
        let (x, y) = (tag.quotient ^ a, tag.rest as u64 ^ (tag.rest >> 64) as u64 ^ b);
        let mixed = fold(x, y) ^ x ^ y;
        let word = fold(mixed, c) >> 32;
        ((word * u64::from(self.sets)) >> 32) as u32
    }
}

/// What of a key does not choose its set and is no part of the quotient.
#[inline(always)]
pub fn rest<const N: usize>(key: &[u8; N]) -> u128 {
    match N {
        4 | 8 => 0,
        FIVE_TUPLE => {
            let source = u128::from(u32::from_le_bytes(part(key, 0)));
            // The five bytes at the end, with three before them.
            source | u128::from(u64::from_le_bytes(part(key, 5)) >> 24) << 32
        }
        _ => u64::from_le_bytes(part(key, 8)).into(),
    }
}

#[inline(always)]
fn part<const N: usize, const M: usize>(key: &[u8; N], at: usize) -> [u8; M] {
    key[at..at + M].try_into().expect("the key is this long")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::vec;

    fn check<const N: usize>(code: &KeyCode, key: [u8; N]) {
        let (set, tag) = code.split(&key);
        assert!(set < code.sets());
        assert!(u128::from(tag.quotient) >> code.quotient_bits() == 0, "{} in {code:?}", tag.quotient);
        assert_eq!(code.join(set, &tag)[..N], key, "{code:?}");
    }

    proptest! {
        #[test]
        fn set_and_tag_are_the_key(key: [u8; 16], sets in prop_oneof![1u32..10, 1u32..100_000, Just(1 << 28)], seed: u128) {
            let code = |keys| KeyCode::new(keys, sets, seed.into());
            check::<4>(&code(KeyFormat::Fixed(4)), key[..4].try_into().unwrap());
            check::<8>(&code(KeyFormat::Fixed(8)), key[..8].try_into().unwrap());
            check::<13>(&code(KeyFormat::Fixed(13)), key[..13].try_into().unwrap());
            check::<16>(&code(KeyFormat::Fixed(16)), key);
            check::<4>(&code(KeyFormat::Fixed(4)), [255; 4]);
            check::<8>(&code(KeyFormat::Fixed(8)), [255; 8]);
            for bits in [8u8, 36, 63, 64] {
                let word = u64::from_le_bytes(key[..8].try_into().unwrap()) >> (64 - bits);
                check::<8>(&code(KeyFormat::Code(bits)), word.to_le_bytes());
            }
        }
    }

    #[test]
    fn different_keys_never_meet() {
        let code = KeyCode::new(KeyFormat::Fixed(4), 97, 5.into());
        let all: HashSet<_> = (0..100_000u32).map(|key| code.split(&key.to_le_bytes())).collect();
        assert_eq!(all.len(), 100_000);
    }

    /// Keys in any step fill the sets as evenly as chance does, or more evenly.
    #[test]
    fn sets_are_even() {
        let sets = 500;
        for seed in 0..40u128 {
            let code = KeyCode::new(KeyFormat::Fixed(8), sets, seed.into());
            for step in [1u64, 2, 500, 1000, 65_536, 1 << 32, 500 << 20, 0x0101_0101_0101] {
                let mut counts = vec![0u32; sets as usize];
                for key in 0..20_000u64 {
                    counts[code.split(&key.wrapping_mul(step).to_le_bytes()).0 as usize] += 1;
                }
                let chi: f64 = counts.iter().map(|&count| (f64::from(count) - 40.0).powi(2) / 40.0).sum();
                let degrees = f64::from(sets - 1);
                assert!(chi - degrees < 6.0 * (2.0 * degrees).sqrt(), "seed {seed}, step {step}: {chi}");
            }
        }
    }
}
