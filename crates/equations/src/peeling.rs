//! Peeling: exact counts where the system is sparse enough.
//!
//! A counter with exactly one candidate left *is* that key's count. Subtract the key from its other counters, which
//! may leave these with one candidate, and repeat. A counter that is empty settles all its candidates at zero, too. What comes out is
//! exact, provided that every key with mass is among the candidates; what does not come out is left, with what remains
//! of the counters, to [`em`](mod@crate::em) ([`Peeling::then_em`]).
//!
//! This is the decoding of FlowRadar (Li et al., NSDI 2016) and of invertible Bloom lookup tables (Goodrich &
//! Mitzenmacher 2011). With `degree` 3, 4, 5 and random columns it completes, almost surely, while there are fewer than
//! 0.82, 0.77, 0.70 candidates a counter (those settled by empty counters do not count), and stops early above.
//!
//! **No adjacency lists.** A counter keeps how many candidates it has and the XOR of their numbers: with one left, the
//! XOR is its number. Peeling is linear in the entries. Empty counters cannot name their candidates that way, so whenever
//! the queue runs dry a sweep over the unsolved columns looks for them, at most [`MAX_SWEEPS`] times.
//!
//! **When keys are missing** from the candidates (the Bloom filter lost them), their mass is still in the counters. It shows in three
//! ways: as a peel that would leave another counter negative, or that the key's repeated index does not divide (both
//! *refused*: the counter is passed over, and the key may still come out through another one); as mass on a counter
//! with no candidate left (*unexplained*); and, unseen, as a key peeled from a counter it shares with a lost one.
//!
//! ```
//! use ucl_equations::{Columns, peeling};
//!
//! let mut columns = Columns::ones(4, 2); // 2 rows of 2 counters
//! columns.push(&[0, 2]);
//! columns.push(&[0, 3]);
//! columns.push(&[1, 3]);
//! let peeled = peeling::peel(&columns, None, &[12, 4, 5, 11])?;
//! assert_eq!(peeled.values(), [Some(5), Some(7), Some(4)]);
//! assert!(peeled.is_complete() && peeled.unexplained() == 0);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::{ColumnId, Columns};
use crate::em::{self, Options};
use crate::error::{Error, check_len};
use crate::info::{Info, Stop};
use crate::multiplicative::Workspace;

/// Sweeps for empty counters at most; what is left then is EM's, which zeroes the same keys.
pub const MAX_SWEEPS: usize = 64;

/// What peeling found, and what it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peeling {
    values: Vec<Option<i64>>,
    remaining: Vec<i64>,
    unsolved: Vec<ColumnId>,
    refused: usize,
    unexplained: i64,
}

/// Peels the candidates (all columns if `None`), which must be columns of ones, from counters `y >= 0`.
///
/// A column may stand among the candidates only once; candidates with the same counters can never be told apart, and
/// stay unsolved unless those counters empty.
pub fn peel(columns: &Columns, candidates: Option<&[ColumnId]>, y: &[i64]) -> Result<Peeling, Error> {
    if !columns.is_ones() {
        return Err(Error::NeedsOnes { solver: "peeling" });
    }
    check_len("y", columns.counters(), y.len())?;
    if let Some(at) = y.iter().position(|&y| y < 0) {
        return Err(Error::Negative { what: "y", at, value: y[at] as f64 });
    }
    if let Some(ids) = candidates
        && let Some(at) = ids.iter().position(|id| id.0 as usize >= columns.len())
    {
        return Err(Error::UnknownColumn { at, id: ids[at].0, len: columns.len() });
    }
    let mut state = State::new(columns, candidates, y);
    state.run();
    Ok(state.finish())
}

/// A counter: what remains in it, how many candidates it has, and the XOR of their positions. Side by side, for they
/// are needed together and counters are visited at random.
#[derive(Clone, Copy)]
struct Counter {
    mass: i64,
    count: u32,
    xor: u32,
}

struct State<'a> {
    columns: &'a Columns,
    candidates: Option<&'a [ColumnId]>,
    counters: Vec<Counter>,
    values: Vec<Option<i64>>,
    /// Candidates that had no value when last swept.
    open: Vec<u32>,
    /// Counters that have, or had, one candidate left. Used as a stack: the order does not matter for what is exact.
    ready: Vec<u32>,
    refused: usize,
}

impl<'a> State<'a> {
    fn new(columns: &'a Columns, candidates: Option<&'a [ColumnId]>, y: &[i64]) -> Self {
        let len = candidates.map_or(columns.len(), <[_]>::len);
        let mut state = Self {
            columns,
            candidates,
            counters: y.iter().map(|&mass| Counter { mass, count: 0, xor: 0 }).collect(),
            values: vec![None; len],
            open: Vec::new(),
            ready: Vec::new(),
            refused: 0,
        };
        for position in 0..len {
            let indices = state.indices(position);
            if indices.iter().any(|&i| y[i as usize] == 0) {
                state.values[position] = Some(0);
                continue;
            }
            state.open.push(position as u32);
            for counter in distinct(indices) {
                let counter = &mut state.counters[counter as usize];
                counter.count += 1;
                counter.xor ^= position as u32;
            }
        }
        state.ready.extend((0u32..).zip(&state.counters).filter(|(_, counter)| counter.count == 1).map(|(i, _)| i));
        state
    }

