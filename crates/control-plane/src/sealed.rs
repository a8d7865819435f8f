//! Segments that are past: their configuration is no longer counted in, their counts stay.
//!
//! When the sketch's hashes or sizes change, the counters up to then are decoded one last time and
//! the result is frozen:
//!
//! ```text
//! answer(key) = held in the heavy part + Σ over sealed segments (frozen) + the open segment (decoded)
//! ```
//!
//! Bounds are sums as well: a key that has a column in a segment brings that column's bounds, any
//! other key at most the smallest of the counters it would have used there. So what was known
//! before a change stays known, at once.
//!
//! # Dropping
//!
//! A sealed segment can be dropped, the oldest first, to save memory or because its counts no
//! longer matter. Answers then count from the moment it was sealed. The heavy part, which moved on
//! from segment to segment, still holds weight from before; it is known how much it held at that
//! moment, and that is taken off.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::delta::Sums;
use crate::heavy::Held;
use crate::key_state::KeyState;
use crate::registry::KeyId;
use crate::segment::Segment;
use crate::shared::Shared;
use crate::view::unknown_upper;

/// Fate of the counters when the sketch changes in mid-stream.
///
/// ```
/// use ucl_control_plane::{ChangeKind, Settings};
/// assert_eq!(Settings::default().change, ChangeKind::Sealed);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeKind {
    /// The counters are decoded and frozen.
    #[default]
    Sealed,
    /// The same counters go on and keys get new columns beside their old ones, all decoded
    /// together, as in the paper's "Coping with Sketch Changes". For measuring it: there are twice
    /// the unknowns to the same equations. Only for rehashing, and not for delta, which decodes
    /// every epoch on its own anyway; other changes seal.
    PaperColumns,
}

/// A count with its bounds: of a key in one segment, or in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundedCount {
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
}

impl BoundedCount {
    /// Rounds a decoded value to a whole number within its bounds.
    pub fn new(decoded: f64, upper: u64, lower: u64) -> Self {
        let upper = upper.max(lower);
        Self { estimate: round(decoded).clamp(lower, upper), lower, upper }
    }

    /// A count that is known.
    pub fn exactly(count: u64) -> Self {
        Self { estimate: count, lower: count, upper: count }
    }

    fn with_estimate(self, decoded: f64) -> Self {
        Self { estimate: round(decoded).clamp(self.lower, self.upper), ..self }
    }

    /// Adds what the same key has elsewhere.
    pub fn add(&mut self, other: Self) {
        self.estimate += other.estimate;
        self.lower += other.lower;
        self.upper += other.upper;
    }

    /// Subtracts a part that does not count; nothing goes below 0.
    pub fn take_off(&mut self, count: u64) {
        self.estimate = self.estimate.saturating_sub(count);
        self.lower = self.lower.saturating_sub(count);
        self.upper = self.upper.saturating_sub(count);
    }

    /// The count is known to be from `least` to `most`; the latter is beyond doubt.
    pub fn clamp(&mut self, least: u64, most: u64) {
        self.upper = self.upper.min(most);
        self.estimate = self.estimate.max(least).min(self.upper);
        self.lower = self.lower.max(least).min(self.upper);
    }
}

/// Half up, and nothing below zero.
pub(crate) fn round(x: f64) -> u64 {
    (x.max(0.0) + 0.5).floor() as u64
}

/// A segment that is no longer counted in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub segment: Arc<Segment>,
    /// By column.
    pub(crate) parts: Vec<BoundedCount>,
    pub end: End,
}

/// The moment when a segment was sealed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct End {
    /// Number of the merged stream, 0 for the first; those up to `through` had become one with it
    /// by then.
    pub stream: u32,
    pub through: u32,
    /// Items inserted up to then.
    pub items: u64,
    /// Weight of the items.
    pub weight: u64,
    /// Content of the heavy part.
    pub held: Arc<[Held]>,
}

impl End {
    /// Returns true if it counts all that an earlier end of the same streams counted.
    pub fn covers(&self, earlier: &Self) -> bool {
        (self.stream..=self.through).contains(&earlier.stream)
    }

    fn renumbered(&self, ids: &[KeyId], streams: u32) -> Self {
        let held = self.held.iter().map(|held| Held { key: ids[held.key.0 as usize], ..*held }).collect();
        Self { stream: self.stream + streams, through: self.through + streams, held, ..*self }
    }
}

