//! An epoch's counters while they wait for their block: mostly small, so mostly four or eight bits each.

/// Whole numbers packed into 4 or 8 bits, with those that do not fit on the side.
///
/// A block of 16 epochs waits to be decoded together; as 64-bit words they would be by far the largest part of a control
/// plane with few keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Low nibble first; the largest value of a cell says "on the side".
    cells: Vec<u8>,
    nibbles: bool,
    len: usize,
    /// In order of their place.
    aside: Vec<(u32, i64)>,
}

impl Packed {
    pub fn new(values: &[i64]) -> Self {
        let outside = |limit: i64| values.iter().filter(|&&value| !(0..limit).contains(&value)).count();
        let bytes = |cells: usize, limit: i64| cells + outside(limit) * size_of::<(u32, i64)>();
        let nibbles = bytes(values.len().div_ceil(2), 15) < bytes(values.len(), 255);
        let limit = if nibbles { 15 } else { 255 };
        let mut aside = Vec::with_capacity(outside(limit));
        let mut cell = |at: usize, value: i64| {
            if (0..limit).contains(&value) {
                return value as u8;
            }
            aside.push((at as u32, value));
            limit as u8
        };
        let mut cells = Vec::with_capacity(if nibbles { values.len().div_ceil(2) } else { values.len() });
        for (at, &value) in values.iter().enumerate() {
            let value = cell(at, value);
            match cells.last_mut() {
                Some(last) if nibbles && at % 2 == 1 => *last |= value << 4,
                _ => cells.push(value),
            }
        }
        Self { cells, nibbles, len: values.len(), aside }
    }

    pub fn unpack(&self) -> Vec<i64> {
        let mut values: Vec<i64> = if self.nibbles {
            self.cells.iter().flat_map(|cell| [i64::from(cell & 15), i64::from(cell >> 4)]).take(self.len).collect()
        } else {
            self.cells.iter().map(|&cell| i64::from(cell)).collect()
        };
        for &(at, value) in &self.aside {
            values[at as usize] = value;
        }
        values
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
    fn small_values_take_four_bits_and_middling_ones_eight() {
        assert_eq!(Packed::new(&[14; 1000]).memory(), 500);
        assert_eq!(Packed::new(&[15; 1000]).memory(), 1000);
    }
}
