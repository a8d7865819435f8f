//! The mirrored heavy part: an exact count of every key, for as long as the link takes what is
//! evicted.
//!
//! From the naive idea to this one:
//!
//! 1. *A hash map of counts* is exact, and has an entry for every key: too much for a device.
//! 2. *A flow cache* has a fixed table. A new key in a full place sends the old one's key and count
//!    up the link. Exact, at the price of a whole key per miss. (NetFlow and IPFIX exporters do
//!    this.)
//! 3. *A compact cache* does not store what a key's place already says (`code.rs`), and counts in a
//!    few bits: a count that is full is sent, and starts again. The same memory holds twice the
//!    keys.
//! 4. *A mirrored cache* sends who *came*, not who left. The control plane replays every change and
//!    so knows who sits where ([`Mirror`]): the victim's key costs nothing. Changes are collected,
//!    sorted by set, and entropy-coded by models that adapt (`model.rs`).
//!
//! No slot changes its holder without a record of it. At a cut the counts of all slots are sent as
//! well and start again from 0; then the control plane has every count exactly.
//!
//! # Who has to leave
//!
//! A slot has two bits that count its hits, up to three. A newcomer takes the slot with the fewest
//! hits, and what that slot had is taken off all slots of the set: hits grow old only as newcomers
//! come. Among slots with as few hits, [`Policy`] decides.
//!
//! ```
//! use std::collections::HashMap;
//! use ucl_data_plane::KeyFormat;
//! use ucl_data_plane::mirrored::{KeyBook, Mirror, MirroredPart, MirroredShape, Pieces};
//!
//! /// The keys that the server knows, and their counts.
//! #[derive(Default)]
//! struct Counts {
//!     numbers: HashMap<Vec<u8>, u32>,
//!     counts: Vec<(Vec<u8>, u64)>,
//! }
//!
//! impl KeyBook for Counts {
//!     fn number(&mut self, key: &[u8]) -> u32 {
//!         *self.numbers.entry(key.to_vec()).or_insert_with(|| {
//!             self.counts.push((key.to_vec(), 0));
//!             self.counts.len() as u32 - 1
//!         })
//!     }
//!     fn key(&self, number: u32) -> &[u8] {
//!         &self.counts[number as usize].0
//!     }
//!     fn count(&mut self, number: u32, count: u64) {
//!         self.counts[number as usize].1 += count;
//!     }
//! }
//!
//! let keys = KeyFormat::Fixed(4);
//! let shape = MirroredShape::within(16_384, keys).expect("16KB are enough");
//! let mut device = MirroredPart::<4>::new(shape, keys, 7.into());
//! let mut server = Mirror::new(shape, keys, 7.into());
//! let (mut messages, mut open) = (Vec::new(), Vec::new());
//! let mut link = |piece: Pieces<'_>| match piece {
//!     Pieces::Bytes(bytes) => open.extend_from_slice(bytes),
//!     Pieces::End { cut } => messages.push((std::mem::take(&mut open), cut)),
//! };
//! let key = |i: u64| (i * i % 20_011) as u32;
//! for i in 0..100_000 {
//!     device.insert(&key(i).to_le_bytes(), 1, &mut link);
//! }
//! device.cut(&mut link);
//!
//! let mut counts = Counts::default();
//! for (message, cut) in &messages {
//!     server.read(message, *cut, &mut counts)?;
//! }
//! assert_eq!(counts.counts.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
//! let four = counts.number(&4u32.to_le_bytes());
//! assert_eq!(counts.counts[four as usize].1, (0..100_000).filter(|&i| key(i) == 4).count() as u64);
//! # Ok::<(), ucl_data_plane::mirrored::OtherTable>(())
//! ```

mod allowance;
mod batch;
mod budget;
mod code;
mod coder;
mod mirror;
mod model;
mod name_price;
mod names;
mod plane;
mod records;
mod shape;
#[cfg(feature = "serde")]
mod state;
mod table;

use alloc::vec;
use alloc::vec::Vec;

use batch::{Batch, RecordLayout, Waiting};
use code::{KeyCode, Tag};
use coder::RangeEncoder;
use model::{Models, Record};
use records::Records;
use table::{Slot, SlotLayout, Table};

pub use allowance::Allowance;
pub use budget::BudgetPlane;
pub(crate) use budget::{FIXED_BYTES as BUDGET_FIXED_BYTES, Names};
pub use coder::CHUNK;
pub use mirror::{KeyBook, Mirror, OtherTable};
pub use name_price::index_of;
pub(crate) use plane::FIXED_BYTES;
pub use plane::MirroredPlane;
pub use shape::{MirroredShape, Policy};
#[cfg(feature = "serde")]
pub use state::{StoredBudgetPlane, StoredMirror, StoredPlane};

