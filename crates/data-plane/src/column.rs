//! A key's column of `A`: which counters it adds to, with which coefficients.
//!
//! The mapping is pure (kind, shape and seed decide it), so the control plane rebuilds every column from the key
//! alone and the data plane stores none.

use crate::hash::{KeyHash, MAX_DEGREE};

/// One counter of the linear sketch: row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CounterIndex(pub u32);

/// The shape of a linear sketch's counters.
///
/// ```
/// assert_eq!(ucl_data_plane::Geometry { rows: 4, width: 1024, signed: false }.counters(), 4096);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Rows of counters.
    pub rows: u16,
    /// Counters per row.
    pub width: u32,
    /// Whether coefficients may be -1 and counters negative.
    pub signed: bool,
}

impl Geometry {
    /// All counters.
    pub fn counters(&self) -> usize {
        usize::from(self.rows) * self.width as usize
    }
}

/// A column: up to [`MAX_DEGREE`] counters, each with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    degree: u8,
    indices: [u32; MAX_DEGREE],
    signs: [i8; MAX_DEGREE],
}

impl Column {
    /// The counters.
    pub fn indices(&self) -> &[u32] {
        &self.indices[..self.degree.into()]
    }

    /// The coefficient at each counter: 1 or -1.
    pub fn signs(&self) -> &[i8] {
        &self.signs[..self.degree.into()]
    }
}

/// From a key's hash to its column. Pure: the same hash always gives the same column.
pub trait ColumnMap {
    /// The counters' shape.
    fn geometry(&self) -> Geometry;
    /// Counters per key.
    fn degree(&self) -> usize;
    /// The column of a key.
    fn column(&self, h: KeyHash) -> Column;
}

/// One counter in each row, as in Count-Min (all coefficients 1) and Count Sketch (signed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowMap {
    geometry: Geometry,
}

impl RowMap {
    /// A map onto `geometry`.
    ///
    /// ```
    /// use ucl_data_plane::{ColumnMap, Geometry, HashSeed, RowMap};
    /// let map = RowMap::new(Geometry { rows: 4, width: 1024, signed: false });
    /// let column = map.column(HashSeed::new(1).hash(&7u32.to_le_bytes()));
    /// assert_eq!(column.indices().len(), 4);
    /// assert!(column.indices().iter().zip(0u32..).all(|(&at, row)| at / 1024 == row));
    /// ```
    pub fn new(geometry: Geometry) -> Self {
        debug_assert!(usize::from(geometry.rows) <= MAX_DEGREE);
        Self { geometry }
    }

    /// Counter and sign of one row: the insert path, which wants no [`Column`] in memory.
    #[inline(always)]
    pub(crate) fn entry(&self, h: KeyHash, row: usize) -> (usize, bool) {
        let (at, negative) = h.row(row, self.geometry.width);
        (row * self.geometry.width as usize + at as usize, self.geometry.signed & negative)
    }
}

impl ColumnMap for RowMap {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn degree(&self) -> usize {
        self.geometry.rows.into()
    }

    fn column(&self, h: KeyHash) -> Column {
        let mut column = Column { degree: self.geometry.rows as u8, indices: [0; MAX_DEGREE], signs: [1; MAX_DEGREE] };
        for row in 0..self.degree() {
            let (at, negative) = self.entry(h, row);
            column.indices[row] = at as u32;
            column.signs[row] = if negative { -1 } else { 1 };
        }
        column
    }
}
