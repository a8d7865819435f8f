//! Augmented Sketch's filter (Roy, Khan and Alonso, SIGMOD 2016): keys and sketch change places by
//! their counts.
//!
//! A slot holds a key with `new` and `old`. A hit adds to `new`. A key without a slot takes an
//! empty one, or else passes into the sketch; if the sketch then estimates it above the smallest
//! `new`, the two change places: the holder goes into the sketch with `new - old`, and the key gets
//! `new = old =` its estimate. So `new` is what the key is thought to have in all and only
//! `new - old` is exact, which is all that is ever reported, evicted or added to an answer.
//!
//! # Differences from the publication
//!
//! - The filter is searched as a whole, which is why the published one has 32 slots. Here a larger
//!   one is split into parts of 32 slots, and a key's hash picks its part. Up to 32 slots it is the
//!   published filter.
//! - Our counters start again from zero at every cut, and narrow ones hold remainders. The estimate
//!   is what they hold: of the open epoch, and modulo the counters' range. Without cuts and with
//!   32-bit counters it is the published one. With cuts a key must outdo in one epoch what the
//!   lightest holder has had in all, so holders stay longer: good for hot keys that stay hot, bad
//!   for streams whose hot keys change. (On Retail it is for the better: without cuts Count-Min's
//!   estimates are inflated by collisions, and cold keys get in; see `docs/combinations.md`.)
//!   Counts are exact in any case, for the estimate never enters one.
//! - A count that comes near 2^28 is flushed into the sketch.
//!
//! An exchange needs the sketch as it is after the pass, so nothing can be deferred: batches run at
//! the speed of single inserts.

use alloc::vec::Vec;
use core::ops::Range;

use super::change::{Holder, resolve};
use super::word::{COUNT, DIRTY, HOT, LIMIT, TAKEN};
use super::{HandedOn, HeavyChange, HeavyKind, HeavyPart, Offer, Reason, SlotChange};
use crate::config::Shape;
use crate::hash::KeyHash;
use crate::table::{OutOfMemory, filled};

/// Slots that are searched for a key.
const ENTRIES: usize = 32;

/// Slots with keys that may change places with keys in the sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AugmentedFilter<const N: usize> {
    #[cfg_attr(feature = "serde", serde(with = "crate::state::flat_keys"))]
    pub(super) keys: Vec<[u8; N]>,
    /// With the flags; its count is 0 only in an empty slot.
    pub(super) new: Vec<u32>,
    pub(super) old: Vec<u32>,
}

impl<const N: usize> AugmentedFilter<N> {
    /// Creates `slots` empty slots.
    ///
    /// ```
    /// use ucl_data_plane::{AugmentedFilter, HandedOn, HashSeed, HeavyPart, Offer};
    /// let mut heavy = AugmentedFilter::<4>::new(1)?;
    /// let hash = HashSeed::new(1.into()).hash(&[7; 4]);
    /// let mut handed_on = HandedOn::NOTHING;
    /// assert_eq!(heavy.offer(hash, &[7; 4], 5, &mut handed_on), Offer::Settled);
    /// assert_eq!(heavy.offer(hash, &[8; 4], 1, &mut handed_on), Offer::HandedOn); // 8 passes into the sketch
    /// assert_eq!(heavy.after_pass(hash, &[8; 4], 5), None);
    /// let evicted = heavy.after_pass(hash, &[8; 4], 6).unwrap(); // the sketch says that 8 has more than 7
    /// assert_eq!((evicted.key, evicted.weight()), ([7; 4], 5));
    /// assert_eq!(heavy.exact(hash, &[8; 4]), 0); // all it has is in the sketch
    /// # Ok::<(), ucl_data_plane::OutOfMemory>(())
    /// ```
    pub fn new(slots: u32) -> Result<Self, OutOfMemory> {
        let slots = slots as usize;
        Ok(Self { keys: filled(slots, [0; N])?, new: filled(slots, 0)?, old: filled(slots, 0)? })
    }

    /// The slots in which a key may be.
    #[inline(always)]
    pub(super) fn part(&self, h: KeyHash) -> Range<usize> {
        let start = h.slot(self.keys.len().div_ceil(ENTRIES) as u32) * ENTRIES;
        start..(start + ENTRIES).min(self.keys.len())
    }

    /// The slot that holds a key.
    #[inline(always)]
    fn find(&self, part: Range<usize>, key: &[u8; N]) -> Option<usize> {
        part.into_iter().find(|&slot| self.keys[slot] == *key && self.new[slot] & COUNT != 0)
    }

