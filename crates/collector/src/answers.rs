//! Answers: sums over streams and incarnations, with their bounds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ucl_link::{Identity, Incarnation, Name, Times, Unseen};
use ucl_sketch::QueryView;
use ucl_storage::Storage;

use crate::collector::Collector;
use crate::settings::CollectorError;

/// Which streams a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whose.
    pub tenant: Name,
    /// One stream, or all.
    pub stream: Option<Name>,
}

impl Selection {
    /// All streams of a tenant.
    pub fn tenant(tenant: Name) -> Self {
        Self { tenant, stream: None }
    }

    fn has(&self, identity: &Identity) -> bool {
        identity.tenant == self.tenant && self.stream.as_ref().is_none_or(|stream| *stream == identity.stream)
    }
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

/// One epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochInfo {
    /// Its number in the incarnation.
    pub seq: u64,
    /// Items of the incarnation up to its end.
    pub items: u64,
    /// When it was, by the sender's clocks.
    pub times: Times,
    /// When it arrived, by the collector's clock, if that was since the collector started.
    pub received_ms: Option<i64>,
}

/// What each epoch added to a key, oldest first.
pub type KeySeries = Vec<(EpochInfo, f64)>;

/// One incarnation of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInfo {
    /// The stream.
    pub stream: Name,
    /// The incarnation.
    pub incarnation: Incarnation,
    /// How keys are read and shown.
    pub format: String,
    /// Epochs taken.
    pub epochs: u64,
    /// The checksum of the last envelope, which stands for the whole history.
    pub checksum: u64,
    /// Items counted.
    pub items: u64,
    /// Keys known.
    pub keys: usize,
    /// Bytes of memory.
    pub memory: usize,
    /// The last epoch.
    pub last: Option<EpochInfo>,
    /// Items that are known to be missing, before or within this incarnation.
    pub unseen: Option<Unseen>,
    /// Why nothing more is taken of it, if so.
    pub ended: Option<String>,
}

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

impl<S: Storage> Collector<S> {
    /// Returns the views of a selection.
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn views(&mut self, selection: &Selection) -> Result<Vec<(Identity, Arc<QueryView>)>, CollectorError> {
        let lives = self.lives.iter_mut().filter(|(identity, _)| selection.has(identity));
        lives.map(|(identity, life)| Ok((identity.clone(), life.view()?))).collect()
    }

    /// Returns how often a key occurred.
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn estimate(&mut self, selection: &Selection, key: &[u8]) -> Result<Sum, CollectorError> {
        let views = self.views(selection)?;
        Ok(sum(views.iter().map(|(_, view)| &**view), key))
    }

    /// Returns the `n` keys with the largest counts, largest first; equal ones by key.
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn top(&mut self, selection: &Selection, n: usize) -> Result<Vec<Answer>, CollectorError> {
        let views = self.views(selection)?;
        let mut named: HashMap<&[u8], u64> = HashMap::new();
        let mut answers = Vec::new();
        for (_, view) in &views {
            let registry = view.registry();
            for (id, estimate) in view.all() {
                if registry.is_named(id) {
                    let count = named.entry(registry.key(id)).or_default();
                    *count = count.saturating_add(estimate.estimate);
                } else {
                    // Digests of different streams have different keys: they do not add up.
                    let (count, lower, upper) = (estimate.estimate, estimate.lower, estimate.upper);
                    let sum = Sum { count, lower, upper, parts: 1 };
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
        answers.extend(keys.into_iter().map(|(key, _)| Answer {
            key: key.to_vec(),
            named: true,
            sum: sum(views.iter().map(|(_, view)| &**view), key),
        }));
        answers.sort_by(|a, b| (b.sum.count, &a.key).cmp(&(a.sum.count, &b.key)));
        answers.truncate(n);
        Ok(answers)
    }

    /// Returns what each epoch added to a key, oldest first, for each incarnation, as far back as
    /// epochs are kept ([`Settings::retain_epochs`](ucl_sketch::Settings::retain_epochs)).
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn series(&mut self, selection: &Selection, key: &[u8]) -> Result<Vec<(Identity, KeySeries)>, CollectorError> {
        let mut all = Vec::new();
        for (identity, life) in self.lives.iter_mut().filter(|(identity, _)| selection.has(identity)) {
            let view = life.view()?;
            let Some(id) = find(&view, key) else { continue };
            let by_items: BTreeMap<u64, &EpochInfo> = life.epochs.iter().map(|epoch| (epoch.items, epoch)).collect();
            let epochs = view.series().epochs(..);
            let counts = epochs.filter_map(|epoch| Some((**by_items.get(&epoch.items)?, epoch.of(id))));
            // The epoch that is open has had no items yet, and so ends where the last one does.
            let mut counts: KeySeries = counts.collect();
            counts.dedup_by(|later, earlier| {
                let same = later.0.seq == earlier.0.seq;
                earlier.1 += if same { later.1 } else { 0.0 };
                same
            });
            all.push((identity.clone(), counts));
        }
        Ok(all)
    }

    /// Returns what a selection comes to.
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn totals(&mut self, selection: &Selection) -> Result<Totals, CollectorError> {
        let mut totals = Totals::default();
        for (_, life) in self.lives.iter_mut().filter(|(identity, _)| selection.has(identity)) {
            let view = life.view()?;
            totals.items = totals.items.saturating_add(view.items());
            totals.weight = totals.weight.saturating_add(view.weight());
            totals.parts += 1;
            if let Some(unseen) = life.unseen {
                totals.unseen_items = totals.unseen_items.saturating_add(unseen.items.unwrap_or(0));
                totals.unseen_unknown |= unseen.items.is_none();
            }
        }
        Ok(totals)
    }

    /// Returns all incarnations of a selection, by stream.
    pub fn streams(&self, selection: &Selection) -> Vec<StreamInfo> {
        let lives = self.lives.values().filter(|life| selection.has(&life.identity));
        let info = |life: &crate::life::Life| StreamInfo {
            stream: life.identity.stream.clone(),
            incarnation: life.identity.incarnation,
            format: life.format.clone(),
            epochs: life.sequence.next(),
            checksum: life.sequence.last(),
            items: life.epochs.back().map_or(0, |epoch| epoch.items),
            keys: life.station.keys(),
            memory: life.memory,
            last: life.epochs.back().copied(),
            unseen: life.unseen,
            ended: life.ended.clone(),
        };
        lives.map(info).collect()
    }

    /// Tenants that have streams.
    pub fn tenants(&self) -> Vec<Name> {
        let mut tenants: Vec<Name> = self.lives.keys().map(|identity| identity.tenant.clone()).collect();
        tenants.dedup();
        tenants
    }
}

fn find(view: &QueryView, key: &[u8]) -> Option<ucl_sketch::KeyId> {
    let registry = view.registry();
    let mut room = [0; 16];
    registry.identity(key, &mut room).and_then(|identity| registry.find(identity))
}

fn sum<'a>(views: impl Iterator<Item = &'a QueryView>, key: &[u8]) -> Sum {
    views.fold(Sum::default(), |sum, view| {
        let part = view.estimate(key);
        Sum {
            count: sum.count.saturating_add(part.estimate),
            lower: sum.lower.saturating_add(part.lower),
            upper: sum.upper.saturating_add(part.upper),
            parts: sum.parts + 1,
        }
    })
}
