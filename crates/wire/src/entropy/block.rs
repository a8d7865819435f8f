//! A block of byte symbols in the cheapest of three ways.
//!
//! | first byte | then |
//! |---|---|
//! | `0` raw | each symbol in as many bits as the alphabet needs |
//! | `1` constant | the one symbol |
//! | `2 + 4·(log - 8)`, `+ 32` for four states | frequency table, states, words: [`rans`] |
//!
//! The number of symbols and the bits of the alphabet are known from elsewhere. A block of no
//! symbols is no bytes.

use alloc::vec;
use alloc::vec::Vec;

use super::bits::{BitReader, BitWriter};
use super::rans;
use super::table::{MAX_LOG, MIN_LOG, Table, histogram};
use crate::WireError;
use crate::bytes::Reader;

const RAW: u8 = 0;
const CONSTANT: u8 = 1;
const CODED: u8 = 2;
const FOUR_STATES: u8 = 32;

/// From here on a block has four states: 12 bytes more are nothing, and the speed matters.
const LONG: usize = 8192;

/// Appends `symbols`, all below `2^bits`. `words` is scratch.
pub(crate) fn write(symbols: &[u8], bits: u32, words: &mut Vec<u16>, out: &mut Vec<u8>) {
    let Some(&first) = symbols.first() else { return };
    let counts = histogram(symbols);
    if counts[usize::from(first)] as usize == symbols.len() {
        out.extend_from_slice(&[CONSTANT, first]);
        return;
    }
    let raw_bits = symbols.len() as u64 * u64::from(bits);
    let table = Table::new(&counts, symbols.len());
    // The estimate spares the work where coding is hopeless; where it is not, the real length
    // decides.
    if table.cost(&counts) >> 8 < raw_bits {
        let start = out.len();
        let mode = CODED | ((table.log - MIN_LOG) << 2) as u8;
        if symbols.len() >= LONG {
            out.push(mode | FOUR_STATES);
            table.write(out);
            rans::encode::<4>(symbols, &table, words, out);
        } else {
            out.push(mode);
            table.write(out);
            rans::encode::<1>(symbols, &table, words, out);
        }
        if out.len() - start <= raw_bits.div_ceil(8) as usize {
            return;
        }
        out.truncate(start);
    }
    out.push(RAW);
    if bits == 8 {
        out.extend_from_slice(symbols);
        return;
    }
    let mut packed = BitWriter::new(out);
    for &symbol in symbols {
        packed.put(symbol.into(), bits);
    }
    packed.finish();
}

/// Reads `n` symbols below `2^bits`. The caller has checked that `n` is no more than it is ready to
/// hold.
pub(crate) fn read(reader: &mut Reader<'_>, n: usize, bits: u32, what: &'static str) -> Result<Vec<u8>, WireError> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let mode = reader.byte(what)?;
    match mode {
        RAW if bits == 8 => Ok(reader.take(n, what)?.to_vec()),
        RAW => {
            let packed = reader.take((n * bits as usize).div_ceil(8), what)?;
            let mut packed = Reader::new(packed);
            let mut packed = BitReader::new(&mut packed, what);
            let symbols = (0..n).map(|_| Ok(packed.take(bits)? as u8)).collect::<Result<_, WireError>>()?;
            packed.finish()?;
            Ok(symbols)
        }
        CONSTANT => {
            let symbol = reader.byte(what)?;
            if u32::from(symbol) >> bits == 0 { Ok(vec![symbol; n]) } else { Err(WireError::Corrupt { what }) }
        }
        _ => {
            let log = u32::from((mode & !FOUR_STATES) >> 2) + MIN_LOG;
            if mode & 3 != CODED || mode >= 64 || log > MAX_LOG {
                return Err(WireError::Corrupt { what });
            }
            let table = Table::read(reader, log, 1 << bits)?;
            match mode & FOUR_STATES {
                0 => rans::decode::<1>(reader, n, &table),
                _ => rans::decode::<4>(reader, n, &table),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symbols() -> impl Strategy<Value = (Vec<u8>, u32)> {
        (1u32..=8, 0usize..400, 0u32..8).prop_flat_map(|(bits, n, skew)| {
            let one = (any::<u8>(), any::<u8>());
            let symbol = move |(a, b): (u8, u8)| (if skew > 0 { a & b } else { a }) >> (8 - bits);
            prop::collection::vec(one.prop_map(symbol), n).prop_map(move |s| (s, bits))
        })
    }

    fn check(symbols: &[u8], bits: u32) -> Result<usize, WireError> {
        let mut out = Vec::new();
        write(symbols, bits, &mut Vec::new(), &mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(read(&mut reader, symbols.len(), bits, "test")?, symbols);
        reader.end()?;
        Ok(out.len())
    }

    proptest! {
        #[test]
        fn blocks_round_trip_and_are_never_much_longer_than_raw((symbols, bits) in symbols()) {
            let bytes = check(&symbols, bits)?;
            prop_assert!(bytes <= 2 + (symbols.len() * bits as usize).div_ceil(8));
        }

        #[test]
        fn long_blocks_round_trip((pattern, bits) in symbols(), n in LONG..LONG + 9, step in 1usize..1000) {
            prop_assume!(!pattern.is_empty());
            let symbols: Vec<u8> = (0..n).map(|i| pattern[i * step % pattern.len()]).collect();
            check(&symbols, bits)?;
        }

        #[test]
        fn any_bytes_give_symbols_or_an_error(
            mode in 0u8..=63, mut bytes in prop::collection::vec(any::<u8>(), 1..200), n in 0usize..300, bits in 1u32..=8,
        ) {
            bytes[0] = mode;
            if let Ok(symbols) = read(&mut Reader::new(&bytes), n, bits, "test") {
                prop_assert!(symbols.len() == n && symbols.iter().all(|&s| u32::from(s) >> bits == 0));
            }
        }
    }

    /// Nine zeros in ten: 0.469 bits a symbol, and the block is within 1% + 16 bytes of it.
    #[test]
    fn zeros_cost_far_less_than_a_bit() {
        let mut random = ucl_streams::SplitMix64::new(1);
        let symbols: Vec<u8> = (0..40_000).map(|_| u8::from(random.below(10) == 0)).collect();
        let ones = symbols.iter().filter(|&&s| s == 1).count() as f64 / symbols.len() as f64;
        let entropy = -(ones * ones.log2() + (1.0 - ones) * (1.0 - ones).log2()) * symbols.len() as f64 / 8.0;
        let bytes = check(&symbols, 8).unwrap();
        assert!((bytes as f64) < entropy * 1.01 + 32.0, "{bytes} bytes for {entropy}");
        assert!(bytes as f64 >= entropy);
    }
}
