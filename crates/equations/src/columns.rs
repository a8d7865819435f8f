//! The matrix `A`, one column per key, appended as keys arrive.
//!
//! A sketch touches the same number of counters for every key (its *degree*: the rows of a
//! Count-Min, the hash functions of a FlowRadar), so a column is `degree` counter indices and,
//! where not all ones, as many coefficients. Flat arrays keep the products `A x` and `Aᵀ y`
//! streaming. An index may repeat within a column (FlowRadar hashing a key twice to one counter):
//! its coefficients then add.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Number of a column of `A`. Numbers are assigned in order and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnId(pub u32);

/// Coefficients of a column's counters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Coefficients {
    Ones,
    Signs(Vec<i8>),
    Reals(Vec<f32>),
}

/// Columns of `A`: `counters` rows, `degree` entries in each column.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    counters: usize,
    degree: usize,
    indices: Vec<u32>,
    coefficients: Coefficients,
}

impl Columns {
    /// Creates an empty matrix in which every coefficient is 1 (Count-Min, FlowRadar).
    pub fn ones(counters: usize, degree: usize) -> Self {
        Self::with(counters, degree, Coefficients::Ones)
    }

    /// Creates an empty matrix with coefficients +1 and -1 (Count Sketch).
    pub fn signed(counters: usize, degree: usize) -> Self {
        Self::with(counters, degree, Coefficients::Signs(Vec::new()))
    }

    /// Creates an empty matrix with any coefficients (the fractional matrix of SeqSketch).
    pub fn weighted(counters: usize, degree: usize) -> Self {
        Self::with(counters, degree, Coefficients::Reals(Vec::new()))
    }

    /// So many columns of ones in the place of these and in the same memory; the indices are for
    /// the caller to fill in.
    pub(crate) fn replace_by_ones(&mut self, counters: usize, degree: usize, columns: usize) -> &mut [u32] {
        let mut indices = std::mem::take(&mut self.indices);
        indices.resize(columns * degree, 0);
        *self = Self { indices, ..Self::ones(counters, degree) };
        &mut self.indices
    }

    fn with(counters: usize, degree: usize, coefficients: Coefficients) -> Self {
        assert!(degree > 0, "a column needs at least one counter");
        assert!(counters <= u32::MAX as usize, "counter indices are 32 bits");
        Self { counters, degree, indices: Vec::new(), coefficients }
    }

    /// Appends a column of ones.
    pub fn push(&mut self, indices: &[u32]) -> ColumnId {
        assert!(matches!(self.coefficients, Coefficients::Ones), "these columns carry coefficients");
        self.append(indices)
    }

    /// Appends a column of signs, each +1 or -1.
    pub fn push_signed(&mut self, indices: &[u32], signs: &[i8]) -> ColumnId {
        assert_eq!(indices.len(), signs.len());
        let Coefficients::Signs(all) = &mut self.coefficients else { panic!("these columns are not signed") };
        all.extend_from_slice(signs);
        self.append(indices)
    }

    /// Appends a column with any coefficients.
    pub fn push_weighted(&mut self, indices: &[u32], weights: &[f32]) -> ColumnId {
        assert_eq!(indices.len(), weights.len());
        let Coefficients::Reals(all) = &mut self.coefficients else { panic!("these columns are not weighted") };
        all.extend_from_slice(weights);
        self.append(indices)
    }

    fn append(&mut self, indices: &[u32]) -> ColumnId {
        assert_eq!(indices.len(), self.degree);
        assert!(indices.iter().all(|&i| (i as usize) < self.counters), "counter index out of range");
        let id = ColumnId(u32::try_from(self.len()).expect("at most 2^32 columns"));
        // By an eighth, not by doubling: columns are most of what a control plane holds per key.
        if self.indices.capacity() - self.indices.len() < indices.len() {
            self.indices.reserve_exact((self.indices.len() / 8).max(64 * indices.len()));
        }
        self.indices.extend_from_slice(indices);
        id
    }

    /// Drops all columns from number `len` on.
    pub fn truncate(&mut self, len: usize) {
        let entries = len * self.degree;
        self.indices.truncate(entries);
        match &mut self.coefficients {
            Coefficients::Ones => {}
            Coefficients::Signs(signs) => signs.truncate(entries),
            Coefficients::Reals(reals) => reals.truncate(entries),
        }
    }

