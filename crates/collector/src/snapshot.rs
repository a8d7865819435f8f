//! Answers: sums over streams and incarnations, with their bounds. A snapshot never changes, and is
//! asked without the collector.

use std::collections::BTreeSet;
use std::sync::Arc;

use ucl_link::{Identity, Unseen};
use ucl_sketch::{KeyId, QueryView};

use crate::answers::EpochInfo;
use crate::range::TimeRange;
use crate::slice::Slice;

/// One incarnation's counts at its last cut.
#[derive(Clone, Debug)]
pub struct Part {
    /// Incarnation that the counts belong to.
    pub identity: Identity,
    /// Format that keys are read and shown in.
    pub format: String,
    /// The counts.
    pub view: QueryView,
    /// Times of the last epochs, oldest first. Unless it is the very first, the oldest is there to
    /// tell where the next one began.
    pub epochs: Vec<EpochInfo>,
    /// Items that are known to be missing.
    pub unseen: Option<Unseen>,
}

/// Sum of a key's counts over incarnations, with the range that holds the true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The estimate.
    pub count: u64,
    /// The true count is at least this.
    pub lower: u64,
    /// The true count is at most this.
    pub upper: u64,
    /// Incarnations that were added up.
    pub parts: usize,
}

impl Sum {
    pub(crate) fn and(self, count: u64, lower: u64, upper: u64) -> Self {
        Self {
            count: self.count.saturating_add(count),
            lower: self.lower.saturating_add(lower),
            upper: self.upper.saturating_add(upper),
            parts: self.parts + 1,
        }
    }
}

/// A key with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The key; its digest if the name never arrived.
    pub key: Vec<u8>,
    /// True if the key is known in full.
    pub named: bool,
    /// The count.
    pub sum: Sum,
}

/// Totals of the selected streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Items counted.
    pub items: u64,
    /// Weight of the items.
    pub weight: u64,
    /// Number of incarnations.
    pub parts: usize,
    /// Items that are known to be missing.
    pub unseen_items: u64,
    /// True if more items are missing, and nobody knows how many.
    pub unseen_unknown: bool,
}

impl Part {
    /// The number of a key, if it is known.
    pub(crate) fn find(&self, key: &[u8]) -> Option<KeyId> {
        let registry = self.view.registry();
        let mut room = [0; 16];
        registry.identity(key, &mut room).and_then(|identity| registry.find(identity))
    }
}

/// The counts of several streams, each at its last cut.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub(crate) parts: Vec<Arc<Part>>,
}

impl Snapshot {
    pub(crate) fn new(parts: Vec<Arc<Part>>) -> Self {
        Self { parts }
    }

    /// Puts snapshots of different collectors together. No stream may be in two of them.
    pub fn of_all(snapshots: impl IntoIterator<Item = Self>) -> Self {
        let mut parts: Vec<Arc<Part>> = snapshots.into_iter().flat_map(|snapshot| snapshot.parts).collect();
        parts.sort_by(|a, b| a.identity.cmp(&b.identity));
        Self { parts }
    }

    /// The incarnations, by stream.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &Part> {
        self.parts.iter().map(|part| &**part)
    }

    /// The formats of the keys, each once.
    pub fn formats(&self) -> BTreeSet<&str> {
        self.parts().map(|part| part.format.as_str()).collect()
    }

    /// Keeps the streams of which this is true.
    pub fn retain(&mut self, keep: impl Fn(&Part) -> bool) {
        self.parts.retain(|part| keep(part));
    }

    /// Returns the counts of everything, or of a range of time.
    pub fn over(&self, range: Option<TimeRange>) -> Slice<'_> {
        Slice::new(self.parts(), range)
    }

    /// Returns how often a key occurred.
    pub fn estimate(&self, key: &[u8]) -> Sum {
        self.over(None).estimate(key)
    }

    /// Returns the `n` keys with the largest counts, largest first; equal ones by key.
    pub fn top(&self, n: usize) -> Vec<Answer> {
        self.over(None).top(n)
    }

    /// Returns items and weight of all streams, and what is missing.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for part in self.parts() {
            totals.items = totals.items.saturating_add(part.view.items());
            totals.weight = totals.weight.saturating_add(part.view.weight());
            totals.parts += 1;
            if let Some(unseen) = part.unseen {
                totals.unseen_items = totals.unseen_items.saturating_add(unseen.items.unwrap_or(0));
                totals.unseen_unknown |= unseen.items.is_none();
            }
        }
        totals
    }
}
