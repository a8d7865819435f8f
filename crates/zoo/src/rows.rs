//! Rows of 32-bit counters, of which a key uses one in each row. Most systems are built on them.
//!
//! Nothing wraps silently: a counter that would overflow is an [`Error::Overflow`].

use ucl_data_plane::{KeyHash, MAX_DEGREE};

use crate::error::Error;
use crate::plan::ROWS;

/// Runs a loop over the rows with their number known to the compiler where it is the usual one.
macro_rules! each_row {
    ($rows:expr, $row:ident => $body:expr) => {
        if $rows == ROWS {
            for $row in 0..ROWS {
                $body
            }
        } else {
            for $row in 0..$rows {
                $body
            }
        }
    };
}

/// Unsigned counters: those of a Count-Min.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnsignedRows {
    rows: usize,
    width: u32,
    counters: Vec<u32>,
}

impl UnsignedRows {
    pub fn new(rows: usize, width: u32) -> Self {
        debug_assert!((1..=MAX_DEGREE).contains(&rows));
        Self { rows, width, counters: vec![0; rows * width as usize] }
    }

    #[inline(always)]
    fn at(&self, row: usize, hash: KeyHash) -> usize {
        row * self.width as usize + hash.row(row, self.width).0 as usize
    }

    /// Adds to the key's counter in every row.
    #[inline(always)]
    pub fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        let weight = u32::try_from(weight).map_err(|_| Error::Overflow)?;
        let mut overflowed = false;
        each_row!(self.rows, row => {
            let at = self.at(row, hash);
            let (sum, over) = self.counters[at].overflowing_add(weight);
            self.counters[at] = sum;
            overflowed |= over;
        });
        if overflowed { Err(Error::Overflow) } else { Ok(()) }
    }

    /// Raises the key's counters only as far as its estimate says they must be: conservative
    /// update.
    #[inline(always)]
    pub fn add_conservatively(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        let raised = u64::from(self.least(hash)).checked_add(weight).and_then(|sum| u32::try_from(sum).ok());
        let raised = raised.ok_or(Error::Overflow)?;
        each_row!(self.rows, row => {
            let at = self.at(row, hash);
            self.counters[at] = self.counters[at].max(raised);
        });
        Ok(())
    }

    /// The smallest of the key's counters.
    #[inline(always)]
    pub fn least(&self, hash: KeyHash) -> u32 {
        let mut least = u32::MAX;
        each_row!(self.rows, row => least = least.min(self.counters[self.at(row, hash)]));
        least
    }

    /// Returns the weight that a row holds; the same for all rows, if everything was added by
    /// [`UnsignedRows::add`].
    pub fn held_weight(&self) -> u64 {
        self.counters[..self.width as usize].iter().map(|&counter| u64::from(counter)).sum()
    }

    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if (self.rows, self.width) != (other.rows, other.width) {
            return Err(Error::Unlike);
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine = mine.checked_add(*theirs).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    /// All counters, row by row.
    pub fn counters(&self) -> &[u32] {
        &self.counters
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.counters.as_slice())
    }

    pub fn shape(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows as u64), ("width", self.width.into()), ("counter_bits", 32)]
    }
}

/// Signed counters: those of a Count Sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedRows {
    rows: usize,
    width: u32,
    /// The number of the first row's hash function, so that two sketches of one system need not
    /// share theirs.
    first: usize,
    counters: Vec<i32>,
}

impl SignedRows {
    pub fn new(rows: usize, width: u32, first: usize) -> Self {
        debug_assert!(rows > 0 && first + rows <= MAX_DEGREE);
        Self { rows, width, first, counters: vec![0; rows * width as usize] }
    }

    #[inline(always)]
    fn at(&self, row: usize, hash: KeyHash) -> (usize, bool) {
        let (at, negative) = hash.row(self.first + row, self.width);
        (row * self.width as usize + at as usize, negative)
    }

    /// Adds to the key's counter in every row, with its sign there.
    #[inline(always)]
    pub fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        let mut overflowed = false;
        let weight = i32::try_from(weight).map_err(|_| Error::Overflow)?;
        each_row!(self.rows, row => overflowed |= self.add_signed(row, hash, weight));
        if overflowed { Err(Error::Overflow) } else { Ok(()) }
    }

    /// Adds to the key's counter in one row, with its sign there.
    #[inline(always)]
    pub fn add_to_row(&mut self, row: usize, hash: KeyHash, weight: u64) -> Result<(), Error> {
        let weight = i32::try_from(weight).map_err(|_| Error::Overflow)?;
        if self.add_signed(row, hash, weight) { Err(Error::Overflow) } else { Ok(()) }
    }

    /// Adds a signed weight; returns true if a counter overflowed.
    #[inline(always)]
    fn add_signed(&mut self, row: usize, hash: KeyHash, weight: i32) -> bool {
        let (at, negative) = self.at(row, hash);
        let weight = if negative { -weight } else { weight }; // positive before, so this cannot overflow
        let (sum, over) = self.counters[at].overflowing_add(weight);
        self.counters[at] = sum;
        over
    }

    /// The smallest of the rows' estimates, and twice their median: the mean of the middle two of
    /// an even number.
    #[inline(always)]
    pub fn least_and_twice_median(&self, hash: KeyHash) -> (i64, i64) {
        let mut room = [0i64; MAX_DEGREE];
        let values = &mut room[..self.rows];
        for (row, value) in values.iter_mut().enumerate() {
            let (at, negative) = self.at(row, hash);
            let counter = i64::from(self.counters[at]);
            *value = if negative { -counter } else { counter };
        }
        values.sort_unstable();
        (values[0], values[(self.rows - 1) / 2] + values[self.rows / 2])
    }

    /// The median as a count: rounded half up, at least 0.
    #[inline(always)]
    pub fn median(&self, hash: KeyHash) -> u64 {
        (self.least_and_twice_median(hash).1 + 1).div_euclid(2).max(0) as u64
    }

    pub fn unrounded(&self, hash: KeyHash) -> f64 {
        self.least_and_twice_median(hash).1 as f64 / 2.0
    }

    /// A key cannot have more, if all keys together have `weight`: the others in its counter have
    /// at most `weight - x`, and so a row's estimate is at least `x - (weight - x)`.
    pub fn upper(&self, hash: KeyHash, weight: u64) -> u64 {
        (i128::from(self.least_and_twice_median(hash).0) + i128::from(weight)).div_euclid(2).max(0) as u64
    }

    /// The sum of squares of each row: an unbiased estimate of `Σ f²` (Alon, Matias and Szegedy
    /// 1996).
    pub fn sums_of_squares(&self) -> impl Iterator<Item = f64> + '_ {
        let square = |&counter: &i32| f64::from(counter) * f64::from(counter);
        self.counters.chunks_exact(self.width as usize).map(move |row| row.iter().map(square).sum())
    }

    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if (self.rows, self.width, self.first) != (other.rows, other.width, other.first) {
            return Err(Error::Unlike);
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine = mine.checked_add(*theirs).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.counters.as_slice())
    }

    pub fn shape(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows as u64), ("width", self.width.into()), ("counter_bits", 32)]
    }
}
