//! Sparse systems: the columns that can have mass at all, and the system shrunk to them.
//!
//! The items of a short epoch touch a small part of the counters, and a key with an untouched counter had no item. So before
//! anything is solved:
//!
//! 1. [`Touched`]: which counters have mass, a bit each. A whole sketch's worth fits the innermost cache.
//! 2. **Candidates**: the columns all of whose counters are touched, by going through all columns ([`Touched::scan`]) or only
//!    through those of the touched counters ([`ByCounter`], an index). The scan reads in order and needs nothing else; the
//!    index must be built, and jumps about. `cargo bench -p ucl-equations candidates` has both: the index wins where
//!    [`ByCounter::pays`] says so.
//! 3. [`Shrinker::shrink`]: the candidates over just the touched counters, so that solvers pass over thousands of counters
//!    and not over all.
//!
//! ```
//! use ucl_equations::sparse::{Shrinker, Touched};
//! use ucl_equations::{ColumnId, Columns};
//!
//! let mut columns = Columns::ones(6, 2); // 2 rows of 3 counters
//! for key in [[0, 3], [1, 4], [2, 5], [0, 5]] {
//!     columns.push(&key);
//! }
//! let mut touched = Touched::default();
//! touched.refill(&[4, 0, 3, 0, 0, 7])?;
//! let mut candidates = Vec::new();
//! touched.scan(&columns, 2, 4, &mut candidates);
//! assert_eq!(candidates, [ColumnId(2), ColumnId(3)]);
//! let mut shrinker = Shrinker::default();
//! let shrunk = shrinker.shrink(&columns, 2, &touched, &candidates);
//! assert_eq!(shrunk.counters, [0, 2, 5]);
//! assert_eq!(shrunk.columns.all_indices(), [1, 2, 0, 2]);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::{ColumnId, Columns};
use crate::error::Error;

/// Which counters have mass.
#[derive(Clone, Debug, Default)]
pub struct Touched {
    words: Vec<u64>,
}

impl Touched {
    /// Takes note of the counters above zero; none may be below.
    pub fn refill(&mut self, y: &[i64]) -> Result<(), Error> {
        self.words.clear();
        let mut least = 0;
        for y in y.chunks(64) {
            let mut word = 0;
            for (bit, &y) in y.iter().enumerate() {
                word |= u64::from(y > 0) << bit;
                least = least.min(y);
            }
            self.words.push(word);
        }
        if least < 0 {
            let at = y.iter().position(|&y| y < 0).expect("the least is among them");
            return Err(Error::Negative { what: "y", at, value: y[at] as f64 });
        }
        Ok(())
    }

    #[inline(always)]
    fn holds(&self, counter: u32) -> bool {
        self.words[counter as usize / 64] >> (counter % 64) & 1 == 1
    }

    /// The counters with mass, in their order.
    fn counters(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.words).flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let counter = at * 64 + left.trailing_zeros();
                (left != 0).then(|| {
                    left &= left - 1;
                    counter
                })
            })
        })
    }

    /// Whether all of these counters have mass.
    #[inline(always)]
    pub fn holds_all(&self, indices: &[u32]) -> bool {
        indices.iter().all(|&i| self.holds(i))
    }

    /// Appends to `out`, in their order, those of the first `known` columns whose first `entries` counters all have mass.
    pub fn scan(&self, columns: &Columns, entries: usize, known: usize, out: &mut Vec<ColumnId>) {
        let indices = &columns.all_indices()[..known * columns.degree()];
        // The usual degrees by name: the compiler unrolls them.
        match (columns.degree(), entries) {
            (4, 4) => self.scan_by::<4, 4>(indices, out),
            (4, 3) => self.scan_by::<4, 3>(indices, out),
            (degree, _) => {
                let all = (0..).zip(indices.chunks_exact(degree));
                out.extend(all.filter(|(_, indices)| self.holds_all(&indices[..entries])).map(|(at, _)| ColumnId(at)));
            }
        }
    }

    /// Whether a column is a candidate cannot be foreseen, so nothing branches on it: each is written down, and the next one
    /// over it unless it is one. First by two counters, which rules most of them out, then by the others.
    fn scan_by<const DEGREE: usize, const ENTRIES: usize>(&self, indices: &[u32], out: &mut Vec<ColumnId>) {
        let mut found = [0u32; 1024];
        for (block, indices) in (0u32..).zip(indices.as_chunks::<DEGREE>().0.chunks(found.len())) {
            let mut len = 0;
            for (at, indices) in (0u32..).zip(indices) {
                found[len] = at;
                len += usize::from(self.holds(indices[0]) & self.holds(indices[1]));
            }
            let mut kept = 0;
            for i in 0..len {
                let at = found[i];
                let rest = &indices[at as usize][2..ENTRIES];
                found[kept] = at;
                kept += usize::from(rest.iter().fold(true, |all, &i| all & self.holds(i)));
            }
            out.extend(found[..kept].iter().map(|at| ColumnId(block * found.len() as u32 + at)));
        }
    }
}

