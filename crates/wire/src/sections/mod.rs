//! The parts of a message, one file each: what is collected, and how it reads as bytes.

pub(crate) mod carries;
pub(crate) mod cut;
pub(crate) mod keys;
pub(crate) mod segment;
pub(crate) mod slots;

use alloc::vec::Vec;

use crate::WireError;
use crate::bytes::Reader;
use crate::entropy::block;
use crate::entropy::values::Scratch;

/// Limit of the bytes that one message may hold when decoded, beside its counters: no declared
/// number makes a reader allocate more than a few times this.
pub(crate) const MAX_COLLECTED: usize = crate::MAX_BUFFER + (1 << 17);

/// Reads how many entries of at least `bytes` bytes each follow.
pub(crate) fn read_count(reader: &mut Reader<'_>, what: &'static str, bytes: usize) -> Result<usize, WireError> {
    Ok(reader.bounded(what, (MAX_COLLECTED / bytes) as u64)? as usize)
}

/// Appends rows of `width` bytes, column by column: the first byte of keys is not distributed as
/// their last (small numbers have leading zeros, addresses share a network), so each column is a
/// block of its own.
pub(crate) fn write_rows(rows: &[u8], width: usize, scratch: &mut Scratch, out: &mut Vec<u8>) {
    for column in 0..width {
        scratch.symbols.clear();
        scratch.symbols.extend(rows.chunks_exact(width).map(|row| row[column]));
        block::write(&scratch.symbols, 8, &mut scratch.words, out);
    }
}

/// Reads `n` rows of `width` bytes.
pub(crate) fn read_rows(
    reader: &mut Reader<'_>,
    n: usize,
    width: usize,
    what: &'static str,
) -> Result<Vec<u8>, WireError> {
    let mut rows = alloc::vec![0; n * width];
    for column in 0..width {
        let symbols = block::read(reader, n, 8, what)?;
        for (row, symbol) in rows.chunks_exact_mut(width).zip(symbols) {
            row[column] = symbol;
        }
    }
    Ok(rows)
}