    /// The slot with the smallest `new`, an empty one if there is any; the first of several.
    #[inline(always)]
    fn lightest(&self, part: Range<usize>) -> usize {
        let first = part.start;
        part.min_by_key(|&slot| self.new[slot] & COUNT).unwrap_or(first)
    }

    fn held(&self, slot: usize) -> u32 {
        (self.new[slot] & COUNT) - self.old[slot]
    }

    fn take(&mut self, slot: usize, key: &[u8; N], new: u32, old: u32) {
        self.keys[slot] = *key;
        self.new[slot] = new | TAKEN | DIRTY;
        self.old[slot] = old;
    }
}

impl<const N: usize> HeavyPart<N> for AugmentedFilter<N> {
    #[inline(always)]
    fn kind(&self) -> HeavyKind {
        HeavyKind::Augmented
    }

    #[inline]
    fn offer(&mut self, h: KeyHash, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer {
        debug_assert!(weight > 0 && weight < LIMIT);
        let part = self.part(h);
        if let Some(slot) = self.find(part.clone(), key) {
            if (self.new[slot] & COUNT) + weight >= LIMIT {
                *out = HandedOn::new(*key, self.held(slot) + weight, Reason::EvictedHot);
                self.take(slot, key, 0, 0);
                return Offer::HandedOn;
            }
            self.new[slot] = (self.new[slot] + weight) | HOT | DIRTY;
            return Offer::Absorbed;
        }
        let lightest = self.lightest(part);
        if self.new[lightest] & COUNT == 0 {
            self.take(lightest, key, weight, 0);
            return Offer::Settled;
        }
        *out = HandedOn::new(*key, weight, Reason::Passed);
        Offer::HandedOn
    }

    #[inline]
    fn after_pass(&mut self, h: KeyHash, key: &[u8; N], light: u64) -> Option<HandedOn<N>> {
        let slot = self.lightest(self.part(h));
        if light <= (self.new[slot] & COUNT).into() {
            return None;
        }
        let (holder, held) = (self.keys[slot], self.held(slot));
        let reason = if self.new[slot] & HOT != 0 { Reason::EvictedHot } else { Reason::EvictedCold };
        let estimate = light.min(u64::from(LIMIT - 1)) as u32;
        self.take(slot, key, estimate, estimate);
        // A holder that was exchanged in and never hit since leaves nothing behind: all it has is
        // in the sketch.
        (held > 0).then(|| HandedOn::new(holder, held, reason))
    }

    fn weight_limit(&self) -> u32 {
        LIMIT
    }

    fn exact(&self, h: KeyHash, key: &[u8; N]) -> u64 {
        self.find(self.part(h), key).map_or(0, |slot| self.held(slot).into())
    }

    fn entries(&self) -> impl Iterator<Item = (u32, [u8; N], u64, bool)> + '_ {
        let taken = (0..self.keys.len()).filter(|&slot| self.new[slot] & COUNT != 0);
        taken.map(|slot| (slot as u32, self.keys[slot], self.held(slot).into(), self.new[slot] & HOT != 0))
    }

    fn changes(&self, mut each: impl FnMut(SlotChange<N>)) {
        for slot in (0..self.keys.len()).filter(|&slot| self.new[slot] & DIRTY != 0) {
            let taken = self.new[slot] & TAKEN != 0;
            each(SlotChange { slot: slot as u32, key: self.keys[slot], taken, count: self.held(slot).into() });
        }
    }

    fn settle(&mut self) {
        self.new.iter_mut().for_each(|new| *new &= !(TAKEN | DIRTY));
    }

    fn memory(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.new[..]) + size_of_val(&self.old[..])
    }
}

impl<const N: usize> HeavyChange<N> for AugmentedFilter<N> {
    fn resized(&self, shape: &Shape) -> Result<Self, OutOfMemory> {
        Self::new(shape.slots)
    }

    fn clear(&mut self) {
        self.keys.fill([0; N]);
        self.new.fill(0);
        self.old.fill(0);
    }

    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool {
        let slot = self.lightest(self.part(h));
        let free = self.new[slot] & COUNT == 0 && weight < LIMIT.into();
        if free {
            self.take(slot, key, weight as u32, 0);
            self.new[slot] |= if hot { HOT } else { 0 };
        }
        free
    }

