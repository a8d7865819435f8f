//! Any heavy part: chosen when the data plane is built, told apart by one predictable branch per
//! item or batch.

use super::{
    AugmentedFilter, CHUNK, ElasticBuckets, HandedOn, HeavyChange, HeavyKind, HeavyPart, Offer, SlotChange,
    VotingFilter,
};
use crate::config::Shape;
use crate::hash::{HashSeed, KeyHash};
use crate::table::OutOfMemory;

/// Heavy part of any kind ([`HeavyKind`]) but the mirrored table.
///
/// An enum and not a type parameter further up: what runs behind the heavy part is compiled once
/// per key size, and a batch asks for the kind once per 64 items.
///
/// ```
/// use ucl_data_plane::{AnyHeavy, HeavyKind, HeavyPart, Shape};
/// let heavy = AnyHeavy::<4>::new(&Shape { heavy: HeavyKind::Elastic, ..Shape::PAPER_64KB })?;
/// assert_eq!(heavy.kind(), HeavyKind::Elastic);
/// # Ok::<(), ucl_data_plane::OutOfMemory>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AnyHeavy<const N: usize> {
    /// The paper's.
    Voting(VotingFilter<N>),
    /// Augmented Sketch's.
    Augmented(AugmentedFilter<N>),
    /// Elastic Sketch's.
    Elastic(ElasticBuckets<N>),
}

impl<const N: usize> AnyHeavy<N> {
    /// Creates the empty heavy part of a shape. A mirrored table is none of these
    /// ([`MirroredPlane`](crate::mirrored::MirroredPlane)): its place is taken by the paper's.
    pub fn new(shape: &Shape) -> Result<Self, OutOfMemory> {
        Ok(match shape.heavy {
            HeavyKind::Voting | HeavyKind::Mirrored(_) => {
                Self::Voting(VotingFilter::new(shape.slots, shape.vote_ratio)?)
            }
            HeavyKind::Augmented => Self::Augmented(AugmentedFilter::new(shape.slots)?),
            HeavyKind::Elastic => Self::Elastic(ElasticBuckets::new(shape.slots, shape.vote_ratio)?),
        })
    }
}

/// Runs the same expression for whichever heavy part it is.
macro_rules! each {
    ($self:expr, $heavy:ident => $body:expr) => {
        match $self {
            AnyHeavy::Voting($heavy) => $body,
            AnyHeavy::Augmented($heavy) => $body,
            AnyHeavy::Elastic($heavy) => $body,
        }
    };
}

impl<const N: usize> HeavyPart<N> for AnyHeavy<N> {
    #[inline(always)]
    fn kind(&self) -> HeavyKind {
        each!(self, heavy => heavy.kind())
    }

    #[inline(always)]
    fn offer(&mut self, h: KeyHash, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer {
        each!(self, heavy => heavy.offer(h, key, weight, out))
    }

    #[inline(always)]
    fn offer_chunk(
        &mut self,
        seed: &HashSeed,
        keys: &[[u8; N]],
        weight: impl Fn(usize) -> u32,
        out: &mut [HandedOn<N>; CHUNK],
    ) -> usize {
        each!(self, heavy => heavy.offer_chunk(seed, keys, weight, out))
    }

    #[inline]
    fn after_pass(&mut self, h: KeyHash, key: &[u8; N], light: u64) -> Option<HandedOn<N>> {
        each!(self, heavy => heavy.after_pass(h, key, light))
    }

    fn weight_limit(&self) -> u32 {
        each!(self, heavy => heavy.weight_limit())
    }

    #[inline]
    fn exact(&self, h: KeyHash, key: &[u8; N]) -> u64 {
        each!(self, heavy => heavy.exact(h, key))
    }

    fn entries(&self) -> impl Iterator<Item = (u32, [u8; N], u64, bool)> + '_ {
        // Three types of iterator, of which one is there.
        let (mut voting, mut augmented, mut elastic) = (None, None, None);
        match self {
            Self::Voting(heavy) => voting = Some(heavy.entries()),
            Self::Augmented(heavy) => augmented = Some(heavy.entries()),
            Self::Elastic(heavy) => elastic = Some(heavy.entries()),
        }
        let voting = voting.into_iter().flatten();
        voting.chain(augmented.into_iter().flatten()).chain(elastic.into_iter().flatten())
    }

    fn changes(&self, each: impl FnMut(SlotChange<N>)) {
        each!(self, heavy => heavy.changes(each))
    }

    fn settle(&mut self) {
        each!(self, heavy => heavy.settle());
    }

    fn memory(&self) -> usize {
        each!(self, heavy => heavy.memory())
    }
}

impl<const N: usize> HeavyChange<N> for AnyHeavy<N> {
    fn resized(&self, shape: &Shape) -> Result<Self, OutOfMemory> {
        Self::new(shape)
    }

    fn clear(&mut self) {
        each!(self, heavy => heavy.clear());
    }

    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool {
        each!(self, heavy => heavy.place(h, key, weight, hot))
    }

    fn merge(&mut self, other: &Self, lost: impl FnMut(&[u8; N], u64, bool)) {
        match (self, other) {
            (Self::Voting(ours), Self::Voting(theirs)) => ours.merge(theirs, lost),
            (Self::Augmented(ours), Self::Augmented(theirs)) => ours.merge(theirs, lost),
            (Self::Elastic(ours), Self::Elastic(theirs)) => ours.merge(theirs, lost),
            _ => unreachable!("equal configurations have the same kind of heavy part"),
        }
    }
}
