//! One epoch: candidates, peeling, EM.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use ucl_data_plane::Geometry;
use ucl_equations::peeling::Peeler;
use ucl_equations::sparse::{Candidates, Shrinker, Touched};
use ucl_equations::{ColumnId, Columns, Error, Workspace, em};

use super::{Checked, Epoch, Totals};
use crate::decoder::DecodeError;

/// What a key is given that has no rate yet: small, but EM could not leave an exact zero.
const SMALL: f64 = 0.01;

/// One epoch's result: per candidate its count and its smallest counter.
pub struct Decoded {
    pub candidates: Vec<ColumnId>,
    pub values: Vec<f64>,
    pub least: Vec<i64>,
    pub unexplained: u64,
}

/// What is reused from epoch to epoch.
#[derive(Default)]
struct Scratch {
    shrinker: Shrinker,
    live: Vec<i64>,
    peeler: Peeler,
    workspace: Workspace,
}

/// What the epochs of a block have in common.
pub struct Decoder<'a> {
    columns: &'a Columns,
    block: &'a [Epoch],
    totals: &'a Totals,
    options: &'a em::Options,
    /// Columns of this block that came late: their keys may have been in the epochs before.
    late: Vec<ColumnId>,
    /// One for every thread that has been at work.
    scratch: Mutex<Vec<Scratch>>,
}

/// Some epochs of a block, by the first so many counters of every key.
struct Sparse<'a> {
    entries: usize,
    /// The counters of the rows they are in.
    rows: usize,
    epochs: &'a [Epoch],
    touched: Vec<Touched>,
    candidates: Candidates,
}

impl<'a> Decoder<'a> {
    pub fn new(columns: &'a Columns, block: &'a [Epoch], totals: &'a Totals, options: &'a em::Options) -> Self {
        let late = block.iter().flat_map(|epoch| &epoch.late).copied().collect();
        Self { columns, block, totals, options, late, scratch: Mutex::default() }
    }

    /// Decodes all epochs of the block, in parallel.
    pub fn decode(&self) -> Result<Vec<Decoded>, DecodeError> {
        self.decode_by(self.columns.degree(), self.block)
    }

    /// Decodes some epochs by the first `entries` counters of every key.
    fn decode_by(&self, entries: usize, epochs: &[Epoch]) -> Result<Vec<Decoded>, DecodeError> {
        // The rows that these counters are in.
        let rows = self.columns.counters() * entries / self.columns.degree();
        let touched: Vec<Touched> =
            epochs.par_iter().map(|epoch| self.touched(epoch, rows)).collect::<Result<_, _>>()?;
        let candidates = Candidates::new(self.columns, entries, &touched);
        let sparse = Sparse { entries, rows, epochs, touched, candidates };
        (0..epochs.len())
            .into_par_iter()
            .with_max_len(1)
            .map(|at| self.with_scratch(|scratch| self.decode_one(scratch, &sparse, at)))
            .collect()
    }

    fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let result = work(&mut scratch);
        pool().push(scratch);
        result
    }

    /// Which of the first `rows` counters have mass beyond what is known of them.
    fn touched(&self, epoch: &Epoch, rows: usize) -> Result<Touched, DecodeError> {
        let mut touched = epoch.counters.touched(rows);
        for (at, known) in self.known(epoch, rows) {
            match epoch.counters.get(at as usize) - known {
                0 => touched.remove(at),
                left if left < 0 => {
                    return Err(Error::Negative { what: "y", at: at as usize, value: left as f64 }.into());
                }
                _ => {}
            }
        }
        Ok(touched)
    }

    /// What is known to be in some of the first `rows` counters: keys that were evicted had this much at least.
    fn known(&self, epoch: &Epoch, rows: usize) -> BTreeMap<u32, i64> {
        let mut known = BTreeMap::new();
        for &(column, count) in &epoch.evicted {
            for &at in self.columns.indices(column).iter().filter(|&&at| (at as usize) < rows) {
                *known.entry(at).or_default() += count as i64;
            }
        }
        known
    }

    fn decode_one(&self, scratch: &mut Scratch, sparse: &Sparse<'_>, at: usize) -> Result<Decoded, DecodeError> {
        let Scratch { shrinker, live, peeler, workspace } = scratch;
        let &Sparse { entries, rows, epochs, .. } = sparse;
        let (columns, epoch) = (self.columns, &epochs[at]);
        let mut candidates = sparse.candidates.of_epoch(at, epoch.known as usize);
        let late = self.late.iter().filter(|column| column.0 >= epoch.known);
        candidates.extend(late.filter(|&&column| sparse.candidates.has(at, column)));
        let shrunk = shrinker.shrink(columns, entries, &sparse.touched[at], &candidates);
        epoch.counters.gather(shrunk, live);
        for (at, known) in self.known(epoch, rows) {
            if let Some(number) = shrunk.number(at) {
                live[number] -= known;
            }
        }
        let smallest = |indices: &[u32]| indices.iter().map(|&at| live[at as usize]).min().unwrap_or(0);
        let least: Vec<i64> = shrunk.columns.all_indices().chunks_exact(entries).map(smallest).collect();
        let start = |at: usize| {
            let column = candidates[at].0;
            let new = if (epoch.first_new..epoch.known).contains(&column) { 1.0 } else { 0.0 };
            (self.totals.rate(column as usize) + SMALL).min(least[at] as f64) + new
        };
        let peeled = peeler.peel(&shrunk.columns, None, live)?;
        let mut values = vec![0.0; candidates.len()];
        peeled.then_em(&shrunk.columns, Some(&start), self.options, workspace, &mut values)?;
        // Counters with mass and no candidate, and those that peeling bared.
        let unexplained = (peeled.unexplained() / entries as i64) as u64;
        Ok(Decoded { candidates, values, least, unexplained })
    }

    /// Decodes the epoch of most weight without its last row, and sees how well that predicts the row.
    pub fn check(&self, geometry: Geometry) -> Result<Checked, DecodeError> {
        let (rows, width, per_row) =
            (usize::from(geometry.rows), geometry.width as usize, usize::from(geometry.per_row()));
        // The first of equals, whatever the number of threads.
        let heaviest = (0..self.block.len()).rev().max_by_key(|&at| self.block[at].weight);
        let Some(at) = heaviest.filter(|_| rows > 1) else { return Ok(Checked::default()) };
        let (entries, first) = ((rows - 1) * per_row, (rows - 1) * width);
        let (epoch, decoded) = (&self.block[at], self.decode_by(entries, &self.block[at..=at])?.remove(0));
        let mut row: Vec<f64> = epoch.counters.unpack_from(first).map(|y| y as f64).collect();
        let mut predict = |column: ColumnId, value: f64| {
            let indices = &self.columns.indices(column)[entries..];
            indices.iter().for_each(|&at| row[at as usize - first] -= value);
        };
        epoch.evicted.iter().for_each(|&(column, count)| predict(column, count as f64));
        decoded.candidates.iter().zip(decoded.values).for_each(|(&column, value)| predict(column, value));
        let missed = row.iter().map(|off| off.abs()).sum::<f64>() / per_row as f64;
        Ok(Checked { weight: epoch.weight as f64, missed })
    }
}
