//! A key's column of `A`: which counters it adds to, with which coefficients.
//!
//! The mapping is pure (kind, shape and seed decide it), so the control plane rebuilds every column from the key
//! alone and the data plane stores none.

use core::fmt;
use core::str::FromStr;

use crate::config::Shape;
use crate::hash::{KeyHash, MAX_DEGREE};

/// One counter of the linear sketch: row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterIndex(pub u32);

/// Which linear sketch counts what the heavy part hands on.
///
/// ```
/// use ucl_data_plane::Base;
/// assert_eq!("count-sketch".parse(), Ok(Base::CountSketch));
/// assert!(Base::CountSketch.signed() && !Base::FlowRadar.signed());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// One counter in each row, all coefficients 1 (Cormode and Muthukrishnan 2005): counters are upper bounds.
    #[default]
    CountMin,
    /// One counter in each row, each with a sign (Charikar, Chen and Farach-Colton 2002): the others' weights cancel on
    /// average, and counters bound nothing by themselves.
    CountSketch,
    /// Several different counters of one array, all coefficients 1 (FlowRadar's packet counts, Li et al. 2016).
    FlowRadar,
}

impl Base {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CountMin, Self::CountSketch, Self::FlowRadar];

    /// The name in settings and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountMin => "count-min",
            Self::CountSketch => "count-sketch",
            Self::FlowRadar => "flowradar",
        }
    }

    /// Whether coefficients may be -1 and counters negative.
    pub fn signed(self) -> bool {
        self == Self::CountSketch
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No base sketch has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the base sketches are count-min, count-sketch and flowradar")]
pub struct UnknownBase;

impl FromStr for Base {
    type Err = UnknownBase;

    fn from_str(name: &str) -> Result<Self, UnknownBase> {
        Self::ALL.into_iter().find(|base| base.name() == name).ok_or(UnknownBase)
    }
}

/// The shape of a linear sketch's counters.
///
/// ```
/// use ucl_data_plane::Geometry;
/// let count_min = Geometry { rows: 4, width: 1024, degree: 4, signed: false };
/// assert_eq!((count_min.counters(), count_min.per_row()), (4096, 1));
/// let flowradar = Geometry { rows: 1, width: 4096, degree: 4, signed: false };
/// assert_eq!((flowradar.counters(), flowradar.per_row()), (4096, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Rows of counters.
    pub rows: u16,
    /// Counters per row.
    pub width: u32,
    /// Counters per key, equally many in every row.
    pub degree: u16,
    /// Whether coefficients may be -1 and counters negative.
    pub signed: bool,
}

impl Geometry {
    /// All counters.
    pub fn counters(&self) -> usize {
        usize::from(self.rows) * self.width as usize
    }

    /// Counters per key and row: a row of unsigned counters adds up to so many times the weight that entered.
    pub fn per_row(&self) -> u16 {
        self.degree / self.rows
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
    /// `degree` coefficients of 1, at counters yet to be filled in.
    fn ones(degree: usize) -> Self {
        Self { degree: degree as u8, indices: [0; MAX_DEGREE], signs: [1; MAX_DEGREE] }
    }

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
    fn degree(&self) -> usize {
        self.geometry().degree.into()
    }
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
    /// let map = RowMap::new(Geometry { rows: 4, width: 1024, degree: 4, signed: false });
    /// let column = map.column(HashSeed::new(1).hash(&7u32.to_le_bytes()));
    /// assert_eq!(column.indices().len(), 4);
    /// assert!(column.indices().iter().zip(0u32..).all(|(&at, row)| at / 1024 == row));
    /// ```
    pub fn new(geometry: Geometry) -> Self {
        debug_assert!(usize::from(geometry.rows) <= MAX_DEGREE && geometry.degree == geometry.rows);
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

    fn column(&self, h: KeyHash) -> Column {
        let mut column = Column::ones(self.degree());
        for row in 0..self.degree() {
            let (at, negative) = self.entry(h, row);
            column.indices[row] = at as u32;
            column.signs[row] = if negative { -1 } else { 1 };
        }
        column
    }
}

/// Different counters of one array, as in FlowRadar.
///
/// Position `i` comes from the part of the hash that row `i` of a [`RowMap`] takes, so slot, Bloom bits and columns stay
/// disjoint. Two of a key's positions must not be the same, or its column would have a coefficient of 2 and one equation
/// less: by Floyd's sampling (Bentley and Floyd 1987) the `i`-th of `k` is drawn from the first `n - k + i + 1` counters,
/// and if it was drawn before, the last of these takes its place. Every set of `k` counters is equally likely, without a loop
/// of unknown length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayMap {
    geometry: Geometry,
}

impl ArrayMap {
    /// A map onto `geometry`, which has one row, at least as wide as the degree.
    ///
    /// ```
    /// use ucl_data_plane::{ArrayMap, ColumnMap, Geometry, HashSeed};
    /// let map = ArrayMap::new(Geometry { rows: 1, width: 6, degree: 4, signed: false });
    /// let mut indices = map.column(HashSeed::new(1).hash(&7u32.to_le_bytes())).indices().to_vec();
    /// indices.sort();
    /// indices.dedup();
    /// assert_eq!(indices.len(), 4); // even here, all different
    /// ```
    pub fn new(geometry: Geometry) -> Self {
        debug_assert!(geometry.rows == 1 && usize::from(geometry.degree) <= MAX_DEGREE);
        debug_assert!(u32::from(geometry.degree) <= geometry.width);
        Self { geometry }
    }
}

impl ColumnMap for ArrayMap {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn column(&self, h: KeyHash) -> Column {
        let mut column = Column::ones(self.degree());
        for i in 0..self.degree() {
            let last = self.geometry.width - u32::from(self.geometry.degree) + i as u32;
            let at = h.row(i, last + 1).0;
            column.indices[i] = if column.indices[..i].contains(&at) { last } else { at };
        }
        column
    }
}

/// The map of any base sketch.
///
/// ```
/// use ucl_data_plane::{Base, BaseMap, ColumnMap, HashSeed, Shape};
/// let shape = Shape { base: Base::FlowRadar, ..Shape::PAPER_64KB };
/// let column = BaseMap::new(&shape).column(HashSeed::new(1).hash(&7u32.to_le_bytes()));
/// assert_eq!(column.indices().len(), 4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseMap {
    /// Count-Min and Count Sketch.
    Rows(RowMap),
    /// FlowRadar.
    Array(ArrayMap),
}

