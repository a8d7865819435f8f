//! Peeling: exact counts where the system is sparse enough.
//!
//! A counter with exactly one candidate left *is* that key's count. Subtract the key from its other
//! counters, which may leave these with one candidate, and repeat. A counter that is empty settles
//! all its candidates at zero, too. What comes out is exact, provided that every key with mass is
//! among the candidates; what does not come out is left, with what remains of the counters, to
//! [`em`](mod@crate::em) ([`Peeling::then_em`]).
//!
//! This is the decoding of FlowRadar (Li et al., NSDI 2016) and of invertible Bloom lookup tables
//! (Goodrich & Mitzenmacher 2011). With `degree` 3, 4, 5 and random columns it completes, almost
//! surely, while there are fewer than 0.82, 0.77, 0.70 candidates a counter (those settled by empty
//! counters do not count), and stops early above.
//!
//! **No adjacency lists.** A counter keeps how many candidates it has and the XOR of their numbers:
//! with one left, the XOR is its number. Peeling is linear in the entries. Empty counters cannot
//! name their candidates that way, so whenever the queue runs dry a sweep over the unsolved columns
//! looks for them, at most [`MAX_SWEEPS`] times.
//!
//! **When keys are missing** from the candidates (the Bloom filter lost them), their mass is still
//! in the counters. It shows in three ways: as a peel that would leave another counter negative, or
//! that the key's repeated index does not divide (both *refused*: the counter is passed over, and
//! the key may still come out through another one); as mass on a counter with no candidate left
//! (*unexplained*); and, unseen, as a key peeled from a counter it shares with a lost one.
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

mod counter;

use self::counter::{Counter, Narrow, Wide};
use crate::columns::{ColumnId, Columns};
use crate::em::{self, Options};
use crate::error::{Error, check_len};
use crate::info::{Info, Stop};
use crate::multiplicative::Workspace;

/// Sweeps for empty counters at most; what is left then is EM's, which zeroes the same keys.
pub const MAX_SWEEPS: usize = 64;

/// No count.
const NONE: i64 = -1;

/// Result of peeling: the solved counts and the rest of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peeling {
    /// [`NONE`] where it could not be told.
    values: Vec<i64>,
    remaining: Vec<i64>,
    unsolved: Vec<ColumnId>,
    refused: usize,
    unexplained: i128,
}

/// Peels the candidates (all columns if `None`) from counters `y >= 0`. The columns must be columns
/// of ones.
///
/// A column may stand among the candidates only once; candidates with the same counters can never
/// be told apart, and stay unsolved unless those counters empty.
///
/// # Errors
/// If `y` has the wrong length or holds a negative number, the columns have other coefficients than
/// ones, or a candidate is not a column.
pub fn peel(columns: &Columns, candidates: Option<&[ColumnId]>, y: &[i64]) -> Result<Peeling, Error> {
    let mut peeler = Peeler::default();
    peeler.peel(columns, candidates, y)?;
    Ok(peeler.peeling)
}

/// Peels several systems and reuses its memory between them. Fresh memory for each took longer to
/// get than to work on.
#[derive(Clone, Debug, Default)]
pub struct Peeler {
    wide: Vec<Wide>,
    narrow: Vec<Narrow>,
    open: Vec<u32>,
    ready: Vec<u32>,
    peeling: Peeling,
}

impl Peeler {
    /// Peels one system. See [`peel`].
    pub fn peel(&mut self, columns: &Columns, candidates: Option<&[ColumnId]>, y: &[i64]) -> Result<&Peeling, Error> {
        if !columns.is_ones() {
            return Err(Error::NeedsOnes { solver: "peeling" });
        }
        check_len("y", columns.counters(), y.len())?;
        // Every bit that is set anywhere: negative if one is, and not below the largest.
        let all = y.iter().fold(0, |all, &y| all | y);
        if all < 0
            && let Some(at) = y.iter().position(|&y| y < 0)
        {
            return Err(Error::Negative { what: "y", at, value: y[at] as f64 });
        }
        if let Some(ids) = candidates
            && let Some(at) = ids.iter().position(|id| id.0 as usize >= columns.len())
        {
            return Err(Error::UnknownColumn { at, id: ids[at].0, len: columns.len() });
        }
        let fits = Narrow::holds(candidates.map_or(columns.len(), <[_]>::len), all);
        // The usual columns by their degree: the compiler unrolls all loops over a column's
        // counters.
        match columns.degree() {
            3 if all_distinct::<3>(columns) && fits => self.run::<Narrow, 3>(columns, candidates, y),
            3 if all_distinct::<3>(columns) => self.run::<Wide, 3>(columns, candidates, y),
            4 if all_distinct::<4>(columns) && fits => self.run::<Narrow, 4>(columns, candidates, y),
            4 if all_distinct::<4>(columns) => self.run::<Wide, 4>(columns, candidates, y),
            _ => self.run::<Wide, ANY>(columns, candidates, y),
        }
        Ok(&self.peeling)
    }

