//! How far decoded counts may be off: what the likely range is made of.
//!
//! An epoch that *peeled whole* (every candidate has a value, and no counter has anything left) has
//! one solution. A key that was lost, and so is no candidate, cannot hide in it: in every row its
//! count would have to be that of other candidates, added and taken off. With `n` candidates over
//! rows of `w` counters the chance that one of them has the very counters of a lost key is
//! `n / w^rows`, and sums of several are rarer still. Counts of such epochs are taken for certain.
//!
//! Other epochs leave doubts about some of their candidates:
//!
//! - **Not told apart.** A candidate without a value has at most what is left in each of its
//!   counters, and at least what the others there cannot have.
//! - **Something left over.** A counter with mass and no candidate for it was touched by a lost
//!   key, or by a candidate that was given too little: its candidates may have as much more.
//! - **Given too much.** Of a candidate that was given too little, something is left over in most
//!   counters. Where that is so for two at least, the others in the rest of its counters may have
//!   been given too much.
//!
//! A key's doubts add up over epochs. Not seen are the epochs before a key became known, in which
//! it may have been lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Inconsistent, ensure};
use ucl_equations::peeling::Peeling;
use ucl_equations::{ColumnId, Columns};

/// Distances that a count may be below and above its estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    pub below: f64,
    pub above: f64,
}

impl Doubt {
    fn add(&mut self, other: Self) {
        self.below += other.below;
        self.above += other.above;
    }
}

/// The doubts that an epoch leaves, by the number of the candidate's column. `values` are what the
/// candidates were decoded to.
pub fn of_epoch(columns: &Columns, peeled: &Peeling, values: &[f64]) -> Vec<(ColumnId, Doubt)> {
    let left = peeled.remaining();
    if left.iter().fold(0, |all, &left| all | left) == 0 {
        // Counters without mass settle every candidate.
        return Vec::new();
    }
    let mut doubts = Vec::new();
    let mut stray = left.to_vec();
    not_told_apart(columns, peeled, values, &mut doubts, &mut stray);
    if stray.iter().any(|&left| left != 0) {
        left_over(columns, &stray, values, &mut doubts);
    }
    doubts
}

/// Candidates without a value. Their counters are taken out of `stray`.
fn not_told_apart(
    columns: &Columns,
    peeled: &Peeling,
    values: &[f64],
    doubts: &mut Vec<(ColumnId, Doubt)>,
    stray: &mut [i64],
) {
    let left = peeled.remaining();
    let most = |column: ColumnId| columns.indices(column).iter().map(|&at| left[at as usize]).min().unwrap_or(0);
    // What the candidates of each counter can have together.
    let mut together = vec![0i64; left.len()];
    for &column in peeled.unsolved() {
        for &at in columns.indices(column) {
            together[at as usize] = together[at as usize].saturating_add(most(column));
            stray[at as usize] = 0;
        }
    }
    for &column in peeled.unsolved() {
        let most = most(column);
        let others_cannot = |&at: &u32| left[at as usize].saturating_sub(together[at as usize] - most);
        let least = columns.indices(column).iter().map(others_cannot).max().unwrap_or(0).clamp(0, most);
        let value = values[column.0 as usize];
        doubts.push((column, Doubt { below: (value - least as f64).max(0.0), above: (most as f64 - value).max(0.0) }));
    }
}

/// Candidates of counters with something left over, and those that may have taken it from them.
fn left_over(columns: &Columns, stray: &[i64], values: &[f64], doubts: &mut Vec<(ColumnId, Doubt)>) {
    // For each counter what some candidate there may have been given too much.
    let mut too_much = vec![0i64; stray.len()];
    let mut too_little = Vec::with_capacity(values.len());
    for column in (0..values.len() as u32).map(ColumnId) {
        let indices = columns.indices(column);
        let by = indices.iter().map(|&at| stray[at as usize]).max().unwrap_or(0);
        too_little.push(by);
        if indices.iter().filter(|&&at| stray[at as usize] != 0).count() >= 2 {
            for &at in indices.iter().filter(|&&at| stray[at as usize] == 0) {
                too_much[at as usize] = too_much[at as usize].max(by);
            }
        }
    }
    for ((column, &value), too_little) in (0..).map(ColumnId).zip(values).zip(too_little) {
        let taken = columns.indices(column).iter().map(|&at| too_much[at as usize]).max().unwrap_or(0);
        let doubt = match too_little {
            0 => Doubt { below: (taken as f64).min(value), above: 0.0 },
            _ => Doubt { below: 0.0, above: too_little as f64 },
        };
        if doubt != Doubt::default() {
            doubts.push((column, doubt));
        }
    }
}

