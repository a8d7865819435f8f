//! What a message says, and how likely each part of it is.
//!
//! One description for both directions ([`Coder`]). Models adapt as they go, from message to
//! message; sender and receiver hold the same ones, and start anew together.

use alloc::vec;
use alloc::vec::Vec;

use super::WAYS;
use super::code::{KeyCode, Tag};
use super::coder::{Bit, Coder};

/// One change of a set, or the end of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `newcomer` takes the place of the holder of `way`, who leaves with `count`.
    Miss { set: u32, way: usize, count: u64, newcomer: Tag },
    /// The count of the holder of `way` was filled `times` times.
    Full { set: u32, way: usize, times: u64 },
    /// No more changes.
    End,
}

/// Numbers that are small as a rule: how many bits they have, one by one, and then two bits by
/// their own models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Small {
    bits: Vec<Bit>,
    lengths: usize,
}

impl Small {
    const NODES: usize = 3;

    /// For numbers below `2^most - 1`; larger ones share the models of the largest.
    fn new(most: usize) -> Self {
        Self { bits: vec![Bit::NEW; most + most * Self::NODES], lengths: most }
    }

    #[inline(always)]
    fn code(&mut self, coder: &mut impl Coder, value: u64) -> u64 {
        // A decoder is given no number: whatever stands here is ignored.
        let value = value.wrapping_add(1);
        let want = value.checked_ilog2().unwrap_or(0);
        let mut length = 0;
        while length < 63 {
            let at = (length as usize).min(self.lengths - 1);
            if !coder.flag(&mut self.bits[at], want > length) {
                break;
            }
            length += 1;
        }
        let class = self.lengths + (length as usize).min(self.lengths - 1) * Self::NODES;
        let mut number = 1u64;
        let mut left = length;
        for node in 0..2 {
            if left == 0 {
                break;
            }
            left -= 1;
            let at = class + if node == 0 { 0 } else { 1 + (number & 1) as usize };
            number = number << 1 | u64::from(coder.bit(&mut self.bits[at], value >> left & 1 == 1));
        }
        let low = if left == 0 { 0 } else { coder.raw_long(value & ((1 << left) - 1), left) };
        (number << left | low).wrapping_sub(1)
    }
}

/// Numbers of up to `most` bits, small or not: the number of bits by a tree, and then three bits by
/// their own models. Of evenly spread numbers it costs no bit more than they have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Long {
    bits: Vec<Bit>,
    tree: u32,
}

impl Long {
    const NODES: usize = 7;

    fn new(most: u32) -> Self {
        let tree = u32::BITS - most.leading_zeros();
        Self { bits: vec![Bit::NEW; (1 << tree) + (most as usize + 1) * Self::NODES], tree }
    }

    #[inline(always)]
    fn code(&mut self, coder: &mut impl Coder, value: u64) -> u64 {
        let length = tree(coder, &mut self.bits, self.tree, u64::BITS - value.leading_zeros());
        if length < 2 {
            return length.into();
        }
        let class = (1 << self.tree) + length as usize * Self::NODES;
        // Bytes that nobody wrote may name a length that there is not.
        let Some(models) = self.bits.get_mut(class..class + Self::NODES) else { return 0 };
        let (mut left, mut number) = (length - 1, 1u64);
        for _ in 0..3.min(left) {
            left -= 1;
            let at = number as usize - 1;
            number = number << 1 | u64::from(coder.bit(&mut models[at], value >> left & 1 == 1));
        }
        let low = if left == 0 { 0 } else { coder.raw_long(value & ((1 << left) - 1), left) };
        number << left | low
    }
}

/// A symbol of `bits` bits, each bit by what came before it. The models are those of a heap: 1 at
/// the root.
#[inline(always)]
fn tree(coder: &mut impl Coder, models: &mut [Bit], bits: u32, symbol: u32) -> u32 {
    let mut node = 1;
    for left in (0..bits).rev() {
        node = node << 1 | usize::from(coder.bit(&mut models[node], symbol >> left & 1 == 1));
    }
    node as u32 - (1 << bits)
}

/// Addresses that came before, each at the place that its hash says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Dictionary {
    known: Bit,
    addresses: Vec<u32>,
}

impl Dictionary {
    /// A power of two.
    const ENTRIES: usize = 512;

    fn new() -> Self {
        Self { known: Bit::NEW, addresses: vec![0; Self::ENTRIES] }
    }

    fn place(address: u32) -> usize {
        (address.wrapping_mul(0x9e37_79b1) >> (32 - Self::ENTRIES.ilog2())) as usize
    }

    #[inline(always)]
    fn code(&mut self, coder: &mut impl Coder, address: u32) -> u32 {
        let place = Self::place(address);
        if coder.flag(&mut self.known, self.addresses[place] == address) {
            return self.addresses[coder.raw(place as u32, Self::ENTRIES.ilog2()) as usize];
        }
        let address = coder.raw_long(address.into(), 32) as u32;
        self.addresses[Self::place(address)] = address;
        address
    }
}

