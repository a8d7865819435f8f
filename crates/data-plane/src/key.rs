//! Keys as the data plane holds them.
//!
//! A slot of the heavy part has no room for keys of any length. Keys of 4, 8, 13 (a five-tuple) and
//! 16 bytes sit in the slot as they are. All other keys, and keys that vary in length, sit there as
//! a 16-byte digest; since a digest cannot be turned back, such a key is reported in full at first
//! sight, not when it leaves its slot.

use core::fmt;

use siphasher::sip128::SipHasher24;

use crate::seed::Hashing;
use crate::{ConfigError, InsertError};

/// Length of the longest key that can be counted, in bytes.
pub const MAX_KEY_BYTES: usize = 65_535;

/// Format of keys in the heavy part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum KeyFormat {
    /// Every key has this many bytes (4, 8, 13 or 16) and sits in its slot as it is.
    Fixed(u8),
    /// Keys of any length up to [`MAX_KEY_BYTES`]; slots hold 16-byte digests.
    Digest,
    /// Keys of any length up to [`MAX_KEY_BYTES`]; a mirrored table holds codes of this many bits
    /// ([`DigestKey::code`]).
    Code(u8),
}

impl KeyFormat {
    /// Sizes of keys with a fast path, in bytes.
    pub const FIXED_SIZES: [usize; 4] = [4, 8, 13, 16];
    /// Largest number of bits of a code; the smallest is eight.
    pub const CODE_BITS: u8 = 64;

    /// Returns the format for keys that all have `bytes` bytes.
    ///
    /// ```
    /// use ucl_data_plane::KeyFormat;
    /// assert_eq!(KeyFormat::for_key_bytes(13).unwrap(), KeyFormat::Fixed(13));
    /// assert_eq!(KeyFormat::for_key_bytes(40).unwrap(), KeyFormat::Digest);
    /// assert!(KeyFormat::for_key_bytes(70_000).is_err());
    /// ```
    ///
    /// # Errors
    /// If the keys are longer than [`MAX_KEY_BYTES`].
    pub fn for_key_bytes(bytes: usize) -> Result<Self, ConfigError> {
        match bytes {
            4 | 8 | 13 | 16 => Ok(Self::Fixed(bytes as u8)),
            0..=MAX_KEY_BYTES => Ok(Self::Digest),
            _ => Err(ConfigError::KeyTooLong { bytes }),
        }
    }

    /// Returns true if keys may have any length, so that slots hold something that stands for them.
    #[inline]
    pub fn any_length(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// Returns whether keys may have this many bytes.
    #[inline]
    pub fn admits(self, bytes: usize) -> bool {
        match self {
            Self::Fixed(want) => usize::from(want) == bytes,
            Self::Digest | Self::Code(_) => bytes <= MAX_KEY_BYTES,
        }
    }

    /// Returns an error if keys may not have this many bytes.
    ///
    /// ```
    /// use ucl_data_plane::{InsertError, KeyFormat};
    /// assert_eq!(KeyFormat::Fixed(4).check(3), Err(InsertError::KeySize { want: 4, got: 3 }));
    /// assert_eq!(KeyFormat::Digest.check(70_000), Err(InsertError::KeyTooLong { bytes: 70_000 }));
    /// ```
    ///
    /// # Errors
    /// If the size is not the format's, or above [`MAX_KEY_BYTES`].
    #[inline]
    pub fn check(self, bytes: usize) -> Result<(), InsertError> {
        match self {
            _ if self.admits(bytes) => Ok(()),
            Self::Fixed(want) => Err(InsertError::KeySize { want: want.into(), got: bytes }),
            Self::Digest | Self::Code(_) => Err(InsertError::KeyTooLong { bytes }),
        }
    }

    /// Returns the number of bytes that a key takes in a slot.
    pub fn slot_bytes(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.into(),
            Self::Digest => 16,
            Self::Code(_) => 8,
        }
    }
}

impl fmt::Display for KeyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}-byte keys"),
            Self::Digest => f.write_str("keys of any length (16-byte digests)"),
            Self::Code(bits) => write!(f, "keys of any length ({bits}-bit codes)"),
        }
    }
}

