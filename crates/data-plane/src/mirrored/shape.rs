//! How a budget is shared out among slots and buffer.

use super::code::KeyCode;
use super::coder::RangeEncoder;
use super::model::Models;
use super::table::{SlotLayout, Standing, Table};
use super::{MirroredPart, WAYS};
use crate::config::ConfigError;
use crate::key::KeyFormat;
use crate::seed::Seed;

/// Sizes of a [`MirroredPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MirroredShape {
    /// Sets of eight slots.
    pub sets: u32,
    /// Bits of a slot's count, 3 to 20: fewer make more slots, and more counts that are full.
    pub count_bits: u8,
    /// Bytes of changes that wait to be sent together.
    pub buffer: u32,
    /// Who has to leave for a newcomer.
    pub policy: Policy,
}

/// Who has to leave among the slots with the fewest hits.
///
/// Neither is best for all streams, so the default goes by the key format: five-tuples are flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// The same keys stay frequent: newcomers have to earn their first hit, and who has counted
    /// least leaves, of those the oldest.
    Skewed,
    /// Flows come and go: newcomers start with a hit, and the oldest leaves.
    Flows,
}

impl Policy {
    pub(super) fn newcomer_hits(self) -> u64 {
        match self {
            Self::Skewed => 0,
            Self::Flows => 1,
        }
    }

    /// The way of the slot to take.
    #[inline(always)]
    pub(super) fn victim(self, slots: &[Standing; WAYS]) -> usize {
        let counts = if self == Self::Skewed { u64::MAX } else { 0 };
        // One number for hits, then count (of at most 20 bits), then age: no branch between slots.
        let rank = |way: usize| {
            let Standing { count, hits } = slots[way];
            (hits << 32 | count & counts) << WAYS.ilog2() | way as u64
        };
        let least = (1..WAYS).fold(rank(0), |least, way| least.min(rank(way)));
        least as usize % WAYS
    }
}

/// The buffer's share of the budget, in percent.
const BUFFER: usize = 9;
/// A smaller buffer sends changes nearly one by one.
const LEAST_BUFFER: usize = 128;
/// Bits of a count, where items weigh little.
const COUNT_BITS: u8 = 6;

impl MirroredShape {
    /// The most sets.
    pub const MOST_SETS: u32 = 1 << 25;
    /// The least and the most bits of a count.
    pub const COUNT_BITS: (u8, u8) = (3, 20);
    /// The least and the most bytes of the buffer.
    pub const BUFFER: (u32, u32) = (40, 1 << 28);

    /// The shape for keys of a format in a budget, with everything counted; `None` if it is too
    /// small.
    ///
    /// ```
    /// use ucl_data_plane::KeyFormat;
    /// use ucl_data_plane::mirrored::{MirroredPart, MirroredShape};
    /// let shape = MirroredShape::within(65_536, KeyFormat::Fixed(4)).expect("64KB are enough");
    /// let memory = MirroredPart::<4>::new(shape, KeyFormat::Fixed(4), 1.into()).memory();
    /// assert!((65_300..=65_536).contains(&memory.total()), "{memory}");
    /// assert!(shape.slots() > 15_000);
    /// ```
    pub fn within(budget: usize, keys: KeyFormat) -> Option<Self> {
        Self::with_count_bits(budget, keys, COUNT_BITS)
    }

    /// [`MirroredShape::within`] with counts of other than six bits: wide ones for items that weigh
    /// much.
    pub fn with_count_bits(budget: usize, keys: KeyFormat, count_bits: u8) -> Option<Self> {
        let policy = if keys == KeyFormat::Fixed(13) { Policy::Flows } else { Policy::Skewed };
        let buffer = (budget * BUFFER / 100).clamp(LEAST_BUFFER, Self::BUFFER.1 as usize) as u32;
        let with = |sets| Self { sets, count_bits, buffer, policy };
        let fits = |sets: u32| with(sets).memory(keys) <= budget;
        // More sets make narrower tags, but never less memory by as much as a set takes.
        let (mut low, mut high) = (0u32, Self::MOST_SETS);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle) { low = middle } else { high = middle - 1 }
        }
        (low > 0).then(|| with(low))
    }

    /// Checks every limit.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        crate::config::range("sets", self.sets.into(), 1, Self::MOST_SETS.into())?;
        let (least, most) = Self::COUNT_BITS;
        crate::config::range("bits of a count", self.count_bits.into(), least.into(), most.into())?;
        let (least, most) = Self::BUFFER;
        crate::config::range("bytes of the buffer", self.buffer.into(), least.into(), most.into())
    }

    /// The most changes that a message tells: as many as the buffer holds, of two bytes at least.
    pub fn most_records(&self) -> usize {
        self.buffer as usize / 2 + 1
    }

    /// All slots.
    pub fn slots(&self) -> usize {
        self.sets as usize * WAYS
    }

    pub(super) fn layout(&self, code: &KeyCode) -> SlotLayout {
        // Three bits at least: so many have the holders before anyone came.
        let quotient_bits = code.quotient_bits().max(WAYS.ilog2());
        SlotLayout { quotient_bits, rest_bits: code.bits().1, count_bits: self.count_bits.into() }
    }

    /// Bytes that a part of this shape takes: what [`MirroredPart::memory`] adds up to.
    pub fn memory(&self, keys: KeyFormat) -> usize {
        // Neither depends on the seed, nor the fixed part on the key size.
        let code = KeyCode::new(keys, self.sets, Seed::new(0));
        let models = Models::new(&code, self.count_bits).memory();
        let fixed = size_of::<MirroredPart<4>>() - size_of::<Models>();
        debug_assert!(fixed > size_of::<RangeEncoder>());
        let table = Table::bytes_of(&self.layout(&code), self.sets) + self.sets.div_ceil(2) as usize;
        table + self.buffer as usize + models + fixed
    }
}