/// What of a key does not choose its set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Rest {
    Nothing,
    Number(Long),
    /// Source address, source port, destination port, protocol.
    FiveTuple {
        sources: Dictionary,
        port_high: Vec<Bit>,
        port_low: Vec<Bit>,
        protocol: Vec<Bit>,
    },
}

impl Rest {
    #[inline(always)]
    fn code(&mut self, coder: &mut impl Coder, rest: u128) -> u128 {
        match self {
            Self::Nothing => 0,
            Self::Number(model) => model.code(coder, rest as u64).into(),
            Self::FiveTuple { sources, port_high, port_low, protocol } => {
                let byte = |at: u32| (rest >> at) as u32 & 255;
                let protocol = tree(coder, protocol, 8, byte(64));
                // Ports are big-endian: the high byte comes first.
                let high = tree(coder, port_high, 8, byte(48));
                let low = tree(coder, port_low, 8, byte(56));
                let source_port = coder.raw((rest >> 32) as u32 & 0xffff, 16);
                let source = sources.code(coder, rest as u32);
                u128::from(source)
                    | u128::from(source_port) << 32
                    | u128::from(high) << 48
                    | u128::from(low) << 56
                    | u128::from(protocol) << 64
            }
        }
    }

    #[cfg(feature = "serde")]
    fn bits(&self) -> [&[Bit]; 3] {
        match self {
            Self::Nothing => [&[]; 3],
            Self::Number(model) => [&model.bits, &[], &[]],
            Self::FiveTuple { port_high, port_low, protocol, .. } => [port_high, port_low, protocol],
        }
    }

    #[cfg(feature = "serde")]
    fn addresses(&self) -> &[u32] {
        if let Self::FiveTuple { sources, .. } = self { &sources.addresses } else { &[] }
    }

    #[cfg(feature = "serde")]
    fn known(&self) -> Bit {
        if let Self::FiveTuple { sources, .. } = self { sources.known } else { Bit::NEW }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Number(model) => bytes(&model.bits),
            Self::FiveTuple { sources, port_high, port_low, protocol } => {
                bytes(port_high) + bytes(port_low) + bytes(protocol) + 4 * sources.addresses.len()
            }
        }
    }
}

fn bytes(bits: &[Bit]) -> usize {
    size_of_val(bits)
}

/// All models of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Models {
    sets: u32,
    gap: Small,
    full: Bit,
    way: Vec<Bit>,
    leaving: Small,
    times: Small,
    live: Small,
    quotient: Long,
    rest: Rest,
}