/// A key in a slot, as two words: what gets hashed and compared. Little-endian by name, so that
/// hashes agree on every machine.
#[inline(always)]
pub(crate) fn words<const N: usize>(key: &[u8; N]) -> (u64, u64) {
    // `N` is a constant: one arm is left after compilation.
    match N {
        4 => (u32::from_le_bytes(part(key, 0)).into(), 0),
        8 => (u64::from_le_bytes(part(key, 0)), 0),
        // The tail is the last eight bytes, less those that the head has: no byte loop.
        13 => (u64::from_le_bytes(part(key, 0)), u64::from_le_bytes(part(key, 5)) >> 24),
        16 => (u64::from_le_bytes(part(key, 0)), u64::from_le_bytes(part(key, 8))),
        _ => unreachable!("slot keys have 4, 8, 13 or 16 bytes"),
    }
}

#[inline(always)]
fn part<const N: usize, const M: usize>(key: &[u8; N], at: usize) -> [u8; M] {
    key[at..at + M].try_into().expect("the key is this long")
}

/// The longest key that is its own digest.
pub const SHORT_KEY_BYTES: usize = 15;

/// Hash key that turns keys of any length into the 16 bytes that stand for them.
///
/// It does not change when a sketch is rehashed, for a digest names its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestKey {
    key: u128,
    hashing: Hashing,
}

impl DigestKey {
    pub(crate) fn new(key: u128, hashing: Hashing) -> Self {
        Self { key, hashing }
    }

    /// Returns the hash functions in use.
    pub fn hashing(self) -> Hashing {
        self.hashing
    }

    #[cfg(feature = "serde")]
    pub(crate) fn number(self) -> u128 {
        self.key
    }

    /// The two halves of the secret.
    pub(crate) fn halves(self) -> (u64, u64) {
        (self.key as u64, (self.key >> 64) as u64)
    }

    /// Returns the digest by which a key is told from others.
    ///
    /// A key of up to [`SHORT_KEY_BYTES`] bytes is its own digest: the key, zeros, and its length
    /// in the last byte. A longer one has 127 bits of SipHash-2-4-128, marked by the topmost bit.
    /// So short keys cost no hashing and collide with nothing; two long ones of a billion collide
    /// with probability 2^-68, and nobody can choose such a pair without the key.
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let key = HashSeed::new(1.into()).digest_key();
    /// assert_eq!(&key.digest(b"/index.html"), b"/index.html\0\0\0\0\x0b");
    /// assert_ne!(key.digest(b"/articles/2024"), key.digest(b"/articles/2024/"));
    /// assert!(key.digest(&[b'a'; 16])[15] >= 0x80);
    /// ```
    #[inline]
    pub fn digest(self, key: &[u8]) -> [u8; 16] {
        match self.hashing {
            Hashing::V1 => xxhash_rust::xxh3::xxh3_128_with_seed(key, self.key as u64).to_le_bytes(),
            Hashing::V2 if key.len() <= SHORT_KEY_BYTES => short_digest(key),
            Hashing::V2 => self.long_digest(key),
        }
    }

    /// Returns the key that a digest stands for, where the digest tells: that of a short key does.
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let key = HashSeed::new(1.into()).digest_key();
    /// assert_eq!(key.key_of(&key.digest(b"tea")), Some(&b"tea"[..]));
    /// assert_eq!(key.key_of(&key.digest(b"a key of more than 15 bytes")), None);
    /// ```
    #[inline]
    pub fn key_of(self, digest: &[u8; 16]) -> Option<&[u8]> {
        let len = usize::from(digest[SHORT_KEY_BYTES]);
        let (key, zeros) = digest[..SHORT_KEY_BYTES].split_at_checked(len)?;
        let own = self.hashing == Hashing::V2 && zeros.iter().all(|&byte| byte == 0);
        own.then_some(key)
    }

    fn long_digest(self, key: &[u8]) -> [u8; 16] {
        let (low, high) = self.halves();
        let hash = SipHasher24::new_with_keys(low, high).hash(key);
        (hash.as_u128() | 1 << 127).to_le_bytes()
    }
}

impl fmt::Debug for DigestKey {
    // Whoever has the key can make colliding digests: it is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestKey({})", self.hashing)
    }
}

