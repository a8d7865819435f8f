//! What was decoded of each column so far, and the most that it can have.

use std::sync::Arc;

use hashbrown::HashTable;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use ucl_equations::ColumnId;

use super::Epoch;
use super::decode::Decoded;
use crate::shared::Shared;

/// Estimates and upper bounds by column.
///
/// A view goes on from those of the control plane, and changes few of them: these it has for
/// itself ([`Sums::ahead`]).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sums {
    estimates: Shared<f64>,
    uppers: Shared<u64>,
    #[serde(skip)]
    own: Option<Own>,
}

/// The columns that a view has changed or added.
#[derive(Clone, Debug, Default)]
struct Own {
    changed: HashTable<(u32, f64, u64)>,
    columns: usize,
}

/// Places in a table of columns. (They are numbered one by one: a multiplication spreads them.)
fn place(column: u32) -> u64 {
    u64::from(column).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Own {
    fn find(&self, column: usize) -> Option<(f64, u64)> {
        let found = self.changed.find(place(column as u32), |&(own, ..)| own as usize == column);
        found.map(|&(_, estimate, upper)| (estimate, upper))
    }

    /// The sums of a column to be written to: `before` they were these.
    fn entry(&mut self, column: u32, before: impl FnOnce() -> (f64, u64)) -> &mut (u32, f64, u64) {
        let entry = self.changed.entry(place(column), |&(own, ..)| own == column, |&(own, ..)| place(own));
        entry
            .or_insert_with(|| {
                let (estimate, upper) = before();
                (column, estimate, upper)
            })
            .into_mut()
    }
}

impl Sums {
    /// Returns the same sums, for one who goes on alone and will change so many columns, about.
    /// Nothing is copied yet: of few columns each will be kept apart, of many whole chunks.
    pub fn ahead(&self, columns: usize) -> Self {
        if columns > self.len() / FEW {
            return self.clone();
        }
        let own = Own { columns: self.len(), ..self.own.clone().unwrap_or_default() };
        Self { own: Some(own), ..self.clone() }
    }

    /// From sums that were decoded all at once.
    pub fn of(estimates: Vec<f64>, uppers: Vec<u64>) -> Self {
        debug_assert_eq!(estimates.len(), uppers.len());
        Self { estimates: estimates.into_iter().collect(), uppers: uppers.into_iter().collect(), own: None }
    }

    pub fn len(&self) -> usize {
        self.own.as_ref().map_or(self.uppers.len(), |own| own.columns)
    }

    /// How many estimates and bounds were read: as many, if the state is sound.
    pub fn lengths(&self) -> [usize; 2] {
        [self.estimates.len(), self.uppers.len()]
    }

    /// Estimate and bound of a column.
    #[inline]
    pub fn get(&self, column: usize) -> (f64, u64) {
        match &self.own {
            Some(own) => own.find(column).unwrap_or_else(|| self.shared(column)),
            None => self.shared(column),
        }
    }

    fn shared(&self, column: usize) -> (f64, u64) {
        (self.estimates.get(column), self.uppers.get(column))
    }

    pub fn estimate(&self, column: usize) -> f64 {
        if self.own.is_some() { self.get(column).0 } else { self.estimates.get(column) }
    }

    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        (0..self.len()).map(|column| self.get(column))
    }

    /// One more column.
    pub fn push(&mut self, estimate: f64, upper: u64) {
        match &mut self.own {
            Some(own) => {
                let column = own.columns as u32;
                own.columns += 1;
                own.entry(column, || (estimate, upper));
            }
            None => {
                self.estimates.push(estimate);
                self.uppers.push(upper);
            }
        }
    }

    pub fn change(&mut self, column: ColumnId, change: impl FnOnce(&mut f64, &mut u64)) {
        let Self { estimates, uppers, own } = self;
        let at = column.0 as usize;
        match own {
            Some(own) => {
                let (_, estimate, upper) = own.entry(column.0, || (estimates.get(at), uppers.get(at)));
                change(estimate, upper);
            }
            None => change(estimates.entry(at), uppers.entry(at)),
        }
    }

    /// Adds what epochs gave: for each column in the order of the epochs.
    pub fn add(&mut self, block: &[&Epoch], decoded: &[Decoded]) {
        if self.own.is_none() {
            return self.add_to_shared(block, decoded);
        }
        for (epoch, decoded) in block.iter().zip(decoded) {
            for &(column, count) in &epoch.evicted {
                let upper = if epoch.may_raise(column) { count } else { 0 };
                self.change(column, |estimate, bound| (*estimate, *bound) = (*estimate + count as f64, *bound + upper));
            }
            for ((&column, &value), &least) in decoded.candidates.iter().zip(&decoded.values).zip(&decoded.least) {
                let upper = if epoch.may_raise(column) { least as u64 } else { 0 };
                if value != 0.0 || upper != 0 {
                    self.change(column, |estimate, bound| (*estimate, *bound) = (*estimate + value, *bound + upper));
                }
            }
        }
    }

    /// In parallel for ranges of columns.
    fn add_to_shared(&mut self, block: &[&Epoch], decoded: &[Decoded]) {
        let (estimates, chunk) = self.estimates.chunks_mut();
        let (uppers, _) = self.uppers.chunks_mut();
        let chunks = estimates.len().div_ceil(RANGES).max(1);
        let range = chunks * chunk;
        let ranges = estimates.par_chunks_mut(chunks).zip(uppers.par_chunks_mut(chunks)).enumerate();
        ranges.for_each(|(part, (estimates, uppers))| {
            let first = part * range;
            let own = first..first + range;
            let chunk_of = |column: ColumnId| (column.0 as usize - first) / chunk;
            for (epoch, decoded) in block.iter().zip(decoded) {
                let evicted = epoch.evicted.iter().filter(|(column, _)| own.contains(&(column.0 as usize)));
                for &(column, count) in evicted {
                    let at = chunk_of(column);
                    let place = column.0 as usize % chunk;
                    Arc::make_mut(&mut estimates[at])[place] += count as f64;
                    Arc::make_mut(&mut uppers[at])[place] += if epoch.may_raise(column) { count } else { 0 };
                }
                // Candidates are in the order of their columns.
                let place = |column: usize| decoded.candidates.partition_point(|id| (id.0 as usize) < column);
                let mut at = place(own.start);
                let end = place(own.end);
                for same in decoded.candidates[at..end].chunk_by(|a, b| chunk_of(*a) == chunk_of(*b)) {
                    let estimates = Arc::make_mut(&mut estimates[chunk_of(same[0])]);
                    let uppers = Arc::make_mut(&mut uppers[chunk_of(same[0])]);
                    for &column in same {
                        let place = column.0 as usize % chunk;
                        estimates[place] += decoded.values[at];
                        uppers[place] += if epoch.may_raise(column) { decoded.least[at] as u64 } else { 0 };
                        at += 1;
                    }
                }
            }
        });
    }

    pub fn memory(&self) -> usize {
        let own = self.own.as_ref().map_or(0, |own| own.changed.allocation_size());
        self.estimates.memory() + self.uppers.memory() + own
    }
}

