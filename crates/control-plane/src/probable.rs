//! Count Sketch's probable bounds, by the median of a key's counters (Charikar, Chen and
//! Farach-Colton, ICALP 2002).
//!
//! In every row `sign · y = x + e`, and the others' weights in `e` have random signs: they cancel
//! on average, `e` is as often positive as negative, and its variance is at most `F₂ / w` with
//! `F₂ = Σ x²`. By Chebyshev's inequality a row is too large by more than `c · √(F₂ / w)` with
//! probability `p <= 1 / (2 c²)` at most, and as often too small. The median of `d` rows is, only
//! if at least `m = ⌈d / 2⌉` of them are:
//!
//! ```text
//! P( |median - x| > c · √(F₂ / w) )  <=  2 · Σ_{j >= m} C(d, j) p^j (1 - p)^(d - j)
//! ```
//! `c` is chosen so that this, and what may be wrong with `F₂`, is 5%: 2.7 for four rows, 4.5 for
//! one. `F₂` is bounded by the counters themselves. A row's sum of squares has the mean `F₂` and
//! the variance `2 F₂² / w` at most, so it is below `F₂ / 2` with probability `8 / (w + 8)` at most
//! (Cantelli), and the largest of `d` rows with the `d`-th power of that. Where that is not small,
//! `F₂ <= W²` serves, which is certain.
//!
//! This takes the hash for random, and a key that was chosen without looking at the seed. The
//! guaranteed bound, `min over rows (sign · y + W) / 2`, needs neither, but grows with the whole
//! weight `W` and not with the root of `F₂ / w`.

use ucl_data_plane::Geometry;

use crate::tally::Tally;

/// The probability with which [`QueryView::likely`](crate::QueryView::likely) bounds a key's
/// count.
pub const PROBABILITY: f64 = 0.95;

/// How much of it may be spent on a wrong `F₂`.
const MOST_FOR_F2: f64 = 0.01;

/// How far the median of a key's counters may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MedianBound {
    deviation: f64,
}

impl MedianBound {
    /// Creates the statistics of counters into which `sketch_weight` went; `None` unless they have
    /// signs.
    pub fn new(geometry: Geometry, counters: &Tally, sketch_weight: u64) -> Option<Self> {
        if !geometry.signed {
            return None;
        }
        let (rows, width) = (i32::from(geometry.rows), f64::from(geometry.width));
        let squares = |row: &[i64]| row.iter().map(|&y| (y as f64) * (y as f64)).sum::<f64>();
        let largest = counters.to_vec().chunks(geometry.width as usize).map(squares).fold(0.0, f64::max);
        let certain = (sketch_weight as f64).powi(2);
        let wrong = (8.0 / (width + 8.0)).powi(rows);
        let (f2, wrong) = if wrong <= MOST_FOR_F2 { (certain.min(2.0 * largest), wrong) } else { (certain, 0.0) };
        let c = deviations(geometry.rows.into(), 1.0 - PROBABILITY - wrong);
        Some(Self { deviation: c * (f2 / width).sqrt() })
    }

    /// The bounds of the sketch part of a key, from its counters, each times its sign.
    pub fn bounds(&self, values: impl Iterator<Item = i64>) -> (u64, u64) {
        let mut values: Vec<i64> = values.collect();
        values.sort_unstable();
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        let median = (low as f64 + high as f64) / 2.0;
        // A float becomes the nearest whole number in range: negative ones 0.
        ((median - self.deviation).ceil() as u64, (median + self.deviation).floor() as u64)
    }
}

/// The `c` with which the median of `rows` rows fails with probability `fails`, on both sides
/// together.
fn deviations(rows: usize, fails: f64) -> f64 {
    let tail = |p: f64| {
        let mut term = (1.0 - p).powi(rows as i32);
        let mut sum = 0.0;
        for j in 0..=rows {
            if j >= rows.div_ceil(2) {
                sum += term;
            }
            term *= (rows - j) as f64 / (j + 1) as f64 * p / (1.0 - p);
        }
        sum
    };
    // The tail grows with p: halve the interval until nothing is left of it.
    let (mut low, mut high) = (0.0f64, 0.5f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 2.0 * tail(middle) <= fails { low = middle } else { high = middle }
    }
    1.0 / (2.0 * low).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_as_computed_by_hand() {
        // One row: 2 p = 0.05. Three: 2 (3 p² (1 - p) + p³) = 0.05 at p = 0.0943.
        assert!((deviations(1, 0.05) - 20f64.sqrt()).abs() < 1e-6);
        assert!((deviations(3, 0.05) - 1.0 / (2.0 * 0.094_299_f64).sqrt()).abs() < 1e-4, "{}", deviations(3, 0.05));
        assert!((deviations(4, 0.05) - 2.7).abs() < 0.05);
    }

    #[test]
    fn a_narrow_sketch_takes_no_chances_with_f2() {
        let geometry = Geometry { rows: 1, width: 4, degree: 1, signed: true };
        let bound = MedianBound::new(geometry, &Tally::from(vec![3, -3, 1, 0]), 20).unwrap();
        assert!((bound.deviation - (20.0f64 * 400.0 / 4.0).sqrt()).abs() < 1e-6);
        assert_eq!(bound.bounds([3].into_iter()), (0, 47));
        assert!(MedianBound::new(Geometry { signed: false, ..geometry }, &Tally::from(vec![3, 0, 0, 0]), 3).is_none());
    }
}
