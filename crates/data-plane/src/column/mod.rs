//! A key's column of `A`: which counters it adds to, with which coefficients.
//!
//! The mapping is pure (kind, shape and seed decide it), so the control plane rebuilds every column
//! from the key alone and the data plane stores none.

mod array;

pub use array::ArrayMap;

use core::fmt;
use core::str::FromStr;

use crate::config::Shape;
use crate::hash::{KeyHash, MAX_DEGREE};

/// Number of a counter of the linear sketch, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CounterIndex(pub u32);

/// Linear sketch that counts what the heavy part hands on.
///
/// ```
/// use ucl_data_plane::Base;
/// assert_eq!("count-sketch".parse(), Ok(Base::CountSketch));
/// assert!(Base::CountSketch.signed() && !Base::FlowRadar.signed());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Base {
    /// One counter in each row, all coefficients 1 (Cormode and Muthukrishnan 2005): counters are
    /// upper bounds.
    #[default]
    CountMin,
    /// One counter in each row, each with a sign (Charikar, Chen and Farach-Colton 2002): the
    /// others' weights cancel on average, and counters bound nothing by themselves.
    CountSketch,
    /// Several different counters of one array, all coefficients 1 (FlowRadar's packet counts, Li
    /// et al. 2016).
    FlowRadar,
}

impl Base {
    /// All base sketches.
    pub const ALL: [Self; 3] = [Self::CountMin, Self::CountSketch, Self::FlowRadar];

    /// Returns the name in settings and outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::CountMin => "count-min",
            Self::CountSketch => "count-sketch",
            Self::FlowRadar => "flowradar",
        }
    }

    /// Returns true if coefficients may be -1 and counters negative.
    pub fn signed(self) -> bool {
        self == Self::CountSketch
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of a text that is not the name of a base sketch.
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
    /// True if coefficients may be -1 and counters negative.
    pub signed: bool,
}

impl Geometry {
    /// Returns the number of all counters.
    pub fn counters(&self) -> usize {
        usize::from(self.rows) * self.width as usize
    }

    /// Returns the number of counters per key and row: a row of unsigned counters adds up to so
    /// many times the weight that entered.
    pub fn per_row(&self) -> u16 {
        self.degree / self.rows
    }
}

/// Counters of a key: up to [`MAX_DEGREE`], each with a sign.
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

    /// Returns the counters of the column.
    pub fn indices(&self) -> &[u32] {
        &self.indices[..self.degree.into()]
    }

    /// Returns the coefficient at each counter: 1 or -1.
    pub fn signs(&self) -> &[i8] {
        &self.signs[..self.degree.into()]
    }
}

/// Map from a key's hash to its column. Pure: the same hash always gives the same column.
pub trait ColumnMap {
    /// Returns the shape of the counters.
    fn geometry(&self) -> Geometry;
    /// Returns the number of counters per key.
    fn degree(&self) -> usize {
        self.geometry().degree.into()
    }
    /// Returns the column of a key.
    fn column(&self, h: KeyHash) -> Column;
}

/// Map to one counter in each row, as in Count-Min (all coefficients 1) and Count Sketch (signed).
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
    /// let column = map.column(HashSeed::new(1.into()).hash(&7u32.to_le_bytes()));
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

/// Map of any base sketch.
///
/// ```
/// use ucl_data_plane::{Base, BaseMap, ColumnMap, HashSeed, Shape};
/// let shape = Shape { base: Base::FlowRadar, ..Shape::PAPER_64KB };
/// let column = BaseMap::new(&shape).column(HashSeed::new(1.into()).hash(&7u32.to_le_bytes()));
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
    /// Creates the map of a valid shape.
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