/// One column in so many is few.
const FEW: usize = 8;

/// Ranges of columns that are added up at the same time: more than threads, for early columns are
/// those of frequent keys, and have most of the work.
const RANGES: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packed::Packed;

    proptest! {
        /// Changes kept apart and changes in copies come to the same, in whatever ranges they are
        /// added, and those who share the sums see nothing of them.
        #[test]
        fn going_ahead_changes_nothing_for_others(
            columns in 1u32..5_000,
            new in 0u32..2_000,
            picks in prop::collection::vec((any::<prop::sample::Index>(), 0u32..4, 0i64..9), 0..60),
            first_new in any::<prop::sample::Index>(),
        ) {
            let of = |column: u32| (f64::from(column % 7), u64::from(column % 11));
            let base = Sums::of((0..columns).map(|at| of(at).0).collect(), (0..columns).map(|at| of(at).1).collect());
            let all = columns + new;
            let mut candidates: Vec<(u32, f64, i64)> =
                picks.iter().map(|&(at, value, least)| (at.index(all as usize) as u32, value.into(), least)).collect();
            candidates.sort_by_key(|&(column, ..)| column);
            candidates.dedup_by_key(|&mut (column, ..)| column);
            let decoded = Decoded {
                candidates: candidates.iter().map(|&(column, ..)| ColumnId(column)).collect(),
                values: candidates.iter().map(|&(_, value, _)| value).collect(),
                least: candidates.iter().map(|&(.., least)| least).collect(),
                unexplained: 0,
                crowded: false,
                doubts: Vec::new(),
            };
            let epoch = Epoch {
                counters: Packed::new(&[]),
                weight: 0,
                known: all,
                first_new: first_new.index(all as usize) as u32,
                late: Vec::new(),
                evicted: vec![(ColumnId(all - 1), 5), (ColumnId(0), 3)],
                heavy: Vec::new(),
                items: 0,
            };
            let mut ways = [base.ahead(0), base.ahead(usize::MAX)];
            prop_assert!(ways[0].own.is_some() && ways[1].own.is_none());
            for sums in &mut ways {
                (columns..all).for_each(|column| sums.push(of(column).0, of(column).1));
                sums.add(&[&epoch, &epoch], &[decoded.clone(), decoded.clone()]);
            }
            let mut want: Vec<(f64, u64)> = (0..all).map(of).collect();
            for _ in 0..2 {
                let evicted = epoch.evicted.iter().map(|&(ColumnId(column), count)| (column, count as f64, count));
                let counted = candidates.iter().map(|&(column, value, least)| (column, value, least as u64));
                for (column, value, upper) in evicted.chain(counted) {
                    let sums = &mut want[column as usize];
                    *sums = (sums.0 + value, sums.1 + if column < epoch.first_new { upper } else { 0 });
                }
            }
            prop_assert!(ways.iter().all(|sums| sums.iter().eq(want.iter().copied())));
            prop_assert!(base.len() == columns as usize && base.iter().eq((0..columns).map(of)));
        }
    }
}
