//! Items into the sketch and, with `--audit`, into exact counts.

use std::ops::Range;

use ucl_sketch::{InsertError, KeyFormat, MergeError, UclSketch};
use ucl_streams::{Batch, ExactCounts, ReadSummary};

use crate::fail::harmless;
use crate::show::counted;

/// Counts items. The reader has left out those that the sketch cannot take.
pub struct Counter {
    pub sketch: UclSketch,
    pub exact: Option<ExactCounts>,
}

/// Records left out.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    pub count: u64,
    /// The first of them, and why.
    pub first: Option<String>,
}

impl Skipped {
    /// The bad records of an input.
    pub fn of(summary: &ReadSummary) -> Self {
        Self { count: summary.skipped, first: summary.first_skip.as_ref().map(ToString::to_string) }
    }

    /// Describes the skipped records: their number, and the first one. `None` if there were none.
    pub fn told(&self) -> Option<String> {
        let first = self.first.as_deref().map_or(String::new(), |first| format!("; the first: {}", harmless(first)));
        (self.count > 0).then(|| counted(self.count, "bad record") + &first)
    }
}

impl Counter {
    pub fn new(sketch: UclSketch, audit: bool) -> Self {
        Self { sketch, exact: audit.then(ExactCounts::new) }
    }

    /// Inserts some items of a batch.
    pub fn insert(&mut self, batch: Batch<'_>, range: Range<usize>) -> Result<(), InsertError> {
        let fits = |width| self.sketch.config().keys == KeyFormat::Fixed(width as u8) && width < 256;
        match batch.fixed() {
            Some((width, keys)) if fits(width) => {
                let weights = batch.weights().map(|weights| &weights[range.clone()]);
                self.sketch.insert_flat(width, &keys[range.start * width..range.end * width], weights)?;
            }
            _ => {
                let mut items = batch.items().skip(range.start).take(range.len());
                items.try_for_each(|(key, weight)| self.sketch.insert_weighted(key, weight))?;
            }
        }
        if let Some(exact) = &mut self.exact {
            let items = batch.items().skip(range.start).take(range.len());
            items.for_each(|(key, weight)| exact.insert(key, weight));
        }
        Ok(())
    }

    /// Adds what another counter has counted.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        self.sketch.merge(other.sketch)?;
        if let (Some(exact), Some(more)) = (&mut self.exact, &other.exact) {
            more.iter().for_each(|(key, count)| exact.insert(key, count));
        }
        Ok(())
    }
}
