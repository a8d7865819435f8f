//! One epoch: candidates, peeling, EM.

use std::sync::{Mutex, PoisonError};

use ucl_data_plane::Geometry;
use ucl_equations::peeling::Peeler;
use ucl_equations::sparse::{ByCounter, Shrinker, Touched};
use ucl_equations::{ColumnId, Columns, Workspace, em};

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
    y: Vec<i64>,
    touched: Touched,
    shrinker: Shrinker,
    live: Vec<i64>,
    peeler: Peeler,
    workspace: Workspace,
}

/// What the epochs of a block have in common.
pub struct Decoder<'a> {
    columns: &'a Columns,
    totals: &'a Totals,
    options: &'a em::Options,
    /// Columns of this block that came late: their keys may have been in the epochs before.
    late: Vec<ColumnId>,
    /// Where it finds candidates faster than going through all columns.
    index: Option<ByCounter>,
    /// One for every thread that has been at work.
    scratch: Mutex<Vec<Scratch>>,
}

impl<'a> Decoder<'a> {
    pub fn new(columns: &'a Columns, block: &[Epoch], totals: &'a Totals, options: &'a em::Options) -> Self {
        let late = block.iter().flat_map(|epoch| &epoch.late).copied().collect();
        // An item touches one first counter; some share one.
        let counters = (columns.counters() / columns.degree()).max(1) as f64;
        let share = |epoch: &Epoch| 1.0 - (-(epoch.weight as f64) / counters).exp();
        let mean = block.iter().map(share).sum::<f64>() / block.len().max(1) as f64;
        let index = ByCounter::pays(columns, block.len(), mean).then(|| ByCounter::new(columns));
        Self { columns, totals, options, late, index, scratch: Mutex::default() }
    }

    pub fn decode(&self, epoch: &Epoch) -> Result<Decoded, DecodeError> {
        self.decode_by(self.columns.degree(), epoch)
    }

    /// Decodes by the first `entries` counters of every key.
    fn decode_by(&self, entries: usize, epoch: &Epoch) -> Result<Decoded, DecodeError> {
        let pool = || self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let decoded = self.decode_with(&mut scratch, entries, epoch);
        pool().push(scratch);
        decoded
    }

    fn decode_with(&self, scratch: &mut Scratch, entries: usize, epoch: &Epoch) -> Result<Decoded, DecodeError> {
        let Scratch { y, touched, shrinker, live, peeler, workspace } = scratch;
        let columns = self.columns;
        // The rows that these counters are in.
        let rows = columns.counters() * entries / columns.degree();
        epoch.counters.unpack_into(y);
        for &(column, count) in &epoch.evicted {
            for &at in columns.indices(column) {
                y[at as usize] -= count as i64;
            }
        }
        touched.refill(&y[..rows])?;
        let (mut candidates, known) = (Vec::new(), epoch.known as usize);
        match &self.index {
            Some(index) => index.find(columns, entries, known, touched, &mut candidates),
            None => touched.scan(columns, entries, known, &mut candidates),
        }
        let late = self.late.iter().filter(|column| column.0 >= epoch.known);
        candidates.extend(late.filter(|&&column| touched.holds_all(&columns.indices(column)[..entries])));
        let shrunk = shrinker.shrink(columns, entries, touched, &candidates);
        live.clear();
        live.extend(shrunk.counters.iter().map(|&at| y[at as usize]));
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
    pub fn check(&self, geometry: Geometry, block: &[Epoch]) -> Result<Checked, DecodeError> {
        // The first of equals, whatever the number of threads.
        let Some(epoch) = block.iter().rev().max_by_key(|epoch| epoch.weight) else { return Ok(Checked::default()) };
        let (rows, width, per_row) =
            (usize::from(geometry.rows), geometry.width as usize, usize::from(geometry.per_row()));
        if rows < 2 {
            return Ok(Checked::default());
        }
        let (entries, first) = ((rows - 1) * per_row, (rows - 1) * width);
        let decoded = self.decode_by(entries, epoch)?;
        let mut row: Vec<f64> = epoch.counters.unpack()[first..].iter().map(|&y| y as f64).collect();
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
