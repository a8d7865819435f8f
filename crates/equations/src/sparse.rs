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
//! let [candidates, by_the_first_row] = Candidates::new(&columns, 1, &epochs, &[1]);
//! assert_eq!(candidates.of_epoch(0, 4), [ColumnId(1)]);
//! assert_eq!(candidates.of_epoch(1, 4), [ColumnId(2), ColumnId(3)]);
//! assert_eq!(by_the_first_row.of_epoch(1, 4), [ColumnId(0), ColumnId(2), ColumnId(3)]);
//! let mut shrinker = Shrinker::default();
//! let shrunk = shrinker.shrink(&columns, 2, &epochs[1], candidates.of_epoch(1, 4));
//! assert_eq!(shrunk.counters, [0, 2, 5]);
//! assert_eq!(shrunk.columns.all_indices(), [1, 2, 0, 2]);
//! ```

use std::ops::{BitAnd, BitOrAssign, Shl};

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

    /// Returns the number of counters in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
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

/// Some of the epochs of a block, a bit each. Few epochs take small masks: those of all counters
/// then stay in a near cache.
trait Mask:
    Copy + Default + Send + Sync + Into<u64> + From<u8> + BitAnd<Output = Self> + BitOrAssign + Shl<usize, Output = Self>
{
}

impl Mask for u16 {}

impl Mask for u64 {}

/// Columns that one thread goes through at a time.
const COLUMNS: usize = 1 << 12;

/// Words of 64 counters that one thread goes through at a time.
const WORDS: usize = 32;

/// Columns that can have mass, for each epoch of a block.
///
/// One pass over the columns finds them for all epochs, and writes down only those it finds: the
/// cost beyond the pass is that of the candidates, however many columns are known. (With a mask
/// kept for each column, half a million keys in 16KB took twice as long, a third of it for fresh
/// memory.)
///
/// Other ways that do not read every column were weighed for `K` columns over rows of `w` counters,
/// `d` of which an epoch touches. An index by one counter reads `K · d / w` columns an epoch, and a
/// pass for 15 epochs `K / 15`: no less, because epochs that peel touch a tenth of a row or more.
/// An index by two counters looks up `d²` pairs: with 64KB that is less only from tens of millions
/// of keys on. So it is one pass, for as many epochs as can wait.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// For each epoch, the columns all of whose counters have mass, in order.
    of_epochs: Vec<Vec<ColumnId>>,
}

impl Candidates {
    /// Largest number of epochs in a block.
    pub const MOST_EPOCHS: usize = u64::BITS as usize;

    /// Finds the candidates of a block twice: by all counters of every column, and by the first
    /// `fewer`. The latter are many more, and only found for the epochs in `asked`.
    pub fn new(columns: &Columns, fewer: usize, block: &[Touched], asked: &[usize]) -> [Self; 2] {
        assert!(block.len() <= Self::MOST_EPOCHS, "a block of {} epochs", block.len());
        let asked = asked.iter().fold(0, |asked, &epoch| asked | 1 << epoch);
        if block.len() <= u16::BITS as usize {
            Self::found(columns, fewer, block, &by_counter::<u16>(columns.counters(), block), asked)
        } else {
            Self::found(columns, fewer, block, &by_counter::<u64>(columns.counters(), block), asked)
        }
    }

    fn found<M: Mask>(columns: &Columns, fewer: usize, block: &[Touched], counters: &[M], asked: u64) -> [Self; 2] {
        let degree = columns.degree();
        let mut every = M::default();
        (0..block.len()).for_each(|epoch| every |= M::from(1) << epoch);
        let parts = columns.all_indices().par_chunks(COLUMNS * degree).enumerate();
        let found = parts.map(|(part, indices)| {
            let mut found = [(); 2].map(|()| vec![Vec::new(); block.len()]);
            let first = (part * COLUMNS) as u32;
            // The usual degrees by name: the compiler unrolls them.
            if (degree, fewer) == (4, 3) {
                let each = indices.as_chunks::<4>().0.iter().map(|indices| indices.split_at(3));
                scan(counters, every, first, each, asked, &mut found);
            } else {
                let each = indices.chunks_exact(degree).map(|indices| indices.split_at(fewer));
                scan(counters, every, first, each, asked, &mut found);
            }
            found
        });
        let parts: Vec<[Vec<Vec<ColumnId>>; 2]> = found.collect();
        [0, 1].map(|which| {
            let of_epoch = |epoch: usize| parts.iter().flat_map(|part| &part[which][epoch]).copied().collect();
            Self { of_epochs: (0..block.len()).map(of_epoch).collect() }
        })
    }

