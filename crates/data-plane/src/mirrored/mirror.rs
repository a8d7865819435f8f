//! The receiving side: who sits where, and so whose count it is.

use alloc::vec::Vec;

use super::WAYS;
use super::code::KeyCode;
use super::coder::RangeDecoder;
use super::model::{Models, Record};
use super::shape::MirroredShape;
use super::table::{first_holder, slot_digest};
use crate::key::KeyFormat;
use crate::seed::Seed;

/// The keys that a server knows, by number, and where their counts go.
pub trait KeyBook {
    /// Returns the number of a key, new or known: below 2^32 - 8.
    fn number(&mut self, key: &[u8]) -> u32;
    /// Returns the key of a number.
    fn key(&self, number: u32) -> &[u8];
    /// Adds to the count of a key.
    fn count(&mut self, number: u32, count: u64);
}

/// The device's table is not what its messages say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device's table has the digest {device:016x}, but its messages lead to {mirror:016x}")]
pub struct OtherTable {
    /// What the device says.
    pub device: u64,
    /// What its messages lead to.
    pub mirror: u64,
}

/// Who holds a slot: below [`WAYS`], the first holder of that way, who has never been seen; else a
/// key's number and [`WAYS`].
pub(super) type Holder = u32;

/// The holders of all slots of a [`MirroredPart`](super::MirroredPart), as its messages tell them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    shape: MirroredShape,
    keys: KeyFormat,
    code: KeyCode,
    pub(super) holders: Vec<Holder>,
    pub(super) models: Models,
}

impl Mirror {
    /// The mirror of an empty table.
    pub fn new(shape: MirroredShape, keys: KeyFormat, seed: Seed) -> Self {
        let code = KeyCode::new(keys, shape.sets, seed);
        let holders = (0..shape.slots()).map(|slot| (slot % WAYS) as Holder).collect();
        Self { shape, keys, code, holders, models: Models::new(&code, shape.count_bits) }
    }

    /// Reads a message, and has every count that it tells added up; `cut` is what its end said.
    ///
    /// Any bytes can be read: that they are those that were sent is for the link to see to. A
    /// number that a message makes up ends at 2^63 - 1.
    ///
    /// # Errors
    /// If the holders of the slots are not those that the device has. The counts were added up.
    pub fn read<B: KeyBook>(&mut self, message: &[u8], cut: Option<u64>, book: &mut B) -> Result<(), OtherTable> {
        let Self { shape, keys, code, holders, models } = self;
        let key_bytes = keys.slot_bytes();
        let mut coder = RangeDecoder::new(message);
        let tell = |set: u32, holder: &mut Holder, count: u64, book: &mut B| {
            if count > 0 {
                let number = named(holder, set, code, key_bytes, book);
                book.count(number, count);
            }
        };
        let mut before = 0;
        // A message that nobody wrote may not end by itself.
        for _ in 0..=shape.most_records() {
            match models.record(&mut coder, before, Record::End) {
                Record::Miss { set, way, count, newcomer } => {
                    let holders = &mut holders[set as usize * WAYS..][..WAYS];
                    tell(set, &mut holders[way], count, book);
                    holders.copy_within(way + 1.., way);
                    let key = code.join(set, &newcomer);
                    holders[WAYS - 1] = book.number(&key[..key_bytes]) + WAYS as Holder;
                    before = set;
                }
                Record::Full { set, way, times } => {
                    let holder = &mut holders[set as usize * WAYS + way];
                    let count = u128::from(times) << shape.count_bits;
                    tell(set, holder, count.min(crate::MAX_WEIGHT.into()) as u64, book);
                    before = set;
                }
                Record::End => break,
            }
        }
        let Some(device) = cut else { return Ok(()) };
        for (slot, holder) in holders.iter_mut().enumerate() {
            let count = models.live(&mut coder, 0);
            tell((slot / WAYS) as u32, holder, count, book);
        }
        let mirror = self.digest(book);
        if mirror == device { Ok(()) } else { Err(OtherTable { device, mirror }) }
    }

    /// Returns a digest of who holds which slot.
    pub fn digest(&self, book: &impl KeyBook) -> u64 {
        let mut sum = 0u64;
        for (slot, &holder) in self.holders.iter().enumerate() {
            let tag = match holder.checked_sub(WAYS as Holder) {
                None => first_holder(holder as usize),
                Some(number) => self.code.tag_of(book.key(number)),
            };
            sum = sum.wrapping_add(slot_digest(slot, &tag));
        }
        sum
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.holders.capacity() * size_of::<Holder>() + self.models.memory() + size_of::<Self>()
    }
}

/// The number of a holder, who has one from now on.
fn named(holder: &mut Holder, set: u32, code: &KeyCode, key_bytes: usize, book: &mut impl KeyBook) -> u32 {
    if let Some(number) = holder.checked_sub(WAYS as Holder) {
        return number;
    }
    let number = book.number(&code.join(set, &first_holder(*holder as usize))[..key_bytes]);
    *holder = number + WAYS as Holder;
    number
}
