//! The slots, really packed: a set of eight slots of `w` bits takes `w` bytes.
//!
//! A slot is, from its lowest bit: how often it was hit of late ([`POLICY_BITS`]), its count, the
//! quotient and the rest of its key. Slots of a set stand in the order in which their holders came,
//! so that `way` says how old a holder is.

use alloc::vec::Vec;

use super::WAYS;
use super::code::Tag;
use crate::hash::fold;

/// Bits of the replacement policy in each slot.
pub const POLICY_BITS: u32 = 2;
/// Hits beyond this are as good as this many.
const MOST_HITS: u64 = (1 << POLICY_BITS) - 1;
/// What is read at once may reach this far beyond the last set.
const PADDING: usize = 64;

/// How a slot is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    pub quotient_bits: u32,
    pub rest_bits: u32,
    pub count_bits: u32,
}

impl SlotLayout {
    /// Bits of a slot, and bytes of a set.
    pub fn width(&self) -> usize {
        (self.rest_at() + self.rest_bits) as usize
    }

    fn low_bits(&self) -> u32 {
        self.count_bits + POLICY_BITS
    }

    /// Where in a slot the rest of its key begins.
    fn rest_at(&self) -> u32 {
        self.low_bits() + self.quotient_bits
    }

    /// A tag in as few bits as it needs.
    pub fn pack(&self, tag: &Tag) -> u128 {
        u128::from(tag.quotient) | tag.rest << self.quotient_bits
    }

    /// What [`SlotLayout::pack`] packed.
    pub fn unpack(&self, packed: u128) -> Tag {
        let quotient = packed & ((1 << self.quotient_bits) - 1);
        Tag { quotient: quotient as u64, rest: packed >> self.quotient_bits }
    }
}

/// A slot, taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    pub tag: Tag,
    pub count: u64,
    pub hits: u64,
}

/// What the policy goes by, of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub count: u64,
    pub hits: u64,
}

/// All slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    layout: SlotLayout,
    width: usize,
    sets: u32,
    bytes: Vec<u8>,
}

/// The rest follows from the configuration.
#[cfg(feature = "serde")]
impl serde::Serialize for Table {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_bytes::serialize(&self.bytes, serializer)
    }
}

impl Table {
    /// A table in which way `w` of every set is held by tag `w` with a count of 0: no slot is ever
    /// empty, and none needs a bit to say so.
    pub fn new(layout: SlotLayout, sets: u32) -> Self {
        let width = layout.width();
        let mut table = Self { layout, width, sets, bytes: alloc::vec![0; Self::bytes_of(&layout, sets)] };
        for set in 0..sets {
            table.write_set(set, &core::array::from_fn(|way| Slot { tag: first_holder(way), count: 0, hits: 0 }));
        }
        table
    }

    /// Bytes that a table takes.
    pub fn bytes_of(layout: &SlotLayout, sets: u32) -> usize {
        layout.width() * sets as usize + PADDING
    }

    /// Takes over as many bytes that were read: any bytes are slots.
    #[cfg(feature = "serde")]
    pub fn restore(&mut self, bytes: Vec<u8>) {
        debug_assert_eq!(bytes.len(), self.bytes.len());
        self.bytes = bytes;
    }

    pub fn sets(&self) -> u32 {
        self.sets
    }

