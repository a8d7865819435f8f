//! Carries of overflowing counters.
//!
//! Addition does not mind the order: carries are sorted by counter and those of one counter added
//! up, so that on the wire they are small gaps and small numbers.

use alloc::vec::Vec;

use ucl_data_plane::{Config, CounterIndex};

use super::read_count;
use crate::WireError;
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};
use crate::entropy::values::{self, Scratch};

/// Bytes of a carry while it waits.
pub(crate) const CARRY_BYTES: usize = size_of::<(CounterIndex, i64)>();

/// Sorts by counter and adds up.
pub(crate) fn compact(carries: &mut Vec<(CounterIndex, i64)>) {
    carries.sort_unstable();
    carries.dedup_by(|next, kept| {
        // Two that do not add up in 64 bits stay two.
        let sum = if next.0 == kept.0 { kept.1.checked_add(next.1) } else { None };
        sum.map(|sum| kept.1 = sum).is_some()
    });
    carries.retain(|&(_, times)| times != 0);
}

/// Appends carries that [`compact`] has sorted.
pub(crate) fn write(carries: &[(CounterIndex, i64)], config: &Config, scratch: &mut Scratch, out: &mut Vec<u8>) {
    put_varint(out, carries.len() as u64);
    let before = core::iter::once(0).chain(carries.iter().map(|&(at, _)| at.0));
    let gaps: Vec<u64> = carries.iter().zip(before).map(|(&(at, _), before)| u64::from(at.0 - before)).collect();
    values::write(gaps.into_iter(), scratch, out);
    values::write(carries.iter().map(|&(_, times)| to_wire(times, config.shape.signed())), scratch, out);
}

pub(crate) fn read(reader: &mut Reader<'_>, config: &Config) -> Result<Vec<(CounterIndex, i64)>, WireError> {
    let n = read_count(reader, "carries", CARRY_BYTES)?;
    let gaps = values::read(reader, n, "carries")?;
    let times = values::read(reader, n, "carries")?;
    let counters = config.shape.geometry().counters() as u64;
    let mut at = 0u64;
    let carry = |(gap, times): (u64, u64)| {
        at = at.saturating_add(gap);
        if at >= counters {
            return Err(WireError::TooLarge { what: "carrying counter", value: at, most: counters - 1 });
        }
        Ok((CounterIndex(at as u32), from_wire(times, config.shape.signed())))
    };
    gaps.into_iter().zip(times).map(carry).collect()
}

/// Unsigned counters carry at least once, most often just once: that is 0.
fn to_wire(times: i64, signed: bool) -> u64 {
    if signed { zigzag(times) } else { (times as u64).wrapping_sub(1) }
}

fn from_wire(times: u64, signed: bool) -> i64 {
    if signed { unzigzag(times) } else { times.wrapping_add(1) as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn carries_of_one_counter_are_one() {
        let c = CounterIndex;
        let mut carries = vec![(c(5), 1), (c(2), 3), (c(5), 1), (c(9), 2), (c(9), -2), (c(7), i64::MAX), (c(7), 1)];
        compact(&mut carries);
        assert_eq!(carries, [(c(2), 3), (c(5), 2), (c(7), 1), (c(7), i64::MAX)]);
    }
}