use crate::Memory;
use crate::key::KeyFormat;
use crate::seed::Seed;

/// Slots of a set.
pub const WAYS: usize = 8;

/// Items of a batch that are looked for before the first of them is counted.
///
/// Placing a key is a chain of multiplications, finding it a chain of loads, and what hits nobody
/// can foresee. Item by item, a processor has too few of them under way to hide that; in three
/// loops, items overlap. (With one loop, all of counting and sending took 1.1 times as long; four
/// loops, or 64 items, gained nothing.)
const AHEAD: usize = 32;

/// What goes up the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces<'a> {
    /// The next bytes of a message, at most [`CHUNK`].
    Bytes(&'a [u8]),
    /// The message ends here.
    End {
        /// A digest of who holds which slot, if the message has the counts of all slots.
        cut: Option<u64>,
    },
}

/// The table on the device, with what waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MirroredPart<const N: usize> {
    #[cfg_attr(feature = "serde", serde(skip))]
    shape: MirroredShape,
    #[cfg_attr(feature = "serde", serde(skip))]
    code: KeyCode,
    #[cfg_attr(feature = "serde", serde(skip))]
    layout: SlotLayout,
    table: Table,
    /// For each set, how many of its holders came in this batch; two to the byte.
    #[cfg_attr(feature = "serde", serde(skip))]
    fresh: Vec<u8>,
    batch: Batch,
    models: Models,
    // Between two messages it has nothing to remember.
    #[cfg_attr(feature = "serde", serde(skip))]
    encoder: RangeEncoder,
}

impl<const N: usize> MirroredPart<N> {
    /// An empty table for keys of a format whose slots have `N` bytes.
    pub fn new(shape: MirroredShape, keys: KeyFormat, seed: Seed) -> Self {
        debug_assert_eq!(keys.slot_bytes(), N);
        let code = KeyCode::new(keys, shape.sets, seed);
        let layout = shape.layout(&code);
        Self {
            shape,
            code,
            layout,
            table: Table::new(layout, shape.sets),
            fresh: vec![0; shape.sets.div_ceil(2) as usize],
            batch: Batch::new(Self::records(&shape, &layout), shape.buffer as usize),
            models: Models::new(&code, shape.count_bits),
            encoder: RangeEncoder::default(),
        }
    }

    fn records(shape: &MirroredShape, layout: &SlotLayout) -> RecordLayout {
        let tag_bits = layout.quotient_bits + layout.rest_bits;
        RecordLayout::new(shape.sets, shape.count_bits.into(), tag_bits, shape.buffer as usize)
    }

    /// Its sizes.
    pub fn shape(&self) -> &MirroredShape {
        &self.shape
    }

