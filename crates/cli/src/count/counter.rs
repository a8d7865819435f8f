//! Items into the sketch and, with `--audit`, into exact counts.

use std::ops::Range;

use ucl_sketch::{KeyFormat, MergeError, UclSketch};
use ucl_streams::{Batch, ExactCounts, OnError};

use crate::fail::harmless;
use crate::show::counted;

/// Counts items, and keeps account of those that a sketch cannot take.
pub struct Counter {
    pub sketch: UclSketch,
    pub exact: Option<ExactCounts>,
    pub skipped: Skipped,
    on_error: OnError,
    items: u64,
    weight: u64,
}

/// Records left out.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    pub count: u64,
    /// The first of them, and why.
    pub first: Option<String>,
}

impl Skipped {
    /// How many, if any, and the first.
    pub fn told(&self) -> Option<String> {
        let first = self.first.as_deref().map_or(String::new(), |first| format!("; the first: {}", harmless(first)));
        (self.count > 0).then(|| counted(self.count, "bad record") + &first)
    }
}

/// An item that the sketch cannot take.
#[derive(Debug, thiserror::Error)]
#[error("{0} (--on-error skip leaves it out)")]
pub struct BadItem(String);

/// Counters are signed numbers of 64 bits, so all weights together stay below this.
const TOO_HEAVY: u64 = 1 << 63;

impl Counter {
    pub fn new(sketch: UclSketch, on_error: OnError, audit: bool) -> Self {
        let (exact, weight) = (audit.then(ExactCounts::new), sketch.weight());
        Self { sketch, exact, skipped: Skipped::default(), on_error, items: 0, weight }
    }

    /// Takes some items of a batch.
    pub fn insert(&mut self, batch: Batch<'_>, range: Range<usize>) -> Result<(), BadItem> {
        let fits = |width| self.sketch.config().keys == KeyFormat::Fixed(width as u8) && width < 256;
        let weights = batch.weights().map(|weights| &weights[range.clone()]);
        let sum = weights.map_or(range.len() as u128, |weights| weights.iter().map(|&weight| u128::from(weight)).sum());
        let light = u128::from(self.weight) + sum < TOO_HEAVY.into();
        match batch.fixed() {
            Some((width, keys)) if fits(width) && light => {
                let keys = &keys[range.start * width..range.end * width];
                self.sketch.insert_flat(width, keys, weights).map_err(|error| BadItem(error.to_string()))?;
                self.items += range.len() as u64;
                self.weight += sum as u64;
                if let Some(exact) = &mut self.exact {
                    let weight = |i: usize| weights.map_or(1, |weights| weights[i]);
                    keys.chunks_exact(width).enumerate().for_each(|(i, key)| exact.insert(key, weight(i)));
                }
                Ok(())
            }
            _ => {
                let mut items = batch.items().skip(range.start).take(range.len());
                items.try_for_each(|(key, weight)| self.insert_one(key, weight))
            }
        }
    }

    /// Takes over what another one has counted.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        self.sketch.merge(other.sketch)?;
        if let (Some(exact), Some(more)) = (&mut self.exact, &other.exact) {
            more.iter().for_each(|(key, count)| exact.insert(key, count));
        }
        self.skipped.count += other.skipped.count;
        self.skipped.first = self.skipped.first.take().or(other.skipped.first);
        self.items += other.items;
        self.weight += other.weight;
        Ok(())
    }

    #[inline]
    fn insert_one(&mut self, key: &[u8], weight: u64) -> Result<(), BadItem> {
        self.items += 1;
        let total = self.weight.saturating_add(weight);
        if total >= TOO_HEAVY && weight < TOO_HEAVY {
            return self
                .bad(format!("item {}: with its weight of {weight} all weights come to 2^63 or more", self.items));
        }
        match self.sketch.insert_weighted(key, weight) {
            Ok(()) => {
                self.weight = total;
                if let Some(exact) = &mut self.exact {
                    exact.insert(key, weight);
                }
                Ok(())
            }
            Err(error) => self.bad(format!("item {}: {error}", self.items)),
        }
    }

    #[cold]
    fn bad(&mut self, message: String) -> Result<(), BadItem> {
        match self.on_error {
            OnError::Stop => Err(BadItem(message)),
            OnError::Skip => {
                self.skipped.count += 1;
                self.skipped.first.get_or_insert(message);
                Ok(())
            }
        }
    }
}
