//! A known key's answer, put together when it is asked for.
//!
//! A view of millions of keys is mostly asked about a few of them. What an answer is made of is
//! shared with the control plane ([`Shared`]), but for what this moment alone has changed.

use hashbrown::HashTable;

use super::{SegmentAtCut, Source, unknown_upper};
use crate::delta::Sums;
use crate::heavy::Held;
use crate::key_state::{KeyState, RaisedFloors};
use crate::registry::KeyId;
use crate::sealed::{BoundedCount, Past};
use crate::shared::Shared;

/// What all answers of a view are made of, beside the counters.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// What is known of each key; of some, more since the last cut.
    pub keys: Shared<KeyState>,
    pub raised: RaisedFloors,
    /// By column.
    pub sums: Sums,
    /// Whether another decoder than the configured one made them.
    pub fallback: bool,
    /// What is counted exactly of each key.
    pub exact: Counts,
    /// Whether that is all there is.
    pub all_exact: bool,
    /// Whether it is all there is of a key of which nothing can be in the sketch.
    pub mirrored: bool,
    /// Of what is counted exactly, what came before counting starts, if segments were dropped.
    pub before: Counts,
    pub smallest_weight: u64,
    /// No known key has less, or more.
    pub least: u64,
    pub most: u64,
}

impl Answers {
    /// What a key has in all.
    pub fn count(&self, key: KeyId, identity: &[u8], segment: &SegmentAtCut, past: &Past) -> (BoundedCount, Source) {
        let lower = self.raised.of(&self.keys, key).lower(self.smallest_weight);
        let (mut count, mut source) = match segment.mapping.column_of(key) {
            Some(column) => {
                let (estimate, upper) = self.sums.get(column.0 as usize);
                let source = match (self.mirrored, self.fallback) {
                    (true, _) if upper == 0 => Source::Exact,
                    (_, true) => Source::Fallback,
                    _ => Source::Decoded,
                };
                (BoundedCount::new(estimate, upper, lower), source)
            }
            // Never reported, but seen in the heavy part: what the filter lost of it, if anything,
            // is not counted.
            None => {
                let counter = |at: usize| segment.counters.get(at);
                let upper = unknown_upper(&segment.mapping, identity, counter, segment.sketch_weight);
                let source = if self.all_exact { Source::Exact } else { Source::Heavy };
                (BoundedCount::new(0.0, upper, lower), source)
            }
        };
        for sealed in &past.sealed {
            let part = sealed.part(key, identity);
            count.add(part);
            let decoded = match source {
                Source::Heavy => sealed.segment.column_of(key).is_some(),
                // Also of a key that was not known yet: its sketch may have absorbed it.
                Source::Exact => part.upper > 0,
                _ => false,
            };
            if decoded {
                source = Source::Decoded;
            }
        }
        count.add(BoundedCount::exactly(self.exact.of(key)));
        count.take_off(self.before.of(key));
        count.clamp(self.least, self.most);
        (count, source)
    }
}

/// Exact counts of some keys, or of nearly all.
#[derive(Clone, Debug)]
pub(super) enum Counts {
    Some(HashTable<Held>),
    All(Vec<u64>),
}

fn place(key: KeyId) -> u64 {
    u64::from(key.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Counts {
    /// Adds up what is held of some keys.
    pub fn of_some(held: impl Iterator<Item = Held>) -> Self {
        let mut counts = HashTable::<Held>::new();
        for held in held {
            let same = |other: &Held| other.key == held.key;
            counts
                .entry(place(held.key), same, |other| place(other.key))
                .and_modify(|other| other.count += held.count)
                .or_insert(held);
        }
        Self::Some(counts)
    }

    /// The same for nearly all of so many keys.
    pub fn of_all(keys: usize, held: impl Iterator<Item = Held>) -> Self {
        let mut counts = vec![0; keys];
        held.for_each(|held| counts[held.key.0 as usize] += held.count);
        Self::All(counts)
    }

    #[inline]
    pub fn of(&self, key: KeyId) -> u64 {
        match self {
            Self::Some(counts) if counts.is_empty() => 0,
            Self::Some(counts) => counts.find(place(key), |held| held.key == key).map_or(0, |held| held.count),
            Self::All(counts) => counts.get(key.0 as usize).copied().unwrap_or(0),
        }
    }
}
