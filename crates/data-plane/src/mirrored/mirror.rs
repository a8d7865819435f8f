//! The receiving side: who sits where, and so whose count it is.

use alloc::vec;
use alloc::vec::Vec;

use super::WAYS;
use super::code::{KeyCode, Tag};
use super::coder::RangeDecoder;
use super::model::{Models, Record};
use super::shape::MirroredShape;
use super::table::first_holder;
use crate::seed::Seed;

/// The holders of all slots of a [`MirroredPart`](super::MirroredPart), as its messages tell them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    shape: MirroredShape,
    code: KeyCode,
    key_bytes: usize,
    holders: Vec<Tag>,
    models: Models,
}

impl Mirror {
    /// The mirror of an empty table.
    pub fn new(shape: MirroredShape, key_bytes: usize, seed: Seed) -> Self {
        let code = KeyCode::new(key_bytes, shape.sets, seed);
        let slots = shape.sets as usize * WAYS;
        let mut holders = vec![Tag::default(); slots];
        for (slot, holder) in holders.iter_mut().enumerate() {
            *holder = first_holder(slot % WAYS);
        }
        Self { shape, code, key_bytes, holders, models: Models::new(&code, shape.count_bits) }
    }

    /// Reads a message and hands on every key and count that it tells; `cut` is what its end said.
    ///
    /// Any bytes can be read: that they are those that were sent is for the link to see to.
    pub fn read(&mut self, message: &[u8], cut: bool, mut counted: impl FnMut(&[u8], u64)) {
        let Self { shape, code, key_bytes, holders, models } = self;
        let mut coder = RangeDecoder::new(message);
        let mut tell = |set: u32, tag: &Tag, count: u64| {
            if count > 0 {
                counted(&code.join(set, tag)[..*key_bytes], count);
            }
        };
        let mut before = 0;
        // A message that nobody wrote may not end: it has at most a record for every bit.
        for _ in 0..=8 * message.len() + 64 {
            match models.record(&mut coder, before, Record::End) {
                Record::Miss { set, way, count, newcomer } => {
                    let holders = &mut holders[set as usize * WAYS..][..WAYS];
                    tell(set, &holders[way], count);
                    holders.copy_within(way + 1.., way);
                    holders[WAYS - 1] = newcomer;
                    before = set;
                }
                Record::Full { set, way, times } => {
                    tell(set, &holders[set as usize * WAYS + way], times.wrapping_shl(shape.count_bits));
                    before = set;
                }
                Record::End => break,
            }
        }
        if cut {
            for (slot, holder) in holders.iter().enumerate() {
                let count = models.live(&mut coder, 0);
                tell((slot / WAYS) as u32, holder, count);
            }
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.holders.capacity() * size_of::<Tag>() + self.models.memory() + size_of::<Self>()
    }
}
