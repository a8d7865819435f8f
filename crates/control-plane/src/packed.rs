//! An epoch's counters while they wait for their block: mostly small, so mostly four or eight bits each.

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Inconsistent, ensure};

/// Whole numbers packed into 4 or 8 bits, with those that do not fit on the side.
///
/// A block of 16 epochs waits to be decoded together; as 64-bit words they would be by far the largest part of a control
/// plane with few keys.
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
        // As unsigned numbers, negative ones are large too.
        let fits = |value: i64, limit: u64| (value as u64) < limit;
        let outside = |limit: u64| values.iter().map(|&value| usize::from(!fits(value, limit))).sum::<usize>();
        let (beyond_nibbles, beyond_bytes) = (outside(15), outside(255));
        let bytes = |cells: usize, outside: usize| cells + outside * size_of::<(u32, i64)>();
        let nibbles = bytes(values.len().div_ceil(2), beyond_nibbles) < bytes(values.len(), beyond_bytes);
        let (limit, outside) = if nibbles { (15, beyond_nibbles) } else { (255, beyond_bytes) };
        let cell = |value: i64| (value as u64).min(limit) as u8;
        let cells = if nibbles {
            let (pairs, rest) = values.as_chunks::<2>();
            let last = rest.iter().map(|&value| cell(value));
            pairs.iter().map(|&[low, high]| cell(low) | cell(high) << 4).chain(last).collect()
        } else {
            values.iter().map(|&value| cell(value)).collect()
        };
        let mut aside = Vec::with_capacity(outside);
        if outside > 0 {
            let beyond = (0u32..).zip(values).filter(|&(_, &value)| !fits(value, limit));
            aside.extend(beyond.map(|(at, &value)| (at, value)));
        }
        Self { cells, nibbles, len: values.len(), aside }
    }

    pub fn unpack(&self) -> Vec<i64> {
        let mut values = Vec::new();
        self.unpack_into(&mut values);
        values
    }

    /// Replaces what is in `values`.
    pub fn unpack_into(&self, values: &mut Vec<i64>) {
        values.clear();
        if self.nibbles {
            values.resize(self.cells.len() * 2, 0);
            for (pair, cell) in values.as_chunks_mut::<2>().0.iter_mut().zip(&self.cells) {
                *pair = [i64::from(cell & 15), i64::from(cell >> 4)];
            }
            values.truncate(self.len);
        } else {
            values.extend(self.cells.iter().map(|&cell| i64::from(cell)));
        }
        for &(at, value) in &self.aside {
            values[at as usize] = value;
        }
    }

    /// Fails for what is not the packing of `want` values.
    pub fn check(&self, want: usize) -> Result<(), Inconsistent> {
        let (cells, len) = (self.cells.len(), self.len);
        let whole = len == want && cells == if self.nibbles { len.div_ceil(2) } else { len };
        ensure(whole, || format!("{len} counters in {cells} cells of an epoch of {want}"))?;
        let ordered =
            self.aside.is_sorted_by(|a, b| a.0 < b.0) && self.aside.iter().all(|&(at, _)| (at as usize) < len);
        ensure(ordered, || format!("{} counters beside {len} cells are not in their order", self.aside.len()))?;
        // Every value has one packing.
        ensure(Self::new(&self.unpack()) == *self, || format!("{len} counters are packed as no epoch's are"))
    }

    pub fn memory(&self) -> usize {
        self.cells.capacity() + self.aside.capacity() * size_of::<(u32, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unpacks_what_was_packed(values in prop::collection::vec(prop_oneof![
            8 => 0i64..15, 2 => 0i64..300, 1 => any::<i64>(),
        ], 0..200)) {
            prop_assert_eq!(Packed::new(&values).unpack(), values);
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
