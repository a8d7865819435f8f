//! Answers: sums over streams and incarnations, with their bounds. A snapshot never changes, and is
//! asked without the collector.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ucl_link::{Identity, Unseen};
use ucl_sketch::{KeyId, QueryView};

use crate::answers::EpochInfo;

/// One incarnation's counts at its last cut.
#[derive(Clone, Debug)]
pub struct Part {
    /// Whose they are.
    pub identity: Identity,
    /// How keys are read and shown.
    pub format: String,
    /// The counts.
    pub view: QueryView,
    /// Times of the last epochs, oldest first.
    pub epochs: Vec<EpochInfo>,
    /// Items that are known to be missing.
    pub unseen: Option<Unseen>,
}

/// A count and its range, added up.
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
    /// Whether the key is known in full.
    pub named: bool,
    /// The count.
    pub sum: Sum,
}

/// What each epoch added to a key, oldest first.
pub type KeySeries = Vec<(EpochInfo, f64)>;

/// What a selection comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Items counted.
    pub items: u64,
    /// Their weight.
    pub weight: u64,
    /// Incarnations.
    pub parts: usize,
    /// Items that are known to be missing.
    pub unseen_items: u64,
    /// Whether more are missing, nobody knows how many.
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

    /// Returns how often a key occurred.
    pub fn estimate(&self, key: &[u8]) -> Sum {
        self.parts().fold(Sum::default(), |sum, part| {
            let answer = part.view.estimate(key);
            sum.and(answer.estimate, answer.lower, answer.upper)
        })
    }

    /// Returns the `n` keys with the largest counts, largest first; equal ones by key.
    pub fn top(&self, n: usize) -> Vec<Answer> {
        let mut named: HashMap<&[u8], u64> = HashMap::new();
        let mut answers = Vec::new();
        for part in self.parts() {
            let registry = part.view.registry();
            for (id, estimate) in part.view.all() {
                if registry.is_named(id) {
                    let count = named.entry(registry.key(id)).or_default();
                    *count = count.saturating_add(estimate.estimate);
                } else {
                    // Digests of different streams have different keys: they do not add up.
                    let sum = Sum::default().and(estimate.estimate, estimate.lower, estimate.upper);
                    answers.push(Answer { key: registry.identity_of(id).to_vec(), named: false, sum });
                }
            }
        }
        let mut keys: Vec<(&[u8], u64)> = named.into_iter().collect();
        let by_size = |a: &(&[u8], u64), b: &(&[u8], u64)| (b.1, a.0).cmp(&(a.1, b.0));
        if n < keys.len() {
            keys.select_nth_unstable_by(n, by_size);
            keys.truncate(n);
        }
        let full = |(key, _): (&[u8], u64)| Answer { key: key.to_vec(), named: true, sum: self.estimate(key) };
        answers.extend(keys.into_iter().map(full));
        answers.sort_by(|a, b| (b.sum.count, &a.key).cmp(&(a.sum.count, &b.key)));
        answers.truncate(n);
        answers
    }

    /// Returns what each epoch added to a key, oldest first, for each incarnation, as far back as
    /// epochs are kept ([`Settings::retain_epochs`](ucl_sketch::Settings::retain_epochs)).
    pub fn series(&self, key: &[u8]) -> Vec<(Identity, KeySeries)> {
        let mut all = Vec::new();
        for part in self.parts() {
            let Some(id) = part.find(key) else { continue };
            let by_items: BTreeMap<u64, &EpochInfo> = part.epochs.iter().map(|epoch| (epoch.items, epoch)).collect();
            let epochs = part.view.series().epochs(..);
            let counts = epochs.filter_map(|epoch| Some((**by_items.get(&epoch.items)?, epoch.of(id))));
            // The epoch that is open has had no items yet, and so ends where the last one does.
            let mut counts: KeySeries = counts.collect();
            counts.dedup_by(|later, earlier| {
                let same = later.0.seq == earlier.0.seq;
                earlier.1 += if same { later.1 } else { 0.0 };
                same
            });
            all.push((part.identity.clone(), counts));
        }
        all
    }

    /// Returns what the streams come to.
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
