//! The number that fixes every hash, and which functions it keys.

use core::fmt;
use core::str::FromStr;

/// Version of the hash functions. A sketch keeps the ones it was begun with, because its digests
/// name keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hashing {
    /// Format version 1 of state files, versions 1 and 2 of the wire: 64-bit seeds, XXH3-128
    /// digests. Keys over 240 bytes can be made to collide by someone who does not know the seed.
    V1,
    /// 128-bit seeds, SipHash-2-4 digests.
    #[default]
    V2,
}

impl Hashing {
    /// All versions, oldest first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The number under which it is stored and sent.
    pub fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// Returns the version with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }
}

impl fmt::Display for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.number())
    }
}

/// A seed of 128 bits. It fixes every hash; where keys may be hostile, draw it at random.
///
/// Written in decimal or, from 2^64 on, in hexadecimal; both are read.
///
/// ```
/// use ucl_data_plane::Seed;
/// assert_eq!(Seed::from(7).to_string(), "7");
/// let large: Seed = "0x0123456789abcdef0123456789abcdef".parse()?;
/// assert_eq!(large.to_string(), "0x0123456789abcdef0123456789abcdef");
/// # Ok::<(), ucl_data_plane::ParseSeedError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed {
    value: u128,
    hashing: Hashing,
}

impl Seed {
    /// A seed for the present functions.
    pub const fn new(value: u128) -> Self {
        Self { value, hashing: Hashing::V2 }
    }

    /// A seed for the functions of [`Hashing::V1`], which had 64 bits: for what an older version
    /// wrote.
    pub fn v1(value: u64) -> Self {
        Self { value: value.into(), hashing: Hashing::V1 }
    }

    /// The number.
    pub fn value(self) -> u128 {
        self.value
    }

    /// The functions that it keys.
    pub fn hashing(self) -> Hashing {
        self.hashing
    }

    /// Returns another seed for the same functions. Those of [`Hashing::V1`] use its low 64 bits.
    pub fn with_value(self, value: u128) -> Self {
        let value = match self.hashing {
            Hashing::V1 => u128::from(value as u64),
            Hashing::V2 => value,
        };
        Self { value, ..self }
    }

    /// Returns the same number for other functions.
    pub fn with_hashing(self, hashing: Hashing) -> Self {
        Self { hashing, ..self }.with_value(self.value)
    }

    /// 64 bits of it, for random choices that nobody has an interest in foreseeing.
    pub fn folded(self) -> u64 {
        self.value as u64 ^ (self.value >> 64) as u64
    }
}

impl From<u128> for Seed {
    fn from(value: u128) -> Self {
        Self::new(value)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match u64::try_from(self.value) {
            Ok(small) => write!(f, "{small}"),
            Err(_) => write!(f, "{:#034x}", self.value),
        }
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A text that is no seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a seed is a number from 0 to 2^128 - 1, in decimal or as 0x and up to 32 hexadecimal digits")]
pub struct ParseSeedError;

impl FromStr for Seed {
    type Err = ParseSeedError;

    fn from_str(text: &str) -> Result<Self, ParseSeedError> {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16));
        // `from_str_radix` would take a sign.
        let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let value = u128::from_str_radix(digits, radix).ok().filter(|_| plain);
        value.map(Self::from).ok_or(ParseSeedError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_seed_is_read_as_it_is_written() {
        for value in [0, 1, u64::MAX.into(), 1 << 64, u128::MAX] {
            let seed = Seed::from(value);
            assert_eq!(seed.to_string().parse(), Ok(seed));
            assert_eq!(value.to_string().parse(), Ok(seed));
        }
        for text in ["", "-1", "+1", "0x", "0x+1", "x", "1e3", "340282366920938463463374607431768211456"] {
            assert_eq!(text.parse::<Seed>(), Err(ParseSeedError), "{text}");
        }
    }

    #[test]
    fn older_functions_have_64_bits() {
        let old = Seed::v1(7);
        assert_eq!(old.with_value(1 << 64 | 9), Seed::v1(9));
        assert_eq!(Seed::from(1 << 64 | 9).with_hashing(Hashing::V1), Seed::v1(9));
        assert_ne!(old, Seed::from(7), "the same number keys other functions");
    }
}
