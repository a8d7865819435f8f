//! Elastic Sketch's heavy part (Yang et al., SIGCOMM 2018): buckets of several keys that share
//! their votes against.
//!
//! A bucket has seven slots, each with a key and the weight of its key (`vote⁺`), and one count of
//! the weight that found no slot in it (`vote⁻`). A key in its bucket adds to its slot; otherwise
//! it takes an empty slot; otherwise it is a vote against them all. When
//! `vote_ratio · vote⁺ <= vote⁻` (8 as published) for the lightest key, that key is evicted into
//! the sketch and its slot taken; otherwise the item passes. In a single slot of the paper's filter
//! one unlucky pair of hot keys evict each other for ever; here seven hot keys share a bucket in
//! peace, and four bytes of seven slots are saved.
//!
//! # Differences from the publication
//!
//! - No flag that says whether a key may also have weight in the sketch: the control plane knows,
//!   by its reports.
//! - `vote⁻` starts at 0 after an eviction, as in the authors' code; the text has 1.
//! - Weights, not packets; and a count that comes near 2^28 is flushed into the sketch.

use alloc::vec::Vec;
use core::ops::Range;

use super::change::{Holder, resolve};
use super::word::{COUNT, DIRTY, HOT, LIMIT, TAKEN};
use super::{HandedOn, HeavyChange, HeavyKind, HeavyPart, Offer, Reason, SlotChange};
use crate::config::Shape;
use crate::hash::KeyHash;
use crate::table::{OutOfMemory, filled};

/// Slots of a bucket: with 4-byte keys, a cache line.
pub(super) const ENTRIES: usize = 7;

/// Buckets of slots, with votes against each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ElasticBuckets<const N: usize> {
    #[cfg_attr(feature = "serde", serde(with = "crate::state::flat_keys"))]
    pub(super) keys: Vec<[u8; N]>,
    /// `vote⁺` with the flags; its count is 0 only in an empty slot.
    pub(super) counts: Vec<u32>,
    /// `vote⁻` of each bucket.
    pub(super) against: Vec<u32>,
    pub(super) vote_ratio: u64,
    pub(super) limit: u32,
}

impl<const N: usize> ElasticBuckets<N> {
    /// Creates `slots` empty slots; the last bucket may have fewer than seven.
    ///
    /// ```
    /// use ucl_data_plane::{ElasticBuckets, HandedOn, HashSeed, HeavyPart, Offer};
    /// let mut heavy = ElasticBuckets::<4>::new(7, 8)?;
    /// let hash = HashSeed::new(1.into()).hash(&[0; 4]);
    /// let mut handed_on = HandedOn::NOTHING;
    /// let mut offer = |key: u8| heavy.offer(hash, &[key; 4], 1, &mut handed_on);
    /// assert!((1..=7).all(|key| offer(key) == Offer::Settled));
    /// assert!((1..=7).all(|key| offer(key) == Offer::Absorbed)); // all at home in one bucket
    /// assert!((8..=22).all(|key| offer(key) == Offer::HandedOn)); // 15 votes against it
    /// offer(23); // the 16th, and the lightest have 2
    /// assert_eq!((handed_on.key, handed_on.weight()), ([1; 4], 2));
    /// # Ok::<(), ucl_data_plane::OutOfMemory>(())
    /// ```
    pub fn new(slots: u32, vote_ratio: u32) -> Result<Self, OutOfMemory> {
        let slots = slots as usize;
        let (vote_ratio, limit) = Self::rule(vote_ratio);
        let against = filled(slots.div_ceil(ENTRIES), 0)?;
        Ok(Self { keys: filled(slots, [0; N])?, counts: filled(slots, 0)?, against, vote_ratio, limit })
    }

    /// The vote ratio, and the count at which a slot is flushed.
    pub(super) fn rule(vote_ratio: u32) -> (u64, u32) {
        let vote_ratio = u64::from(vote_ratio.max(1));
        // `vote⁻` stays below `vote_ratio · limit` and one weight: within its 32 bits.
        (vote_ratio, u64::from(LIMIT).min((1 << 31) / vote_ratio) as u32)
    }

    #[inline(always)]
    pub(super) fn slots_of(&self, bucket: usize) -> Range<usize> {
        bucket * ENTRIES..(bucket * ENTRIES + ENTRIES).min(self.keys.len())
    }

    #[inline(always)]
    pub(super) fn bucket(&self, h: KeyHash) -> usize {
        h.slot(self.against.len() as u32)
    }