    fn run<C: Counter, const DEGREE: usize>(&mut self, columns: &Columns, candidates: Option<&[ColumnId]>, y: &[i64]) {
        let Peeling { values, remaining, unsolved, refused, unexplained } = &mut self.peeling;
        values.clear();
        values.resize(candidates.map_or(columns.len(), <[_]>::len), NONE);
        let counters = C::kept(&mut self.wide, &mut self.narrow);
        counters.clear();
        counters.extend(y.iter().map(|&mass| C::new(mass)));
        self.open.clear();
        // Room for all, and for one that is written down but not kept.
        self.ready.resize(y.len() + 1, 0);
        // Slices and numbers of its own, no references to vectors: the compiler keeps them all in
        // registers.
        let mut state = State::<C, DEGREE> {
            indices: columns.all_indices(),
            degree: columns.degree(),
            candidates,
            counters,
            values,
            ready: Stack { items: &mut self.ready, len: 0 },
            refused: 0,
        };
        state.begin(&mut self.open);
        for _ in 0..=MAX_SWEEPS {
            while state.ready.len > 0 {
                state.peel_some();
            }
            if !state.settle_on_empty(&mut self.open) {
                break;
            }
        }
        *refused = state.refused;
        unsolved.clear();
        let open = self.open.iter().filter(|&&position| values[position as usize] == NONE);
        unsolved.extend(open.map(|&p| candidates.map_or(ColumnId(p), |ids| ids[p as usize])));
        remaining.clear();
        remaining.extend(counters.iter().map(|counter| counter.mass()));
        // Most are empty by now, often all of them.
        *unexplained = 0;
        if remaining.iter().fold(0, |all, &mass| all | mass) != 0 {
            let orphans = counters.iter().filter(|counter| counter.mass() != 0 && counter.candidates() == 0);
            *unexplained = orphans.map(|counter| i128::from(counter.mass())).sum();
        }
    }
}

/// Returns true if no column has a counter twice.
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

/// Counters that have, or had, one candidate left, the uppermost first: the order does not matter
/// for what is exact. Whether a counter has one candidate left cannot be foreseen, so nothing
/// branches on it.
struct Stack<'a> {
    items: &'a mut [u32],
    len: usize,
}

impl Stack<'_> {
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
struct State<'a, C, const DEGREE: usize> {
    indices: &'a [u32],
    degree: usize,
    candidates: Option<&'a [ColumnId]>,
    counters: &'a mut [C],
    values: &'a mut [i64],
    ready: Stack<'a>,
    refused: usize,
}

impl<'a, C: Counter, const DEGREE: usize> State<'a, C, DEGREE> {
    /// Every candidate joins its counters, unless one of them is empty. `open` gets those that did.
    #[inline(always)]
    fn begin(&mut self, open: &mut Vec<u32>) {
        for position in 0..self.values.len() {
            let indices = self.indices(position);
            if self.has_empty(indices) {
                self.values[position] = 0;
                continue;
            }
            open.push(position as u32);
            for (at, &i) in indices.iter().enumerate() {
                if DEGREE == ANY && indices[..at].contains(&i) {
                    continue;
                }
                self.counters[i as usize].join(position as u32);
            }
        }
        for (at, counter) in (0u32..).zip(&*self.counters) {
            self.ready.push_if(counter.candidates() == 1, at);
        }
    }

