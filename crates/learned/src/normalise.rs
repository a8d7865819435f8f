//! Per-snapshot normalisation (appendix "Data Normalization").
//!
//! A stream has no end, so there are no statistics to normalise by except the snapshot's own. An
//! inserted frequency is added to one counter in every row, so it is at most
//!
//! ```text
//! scale = min over rows of (max over the row of |counter|)
//! ```
//!
//! and `x / scale` is at most 1: the range of a sigmoid. The network sees `y / scale`; its output
//! times `scale` is the frequency. Fails for signed sketches (Count Sketch), where other keys may
//! cancel a frequency in every row: there the scale does not bound `x`, and a frequency above it is
//! cut to it.

use crate::config::CounterGrid;

/// Returns the scale of one snapshot, or 0 if a row is empty and there is nothing to decode.
///
/// ```
/// use ucl_learned::{CounterGrid, scale};
///
/// let shape = CounterGrid { rows: 2, width: 3 };
/// assert_eq!(scale(shape, &[1.0, 9.0, 2.0, /**/ 0.0, -7.0, 5.0]), 7.0);
/// assert_eq!(scale(shape, &[0.0; 6]), 0.0);
/// ```
pub fn scale(shape: CounterGrid, counters: &[f64]) -> f64 {
    let row_max = |row: &[f64]| row.iter().fold(0.0f64, |max, c| max.max(c.abs()));
    counters.chunks_exact(shape.width).map(row_max).reduce(f64::min).unwrap_or(0.0)
}