/// The bytes of a short key, zeros, and its length. Written without a loop over a length that the
/// compiler does not know: this is on the insert path.
#[inline]
fn short_digest(key: &[u8]) -> [u8; 16] {
    let len = key.len();
    let word = |at: usize| u64::from_le_bytes(part_of(key, at));
    let half = |at: usize| u64::from(u32::from_le_bytes(part_of(key, at)));
    let (low, high) = match len {
        // The last eight bytes overlap the first: what both have is shifted out.
        8..=15 => (word(0), if len == 8 { 0 } else { word(len - 8) >> (8 * (16 - len)) }),
        4..=7 => (half(0) | half(len - 4) << (8 * (len - 4)), 0),
        _ => (key.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
    };
    let mut digest = [0; 16];
    digest[..8].copy_from_slice(&low.to_le_bytes());
    digest[8..].copy_from_slice(&(high | (len as u64) << 56).to_le_bytes());
    digest
}

#[inline(always)]
fn part_of<const M: usize>(key: &[u8], at: usize) -> [u8; M] {
    key[at..at + M].try_into().expect("the key is this long")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;
    use crate::seed::Seed;

    #[test]
    fn words_hold_every_byte_of_the_key() {
        fn check<const N: usize>() {
            let zero = words(&[0; N]);
            for byte in 0..N {
                let mut key = [0; N];
                key[byte] = 0xa5;
                assert_ne!(words(&key), zero, "byte {byte} of {N}");
                for other in 0..byte {
                    let mut second = [0; N];
                    second[other] = 0xa5;
                    assert_ne!(words(&key), words(&second));
                }
            }
        }
        check::<4>();
        check::<8>();
        check::<13>();
        check::<16>();
    }

    /// Digests must never change: they name keys in state files and messages.
    #[test]
    fn digests_are_pinned() {
        let of = |seed: Seed, key: &[u8]| u128::from_le_bytes(HashSeed::new(seed).digest_key().digest(key));
        assert_eq!(of(Seed::v1(0), b""), 0x2a51a55791294822390950ea91aa6b07);
        assert_eq!(of(7.into(), b""), 0);
        assert_eq!(of(7.into(), b"GET /index.html"), u128::from_le_bytes(*b"GET /index.html\x0f"));
        // Computed by tests/golden/make_hashes.py.
        assert_eq!(of(7.into(), b"GET /index.html?"), 0xc684_aaea_a6da_ab26_0794_dfb2_5006_cd81);
        let distinct: std::collections::HashSet<u128> =
            [0, 1, 1 << 64, u128::MAX].into_iter().map(|seed| of(seed.into(), b"GET /index.html?")).collect();
        assert_eq!(distinct.len(), 4, "every half of the seed counts");
    }

    #[test]
    fn short_digests_hold_every_byte_and_the_length() {
        let bytes: std::vec::Vec<u8> = (1..=15).collect();
        for len in 0..=SHORT_KEY_BYTES {
            let mut want = [0; 16];
            want[..len].copy_from_slice(&bytes[..len]);
            want[15] = len as u8;
            assert_eq!(short_digest(&bytes[..len]), want, "{len} bytes");
            let key = HashSeed::new(1.into()).digest_key();
            assert_eq!(key.key_of(&want), Some(&bytes[..len]));
            want[14] = 1;
            assert_eq!(key.key_of(&want).is_some(), len == 15, "not the digest of any key: {len} bytes");
        }
    }

    /// Pairs of keys that differ in the top bits of two words of one XXH3 lane. What the bits add
    /// to the lane cancels wherever the low halves of both words, xor the seeded secrets, are
    /// equal, and the public secret tells that the difference below is right for one seed in sixty.
    fn colliding_pairs() -> [([u8; 1024], [u8; 1024]); 2] {
        let key = |first_top: u8, second_top: u8| {
            let mut key = [0; 1024];
            key[7] = first_top;
            key[768..772].copy_from_slice(&0x060a_0410u32.to_le_bytes());
            key[775] = second_top;
            key
        };
        [(key(0, 0), key(0x80, 0x80)), (key(0x80, 0), key(0, 0x80))]
    }

    /// Why XXH3 digests were given up: someone who does not know the seed can make them collide.
    #[test]
    fn keys_that_collided_under_many_seeds_no_longer_do() {
        let (mut met_before, mut met_now) = (0, 0);
        for pair in colliding_pairs() {
            for seed in 0..2000u64 {
                let of = |seed: Seed, key: &[u8]| HashSeed::new(seed).digest_key().digest(key);
                met_before += u32::from(of(Seed::v1(seed), &pair.0) == of(Seed::v1(seed), &pair.1));
                let seed = Seed::from(u128::from(seed));
                met_now += u32::from(of(seed, &pair.0) == of(seed, &pair.1));
            }
        }
        assert!(met_before > 0, "the pairs still show what was wrong");
        assert_eq!(met_now, 0);
    }
}
