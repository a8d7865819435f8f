//! How often each symbol occurs, scaled to a power of two, in memory and on the wire.

use alloc::vec::Vec;

use super::bits::{BitReader, BitWriter};
use crate::WireError;
use crate::bytes::{Reader, unzigzag, zigzag};

/// The finest scale: frequencies add up to `2^14`.
pub(crate) const MAX_LOG: u32 = 14;
/// The coarsest scale, which has room for 256 symbols.
pub(crate) const MIN_LOG: u32 = 8;

/// Frequencies of 256 symbols that add up to `2^log`; a symbol that occurs has at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) log: u32,
    pub(crate) frequencies: [u16; 256],
}

/// Counts the occurrences of each byte.
pub(crate) fn histogram(symbols: &[u8]) -> [u32; 256] {
    if symbols.len() < 1024 {
        let mut counts = [0; 256];
        symbols.iter().for_each(|&symbol| counts[usize::from(symbol)] += 1);
        return counts;
    }
    // Four counts side by side: runs of one symbol (zeros, mostly) would otherwise wait for their
    // own last store.
    let mut counts = [[0u32; 256]; 4];
    let (eights, rest) = symbols.as_chunks::<8>();
    for eight in eights {
        for (i, &symbol) in eight.iter().enumerate() {
            counts[i % 4][usize::from(symbol)] += 1;
        }
    }
    for &symbol in rest {
        counts[0][usize::from(symbol)] += 1;
    }
    let mut total = [0; 256];
    for (i, total) in total.iter_mut().enumerate() {
        *total = counts.iter().map(|c| c[i]).sum();
    }
    total
}

impl Table {
    /// The table for `n >= 1` symbols of which `counts` occur. Integers only: the same on every
    /// machine.
    ///
    /// Each symbol that occurs gets one unit, which is worth `n / 2^log` occurrences; what it has
    /// beyond that shares the other units in proportion. Where no symbol is rarer than a unit this
    /// is exact proportion.
    pub(crate) fn new(counts: &[u32; 256], n: usize) -> Self {
        // A scale finer than the number of symbols says nothing, and costs bits.
        let log = (usize::BITS - n.leading_zeros()).saturating_sub(1).clamp(MIN_LOG, MAX_LOG);
        let occurring = counts.iter().filter(|&&c| c > 0).count() as u64;
        let beyond = |count: u32| (u64::from(count) << log).saturating_sub(n as u64);
        let total: u64 = counts.iter().map(|&c| beyond(c)).sum::<u64>().max(1);
        let units = (1 << log) - occurring;
        // Shares of a running total: rounding never adds up to more or less than all units. A block
        // has at most 2^24 symbols, so that the products stay below 2^52.
        let mut running = 0u64;
        let mut given = 0u64;
        let frequencies = counts.map(|count| {
            if count == 0 {
                return 0;
            }
            running += beyond(count);
            let upto = running * units / total;
            let share = upto - core::mem::replace(&mut given, upto);
            1 + share as u16
        });
        Self { log, frequencies }
    }

    /// About how many bits the counted symbols take, in 1/256 bits.
    pub(crate) fn cost(&self, counts: &[u32; 256]) -> u64 {
        let cost = |(&count, &frequency): (&u32, &u16)| match count {
            0 => 0,
            _ => u64::from(count) * u64::from((self.log << 8) - log2(frequency)),
        };
        counts.iter().zip(&self.frequencies).map(cost).sum()
    }

