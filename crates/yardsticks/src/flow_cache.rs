//! A 4-way flow cache, as a software switch would keep one.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

const WAYS: usize = 4;

/// Counts per key, in sets of four; the least recently used key of a full set makes room, and
/// leaves with its count.
///
/// The plainest thing that could stand in for a data plane: nothing is lost if every departure is
/// sent, which nothing here does. It only hands them on.
pub struct FlowCache<const N: usize> {
    /// Most recently used first; a count of 0 is a free place.
    sets: Vec<[([u8; N], u32); WAYS]>,
    hasher: FixedState,
}

impl<const N: usize> FlowCache<N> {
    /// Creates a cache of at most `bytes` bytes, with one set at least.
    pub fn new(bytes: usize) -> Self {
        let sets = (bytes / size_of::<[([u8; N], u32); WAYS]>()).max(1);
        Self { sets: vec![[([0; N], 0); WAYS]; sets], hasher: FixedState::with_seed(1) }
    }

    /// Counts one item. Calls `leave` with the key and count that had to make room, if any.
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], leave: impl FnOnce(&[u8; N], u32)) {
        let hash = self.hasher.hash_one(key);
        let at = ((u128::from(hash) * self.sets.len() as u128) >> 64) as usize;
        let set = &mut self.sets[at];
        match set.iter().position(|(held, count)| *count > 0 && held == key) {
            Some(way) => {
                set[way].1 += 1;
                set[..=way].rotate_right(1);
            }
            None => {
                let (last, count) = set[WAYS - 1];
                if count > 0 {
                    leave(&last, count);
                }
                set.rotate_right(1);
                set[0] = (*key, 1);
            }
        }
    }

    /// Returns the sum of all counts in the cache.
    pub fn weight(&self) -> u64 {
        self.sets.iter().flatten().map(|&(_, count)| u64::from(count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_left_and_what_stays_is_the_stream() {
        let stream = &crate::numbers()[..50_000];
        let mut cache = FlowCache::<4>::new(1 << 10);
        let mut counts = HashMap::<[u8; 4], u64>::new();
        for key in stream {
            cache.insert(key, |key, count| *counts.entry(*key).or_default() += u64::from(count));
        }
        let left: u64 = counts.values().sum();
        assert!(left > 10_000 && cache.weight() > 0, "{left} left, {} stay", cache.weight());
        for &(key, count) in cache.sets.iter().flatten().filter(|(_, count)| *count > 0) {
            *counts.entry(key).or_default() += u64::from(count);
        }
        let mut exact = HashMap::<[u8; 4], u64>::new();
        stream.iter().for_each(|&key| *exact.entry(key).or_default() += 1);
        assert_eq!(counts, exact);
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let mut cache = FlowCache::<1>::new(0);
        let mut left = Vec::new();
        for key in [1, 2, 3, 4, 1, 5, 6] {
            cache.insert(&[key], |key, count| left.push((key[0], count)));
        }
        assert_eq!(left, [(2, 1), (3, 1)]);
        assert_eq!(cache.weight(), 5);
    }
}
