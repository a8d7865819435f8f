//! An epoch's counters while they wait for their block: mostly small, so mostly four or eight bits
//! each.

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Inconsistent, ensure};
use ucl_equations::sparse::{Shrunk, Touched};

/// Whole numbers packed into 4 or 8 bits, with those that do not fit on the side.
///
/// A block of epochs waits to be decoded together; as 64-bit words they would be by far the largest
/// part of a control plane with few keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packed {
    /// Low nibble first; the largest value of a cell says "on the side".
    #[serde(with = "serde_bytes")]
    cells: Vec<u8>,
    nibbles: bool,
    len: usize,
    /// In order of their place.
    aside: Vec<(u32, i64)>,
}

impl Packed {
    pub fn new(values: &[i64]) -> Self {
        Self::of_bytes(values.iter().map(|&value| byte(value)).collect(), Vec::new(), |at| values[at])
    }

    /// Packs values that are bytes but for some places: what comes after goes by bytes, many at
    /// once.
    pub fn of_bytes(mut bytes: Vec<u8>, others: Vec<usize>, value: impl Fn(usize) -> i64) -> Self {
        others.into_iter().for_each(|at| bytes[at] = byte(value(at)));
        let len = bytes.len();
        let outside = |limit: u8| -> usize {
            // In bytes as long as a sum fits one.
            let few = |bytes: &[u8]| usize::from(bytes.iter().map(|&byte| u8::from(byte >= limit)).sum::<u8>());
            bytes.chunks(255).map(few).sum()
        };
        let (beyond_nibbles, beyond_bytes) = (outside(15), outside(255));
        let size = |cells: usize, outside: usize| cells + outside * size_of::<(u32, i64)>();
        let nibbles = size(len.div_ceil(2), beyond_nibbles) < size(len, beyond_bytes);
        let (limit, outside) = if nibbles { (15, beyond_nibbles) } else { (255, beyond_bytes) };
        let mut aside = Vec::with_capacity(outside);
        for (first, bytes) in (0..).step_by(32).zip(bytes.chunks(32)) {
            if bytes.iter().fold(0, |most, &byte| byte.max(most)) >= limit {
                let beyond = (first..).zip(bytes).filter(|&(_, &byte)| byte >= limit);
                aside.extend(beyond.map(|(at, _)| (at as u32, value(at))));
            }
        }
        let cells = if nibbles {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let last = rest.iter().map(|&byte| byte.min(15));
            pairs.iter().map(|&[low, high]| low.min(15) | high.min(15) << 4).chain(last).collect()
        } else {
            bytes
        };
        Self { cells, nibbles, len, aside }
    }

    pub fn get(&self, at: usize) -> i64 {
        match self.aside.binary_search_by_key(&(at as u32), |&(place, _)| place) {
            Ok(found) => self.aside[found].1,
            Err(_) if self.nibbles => nibble(&self.cells, at).into(),
            Err(_) => self.cells[at].into(),
        }
    }

    /// The values that are not zero.
    pub fn touched(&self) -> Touched {
        let words = if self.nibbles {
            self.cells.chunks(32).map(|cells| word_of(cells, 16, nibbles_above_zero)).collect()
        } else {
            self.cells.chunks(64).map(|cells| word_of(cells, 8, bytes_above_zero)).collect()
        };
        Touched::new(words)
    }

    /// The values at the counters of a shrunk system.
    pub fn gather(&self, shrunk: &Shrunk, values: &mut Vec<i64>) {
        values.clear();
        let places = shrunk.counters.iter().map(|&at| at as usize);
        if self.nibbles {
            values.extend(places.map(|at| i64::from(nibble(&self.cells, at))));
        } else {
            values.extend(places.map(|at| i64::from(self.cells[at])));
        }
        for &(at, value) in &self.aside {
            if let Some(number) = shrunk.number(at) {
                values[number] = value;
            }
        }
    }

    pub fn unpack(&self) -> Vec<i64> {
        self.unpack_from(0).collect()
    }

    /// The values from a place on.
    pub fn unpack_from(&self, first: usize) -> impl Iterator<Item = i64> + '_ {
        let mut aside = self.aside.iter().skip_while(move |&&(at, _)| (at as usize) < first).peekable();
        (first..self.len).map(move |at| match aside.next_if(|&&(place, _)| place as usize == at) {
            Some(&(_, value)) => value,
            None if self.nibbles => nibble(&self.cells, at).into(),
            None => self.cells[at].into(),
        })
    }

    /// Fails for what is not the packing of `want` values.
    pub fn check(&self, want: usize) -> Result<(), Inconsistent> {
        let cells = self.cells.len();
        let len = self.len;
        let whole = len == want && cells == if self.nibbles { len.div_ceil(2) } else { len };
        ensure(whole, || format!("{len} counters in {cells} cells of an epoch of {want}"))?;
        let ordered =
            self.aside.is_sorted_by(|a, b| a.0 < b.0) && self.aside.iter().all(|&(at, _)| (at as usize) < len);
        ensure(ordered, || format!("{} counters beside {len} cells are not in their order", self.aside.len()))?;
        // Every value has one packing.
        ensure(Self::new(&self.unpack()) == *self, || format!("{len} counters are packed as no epoch's are"))
    }

    pub fn memory(&self) -> usize {
        // Not what happens to be allocated: this decides when a block is full, also after a load.
        self.cells.len() + size_of_val(&self.aside[..])
    }
}