    fn indices(&self, position: usize) -> &'a [u32] {
        let id = self.candidates.map_or(ColumnId(position as u32), |ids| ids[position]);
        self.columns.indices(id)
    }

    fn run(&mut self) {
        for _ in 0..=MAX_SWEEPS {
            while let Some(counter) = self.ready.pop() {
                self.peel_from(counter);
            }
            if !self.settle_on_empty() {
                break;
            }
        }
    }

    /// Solves the only candidate of a counter, unless that would contradict its other counters.
    fn peel_from(&mut self, counter: u32) {
        let Counter { mass, count: 1, xor } = self.counters[counter as usize] else { return };
        let position = xor as usize;
        let indices = self.indices(position);
        let times = |counter: u32| indices.iter().filter(|&&i| i == counter).count() as i64;
        let value = mass / times(counter);
        let divides = value * times(counter) == mass;
        let fits = |&i: &u32| value.checked_mul(times(i)).is_some_and(|part| part <= self.counters[i as usize].mass);
        if divides && indices.iter().all(fits) {
            self.solve(position, value);
        } else {
            self.refused += 1;
        }
    }

    /// Settles every unsolved candidate that has an empty counter at zero; whether there was any.
    fn settle_on_empty(&mut self) -> bool {
        let mut any = false;
        let mut open = std::mem::take(&mut self.open);
        open.retain(|&position| {
            let position = position as usize;
            if self.values[position].is_some() {
                return false;
            }
            let empty = self.indices(position).iter().any(|&i| self.counters[i as usize].mass == 0);
            if empty {
                self.solve(position, 0);
                any = true;
            }
            !empty
        });
        self.open = open;
        any
    }

    fn solve(&mut self, position: usize, value: i64) {
        self.values[position] = Some(value);
        let indices = self.indices(position);
        for &i in indices {
            self.counters[i as usize].mass -= value;
        }
        for i in distinct(indices) {
            let counter = &mut self.counters[i as usize];
            counter.count -= 1;
            counter.xor ^= position as u32;
            if counter.count == 1 {
                self.ready.push(i);
            }
        }
    }

    fn finish(self) -> Peeling {
        let unsolved = (0..self.values.len()).filter(|&p| self.values[p].is_none());
        let id = |p: usize| self.candidates.map_or(ColumnId(p as u32), |ids| ids[p]);
        let orphans = self.counters.iter().filter(|counter| counter.count == 0);
        Peeling {
            unsolved: unsolved.map(id).collect(),
            unexplained: orphans.map(|counter| counter.mass).fold(0, i64::saturating_add),
            values: self.values,
            remaining: self.counters.iter().map(|counter| counter.mass).collect(),
            refused: self.refused,
        }
    }
}

/// The counters of a column, each once.
fn distinct(indices: &[u32]) -> impl Iterator<Item = u32> + '_ {
    indices.iter().enumerate().filter(|&(at, i)| !indices[..at].contains(i)).map(|(_, &i)| i)
}

impl Peeling {
    /// For each candidate (each column, if none were named): its count, or `None` where it could not be told.
    pub fn values(&self) -> &[Option<i64>] {
        &self.values
    }

    /// What is left of the counters when every solved key is taken away.
    pub fn remaining(&self) -> &[i64] {
        &self.remaining
    }

    /// The columns without a value, in the order of the candidates.
    pub fn unsolved(&self) -> &[ColumnId] {
        &self.unsolved
    }

    /// Whether every candidate has a value.
    pub fn is_complete(&self) -> bool {
        self.unsolved.is_empty()
    }

    /// Peels that contradicted another counter, and were not done: a sign of keys that are not among the candidates.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Mass on counters that have no unsolved candidate, summed over the counters (a lost key counts once for each of
    /// its counters that is so bared).
    pub fn unexplained(&self) -> i64 {
        self.unexplained
    }

    /// Estimates the rest by EM on what remains, and writes all values, peeled and estimated, to `out`. `start`, if
    /// given, has a value for every candidate. The residual in the result is relative to the remaining mass.
    pub fn then_em(
        &self,
        columns: &Columns,
        start: Option<&[f64]>,
        options: &Options,
        workspace: &mut Workspace,
        out: &mut [f64],
    ) -> Result<Info, Error> {
        check_len("out", self.values.len(), out.len())?;
        if let Some(start) = start {
            check_len("start", self.values.len(), start.len())?;
        }
        let y: Vec<f64> = self.remaining.iter().map(|&y| y as f64).collect();
        let open = || self.values.iter().enumerate().filter(|(_, value)| value.is_none()).map(|(at, _)| at);
        let info = if self.is_complete() {
            let residual = if y.iter().any(|&y| y > 0.0) { 1.0 } else { 0.0 };
            Info { iterations: 0, residual, stop: Stop::Trivial }
        } else {
            let start: Option<Vec<f64>> = start.map(|start| open().map(|at| start[at]).collect());
            let mut rest = vec![0.0; self.unsolved.len()];
            let info = em::em_among(columns, &self.unsolved, &y, start.as_deref(), options, workspace, &mut rest)?;
            open().zip(rest).for_each(|(at, value)| out[at] = value);
            info
        };
        for (out, value) in out.iter_mut().zip(&self.values) {
            if let Some(value) = value {
                *out = *value as f64;
            }
        }
        Ok(info)
    }
}
