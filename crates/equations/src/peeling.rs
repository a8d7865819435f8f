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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    let mut peeler = Peeler::default();
    peeler.peel(columns, candidates, y)?;
    Ok(peeler.peeling)
}

/// Peels one system after another in the same memory: fresh memory for each took longer to get than to work on.
#[derive(Clone, Debug, Default)]
pub struct Peeler {
    counters: Vec<Counter>,
    open: Vec<u32>,
    ready: Stack,
    peeling: Peeling,
}

impl Peeler {
    /// As [`peel`].
    pub fn peel(&mut self, columns: &Columns, candidates: Option<&[ColumnId]>, y: &[i64]) -> Result<&Peeling, Error> {
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
        // The usual columns by their degree: the compiler unrolls all loops over a column's counters.
        match columns.degree() {
            3 if all_distinct::<3>(columns) => State::<3> { columns, candidates, memory: self }.run(y),
            4 if all_distinct::<4>(columns) => State::<4> { columns, candidates, memory: self }.run(y),
            _ => State::<ANY> { columns, candidates, memory: self }.run(y),
        }
        Ok(&self.peeling)
    }
}

/// Whether no column has a counter twice.
fn all_distinct<const DEGREE: usize>(columns: &Columns) -> bool {
    let twice = |column: &[u32; DEGREE]| {
        (1..DEGREE).fold(false, |any, at| (0..at).fold(any, |any, before| any | (column[at] == column[before])))
    };
    !columns.all_indices().as_chunks::<DEGREE>().0.iter().fold(false, |any, column| any | twice(column))
}

/// Counters that are looked at together.
const TOGETHER: usize = 32;

/// Stands for a degree that only the columns know, and for columns that may have a counter twice.
const ANY: usize = 0;

/// A counter: what remains in it, how many candidates it has, and the XOR of their positions. Side by side, for they
/// are needed together and counters are visited at random.
#[derive(Clone, Copy, Debug)]
struct Counter {
    mass: i64,
    count: u32,
    xor: u32,
}

/// Counters that have, or had, one candidate left, the uppermost first: the order does not matter for what is exact. There
/// is room for all, and for one that is written down but not kept: whether a counter has one candidate left cannot be
/// foreseen, so nothing branches on it.
#[derive(Clone, Debug, Default)]
struct Stack {
    items: Vec<u32>,
    len: usize,
}

impl Stack {
    fn clear(&mut self, counters: usize) {
        self.items.resize(counters + 1, 0);
        self.len = 0;
    }

    #[inline(always)]
    fn push_if(&mut self, keep: bool, counter: u32) {
        self.items[self.len] = counter;
        self.len += usize::from(keep);
    }

    #[inline(always)]
    fn pop(&mut self) -> u32 {
        self.len -= 1;
        self.items[self.len]
    }
}

/// A peeling under way.
struct State<'a, const DEGREE: usize> {
    columns: &'a Columns,
    candidates: Option<&'a [ColumnId]>,
    memory: &'a mut Peeler,
}

impl<'a, const DEGREE: usize> State<'a, DEGREE> {
    fn run(mut self, y: &[i64]) {
        self.begin(y);
        for _ in 0..=MAX_SWEEPS {
            while self.memory.ready.len > 0 {
                self.peel_some();
            }
            if !self.settle_on_empty() {
                break;
            }
        }
        self.finish();
    }

    fn begin(&mut self, y: &[i64]) {
        let len = self.candidates.map_or(self.columns.len(), <[_]>::len);
        self.memory.counters.clear();
        self.memory.counters.extend(y.iter().map(|&mass| Counter { mass, count: 0, xor: 0 }));
        self.memory.open.clear();
        self.memory.ready.clear(y.len());
        self.memory.peeling.values.clear();
        self.memory.peeling.values.resize(len, None);
        self.memory.peeling.refused = 0;
        for position in 0..len {
            let indices = self.indices(position);
            if self.has_empty(indices) {
                self.memory.peeling.values[position] = Some(0);
                continue;
            }
            self.memory.open.push(position as u32);
            for (at, &i) in indices.iter().enumerate() {
                if DEGREE == ANY && indices[..at].contains(&i) {
                    continue;
                }
                let counter = &mut self.memory.counters[i as usize];
                counter.count += 1;
                counter.xor ^= position as u32;
            }
        }
        for (at, counter) in (0u32..).zip(&self.memory.counters) {
            self.memory.ready.push_if(counter.count == 1, at);
        }
    }

