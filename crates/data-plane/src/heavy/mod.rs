//! Heavy parts: the table in front that holds hot keys exactly.

mod change;
mod voting;

pub use change::HeavyChange;
pub use voting::VotingFilter;

use crate::hash::{HashSeed, KeyHash};

/// Items that a batch offers before it touches counters and Bloom filter.
pub const CHUNK: usize = 64;

/// Why something goes on into the linear sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The item found its slot held by another key that has more votes.
    Passed = 0,
    /// The holder lost its slot without having been hit again since it took it.
    EvictedCold = 1,
    /// The holder lost its slot after having been hit again: a hot key in the paper's sense.
    EvictedHot = 2,
}

/// What the heavy part hands on: a key with the weight that now belongs to the linear sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOn<const N: usize> {
    /// The key: the item's own (passed) or the former holder's (evicted).
    pub key: [u8; N],
    /// Weight and, in the top two bits, reason: one word, for it is written for every item.
    tagged: u32,
}

impl<const N: usize> HandedOn<N> {
    /// A place for the heavy part to write to.
    pub const NOTHING: Self = Self { key: [0; N], tagged: 0 };

    /// A key with its weight, below 2^30.
    #[inline(always)]
    pub fn new(key: [u8; N], weight: u32, reason: Reason) -> Self {
        debug_assert!(weight < 1 << 30);
        Self { key, tagged: weight | (reason as u32) << 30 }
    }

    /// Its weight.
    #[inline(always)]
    pub fn weight(&self) -> u32 {
        self.tagged & ((1 << 30) - 1)
    }

    /// Why it is handed on.
    #[inline(always)]
    pub fn reason(&self) -> Reason {
        match self.tagged >> 30 {
            0 => Reason::Passed,
            1 => Reason::EvictedCold,
            _ => Reason::EvictedHot,
        }
    }
}

/// What became of an offered item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Offer {
    /// It added to the slot that its key holds.
    Absorbed = 0,
    /// Something was handed on: the item itself, or the holder whose slot it took.
    HandedOn = 1,
    /// It took an empty slot.
    Settled = 2,
}

impl Offer {
    /// How many entries of a buffer were filled by it: 1 if something was handed on. Arithmetic, for a loop without
    /// branches.
    #[inline(always)]
    fn filled(self) -> usize {
        usize::from(self as u8 & 1)
    }
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
            filled += offer.filled();
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
