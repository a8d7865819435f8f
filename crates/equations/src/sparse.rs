//! Sparse systems: finds the columns that can have mass, and shrinks the system to them.
//!
//! The items of a short epoch touch a small part of the counters, and a key with an untouched
//! counter had no item. So before anything is solved:
//!
//! 1. [`Touched`]: which counters have mass, a bit each.
//! 2. [`Candidates`]: the columns all of whose counters are touched, for a block of epochs in one
//!    go: a counter has a bit for each epoch, and the AND over a column's counters is the set of
//!    epochs in which it is a candidate.
//! 3. [`Shrinker::shrink`]: the candidates over just the touched counters, so that solvers pass
//!    over thousands of counters and not over all.
//!
//! ```
//! use ucl_equations::sparse::{Candidates, Shrinker, Touched};
//! use ucl_equations::{ColumnId, Columns};
//!
//! let mut columns = Columns::ones(6, 2); // 2 rows of 3 counters
//! for key in [[0, 3], [1, 4], [2, 5], [0, 5]] {
//!     columns.push(&key);
//! }
//! let epochs = [0b010_010, 0b100_101].map(|bits| Touched::new(vec![bits])); // counters 1 and 4; 0, 2 and 5
//! let [candidates, by_the_first_row] = Candidates::new(&columns, 1, &epochs);
//! assert_eq!(candidates.of_epoch(0, 4), [ColumnId(1)]);
//! assert_eq!(candidates.of_epoch(1, 4), [ColumnId(2), ColumnId(3)]);
//! assert_eq!(by_the_first_row.of_epoch(1, 4), [ColumnId(0), ColumnId(2), ColumnId(3)]);
//! let mut shrinker = Shrinker::default();
//! let shrunk = shrinker.shrink(&columns, 2, &epochs[1], &candidates.of_epoch(1, 4));
//! assert_eq!(shrunk.counters, [0, 2, 5]);
//! assert_eq!(shrunk.columns.all_indices(), [1, 2, 0, 2]);
//! ```

use rayon::prelude::*;

use crate::columns::{ColumnId, Columns};

/// Set of counters that have mass in an epoch.
#[derive(Clone, Debug)]
pub struct Touched {
    words: Vec<u64>,
}

impl Touched {
    /// Creates a set from one bit per counter. The first counter is the lowest bit of the first
    /// word.
    pub fn new(words: Vec<u64>) -> Self {
        Self { words }
    }

    /// Returns the set restricted to the first `counters` counters.
    pub fn of_first(&self, counters: usize) -> Self {
        let mut words = self.words[..counters.div_ceil(64)].to_vec();
        if let Some(last) = words.last_mut() {
            *last &= u64::MAX >> (counters.wrapping_neg() % 64);
        }
        Self { words }
    }

    /// Adds a counter to the set.
    pub fn insert(&mut self, counter: u32) {
        self.words[counter as usize / 64] |= 1 << (counter % 64);
    }

    /// Removes a counter from the set.
    pub fn remove(&mut self, counter: u32) {
        self.words[counter as usize / 64] &= !(1 << (counter % 64));
    }
}

/// The places of the ones in a word, the first of which has this number.
fn ones(first: u32, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = first + word.trailing_zeros();
        (word != 0).then(|| {
            word &= word - 1;
            at
        })
    })
}

/// Some of the epochs of a block, a bit each.
type Epochs = u16;

/// Columns that one thread goes through at a time.
const COLUMNS: usize = 1024;

/// Words of 64 counters that one thread goes through at a time.
const WORDS: usize = 32;

/// Columns that can have mass, for each epoch of a block.
///
/// One pass over the columns finds them for all epochs. For 16 epochs
/// (`cargo bench -p ucl-equations candidates` has the cases) a pass for each took 2 to 4 times as
/// long; an index from counters to columns, built once a block, 1.5 times where an epoch touches 4%
/// of the counters, and up to 16 times where it touches more.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// For each column the epochs in which all of its counters have mass.
    epochs: Vec<Epochs>,
}

impl Candidates {
    /// Largest number of epochs in a block.
    pub const MOST_EPOCHS: usize = Epochs::BITS as usize;

