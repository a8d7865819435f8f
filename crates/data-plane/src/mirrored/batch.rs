//! Changes that wait to be sent, in one buffer.
//!
//! Records grow from the front. They are packed into whole bytes, and a number in each says in
//! which order they came, so that sorting by set keeps the order within a set. A record has no tag:
//! at the flush the newcomer's is read from the table, where the newest slots of a set are the
//! newcomers of the batch. Only a newcomer that has left again within the batch has its tag kept,
//! at the back of the buffer.

use alloc::vec;
use alloc::vec::Vec;

use super::WAYS;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A newcomer took a place; who left had `count`.
    Miss { way: usize, count: u64 },
    /// A count was filled `times` times.
    Full { way: usize, times: u64 },
}

/// How a record is packed: from the top, set, number, kind, way, amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    bytes: usize,
    number_bits: u32,
    amount_bits: u32,
    tag_bytes: usize,
}

const KIND_AND_WAY_BITS: u32 = 1 + WAYS.ilog2();
/// Bytes of the number that a kept tag has beside it.
const NUMBER_BYTES: usize = 4;

impl RecordLayout {
    /// The narrowest records for so many sets and such counts, in a buffer of this size.
    pub fn new(sets: u32, amount_bits: u32, tag_bits: u32, buffer: usize) -> Self {
        let set_bits = u32::BITS - (sets - 1).leading_zeros();
        let tag_bytes = tag_bits.div_ceil(8) as usize;
        // Wider records are fewer, and then their numbers are narrower: the first width that fits.
        let fits = |&bytes: &usize| {
            let records = (buffer / bytes).max(1) as u32;
            let number_bits = u32::BITS - records.leading_zeros();
            set_bits + number_bits + KIND_AND_WAY_BITS + amount_bits <= 8 * bytes as u32
        };
        let bytes = (2..=8).find(fits).unwrap_or(8);
        let number_bits = u32::BITS - ((buffer / bytes).max(1) as u32).leading_zeros();
        Self { bytes, number_bits, amount_bits, tag_bytes }
    }

    /// The largest amount that a record holds.
    fn most(&self) -> u64 {
        (1 << self.amount_bits) - 1
    }

    /// All bits of a record.
    fn ones(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }

    fn pack(&self, set: u32, number: u32, waiting: Waiting) -> u64 {
        let (full, way, amount) = match waiting {
            Waiting::Miss { way, count } => (0, way, count),
            Waiting::Full { way, times } => (1, way, times - 1),
        };
        let head = u64::from(set) << self.number_bits | u64::from(number);
        ((head << 1 | full) << WAYS.ilog2() | way as u64) << self.amount_bits | amount
    }

    fn unpack(&self, packed: u64) -> (u32, u32, Waiting) {
        let amount = packed & self.most();
        let rest = packed >> self.amount_bits;
        let way = rest as usize % WAYS;
        let full = rest >> WAYS.ilog2() & 1 == 1;
        let head = rest >> KIND_AND_WAY_BITS;
        let number = (head & ((1 << self.number_bits) - 1)) as u32;
        let waiting =
            if full { Waiting::Full { way, times: amount + 1 } } else { Waiting::Miss { way, count: amount } };
        ((head >> self.number_bits) as u32, number, waiting)
    }
}

/// The buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Batch {
    #[cfg_attr(feature = "serde", serde(skip))]
    layout: RecordLayout,
    #[cfg_attr(feature = "serde", serde(with = "serde_bytes"))]
    buffer: Vec<u8>,
    records: usize,
    kept: usize,
}

impl Batch {
    pub fn new(layout: RecordLayout, bytes: usize) -> Self {
        Self { layout, buffer: vec![0; bytes], records: 0, kept: 0 }
    }

