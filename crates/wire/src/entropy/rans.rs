//! Range asymmetric numeral systems: an arithmetic coder with one multiplication a symbol.
//!
//! A state `x` in `2^16 .. 2^32` takes in a symbol of frequency `f` out of `2^log`, starting at
//! `c`, by `x <- (x / f) · 2^log + c + x mod f`, which adds `log2(2^log / f)` bits to it; before
//! that, a state which would leave its range sheds its low 16 bits as a word. Decoding is the
//! inverse, so it meets the symbols last to first: the encoder walks them backwards, and the
//! decoder takes the words from the end. Four states take turns in long blocks, so that the
//! processor works on four symbols at a time; short blocks have one state, for each takes four
//! bytes to write down.
//!
//! Reference: J. Duda, "Asymmetric numeral systems: entropy coding combining speed of Huffman
//! coding with compression rate of arithmetic coding" (2013), arXiv:1311.2540.

use alloc::vec;
use alloc::vec::Vec;

use super::table::{MAX_LOG, Table};
use crate::WireError;
use crate::bytes::{Reader, put_varint};

/// The lower end of a state's range.
const LOW: u32 = 1 << 16;
/// Frequencies are brought to this scale, whatever the table's: the shifts below are constants.
const LOG: u32 = MAX_LOG;

/// Numbers for encoding each symbol, with the division by its frequency as a multiplication.
struct Steps {
    /// `2^(32 + LOG) / f`, rounded up. A state that has shed is below `f · 2^(32 - LOG)`, so that
    /// its product with this fits into 64 bits, and what the rounding adds never reaches the next
    /// quotient.
    reciprocal: [u64; 256],
    /// A state from here on sheds a word first: `f · 2^(32 - LOG)`.
    shed_at: [u32; 256],
    start: [u32; 256],
    /// `2^LOG - f`.
    others: [u32; 256],
}

impl Steps {
    fn new(table: &Table) -> Self {
        let mut steps = Self { reciprocal: [0; 256], shed_at: [0; 256], start: [0; 256], others: [0; 256] };
        let mut start = 0;
        for (symbol, &frequency) in table.frequencies.iter().enumerate() {
            let frequency = u32::from(frequency) << (LOG - table.log);
            if frequency > 0 {
                steps.reciprocal[symbol] = (1u64 << (32 + LOG)).div_ceil(frequency.into());
                steps.shed_at[symbol] = frequency << (32 - LOG);
                steps.start[symbol] = start;
                steps.others[symbol] = (1 << LOG) - frequency;
                start += frequency;
            }
        }
        steps
    }

    /// Takes a symbol into a state. Whether or not a word is shed it is written; the returned 0 or
    /// 1 says whether it counts.
    #[inline(always)]
    fn encode(&self, state: &mut u32, symbol: u8, word: &mut u16) -> usize {
        let symbol = usize::from(symbol);
        *word = *state as u16;
        let sheds = *state >= self.shed_at[symbol];
        let x = if sheds { *state >> 16 } else { *state };
        let quotient = ((u64::from(x) * self.reciprocal[symbol]) >> (32 + LOG)) as u32;
        *state = x + self.start[symbol] + quotient * self.others[symbol];
        usize::from(sheds)
    }
}

/// Appends `symbols`, each of which must have a frequency in `table` below all: states, number of
/// words, words. `words` is scratch.
pub(crate) fn encode<const LANES: usize>(symbols: &[u8], table: &Table, words: &mut Vec<u16>, out: &mut Vec<u8>) {
    let steps = Steps::new(table);
    // A symbol sheds at most one word; the slack lets a group write before it knows.
    if words.len() < symbols.len() + LANES {
        words.resize(symbols.len() + LANES, 0);
    }
    let mut states = [LOW; LANES];
    let mut filled = 0;
    let (groups, rest) = symbols.as_chunks::<LANES>();
    for (lane, &symbol) in rest.iter().enumerate().rev() {
        filled += steps.encode(&mut states[lane], symbol, &mut words[filled]);
    }
    for group in groups.iter().rev() {
        let room: &mut [u16; LANES] = (&mut words[filled..filled + LANES]).try_into().expect("sliced to this length");
        let mut shed = 0;
        for lane in (0..LANES).rev() {
            shed += steps.encode(&mut states[lane], group[lane], &mut room[shed % LANES]);
        }
        filled += shed;
    }
    for state in states {
        out.extend_from_slice(&state.to_le_bytes());
    }
    put_varint(out, filled as u64);
    let start = out.len();
    out.resize(start + 2 * filled, 0);
    for (bytes, word) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(&words[..filled]) {
        *bytes = word.to_le_bytes();
    }
}

/// Reads `n` symbols that [`encode`] wrote with the same table.
pub(crate) fn decode<const LANES: usize>(
    reader: &mut Reader<'_>,
    n: usize,
    table: &Table,
) -> Result<Vec<u8>, WireError> {
    let corrupt = WireError::Corrupt { what: "coded block" };
    let mut states = [0u32; LANES];
    for state in &mut states {
        *state = u32::from_le_bytes(reader.array("coded block")?);
        if *state < LOW {
            return Err(corrupt);
        }
    }
    let words = reader.bounded("words of a coded block", n as u64)? as usize;
    // Last in, first out.
    let mut words = reader.take(2 * words, "coded block")?.as_chunks::<2>().0;

    let lookup = Lookup::new(table);
    let mut symbols = vec![0u8; n];
    let (groups, rest) = symbols.as_chunks_mut::<LANES>();
    let mut missing = 0usize;
    for group in groups {
        for (symbol, state) in group.iter_mut().zip(&mut states) {
            *symbol = lookup.decode(state, &mut words, &mut missing);
        }
    }
    for (symbol, state) in rest.iter_mut().zip(&mut states) {
        *symbol = lookup.decode(state, &mut words, &mut missing);
    }
    // All words used and every state back where it started: bytes that say anything else are not
    // ours.
    let whole = words.is_empty() && missing == 0 && states.iter().all(|&state| state == LOW);
    if whole { Ok(symbols) } else { Err(corrupt) }
}

/// From a state's low bits to the symbol.
struct Lookup {
    /// The symbol whose range holds each of the `2^LOG` values.
    symbol_at: [u8; 1 << LOG],
    /// Each symbol's frequency and the start of its range.
    ranges: [(u16, u16); 256],
}

impl Lookup {
    fn new(table: &Table) -> Self {
        let mut lookup = Self { symbol_at: [0; 1 << LOG], ranges: [(0, 0); 256] };
        let mut start = 0;
        for (symbol, &frequency) in table.frequencies.iter().enumerate() {
            let frequency = frequency << (LOG - table.log);
            lookup.symbol_at[usize::from(start)..usize::from(start + frequency)].fill(symbol as u8);
            lookup.ranges[symbol] = (frequency, start);
            start += frequency;
        }
        lookup
    }

    #[inline(always)]
    fn decode(&self, state: &mut u32, words: &mut &[[u8; 2]], missing: &mut usize) -> u8 {
        let low = *state % (1 << LOG);
        let symbol = self.symbol_at[low as usize];
        let (frequency, start) = self.ranges[usize::from(symbol)];
        // Below 2^32 for states below 2^32, and ranges hold their values: nothing wraps.
        let x = u32::from(frequency) * (*state >> LOG) + (low - u32::from(start));
        *state = x;
        if x < LOW {
            match words.split_last() {
                Some((word, rest)) => {
                    *state = x << 16 | u32::from(u16::from_le_bytes(*word));
                    *words = rest;
                }
                None => *missing += 1,
            }
        }
        symbol
    }
}
