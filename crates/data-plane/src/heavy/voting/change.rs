//! Keys of a voting filter that move, and two filters that become one.

use super::{COUNT, DIRTY, EMPTY, HOT, Slot, TAKEN, VotingFilter};
use crate::config::Shape;
use crate::hash::KeyHash;
use crate::heavy::HeavyChange;
use crate::table::OutOfMemory;

impl<const N: usize> HeavyChange<N> for VotingFilter<N> {
    fn resized(&self, shape: &Shape) -> Result<Self, OutOfMemory> {
        Self::new(shape.slots, shape.vote_ratio)
    }

    fn clear(&mut self) {
        self.slots.fill(Slot::EMPTY);
    }

    fn place(&mut self, h: KeyHash, key: &[u8; N], weight: u64, hot: bool) -> bool {
        let index = h.slot(self.slots.len() as u32);
        let slot = &mut self.slots[index];
        let free = slot.counts() & COUNT == 0 && weight < self.rule.limit;
        if free {
            let hot = if hot { HOT } else { 0 };
            *slot = Slot { key: *key, counts: (weight | hot | TAKEN | DIRTY).to_le_bytes() };
        }
        free
    }

    /// The same key adds; otherwise the larger stays (of equal ones the larger key), and `old` is
    /// the sum of both and of what lost: as if all had been votes. The one that stays has just won,
    /// so it keeps the slot until the next vote.
    fn merge(&mut self, other: &Self, mut lost: impl FnMut(&[u8; N], u64, bool)) {
        let rule = self.rule;
        for (ours, theirs) in self.slots.iter_mut().zip(&other.slots) {
            let (a, b) = (ours.counts(), theirs.counts());
            let (new_a, new_b) = (a & COUNT, b & COUNT);
            if new_b == 0 {
                continue;
            }
            if new_a == 0 {
                *ours = Slot { key: theirs.key, counts: (b | TAKEN | DIRTY).to_le_bytes() };
                continue;
            }
            let votes = (a >> 32) + (b >> 32);
            // What wins its slot again is dirty; it was taken only if it was not ours before.
            let mut stay = |slot: &mut Slot<N>, key: [u8; N], new: u64, flags: u64, votes: u64| {
                if new >= rule.limit {
                    lost(&key, new, true);
                    *slot = Slot { key, counts: (EMPTY | TAKEN | DIRTY).to_le_bytes() };
                    return;
                }
                let old = votes.min(rule.vote_ratio * new - 1);
                *slot = Slot { key, counts: (new | flags | DIRTY | old << 32).to_le_bytes() };
            };
            if ours.key == theirs.key {
                stay(ours, theirs.key, new_a + new_b, HOT | (a & TAKEN), votes);
                continue;
            }
            if (new_a, &ours.key) > (new_b, &theirs.key) {
                let key = ours.key;
                stay(ours, key, new_a, a & (HOT | TAKEN), votes + new_b);
                lost(&theirs.key, new_b, b & HOT != 0);
            } else {
                let former = ours.key;
                stay(ours, theirs.key, new_b, (b & HOT) | TAKEN, votes + new_a);
                lost(&former, new_a, a & HOT != 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeavyPart;
    use std::vec::Vec;

    fn filter(key: u32, counts: u64) -> VotingFilter<4> {
        let mut filter = VotingFilter::new(1, 1).unwrap();
        filter.slots[0] = Slot { key: key.to_le_bytes(), counts: counts.to_le_bytes() };
        filter
    }

    /// What a filter holds (key, count, votes), and what was lost.
    type Outcome = (u32, u64, u64, Vec<(u32, u64)>);

    /// Merges both ways.
    fn both(a: &VotingFilter<4>, b: &VotingFilter<4>) -> [Outcome; 2] {
        [(a, b), (b, a)].map(|(a, b)| {
            let (mut merged, mut lost) = (a.clone(), Vec::new());
            merged.merge(b, |key, count, _| lost.push((u32::from_le_bytes(*key), count)));
            let counts = merged.slots[0].counts();
            (u32::from_le_bytes(merged.slots[0].key), counts & COUNT, counts >> 32, lost)
        })
    }

    #[test]
    fn the_larger_stays_whichever_side_it_is_on() {
        let [x, y] = both(&filter(1, 20 | 3 << 32), &filter(2, 9 | 4 << 32));
        assert_eq!(x, (1, 20, 16, [(2, 9)].into()));
        assert_eq!(x, y);
        let [x, y] = both(&filter(1, 9), &filter(2, 9));
        assert_eq!((x.0, &x), (2, &y), "of equal ones the larger key");
    }

    #[test]
    fn the_same_key_adds_and_nothing_is_lost() {
        let [x, y] = both(&filter(1, 20 | 3 << 32), &filter(1, 9 | 4 << 32));
        assert_eq!(x, (1, 29, 7, Vec::new()));
        assert_eq!(x, y);
    }

    #[test]
    fn more_votes_than_the_winner_has_leave_it_until_the_next_one() {
        let [x, _] = both(&filter(1, 5 | 4 << 32), &filter(2, 4 | 3 << 32));
        assert_eq!((x.1, x.2), (5, 4));
    }

    #[test]
    fn a_sum_past_the_limit_is_flushed_whole() {
        let most = u64::from(VotingFilter::<4>::new(1, 1).unwrap().weight_limit()) - 1;
        let [x, y] = both(&filter(7, most), &filter(7, most));
        assert_eq!((x.1, &x.3), (0, &[(7, 2 * most)].into()));
        assert_eq!(x, y);
    }
}
