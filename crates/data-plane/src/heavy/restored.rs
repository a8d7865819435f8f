//! Heavy parts that were read back: whether offers can lead to what they hold.

use alloc::format;
use alloc::string::String;

use super::word::{COUNT, DIRTY, HOT, LIMIT, TAKEN};
use super::{AnyHeavy, AugmentedFilter, ElasticBuckets, HeavyPart};
use crate::config::Shape;
use crate::hash::HashSeed;
use crate::state::{Inconsistent, RestoredHeavy, ensure};

impl<const N: usize> RestoredHeavy<N> for AnyHeavy<N> {
    fn check(&self, shape: &Shape, seed: &HashSeed) -> Result<(), Inconsistent> {
        let (kind, want) = (self.kind(), shape.heavy);
        ensure(kind == want, || format!("the heavy part is '{kind}', not '{want}'"))?;
        match self {
            Self::Voting(heavy) => heavy.check(shape, seed),
            Self::Augmented(heavy) => heavy.check(shape, seed),
            Self::Elastic(heavy) => heavy.check(shape, seed),
        }
    }
}

impl<const N: usize> RestoredHeavy<N> for AugmentedFilter<N> {
    fn check(&self, shape: &Shape, seed: &HashSeed) -> Result<(), Inconsistent> {
        check_lengths(shape, [("keys", self.keys.len()), ("counts", self.new.len()), ("estimates", self.old.len())])?;
        for (slot, (&new, &old)) in self.new.iter().zip(&self.old).enumerate() {
            check_word(slot, new, LIMIT)?;
            let count = new & COUNT;
            ensure(old <= count, || format!("heavy slot {slot} counted {count} from {old} on"))?;
        }
        check_places(&self.keys, &self.new, |key| self.part(seed.hash(key)))
    }
}

impl<const N: usize> RestoredHeavy<N> for ElasticBuckets<N> {
    fn check(&self, shape: &Shape, seed: &HashSeed) -> Result<(), Inconsistent> {
        check_lengths(shape, [("keys", self.keys.len()), ("counts", self.counts.len())])?;
        let (buckets, want) = (self.against.len(), self.keys.len().div_ceil(super::elastic::ENTRIES));
        ensure(buckets == want, || format!("{buckets} heavy buckets, not {want}"))?;
        let vote_ratio = self.vote_ratio;
        let limit = self.limit;
        let known = Self::rule(shape.vote_ratio) == (vote_ratio, limit);
        ensure(known, || format!("a vote ratio of {vote_ratio} with a limit of {limit}, not {}", shape.vote_ratio))?;
        for (slot, &count) in self.counts.iter().enumerate() {
            check_word(slot, count, limit)?;
        }
        let most = vote_ratio * u64::from(limit);
        let beyond = self.against.iter().find(|&&votes| u64::from(votes) >= most);
        ensure(beyond.is_none(), || format!("{beyond:?} votes against a bucket, but it falls at {most}"))?;
        check_places(&self.keys, &self.counts, |key| self.slots_of(self.bucket(seed.hash(key))))
    }
}

fn check_lengths<const M: usize>(shape: &Shape, lengths: [(&str, usize); M]) -> Result<(), Inconsistent> {
    let want = shape.slots as usize;
    let odd = lengths.into_iter().find(|&(_, length)| length != want);
    ensure(odd.is_none(), || {
        odd.map_or(String::new(), |(what, length)| format!("{length} {what} in {want} heavy slots"))
    })
}

/// A count below the limit; without one, nothing but the marks of the open epoch.
fn check_word(slot: usize, word: u32, limit: u32) -> Result<(), Inconsistent> {
    let count = word & COUNT;
    ensure(count < limit, || format!("heavy slot {slot} holds {count}, but is flushed at {limit}"))?;
    let empty = word & !(TAKEN | DIRTY) == 0;
    debug_assert_eq!(COUNT | HOT | TAKEN | DIRTY, u32::MAX);
    ensure(count > 0 || empty, || format!("heavy slot {slot} is neither empty nor held"))
}

/// Every held key is where it will be looked for, and only once.
fn check_places<const N: usize>(
    keys: &[[u8; N]],
    words: &[u32],
    place: impl Fn(&[u8; N]) -> core::ops::Range<usize>,
) -> Result<(), Inconsistent> {
    let held = |slot: usize| words[slot] & COUNT != 0;
    for (slot, key) in keys.iter().enumerate().filter(|&(slot, _)| held(slot)) {
        let mut place = place(key);
        let home = place.contains(&slot);
        ensure(home, || format!("heavy slot {slot} holds a key that belongs into slots {place:?}"))?;
        let twice = place.find(|&other| other != slot && held(other) && keys[other] == *key);
        ensure(twice.is_none(), || format!("heavy slots {slot} and {twice:?} hold the same key"))?;
    }
    Ok(())
}