impl Sealed {
    /// Freezes a segment, by what was decoded for each of its columns and the most that each can
    /// hold.
    pub fn new(segment: Segment, sums: &Sums, keys: &Shared<KeyState>, smallest_weight: u64, end: End) -> Self {
        let part = |(key, (decoded, upper)): (&KeyId, (f64, u64))| {
            BoundedCount::new(decoded, upper, keys.get(key.0 as usize).lower(smallest_weight))
        };
        let parts = segment.keys().iter().zip(sums.iter()).map(part).collect();
        Self { segment: Arc::new(segment.closed()), parts, end }
    }

    /// The same with other estimates, within the same bounds.
    pub fn with_estimates(&self, decoded: &[f64]) -> Self {
        let parts = self.parts.iter().zip(decoded).map(|(part, &decoded)| part.with_estimate(decoded)).collect();
        Self { segment: Arc::clone(&self.segment), parts, end: self.end.clone() }
    }

    /// Returns the count of a known key in this segment.
    pub fn part(&self, key: KeyId, identity: &[u8]) -> BoundedCount {
        match self.segment.column_of(key) {
            Some(column) => self.parts[column.0 as usize],
            None => BoundedCount { upper: self.unknown_upper(identity), ..BoundedCount::default() },
        }
    }

    /// The most that a key without a column can have here.
    pub fn unknown_upper(&self, identity: &[u8]) -> u64 {
        let cumulative = |at| self.segment.cumulative().get(at);
        unknown_upper(&self.segment, identity, cumulative, self.segment.sketch_weight())
    }

    /// Returns the least count of each column's key in this segment.
    pub fn lowers(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().map(|part| part.lower)
    }

    pub fn memory(&self) -> usize {
        self.segment.column_bytes()
            + self.segment.counter_bytes()
            + self.parts.capacity() * size_of::<BoundedCount>()
            + size_of_val(&*self.end.held)
    }
}

/// All sealed segments, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Past {
    pub sealed: Vec<Arc<Sealed>>,
    /// Where counting starts in streams whose first segments were dropped.
    pub(crate) dropped: Vec<End>,
    /// Streams merged into this one: 1 up to this number.
    pub streams: u32,
}

impl Past {
    /// Returns true if nothing was ever sealed or merged.
    pub fn is_new(&self) -> bool {
        self.sealed.is_empty() && self.dropped.is_empty() && self.streams == 0
    }

    /// Drops the oldest segment; whether there was one.
    pub fn drop_oldest(&mut self) -> bool {
        if self.sealed.is_empty() {
            return false;
        }
        let end = self.sealed.remove(0).end.clone();
        self.dropped.retain(|earlier| !end.covers(earlier));
        self.dropped.push(end);
        true
    }

    /// Items that are no longer counted.
    pub fn since_items(&self) -> u64 {
        self.dropped.iter().map(|end| end.items).sum()
    }

    /// Returns the weight of the dropped items.
    pub fn since_weight(&self) -> u64 {
        self.dropped.iter().map(|end| end.weight).sum()
    }

    /// Returns the part of the dropped items that the heavy part held when the last of them was
    /// dropped.
    pub fn held_before(&self) -> impl Iterator<Item = &Held> {
        self.dropped.iter().flat_map(|end| &*end.held)
    }

    /// Adds the past of a stream that is merged into this one, whose keys are numbered by `ids`
    /// here.
    pub fn merge(&mut self, other: &Self, ids: &[KeyId]) {
        let streams = self.streams + 1;
        for sealed in &other.sealed {
            let segment = Arc::new(sealed.segment.renumbered(|key| ids[key.0 as usize]));
            let end = sealed.end.renumbered(ids, streams);
            self.sealed.push(Arc::new(Sealed { segment, parts: sealed.parts.clone(), end }));
        }
        self.dropped.extend(other.dropped.iter().map(|end| end.renumbered(ids, streams)));
        // Each stream's segments stay in their order, for the sort is stable: also one that ended
        // where those merged into it had, because nothing came in between.
        self.sealed.sort_by_key(|sealed| sealed.end.items);
        self.streams += other.streams + 1;
    }

    pub fn memory(&self) -> usize {
        let dropped: usize = self.dropped.iter().map(|end| size_of_val(&*end.held)).sum();
        dropped + self.sealed.iter().map(|sealed| sealed.memory()).sum::<usize>()
    }
}
