//! What a heavy part must be able to do for a sketch that changes in mid-stream or is merged with another.

use super::HeavyPart;
use crate::config::Shape;
use crate::hash::KeyHash;

/// A heavy part whose keys can move to another one.
pub trait HeavyChange<const N: usize>: HeavyPart<N> + Sized {
    /// An empty heavy part of another shape.
    fn resized(&self, shape: &Shape) -> Self;

    /// Gives a key with its exact weight a place, as one that was taken since the last cut; `false`, and no change, if there
    /// is no room for it.
    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool;

    /// Takes over what another one of the same shape and the same hashes holds. `lost` gets every key that finds no place
    /// (of either side), with its weight and whether it is hot. Whose side a key comes from decides nothing, so that merging
    /// is commutative.
    fn merge(&mut self, other: &Self, lost: impl FnMut(&[u8; N], u64, bool));
}
