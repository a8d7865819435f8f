//! Integers of any size as byte tokens and raw low bits.
//!
//! Values below `2^EXACT` are their own tokens. A larger one, of `b + 1` bits, gives a token for
//! `b` and its `LEAD` bits after the first; the `b - LEAD` low bits follow as they are, for they
//! are close to uniform. Long lists use 4 and 2 (256 tokens reach 64 bits); short ones 0 and 0, the
//! bare bit length, since a table of many frequencies would cost more than it saves.

use alloc::vec::Vec;

use super::bits::{BitReader, BitWriter};
use super::block;
use crate::WireError;
use crate::bytes::Reader;

/// Rule for splitting values into tokens and bits.
#[derive(Clone, Copy, Debug)]
struct Split {
    /// Values below `2^exact` are their own tokens.
    exact: u32,
    /// Bits after the first that belong to the token.
    lead: u32,
    /// Bits of the largest token.
    token_bits: u32,
}

impl Split {
    const FINE: Self = Self { exact: 4, lead: 2, token_bits: 8 };
    const COARSE: Self = Self { exact: 0, lead: 0, token_bits: 7 };

    fn of(values: usize) -> Self {
        if values >= 1024 { Self::FINE } else { Self::COARSE }
    }

    /// Token and number of raw bits.
    #[inline]
    fn token(self, value: u64) -> (u8, u32) {
        if value >> self.exact == 0 {
            return (value as u8, 0);
        }
        let top = value.ilog2();
        let lead = (value >> (top - self.lead)) & ((1 << self.lead) - 1);
        (((1 << self.exact) + ((top - self.exact) << self.lead)) as u8 + lead as u8, top - self.lead)
    }

    /// Number of raw bits and what they add to; none for a token that is never written.
    #[inline]
    fn base(self, token: u8) -> Option<(u32, u64)> {
        let Some(above) = u32::from(token).checked_sub(1 << self.exact) else { return Some((0, token.into())) };
        let top = (above >> self.lead) + self.exact;
        let lead = u64::from(above) & ((1 << self.lead) - 1);
        (top < 64).then(|| (top - self.lead, (1 << top) | lead << (top - self.lead)))
    }
}

/// Buffers that are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) words: Vec<u16>,
    pub(crate) symbols: Vec<u8>,
}

impl Scratch {
    pub(crate) fn memory(&self) -> usize {
        self.words.capacity() * 2 + self.symbols.capacity()
    }
}

/// Appends values; their number is known from elsewhere.
pub(crate) fn write(values: impl ExactSizeIterator<Item = u64> + Clone, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let split = Split::of(values.len());
    scratch.symbols.clear();
    scratch.symbols.extend(values.clone().map(|value| split.token(value).0));
    block::write(&scratch.symbols, split.token_bits, &mut scratch.words, out);
    let mut bits = BitWriter::new(out);
    for value in values {
        let raw = split.token(value).1;
        bits.put_wide(value & ((1 << raw) - 1), raw);
    }
    bits.finish();
}

/// Reads `n` values. The caller has checked that `n` is no more than it is ready to hold.
pub(crate) fn read(reader: &mut Reader<'_>, n: usize, what: &'static str) -> Result<Vec<u64>, WireError> {
    let split = Split::of(n);
    let tokens = block::read(reader, n, split.token_bits, what)?;
    let mut bits = BitReader::new(reader, what);
    let value = |token: u8| {
        let (raw, base) = split.base(token).ok_or(WireError::Corrupt { what })?;
        Ok(base | bits.take_wide(raw)?)
    };
    let values = tokens.into_iter().map(value).collect::<Result<_, WireError>>()?;
    bits.finish()?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_cover_every_value_once() {
        for split in [Split::FINE, Split::COARSE] {
            let tokens = 0..=u8::MAX;
            let covered: u128 = tokens.filter_map(|t| split.base(t)).map(|(raw, _)| 1u128 << raw).sum();
            assert_eq!(covered, 1 << 64);
            assert!(u32::from(split.token(u64::MAX).0) >> split.token_bits == 0);
        }
    }

    proptest! {
        #[test]
        fn values_round_trip(
            some in prop::collection::vec(prop_oneof![0u64..20, 0u64..1 << 20, any::<u64>()], 0..60),
            times in 1usize..40,
        ) {
            let values = some.repeat(times);
            let mut out = Vec::new();
            write(values.iter().copied(), &mut Scratch::default(), &mut out);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(read(&mut reader, values.len(), "test")?, values);
            reader.end()?;
        }
    }
}
