//! The paper's heavy filter `HF` (Algorithm 1): one key per slot, defended by votes.
//!
//! A slot holds a key, `new` (the weight of its key since it took the slot) and `old` (the weight
//! of other keys that came by since). When `vote_ratio · new <= old` the holder is evicted. The
//! paper's ratio is 1 (its text and reference code say `<=`, its pseudocode `<`: we take `<=`); 8,
//! as in Elastic Sketch, keeps elephants in small tables.
//!
//! # Speed
//!
//! On skewed streams a good half of the items hit, and which half is not predictable, so hit and
//! miss share one path without a branch ([`core::hint::select_unpredictable`]; the optimiser turns
//! a plain `if` back into a branch). `new` and `old` sit in one word, so that the item's weight is
//! added to one or the other by one addition. Only an eviction is a branch of its own: selecting
//! *everything*, evictions included, was slower by a third (`cargo bench`).
//!
//! # Layout
//!
//! `key | new | old`, 4 bytes each for the counts, no padding. The top three bits of `new` are
//! flags: *hot* (hit again after taking the slot), *taken* and *dirty* (since the last cut). A
//! count that would come near the flags is flushed into the sketch, as an eviction. An empty slot
//! has `new = 0` and `old` at its maximum, which loses any vote.

mod change;
#[cfg(feature = "serde")]
mod restored;

use alloc::vec::Vec;
use core::hint::select_unpredictable;

use super::{CHUNK, HandedOn, HeavyKind, HeavyPart, Offer, Reason, SlotChange};
use crate::hash::{HashSeed, KeyHash};
use crate::key::words;
use crate::table::{OutOfMemory, filled};

const HOT: u64 = 1 << 31;
const TAKEN: u64 = 1 << 30;
const DIRTY: u64 = 1 << 29;
const COUNT: u64 = DIRTY - 1;
const EMPTY: u64 = 0xffff_ffff << 32;

/// Byte arrays rather than integers: alignment 1, so that a slot of a 13-byte key takes 21 bytes,
/// as accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Slot<const N: usize> {
    #[cfg_attr(feature = "serde", serde(with = "serde_bytes"))]
    key: [u8; N],
    /// `new` with its flags in the low half, `old` in the high half.
    counts: [u8; 8],
}

impl<const N: usize> Slot<N> {
    const EMPTY: Self = Self { key: [0; N], counts: EMPTY.to_le_bytes() };

    fn counts(&self) -> u64 {
        u64::from_le_bytes(self.counts)
    }
}

/// A hash table of hot keys, one key a slot, with votes against each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VotingFilter<const N: usize> {
    slots: Vec<Slot<N>>,
    rule: Rule,
}

/// When a slot changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Rule {
    vote_ratio: u64,
    limit: u64,
}

impl<const N: usize> VotingFilter<N> {
    /// Creates `slots` empty slots.
    ///
    /// ```
    /// use ucl_data_plane::{HandedOn, HashSeed, HeavyPart, Offer, VotingFilter};
    /// let mut heavy = VotingFilter::<4>::new(1, 1)?;
    /// let seed = HashSeed::new(1.into());
    /// let mut offer = |key: u32| {
    ///     let (key, mut handed_on) = (key.to_le_bytes(), HandedOn::NOTHING);
    ///     (heavy.offer(seed.hash(&key), &key, 1, &mut handed_on), handed_on)
    /// };
    /// assert_eq!(offer(7).0, Offer::Settled);
    /// assert_eq!(offer(7).0, Offer::Absorbed);
    /// let (_, handed_on) = offer(8); // 7 has two, one vote against it: 8 passes
    /// assert_eq!((handed_on.key, handed_on.weight()), (8u32.to_le_bytes(), 1));
    /// let (_, handed_on) = offer(9); // a second vote: 7 is evicted
    /// assert_eq!((handed_on.key, handed_on.weight()), (7u32.to_le_bytes(), 2));
    /// # Ok::<(), ucl_data_plane::OutOfMemory>(())
    /// ```
    pub fn new(slots: u32, vote_ratio: u32) -> Result<Self, OutOfMemory> {
        Ok(Self { slots: filled(slots as usize, Slot::EMPTY)?, rule: Rule::new(vote_ratio) })
    }
}

