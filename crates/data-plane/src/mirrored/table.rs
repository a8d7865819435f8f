//! The slots, really packed: a set of eight slots of `w` bits takes `w` bytes.
//!
//! A slot is how often it was hit of late ([`POLICY_BITS`]), its count, and the quotient and the
//! rest of its key. Slots of a set stand in the order in which their holders came, so that `way`
//! says how old a holder is.
//!
//! A set does not hold one slot after the other, but each part of all eight slots together (eight
//! parts of `b` bits take `b` bytes):
//!
//! ```text
//! hits and counts | quotients: bits 0-7 | bits 8-15 | the bits above | rests, in whole bytes
//! ```
//! With counts of six bits, a part of hits and counts is a byte, so a hit changes one byte. Eight
//! bytes are compared at once, in a register of any machine. (One slot after the other, all of
//! counting and sending took 1.2 times as long: eight slots were taken apart to find one, and to
//! age slots that share their bytes stores what the next load needs in part, for which processors
//! wait.)
//!
//! What is written down has one slot after the other ([`Table::packed`]): the form of the first
//! version.

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
/// One in each of eight bytes, and the upper bit of each.
const EIGHT_ONES: u64 = 0x0101_0101_0101_0101;
const EIGHT_HIGH: u64 = EIGHT_ONES << 7;

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
        (self.low_bits() + self.quotient_bits + self.rest_bits) as usize
    }

    fn low_bits(&self) -> u32 {
        self.count_bits + POLICY_BITS
    }

    /// Whether hits and counts are bytes, and there are two columns of quotients, as in what is
    /// planned by default. Where each item passes there is code for this layout alone (`USUAL`).
    pub fn is_usual(&self) -> bool {
        self.low_bits() == 8 && self.columns::<false>() == 2
    }

    #[inline(always)]
    fn low_bits_if<const USUAL: bool>(&self) -> u32 {
        if USUAL { 8 } else { self.low_bits() }
    }

    /// Columns of whole bytes of the quotients.
    #[inline(always)]
    fn columns<const USUAL: bool>(&self) -> usize {
        if USUAL { 2 } else { (self.quotient_bits as usize / 8).min(2) }
    }

    /// Bits of a quotient above those in columns: 48 at most.
    #[inline(always)]
    fn above_bits<const USUAL: bool>(&self) -> u32 {
        self.quotient_bits - 8 * self.columns::<USUAL>() as u32
    }

    #[inline(always)]
    fn rest_bytes(&self) -> usize {
        self.rest_bits as usize / 8
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

impl Slot {
    /// Hits and count.
    fn low(&self) -> u64 {
        self.count << POLICY_BITS | self.hits
    }
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
        serde_bytes::serialize(&self.packed(), serializer)
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

    pub fn sets(&self) -> u32 {
        self.sets
    }

    pub fn memory(&self) -> usize {
        self.bytes.len()
    }

    /// Where a set begins.
    #[inline(always)]
    fn at(&self, set: u32) -> usize {
        set as usize * self.width
    }

    /// Where the quotients of a set begin.
    #[inline(always)]
    fn quotients_at<const USUAL: bool>(&self, set: u32) -> usize {
        self.at(set) + self.layout.low_bits_if::<USUAL>() as usize
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    #[inline(always)]
    fn set_word(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// One of eight parts of `bits` bits (at most 56), of which the first begins at a byte.
    #[inline(always)]
    fn part(&self, at: usize, bits: u32, way: usize) -> u64 {
        let place = way * bits as usize;
        self.word(at + place / 8) >> (place % 8) & ones(bits)
    }

    #[inline(always)]
    fn set_part(&mut self, at: usize, bits: u32, way: usize, value: u64) {
        let place = way * bits as usize;
        let (at, bit) = (at + place / 8, place % 8);
        self.set_word(at, self.word(at) & !(ones(bits) << bit) | value << bit);
    }

    /// Removes one of eight parts of up to 56 bits; those after it move up, and `last` follows.
    #[inline(always)]
    fn replace_part(&mut self, at: usize, bits: u32, way: usize, last: u64) {
        let (from, to) = (way as u32 * bits, (WAYS as u32 - 1) * bits);
        if bits == 0 {
            return;
        }
        if bits <= 8 {
            let (word, all, stay) = (self.word(at), u64::MAX >> (64 - WAYS as u32 * bits), ones(from));
            return self.set_word(at, word & (stay | !all) | (word & all) >> bits & !stay | last << to);
        }
        // Word by word, each of them read before the one before it is stored.
        let mut next = self.word(at + from as usize / 64 * 8);
        for first in (from / 64 * 64..WAYS as u32 * bits).step_by(64) {
            let word = next;
            next = self.word(at + first as usize / 8 + 8);
            let below = |end: u32| if end > first { u64::MAX >> (64 - (end - first).min(64)) } else { 0 };
            let moved = below(to) & !below(from);
            let placed = below(to + bits) & !below(to);
            let last = if to < first { last >> (first - to) } else { last.checked_shl(to - first).unwrap_or(0) };
            let new = (word >> bits | next << (64 - bits)) & moved | last & placed | word & !(moved | placed);
            self.set_word(at + first as usize / 8, new);
        }
    }

    /// Which way of the set a tag holds.
    #[inline(always)]
    pub fn find<const N: usize, const USUAL: bool>(&self, set: u32, tag: &Tag) -> Option<usize> {
        let mut found = self.alike::<USUAL>(set, tag);
        while found != 0 {
            let way = found.trailing_zeros() as usize / 8;
            if self.is_at::<N, USUAL>(set, way, tag) {
                return Some(way);
            }
            found &= found - 1;
        }
        None
    }

    /// [`Table::find`] without a branch on what is found: [`WAYS`] for no way, and more if a second
    /// look is needed.
    #[inline(always)]
    pub fn look<const N: usize, const USUAL: bool>(&self, set: u32, tag: &Tag) -> usize {
        let found = self.alike::<USUAL>(set, tag);
        let way = found.trailing_zeros() as usize / 8;
        // What is behind the last way can be read too.
        let other = (found != 0) & !self.is_at::<N, USUAL>(set, way, tag);
        way + usize::from(other) * (WAYS + 1)
    }

    /// The upper bit of each of eight bytes: of the ways whose columns are those of a tag.
    #[inline(always)]
    fn alike<const USUAL: bool>(&self, set: u32, tag: &Tag) -> u64 {
        let words: &[u8; 16] = self.bytes[self.quotients_at::<USUAL>(set)..].first_chunk().expect("within the padding");
        let differ = |column: usize| {
            let word: [u8; 8] = words[8 * column..8 * column + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(word) ^ ((tag.quotient >> (8 * column) & 0xff) * EIGHT_ONES)
        };
        let other = match self.layout.columns::<USUAL>() {
            0 => 0,
            1 => differ(0),
            _ => differ(0) | differ(1),
        };
        // Each byte that is zero.
        !(((other & !EIGHT_HIGH) + !EIGHT_HIGH) | other) & EIGHT_HIGH
    }

    /// Whether the tag of a way, whose columns are alike, is this one.
    #[inline(always)]
    fn is_at<const N: usize, const USUAL: bool>(&self, set: u32, way: usize, tag: &Tag) -> bool {
        let columns = self.layout.columns::<USUAL>();
        let at = self.quotients_at::<USUAL>(set) + 8 * columns;
        let above = self.part(at, self.layout.above_bits::<USUAL>(), way);
        (above == tag.quotient >> (8 * columns)) & (N == 4 || N == 8 || self.rest(set, way) == tag.rest)
    }

    fn rest_at(&self, set: u32, way: usize) -> usize {
        self.quotients_at::<false>(set) + self.layout.quotient_bits as usize + way * self.layout.rest_bytes()
    }

    #[inline]
    fn rest(&self, set: u32, way: usize) -> u128 {
        let at = self.rest_at(set, way);
        match self.layout.rest_bytes() {
            0 => 0,
            8 => self.word(at).into(),
            _ => u128::from(self.word(at)) | u128::from(self.bytes[at + 8]) << 64,
        }
    }

    #[inline]
    fn set_rest(&mut self, set: u32, way: usize, rest: u128) {
        let (at, bytes) = (self.rest_at(set, way), self.layout.rest_bytes());
        self.bytes[at..at + bytes].copy_from_slice(&rest.to_le_bytes()[..bytes]);
    }

    /// Adds to a slot's count and notes the hit; returns how often the count was filled.
    #[inline(always)]
    pub fn hit<const USUAL: bool>(&mut self, set: u32, way: usize, weight: u64) -> u64 {
        let (at, low_bits) = (self.at(set), self.layout.low_bits_if::<USUAL>());
        let low = if low_bits == 8 { self.bytes[at + way].into() } else { self.part(at, low_bits, way) };
        let hits = (low & MOST_HITS) + u64::from(low & MOST_HITS < MOST_HITS);
        // Below 2^63 and 2^20: no overflow.
        let sum = (low >> POLICY_BITS) + weight;
        let low = (sum & ones(low_bits - POLICY_BITS)) << POLICY_BITS | hits;
        if low_bits == 8 {
            self.bytes[at + way] = low as u8
        } else {
            self.set_part(at, low_bits, way, low)
        }
        sum >> (low_bits - POLICY_BITS)
    }

    /// The counts of a set, which start again from 0.
    #[inline(always)]
    pub fn take_counts(&mut self, set: u32) -> [u64; WAYS] {
        let counts = self.standings(set).map(|standing| standing.count);
        let (at, bits) = (self.at(set), self.layout.low_bits());
        if bits == 8 {
            self.set_word(at, self.word(at) & (MOST_HITS * EIGHT_ONES));
        } else {
            for way in 0..WAYS {
                self.set_part(at, bits, way, self.part(at, bits, way) & MOST_HITS);
            }
        }
        counts
    }

    /// What the policy goes by, of all slots of a set.
    #[inline(always)]
    pub fn standings(&self, set: u32) -> [Standing; WAYS] {
        let (at, bits) = (self.at(set), self.layout.low_bits());
        let standing = |low: u64| Standing { count: low >> POLICY_BITS, hits: low & MOST_HITS };
        if bits == 8 {
            return self.word(at).to_le_bytes().map(|low| standing(low.into()));
        }
        core::array::from_fn(|way| standing(self.part(at, bits, way)))
    }

    /// Takes hits off all slots of a set, none of which has fewer.
    #[inline(always)]
    pub fn age(&mut self, set: u32, hits: u64) {
        let (at, bits) = (self.at(set), self.layout.low_bits());
        if bits == 8 {
            return self.set_word(at, self.word(at) - hits * EIGHT_ONES);
        }
        for way in 0..WAYS {
            self.set_part(at, bits, way, self.part(at, bits, way) - hits);
        }
    }

    /// Removes the holder of a way; those after it move up, and `newcomer` is the last.
    #[inline(always)]
    pub fn replace(&mut self, set: u32, way: usize, newcomer: &Slot) {
        let quotient = newcomer.tag.quotient;
        self.replace_part(self.at(set), self.layout.low_bits(), way, newcomer.low());
        let (at, columns) = (self.quotients_at::<false>(set), self.layout.columns::<false>());
        for column in 0..columns {
            self.replace_part(at + 8 * column, 8, way, quotient >> (8 * column) & 0xff);
        }
        self.replace_part(at + 8 * columns, self.layout.above_bits::<false>(), way, quotient >> (8 * columns));
        if self.layout.rest_bits > 0 {
            let [from, next, end] = [way, way + 1, WAYS].map(|way| self.rest_at(set, way));
            self.bytes.copy_within(next..end, from);
            self.set_rest(set, WAYS - 1, newcomer.tag.rest);
        }
    }

    pub fn slot(&self, set: u32, way: usize) -> Slot {
        let low = self.part(self.at(set), self.layout.low_bits(), way);
        Slot { tag: self.tag::<false>(set, way), count: low >> POLICY_BITS, hits: low & MOST_HITS }
    }

    /// Who holds a slot.
    #[inline(always)]
    pub fn tag<const USUAL: bool>(&self, set: u32, way: usize) -> Tag {
        let (at, columns) = (self.quotients_at::<USUAL>(set), self.layout.columns::<USUAL>());
        let above = self.part(at + 8 * columns, self.layout.above_bits::<USUAL>(), way);
        let low = |column: usize| u64::from(self.bytes[at + 8 * column + way]) << (8 * column);
        let quotient = match columns {
            0 => above,
            1 => above << 8 | low(0),
            _ => above << 16 | low(1) | low(0),
        };
        Tag { quotient, rest: self.rest(set, way) }
    }

    /// A digest of who holds which slot.
    pub fn digest(&self) -> u64 {
        if self.layout.is_usual() { self.digest_if::<true>() } else { self.digest_if::<false>() }
    }

    #[inline(always)]
    fn digest_if<const USUAL: bool>(&self) -> u64 {
        let mut sum = 0u64;
        for set in 0..self.sets {
            for way in 0..WAYS {
                let slot = set as usize * WAYS + way;
                sum = sum.wrapping_add(slot_digest(slot, &self.tag::<USUAL>(set, way)));
            }
        }
        sum
    }

    /// All slots of a set.
    #[cfg(test)]
    pub fn set(&self, set: u32) -> [Slot; WAYS] {
        core::array::from_fn(|way| self.slot(set, way))
    }

    pub fn write_set(&mut self, set: u32, slots: &[Slot; WAYS]) {
        for (way, slot) in slots.iter().enumerate() {
            self.write_slot(set, way, slot);
        }
    }

    fn write_slot(&mut self, set: u32, way: usize, slot: &Slot) {
        self.set_part(self.at(set), self.layout.low_bits(), way, slot.low());
        let (at, columns) = (self.quotients_at::<false>(set), self.layout.columns::<false>());
        let quotient = slot.tag.quotient;
        for column in 0..columns {
            self.bytes[at + 8 * column + way] = (quotient >> (8 * column)) as u8;
        }
        self.set_part(at + 8 * columns, self.layout.above_bits::<false>(), way, quotient >> (8 * columns));
        self.set_rest(set, way, slot.tag.rest);
    }
}

/// The form that is written down: one slot after the other, each from its lowest bit hits, count,
/// quotient and rest.
#[cfg(feature = "serde")]
impl Table {
    fn packed(&self) -> Vec<u8> {
        let mut packed = alloc::vec![0; self.bytes.len()];
        let mut place = 0;
        let mut put = |value: u128, bits: u32| {
            let window = &mut packed[place / 8..place / 8 + 16];
            let word = u128::from_le_bytes((&*window).try_into().expect("sixteen bytes"));
            window.copy_from_slice(&(word | value << (place % 8)).to_le_bytes());
            place += bits as usize;
        };
        for (set, way) in (0..self.sets).flat_map(|set| (0..WAYS).map(move |way| (set, way))) {
            let slot = self.slot(set, way);
            put(slot.low().into(), self.layout.low_bits());
            put(slot.tag.quotient.into(), self.layout.quotient_bits);
            put(slot.tag.rest, self.layout.rest_bits);
        }
        packed
    }

    /// Takes over as many bytes that were read: any bytes are slots.
    pub fn restore(&mut self, packed: &[u8]) {
        debug_assert_eq!(packed.len(), self.bytes.len());
        let mut place = 0;
        let mut take = |bits: u32| {
            let window = packed[place / 8..place / 8 + 16].try_into().expect("sixteen bytes");
            let value = u128::from_le_bytes(window) >> (place % 8) & ((1 << bits) - 1);
            place += bits as usize;
            value
        };
        let SlotLayout { quotient_bits, rest_bits, .. } = self.layout;
        for (set, way) in (0..self.sets).flat_map(|set| (0..WAYS).map(move |way| (set, way))) {
            let low = take(self.layout.low_bits()) as u64;
            let tag = Tag { quotient: take(quotient_bits) as u64, rest: take(rest_bits) };
            self.write_slot(set, way, &Slot { tag, count: low >> POLICY_BITS, hits: low & MOST_HITS });
        }
    }
}

/// So many ones, fewer than 64.
#[inline(always)]
fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
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
        let sizes = prop::sample::select(&[(8u32, 0u32), (15, 0), (21, 0), (32, 0), (64, 0), (32, 72), (64, 64)][..]);
        (sizes, prop_oneof![Just(6u32), 3u32..21], 1u32..40).prop_map(|((word, rest_bits), count_bits, sets)| {
            let quotient_bits = word - sets.ilog2();
            (SlotLayout { quotient_bits, rest_bits, count_bits }, sets)
        })
    }

    proptest! {
        /// The form that is written down: bit by bit one slot after the other.
        #[cfg(feature = "serde")]
        #[test]
        fn slots_are_written_one_after_the_other(
            (layout, sets) in layouts(),
            bytes in prop::collection::vec(any::<u8>(), 1..300),
        ) {
            let mut packed = alloc::vec![0u8; Table::bytes_of(&layout, sets)];
            let used = layout.width() * sets as usize;
            packed[..used].iter_mut().zip(bytes.iter().cycle()).for_each(|(to, &from)| *to = from);
            let mut table = Table::new(layout, sets);
            table.restore(&packed);
            prop_assert_eq!(table.packed(), &packed[..]);
            let mut place = 0;
            let mut next = |bits: u32| (0..bits).fold(0u128, |value, at| {
                place += 1;
                value | u128::from(packed[(place - 1) / 8] >> ((place - 1) % 8) & 1) << at
            });
            for slot in (0..sets).flat_map(|set| table.set(set)) {
                prop_assert_eq!(u128::from(slot.hits), next(POLICY_BITS));
                prop_assert_eq!(u128::from(slot.count), next(layout.count_bits));
                prop_assert_eq!(u128::from(slot.tag.quotient), next(layout.quotient_bits));
                prop_assert_eq!(slot.tag.rest, next(layout.rest_bits));
            }
        }

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
                let mut copy = table.clone();
                prop_assert_eq!(table.hit::<false>(set % sets, way, weight), sum >> layout.count_bits);
                if layout.is_usual() {
                    prop_assert_eq!(copy.hit::<true>(set % sets, way, weight), sum >> layout.count_bits);
                    prop_assert_eq!(&copy, &table);
                }
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
                for slot in slots {
                    let first = slots.iter().position(|other| other.tag == slot.tag);
                    let found = if layout.rest_bits == 0 {
                        table.find::<4, false>(set as u32, &slot.tag)
                    } else {
                        table.find::<16, false>(set as u32, &slot.tag)
                    };
                    prop_assert_eq!(found, first);
                    if layout.is_usual() {
                        prop_assert_eq!(table.find::<16, true>(set as u32, &slot.tag), first);
                    }
                    let way = table.look::<16, false>(set as u32, &slot.tag);
                    prop_assert!(way > WAYS || Some(way) == first);
                }
                prop_assert_eq!(table.take_counts(set as u32), slots.map(|slot| slot.count));
                prop_assert_eq!(table.set(set as u32), slots.map(|slot| Slot { count: 0, ..slot }));
            }
        }
    }
}
