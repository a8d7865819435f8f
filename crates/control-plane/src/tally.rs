//! The sums of all epochs' counters, in as few bytes each as the largest needs.
//!
//! A sketch in kilobytes has four or five narrow counters for every key. As 64-bit words their sums
//! would be the largest part of a control plane with few keys; but most streams never bring a
//! counter past 16 bits.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use ucl_data_plane::{OutOfMemory, filled};

/// Array of whole numbers to add to, all as narrow as the largest sum so far allows. All have the
/// same width: the least with which no sum so far was out of range.
///
/// Sums are modulo 2^64. Counters are within 64 bits, so they come out exact, whatever the parts
/// pass on the way: what was carried to a signed counter and its remainder may have different
/// signs, and the former be 2^63 then.
///
/// ```
/// use ucl_control_plane::Tally;
/// let mut tally = Tally::zeros(3)?;
/// tally.add(&[7, 200, 0]);
/// assert_eq!((tally.get(1), tally.memory()), (200, 3));
/// tally.add(&[7, 200, -1]);
/// assert_eq!((tally.to_vec(), tally.memory()), (vec![14, 400, -1], 24));
/// # Ok::<(), ucl_data_plane::OutOfMemory>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tally(Cells);

#[derive(Clone, Debug)]
enum Cells {
    Bytes1(Vec<u8>),
    Bytes2(Vec<u16>),
    Bytes4(Vec<u32>),
    Bytes8(Vec<i64>),
}

impl Default for Cells {
    fn default() -> Self {
        Self::Bytes1(Vec::new())
    }
}

/// The same expression for the cells of every width.
macro_rules! for_any_width {
    ($cells:expr, $name:ident => $do:expr) => {
        match $cells {
            Cells::Bytes1($name) => $do,
            Cells::Bytes2($name) => $do,
            Cells::Bytes4($name) => $do,
            Cells::Bytes8($name) => $do,
        }
    };
}

/// Adds to all cells if every sum has room, and to none if one has not; whether they have. Sums are
/// of the `$wide` type, as which negative ones are large too. Without a branch, for the compiler to
/// do many at once: that a sum was out of range is seen in the end, and undone.
macro_rules! add_if_all_fit {
    ($cells:expr, $cell:ty, $more:expr, $wide:ty) => {{
        let mut beyond: $wide = 0;
        for (cell, &more) in $cells.iter_mut().zip($more) {
            let sum = <$wide>::from(*cell).wrapping_add(more as $wide);
            beyond |= sum;
            *cell = sum as $cell;
        }
        let fits = beyond <= <$wide>::from(<$cell>::MAX);
        if !fits {
            $cells.iter_mut().zip($more).for_each(|(cell, &more)| *cell = cell.wrapping_sub(more as $cell));
        }
        fits
    }};
}

impl Tally {
    /// Returns so many zeros, or an error if there is no memory for them.
    pub fn zeros(len: usize) -> Result<Self, OutOfMemory> {
        Ok(Self(Cells::Bytes1(filled(len, 0)?)))
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        for_any_width!(&self.0, cells => cells.len())
    }

    /// Returns true if there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one cell.
    #[inline]
    #[expect(clippy::unnecessary_cast, reason = "not for every width")]
    pub fn get(&self, at: usize) -> i64 {
        for_any_width!(&self.0, cells => cells[at] as i64)
    }

    /// Copies all cells.
    #[expect(clippy::unnecessary_cast, reason = "not for every width")]
    pub fn to_vec(&self) -> Vec<i64> {
        for_any_width!(&self.0, cells => cells.iter().map(|&cell| cell as i64).collect())
    }

    /// Adds to all cells.
    pub fn add(&mut self, more: &[i64]) {
        debug_assert_eq!(self.len(), more.len());
        while !self.fits_with(more) {
            self.widen();
        }
    }

    /// Adds to all of them; bytes are many, and small.
    pub fn add_bytes(&mut self, more: &[u8]) {
        debug_assert_eq!(self.len(), more.len());
        while !self.fits_with_bytes(more) {
            self.widen();
        }
    }