impl Models {
    /// Models that have learned nothing.
    pub fn new(code: &KeyCode, count_bits: u8) -> Self {
        let rest = match code.bits().1 {
            0 => Rest::Nothing,
            72 => Rest::FiveTuple {
                sources: Dictionary::new(),
                port_high: vec![Bit::NEW; 256],
                port_low: vec![Bit::NEW; 256],
                protocol: vec![Bit::NEW; 256],
            },
            bits => Rest::Number(Long::new(bits)),
        };
        let count = usize::from(count_bits) + 1;
        Self {
            sets: code.sets(),
            gap: Small::new(20),
            full: Bit::NEW,
            way: vec![Bit::NEW; WAYS],
            leaving: Small::new(count),
            times: Small::new(count),
            live: Small::new(count),
            quotient: Long::new(code.quotient_bits()),
            rest,
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let parts = [&self.gap.bits, &self.way, &self.leaving.bits, &self.times.bits, &self.live.bits];
        parts.iter().map(|bits| bytes(bits)).sum::<usize>()
            + bytes(&self.quotient.bits)
            + self.rest.bytes()
            + size_of::<Self>()
    }

    /// Fails unless these models, which were just read, can be those that `new` ones became.
    #[cfg(feature = "serde")]
    pub fn check_like(&self, new: &Self) -> Result<(), crate::Inconsistent> {
        let sizes = |models: &Self| (models.bits().map(<[Bit]>::len), models.scalars(), models.rest.addresses().len());
        let same =
            sizes(self) == sizes(new) && core::mem::discriminant(&self.rest) == core::mem::discriminant(&new.rest);
        let sound = self.bits().iter().flat_map(|bits| bits.iter()).all(|bit| bit.is_sound());
        crate::ensure(same && sound && self.full.is_sound() && self.rest.known().is_sound(), || {
            "the models of the messages are not those of this table".into()
        })
    }

    /// Numbers by which models are found.
    #[cfg(feature = "serde")]
    fn scalars(&self) -> [usize; 7] {
        let tree = |long: &Long| long.tree as usize;
        let rest = if let Rest::Number(long) = &self.rest { tree(long) } else { 0 };
        let small = [&self.gap, &self.leaving, &self.times, &self.live].map(|small| small.lengths);
        [self.sets as usize, small[0], small[1], small[2], small[3], tree(&self.quotient), rest]
    }

    /// All models that are in lists.
    #[cfg(feature = "serde")]
    fn bits(&self) -> [&[Bit]; 9] {
        let [a, b, c] = self.rest.bits();
        [&self.gap.bits, &self.way, &self.leaving.bits, &self.times.bits, &self.live.bits, &self.quotient.bits, a, b, c]
    }

    /// Codes a record; `set` is that of the record before, 0 at the start of a batch.
    #[inline(always)]
    pub fn record(&mut self, coder: &mut impl Coder, before: u32, record: Record) -> Record {
        let told = match record {
            Record::Miss { set, .. } | Record::Full { set, .. } => set,
            Record::End => self.sets,
        };
        let gap = self.gap.code(coder, told.wrapping_sub(before).into());
        let set = u64::from(before).saturating_add(gap).min(self.sets.into()) as u32;
        if set == self.sets {
            return Record::End;
        }
        let (told_way, told_count, told_tag, told_full) = match record {
            Record::Miss { way, count, newcomer, .. } => (way, count, newcomer, false),
            Record::Full { way, times, .. } => (way, times, Tag::default(), true),
            Record::End => (0, 0, Tag::default(), false),
        };
        let full = coder.flag(&mut self.full, told_full);
        let way = tree(coder, &mut self.way, WAYS.ilog2(), told_way as u32) as usize;
        if full {
            return Record::Full {
                set,
                way,
                times: self.times.code(coder, told_count.wrapping_sub(1)).wrapping_add(1),
            };
        }
        let count = self.leaving.code(coder, told_count);
        let quotient = self.quotient.code(coder, told_tag.quotient);
        let rest = self.rest.code(coder, told_tag.rest);
        Record::Miss { set, way, count, newcomer: Tag { quotient, rest } }
    }

    /// Codes the count of a slot at a cut.
    #[inline(always)]
    pub fn live(&mut self, coder: &mut impl Coder, count: u64) -> u64 {
        self.live.code(coder, count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::coder::{RangeDecoder, RangeEncoder};
    use super::*;
    use crate::KeyFormat;
    use proptest::prelude::*;

    proptest! {
        /// What was written is read, for every key size and any numbers, and by models that stay
        /// equal.
        #[test]
        fn records_are_read_as_they_were_written(
            key_bytes in prop::sample::select(&[4u8, 8, 13, 16][..]),
            sets in prop_oneof![1u32..5, 1u32..5000],
            count_bits in 3u8..21,
            told in prop::collection::vec((any::<u32>(), 0usize..8, any::<u64>(), any::<[u8; 16]>(), any::<bool>()), 0..100),
            live in prop::collection::vec(prop_oneof![Just(0u64), any::<u64>()], 0..50),
        ) {
            let code = KeyCode::new(KeyFormat::Fixed(key_bytes), sets, 1.into());
            let mut records: Vec<Record> = told.into_iter().map(|(set, way, count, key, full)| {
                let (_, newcomer) = match key_bytes {
                    4 => code.split::<4>(key[..4].try_into().unwrap()),
                    8 => code.split::<8>(key[..8].try_into().unwrap()),
                    13 => code.split::<13>(key[..13].try_into().unwrap()),
                    _ => code.split(&key),
                };
                let (set, count) = (set % sets, count >> (count % 64) >> 1);
                if full {
                    Record::Full { set, way, times: count.max(1) }
                } else {
                    Record::Miss { set, way, count, newcomer }
                }
            }).collect();
            records.sort_by_key(|record| match record {
                Record::Miss { set, .. } | Record::Full { set, .. } => *set,
                Record::End => u32::MAX,
            });
            records.push(Record::End);
            let live: Vec<u64> = live.into_iter().map(|count| count >> 2).collect();

            let (mut encoder, mut bytes) = (RangeEncoder::default(), Vec::new());
            let (mut ours, mut theirs) = (Models::new(&code, count_bits), Models::new(&code, count_bits));
            let set_of = |record: &Record| match *record {
                Record::Miss { set, .. } | Record::Full { set, .. } => set,
                Record::End => 0,
            };
            let mut before = 0;
            encoder.write(|piece| bytes.extend_from_slice(piece), |writing| {
                for &record in &records {
                    ours.record(writing, before, record);
                    before = set_of(&record);
                }
                for &count in &live {
                    ours.live(writing, count);
                }
            });

            let (mut reader, mut before) = (RangeDecoder::new(&bytes), 0);
            for &record in &records {
                prop_assert_eq!(theirs.record(&mut reader, before, Record::End), record);
                before = set_of(&record);
            }
            for &count in &live {
                prop_assert_eq!(theirs.live(&mut reader, 0), count);
            }
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn any_bytes_are_records(bytes: Vec<u8>, key_bytes in prop::sample::select(&[4u8, 8, 13, 16][..]), sets in 1u32..5000) {
            let code = KeyCode::new(KeyFormat::Fixed(key_bytes), sets, 1.into());
            let (mut models, mut reader) = (Models::new(&code, 6), RangeDecoder::new(&bytes));
            let mut before = 0;
            for _ in 0..1000 {
                match models.record(&mut reader, before, Record::End) {
                    Record::Miss { set, way, .. } | Record::Full { set, way, .. } => {
                        prop_assert!(set < sets && set >= before && way < 8);
                        before = set;
                    }
                    Record::End => break,
                }
            }
        }
    }
}
