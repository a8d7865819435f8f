//! FlowRadar's counters: one array, in which every key has several different counters.

use super::{Column, ColumnMap, Geometry};
use crate::hash::{KeyHash, MAX_DEGREE};

/// Different counters of one array, as in FlowRadar.
///
/// Position `i` comes from the part of the hash that row `i` of a [`RowMap`](super::RowMap) takes,
/// so slot, Bloom bits and columns stay disjoint. Two of a key's positions must not be the same, or
/// its column would have a coefficient of 2 and one equation less: by Floyd's sampling (Bentley and
/// Floyd 1987) the `i`-th of `k` is drawn from the first `n - k + i + 1` counters, and if it was
/// drawn before, the last of these takes its place. Every set of `k` counters is equally likely,
/// without a loop of unknown length.
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
    /// let mut indices = map.column(HashSeed::new(1.into()).hash(&7u32.to_le_bytes())).indices().to_vec();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;
    use crate::seed::Seed;
    use alloc::vec;
    use std::collections::BTreeSet;

    fn array(width: u32, degree: u16) -> ArrayMap {
        ArrayMap::new(Geometry { rows: 1, width, degree, signed: false })
    }

    /// Positions must never change: state files and merges rely on them.
    #[test]
    fn positions_of_the_single_array_are_pinned() {
        for (seed, golden) in [(Seed::v1(42), GOLDEN_V1), (42.into(), GOLDEN_V2)] {
            let column = |map: ArrayMap| map.column(HashSeed::new(seed).hash(&1u32.to_le_bytes()));
            assert_eq!(column(array(4096, 4)).indices(), golden[0]);
            assert_eq!(column(array(5, 4)).indices(), golden[1]);
        }
    }
    const GOLDEN_V1: [[u32; 4]; 2] = [[1912, 969, 1802, 746], [0, 2, 1, 4]];
    const GOLDEN_V2: [[u32; 4]; 2] = [[3966, 3507, 1675, 2462], [1, 2, 3, 4]];

    /// All different even where they fill the array, and every set equally likely: chi-square
    /// within six deviations.
    #[test]
    fn positions_of_the_single_array_are_different_and_even() {
        let map = array(6, 3);
        let seed = HashSeed::new(3.into());
        let keys = 100_000u32;
        let mut sets = vec![0u32; 1 << 6];
        for key in 0..keys {
            let column = map.column(seed.hash(&key.to_le_bytes()));
            let set: BTreeSet<u32> = column.indices().iter().copied().collect();
            assert_eq!(set.len(), 3, "{column:?}");
            sets[set.iter().map(|&at| 1usize << at).sum::<usize>()] += 1;
        }
        let expected = f64::from(keys) / 20.0;
        let degrees = 19.0f64;
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