    /// Calls with the place and the value of each that is not zero.
    #[expect(clippy::unnecessary_cast, reason = "not for every width")]
    pub fn for_each_not_zero(&self, mut f: impl FnMut(usize, i64)) {
        for_any_width!(&self.0, cells => for (first, cells) in (0..).step_by(32).zip(cells.chunks(32)) {
            // Most are, and so are most of their neighbours.
            if cells.iter().fold(0, |any, cell| any | cell) != 0 {
                let own = (first..).zip(cells).filter(|&(_, &cell)| cell != 0);
                own.for_each(|(at, &cell)| f(at, cell as i64));
            }
        });
    }

    /// Adds all of them to others.
    #[expect(clippy::unnecessary_cast, reason = "not for every width")]
    pub fn add_to(&self, others: &mut [i64]) {
        for_any_width!(&self.0, cells => others.iter_mut().zip(cells).for_each(|(other, &cell)| *other = other.wrapping_add(cell as i64)));
    }

    /// Adds to one cell.
    #[inline]
    pub fn add_at(&mut self, at: usize, more: i64) {
        let sum = self.get(at).wrapping_add(more);
        loop {
            let fits = match &mut self.0 {
                Cells::Bytes1(cells) => sum.try_into().map(|sum| cells[at] = sum).is_ok(),
                Cells::Bytes2(cells) => sum.try_into().map(|sum| cells[at] = sum).is_ok(),
                Cells::Bytes4(cells) => sum.try_into().map(|sum| cells[at] = sum).is_ok(),
                Cells::Bytes8(cells) => {
                    cells[at] = sum;
                    true
                }
            };
            if fits {
                return;
            }
            self.widen();
        }
    }

    /// Adds to all if every sum has room, and to none if one has not.
    fn fits_with(&mut self, more: &[i64]) -> bool {
        match &mut self.0 {
            Cells::Bytes1(cells) => add_if_all_fit!(cells, u8, more, u64),
            Cells::Bytes2(cells) => add_if_all_fit!(cells, u16, more, u64),
            Cells::Bytes4(cells) => add_if_all_fit!(cells, u32, more, u64),
            Cells::Bytes8(cells) => {
                cells.iter_mut().zip(more).for_each(|(cell, &more)| *cell = cell.wrapping_add(more));
                true
            }
        }
    }

    /// The same for bytes.
    fn fits_with_bytes(&mut self, more: &[u8]) -> bool {
        match &mut self.0 {
            Cells::Bytes1(cells) => add_if_all_fit!(cells, u8, more, u16),
            Cells::Bytes2(cells) => add_if_all_fit!(cells, u16, more, u32),
            Cells::Bytes4(cells) => add_if_all_fit!(cells, u32, more, u64),
            Cells::Bytes8(cells) => {
                cells.iter_mut().zip(more).for_each(|(cell, &more)| *cell = cell.wrapping_add(more.into()));
                true
            }
        }
    }

    fn widen(&mut self) {
        self.0 = match &self.0 {
            Cells::Bytes1(cells) => Cells::Bytes2(cells.iter().map(|&cell| cell.into()).collect()),
            Cells::Bytes2(cells) => Cells::Bytes4(cells.iter().map(|&cell| cell.into()).collect()),
            Cells::Bytes4(cells) => Cells::Bytes8(cells.iter().map(|&cell| cell.into()).collect()),
            Cells::Bytes8(_) => unreachable!("everything fits 64 bits"),
        };
    }

    /// Returns the sums of every `width` cells, in 128 bits: with several counters of a key in one
    /// row it may pass 2^63.
    pub fn row_sums(&self, width: usize) -> Vec<i128> {
        /// In 32 bits as long as a sum of 16-bit cells fits them: twice as many at once.
        fn narrow<T: Copy + Into<u32>>(cells: &[T], width: usize) -> Vec<i128> {
            let part = |cells: &[T]| u64::from(cells.iter().map(|&cell| cell.into()).sum::<u32>());
            cells.chunks(width).map(|row| row.chunks(1 << 16).map(part).sum::<u64>().into()).collect()
        }
        match &self.0 {
            Cells::Bytes1(cells) => narrow(cells, width),
            Cells::Bytes2(cells) => narrow(cells, width),
            Cells::Bytes4(cells) => {
                let sum = |row: &[u32]| row.iter().map(|&cell| u64::from(cell)).sum::<u64>().into();
                cells.chunks(width).map(sum).collect()
            }
            Cells::Bytes8(cells) => cells.chunks(width).map(exact_sum).collect(),
        }
    }