    /// The slot that holds a key.
    #[inline(always)]
    fn find(&self, bucket: usize, key: &[u8; N]) -> Option<usize> {
        self.slots_of(bucket).find(|&slot| self.keys[slot] == *key && self.counts[slot] & COUNT != 0)
    }

    fn take(&mut self, slot: usize, key: &[u8; N], count: u32) {
        self.keys[slot] = *key;
        self.counts[slot] = count | TAKEN | DIRTY;
    }
}

impl<const N: usize> HeavyPart<N> for ElasticBuckets<N> {
    #[inline(always)]
    fn kind(&self) -> HeavyKind {
        HeavyKind::Elastic
    }

    #[inline]
    fn offer(&mut self, h: KeyHash, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer {
        debug_assert!(weight > 0 && weight < self.limit);
        let bucket = self.bucket(h);
        if let Some(slot) = self.find(bucket, key) {
            let count = (self.counts[slot] & COUNT) + weight;
            if count >= self.limit {
                *out = HandedOn::new(*key, count, Reason::EvictedHot);
                self.take(slot, key, 0);
                return Offer::HandedOn;
            }
            self.counts[slot] = (self.counts[slot] + weight) | HOT | DIRTY;
            return Offer::Absorbed;
        }
        // The first of the lightest: an empty slot, if there is one.
        let slots = self.slots_of(bucket);
        let lightest = slots.clone().min_by_key(|&slot| self.counts[slot] & COUNT).unwrap_or(slots.start);
        let count = self.counts[lightest] & COUNT;
        if count == 0 {
            self.take(lightest, key, weight);
            return Offer::Settled;
        }
        self.against[bucket] += weight;
        if self.vote_ratio * u64::from(count) > self.against[bucket].into() {
            *out = HandedOn::new(*key, weight, Reason::Passed);
            return Offer::HandedOn;
        }
        let reason = if self.counts[lightest] & HOT != 0 { Reason::EvictedHot } else { Reason::EvictedCold };
        *out = HandedOn::new(self.keys[lightest], count, reason);
        self.take(lightest, key, weight);
        self.against[bucket] = 0;
        Offer::HandedOn
    }

    fn weight_limit(&self) -> u32 {
        self.limit
    }

    fn exact(&self, h: KeyHash, key: &[u8; N]) -> u64 {
        self.find(self.bucket(h), key).map_or(0, |slot| (self.counts[slot] & COUNT).into())
    }

    fn entries(&self) -> impl Iterator<Item = (u32, [u8; N], u64, bool)> + '_ {
        let taken = (0..self.keys.len()).filter(|&slot| self.counts[slot] & COUNT != 0);
        let entry = |slot: usize| (self.counts[slot] & COUNT, self.counts[slot] & HOT != 0);
        taken.map(move |slot| (slot as u32, self.keys[slot], entry(slot).0.into(), entry(slot).1))
    }

    fn changes(&self, mut each: impl FnMut(SlotChange<N>)) {
        for slot in (0..self.keys.len()).filter(|&slot| self.counts[slot] & DIRTY != 0) {
            let (taken, count) = (self.counts[slot] & TAKEN != 0, (self.counts[slot] & COUNT).into());
            each(SlotChange { slot: slot as u32, key: self.keys[slot], taken, count });
        }
    }

    fn settle(&mut self) {
        self.counts.iter_mut().for_each(|count| *count &= !(TAKEN | DIRTY));
    }

    fn memory(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.counts[..]) + size_of_val(&self.against[..])
    }
}

impl<const N: usize> HeavyChange<N> for ElasticBuckets<N> {
    fn resized(&self, shape: &Shape) -> Result<Self, OutOfMemory> {
        Self::new(shape.slots, shape.vote_ratio)
    }

    fn clear(&mut self) {
        self.keys.fill([0; N]);
        self.counts.fill(0);
        self.against.fill(0);
    }

    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool {
        let free = self.slots_of(self.bucket(h)).find(|&slot| self.counts[slot] & COUNT == 0);
        let Some(slot) = free.filter(|_| weight < self.limit.into()) else { return false };
        self.take(slot, key, weight as u32);
        self.counts[slot] |= if hot { HOT } else { 0 };
        true
    }

