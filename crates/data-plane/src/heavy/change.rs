//! What a heavy part must be able to do for a sketch that changes in mid-stream or is merged with
//! another.

use alloc::vec::Vec;
use core::ops::Range;

use super::HeavyPart;
use crate::config::Shape;
use crate::hash::KeyHash;
use crate::table::OutOfMemory;

/// A heavy part whose keys can move to another one.
pub trait HeavyChange<const N: usize>: HeavyPart<N> + Sized {
    /// Returns an empty heavy part of another shape.
    fn resized(&self, shape: &Shape) -> Result<Self, OutOfMemory>;

    /// Empties every slot.
    fn clear(&mut self);

    /// Gives a key with its exact weight a place, as one that was taken since the last cut;
    /// `false`, and no change, if there is no room for it.
    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool;

    /// Takes over what another one of the same shape and the same hashes holds. `lost` gets every
    /// key that finds no place (of either side), with its weight and whether it is hot. Whose side
    /// a key comes from decides nothing, so that merging is commutative.
    fn merge(&mut self, other: &Self, lost: impl FnMut(&[u8; N], u64, bool));
}

/// A holder with its exact weight, and whether it is hot.
pub(super) type Holder<const N: usize> = ([u8; N], u64, bool);

/// Content of one slot of a group that two sides have filled, after the merge.
pub(super) struct Resolved<const N: usize> {
    pub slot: usize,
    pub key: [u8; N],
    /// 0 if the slot is empty from now on.
    pub count: u32,
    pub hot: bool,
    /// True if the slot changed hands.
    pub taken: bool,
}

/// Merges a group of slots that any of its keys may use: the same key adds, the largest stay (of
/// equal ones the smaller key), and whoever already holds a slot here keeps it. A weight that
/// reaches `limit` is lost to the sketch.
pub(super) fn resolve<const N: usize>(
    slots: Range<usize>,
    ours: &[(usize, Holder<N>)],
    theirs: &[Holder<N>],
    limit: u32,
    lost: &mut impl FnMut(&[u8; N], u64, bool),
) -> Vec<Resolved<N>> {
    let mut all: Vec<Holder<N>> = ours.iter().map(|&(_, holder)| holder).chain(theirs.iter().copied()).collect();
    all.sort_unstable_by_key(|&(key, ..)| key);
    all.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            // Seen on both sides: it was hit again.
            (first.1, first.2) = (first.1 + next.1, true);
        }
        same
    });
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut stay: Vec<Holder<N>> = Vec::new();
    for (key, count, hot) in all {
        match count {
            // All it has is in the sketch.
            0 => {}
            _ if count < limit.into() && stay.len() < slots.len() => stay.push((key, count, hot)),
            _ => lost(&key, count, hot),
        }
    }
    let mut resolved = Vec::new();
    for slot in slots {
        let holder = ours.iter().find(|&&(at, _)| at == slot).map(|(_, (key, ..))| *key);
        let keeps = holder.and_then(|key| stay.iter().position(|&(staying, ..)| staying == key));
        match (keeps, holder) {
            (Some(at), _) => {
                let (key, count, hot) = stay.swap_remove(at);
                resolved.push(Resolved { slot, key, count: count as u32, hot, taken: false });
            }
            (None, holder) => {
                let key = holder.unwrap_or([0; N]);
                resolved.push(Resolved { slot, key, count: 0, hot: false, taken: holder.is_some() });
            }
        }
    }
    // Newcomers take what is free, in an order that does not depend on the sides.
    stay.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let free = resolved.iter_mut().filter(|slot| slot.count == 0);
    for (slot, (key, count, hot)) in free.zip(stay) {
        *slot = Resolved { slot: slot.slot, key, count: count as u32, hot, taken: true };
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stay_and_keep_their_slots() {
        let mut lost = Vec::new();
        let ours = [(0, ([1; 4], 5, false)), (1, ([2; 4], 9, true))];
        let theirs = [([2; 4], 1, false), ([3; 4], 7, true), ([4; 4], 6, false)];
        let resolved = resolve(0..3, &ours, &theirs, 100, &mut |key, count, hot| lost.push((*key, count, hot)));
        let shown: Vec<_> = resolved.iter().map(|r| (r.slot, r.key[0], r.count, r.hot, r.taken)).collect();
        assert_eq!(shown, [(0, 3, 7, true, true), (1, 2, 10, true, false), (2, 4, 6, false, true)]);
        assert_eq!(lost, [([1; 4], 5, false)]);
    }

    #[test]
    fn a_sum_that_no_slot_holds_goes_to_the_sketch() {
        let mut lost = 0;
        let resolved = resolve(0..1, &[(0, ([1; 4], 60, false))], &[([1; 4], 50, true)], 100, &mut |_, n, _| lost += n);
        assert_eq!((lost, resolved[0].count, resolved[0].taken), (110, 0, true));
    }
}