    /// Finds the candidates of a block twice: by all counters of every column, and by the first
    /// `fewer`.
    pub fn new(columns: &Columns, fewer: usize, block: &[Touched]) -> [Self; 2] {
        assert!(block.len() <= Self::MOST_EPOCHS, "a block of {} epochs", block.len());
        let degree = columns.degree();
        let counters = by_counter(columns.counters(), block);
        let [mut all, mut some] = [(); 2].map(|()| vec![0; columns.len()]);
        let parts = columns.all_indices().par_chunks(COLUMNS * degree);
        parts.zip(all.par_chunks_mut(COLUMNS).zip(some.par_chunks_mut(COLUMNS))).for_each(|(indices, (all, some))| {
            // The usual degrees by name: the compiler unrolls them.
            if (degree, fewer) == (4, 3) {
                let each = indices.as_chunks::<4>().0.iter().map(|indices| indices.split_at(3));
                scan(&counters, each, all, some);
            } else {
                scan(&counters, indices.chunks_exact(degree).map(|indices| indices.split_at(fewer)), all, some);
            }
        });
        [all, some].map(|epochs| Self { epochs })
    }

    /// Returns the candidates of an epoch among the first `known` columns, in order.
    pub fn of_epoch(&self, epoch: usize, known: usize) -> Vec<ColumnId> {
        let mut out = Vec::new();
        for (first, epochs) in (0u32..).step_by(64).zip(self.epochs[..known].chunks(64)) {
            // Which column is a candidate cannot be foreseen: 64 are made a word without a branch,
            // and only its ones are looked at.
            out.extend(ones(first, word_of(epochs, epoch)).map(ColumnId));
        }
        out
    }

    /// Returns true if a column is a candidate in an epoch.
    pub fn has(&self, epoch: usize, column: ColumnId) -> bool {
        self.epochs[column.0 as usize] >> epoch & 1 == 1
    }
}

/// For each of up to 64 columns the bit of an epoch.
fn word_of(columns: &[Epochs], epoch: usize) -> u64 {
    /// Brings bits 0, 16, 32 and 48 to 48, 49, 50 and 51; no two of the products meet, so nothing
    /// is carried.
    const GATHER: u64 = 1 << 48 | 1 << 33 | 1 << 18 | 1 << 3;
    let (fours, rest) = columns.as_chunks::<4>();
    let mut word = 0;
    for (four, at) in fours.iter().zip((0..64).step_by(4)) {
        let lanes = four.iter().rev().fold(0, |lanes, &epochs| lanes << 16 | u64::from(epochs));
        let bits = (lanes >> epoch & 0x1_0001_0001_0001).wrapping_mul(GATHER) >> 48 & 15;
        word |= bits << at;
    }
    for (&epochs, at) in rest.iter().zip(fours.len() * 4..) {
        word |= u64::from(epochs >> epoch & 1) << at;
    }
    word
}

/// For each column, given in two parts, the epochs in which all of its counters have mass, and
/// those of the first part.
#[inline(always)]
fn scan<'a>(
    counters: &[Epochs],
    columns: impl Iterator<Item = (&'a [u32], &'a [u32])>,
    all: &mut [Epochs],
    some: &mut [Epochs],
) {
    for ((first, rest), (all, some)) in columns.zip(all.iter_mut().zip(some)) {
        *some = common(counters, first);
        *all = *some & common(counters, rest);
    }
}

/// The epochs in which all of these counters have mass.
#[inline(always)]
fn common(counters: &[Epochs], indices: &[u32]) -> Epochs {
    indices.iter().fold(Epochs::MAX, |all, &at| all & counters[at as usize])
}