impl BaseMap {
    /// The map of a valid shape.
    pub fn new(shape: &Shape) -> Self {
        let geometry = shape.geometry();
        match shape.base {
            Base::CountMin | Base::CountSketch => Self::Rows(RowMap::new(geometry)),
            Base::FlowRadar => Self::Array(ArrayMap::new(geometry)),
        }
    }

    /// Calls `each` with the key's counters and whether their coefficient is -1: the insert path.
    #[inline(always)]
    pub(crate) fn entries(&self, h: KeyHash, mut each: impl FnMut(usize, bool)) {
        match self {
            Self::Rows(map) => {
                for row in 0..map.degree() {
                    let (at, negative) = map.entry(h, row);
                    each(at, negative);
                }
            }
            Self::Array(map) => map.column(h).indices().iter().for_each(|&at| each(at as usize, false)),
        }
    }
}

impl ColumnMap for BaseMap {
    fn geometry(&self) -> Geometry {
        match self {
            Self::Rows(map) => map.geometry(),
            Self::Array(map) => map.geometry(),
        }
    }

    fn column(&self, h: KeyHash) -> Column {
        match self {
            Self::Rows(map) => map.column(h),
            Self::Array(map) => map.column(h),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;
    use alloc::vec;
    use std::collections::BTreeSet;

    fn array(width: u32, degree: u16) -> ArrayMap {
        ArrayMap::new(Geometry { rows: 1, width, degree, signed: false })
    }

    /// Positions must never change: state files and merges rely on them.
    #[test]
    fn positions_of_the_single_array_are_pinned() {
        let column = |map: ArrayMap| map.column(HashSeed::new(42).hash(&1u32.to_le_bytes()));
        assert_eq!(column(array(4096, 4)).indices(), GOLDEN[0]);
        assert_eq!(column(array(5, 4)).indices(), GOLDEN[1]);
    }
    const GOLDEN: [[u32; 4]; 2] = [[1912, 969, 1802, 746], [0, 2, 1, 4]];

    /// All different even where they fill the array, and every set equally likely: chi-square within six deviations.
    #[test]
    fn positions_of_the_single_array_are_different_and_even() {
        let (map, seed, keys) = (array(6, 3), HashSeed::new(3), 100_000u32);
        let mut sets = vec![0u32; 1 << 6];
        for key in 0..keys {
            let column = map.column(seed.hash(&key.to_le_bytes()));
            let set: BTreeSet<u32> = column.indices().iter().copied().collect();
            assert_eq!(set.len(), 3, "{column:?}");
            sets[set.iter().map(|&at| 1usize << at).sum::<usize>()] += 1;
        }
        let (expected, degrees) = (f64::from(keys) / 20.0, 19.0f64);
        let seen = sets.iter().filter(|&&count| count > 0);
        let chi: f64 = seen.clone().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert_eq!(seen.count(), 20, "6 over 3");
        assert!((chi - degrees).abs() < 6.0 * (2.0 * degrees).sqrt(), "chi-square {chi}");
        for degree in 1..=MAX_DEGREE as u16 {
            let column = array(degree.into(), degree).column(seed.hash(&7u32.to_le_bytes()));
            let set: BTreeSet<u32> = column.indices().iter().copied().collect();
            assert_eq!(set, (0..u32::from(degree)).collect());
        }
    }
}
