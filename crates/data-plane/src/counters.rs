//! The counters of the linear sketch: 4, 8, 16 or 32 bits each, and never wrong.
//!
//! Narrow counters give four or eight times the equations in the same memory, but overflow. One
//! that does sends a *carry* (its index and how many whole ranges left it) and keeps the remainder,
//! so that the control plane can rebuild what 64-bit counters would have held:
//! `value = remainder + unit · carries`. Nothing saturates and nothing wraps silently.
//!
//! - Unsigned counters of `b` bits hold `0 .. 2^b`; the unit is `2^b`.
//! - Signed counters hold `-2^(b-1) .. 2^(b-1)`; the unit is `2^(b-1)` and the remainder is the one
//!   nearest zero, so that a counter which hovers around the end of its range does not send a carry
//!   for every item.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::ConfigError;
use crate::table::{OutOfMemory, filled};

/// Bits per counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CounterBits {
    /// Two counters to the byte.
    B4,
    /// One counter a byte.
    B8,
    /// Two bytes a counter.
    B16,
    /// Four bytes a counter, as in the paper.
    B32,
}

impl CounterBits {
    /// All widths, from narrow to wide.
    pub const ALL: [Self; 4] = [Self::B4, Self::B8, Self::B16, Self::B32];

    /// Creates the width from a number of bits.
    ///
    /// ```
    /// use ucl_data_plane::CounterBits;
    /// assert_eq!(CounterBits::new(8).unwrap(), CounterBits::B8);
    /// assert_eq!(CounterBits::new(12).unwrap_err().to_string(), "counters have 4, 8, 16 or 32 bits, not 12");
    /// ```
    ///
    /// # Errors
    /// If there are no counters of so many bits.
    pub fn new(bits: u32) -> Result<Self, ConfigError> {
        Self::ALL.into_iter().find(|b| b.bits() == bits).ok_or(ConfigError::CounterBits { bits })
    }

    /// Returns the number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Self::B4 => 4,
            Self::B8 => 8,
            Self::B16 => 16,
            Self::B32 => 32,
        }
    }

    /// Returns the number of bytes that `counters` counters take.
    pub fn bytes(self, counters: usize) -> usize {
        (counters * self.bits() as usize).div_ceil(8)
    }

    /// Returns the weight that one carry stands for.
    pub fn carry_unit(self, signed: bool) -> i64 {
        1 << (self.bits() - u32::from(signed))
    }
}

impl fmt::Display for CounterBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-bit", self.bits())
    }
}

/// The words behind the counters. Signed counters use the same words, in two's complement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Words {
    /// Two counters a byte, the even one in the low half.
    B4(#[cfg_attr(feature = "serde", serde(with = "serde_bytes"))] Vec<u8>),
    B8(#[cfg_attr(feature = "serde", serde(with = "serde_bytes"))] Vec<u8>),
    B16(Vec<u16>),
    B32(Vec<u32>),
}

/// An unsigned word that hands on what it cannot hold.
pub(crate) trait Word {
    /// Adds; returns how many whole ranges left the word.
    fn add(&mut self, weight: u64) -> u64;
    fn is_zero(&self) -> bool;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            #[inline(always)]
            fn add(&mut self, weight: u64) -> u64 {
                let sum = u64::from(*self) + weight;
                *self = sum as $type;
                sum >> <$type>::BITS
            }

            #[inline(always)]
            fn is_zero(&self) -> bool {
                *self == 0
            }
        }
    };
}
word!(u8);
word!(u16);
word!(u32);