    #[inline(always)]
    fn indices(&self, position: usize) -> &'a [u32] {
        let at = self.candidates.map_or(position, |ids| ids[position].0 as usize);
        let degree = if DEGREE == ANY { self.columns.degree() } else { DEGREE };
        &self.columns.all_indices()[at * degree..][..degree]
    }

    /// Peels from the uppermost counters that are ready. Those that no longer are (their candidate was solved by way of another
    /// one) are sorted out first, without a branch, so that the memory of all is waited for at once and not one by one.
    fn peel_some(&mut self) {
        let (mut some, mut len) = ([0; TOGETHER], 0);
        for _ in 0..TOGETHER.min(self.memory.ready.len) {
            some[len] = self.memory.ready.pop();
            len += usize::from(self.memory.counters[some[len] as usize].count == 1);
        }
        some[..len].iter().for_each(|&counter| self.peel_from(counter));
    }

    /// Solves the only candidate of a counter, unless that would contradict its other counters.
    #[inline(always)]
    fn peel_from(&mut self, counter: u32) {
        let Counter { mass, count: 1, xor } = self.memory.counters[counter as usize] else { return };
        let position = xor as usize;
        let indices = self.indices(position);
        let value = if DEGREE == ANY {
            let times = |counter: u32| indices.iter().filter(|&&i| i == counter).count() as i64;
            let fits = |value: i64, i: u32| value.checked_mul(times(i)).is_some_and(|part| part <= self.mass(i));
            let value = mass / times(counter);
            (value * times(counter) == mass && indices.iter().all(|&i| fits(value, i))).then_some(value)
        } else {
            let least = indices.iter().fold(mass, |least, &i| least.min(self.mass(i)));
            (least == mass).then_some(mass)
        };
        match value {
            Some(value) => self.solve(position, value),
            None => self.memory.peeling.refused += 1,
        }
    }

    #[inline(always)]
    fn mass(&self, counter: u32) -> i64 {
        self.memory.counters[counter as usize].mass
    }

    /// Whether one of these counters is empty.
    #[inline(always)]
    fn has_empty(&self, indices: &[u32]) -> bool {
        indices.iter().fold(false, |any, &i| any | (self.mass(i) == 0))
    }

    /// Settles every unsolved candidate that has an empty counter at zero; whether there was any.
    fn settle_on_empty(&mut self) -> bool {
        let mut any = false;
        // Candidates that had no value when last swept.
        let mut open = std::mem::take(&mut self.memory.open);
        open.retain(|&position| {
            let position = position as usize;
            if self.memory.peeling.values[position].is_some() {
                return false;
            }
            let empty = self.has_empty(self.indices(position));
            if empty {
                self.solve(position, 0);
                any = true;
            }
            !empty
        });
        self.memory.open = open;
        any
    }

    #[inline(always)]
    fn solve(&mut self, position: usize, value: i64) {
        let indices = self.indices(position);
        let Peeler { counters, ready, peeling, .. } = &mut *self.memory;
        peeling.values[position] = Some(value);
        for (at, &i) in indices.iter().enumerate() {
            let counter = &mut counters[i as usize];
            counter.mass -= value;
            if DEGREE == ANY && indices[..at].contains(&i) {
                continue;
            }
            counter.count -= 1;
            counter.xor ^= position as u32;
            ready.push_if(counter.count == 1, i);
        }
    }

    fn finish(self) {
        let Peeler { counters, peeling, .. } = self.memory;
        let open = peeling.values.iter().enumerate().filter(|(_, value)| value.is_none());
        peeling.unsolved.clear();
        peeling.unsolved.extend(open.map(|(p, _)| self.candidates.map_or(ColumnId(p as u32), |ids| ids[p])));
        let orphans = counters.iter().filter(|counter| counter.count == 0);
        peeling.unexplained = orphans.map(|counter| counter.mass).fold(0, i64::saturating_add);
        peeling.remaining.clear();
        peeling.remaining.extend(counters.iter().map(|counter| counter.mass));
    }
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

    /// Estimates the rest by EM on what remains, and writes all values, peeled and estimated, to `out`. `start` is asked for
    /// the places of those candidates that have no value (ones if `None`). The residual in the result is relative to the
    /// remaining mass.
    pub fn then_em(
        &self,
        columns: &Columns,
        start: Option<&dyn Fn(usize) -> f64>,
        options: &Options,
        workspace: &mut Workspace,
        out: &mut [f64],
    ) -> Result<Info, Error> {
        check_len("out", self.values.len(), out.len())?;
        let y: Vec<f64> = self.remaining.iter().map(|&y| y as f64).collect();
        let open = || self.values.iter().enumerate().filter(|(_, value)| value.is_none()).map(|(at, _)| at);
        let info = if self.is_complete() {
            let residual = if y.iter().any(|&y| y > 0.0) { 1.0 } else { 0.0 };
            Info { iterations: 0, residual, stop: Stop::Trivial }
        } else {
            let start: Option<Vec<f64>> = start.map(|start| open().map(start).collect());
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