/// For each counter the epochs in which it has mass.
fn by_counter(counters: usize, block: &[Touched]) -> Vec<Epochs> {
    let mut all = vec![0; counters.next_multiple_of(64)];
    all.par_chunks_mut(64 * WORDS).enumerate().for_each(|(part, counters)| {
        for (epoch, touched) in block.iter().enumerate() {
            let own = 1 << epoch;
            let words = touched.words.iter().skip(part * WORDS);
            let bytes = words.flat_map(|word| word.to_le_bytes());
            for (counters, byte) in counters.as_chunks_mut::<8>().0.iter_mut().zip(bytes) {
                // In a form that the compiler does for eight counters at once.
                for (bit, epochs) in counters.iter_mut().enumerate() {
                    *epochs |= if Epochs::from(byte) & 1 << bit == 0 { 0 } else { own };
                }
            }
        }
    });
    all
}

/// Some columns over only the counters that have mass.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// Columns of ones over the renumbered counters.
    pub columns: Columns,
    /// Former number of every counter.
    pub counters: Vec<u32>,
    /// The new number of each touched counter; at the others stands anything.
    number: Vec<u32>,
}

impl Shrunk {
    /// Returns the new number of a counter, if it has mass.
    pub fn number(&self, former: u32) -> Option<usize> {
        let number = self.number[former as usize] as usize;
        (self.counters.get(number) == Some(&former)).then_some(number)
    }
}

/// Shrinks several systems and reuses its memory between them.
#[derive(Clone, Debug)]
pub struct Shrinker(Shrunk);

impl Default for Shrinker {
    fn default() -> Self {
        Self(Shrunk { columns: Columns::ones(0, 1), counters: Vec::new(), number: Vec::new() })
    }
}

impl Shrinker {
    /// Returns the first `entries` entries of the candidates among some columns of ones, over the
    /// touched counters.
    pub fn shrink(&mut self, columns: &Columns, entries: usize, touched: &Touched, ids: &[ColumnId]) -> &Shrunk {
        let Shrunk { columns: renumbered, counters, number } = &mut self.0;
        number.resize(columns.counters(), 0);
        counters.resize(touched.words.iter().map(|word| word.count_ones() as usize).sum(), 0);
        let mut new = 0;
        for (first, &word) in (0u32..).step_by(64).zip(&touched.words) {
            for former in ones(first, word) {
                number[former as usize] = new;
                counters[new as usize] = former;
                new += 1;
            }
        }
        let indices = renumbered.replace_by_ones(counters.len(), entries, ids.len());
        for (&id, new) in ids.iter().zip(indices.chunks_exact_mut(entries)) {
            for (new, &former) in new.iter_mut().zip(columns.indices(id)) {
                *new = number[former as usize];
                debug_assert_eq!(counters.get(*new as usize), Some(&former), "a candidate's counters have mass");
            }
        }
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(counters: u32, mass: impl Fn(u32) -> bool) -> Touched {
        let word =
            |first| (first..counters.min(first + 64)).fold(0, |word, at| word | u64::from(mass(at)) << (at - first));
        Touched::new((0..counters).step_by(64).map(word).collect())
    }

    /// More columns than are gone through in one go.
    #[test]
    fn candidates_go_on_from_part_to_part() {
        let mut columns = Columns::ones(400, 4);
        for key in 0..9_000u32 {
            columns.push(&[key % 100, 100 + key % 97, 200 + key % 89, 300 + key % 83]);
        }
        let mass = |epoch: u32, at: u32| at % 7 != epoch;
        let block: Vec<Touched> =
            (0..Candidates::MOST_EPOCHS as u32).map(|epoch| touched(400, |at| mass(epoch, at))).collect();
        for (fewer, entries) in [(2, 2), (3, 3), (3, 4), (0, 4)] {
            let [all, some] = Candidates::new(&columns, fewer, &block);
            let candidates = if entries == 4 { all } else { some };
            for epoch in 0..Candidates::MOST_EPOCHS as u32 {
                let has_mass = |id: &ColumnId| columns.indices(*id)[..entries].iter().all(|&at| mass(epoch, at));
                let want: Vec<ColumnId> = (0..8_500).map(ColumnId).filter(has_mass).collect();
                let found = candidates.of_epoch(epoch as usize, 8_500);
                assert!(want.len() > 300 && found == want, "{} of {}", found.len(), want.len());
                assert!((0..9_000).map(ColumnId).all(|id| candidates.has(epoch as usize, id) == has_mass(&id)));
            }
        }
    }
}