    /// Estimates are of one side's counters, which have been sent off: what stays is the exact
    /// part.
    fn merge(&mut self, other: &Self, mut lost: impl FnMut(&[u8; N], u64, bool)) {
        for start in (0..self.keys.len()).step_by(ENTRIES) {
            let slots = start..(start + ENTRIES).min(self.keys.len());
            let taken = |filter: &Self| -> Vec<(usize, Holder<N>)> {
                let held = |slot: usize| (filter.keys[slot], filter.held(slot).into(), filter.new[slot] & HOT != 0);
                slots.clone().filter(|&slot| filter.new[slot] & COUNT != 0).map(|slot| (slot, held(slot))).collect()
            };
            let ours = taken(self);
            let theirs: Vec<Holder<N>> = taken(other).into_iter().map(|(_, holder)| holder).collect();
            // Where only we hold something, our estimates still mean nothing to a sketch of both.
            if ours.is_empty() && theirs.is_empty() {
                continue;
            }
            for slot in resolve(slots.clone(), &ours, &theirs, LIMIT, &mut lost) {
                let before = self.new[slot.slot] & TAKEN;
                self.take(slot.slot, &slot.key, slot.count, 0);
                if !slot.taken {
                    self.new[slot.slot] = self.new[slot.slot] & !TAKEN | before;
                }
                self.new[slot.slot] |= if slot.hot { HOT } else { 0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;

    fn hash(key: &[u8; 4]) -> KeyHash {
        HashSeed::new(1.into()).hash(key)
    }

    fn offer(heavy: &mut AugmentedFilter<4>, key: [u8; 4], weight: u32) -> (HandedOn<4>, Offer) {
        let mut out = HandedOn::NOTHING;
        let offer = heavy.offer(hash(&key), &key, weight, &mut out);
        (out, offer)
    }

    /// What came in by exchange is in the sketch already: it must not be handed on a second time.
    #[test]
    fn only_new_minus_old_is_handed_on() {
        let mut heavy = AugmentedFilter::<4>::new(1).unwrap();
        offer(&mut heavy, [1; 4], 3);
        let evicted = heavy.after_pass(hash(&[2; 4]), &[2; 4], 10).unwrap();
        assert_eq!((evicted.key, evicted.weight(), evicted.reason()), ([1; 4], 3, Reason::EvictedCold));
        assert_eq!(heavy.after_pass(hash(&[3; 4]), &[3; 4], 11), None, "2 has all its weight in the sketch");
        assert_eq!(offer(&mut heavy, [3; 4], 4).1, Offer::Absorbed);
        assert_eq!(heavy.exact(hash(&[3; 4]), &[3; 4]), 4);
        let evicted = heavy.after_pass(hash(&[4; 4]), &[4; 4], 16).unwrap();
        assert_eq!((evicted.key, evicted.weight(), evicted.reason()), ([3; 4], 4, Reason::EvictedHot));
    }

    #[test]
    fn the_lightest_of_the_part_gives_way() {
        let mut heavy = AugmentedFilter::<4>::new(ENTRIES as u32).unwrap();
        for key in 0..ENTRIES as u8 {
            assert_eq!(offer(&mut heavy, [key; 4], 100 - u32::from(key)).1, Offer::Settled);
        }
        assert_eq!(heavy.after_pass(hash(&[99; 4]), &[99; 4], 69), None);
        assert_eq!(heavy.after_pass(hash(&[99; 4]), &[99; 4], 70).unwrap().key, [31; 4]);
    }

    /// A key that was exchanged in and never hit holds a slot and no weight: merging drops it,
    /// whichever side it is on.
    #[test]
    fn merging_drops_mere_estimates_of_either_side() {
        let mut one = AugmentedFilter::<4>::new(1).unwrap();
        offer(&mut one, [1; 4], 3);
        one.after_pass(hash(&[2; 4]), &[2; 4], 10);
        assert_eq!(one.entries().collect::<Vec<_>>(), [(0, [2; 4], 0, false)]);
        let mut other = AugmentedFilter::<4>::new(1).unwrap();
        other.merge(&one, |_, _, _| unreachable!("nothing is lost"));
        one.merge(&AugmentedFilter::new(1).unwrap(), |_, _, _| unreachable!("nothing is lost"));
        assert_eq!((one.entries().count(), other.entries().count()), (0, 0));
    }

    #[test]
    fn a_count_near_the_limit_is_flushed_whole() {
        let mut heavy = AugmentedFilter::<4>::new(1).unwrap();
        offer(&mut heavy, [5; 4], LIMIT - 1);
        let (handed_on, _) = offer(&mut heavy, [5; 4], 3);
        assert_eq!((handed_on.weight(), handed_on.reason()), (LIMIT + 2, Reason::EvictedHot));
        assert_eq!(heavy.entries().count(), 0);
        // An estimate beyond what a slot can hold is cut.
        offer(&mut heavy, [6; 4], 1);
        heavy.after_pass(hash(&[7; 4]), &[7; 4], u64::MAX);
        let (handed_on, _) = offer(&mut heavy, [7; 4], 2);
        assert_eq!((handed_on.key, handed_on.weight()), ([7; 4], 2));
    }
}
