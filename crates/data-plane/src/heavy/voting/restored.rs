//! A voting filter that was read back.

use alloc::format;

use super::{COUNT, DIRTY, EMPTY, Rule, TAKEN, VotingFilter};
use crate::config::Shape;
use crate::hash::HashSeed;
use crate::state::{Inconsistent, RestoredHeavy, ensure};

impl<const N: usize> RestoredHeavy<N> for VotingFilter<N> {
    fn check(&self, shape: &Shape, seed: &HashSeed) -> Result<(), Inconsistent> {
        let (slots, want) = (self.slots.len(), shape.slots);
        ensure(slots == want as usize, || format!("{slots} heavy slots, not {want}"))?;
        let Rule { vote_ratio, limit } = self.rule;
        let known = self.rule == Rule::new(shape.vote_ratio);
        ensure(known, || format!("a vote ratio of {vote_ratio} with a limit of {limit}, not {}", shape.vote_ratio))?;
        for (index, slot) in self.slots.iter().enumerate() {
            let counts = slot.counts();
            let count = counts & COUNT;
            let old = counts >> 32;
            if count == 0 {
                let empty = counts & !(TAKEN | DIRTY) == EMPTY;
                ensure(empty, || format!("heavy slot {index} is neither empty nor held"))?;
            } else {
                let defended = count < limit && vote_ratio * count > old;
                ensure(defended, || format!("heavy slot {index} holds {count} against {old} votes"))?;
                let home = seed.hash(&slot.key).slot(want);
                ensure(home == index, || format!("heavy slot {index} holds a key that belongs into slot {home}"))?;
            }
        }
        Ok(())
    }
}
