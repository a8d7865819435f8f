//! What a name takes on the wire, as foretold.
//!
//! Names travel as predictions by the three bytes before and the bytes that those miss (`text` in
//! `ucl-wire`). The encoder works on whole messages, and a limit has to know at once. So the same
//! predictions are made here, one byte each, and misses and runs of hits have a price.

use alloc::vec;
use alloc::vec::Vec;

/// Bits by which a prediction is found.
const BITS: u32 = 10;
/// Eighths of a byte: for a byte that was not foretold, for each run that was, and for a name.
const MISS: u64 = 5;
const RUN: u64 = 3;
const NAME: u64 = 8;

/// Returns where a table of `2^bits` entries has what followed these three bytes.
pub fn index_of(last: [u8; 3], bits: u32) -> usize {
    let [a, b, c] = last;
    (u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9E37_79B1) >> (u32::BITS - bits)) as usize
}

/// Foretells what names take, from those before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct NamePrice {
    /// What followed three bytes last, by their hash.
    #[cfg_attr(feature = "serde", serde(with = "serde_bytes"))]
    next: Vec<u8>,
    last: [u8; 3],
}

impl NamePrice {
    /// Bytes that it takes.
    pub const BYTES: usize = 1 << BITS;

    /// No name was sent yet.
    pub fn new() -> Self {
        Self { next: vec![0; Self::BYTES], last: [0; 3] }
    }

    /// Whether it has its size.
    #[cfg(feature = "serde")]
    pub fn is_whole(&self) -> bool {
        self.next.len() == Self::BYTES
    }

    /// Returns the bytes that a name takes, about, and learns from it.
    pub fn of(&mut self, name: &[u8]) -> u64 {
        let mut eighths = NAME;
        let mut in_run = false;
        for &byte in name {
            let [_, b, c] = self.last;
            let hit = core::mem::replace(&mut self.next[index_of(self.last, BITS)], byte) == byte;
            eighths += match (hit, in_run) {
                (false, _) => MISS,
                (true, false) => RUN,
                (true, true) => 0,
            };
            in_run = hit;
            self.last = [b, c, byte];
        }
        eighths.div_ceil(8)
    }
}
