//! Seeded generators of streams, for demonstrations, tests and experiments that anyone can repeat.
//!
//! | generator | keys | default |
//! |---|---|---|
//! | `zipf:SKEW[:ITEMS[:KEYS]]` | 4 bytes, see [`ZipfKeys`] | 2,000,000 items over 2^31 - 1 keys |
//! | `caida-like[:PACKETS]` | 13-byte five-tuples, see [`CaidaLike`] | 1,000,000 packets |
//!
//! The paper's synthetic streams have 2M items with 22K (skew 1.5) to 214K (skew 1.2) distinct
//! keys. With 2^31 - 1 keys to draw from, 22K and 213K are to be expected.

mod caida_like;
mod rng;
mod zipf;

use std::fmt;
use std::str::FromStr;

pub use caida_like::CaidaLike;
pub use rng::SplitMix64;
pub use zipf::ZipfKeys;

use crate::SpecError;
use crate::collect::{Collector, Halt};
use crate::error::Place;
use crate::format::{Format, PacketKey};

/// A generator with its arguments.
///
/// ```
/// use ucl_streams::Generator;
///
/// let generator: Generator = "zipf:1.2".parse()?;
/// assert_eq!(generator.to_string(), "zipf:1.2:2000000:2147483647");
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Generator {
    /// `zipf:SKEW[:ITEMS[:KEYS]]`.
    Zipf {
        /// Exponent of the distribution, from 0 to [`ZipfKeys::MAX_SKEW`].
        skew: f64,
        /// Number of items.
        items: u64,
        /// Number of keys to draw from, from 1 to [`ZipfKeys::MAX_KEYS`].
        keys: u64,
    },
    /// `caida-like[:PACKETS]`.
    CaidaLike {
        /// Number of packets.
        packets: u64,
    },
}

impl Generator {
    /// Default number of items of a `zipf` stream, as in the paper.
    pub const ZIPF_ITEMS: u64 = 2_000_000;
    /// Default number of keys of a `zipf` stream.
    pub const ZIPF_KEYS: u64 = (1 << 31) - 1;
    /// Default number of packets of a `caida-like` stream, as in the paper.
    pub const PACKETS: u64 = 1_000_000;

    /// Returns the format of the generated keys.
    pub fn format(&self) -> Format {
        match self {
            Generator::Zipf { .. } => Format::Fimi,
            Generator::CaidaLike { .. } => Format::Pcap(vec![PacketKey::FiveTuple]),
        }
    }

    /// Number of items that the generator makes.
    pub fn items(&self) -> u64 {
        match *self {
            Generator::Zipf { items, .. } => items,
            Generator::CaidaLike { packets } => packets,
        }
    }

    pub(crate) fn run(&self, seed: u64, out: &mut Collector<'_>) -> Result<(), Halt> {
        fn feed<const N: usize>(
            keys: impl Iterator<Item = [u8; N]>,
            items: u64,
            out: &mut Collector<'_>,
        ) -> Result<(), Halt> {
            for (item, key) in (0..items).zip(keys) {
                out.key(&key, 1, Place::Byte(item * N as u64))?;
            }
            out.flush()
        }
        out.input = self.to_string();
        match *self {
            Generator::Zipf { skew, items, keys } => feed(ZipfKeys::new(skew, keys, seed), items, out),
            Generator::CaidaLike { packets } => feed(CaidaLike::new(packets, seed), packets, out),
        }
    }
}

impl FromStr for Generator {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let bad = |problem: String| SpecError::Generator { given: text.to_owned(), problem };
        let count = |name: &str, part: Option<&str>, default: u64, most: u64| match part {
            None => Ok(default),
            Some(part) => match part.parse::<u64>() {
                Ok(n) if (1..=most).contains(&n) => Ok(n),
                _ => Err(bad(format!("{name} `{part}` is not a number from 1 to {most}"))),
            },
        };
        // Item numbers times key bytes must stay within 64 bits.
        const MOST: u64 = 1 << 56;
        let mut parts = text.split(':');
        let generator = match parts.next() {
            Some("zipf") => {
                let skew = parts.next().unwrap_or("");
                let skew = match skew.parse::<f64>() {
                    Ok(skew) if (0.0..=ZipfKeys::MAX_SKEW).contains(&skew) => skew,
                    _ => return Err(bad(format!("skew `{skew}` is not a number from 0 to {}", ZipfKeys::MAX_SKEW))),
                };
                let items = count("items", parts.next(), Self::ZIPF_ITEMS, MOST)?;
                Generator::Zipf { skew, items, keys: count("keys", parts.next(), Self::ZIPF_KEYS, ZipfKeys::MAX_KEYS)? }
            }
            Some("caida-like") => {
                Generator::CaidaLike { packets: count("packets", parts.next(), Self::PACKETS, MOST)? }
            }
            _ => return Err(bad("no such generator".to_owned())),
        };
        match parts.next() {
            None => Ok(generator),
            Some(extra) => Err(bad(format!("`{extra}` is one argument too many"))),
        }
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generator::Zipf { skew, items, keys } => write!(f, "zipf:{skew}:{items}:{keys}"),
            Generator::CaidaLike { packets } => write!(f, "caida-like:{packets}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        assert_eq!("caida-like".parse(), Ok(Generator::CaidaLike { packets: 1_000_000 }));
        assert_eq!("zipf:1:10:7".parse(), Ok(Generator::Zipf { skew: 1.0, items: 10, keys: 7 }));
        for text in [
            "zipf",
            "zipf:",
            "zipf:-1",
            "zipf:nan",
            "zipf:17",
            "zipf:1:0",
            "zipf:1:x",
            "zipf:1:1:4294967297",
            "zipf:1:1:1:1",
            "caida-like:",
            "caida-like:1:1",
        ] {
            let message = text.parse::<Generator>().unwrap_err().to_string();
            assert!(message.contains("zipf:SKEW[:ITEMS[:KEYS]], caida-like[:PACKETS]"), "{message}");
        }
    }
}