/// The words of whole-byte unsigned counters, for a loop that knows their type.
pub(crate) enum Unsigned<'a> {
    B8(&'a mut [u8]),
    B16(&'a mut [u16]),
    B32(&'a mut [u32]),
}

/// A fixed number of counters of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counters {
    len: usize,
    signed: bool,
    words: Words,
}

/// Raw words of [`Counters`], for an encoder that wants them by the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterWords<'a> {
    /// Two counters a byte, the even one in the low half.
    B4(&'a [u8]),
    /// One counter a byte.
    B8(&'a [u8]),
    /// 16-bit counters.
    B16(&'a [u16]),
    /// 32-bit counters.
    B32(&'a [u32]),
}

impl Counters {
    /// Creates `len` counters, all zero.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(len: usize, bits: CounterBits, signed: bool) -> Result<Self, OutOfMemory> {
        let words = match bits {
            CounterBits::B4 => Words::B4(filled(len.div_ceil(2), 0)?),
            CounterBits::B8 => Words::B8(filled(len, 0)?),
            CounterBits::B16 => Words::B16(filled(len, 0)?),
            CounterBits::B32 => Words::B32(filled(len, 0)?),
        };
        Ok(Self { len, signed, words })
    }

    /// Creates counters that hold these remainders, as [`Counters::iter`] gave them.
    pub fn from_remainders(remainders: &[i64], bits: CounterBits, signed: bool) -> Result<Self, OutOfMemory> {
        let mut counters = Self::new(remainders.len(), bits, signed)?;
        for (at, &value) in remainders.iter().enumerate() {
            counters.set_raw(at, value as u64);
        }
        Ok(counters)
    }

    /// Returns the number of counters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if counters may be negative.
    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Bits per counter.
    pub fn bits(&self) -> CounterBits {
        match self.words {
            Words::B4(_) => CounterBits::B4,
            Words::B8(_) => CounterBits::B8,
            Words::B16(_) => CounterBits::B16,
            Words::B32(_) => CounterBits::B32,
        }
    }

    /// Returns the number of words behind the counters.
    #[cfg(feature = "serde")]
    pub(crate) fn words_len(&self) -> usize {
        match &self.words {
            Words::B4(words) | Words::B8(words) => words.len(),
            Words::B16(words) => words.len(),
            Words::B32(words) => words.len(),
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.bits().bytes(self.len)
    }

    /// Adds `weight` (subtracts, if `negative`) at `at`; returns the carry, 0 for none.
    ///
    /// ```
    /// use ucl_data_plane::{CounterBits, Counters};
    /// let mut counters = Counters::new(10, CounterBits::B8, false)?;
    /// assert_eq!(counters.add(3, false, 250), 0);
    /// assert_eq!(counters.add(3, false, 1000), 4); // 1250 = 4 · 256 + 226
    /// assert_eq!(counters.get(3), 226);
    /// # Ok::<(), ucl_data_plane::OutOfMemory>(())
    /// ```
    #[must_use = "a carry that is dropped is a count that is lost"]
    #[inline(always)]
    pub fn add(&mut self, at: usize, negative: bool, weight: u64) -> i64 {
        if self.signed {
            return self.add_signed(at, negative, weight);
        }
        // Weights and remainders below 2^63 and 2^32: the sum does not overflow.
        let bits = self.bits().bits();
        let sum = self.raw(at) + weight;
        self.set_raw(at, sum);
        (sum >> bits) as i64
    }

    #[inline]
    fn add_signed(&mut self, at: usize, negative: bool, weight: u64) -> i64 {
        // A remainder and a weight below 2^63 may come to more than 64 bits.
        let weight = i128::from(weight);
        let sum = i128::from(self.get(at)) + if negative { -weight } else { weight };
        let unit = i128::from(self.bits().carry_unit(true));
        if (-unit..unit).contains(&sum) {
            self.set_raw(at, sum as u64);
            return 0;
        }
        // Rounded, half away from zero: the remainder is within half a unit of zero. The unit is a
        // power of two.
        let magnitude = (sum.unsigned_abs() + unit.unsigned_abs() / 2) >> unit.trailing_zeros();
        let times = if sum < 0 { -(magnitude as i128) } else { magnitude as i128 };
        self.set_raw(at, (sum - times * unit) as u64);
        times as i64
    }

    /// Returns the remainder that counter `at` holds.
    #[inline]
    pub fn get(&self, at: usize) -> i64 {
        let raw = self.raw(at);
        if !self.signed {
            return raw as i64;
        }
        let unused = 64 - self.bits().bits();
        ((raw << unused) as i64) >> unused
    }

    #[inline(always)]
    fn raw(&self, at: usize) -> u64 {
        match &self.words {
            Words::B4(w) => ((w[at / 2] >> (at % 2 * 4)) & 15).into(),
            Words::B8(w) => w[at].into(),
            Words::B16(w) => w[at].into(),
            Words::B32(w) => w[at].into(),
        }
    }

    #[inline(always)]
    fn set_raw(&mut self, at: usize, value: u64) {
        match &mut self.words {
            Words::B4(w) => {
                let shift = at % 2 * 4;
                w[at / 2] = w[at / 2] & !(15 << shift) | ((value as u8 & 15) << shift);
            }
            Words::B8(w) => w[at] = value as u8,
            Words::B16(w) => w[at] = value as u16,
            Words::B32(w) => w[at] = value as u32,
        }
    }

    /// The words to add to directly; `None` for nibbles and signed counters.
    pub(crate) fn unsigned(&mut self) -> Option<Unsigned<'_>> {
        if self.signed {
            return None;
        }
        match &mut self.words {
            Words::B4(_) => None,
            Words::B8(w) => Some(Unsigned::B8(w)),
            Words::B16(w) => Some(Unsigned::B16(w)),
            Words::B32(w) => Some(Unsigned::B32(w)),
        }
    }

    /// Iterates over all remainders, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> + '_ {
        (0..self.len).map(|at| self.get(at))
    }

    /// Returns all remainders at once: faster than one by one.
    pub fn to_vec(&self) -> Vec<i64> {
        fn each<T: Copy>(words: &[T], convert: impl Fn(T) -> i64) -> Vec<i64> {
            words.iter().map(|&word| convert(word)).collect()
        }
        match (&self.words, self.signed) {
            (Words::B4(_), true) => self.iter().collect(),
            (Words::B4(w), false) => {
                let mut values = vec![0; w.len() * 2];
                for (pair, word) in values.as_chunks_mut::<2>().0.iter_mut().zip(w) {
                    *pair = [i64::from(word & 15), i64::from(word >> 4)];
                }
                values.truncate(self.len);
                values
            }
            (Words::B8(w), false) => each(w, i64::from),
            (Words::B16(w), false) => each(w, i64::from),
            (Words::B32(w), false) => each(w, i64::from),
            (Words::B8(w), true) => each(w, |word| i64::from(word as i8)),
            (Words::B16(w), true) => each(w, |word| i64::from(word as i16)),
            (Words::B32(w), true) => each(w, |word| i64::from(word as i32)),
        }
    }

    /// Returns all remainders as bytes; `None` if they are wider, or may be negative.
    pub fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match &self.words {
            _ if self.signed => None,
            Words::B4(w) => {
                let mut bytes = vec![0; w.len() * 2];
                for (pair, word) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(w) {
                    *pair = [word & 15, word >> 4];
                }
                bytes.truncate(self.len);
                Some(Cow::Owned(bytes))
            }
            Words::B8(w) => Some(Cow::Borrowed(w)),
            Words::B16(_) | Words::B32(_) => None,
        }
    }

    /// Returns the raw words.
    pub fn words(&self) -> CounterWords<'_> {
        match &self.words {
            Words::B4(w) => CounterWords::B4(w),
            Words::B8(w) => CounterWords::B8(w),
            Words::B16(w) => CounterWords::B16(w),
            Words::B32(w) => CounterWords::B32(w),
        }
    }

    /// Sets every counter to zero.
    pub fn clear(&mut self) {
        match &mut self.words {
            Words::B4(w) | Words::B8(w) => w.fill(0),
            Words::B16(w) => w.fill(0),
            Words::B32(w) => w.fill(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Remainders + carries are exactly what counters without a limit would have held, for
        /// every weight that is allowed.
        #[test]
        fn carries_make_every_width_exact(
            adds in prop::collection::vec((0usize..5, any::<bool>(), prop_oneof![
                1u64..20,
                1u64..100_000,
                1u64..1 << 40,
                1u64..1 << 63,
                (1u64 << 63) - (1 << 32)..1 << 63,
            ]), 1..200),
            signed: bool,
            bits in prop::sample::select(&CounterBits::ALL[..]),
        ) {
            let mut counters = Counters::new(5, bits, signed).unwrap();
            let (mut carried, mut exact) = ([0i128; 5], [0i128; 5]);
            for (at, negative, weight) in adds {
                let negative = negative && signed;
                carried[at] += i128::from(counters.add(at, negative, weight));
                exact[at] += if negative { -i128::from(weight) } else { i128::from(weight) };
            }
            let unit = i128::from(bits.carry_unit(signed));
            let rebuilt: Vec<i128> = counters.iter().zip(carried).map(|(r, c)| i128::from(r) + c * unit).collect();
            prop_assert_eq!(rebuilt, exact.to_vec());
            let remainders: Vec<i64> = counters.iter().collect();
            prop_assert_eq!(counters.to_vec(), &remainders[..]);
            let bytes = counters.to_bytes().map(|bytes| bytes.iter().map(|&byte| byte.into()).collect::<Vec<i64>>());
            prop_assert_eq!(bytes, (!signed && bits <= CounterBits::B8).then(|| remainders.clone()));
            prop_assert_eq!(Counters::from_remainders(&remainders, bits, signed).unwrap(), counters);
        }
    }

    #[test]
    fn a_signed_counter_at_the_end_of_its_range_carries_once() {
        let mut counters = Counters::new(1, CounterBits::B8, true).unwrap();
        assert_eq!(counters.add(0, false, 127), 0);
        assert_eq!(counters.add(0, false, 1), 1);
        let carries = (0..50).filter(|i| counters.add(0, i % 2 == 0, 1) != 0).count();
        assert_eq!((carries, counters.get(0)), (0, 0));
    }

    #[test]
    fn four_bit_neighbours_do_not_disturb_each_other() {
        let mut counters = Counters::new(3, CounterBits::B4, false).unwrap();
        assert_eq!(counters.add(0, false, 15), 0);
        assert_eq!(counters.add(1, false, 9), 0);
        assert_eq!(counters.add(0, false, 1), 1);
        assert_eq!(counters.iter().collect::<Vec<_>>(), [0, 9, 0]);
        assert_eq!(counters.memory(), 2);
    }
}
