//! Keys as the data plane holds them.
//!
//! A slot of the heavy part has no room for keys of any length. Keys of 4, 8, 13 (a five-tuple) and 16 bytes sit in
//! the slot as they are. All other keys, and keys that vary in length, sit there as a 16-byte digest; since a digest
//! cannot be turned back, such a key is reported in full at first sight, not when it leaves its slot.

use core::fmt;

use crate::ConfigError;

/// The longest key that can be counted, in bytes.
pub const MAX_KEY_BYTES: usize = 65_535;

/// How keys sit in the heavy part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum KeyFormat {
    /// Every key has this many bytes (4, 8, 13 or 16) and sits in its slot as it is.
    Fixed(u8),
    /// Keys of any length up to [`MAX_KEY_BYTES`]; slots hold 16-byte digests.
    Digest,
}

impl KeyFormat {
    /// The key sizes with a fast path.
    pub const FIXED_SIZES: [usize; 4] = [4, 8, 13, 16];

    /// The format for keys that all have `bytes` bytes.
    ///
    /// ```
    /// use ucl_data_plane::KeyFormat;
    /// assert_eq!(KeyFormat::for_key_bytes(13).unwrap(), KeyFormat::Fixed(13));
    /// assert_eq!(KeyFormat::for_key_bytes(40).unwrap(), KeyFormat::Digest);
    /// assert!(KeyFormat::for_key_bytes(70_000).is_err());
    /// ```
    pub fn for_key_bytes(bytes: usize) -> Result<Self, ConfigError> {
        match bytes {
            4 | 8 | 13 | 16 => Ok(Self::Fixed(bytes as u8)),
            0..=MAX_KEY_BYTES => Ok(Self::Digest),
            _ => Err(ConfigError::KeyTooLong { bytes }),
        }
    }

    /// Bytes a key takes in a slot.
    pub fn slot_bytes(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes.into(),
            Self::Digest => 16,
        }
    }
}

impl fmt::Display for KeyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}-byte keys"),
            Self::Digest => f.write_str("keys of any length (16-byte digests)"),
        }
    }
}

/// A key in a slot, as two words: what gets hashed and compared. Little-endian by name, so that hashes agree on
/// every machine.
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

/// The digest by which a key of any length is told from others. 128 bits: two keys of a billion collide with
/// probability 2^-69. It does not change when the sketch is rehashed, for it names the key.
pub fn digest(key: &[u8], digest_seed: u64) -> [u8; 16] {
    xxhash_rust::xxh3::xxh3_128_with_seed(key, digest_seed).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn digests_are_pinned() {
        assert_eq!(u128::from_le_bytes(digest(b"", 0)), 0x99aa06d3014798d86001c324468d497f);
        assert_ne!(digest(b"GET /index.html", 7), digest(b"GET /index.html", 8));
    }
}