    /// `vote⁻` is the sum of both, and of what lost its place: as if all had been votes.
    fn merge(&mut self, other: &Self, mut lost: impl FnMut(&[u8; N], u64, bool)) {
        for bucket in 0..self.against.len() {
            let slots = self.slots_of(bucket);
            let taken = |heavy: &Self| -> Vec<(usize, Holder<N>)> {
                let held = |slot: usize| {
                    let count = heavy.counts[slot];
                    (heavy.keys[slot], u64::from(count & COUNT), count & HOT != 0)
                };
                slots.clone().filter(|&slot| heavy.counts[slot] & COUNT != 0).map(|slot| (slot, held(slot))).collect()
            };
            let theirs: Vec<Holder<N>> = taken(other).into_iter().map(|(_, holder)| holder).collect();
            let mut votes = u64::from(self.against[bucket]) + u64::from(other.against[bucket]);
            if !theirs.is_empty() {
                let mut lose = |key: &[u8; N], count: u64, hot: bool| {
                    votes += count;
                    lost(key, count, hot);
                };
                for slot in resolve(slots.clone(), &taken(self), &theirs, self.limit, &mut lose) {
                    let before = self.counts[slot.slot] & TAKEN;
                    self.take(slot.slot, &slot.key, slot.count);
                    if !slot.taken {
                        self.counts[slot.slot] = self.counts[slot.slot] & !TAKEN | before;
                    }
                    self.counts[slot.slot] |= if slot.hot { HOT } else { 0 };
                }
            }
            // Whoever stays has just won: it keeps its slot until the next vote.
            let lightest = slots.map(|slot| self.counts[slot] & COUNT).min().unwrap_or(0);
            let most = (self.vote_ratio * u64::from(lightest)).saturating_sub(1);
            self.against[bucket] = votes.min(most) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;

    fn offer(heavy: &mut ElasticBuckets<4>, key: u8, weight: u32) -> (HandedOn<4>, Offer) {
        let mut out = HandedOn::NOTHING;
        let offer = heavy.offer(HashSeed::new(1.into()).hash(&[key; 4]), &[key; 4], weight, &mut out);
        (out, offer)
    }

    #[test]
    fn votes_are_shared_and_the_lightest_goes() {
        let mut heavy = ElasticBuckets::<4>::new(ENTRIES as u32, 2).unwrap();
        for key in 1..=7 {
            offer(&mut heavy, key, 10 * u32::from(key));
        }
        assert_eq!(offer(&mut heavy, 8, 19).0.reason(), Reason::Passed);
        let (handed_on, _) = offer(&mut heavy, 9, 1); // 2 · 10 <= 20
        assert_eq!((handed_on.key, handed_on.weight(), handed_on.reason()), ([1; 4], 10, Reason::EvictedCold));
        // The votes start again, and the newcomer is now the lightest.
        assert_eq!(offer(&mut heavy, 8, 1).0.reason(), Reason::Passed);
        assert_eq!(offer(&mut heavy, 8, 1).0.key, [9; 4]);
    }

    /// Key 0 is all zero bytes, as an empty slot is.
    #[test]
    fn the_zero_key_takes_an_empty_slot_like_any_other() {
        let mut heavy = ElasticBuckets::<4>::new(3, 8).unwrap();
        assert_eq!(offer(&mut heavy, 0, 1).1, Offer::Settled);
        assert_eq!(heavy.entries().collect::<Vec<_>>(), [(0, [0; 4], 1, false)]);
        assert_eq!(offer(&mut heavy, 0, 1).1, Offer::Absorbed);
    }

    #[test]
    fn a_count_near_the_limit_is_flushed_whole() {
        let mut heavy = ElasticBuckets::<4>::new(1, 8).unwrap();
        let limit = heavy.weight_limit();
        offer(&mut heavy, 5, limit - 1);
        let (handed_on, _) = offer(&mut heavy, 5, 3);
        assert_eq!((handed_on.weight(), handed_on.reason()), (limit + 2, Reason::EvictedHot));
        assert_eq!(heavy.entries().count(), 0);
        let mut changes = Vec::new();
        heavy.changes(|change| changes.push((change.taken, change.count)));
        assert_eq!(changes, [(true, 0)]);
    }

    #[test]
    fn slots_take_the_bytes_they_are_accounted_at() {
        for slots in [1, 6, 7, 8, 100] {
            assert_eq!(
                ElasticBuckets::<13>::new(slots, 8).unwrap().memory(),
                HeavyKind::Elastic.bytes(slots as usize, 13)
            );
        }
        for bytes in 50..500 {
            let slots = HeavyKind::Elastic.slots_in(bytes, 13);
            assert!(HeavyKind::Elastic.bytes(slots, 13) <= bytes && HeavyKind::Elastic.bytes(slots + 1, 13) > bytes);
        }
    }
}