/// A bit for each value: `bits` makes so many of eight cells at once.
#[inline(always)]
fn word_of(cells: &[u8], each: usize, bits: impl Fn(u64) -> u64) -> u64 {
    let (eights, rest) = cells.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let eights = eights.iter().chain((!rest.is_empty()).then_some(&last));
    eights.zip((0..).step_by(each)).fold(0, |word, (&cells, at)| word | bits(u64::from_le_bytes(cells)) << at)
}

/// For each of eight bytes whether it is above zero.
#[inline(always)]
fn bytes_above_zero(x: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The upper bit of each byte says so, and is brought to the others.
    let above = (((x & LOW) + LOW) | x) & !LOW;
    (above >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// For each of sixteen nibbles whether it is above zero.
#[inline(always)]
fn nibbles_above_zero(x: u64) -> u64 {
    let pairs = x | x >> 2;
    let one_in_four = (pairs | pairs >> 1) & 0x1111_1111_1111_1111;
    // Two neighbours come together, then four, eight, all.
    let twos = (one_in_four | one_in_four >> 3) & 0x0303_0303_0303_0303;
    let fours = (twos | twos >> 6) & 0x000f_000f_000f_000f;
    let eights = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
    (eights | eights >> 24) & 0xffff
}

#[inline(always)]
fn nibble(cells: &[u8], at: usize) -> u8 {
    cells[at / 2] >> (at % 2 * 4) & 15
}

/// The value, or 255 for all that is beyond a byte. As unsigned numbers, negative ones are large
/// too.
fn byte(value: i64) -> u8 {
    (value as u64).min(255) as u8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ucl_equations::Columns;
    use ucl_equations::sparse::Shrinker;

    use super::*;

    proptest! {
        #[test]
        fn unpacks_what_was_packed(values in prop::collection::vec(prop_oneof![
            8 => 0i64..15, 2 => 0i64..300, 1 => any::<i64>(),
        ], 0..200)) {
            let packed = Packed::new(&values);
            prop_assert_eq!(&packed.unpack(), &values);
            prop_assert!((0..values.len()).all(|at| packed.get(at) == values[at]));
            prop_assert!(packed.unpack_from(values.len() / 2).eq(values[values.len() / 2..].iter().copied()));
        }

        /// From the bytes of a cut and what carries bring, as from the sums.
        #[test]
        fn carries_are_packed_with_the_rest(cells in prop::collection::vec((prop_oneof![9 => 0u8..20, 1 => any::<u8>()], prop_oneof![9 => Just(0i64), 1 => 0i64..3000]), 0..200)) {
            let value = |at: usize| i64::from(cells[at].0) + cells[at].1;
            let others = (0..cells.len()).filter(|&at| cells[at].1 != 0).collect();
            let bytes = cells.iter().map(|cell| cell.0).collect();
            let want = Packed::new(&(0..cells.len()).map(value).collect::<Vec<_>>());
            prop_assert_eq!(Packed::of_bytes(bytes, others, value), want);
        }

        /// In nibbles and in bytes, up to any length, and as a shrunk system wants them.
        #[test]
        fn what_is_above_zero_is_found(
            values in prop::collection::vec(prop_oneof![4 => Just(0i64), 2 => 0i64..40, 1 => 0i64..300], 0..300),
            len: prop::sample::Index,
        ) {
            let len = len.index(values.len() + 1);
            let columns = Columns::ones(values.len(), 1);
            let mut shrinker = Shrinker::default();
            let packed = Packed::new(&values);
            let shrunk = shrinker.shrink(&columns, 1, &packed.touched().of_first(len), &[]);
            let want = (0..len as u32).filter(|&at| values[at as usize] > 0).collect::<Vec<_>>();
            prop_assert_eq!(&shrunk.counters, &want);
            let mut gathered = vec![7];
            packed.gather(shrunk, &mut gathered);
            prop_assert_eq!(gathered, want.iter().map(|&at| values[at as usize]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_no_packing_gives_is_refused() {
        let good = Packed::new(&[1, 2, 3, 300, 5]);
        assert_eq!(good.check(5), Ok(()));
        assert!(good.check(4).is_err());
        let damaged = |damage: fn(&mut Packed)| {
            let mut packed = good.clone();
            damage(&mut packed);
            packed.check(5)
        };
        assert!(damaged(|packed| packed.cells.truncate(2)).is_err());
        assert!(damaged(|packed| packed.aside[0].0 = 5).is_err());
        assert!(damaged(|packed| packed.aside.push((3, 7))).is_err());
        assert!(damaged(|packed| packed.aside.clear()).is_err());
        assert!(damaged(|packed| packed.aside[0].1 = 3).is_err());
    }

    #[test]
    fn small_values_take_four_bits_and_middling_ones_eight() {
        assert_eq!(Packed::new(&[14; 1000]).memory(), 500);
        assert_eq!(Packed::new(&[15; 1000]).memory(), 1000);
    }
}