    pub fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// The bit at which a slot begins.
    #[inline(always)]
    fn place(&self, set: u32, way: usize) -> usize {
        (set as usize * WAYS + way) * self.width
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Up to 121 bits.
    #[inline(always)]
    fn read(&self, place: usize, bits: u32) -> u128 {
        let at = place / 8;
        let word = u128::from_le_bytes(self.bytes[at..at + 16].try_into().expect("sixteen bytes"));
        word >> (place % 8) & ((1 << bits) - 1)
    }

    fn write(&mut self, place: usize, bits: u32, value: u128) {
        let (at, bit) = (place / 8, place % 8);
        let word = u128::from_le_bytes(self.bytes[at..at + 16].try_into().expect("sixteen bytes"));
        let mask = ((1 << bits) - 1) << bit;
        self.bytes[at..at + 16].copy_from_slice(&(word & !mask | value << bit).to_le_bytes());
    }

    /// Which way of the set a tag holds.
    #[inline(always)]
    pub fn find<const N: usize>(&self, set: u32, tag: &Tag) -> Option<usize> {
        let (low, bits) = (self.layout.low_bits(), self.layout.quotient_bits);
        // All eight are compared, without a branch between them: which one it is cannot be
        // foreseen.
        let mut found = 0u32;
        for way in 0..WAYS {
            let place = self.place(set, way);
            let quotient = if N == 4 || N == 13 {
                self.word(place / 8) >> (place as u32 % 8 + low) & ((1 << bits) - 1)
            } else {
                self.read(place + low as usize, bits) as u64
            };
            found |= u32::from(quotient == tag.quotient) << way;
        }
        while found != 0 {
            let way = found.trailing_zeros() as usize;
            if N == 4 || N == 8 || self.rest(set, way) == tag.rest {
                return Some(way);
            }
            found &= found - 1;
        }
        None
    }

    #[inline]
    fn rest(&self, set: u32, way: usize) -> u128 {
        if self.layout.rest_bits == 0 {
            return 0;
        }
        self.read(self.place(set, way) + self.layout.rest_at() as usize, self.layout.rest_bits)
    }

    /// Adds to a slot's count and notes the hit; returns how often the count was filled.
    #[inline(always)]
    pub fn hit(&mut self, set: u32, way: usize, weight: u64) -> u64 {
        let place = self.place(set, way);
        let (at, bit) = (place / 8, place % 8);
        let word = self.word(at);
        let low = word >> bit & ((1 << self.layout.low_bits()) - 1);
        let hits = (low & MOST_HITS) + u64::from(low & MOST_HITS < MOST_HITS);
        // Below 2^63 and 2^20: no overflow.
        let sum = (low >> POLICY_BITS) + weight;
        let kept = sum & ((1 << self.layout.count_bits) - 1);
        let changed = (kept << POLICY_BITS | hits) ^ low;
        self.bytes[at..at + 8].copy_from_slice(&(word ^ changed << bit).to_le_bytes());
        sum >> self.layout.count_bits
    }

    /// A slot's count, which starts again from 0.
    #[inline]
    pub fn take_count(&mut self, set: u32, way: usize) -> u64 {
        let place = self.place(set, way);
        let (at, bit) = (place / 8, place % 8);
        let word = self.word(at);
        let count = word >> bit >> POLICY_BITS & ((1 << self.layout.count_bits) - 1);
        self.bytes[at..at + 8].copy_from_slice(&(word ^ count << POLICY_BITS << bit).to_le_bytes());
        count
    }

    /// What the policy goes by, of all slots of a set.
    #[inline(always)]
    pub fn standings(&self, set: u32) -> [Standing; WAYS] {
        let mask = (1 << self.layout.low_bits()) - 1;
        core::array::from_fn(|way| {
            let place = self.place(set, way);
            let low = self.word(place / 8) >> (place % 8) & mask;
            Standing { count: low >> POLICY_BITS, hits: low & MOST_HITS }
        })
    }

    /// Takes hits off all slots of a set, none of which has fewer.
    #[inline(always)]
    pub fn age(&mut self, set: u32, hits: u64) {
        for way in 0..WAYS {
            let place = self.place(set, way);
            let aged = self.word(place / 8) - (hits << (place % 8));
            self.bytes[place / 8..][..8].copy_from_slice(&aged.to_le_bytes());
        }
    }

    /// Removes the holder of a way; those after it move up, and `newcomer` is the last.
    #[inline(always)]
    pub fn replace(&mut self, set: u32, way: usize, newcomer: &Slot) {
        // As many bits as a word has wherever in its first byte they begin, in whole bytes.
        const STEP: usize = 56;
        let mut to = self.place(set, way);
        let end = self.place(set, WAYS - 1);
        while to < end {
            let from = to + self.width;
            let bits = (end - to).min(STEP);
            let mask = (1u64 << bits) - 1;
            let moved = self.word(from / 8) >> (from % 8) & mask;
            let kept = self.word(to / 8) & !(mask << (to % 8));
            self.bytes[to / 8..][..8].copy_from_slice(&(kept | moved << (to % 8)).to_le_bytes());
            to += bits;
        }
        self.write_slot(end, newcomer);
    }

    pub fn slot(&self, set: u32, way: usize) -> Slot {
        let low = self.read(self.place(set, way), self.layout.rest_at());
        let quotient = (low >> self.layout.low_bits()) as u64;
        let count = (low as u64 & ((1 << self.layout.low_bits()) - 1)) >> POLICY_BITS;
        Slot { tag: Tag { quotient, rest: self.rest(set, way) }, count, hits: low as u64 & MOST_HITS }
    }

    /// A digest of who holds which slot.
    pub fn digest(&self) -> u64 {
        let slots = (0..self.sets).flat_map(|set| (0..WAYS).map(move |way| (set, way)));
        slots.fold(0u64, |sum, (set, way)| {
            sum.wrapping_add(slot_digest(set as usize * WAYS + way, &self.slot(set, way).tag))
        })
    }

    /// All slots of a set.
    #[cfg(test)]
    pub fn set(&self, set: u32) -> [Slot; WAYS] {
        core::array::from_fn(|way| self.slot(set, way))
    }

    pub fn write_set(&mut self, set: u32, slots: &[Slot; WAYS]) {
        for (way, slot) in slots.iter().enumerate() {
            self.write_slot(self.place(set, way), slot);
        }
    }

    #[inline(always)]
    fn write_slot(&mut self, place: usize, slot: &Slot) {
        let low = u128::from(slot.count << POLICY_BITS | slot.hits);
        let low = u128::from(slot.tag.quotient) << self.layout.low_bits() | low;
        self.write(place, self.layout.rest_at(), low);
        if self.layout.rest_bits > 0 {
            self.write(place + self.layout.rest_at() as usize, self.layout.rest_bits, slot.tag.rest);
        }
    }
}

/// What a slot and the tag of its holder add to the digest of a table.
pub fn slot_digest(slot: usize, tag: &Tag) -> u64 {
    let place = (slot as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    fold(tag.quotient ^ tag.rest as u64 ^ 0xd1b5_4a32_d192_ed03, place ^ (tag.rest >> 64) as u64)
}

/// Who holds a way before anyone came.
pub fn first_holder(way: usize) -> Tag {
    Tag { quotient: way as u64, rest: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layouts() -> impl Strategy<Value = (SlotLayout, u32)> {
        let sizes = prop::sample::select(&[(32u32, 0u32), (64, 0), (32, 72), (64, 64)][..]);
        (sizes, 3u32..21, 1u32..40).prop_map(|((word, rest_bits), count_bits, sets)| {
            let quotient_bits = word - sets.ilog2();
            (SlotLayout { quotient_bits, rest_bits, count_bits }, sets)
        })
    }

    proptest! {
        /// Slots hold what was put into them, and never disturb their neighbours.
        #[test]
        fn slots_are_what_was_written(
            (layout, sets) in layouts(),
            writes in prop::collection::vec((any::<u32>(), any::<[(u64, u128, u64, u64); 8]>()), 1..20),
            hits in prop::collection::vec((any::<u32>(), 0usize..8, 1u64..1 << 40), 0..50),
            replaced in prop::collection::vec((any::<u32>(), 0usize..8), 0..50),
        ) {
            let mut table = Table::new(layout, sets);
            let mut expected: std::vec::Vec<[Slot; 8]> = (0..sets).map(|set| table.set(set)).collect();
            prop_assert!(expected.iter().flatten().all(|slot| slot.count == 0));
            let within = |value: u128, bits: u32| if bits == 0 { 0 } else { value & (u128::MAX >> (128 - bits)) };
            for (set, slots) in writes {
                let set = set % sets;
                let slots = slots.map(|(quotient, rest, count, hits)| Slot {
                    tag: Tag {
                        quotient: within(quotient.into(), layout.quotient_bits) as u64,
                        rest: within(rest, layout.rest_bits),
                    },
                    count: within(count.into(), layout.count_bits) as u64,
                    hits: hits % 4,
                });
                table.write_set(set, &slots);
                expected[set as usize] = slots;
            }
            for (set, way, weight) in hits {
                let slot = &mut expected[(set % sets) as usize][way];
                let sum = slot.count + weight;
                slot.count = sum % (1 << layout.count_bits);
                slot.hits = (slot.hits + 1).min(3);
                prop_assert_eq!(table.hit(set % sets, way, weight), sum >> layout.count_bits);
            }
            for (from, way) in replaced {
                let (to, from) = (from / 2 % sets, from % sets);
                let newcomer = expected[from as usize][way];
                let slots = &mut expected[to as usize];
                let standings = table.standings(to);
                prop_assert!(standings.iter().zip(&*slots).all(|(a, b)| (a.count, a.hits) == (b.count, b.hits)));
                let least = slots.iter().map(|slot| slot.hits).min().unwrap();
                slots.iter_mut().for_each(|slot| slot.hits -= least);
                table.age(to, least);
                slots.copy_within(way + 1.., way);
                slots[7] = newcomer;
                table.replace(to, way, &newcomer);
            }
            for (set, slots) in expected.iter().enumerate() {
                prop_assert_eq!(&table.set(set as u32), slots);
                for (way, slot) in slots.iter().enumerate() {
                    let first = slots.iter().position(|other| other.tag == slot.tag);
                    let found = if layout.quotient_bits + layout.rest_bits <= 32 {
                        table.find::<4>(set as u32, &slot.tag)
                    } else {
                        table.find::<16>(set as u32, &slot.tag)
                    };
                    prop_assert_eq!(found, first);
                    prop_assert_eq!(table.take_count(set as u32, way), slot.count);
                    prop_assert_eq!(table.slot(set as u32, way), Slot { count: 0, ..*slot });
                }
            }
        }
    }
}