impl Rule {
    fn new(vote_ratio: u32) -> Self {
        // Twice the limit stays clear of the flags, and `old`, which is below `vote_ratio · new`,
        // of its 32 bits.
        let vote_ratio = u64::from(vote_ratio.max(1));
        Self { vote_ratio, limit: (1 << 28).min((1 << 31) / vote_ratio) }
    }
}

/// One item's vote. A function of the slot and the rule, not of the filter, so that a loop keeps
/// them in registers.
#[inline(always)]
fn vote<const N: usize>(slot: &mut Slot<N>, rule: Rule, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer {
    debug_assert!(weight > 0 && u64::from(weight) < rule.limit);
    let counts = slot.counts();
    let hit = words(key) == words(&slot.key);
    let weight_there = select_unpredictable(hit, u64::from(weight), u64::from(weight) << 32);
    let flags = select_unpredictable(hit, HOT | DIRTY, 0);
    let updated = counts.wrapping_add(weight_there) | flags;
    slot.counts = updated.to_le_bytes();
    *out = HandedOn::new(*key, weight, Reason::Passed);
    let count = updated & COUNT;
    // A hit cannot lose a vote that was won before it, so this needs not ask for a miss.
    if (rule.vote_ratio * count <= updated >> 32) | (count >= rule.limit) {
        return change_hands(slot, counts, key, weight, out);
    }
    if hit { Offer::Absorbed } else { Offer::HandedOn }
}

/// The item takes the slot, or its key's count has grown to the limit. `counts` is from before the
/// item.
#[inline(always)]
fn change_hands<const N: usize>(
    slot: &mut Slot<N>,
    counts: u64,
    key: &[u8; N],
    weight: u32,
    out: &mut HandedOn<N>,
) -> Offer {
    let count = (counts & COUNT) as u32;
    if slot.key == *key && count != 0 {
        slot.counts = (EMPTY | TAKEN | DIRTY).to_le_bytes();
        *out = HandedOn::new(*key, count + weight, Reason::EvictedHot);
        return Offer::HandedOn;
    }
    let reason = if counts & HOT != 0 { Reason::EvictedHot } else { Reason::EvictedCold };
    *out = HandedOn::new(slot.key, count, reason);
    *slot = Slot { key: *key, counts: (u64::from(weight) | TAKEN | DIRTY).to_le_bytes() };
    if count == 0 { Offer::Settled } else { Offer::HandedOn }
}

impl<const N: usize> HeavyPart<N> for VotingFilter<N> {
    #[inline(always)]
    fn kind(&self) -> HeavyKind {
        HeavyKind::Voting
    }

    #[inline(always)]
    fn offer(&mut self, h: KeyHash, key: &[u8; N], weight: u32, out: &mut HandedOn<N>) -> Offer {
        let index = h.slot(self.slots.len() as u32);
        vote(&mut self.slots[index], self.rule, key, weight, out)
    }

    #[inline(always)]
    fn offer_chunk(
        &mut self,
        seed: &HashSeed,
        keys: &[[u8; N]],
        weight: impl Fn(usize) -> u32,
        out: &mut [HandedOn<N>; CHUNK],
    ) -> usize {
        let slots = &mut self.slots[..];
        let rule = self.rule;
        let seed = *seed;
        // All hashes first: an eviction is a branch that is often mispredicted, and the sooner it
        // is known the less is lost.
        let mut indices = [0u32; CHUNK];
        for (index, key) in indices.iter_mut().zip(keys) {
            *index = seed.hash(key).slot(slots.len() as u32) as u32;
        }
        let mut filled = 0;
        for (i, (key, index)) in keys.iter().zip(indices).enumerate() {
            let offer = vote(&mut slots[index as usize], rule, key, weight(i), &mut out[filled]);
            filled += offer.filled();
        }
        filled
    }

    fn weight_limit(&self) -> u32 {
        self.rule.limit as u32
    }

    #[inline]
    fn exact(&self, h: KeyHash, key: &[u8; N]) -> u64 {
        let slot = &self.slots[h.slot(self.slots.len() as u32)];
        if slot.key == *key { slot.counts() & COUNT } else { 0 }
    }

    fn entries(&self) -> impl Iterator<Item = (u32, [u8; N], u64, bool)> + '_ {
        (0u32..).zip(&self.slots).filter_map(|(index, slot)| {
            let counts = slot.counts();
            (counts & COUNT != 0).then_some((index, slot.key, counts & COUNT, counts & HOT != 0))
        })
    }

    fn changes(&self, mut each: impl FnMut(SlotChange<N>)) {
        for (index, slot) in (0u32..).zip(&self.slots) {
            let counts = slot.counts();
            if counts & DIRTY != 0 {
                let taken = counts & TAKEN != 0;
                each(SlotChange { slot: index, key: slot.key, taken, count: counts & COUNT });
            }
        }
    }

    fn settle(&mut self) {
        for slot in &mut self.slots {
            slot.counts = (slot.counts() & !(TAKEN | DIRTY)).to_le_bytes();
        }
    }

    fn memory(&self) -> usize {
        self.slots.len() * size_of::<Slot<N>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(heavy: &mut VotingFilter<4>, key: u32, weight: u32) -> (HandedOn<4>, Offer) {
        let key = key.to_le_bytes();
        let mut out = HandedOn::NOTHING;
        let offer = heavy.offer(HashSeed::new(1.into()).hash(&key), &key, weight, &mut out);
        (out, offer)
    }

    #[test]
    fn the_vote_ratio_defends_the_holder() {
        let mut heavy = VotingFilter::<4>::new(1, 8).unwrap();
        offer(&mut heavy, 1, 2);
        for _ in 0..15 {
            assert_eq!(offer(&mut heavy, 2, 1).0.reason(), Reason::Passed);
        }
        let (handed_on, _) = offer(&mut heavy, 3, 1); // the 16th vote
        assert_eq!(
            (handed_on.key, handed_on.weight(), handed_on.reason()),
            (1u32.to_le_bytes(), 2, Reason::EvictedCold)
        );
    }

    /// Key 0 is all zero bytes, as an empty slot is: it must not count as a hit there, nor be hot
    /// at once.
    #[test]
    fn the_zero_key_takes_an_empty_slot_like_any_other() {
        let mut heavy = VotingFilter::<4>::new(1, 1).unwrap();
        assert_eq!(offer(&mut heavy, 0, 1).1, Offer::Settled);
        assert_eq!(heavy.entries().next(), Some((0, [0; 4], 1, false)));
    }

    #[test]
    fn a_count_near_the_limit_is_flushed_whole() {
        let mut heavy = VotingFilter::<4>::new(1, 1).unwrap();
        let limit = heavy.weight_limit();
        offer(&mut heavy, 5, limit - 1);
        let (handed_on, _) = offer(&mut heavy, 5, 3);
        assert_eq!((handed_on.weight(), handed_on.reason()), (limit + 2, Reason::EvictedHot));
        assert_eq!(heavy.entries().count(), 0);
        let mut changes = Vec::new();
        heavy.changes(|c| changes.push((c.taken, c.count)));
        assert_eq!(changes, [(true, 0)]);
    }

    #[test]
    fn changes_are_what_happened_since_the_cut() {
        let mut heavy = VotingFilter::<4>::new(1, 2).unwrap();
        offer(&mut heavy, 1, 5);
        heavy.settle();
        let changes = |heavy: &VotingFilter<4>| {
            let mut all = Vec::new();
            heavy.changes(|c| all.push((c.key, c.taken, c.count)));
            all
        };
        assert_eq!(changes(&heavy), []);
        offer(&mut heavy, 2, 1); // a vote alone changes no count
        assert_eq!(changes(&heavy), []);
        offer(&mut heavy, 1, 1);
        assert_eq!(changes(&heavy), [(1u32.to_le_bytes(), false, 6)]);
        offer(&mut heavy, 2, 11);
        assert_eq!(changes(&heavy), [(2u32.to_le_bytes(), true, 11)]);
    }

    #[test]
    fn slots_take_the_bytes_they_are_accounted_at() {
        assert_eq!(VotingFilter::<4>::new(100, 1).unwrap().memory(), 1200);
        assert_eq!(VotingFilter::<13>::new(100, 1).unwrap().memory(), 2100);
    }
}
