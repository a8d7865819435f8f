//! One epoch: candidates, peeling, EM.

use std::cell::Cell;

use rayon::prelude::*;
use ucl_data_plane::{Geometry, ReportRule, load_limit};
use ucl_equations::peeling::Peeler;
use ucl_equations::sparse::{Candidates, Shrinker, Shrunk, Touched};
use ucl_equations::{ColumnId, Columns, Error, Workspace, em};

use super::doubt::{self, Doubt};
use super::{Checked, Epoch, Totals};
use crate::decoder::DecodeError;
use crate::segment::Segment;

/// What a key is given that has no rate yet: small, but EM could not leave an exact zero.
const SMALL: f64 = 0.01;

/// An epoch is crowded beyond so many times the load at which epochs end: peeling comes to an end
/// at 1.4 times that load, and devices are off by 6.5% in what they know of it.
const CROWDED: f64 = 1.3;

/// One counter of a row in so many is left out to check epochs that end by load.
const PARTS: u32 = 8;

/// One epoch's result: per candidate, in the order of their columns, its count and its smallest
/// counter.
#[cfg_attr(test, derive(Clone))]
pub struct Decoded {
    pub candidates: Vec<ColumnId>,
    pub values: Vec<f64>,
    pub least: Vec<i64>,
    pub unexplained: u64,
    /// Whether it had more candidates than its counters can tell apart.
    pub crowded: bool,
    /// Doubts about candidates.
    pub doubts: Vec<(ColumnId, Doubt)>,
}

/// Working memory.
#[derive(Default)]
struct Scratch {
    shrinker: Shrinker,
    live: Vec<i64>,
    peeler: Peeler,
    workspace: Workspace,
    /// Counters with mass, or candidates, of the largest epoch so far.
    largest: usize,
}

thread_local! {
    /// A thread keeps it from epoch to epoch and from block to block: getting it anew for each
    /// block was a third of all page faults of `ucl count`.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Scratch {
    /// What an epoch of more counters or candidates than this has needed is given back; others need
    /// some megabytes.
    const KEPT: usize = 1 << 16;

    /// With the thread's own, or another one where a thread that waits for others takes up a second
    /// epoch.
    fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let result = work(&mut scratch);
        if scratch.largest <= Self::KEPT {
            SCRATCH.set(Some(scratch));
        }
        result
    }
}

/// Mass of the epochs, and the columns that can have it: found for several blocks in one go,
/// because that reads every column.
#[derive(Debug)]
pub struct Search {
    /// For each epoch what is known to be in some of the counters: keys that were evicted had this
    /// much at least.
    known: Vec<Vec<(u32, i64)>>,
    /// For each epoch the counters with mass beyond that.
    touched: Vec<Touched>,
    whole: FirstRows,
    /// Without the last row, for the epochs that are checked.
    shorter: FirstRows,
}

/// The counters that epochs are decoded by: those of the first rows, so many of every key.
#[derive(Debug)]
struct FirstRows {
    entries: usize,
    candidates: Candidates,
}

impl Search {
    pub fn new(segment: &Segment, blocks: &[&[&Epoch]]) -> Result<Self, DecodeError> {
        let columns = segment.columns();
        let geometry = segment.config().shape.geometry();
        let epochs: Vec<&Epoch> = blocks.iter().flat_map(|block| block.iter()).copied().collect();
        let masses = epochs.par_iter().map(|epoch| {
            let known = known(columns, epoch);
            Ok((touched(epoch, &known)?, known))
        });
        let (touched, known): (Vec<_>, Vec<_>) = masses.collect::<Result<Vec<_>, DecodeError>>()?.into_iter().unzip();
        let entries = usize::from(geometry.per_row() * (geometry.rows - 1));
        let mut first = 0;
        let checked = blocks.iter().filter_map(|block| {
            let at = heaviest(block, geometry).map(|at| first + at);
            first += block.len();
            at
        });
        let [all, some] = Candidates::new(columns, entries, &touched, &checked.collect::<Vec<_>>());
        let whole = FirstRows { entries: columns.degree(), candidates: all };
        let shorter = FirstRows { entries, candidates: some };
        Ok(Self { known, touched, whole, shorter })
    }
}

/// The epoch of most weight, which is checked, unless there is no row to spare.
fn heaviest(block: &[&Epoch], geometry: Geometry) -> Option<usize> {
    // The first of equals, whatever the number of threads.
    (0..block.len()).rev().max_by_key(|&at| block[at].weight).filter(|_| geometry.rows > 1)
}

/// Data that the epochs of a block have in common.
pub struct BlockDecoder<'a> {
    columns: &'a Columns,
    geometry: Geometry,
    rule: ReportRule,
    block: &'a [&'a Epoch],
    totals: &'a Totals,
    options: &'a em::Options,
    /// Columns of this block that came late: their keys may have been in the epochs before.
    late: Vec<ColumnId>,
    search: &'a Search,
    /// Epochs of the search before those of this block.
    before: usize,
}