    /// Bytes it takes.
    pub fn memory(&self) -> usize {
        for_any_width!(&self.0, cells => size_of_val(&cells[..]))
    }
}

/// In halves, which the compiler can add four at a time: this is once a counter and cut.
fn exact_sum(counters: &[i64]) -> i128 {
    let (mut low, mut high) = (0u64, 0i64);
    for &counter in counters {
        low += counter as u64 & 0xffff_ffff;
        high += counter >> 32;
    }
    (i128::from(high) << 32) + i128::from(low)
}

/// In the least width that holds them all.
impl From<Vec<i64>> for Tally {
    fn from(values: Vec<i64>) -> Self {
        let mut tally = Self(Cells::Bytes1(vec![0; values.len()]));
        tally.add(&values);
        tally
    }
}

/// As a plain sequence of numbers: widths are nobody else's business.
impl Serialize for Tally {
    #[expect(clippy::unnecessary_cast, reason = "not for every width")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        for_any_width!(&self.0, cells => serializer.collect_seq(cells.iter().map(|&cell| cell as i64)))
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of every width, and negative ones.
    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![8 => 0i64..100, 2 => 0i64..40_000, 1 => 0i64..1 << 40, 1 => -(1i64 << 40)..0]
    }

    proptest! {
        #[test]
        fn sums_are_those_of_wide_words(
            epochs in prop::collection::vec((prop::collection::vec(number(), 12), 0usize..12, number()), 0..12),
        ) {
            let (mut tally, mut wide) = (Tally::zeros(12).unwrap(), vec![0i64; 12]);
            for (epoch, at, one) in epochs {
                let bytes: Vec<u8> = epoch.iter().map(|&more| more as u8).collect();
                tally.add(&epoch);
                tally.add_bytes(&bytes);
                tally.add_at(at, one);
                wide.iter_mut().zip(&epoch).zip(bytes).for_each(|((sum, more), byte)| *sum += more + i64::from(byte));
                wide[at] += one;
                prop_assert_eq!(&tally.to_vec(), &wide);
                let row = |row: &[i64]| row.iter().map(|&cell| i128::from(cell)).sum::<i128>();
                prop_assert_eq!(tally.row_sums(5), wide.chunks(5).map(row).collect::<Vec<_>>());
            }
            prop_assert!((0..12).all(|at| tally.get(at) == wide[at]));
            let mut found = Vec::new();
            let want = (0..).zip(wide).filter(|&(_, value)| value != 0);
            tally.for_each_not_zero(|at, value| found.push((at, value)));
            prop_assert_eq!(found, want.collect::<Vec<(usize, i64)>>());
        }

        #[test]
        fn sums_are_exact(counters: Vec<i64>) {
            prop_assert_eq!(exact_sum(&counters), counters.iter().map(|&counter| i128::from(counter)).sum::<i128>());
        }

        #[test]
        fn it_is_written_as_plain_numbers(values in prop::collection::vec(number(), 0..20)) {
            let bytes = postcard::to_stdvec(&Tally::from(values.clone())).unwrap();
            prop_assert_eq!(&bytes, &postcard::to_stdvec(&values).unwrap());
            prop_assert_eq!(postcard::from_bytes::<Tally>(&bytes).unwrap().to_vec(), values);
        }
    }

    /// More cells than are looked at together, and sums beyond 32 bits.
    #[test]
    fn long_rows() {
        let mut tally = Tally::zeros(140_000).unwrap();
        tally.add(&vec![65_535; 140_000]);
        assert_eq!(tally.row_sums(70_000), [70_000 * 65_535; 2]);
        tally.add(&vec![-65_535; 140_000]);
        [0, 31, 32, 100_000, 139_999].iter().for_each(|&at| tally.add_at(at, 7));
        let mut found = Vec::new();
        tally.for_each_not_zero(|at, value| found.push((at, value)));
        assert_eq!(found, [0, 31, 32, 100_000, 139_999].map(|at| (at, 7)));
    }

    #[test]
    fn it_is_as_wide_as_the_largest_needs() {
        for (largest, bytes) in [(255, 1), (256, 2), (65_535, 2), (65_536, 4), (1 << 32, 8), (-1, 8)] {
            assert_eq!(Tally::from(vec![0, largest, 3]).memory(), 3 * bytes, "{largest}");
        }
    }
}
