//! Compares estimates without ground truth: leaves out a row of counters and predicts it.
//!
//! Any solver can make `A x` fit `y`; with more keys than counters that says nothing. So decode
//! from all rows but one, and see how well the estimate predicts the row that it has not seen:
//!
//! ```text
//! residual(j) = Σ over the counters i of row j of |y_i - (A x̂_{-j})_i|  /  Σ |y_i|
//! ```
//!
//! averaged over the rows. Row `j` hashes the keys anew, so it is evidence of its own; in our
//! measurements the residual ranks decoders as their true error does. It fails for estimates that
//! do not keep the total (a row's sum is known beforehand), and it compares decoders, not sizes of
//! sketch: the residual of a wider sketch is smaller throughout.
//!
//! ```
//! use ucl_equations::{Columns, Error, Rows, Workspace, em, left_out};
//!
//! let rows = Rows { rows: 3, width: 2 };
//! let mut columns = Columns::ones(6, 3);
//! columns.push(&[0, 2, 4]);
//! columns.push(&[1, 2, 5]);
//! let y = [6.0, 2.0, 8.0, 0.0, 6.0, 2.0];
//! let all_equal = left_out::residual(&columns, rows, &y, None, |part| Ok::<_, Error>(vec![4.0; part.columns.len()]))?;
//! let by_em = left_out::residual(&columns, rows, &y, None, |part| {
//!     let mut x = vec![0.0; part.columns.len()];
//!     em::em(part.columns, part.y, None, &em::Options::default(), &mut Workspace::default(), &mut x)?;
//!     Ok::<_, Error>(x)
//! })?;
//! assert!(by_em < all_equal);
//! # Ok::<(), Error>(())
//! ```

use crate::columns::Columns;
use crate::error::{Error, check_finite, check_len};
use crate::info::relative_l1;
use crate::rows::{Rows, row_product, split_row};

/// System without one row.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut<'a> {
    /// Number of the row that was left out.
    pub row: usize,
    /// Arrangement of the remaining rows.
    pub rows: Rows,
    /// Columns without the entry in the row left out, with counters renumbered without a gap.
    pub columns: &'a Columns,
    /// Counters of the remaining rows.
    pub y: &'a [f64],
}

/// Returns the mean relative L1 residual on rows that were left out in turn: all rows, or those
/// named. `estimate` decodes a [`LeftOut`] into one value per column. Rows without mass are
/// skipped; the result is 0 if no row has mass.
pub fn residual<E: From<Error>>(
    columns: &Columns,
    rows: Rows,
    y: &[f64],
    only: Option<&[usize]>,
    mut estimate: impl FnMut(LeftOut<'_>) -> Result<Vec<f64>, E>,
) -> Result<f64, E> {
    rows.check(columns)?;
    check_len("y", columns.counters(), y.len())?;
    check_finite("y", y)?;
    let every: Vec<usize> = (0..rows.rows).collect();
    let chosen = only.unwrap_or(&every);
    if let Some(&row) = chosen.iter().find(|&&row| row >= rows.rows || rows.rows == 1) {
        return Err(Error::LeftOutRow { row, rows: rows.rows }.into());
    }
    let mut sum = 0.0;
    let mut counted = 0;
    for &row in chosen {
        let truth = &y[rows.row(row)];
        if truth.iter().all(|&y| y == 0.0) {
            continue;
        }
        let (rest, seen) = split_row(columns, rows, row, y);
        let part = LeftOut { row, rows: Rows { rows: rows.rows - 1, ..rows }, columns: &rest, y: &seen };
        let x = estimate(part)?;
        check_len("the estimate", columns.len(), x.len())?;
        check_finite("the estimate", &x)?;
        sum += relative_l1(truth, &row_product(columns, rows, row, &x));
        counted += 1;
    }
    Ok(if counted > 0 { sum / f64::from(counted) } else { 0.0 })
}