impl<'a> BlockDecoder<'a> {
    pub fn new(
        segment: &'a Segment,
        block: &'a [&'a Epoch],
        search: &'a Search,
        before: usize,
        totals: &'a Totals,
        options: &'a em::Options,
    ) -> Self {
        let late = block.iter().flat_map(|epoch| &epoch.late).copied().collect();
        Self {
            columns: segment.columns(),
            geometry: segment.config().shape.geometry(),
            rule: segment.config().rule,
            block,
            totals,
            options,
            late,
            search,
            before,
        }
    }

    /// Decodes all epochs, in parallel.
    pub fn decode(&self) -> Result<Vec<Decoded>, DecodeError> {
        // One by one: a few epochs decide how long the slower thread takes.
        let each = (0..self.block.len()).into_par_iter().with_max_len(1);
        each.map(|at| self.decode_one(at, &self.search.whole, self.touched(at))).collect()
    }

    /// The counters with mass of an epoch.
    fn touched(&self, at: usize) -> &Touched {
        &self.search.touched[self.before + at]
    }

    /// What is known to be in counters of an epoch is taken off.
    fn take_known(&self, at: usize, shrunk: &Shrunk, live: &mut [i64]) {
        for &(at, known) in &self.search.known[self.before + at] {
            if let Some(number) = shrunk.number(at) {
                live[number] -= known;
            }
        }
    }

    fn decode_one(&self, at: usize, rows: &FirstRows, touched: &Touched) -> Result<Decoded, DecodeError> {
        Scratch::with(|scratch| self.decode_with(scratch, at, rows, touched))
    }

    fn decode_with(
        &self,
        scratch: &mut Scratch,
        at: usize,
        rows: &FirstRows,
        touched: &Touched,
    ) -> Result<Decoded, DecodeError> {
        let Scratch { shrinker, live, peeler, workspace, largest } = scratch;
        let epoch = self.block[at];
        let entries = rows.entries;
        let mut candidates = rows.candidates.of_epoch(self.before + at, epoch.known as usize).to_vec();
        let late = self.late.iter().filter(|column| column.0 >= epoch.known);
        candidates.extend(late.filter(|&&column| rows.candidates.has(self.before + at, column)));
        debug_assert!(candidates.is_sorted(), "late columns come after those that were known, one after the other");
        let shrunk = shrinker.shrink(self.columns, entries, touched, &candidates);
        epoch.counters.gather(shrunk, live);
        // A number for every counter of the sketch is small beside the rest.
        *largest = (*largest).max(live.len()).max(candidates.len()).max(self.columns.counters() / 16);
        self.take_known(at, shrunk, live);
        let smallest = |indices: &[u32]| indices.iter().map(|&at| live[at as usize]).min().unwrap_or(0);
        let least: Vec<i64> = shrunk.columns.all_indices().chunks_exact(entries).map(smallest).collect();
        let start = |at: usize| self.start(epoch, candidates[at], least[at]);
        let peeled = peeler.peel(&shrunk.columns, None, live)?;
        let mut values = vec![0.0; candidates.len()];
        peeled.then_em(&shrunk.columns, Some(&start), self.options, workspace, &mut values)?;
        // Counters with mass and no candidate, and those that peeling bared.
        let unexplained = (peeled.unexplained() / entries as i128).clamp(0, u64::MAX.into()) as u64;
        let named = |(ColumnId(place), doubt): (ColumnId, Doubt)| (candidates[place as usize], doubt);
        let doubts = doubt::of_epoch(&shrunk.columns, peeled, &values).into_iter().map(named).collect();
        let crowded = candidates.len() as f64 > CROWDED * load_limit(self.geometry) * live.len() as f64;
        Ok(Decoded { candidates, values, least, unexplained, crowded, doubts })
    }

    /// Decodes the epoch of most weight without its last row, and sees how well that predicts the
    /// row. Epochs that end by load cannot do without a whole row: of theirs a part is left out.
    pub fn check(&self) -> Result<Checked, DecodeError> {
        let Some(at) = heaviest(self.block, self.geometry) else { return Ok(Checked::default()) };
        match self.rule {
            ReportRule::Generations => Scratch::with(|scratch| self.check_part(scratch, at)),
            _ => self.check_row(at),
        }
    }

    /// Decodes an epoch with some counters of its last row added up to one, which tells no more
    /// than the total does, and sees how well that predicts each of them.
    fn check_part(&self, scratch: &mut Scratch, at: usize) -> Result<Checked, DecodeError> {
        let Scratch { shrinker, live, peeler, workspace, .. } = scratch;
        let epoch = self.block[at];
        let width = self.geometry.width;
        let degree = self.columns.degree();
        let first = self.geometry.counters() as u32 - width;
        let part = first..first + width.div_ceil(PARTS);
        let last = |column: &ColumnId| self.columns.indices(*column)[degree - 1];
        // A key may have mass in a counter that is left out, whatever is in it.
        let Search { whole, shorter, .. } = self.search;
        let place = self.before + at;
        let known = epoch.known as usize;
        let candidates = shorter.candidates.of_epoch(place, known).iter();
        let can_have = |column: &&ColumnId| part.contains(&last(column)) || whole.candidates.has(place, **column);
        let candidates: Vec<ColumnId> = candidates.filter(can_have).copied().collect();
        let mut touched = self.touched(at).clone();
        part.clone().for_each(|counter| touched.insert(counter));
        let shrunk = shrinker.shrink(self.columns, degree, &touched, &candidates);
        epoch.counters.gather(shrunk, live);
        self.take_known(at, shrunk, live);
        // Counters keep their order, so those of the part follow each other.
        let Some(joint) = shrunk.number(part.start) else { return Ok(Checked::default()) };
        let own = joint..joint + part.len();
        let left_out: Vec<i64> = live[own.clone()].to_vec();
        live[own.clone()].fill(0);
        live[joint] = left_out.iter().sum();
        let mut columns = Columns::ones(live.len(), degree);
        let mut indices = vec![0; degree];
        for column in shrunk.columns.all_indices().chunks_exact(degree) {
            indices.copy_from_slice(column);
            let last = &mut indices[degree - 1];
            *last = if own.contains(&(*last as usize)) { joint as u32 } else { *last };
            columns.push(&indices);
        }
        let smallest = |indices: &[u32]| indices.iter().map(|&at| live[at as usize]).min().unwrap_or(0);
        let least: Vec<i64> = columns.all_indices().chunks_exact(degree).map(smallest).collect();
        let start = |at: usize| self.start(epoch, candidates[at], least[at]);
        let peeled = peeler.peel(&columns, None, live)?;
        let mut values = vec![0.0; candidates.len()];
        peeled.then_em(&columns, Some(&start), self.options, workspace, &mut values)?;
        let mut off: Vec<f64> = left_out.iter().map(|&y| y as f64).collect();
        for (column, value) in candidates.iter().zip(values).filter(|(column, _)| part.contains(&last(column))) {
            off[(last(column) - part.start) as usize] -= value;
        }
        let missed = off.iter().map(|off| off.abs()).sum();
        Ok(Checked { weight: left_out.iter().sum::<i64>() as f64, missed })
    }

    /// Where EM starts for a column with this smallest counter.
    fn start(&self, epoch: &Epoch, column: ColumnId, least: i64) -> f64 {
        let new = if (epoch.first_new..epoch.known).contains(&column.0) { 1.0 } else { 0.0 };
        (self.totals.rate(column.0 as usize) + SMALL).min(least as f64) + new
    }

    fn check_row(&self, at: usize) -> Result<Checked, DecodeError> {
        let first = self.geometry.counters() - self.geometry.width as usize;
        let shorter = &self.search.shorter;
        let entries = shorter.entries;
        let decoded = self.decode_one(at, shorter, &self.touched(at).of_first(first))?;
        let epoch = self.block[at];
        let mut row: Vec<f64> = epoch.counters.unpack_from(first).map(|y| y as f64).collect();
        let mut predict = |column: ColumnId, value: f64| {
            let indices = &self.columns.indices(column)[entries..];
            indices.iter().for_each(|&at| row[at as usize - first] -= value);
        };
        epoch.evicted.iter().for_each(|&(column, count)| predict(column, count as f64));
        decoded.candidates.iter().zip(decoded.values).for_each(|(&column, value)| predict(column, value));
        let missed = row.iter().map(|off| off.abs()).sum::<f64>() / f64::from(self.geometry.per_row());
        Ok(Checked { weight: epoch.weight as f64, missed })
    }
}

/// The counters with mass beyond what is known of them.
fn touched(epoch: &Epoch, known: &[(u32, i64)]) -> Result<Touched, DecodeError> {
    let mut touched = epoch.counters.touched();
    for &(at, known) in known {
        match epoch.counters.get(at as usize) - known {
            0 => touched.remove(at),
            left if left < 0 => return Err(Error::Negative { what: "y", at: at as usize, value: left as f64 }.into()),
            _ => {}
        }
    }
    Ok(touched)
}

/// What is known to be in some of the counters, in their order.
fn known(columns: &Columns, epoch: &Epoch) -> Vec<(u32, i64)> {
    let of_key = |&(column, count): &(ColumnId, u64)| columns.indices(column).iter().map(move |&at| (at, count as i64));
    let mut known: Vec<(u32, i64)> = epoch.evicted.iter().flat_map(of_key).collect();
    known.sort_unstable();
    known.dedup_by(|next, first| {
        let same = next.0 == first.0;
        first.1 += if same { next.1 } else { 0 };
        same
    });
    known
}