    pub fn memory(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    fn kept_bytes(&self) -> usize {
        NUMBER_BYTES + self.layout.tag_bytes
    }

    /// Whether there is room for a record and a tag.
    #[inline]
    pub fn has_room(&self) -> bool {
        let used = self.records * self.layout.bytes + self.kept * self.kept_bytes();
        used + self.layout.bytes + self.kept_bytes() <= self.buffer.len()
    }

    /// Whether an amount fits a record.
    pub fn holds(&self, waiting: &Waiting) -> bool {
        match *waiting {
            Waiting::Miss { count, .. } => count <= self.layout.most(),
            Waiting::Full { times, .. } => times - 1 <= self.layout.most(),
        }
    }

    /// Adds a record, for which there must be room.
    #[inline]
    pub fn push(&mut self, set: u32, waiting: Waiting) {
        let packed = self.layout.pack(set, self.records as u32, waiting);
        let bytes = self.layout.bytes;
        let record = &mut self.buffer[self.records * bytes..];
        if let Some(chunk) = record.first_chunk_mut() {
            // With what is behind it, as it is: a copy of so many bytes would be a call.
            let behind = u64::from_le_bytes(*chunk) & !self.layout.ones();
            *chunk = (behind | packed).to_le_bytes();
        } else {
            record[..bytes].copy_from_slice(&packed.to_le_bytes()[..bytes]);
        }
        self.records += 1;
    }

    /// Keeps the tag of a newcomer of this batch that the next record says has left.
    pub fn keep(&mut self, tag: u128) {
        let (number, bytes) = (self.records as u32, self.kept_bytes());
        self.kept += 1;
        let at = self.buffer.len() - self.kept * bytes;
        self.buffer[at..at + NUMBER_BYTES].copy_from_slice(&number.to_le_bytes());
        self.buffer[at + NUMBER_BYTES..at + bytes].copy_from_slice(&tag.to_le_bytes()[..self.layout.tag_bytes]);
    }

    /// The tag that was kept when record `number` was about to come.
    fn kept_tag(&self, number: u32) -> u128 {
        // They were kept in order.
        let (mut low, mut high) = (0, self.kept);
        while low < high {
            let middle = (low + high) / 2;
            if self.number_of(middle) < number { low = middle + 1 } else { high = middle }
        }
        let mut tag = [0; 16];
        tag[..self.layout.tag_bytes].copy_from_slice(&self.kept_entry(low)[NUMBER_BYTES..]);
        u128::from_le_bytes(tag)
    }

    /// The `at`-th tag that was kept, behind the number of its record.
    fn kept_entry(&self, at: usize) -> &[u8] {
        let bytes = self.kept_bytes();
        &self.buffer[self.buffer.len() - (at + 1) * bytes..][..bytes]
    }

    fn number_of(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.kept_entry(at)[..NUMBER_BYTES].try_into().expect("four bytes"))
    }

    /// Sorts by set.
    pub fn sort(&mut self) {
        fn sort<const R: usize>(bytes: &mut [u8]) {
            let (records, _) = bytes.as_chunks_mut::<R>();
            records.sort_unstable_by_key(|record| {
                let mut word = [0; 8];
                word[..R].copy_from_slice(record);
                u64::from_le_bytes(word)
            });
        }
        let bytes = &mut self.buffer[..self.records * self.layout.bytes];
        match self.layout.bytes {
            2 => sort::<2>(bytes),
            3 => sort::<3>(bytes),
            4 => sort::<4>(bytes),
            5 => sort::<5>(bytes),
            6 => sort::<6>(bytes),
            7 => sort::<7>(bytes),
            _ => sort::<8>(bytes),
        }
    }

    pub fn len(&self) -> usize {
        self.records
    }

    /// Record `at`: its set, its number and what it says.
    #[inline(always)]
    pub fn get(&self, at: usize) -> (u32, u32, Waiting) {
        self.layout.unpack(self.packed(at))
    }

    /// Record `at`, packed.
    #[inline(always)]
    fn packed(&self, at: usize) -> u64 {
        let bytes = self.layout.bytes;
        let record = &self.buffer[at * bytes..];
        if let Some(word) = record.first_chunk() {
            // With what is behind it.
            return u64::from_le_bytes(*word) & self.layout.ones();
        }
        record[..bytes].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Where the newcomer of record `at` is, of a sorted batch: in which way of its set, or, if it
    /// has left again, its tag.
    #[inline(always)]
    pub fn newcomer(&self, at: usize, set: u32) -> Result<usize, u128> {
        let mut way = WAYS - 1;
        for later in at + 1..self.records {
            let (other, number, waiting) = self.get(later);
            if other != set {
                break;
            }
            let Waiting::Miss { way: left, .. } = waiting else { continue };
            if left == way {
                return Err(self.kept_tag(number));
            }
            way -= usize::from(left < way);
        }
        Ok(way)
    }

    pub fn clear(&mut self) {
        self.records = 0;
        self.kept = 0;
    }

    /// Takes over a buffer of the same size that was read.
    #[cfg(feature = "serde")]
    pub fn restore(&mut self, buffer: Vec<u8>, records: usize, kept: usize) -> Result<(), crate::Inconsistent> {
        let used = records.checked_mul(self.layout.bytes).zip(kept.checked_mul(self.kept_bytes()));
        let fits = used.and_then(|(records, kept)| records.checked_add(kept)).is_some_and(|used| used <= buffer.len());
        crate::ensure(fits, || alloc::format!("{records} records and {kept} tags in {} bytes", buffer.len()))?;
        (self.buffer, self.records, self.kept) = (buffer, records, kept);
        Ok(())
    }

    /// The record for which a tag was kept as the `at`-th, if so many were.
    #[cfg(feature = "serde")]
    pub fn kept_number(&self, at: usize) -> Option<u32> {
        (at < self.kept).then(|| self.number_of(at))
    }
}