/// The doubts about columns, added up over epochs: the section of that name in a state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubts {
    columns: BTreeMap<ColumnId, Doubt>,
    /// Epochs are part of the sums whose doubts nobody knows: an earlier version decoded them.
    #[serde(skip)]
    untold: bool,
}

impl Doubts {
    /// Those of epochs that an earlier version decoded.
    pub(crate) fn untold() -> Self {
        Self { untold: true, ..Self::default() }
    }

    /// Whether the doubts of all epochs are known.
    pub(crate) fn are_told(&self) -> bool {
        !self.untold
    }

    /// Adds a doubt about a column.
    pub(crate) fn add(&mut self, column: ColumnId, doubt: Doubt) {
        self.columns.entry(column).or_default().add(doubt);
    }

    /// Adds those of another stream, of whose columns `ours` has our number.
    pub(crate) fn merge(&mut self, other: &Self, ours: impl Fn(ColumnId) -> Option<ColumnId>) {
        self.untold |= other.untold;
        for (&column, &doubt) in &other.columns {
            if let Some(column) = ours(column) {
                self.add(column, doubt);
            }
        }
    }

    /// Columns in doubt, in order, with how far below and above their counts may be.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ColumnId, f64, f64)> + '_ {
        self.columns.iter().map(|(&column, &Doubt { below, above })| (column, below, above))
    }

    /// Checks that they can be about so many columns.
    pub(crate) fn check(&self, columns: usize) -> Result<(), Inconsistent> {
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        let odd = self
            .iter()
            .find(|&(ColumnId(column), below, above)| column as usize >= columns || !sound(below) || !sound(above));
        ensure(odd.is_none(), || format!("a doubt {odd:?}, of {columns} columns"))
    }

    /// Bytes they take, about: nodes of a tree are two thirds full.
    pub(crate) fn memory(&self) -> usize {
        self.columns.len() * size_of::<(ColumnId, Doubt)>() * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use ucl_equations::peeling;

    use super::*;

    /// Two rows of three counters.
    fn columns(indices: &[[u32; 2]]) -> Columns {
        let mut columns = Columns::ones(6, 2);
        for indices in indices {
            columns.push(indices);
        }
        columns
    }

    fn doubts(columns: &Columns, y: &[i64], values: &[f64]) -> Vec<(u32, f64, f64)> {
        let peeled = peeling::peel(columns, None, y).unwrap();
        let doubts = of_epoch(columns, &peeled, values);
        doubts.into_iter().map(|(ColumnId(column), doubt)| (column, doubt.below, doubt.above)).collect()
    }

    #[test]
    fn an_epoch_that_peels_whole_leaves_no_doubt() {
        let columns = columns(&[[0, 3], [0, 4], [1, 4]]);
        assert_eq!(doubts(&columns, &[12, 4, 0, 5, 11, 0], &[5.0, 7.0, 4.0]), []);
    }

    /// Four keys around a square: 3 + x, 2 - x and so on.
    #[test]
    fn what_cannot_be_told_apart_has_the_range_of_all_solutions() {
        let columns = columns(&[[0, 3], [0, 4], [1, 3], [1, 4]]);
        let found = doubts(&columns, &[5, 4, 0, 6, 3, 0], &[3.5, 1.5, 2.5, 1.5]);
        // All solutions: the first key has from 2 to 5.
        assert_eq!(found, [(0, 1.5, 1.5), (1, 1.5, 1.5), (2, 1.5, 1.5), (3, 1.5, 1.5)]);
    }

    /// A lost key at counters 0 and 5, the latter with no one else.
    #[test]
    fn what_is_left_over_may_belong_to_those_who_share_the_counter() {
        let columns = columns(&[[0, 3], [1, 3], [1, 4]]);
        let found = doubts(&columns, &[7 + 2, 5, 0, 7 + 4, 1, 2], &[9.0, 2.0, 3.0]);
        assert!(found.iter().any(|&(_, below, above)| below + above > 0.0), "{found:?}");
    }

    #[test]
    fn doubts_add_up_and_merge() {
        let one = Doubt { below: 1.0, above: 2.0 };
        let mut doubts = Doubts::default();
        doubts.add(ColumnId(3), one);
        doubts.add(ColumnId(3), one);
        let mut merged = Doubts::default();
        merged.merge(&doubts, |column| Some(ColumnId(column.0 + 1)));
        assert_eq!(merged.iter().collect::<Vec<_>>(), [(ColumnId(4), 2.0, 4.0)]);
        assert!(merged.check(5).is_ok() && merged.check(4).is_err() && merged.are_told());
        merged.merge(&Doubts::untold(), |_| None);
        assert!(!merged.are_told());
    }
}
