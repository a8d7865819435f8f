//! Heavy parts: the table in front that holds hot keys exactly.

mod voting;

pub use voting::VotingFilter;

use crate::hash::{HashSeed, KeyHash};

/// Items that a batch offers before it touches counters and Bloom filter.
pub const CHUNK: usize = 64;

/// Why something goes on into the linear sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The item found its slot held by another key that has more votes.
    Passed,
    /// The holder lost its slot without having been hit again since it took it.
    EvictedCold,
    /// The holder lost its slot after having been hit again: a hot key in the paper's sense.
    EvictedHot,
}

/// What the heavy part hands on: a key with the weight that now belongs to the linear sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOn<const N: usize> {
    /// The key: the item's own (passed) or the former holder's (evicted).
    pub key: [u8; N],
    /// Its weight.
    pub weight: u32,
    /// Why it is handed on.
    pub reason: Reason,
}

impl<const N: usize> HandedOn<N> {
    /// A place for the heavy part to write to.
    pub const NOTHING: Self = Self { key: [0; N], weight: 0, reason: Reason::Passed };
}

/// What became of an offered item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It added to the slot that its key holds.
    Absorbed,
    /// It took an empty slot.
    Settled,
    /// Something was handed on: the item itself, or the holder whose slot it took.
    HandedOn,
}

/// A slot that changed since the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotChange<const N: usize> {
    /// The slot's number.
    pub slot: u32,
    /// Its holder, and whether it took the slot since the last cut (the former holder, if any, was then evicted).
    pub key: [u8; N],
    /// Whether the slot was taken or emptied since the last cut.
    pub taken: bool,
    /// The exact weight held; 0 when the slot is empty.
    pub count: u64,
}

/// A table of hot keys in front of the linear sketch.
pub trait HeavyPart<const N: usize> {
    /// Offers one item. `out` may be written to in any case, and holds what is handed on if the answer is
    /// [`Offer::HandedOn`]: so the caller can lay out a buffer without a branch.
    fn offer(&mut self, h: KeyHash, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer;
    /// Offers up to [`CHUNK`] items in order; how many entries of `out` were filled.
    fn offer_chunk(
        &mut self,
        seed: &HashSeed,
        keys: &[[u8; N]],
        weight: impl Fn(usize) -> u32,
        out: &mut [HandedOn<N>; CHUNK],
    ) -> usize {
        let mut filled = 0;
        for (i, key) in keys.iter().enumerate() {
            // Written always, kept only if something was handed on: no branch on a coin toss.
            let offer = self.offer(seed.hash(key), key, weight(i), &mut out[filled]);
            filled += usize::from(offer == Offer::HandedOn);
        }
        filled
    }
    /// The largest weight [`HeavyPart::offer`] takes, exclusive.
    fn weight_limit(&self) -> u32;
    /// The weight held exactly for a key, 0 if it holds no slot.
    fn exact(&self, h: KeyHash, key: &[u8; N]) -> u64;
    /// All held keys with their exact weights and whether they are hot.
    fn entries(&self) -> impl Iterator<Item = (u32, [u8; N], u64, bool)> + '_;
    /// Calls `each` with every slot that changed since the last [`HeavyPart::settle`].
    fn changes(&self, each: impl FnMut(SlotChange<N>));
    /// A cut was made: no slot has changed since.
    fn settle(&mut self);
    /// Bytes held.
    fn memory(&self) -> usize;
}