    /// Bytes held, by part: everything that counting and sending need.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("slots", self.table.memory() + self.fresh.len());
        memory.add("buffer", self.batch.memory());
        memory.add("models", self.models.memory());
        memory.add("coder", size_of::<Self>() - size_of::<Models>());
        memory
    }

    /// Counts an item; returns true if its key had no slot and took one.
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], weight: u64, out: &mut impl FnMut(Pieces<'_>)) -> bool {
        let (set, tag) = self.code.split(key);
        if let Some(way) = self.table.find::<N, false>(set, &tag) {
            let times = self.table.hit::<false>(set, way, weight);
            if times > 0 {
                self.full(set, way, times, out);
            }
            false
        } else {
            self.miss(set, tag, weight, out);
            true
        }
    }

    /// [`MirroredPart::insert`] for many items; `weight` says what each of them weighs.
    #[inline(always)]
    pub fn insert_batch(&mut self, keys: &[[u8; N]], weight: impl Fn(usize) -> u64, out: &mut impl FnMut(Pieces<'_>)) {
        if self.layout.is_usual() {
            self.insert_ahead::<true>(keys, weight, out);
        } else {
            self.insert_ahead::<false>(keys, weight, out);
        }
    }

    #[inline(always)]
    fn insert_ahead<const USUAL: bool>(
        &mut self,
        keys: &[[u8; N]],
        weight: impl Fn(usize) -> u64,
        out: &mut impl FnMut(Pieces<'_>),
    ) {
        let (mut sets, mut ways, mut quotients) = ([0; AHEAD], [0; AHEAD], [0; AHEAD]);
        for (keys, first) in keys.chunks(AHEAD).zip((0..).step_by(AHEAD)) {
            for ((key, to_set), to_quotient) in keys.iter().zip(&mut sets).zip(&mut quotients) {
                let (set, tag) = self.code.split(key);
                (*to_set, *to_quotient) = (set, tag.quotient);
            }
            for (((key, to), &set), &quotient) in keys.iter().zip(&mut ways).zip(&sets).zip(&quotients) {
                let tag = Tag { quotient, rest: code::rest(key) };
                *to = self.table.look::<N, USUAL>(set, &tag) as u32;
            }
            for (at, key) in keys.iter().enumerate() {
                let (set, way, weight) = (sets[at], ways[at] as usize, weight(first + at));
                let tag = Tag { quotient: quotients[at], rest: code::rest(key) };
                let way = if way > WAYS { self.table.find::<N, USUAL>(set, &tag).unwrap_or(WAYS) } else { way };
                if way < WAYS {
                    let times = self.table.hit::<USUAL>(set, way, weight);
                    if times > 0 {
                        self.full(set, way, times, out);
                    }
                } else {
                    self.miss(set, tag, weight, out);
                    // What was read of this set is no longer true. (Of all items, also those
                    // before: a loop of one length needs no foresight.)
                    for (way, other) in ways.iter_mut().zip(&sets) {
                        *way |= if *other == set { u32::MAX } else { 0 };
                    }
                }
            }
        }
    }

    /// A newcomer takes a place; returns the count of its former holder, which the record tells.
    #[inline(never)]
    fn miss(&mut self, set: u32, tag: Tag, weight: u64, out: &mut impl FnMut(Pieces<'_>)) -> u64 {
        if !self.batch.has_room() {
            self.flush(out);
        }
        let standings = self.table.standings(set);
        let way = self.shape.policy.victim(&standings);
        let leaving = standings[way];
        let fresh = self.fresh(set);
        if way >= WAYS - fresh {
            self.batch.keep(self.layout.pack(&self.table.slot(set, way).tag));
        } else {
            self.set_fresh(set, fresh + 1);
        }
        self.batch.push(set, Waiting::Miss { way, count: leaving.count });
        if leaving.hits > 0 {
            self.table.age(set, leaving.hits);
        }
        let count = weight & ((1 << self.shape.count_bits) - 1);
        self.table.replace(set, way, &Slot { tag, count, hits: self.shape.policy.newcomer_hits() });
        let times = weight >> self.shape.count_bits;
        if times > 0 {
            self.full(set, WAYS - 1, times, out);
        }
        leaving.count
    }

    /// A count was filled.
    #[inline(never)]
    fn full(&mut self, set: u32, way: usize, times: u64, out: &mut impl FnMut(Pieces<'_>)) {
        let waiting = Waiting::Full { way, times };
        if !self.batch.holds(&waiting) {
            // Too much for a record that waits: a message of its own, after all that came before
            // it.
            self.flush(out);
            return self.send(false, Some(Record::Full { set, way, times }), out);
        }
        if !self.batch.has_room() {
            self.flush(out);
        }
        self.batch.push(set, waiting);
    }

    fn fresh(&self, set: u32) -> usize {
        usize::from(self.fresh[set as usize / 2] >> (set % 2 * 4) & 15)
    }

    fn set_fresh(&mut self, set: u32, fresh: usize) {
        let (byte, shift) = (&mut self.fresh[set as usize / 2], set % 2 * 4);
        *byte = *byte & !(15 << shift) | (fresh as u8) << shift;
    }

    /// Sends what waits, without waiting for the buffer to fill.
    pub fn flush(&mut self, out: &mut impl FnMut(Pieces<'_>)) {
        if !self.batch.is_empty() {
            self.send(false, None, out);
        }
    }

    /// Sends what waits and the counts of all slots, which start again from 0.
    pub fn cut(&mut self, out: &mut impl FnMut(Pieces<'_>)) {
        self.send(true, None, out);
    }

    /// Sends what waits, then a record that could not wait, then the counts.
    #[inline(never)]
    fn send(&mut self, cut: bool, alone: Option<Record>, out: &mut impl FnMut(Pieces<'_>)) {
        let Self { table, batch, models, layout, encoder, .. } = self;
        batch.sort();
        encoder.write(
            |bytes| out(Pieces::Bytes(bytes)),
            |coder| {
                let mut records = Records::new(table, layout, batch, alone);
                let mut before = 0;
                loop {
                    let record = records.next();
                    models.record(coder, before, record);
                    match record {
                        Record::Miss { set, .. } | Record::Full { set, .. } => before = set,
                        Record::End => break,
                    }
                }
                if cut {
                    for set in 0..table.sets() {
                        for count in table.take_counts(set) {
                            models.live(coder, count);
                        }
                    }
                }
            },
        );
        let digest = cut.then(|| table.digest());
        out(Pieces::End { cut: digest });
        self.batch.clear();
        self.fresh.fill(0);
    }
}

#[cfg(test)]
mod tests;
