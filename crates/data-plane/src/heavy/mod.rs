//! Heavy parts: the table in front that holds hot keys exactly.
//!
//! | kind | a key's place | who gives way | needs |
//! |---|---|---|---|
//! | [`VotingFilter`], the paper's | one slot | its holder, when the votes against it reach `vote_ratio` times its own | |
//! | [`AugmentedFilter`] (Roy, Khan and Alonso 2016) | any of 32 slots | the lightest, for a key whose estimate is larger | the sketch's estimate |
//! | [`ElasticBuckets`] (Yang et al. 2018) | any of 7 slots | the lightest, when the bucket's votes reach `vote_ratio` times its own | |
//!
//! All keep the same promise: what they hold of a key is exact, what they hand on belongs to the
//! linear sketch, and together that is all there was. So the control plane and its decoders work
//! behind any of them unchanged.

mod any;
mod augmented;
mod change;
mod elastic;
#[cfg(feature = "serde")]
mod restored;
mod voting;

pub use any::AnyHeavy;
pub use augmented::AugmentedFilter;
pub use change::HeavyChange;
pub use elastic::ElasticBuckets;
pub use voting::VotingFilter;

use core::fmt;
use core::str::FromStr;

use crate::hash::{HashSeed, KeyHash};
use crate::key::KeyFormat;
use crate::mirrored::MirroredShape;

/// Heavy parts by name.
///
/// ```
/// use ucl_data_plane::HeavyKind;
/// assert_eq!("elastic".parse(), Ok(HeavyKind::Elastic));
/// assert_eq!(HeavyKind::Voting.bytes(100, 4), 1200);
/// assert_eq!(HeavyKind::Elastic.slots_in(1200, 4), 140); // 8 bytes a slot, and 4 for every 7 slots
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum HeavyKind {
    /// The paper's: [`VotingFilter`].
    #[default]
    Voting,
    /// Augmented Sketch's: [`AugmentedFilter`].
    Augmented,
    /// Elastic Sketch's: [`ElasticBuckets`].
    Elastic,
    /// A mirrored table, whose evictions go up the link
    /// ([`MirroredPlane`](crate::mirrored::MirroredPlane)).
    Mirrored(MirroredShape),
}

impl HeavyKind {
    /// All kinds that stand in front of a sketch, which takes what they evict.
    pub const ALL: [Self; 3] = [Self::Voting, Self::Augmented, Self::Elastic];

    /// Returns the name in settings and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Voting => "voting",
            Self::Augmented => "augmented",
            Self::Elastic => "elastic",
            Self::Mirrored(_) => "mirrored",
        }
    }

    /// Returns true if every key that passed is looked up in the sketch
    /// ([`HeavyPart::after_pass`]). Then nothing can be deferred.
    #[inline(always)]
    pub fn sees_sketch(self) -> bool {
        self == Self::Augmented
    }

    /// Returns the number of bytes that `slots` slots take, for keys of `key_bytes` bytes.
    pub fn bytes(self, slots: usize, key_bytes: usize) -> usize {
        match self {
            Self::Voting | Self::Augmented => slots * (key_bytes + 8),
            Self::Elastic => slots * (key_bytes + 4) + slots.div_ceil(elastic::ENTRIES) * 4,
            // Its shape knows more than the size of a key: see `Shape::memory`.
            Self::Mirrored(table) => table.memory(KeyFormat::Fixed(key_bytes as u8)),
        }
    }

    /// Returns the largest number of slots that fit into `bytes`.
    pub fn slots_in(self, bytes: usize, key_bytes: usize) -> usize {
        match self {
            Self::Voting | Self::Augmented => bytes / (key_bytes + 8),
            Self::Mirrored(_) => {
                MirroredShape::within(bytes, KeyFormat::Fixed(key_bytes as u8)).map_or(0, |table| table.slots())
            }
            Self::Elastic => {
                let bucket = self.bytes(elastic::ENTRIES, key_bytes);
                let rest = (bytes % bucket).saturating_sub(4) / (key_bytes + 4);
                bytes / bucket * elastic::ENTRIES + rest
            }
        }
    }
}

impl fmt::Display for HeavyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of a text that is not the name of a heavy part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the heavy parts are voting, augmented and elastic")]
pub struct UnknownHeavy;

impl FromStr for HeavyKind {
    type Err = UnknownHeavy;

    fn from_str(name: &str) -> Result<Self, UnknownHeavy> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownHeavy)
    }
}

/// The word of a slot in [`AugmentedFilter`] and [`ElasticBuckets`]: a count, and three flags above
/// it.
mod word {
    /// Hit again after taking the slot.
    pub const HOT: u32 = 1 << 31;
    /// Taken, or emptied, since the last cut.
    pub const TAKEN: u32 = 1 << 30;
    /// Changed since the last cut.
    pub const DIRTY: u32 = 1 << 29;
    /// The count.
    pub const COUNT: u32 = DIRTY - 1;
    /// A count that would reach this is flushed into the sketch; twice as much is clear of the
    /// flags.
    pub const LIMIT: u32 = 1 << 28;
}

/// Items that a batch offers before it touches counters and Bloom filter.
pub const CHUNK: usize = 64;

/// Reason why something goes on into the linear sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The item found its slot held by another key that has more votes.
    Passed = 0,
    /// The holder lost its slot without having been hit again since it took it.
    EvictedCold = 1,
    /// The holder lost its slot after having been hit again: a hot key in the paper's sense.
    EvictedHot = 2,
}

/// Key that the heavy part hands on, with the weight that now belongs to the linear sketch.
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

    /// Returns the weight of the key.
    #[inline(always)]
    pub fn weight(&self) -> u32 {
        self.tagged & ((1 << 30) - 1)
    }

    /// Returns the reason why the key is handed on.
    #[inline(always)]
    pub fn reason(&self) -> Reason {
        match self.tagged >> 30 {
            0 => Reason::Passed,
            1 => Reason::EvictedCold,
            _ => Reason::EvictedHot,
        }
    }
}

/// Result of offering an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Offer {
    /// The item added to the slot that its key holds.
    Absorbed = 0,
    /// Something was handed on: the item itself, or the holder whose slot it took.
    HandedOn = 1,
    /// The item took an empty slot.
    Settled = 2,
}

impl Offer {
    /// Returns the number of entries of a buffer that were filled by it: 1 if something was handed
    /// on. Arithmetic, for a loop without branches.
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
    /// Holder of the slot; the next field tells whether it is a new one (the former holder, if any,
    /// was then evicted).
    pub key: [u8; N],
    /// True if the slot was taken or emptied since the last cut.
    pub taken: bool,
    /// The exact weight held; 0 when the slot is empty, or its holder was exchanged in and has not
    /// been hit since.
    pub count: u64,
}

/// A table of hot keys in front of the linear sketch.
pub trait HeavyPart<const N: usize> {
    /// Returns the kind of the heavy part.
    fn kind(&self) -> HeavyKind;
    /// Offers one item. `out` may be written to in any case, and holds what is handed on if the
    /// answer is [`Offer::HandedOn`]: so the caller can lay out a buffer without a branch.
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
    /// A key passed and was counted; the sketch itself now estimates it at `light`. If the key
    /// takes a slot for it, the former holder's exact weight, if any, is handed on. Asked only of
    /// kinds that [see the sketch](HeavyKind::sees_sketch).
    fn after_pass(&mut self, h: KeyHash, key: &[u8; N], light: u64) -> Option<HandedOn<N>> {
        let _ = (h, key, light);
        None
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