    #[inline(always)]
    fn indices(&self, position: usize) -> &'a [u32] {
        let at = self.candidates.map_or(position, |ids| ids[position].0 as usize);
        let degree = if DEGREE == ANY { self.degree } else { DEGREE };
        &self.indices[at * degree..][..degree]
    }

    /// Peels from the uppermost counters that are ready. Those that no longer are (their candidate
    /// was solved by way of another one) are sorted out first, without a branch, so that the memory
    /// of all is waited for at once and not one by one.
    #[inline(always)]
    fn peel_some(&mut self) {
        let mut some = [0; TOGETHER];
        let mut len = 0;
        for _ in 0..TOGETHER.min(self.ready.len) {
            some[len] = self.ready.pop();
            len += usize::from(self.counters[some[len] as usize].candidates() == 1);
        }
        some[..len].iter().for_each(|&counter| self.peel_from(counter));
    }

    /// Solves the only candidate of a counter, unless that would contradict its other counters.
    #[inline(always)]
    fn peel_from(&mut self, counter: u32) {
        let state = self.counters[counter as usize];
        if state.candidates() != 1 {
            return;
        }
        let mass = state.mass();
        let position = state.only() as usize;
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
            None => self.refused += 1,
        }
    }

    #[inline(always)]
    fn mass(&self, counter: u32) -> i64 {
        self.counters[counter as usize].mass()
    }

    /// Returns true if one of these counters is empty.
    #[inline(always)]
    fn has_empty(&self, indices: &[u32]) -> bool {
        indices.iter().fold(false, |any, &i| any | (self.mass(i) == 0))
    }

    /// Settles every open candidate that has an empty counter at zero; whether there was any.
    /// `open` keeps those without a value.
    #[inline(always)]
    fn settle_on_empty(&mut self, open: &mut Vec<u32>) -> bool {
        let mut any = false;
        open.retain(|&position| {
            let position = position as usize;
            if self.values[position] != NONE {
                return false;
            }
            let empty = self.has_empty(self.indices(position));
            if empty {
                self.solve(position, 0);
                any = true;
            }
            !empty
        });
        any
    }

    #[inline(always)]
    fn solve(&mut self, position: usize, value: i64) {
        let indices = self.indices(position);
        self.values[position] = value;
        for (at, &i) in indices.iter().enumerate() {
            let counter = &mut self.counters[i as usize];
            counter.explain(value);
            if DEGREE == ANY && indices[..at].contains(&i) {
                continue;
            }
            counter.leave(position as u32);
            self.ready.push_if(counter.candidates() == 1, i);
        }
    }
}

impl Peeling {
    /// Returns the count of each candidate (of each column, if none were named), or `None` where it
    /// is not determined.
    pub fn values(&self) -> Vec<Option<i64>> {
        self.values.iter().map(|&value| Some(value).filter(|&value| value != NONE)).collect()
    }

    /// Returns the counters without the mass of all solved keys.
    pub fn remaining(&self) -> &[i64] {
        &self.remaining
    }

    /// Returns the columns without a value, in the order of the candidates.
    pub fn unsolved(&self) -> &[ColumnId] {
        &self.unsolved
    }

    /// Returns true if every candidate has a value.
    pub fn is_complete(&self) -> bool {
        self.unsolved.is_empty()
    }

    /// Number of steps refused because they contradicted another counter. It is a sign of keys that
    /// are not among the candidates.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Mass on counters without unsolved candidates, summed over the counters. A lost key counts
    /// once for each such counter.
    pub fn unexplained(&self) -> i128 {
        self.unexplained
    }

    /// Estimates the remaining candidates by EM and writes all values, peeled and estimated, to
    /// `out`. `start` gives the start values of the candidates without a value (ones if `None`).
    /// The residual in the result is relative to the remaining mass.
    pub fn then_em(
        &self,
        columns: &Columns,
        start: Option<&dyn Fn(usize) -> f64>,
        options: &Options,
        workspace: &mut Workspace,
        out: &mut [f64],
    ) -> Result<Info, Error> {
        check_len("out", self.values.len(), out.len())?;
        out.iter_mut().zip(&self.values).for_each(|(out, &value)| *out = value as f64);
        let info = if self.is_complete() {
            let residual = if self.remaining.iter().any(|&y| y > 0) { 1.0 } else { 0.0 };
            Info { iterations: 0, residual, stop: Stop::Trivial }
        } else {
            let mut y = std::mem::take(&mut workspace.remaining);
            y.clear();
            y.extend(self.remaining.iter().map(|&y| y as f64));
            let open: Vec<usize> = (0..out.len()).filter(|&at| self.values[at] == NONE).collect();
            let start: Option<Vec<f64>> = start.map(|start| open.iter().map(|&at| start(at)).collect());
            let mut rest = vec![0.0; open.len()];
            let info = em::em_among(columns, &self.unsolved, &y, start.as_deref(), options, workspace, &mut rest)?;
            workspace.remaining = y;
            open.into_iter().zip(rest).for_each(|(at, value)| out[at] = value);
            info
        };
        Ok(info)
    }
}