    /// Returns the candidates of an epoch among the first `known` columns, in order.
    pub fn of_epoch(&self, epoch: usize, known: usize) -> &[ColumnId] {
        let all = &self.of_epochs[epoch];
        &all[..all.partition_point(|column| (column.0 as usize) < known)]
    }

    /// Returns true if a column is a candidate in an epoch.
    pub fn has(&self, epoch: usize, column: ColumnId) -> bool {
        self.of_epochs[epoch].binary_search(&column).is_ok()
    }
}

/// Goes through columns, given in two parts, and notes for each epoch those all of whose counters
/// have mass; for the epochs `asked` for also those whose first part has.
#[inline(always)]
fn scan<'a, M: Mask>(
    counters: &[M],
    every: M,
    first: u32,
    columns: impl Iterator<Item = (&'a [u32], &'a [u32])>,
    asked: u64,
    found: &mut [Vec<Vec<ColumnId>>; 2],
) {
    let [all, fewer] = found;
    for (column, (start, rest)) in (first..).zip(columns) {
        let some = common(counters, every, start);
        let whole: u64 = common(counters, some, rest).into();
        let some = some.into() & asked;
        // Few columns are candidates of any epoch.
        if whole | some != 0 {
            ones(0, whole).for_each(|epoch| all[epoch as usize].push(ColumnId(column)));
            ones(0, some).for_each(|epoch| fewer[epoch as usize].push(ColumnId(column)));
        }
    }
}

/// Those of some epochs in which all of these counters have mass.
#[inline(always)]
fn common<M: Mask>(counters: &[M], epochs: M, indices: &[u32]) -> M {
    indices.iter().fold(epochs, |all, &at| all & counters[at as usize])
}

/// For each counter the epochs in which it has mass.
fn by_counter<M: Mask>(counters: usize, block: &[Touched]) -> Vec<M> {
    let mut all = vec![M::default(); counters.next_multiple_of(64)];
    all.par_chunks_mut(64 * WORDS).enumerate().for_each(|(part, counters)| {
        for (epoch, touched) in block.iter().enumerate() {
            let own = M::from(1) << epoch;
            let words = touched.words.iter().skip(part * WORDS);
            let bytes = words.flat_map(|word| word.to_le_bytes());
            for (counters, byte) in counters.as_chunks_mut::<8>().0.iter_mut().zip(bytes) {
                // In a form that the compiler does for eight counters at once.
                for (bit, epochs) in counters.iter_mut().enumerate() {
                    *epochs |= if byte & 1 << bit == 0 { M::default() } else { own };
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
        counters.resize(touched.count(), 0);
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
        let mass = |epoch: u32, at: u32| at % 7 != epoch % 9;
        for epochs in [0, 1, 16, 17, Candidates::MOST_EPOCHS as u32] {
            let block: Vec<Touched> = (0..epochs).map(|epoch| touched(400, |at| mass(epoch, at))).collect();
            let asked = Vec::from_iter((0..epochs as usize).step_by(3));
            for (fewer, entries) in [(2, 2), (3, 3), (3, 4), (0, 4)] {
                let [all, some] = Candidates::new(&columns, fewer, &block, &asked);
                for epoch in (0..epochs).filter(|epoch| entries == 4 || epoch % 3 == 0) {
                    let candidates = if entries == 4 { &all } else { &some };
                    let has_mass = |id: &ColumnId| columns.indices(*id)[..entries].iter().all(|&at| mass(epoch, at));
                    let want: Vec<ColumnId> = (0..8_500).map(ColumnId).filter(has_mass).collect();
                    let found = candidates.of_epoch(epoch as usize, 8_500);
                    assert!(want.len() > 300 && found == want, "{} of {}", found.len(), want.len());
                    assert!((0..9_000).map(ColumnId).all(|id| candidates.has(epoch as usize, id) == has_mass(&id)));
                }
                assert!((0..epochs as usize).all(|epoch| epoch % 3 == 0 || some.of_epoch(epoch, 9_000).is_empty()));
            }
        }
    }
}
