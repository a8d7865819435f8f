//! Delta: every epoch decoded on its own, and added up.
//!
//! The difference of two successive cuts is the same system `y = A x` for just the items in between, and far sparser:
//! most known keys have an empty counter, and are out. What is left often *peels* (a counter with a single candidate is
//! that key's count), and EM needs to share out only the rest. The sum over epochs is the estimate.
//!
//! For one epoch:
//!
//! 1. **What is known is taken off.** A key that held a heavy slot at the last cut and lost it since went into the
//!    sketch with at least the count it had then.
//! 2. **Candidates**: keys known by the end of the epoch whose counters all changed.
//! 3. **Peeling** gives exact counts as far as it goes.
//! 4. **EM** on the rest, from the running rate: a key's mean per epoch so far + 0.01, at most its smallest counter; + 1
//!    if it was first reported in this epoch. The start is the prior.
//!
//! The rates are frozen for a block of [`BLOCK`] epochs, so that a block decodes in parallel and the answer does not
//! depend on the number of threads.
//!
//! **Bounds.** In one epoch a key cannot have more than its smallest counter holds; over epochs the minima add up, which
//! is far tighter than the minimum of the sums. A key that the Bloom filter did not have when it was reported was never in
//! the sketch before. For one that the filter lost at first and that became known later, the cumulative counters at that
//! time stand in for the epochs before.
//!
//! **Limits.** Mass of lost keys ends up with known keys that share counters with them, except where it can be told: a
//! counter without a candidate, and peels that would leave a counter negative, are counted as *unexplained*.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use ucl_equations::{ColumnId, Columns, Workspace, em, peeling};

use crate::decoder::DecodeError;
use crate::plane::least;
use crate::registry::KeyId;
use crate::series::{EpochCounts, Series};

/// Epochs that share one set of rates.
pub const BLOCK: usize = 16;

/// What a key is given that has no rate yet: small, but EM could not leave an exact zero.
const SMALL: f64 = 0.01;

/// A closed epoch that waits for its block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Epoch {
    /// The epoch's own counters.
    pub counters: Vec<i64>,
    /// Columns known at its end.
    pub known: u32,
    /// The first of them that was reported in this epoch.
    pub first_new: u32,
    /// Columns of keys that lost their heavy slot, with the count they held at the last cut.
    pub evicted: Vec<(ColumnId, u64)>,
    /// What changed in the heavy part, by key.
    pub heavy: Vec<(KeyId, i64)>,
    /// Items inserted before it ended.
    pub items: u64,
}

impl Epoch {
    /// Adds the next epoch to this one: both are linear, so they are one longer epoch.
    pub fn add(&mut self, next: Self) {
        for (sum, more) in self.counters.iter_mut().zip(&next.counters) {
            *sum += more;
        }
        self.known = next.known;
        self.evicted.extend(next.evicted);
        self.heavy.extend(next.heavy);
        self.items = next.items;
    }
}

/// The running sums.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Decoded so far, per column.
    estimates: Vec<f64>,
    /// Upper bounds so far, per column.
    uppers: Vec<u64>,
    epochs: u64,
    unexplained: u64,
}

impl Totals {
    pub fn estimates(&self) -> &[f64] {
        &self.estimates
    }

    pub fn uppers(&self) -> &[u64] {
        &self.uppers
    }