    /// Writes each frequency as its difference from the one before, until they add up to `2^log`.
    ///
    /// Neighbours differ by about the noise of a count, its square root: the differences are
    /// Exp-Golomb codes of that order. A symbol that does not occur among others costs one bit.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut bits = BitWriter::new(out);
        let mut before = 0u16;
        let mut left = 1u32 << self.log;
        for &frequency in &self.frequencies {
            if left == 0 {
                break;
            }
            let difference = zigzag(i64::from(frequency) - i64::from(before));
            let order = order(before);
            let quotient = (difference >> order) + 1;
            let length = quotient.ilog2();
            bits.put(1 << length, length + 1);
            bits.put(quotient - (1 << length), length);
            bits.put(difference & ((1 << order) - 1), order);
            left -= u32::from(frequency);
            before = frequency;
        }
        bits.finish();
    }

    /// Reads what [`Table::write`] wrote; symbols must be below `symbols`.
    pub(crate) fn read(reader: &mut Reader<'_>, log: u32, symbols: usize) -> Result<Self, WireError> {
        let corrupt = WireError::Corrupt { what: "frequency table" };
        let mut bits = BitReader::new(reader, "frequency table");
        let mut frequencies = [0u16; 256];
        let mut before = 0u16;
        let mut left = 1u32 << log;
        for frequency in &mut frequencies[..symbols] {
            if left == 0 {
                break;
            }
            let mut length = 0;
            while bits.take(1)? == 0 {
                length += 1;
                if length > MAX_LOG + 2 {
                    return Err(corrupt);
                }
            }
            let quotient = (1 << length | bits.take(length)?) - 1;
            let order = order(before);
            let difference = unzigzag(quotient << order | bits.take(order)?);
            let value = i64::from(before) + difference;
            if !(0..=i64::from(left)).contains(&value) {
                return Err(corrupt);
            }
            *frequency = value as u16;
            left -= value as u32;
            before = value as u16;
        }
        bits.finish()?;
        if left == 0 { Ok(Self { log, frequencies }) } else { Err(corrupt) }
    }
}

/// Half the bit length: the noise of a count is its square root.
fn order(before: u16) -> u32 {
    (u16::BITS - before.leading_zeros()) / 2
}

/// `log2(value) · 256` to within 3, for `value >= 1`. Integers only, for the choice that rests on
/// it must be the same on every machine.
fn log2(value: u16) -> u32 {
    let whole = value.ilog2();
    let fraction = (u32::from(value) << 16 >> whole) & 0xffff;
    // log2(1 + f) is f + 0.344 f (1 - f), nearly.
    let bulge = (((fraction * (0x1_0000 - fraction)) >> 16) * 22_545) >> 16;
    (whole << 8) + ((fraction + bulge + 128) >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts() -> impl Strategy<Value = [u32; 256]> {
        let one = prop_oneof![5 => Just(0u32), 5 => 1u32..20, 1 => 0u32..100_000];
        prop::collection::vec(one, 1..=256).prop_map(|some| {
            let mut counts = [0; 256];
            counts[..some.len()].copy_from_slice(&some);
            counts
        })
    }

    proptest! {
        #[test]
        fn tables_add_up_and_round_trip(counts in counts()) {
            let n: usize = counts.iter().map(|&c| c as usize).sum();
            prop_assume!(n > 0);
            let table = Table::new(&counts, n);
            prop_assert_eq!(table.frequencies.iter().map(|&f| u32::from(f)).sum::<u32>(), 1 << table.log);
            prop_assert!(counts.iter().zip(&table.frequencies).all(|(&c, &f)| (c > 0) <= (f > 0)));
            let mut bytes = Vec::new();
            table.write(&mut bytes);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(Table::read(&mut reader, table.log, 256)?, table);
            reader.end()?;
        }

        #[test]
        fn any_bytes_give_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64), log in MIN_LOG..=MAX_LOG) {
            if let Ok(table) = Table::read(&mut Reader::new(&bytes), log, 256) {
                prop_assert_eq!(table.frequencies.iter().map(|&f| u32::from(f)).sum::<u32>(), 1 << log);
            }
        }
    }

    #[test]
    fn log2_is_close() {
        for value in 1..=1u16 << MAX_LOG {
            let exact = f64::from(value).log2() * 256.0;
            assert!((f64::from(log2(value)) - exact).abs() < 3.0, "{value}: {} for {exact}", log2(value));
        }
    }

    #[test]
    fn a_symbol_has_its_share() {
        let mut counts = [0; 256];
        (counts[0], counts[1], counts[9]) = (3000, 1000, 96);
        let table = Table::new(&counts, 4096);
        assert_eq!((table.frequencies[0], table.frequencies[1], table.frequencies[9]), (3000, 1000, 96));
    }
}
