//! Counters arranged in rows, one entry of every column in each: the shape of Count-Min and Count
//! Sketch.

use crate::columns::{ColumnId, Columns};
use crate::error::Error;

/// Arrangement of counters in rows: counter `i` is in row `i / width`, and entry `j` of every
/// column is in row `j`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Number of rows (`d` in the paper).
    pub rows: usize,
    /// Number of counters in a row (`w` in the paper).
    pub width: usize,
}

impl Rows {
    /// Checks that the columns have this arrangement.
    pub fn check(&self, columns: &Columns) -> Result<(), Error> {
        let Self { rows, width } = *self;
        if rows.checked_mul(width) != Some(columns.counters()) || rows != columns.degree() {
            let counters = columns.counters();
            let degree = columns.degree();
            return Err(Error::Rows { rows, width, counters, degree });
        }
        for (column, indices) in (0u32..).zip(columns.all_indices().chunks_exact(rows)) {
            let misplaced = (0..).zip(indices).find(|&(row, &index)| index as usize / width != row);
            if let Some((row, &index)) = misplaced {
                return Err(Error::OutsideRow { column, row, index });
            }
        }
        Ok(())
    }

    /// Returns the counters of one row.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        row * self.width..(row + 1) * self.width
    }
}

/// The system without one row, and that row.
pub(crate) fn split_row(columns: &Columns, rows: Rows, row: usize, y: &[f64]) -> (Columns, Vec<f64>) {
    let gone = rows.row(row);
    let rest = [&y[..gone.start], &y[gone.end..]].concat();
    (columns.without_entry(row, &gone), rest)
}

/// `A x` on one row alone.
pub(crate) fn row_product(columns: &Columns, rows: Rows, row: usize, x: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; rows.width];
    for (id, &x) in (0..).map(ColumnId).zip(x) {
        let counter = columns.indices(id)[row] as usize - rows.row(row).start;
        sums[counter] += f64::from(columns.coefficient(id, row)) * x;
    }
    sums
}