/// The columns by their first counter.
#[derive(Clone, Debug)]
pub struct ByCounter {
    /// Where the columns of a counter begin; one more at the end.
    starts: Vec<u32>,
    columns: Vec<ColumnId>,
}

impl ByCounter {
    /// Sorts all columns by their first counter.
    pub fn new(columns: &Columns) -> Self {
        let firsts = || columns.all_indices().iter().step_by(columns.degree()).map(|&first| first as usize);
        let counters = firsts().max().map_or(0, |last| last + 1);
        let mut starts = vec![0u32; counters + 1];
        firsts().for_each(|first| starts[first + 1] += 1);
        (0..counters).for_each(|at| starts[at + 1] += starts[at]);
        let mut next = starts.clone();
        let mut sorted = vec![ColumnId(0); columns.len()];
        for (id, first) in (0..).zip(firsts()) {
            sorted[next[first] as usize] = ColumnId(id);
            next[first] += 1;
        }
        Self { starts, columns: sorted }
    }

    /// Whether the index, with the building of it, is faster than the scan for these epochs.
    pub fn pays(columns: &Columns, epochs: usize, touched_share: f64) -> bool {
        // In units of one column scanned: building costs 4 a column, a look at a column by way of the index 7.
        !columns.is_empty() && 4.0 + 7.0 * touched_share * epochs as f64 <= epochs as f64
    }

    /// Appends the same columns as [`Touched::scan`], in the order of their first counters.
    pub fn find(&self, columns: &Columns, entries: usize, known: usize, touched: &Touched, out: &mut Vec<ColumnId>) {
        let counters = self.starts.len() - 1;
        for (at, &word) in touched.words[..counters.div_ceil(64)].iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let counter = at * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                if counter >= counters {
                    break;
                }
                let those = &self.columns[self.starts[counter] as usize..self.starts[counter + 1] as usize];
                let candidates = those.iter().filter(|&&id| (id.0 as usize) < known);
                out.extend(candidates.filter(|&&id| touched.holds_all(&columns.indices(id)[1..entries])));
            }
        }
    }
}

/// Some columns over just the counters with mass.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// Columns of ones, over the counters renumbered.
    pub columns: Columns,
    /// For every counter its former number.
    pub counters: Vec<u32>,
}

/// Shrinks one system after another in the same memory.
#[derive(Clone, Debug)]
pub struct Shrinker {
    shrunk: Shrunk,
    /// The new number of each touched counter; what stands at the others is not looked at.
    number: Vec<u32>,
}

impl Default for Shrinker {
    fn default() -> Self {
        Self { shrunk: Shrunk { columns: Columns::ones(0, 1), counters: Vec::new() }, number: Vec::new() }
    }
}

impl Shrinker {
    /// The first `entries` entries of some columns of ones, candidates by these, over the touched counters.
    pub fn shrink(&mut self, columns: &Columns, entries: usize, touched: &Touched, ids: &[ColumnId]) -> &Shrunk {
        let (Shrunk { columns: renumbered, counters }, number) = (&mut self.shrunk, &mut self.number);
        counters.clear();
        counters.extend(touched.counters());
        number.resize(columns.counters(), 0);
        for (new, &former) in (0..).zip(&*counters) {
            number[former as usize] = new;
        }
        let indices = renumbered.replace_by_ones(counters.len(), entries, ids.len());
        for (&id, new) in ids.iter().zip(indices.chunks_exact_mut(entries)) {
            new.iter_mut().zip(columns.indices(id)).for_each(|(new, &former)| *new = number[former as usize]);
        }
        &self.shrunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More columns than the scan takes in one go.
    #[test]
    fn scans_go_on_from_block_to_block() {
        let mut columns = Columns::ones(400, 4);
        for key in 0..3_000u32 {
            columns.push(&[key % 100, 100 + key % 97, 200 + key % 89, 300 + key % 83]);
        }
        let y: Vec<i64> = (0..400).map(|at| i64::from(at % 3 != 0)).collect();
        let mut touched = Touched::default();
        touched.refill(&y).unwrap();
        for entries in [3, 4] {
            let has_mass = |id: &ColumnId| columns.indices(*id)[..entries].iter().all(|at| at % 3 != 0);
            let want: Vec<ColumnId> = (0..2_500).map(ColumnId).filter(has_mass).collect();
            let mut found = Vec::new();
            touched.scan(&columns, entries, 2_500, &mut found);
            assert!(want.len() > 300 && found == want, "{} of {}", found.len(), want.len());
        }
    }
}
