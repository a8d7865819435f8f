//! The end of an epoch: totals and counters.
//!
//! Counters of 4 and 8 bits are byte symbols as they stand in memory (two 4-bit counters to the
//! byte), wider ones are values, signed ones zig-zag. Hashing makes counters as good as
//! independent, so their order-0 entropy is all there is to gain.

use alloc::vec::Vec;

use ucl_data_plane::{Config, CounterBits, CounterWords, Counters, CutTotals};

use crate::WireError;
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};
use crate::entropy::block;
use crate::entropy::values::{self, Scratch};

/// Counters and totals at one moment: the content of a [`Cut`](ucl_data_plane::Cut).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutReport {
    /// Items, weights and carries so far.
    pub totals: CutTotals,
    /// True if the counters restart from zero after this cut.
    pub reset: bool,
    /// Remainders of the counters.
    pub counters: Vec<i64>,
}

/// Appends the totals; `reset` is in the message's kind.
pub(crate) fn write_totals(totals: &CutTotals, out: &mut Vec<u8>) {
    put_varint(out, totals.items);
    // Mostly 0: items of weight 1.
    put_varint(out, zigzag(totals.weight.wrapping_sub(totals.items) as i64));
    put_varint(out, totals.sketch_weight);
    put_varint(out, totals.smallest_weight);
    put_varint(out, totals.carries);
}

/// Appends the counters.
pub(crate) fn write_counters(counters: &Counters, scratch: &mut Scratch, out: &mut Vec<u8>) {
    let signed = counters.signed();
    match counters.words() {
        CounterWords::B4(words) | CounterWords::B8(words) => block::write(words, 8, &mut scratch.words, out),
        CounterWords::B16(words) if signed => {
            values::write(words.iter().map(|&w| zigzag((w as i16).into())), scratch, out)
        }
        CounterWords::B16(words) => values::write(words.iter().map(|&w| w.into()), scratch, out),
        CounterWords::B32(words) if signed => {
            values::write(words.iter().map(|&w| zigzag((w as i32).into())), scratch, out)
        }
        CounterWords::B32(words) => values::write(words.iter().map(|&w| w.into()), scratch, out),
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, config: &Config, reset: bool) -> Result<CutReport, WireError> {
    let items = reader.varint("items")?;
    let weight = items.wrapping_add(unzigzag(reader.varint("weight")?) as u64);
    let totals = CutTotals {
        items,
        weight,
        sketch_weight: reader.varint("sketch weight")?,
        smallest_weight: reader.varint("smallest weight")?,
        carries: reader.varint("number of carries")?,
    };
    Ok(CutReport { totals, reset, counters: read_counters(reader, config)? })
}

fn read_counters(reader: &mut Reader<'_>, config: &Config) -> Result<Vec<i64>, WireError> {
    let n = config.shape.geometry().counters();
    let signed = config.shape.signed();
    let what = "counters";
    match config.shape.counter_bits {
        CounterBits::B4 => {
            let words = block::read(reader, n.div_ceil(2), 8, what)?;
            if n % 2 == 1 && words.last().is_some_and(|last| last >> 4 != 0) {
                return Err(WireError::Corrupt { what });
            }
            let extend = |half: u8| if signed { i64::from((half << 4) as i8 >> 4) } else { half.into() };
            Ok(words.iter().flat_map(|&word| [extend(word & 15), extend(word >> 4)]).take(n).collect())
        }
        CounterBits::B8 => {
            let words = block::read(reader, n, 8, what)?;
            Ok(words.iter().map(|&word| if signed { i64::from(word as i8) } else { word.into() }).collect())
        }
        bits @ (CounterBits::B16 | CounterBits::B32) => {
            let counter = |value: u64| match value >> bits.bits() {
                0 => Ok(if signed { unzigzag(value) } else { value as i64 }),
                _ => Err(WireError::Corrupt { what }),
            };
            values::read(reader, n, what)?.into_iter().map(counter).collect()
        }
    }
}
