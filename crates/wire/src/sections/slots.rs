//! Changed slots of the heavy part.
//!
//! On the wire: their number, the gaps between them (0 for the next slot), which were taken, their
//! counts, and the new holders as byte columns. Counts are whole, not differences: the sender needs
//! no memory of what it sent, and the reader no earlier message.

use alloc::vec::Vec;

use ucl_data_plane::{Config, KeyFormat};

use super::{read_count, read_rows, write_rows};
use crate::WireError;
use crate::bytes::{Reader, put_varint};
use crate::entropy::block;
use crate::entropy::values::{self, Scratch};

/// Report of a slot that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotReport<'a> {
    /// Number of the slot.
    pub slot: u32,
    /// New holder of the slot, if the holder changed since the last cut: its key or digest.
    pub holder: Option<&'a [u8]>,
    /// Exact weight in the slot. It is 0 if the slot is empty or if all of the holder's weight is
    /// in the sketch.
    pub count: u64,
}

/// Changed slots, in ascending order.
///
/// ```
/// use ucl_data_plane::KeyFormat;
/// use ucl_wire::{SlotReport, Slots};
///
/// let mut slots = Slots::new(KeyFormat::Fixed(4));
/// let change = SlotReport { slot: 3, holder: Some(&[7, 0, 0, 0]), count: 12 };
/// assert!(slots.push(change));
/// assert!(!slots.push(change), "a slot changes once");
/// assert_eq!(slots.iter().collect::<Vec<_>>(), [change]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Slots {
    format: KeyFormat,
    numbers: Vec<u32>,
    taken: Vec<u8>,
    counts: Vec<u64>,
    /// Of the taken ones.
    holders: Vec<u8>,
}

impl Slots {
    /// Creates an empty list of slots with holders of this format.
    pub fn new(format: KeyFormat) -> Self {
        Self { format, numbers: Vec::new(), taken: Vec::new(), counts: Vec::new(), holders: Vec::new() }
    }

    /// Number of changed slots.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if no slot changed.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Appends a slot. Returns false and changes nothing unless the slot comes after all others.
    ///
    /// # Panics
    /// If the holder is not of this format: the sender was given another configuration than the
    /// data plane.
    #[must_use = "a slot out of order is not taken in"]
    pub fn push(&mut self, change: SlotReport<'_>) -> bool {
        if self.numbers.last().is_some_and(|&last| last >= change.slot) {
            return false;
        }
        if let Some(holder) = change.holder {
            assert_eq!(holder.len(), self.format.slot_bytes(), "bytes of a holder among {}", self.format);
            self.holders.extend_from_slice(holder);
        }
        self.numbers.push(change.slot);
        self.taken.push(change.holder.is_some().into());
        self.counts.push(change.count);
        true
    }

    /// Returns all changed slots in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = SlotReport<'_>> + '_ {
        let mut holders = self.holders.chunks_exact(self.format.slot_bytes());
        self.numbers.iter().zip(&self.taken).zip(&self.counts).map(move |((&slot, &taken), &count)| {
            let holder = if taken != 0 { holders.next() } else { None };
            SlotReport { slot, holder, count }
        })
    }

    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.taken.clear();
        self.counts.clear();
        self.holders.clear();
    }

    /// Fails for slots that were just read and that [`Slots::push`] cannot have collected.
    #[cfg(feature = "serde")]
    pub(crate) fn check(&self, config: &Config) -> Result<(), ucl_data_plane::Inconsistent> {
        let taken = self.taken.iter().filter(|&&taken| taken == 1).count();
        let sound = self.format == config.keys
            && self.numbers.is_sorted_by(|a, b| a < b)
            && self.numbers.last().is_none_or(|&last| last < config.shape.slots)
            && self.taken.len() == self.len()
            && self.taken.iter().all(|&taken| taken <= 1)
            && self.counts.len() == self.len()
            && self.holders.len() == taken * self.format.slot_bytes();
        ucl_data_plane::ensure(sound, || "the heavy slots that wait to be sent are not of this format".into())
    }

    /// Bytes collected.
    pub(crate) fn bytes(&self) -> usize {
        13 * self.len() + self.holders.len()
    }

    pub(crate) fn memory(&self) -> usize {
        4 * self.numbers.capacity() + self.taken.capacity() + 8 * self.counts.capacity() + self.holders.capacity()
    }

    pub(crate) fn write(&self, scratch: &mut Scratch, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        let next = core::iter::once(0).chain(self.numbers.iter().map(|&slot| u64::from(slot) + 1));
        let gaps: Vec<u64> = self.numbers.iter().zip(next).map(|(&slot, next)| u64::from(slot) - next).collect();
        values::write(gaps.into_iter(), scratch, out);
        block::write(&self.taken, 1, &mut scratch.words, out);
        values::write(self.counts.iter().copied(), scratch, out);
        write_rows(&self.holders, self.format.slot_bytes(), scratch, out);
    }

    pub(crate) fn read(reader: &mut Reader<'_>, config: &Config) -> Result<Self, WireError> {
        let mut slots = Self::new(config.keys);
        let n = read_count(reader, "slots", 13)?;
        let gaps = values::read(reader, n, "slots")?;
        slots.taken = block::read(reader, n, 1, "taken flags")?;
        slots.counts = values::read(reader, n, "slot counts")?;
        let holders = slots.taken.iter().filter(|&&taken| taken != 0).count();
        slots.holders = read_rows(reader, holders, config.keys.slot_bytes(), "holders")?;
        let mut next = 0u64;
        for gap in gaps {
            let slot = next.saturating_add(gap);
            if slot >= config.shape.slots.into() {
                let most = u64::from(config.shape.slots) - 1;
                return Err(WireError::TooLarge { what: "changed slot", value: slot, most });
            }
            slots.numbers.push(slot as u32);
            next = slot + 1;
        }
        Ok(slots)
    }
}