    /// Epochs decoded.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    pub fn unexplained(&self) -> u64 {
        self.unexplained
    }

    /// Columns up to `known` are there from now on. In the epoch just ended their keys can have had what its `counters`
    /// allow; the `late` ones, which may have been in the sketch before, what the `cumulative` ones do.
    pub fn push_new(
        &mut self,
        columns: &Columns,
        known: usize,
        late: &[ColumnId],
        counters: &[i64],
        cumulative: &[i64],
    ) {
        for column in (self.uppers.len()..known).map(|column| ColumnId(column as u32)) {
            self.uppers.push(least(columns.indices(column), counters));
        }
        for &column in late {
            self.uppers[column.0 as usize] = least(columns.indices(column), cumulative);
        }
        self.estimates.resize(known, 0.0);
    }

    /// Decodes a block of epochs, in parallel, and adds it up; `series` gets each epoch's counts. `keys` has the key of
    /// each column.
    pub fn add_block(
        &mut self,
        columns: &Columns,
        keys: &[KeyId],
        block: &[Epoch],
        options: &em::Options,
        series: &mut Series,
    ) -> Result<(), DecodeError> {
        let decoded: Vec<Decoded> = block
            .par_iter()
            .map_init(Workspace::default, |workspace, epoch| decode(columns, epoch, self, options, workspace))
            .collect::<Result<_, _>>()?;
        for (epoch, decoded) in block.iter().zip(decoded) {
            for &(column, count) in &epoch.evicted {
                self.add(column, count as f64, count, epoch.first_new);
            }
            for (&column, (value, least)) in decoded.candidates.iter().zip(decoded.values.iter().zip(&decoded.least)) {
                self.add(column, *value, *least as u64, epoch.first_new);
            }
            self.unexplained += decoded.unexplained;
            self.epochs += 1;
            if series.retention() > 0 {
                let key = |column: ColumnId| keys[column.0 as usize];
                let sketch =
                    decoded.candidates.iter().zip(&decoded.values).map(|(&column, &value)| (key(column), value));
                let evicted = epoch.evicted.iter().map(|&(column, count)| (key(column), count as f64));
                let heavy = epoch.heavy.iter().map(|&(key, change)| (key, change as f64));
                series.push(EpochCounts::new(epoch.items, sketch.chain(evicted).chain(heavy).collect()));
            }
        }
        Ok(())
    }

    fn add(&mut self, column: ColumnId, value: f64, upper: u64, first_new: u32) {
        self.estimates[column.0 as usize] += value;
        // A key first reported in this epoch already has its bound from the cumulative counters.
        if column.0 < first_new {
            self.uppers[column.0 as usize] += upper;
        }
    }

    /// The running rate of a column, per epoch.
    fn rate(&self, column: usize) -> f64 {
        if self.epochs == 0 { 0.0 } else { self.estimates[column] / self.epochs as f64 }
    }

    pub fn memory(&self) -> usize {
        self.estimates.capacity() * size_of::<f64>() + self.uppers.capacity() * size_of::<u64>()
    }
}

/// One epoch's result: per candidate its count and its smallest counter.
struct Decoded {
    candidates: Vec<ColumnId>,
    values: Vec<f64>,
    least: Vec<i64>,
    unexplained: u64,
}

fn decode(
    columns: &Columns,
    epoch: &Epoch,
    totals: &Totals,
    options: &em::Options,
    workspace: &mut Workspace,
) -> Result<Decoded, DecodeError> {
    let mut y = epoch.counters.clone();
    for &(column, count) in &epoch.evicted {
        for &at in columns.indices(column) {
            y[at as usize] -= count as i64;
        }
    }
    let degree = columns.degree();
    let (mut candidates, mut least) = (Vec::new(), Vec::new());
    let known = &columns.all_indices()[..epoch.known as usize * degree];
    for (column, indices) in (0u32..).zip(known.chunks_exact(degree)) {
        let smallest = indices.iter().map(|&at| y[at as usize]).min().unwrap_or(0);
        if smallest > 0 {
            candidates.push(ColumnId(column));
            least.push(smallest);
        }
    }
    let start: Vec<f64> = candidates
        .iter()
        .zip(&least)
        .map(|(&column, &least)| {
            let new = if column.0 >= epoch.first_new { 1.0 } else { 0.0 };
            (totals.rate(column.0 as usize) + SMALL).min(least as f64) + new
        })
        .collect();
    let peeled = peeling::peel(columns, Some(&candidates), &y)?;
    let mut values = vec![0.0; candidates.len()];
    peeled.then_em(columns, Some(&start), options, workspace, &mut values)?;
    let unexplained = (peeled.unexplained() / degree as i64) as u64;
    Ok(Decoded { candidates, values, least, unexplained })
}