    /// Number of columns: the unknowns of the system.
    pub fn len(&self) -> usize {
        self.indices.len() / self.degree
    }

    /// Returns true if there is no column.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Number of counters: the equations of the system.
    pub fn counters(&self) -> usize {
        self.counters
    }

    /// Number of entries in each column.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns true if every coefficient is 1, as the multiplicative solvers need.
    pub fn is_ones(&self) -> bool {
        matches!(self.coefficients, Coefficients::Ones)
    }

    /// Returns the counters of one column.
    pub fn indices(&self, id: ColumnId) -> &[u32] {
        let at = id.0 as usize * self.degree;
        &self.indices[at..at + self.degree]
    }

    /// Returns the counters of all columns, column after column.
    pub fn all_indices(&self) -> &[u32] {
        &self.indices
    }

    /// Returns the coefficient of entry `entry` of a column.
    pub fn coefficient(&self, id: ColumnId, entry: usize) -> f32 {
        let at = id.0 as usize * self.degree + entry;
        match &self.coefficients {
            Coefficients::Ones => 1.0,
            Coefficients::Signs(s) => f32::from(s[at]),
            Coefficients::Reals(r) => r[at],
        }
    }

    pub(crate) fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// Copies some columns, in the given order, over the same counters. Column `k` of the copy is
    /// `ids[k]` of this matrix. Solvers that take candidates do not need a copy.
    ///
    /// # Errors
    /// If one of the numbers is not that of a column.
    pub fn subset(&self, ids: &[ColumnId]) -> Result<Self, Error> {
        if let Some(at) = ids.iter().position(|id| id.0 as usize >= self.len()) {
            return Err(Error::UnknownColumn { at, id: ids[at].0, len: self.len() });
        }
        let mut copy = Self::with(self.counters, self.degree, Coefficients::Ones);
        copy.indices.reserve_exact(ids.len() * self.degree);
        for &id in ids {
            copy.indices.extend_from_slice(self.indices(id));
        }
        let entries = |id: &ColumnId| {
            let at = id.0 as usize * self.degree;
            at..at + self.degree
        };
        copy.coefficients = match &self.coefficients {
            Coefficients::Ones => Coefficients::Ones,
            Coefficients::Signs(s) => Coefficients::Signs(ids.iter().flat_map(entries).map(|e| s[e]).collect()),
            Coefficients::Reals(r) => Coefficients::Reals(ids.iter().flat_map(entries).map(|e| r[e]).collect()),
        };
        Ok(copy)
    }

    /// Every column without entry `entry`, over the counters without `gone`.
    pub(crate) fn without_entry(&self, entry: usize, gone: &std::ops::Range<usize>) -> Self {
        let kept = |at: &usize| at % self.degree != entry;
        let entries = || (0..self.indices.len()).filter(kept);
        let renumber =
            |at: usize| self.indices[at] - if self.indices[at] as usize >= gone.end { gone.len() as u32 } else { 0 };
        let coefficients = match &self.coefficients {
            Coefficients::Ones => Coefficients::Ones,
            Coefficients::Signs(s) => Coefficients::Signs(entries().map(|at| s[at]).collect()),
            Coefficients::Reals(r) => Coefficients::Reals(entries().map(|at| r[at]).collect()),
        };
        Self {
            counters: self.counters - gone.len(),
            degree: self.degree - 1,
            indices: entries().map(renumber).collect(),
            coefficients,
        }
    }

    /// Fails at the first coefficient that is NaN or infinite.
    pub(crate) fn check_finite(&self) -> Result<(), Error> {
        let Coefficients::Reals(reals) = &self.coefficients else { return Ok(()) };
        match reals.iter().position(|r| !r.is_finite()) {
            None => Ok(()),
            Some(at) => Err(Error::NotFinite { what: "coefficients", at, value: f64::from(reals[at]) }),
        }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        let coefficients = match &self.coefficients {
            Coefficients::Ones => 0,
            Coefficients::Signs(s) => s.capacity(),
            Coefficients::Reals(r) => r.capacity() * size_of::<f32>(),
        };
        self.indices.capacity() * size_of::<u32>() + coefficients
    }
}
