//! MAP: the posterior estimate of the paper's Theorem 4, in closed form.
//!
//! With a normal prior of mean `μ` and variance `σ²` on every count, and what collides with a key
//! in a row of `w` counters taken as normal too,
//!
//! ```text
//!          μ ‖x‖₂² + σ² ( w Σ_j y_{j,H_j(k)} - d ‖x‖₁ )
//! x̂(k) = ---------------------------------------------        (Theorem 4)
//!               ‖x‖₂² + σ² d (w - 1)
//! ```
//!
//! The theorem leaves `μ` and `σ` open. Here they come from the counters: `‖x‖₁` is the rows'
//! common sum and `μ = ‖x‖₁ / N`; a row's sum of squares has the expectation
//! `‖x‖₂² + (‖x‖₁² - ‖x‖₂²) / w` over the hash functions, so
//! `‖x‖₂² = (w · mean over rows of Σ y² - ‖x‖₁²) / (w - 1)`; and `σ² = ‖x‖₂² / N - μ²`, at least 0.
//!
//! One pass over the columns, no iteration. The price is a linear shrinkage that is the same for
//! all keys: heavy keys are pulled down to `μ`, estimates may be negative, and with few collisions
//! it does not reach the exact solution as the iterative solvers do. For columns of ones in rows
//! (Count-Min) only.
//!
//! ```
//! use ucl_equations::{Columns, Rows, map};
//!
//! let rows = Rows { rows: 2, width: 4 };
//! let mut columns = Columns::ones(8, 2);
//! columns.push(&[0, 5]);
//! columns.push(&[2, 7]);
//! let mut x = [0.0; 2];
//! let prior = map::map(&columns, rows, &[7.0, 0.0, 1.0, 0.0, 0.0, 7.0, 0.0, 1.0], &mut x)?;
//! assert_eq!((prior.mean, prior.l1), (4.0, 8.0));
//! assert!(7.0 > x[0] && x[0] > x[1] && x[1] > 1.0); // both are drawn to the mean
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::Columns;
use crate::dense;
use crate::error::{Error, check_finite, check_len};
use crate::products::gather_with;
use crate::rows::Rows;

/// Prior distribution of the counts, estimated from the counters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Mean count `μ`.
    pub mean: f64,
    /// Variance `σ²` of the counts.
    pub variance: f64,
    /// Sum `‖x‖₁` of the counts.
    pub l1: f64,
    /// Sum of squares `‖x‖₂²` of the counts, at least `‖x‖₁² / N`.
    pub l2_squared: f64,
}

impl Prior {
    /// Estimates the prior of `keys` counts from counters in rows.
    pub fn from_counters(rows: Rows, keys: usize, y: &[f64]) -> Result<Self, Error> {
        let expected = rows.rows.saturating_mul(rows.width);
        check_len("y", expected, y.len())?;
        check_finite("y", y)?;
        if keys == 0 || expected == 0 {
            return Ok(Self { mean: 0.0, variance: 0.0, l1: 0.0, l2_squared: 0.0 });
        }
        let n = keys as f64;
        let d = rows.rows as f64;
        let w = rows.width as f64;
        let l1 = y.iter().sum::<f64>() / d;
        let equal = l1 * l1 / n;
        let squares = dense::sum_of_squares(y) / d;
        let l2_squared = if rows.width > 1 { ((w * squares - l1 * l1) / (w - 1.0)).max(equal) } else { equal };
        let mean = l1 / n;
        Ok(Self { mean, variance: (l2_squared / n - mean * mean).max(0.0), l1, l2_squared })
    }
}

/// Estimates all columns with the prior that the counters give, and returns the prior.
///
/// # Errors
/// If a slice has the wrong length, or holds a negative number or none that is finite; if the
/// columns do not have a one in every row and nothing else.
pub fn map(columns: &Columns, rows: Rows, y: &[f64], out: &mut [f64]) -> Result<Prior, Error> {
    if !columns.is_ones() {
        return Err(Error::NeedsOnes { solver: "MAP" });
    }
    rows.check(columns)?;
    check_len("out", columns.len(), out.len())?;
    let prior = Prior::from_counters(rows, columns.len(), y)?;
    let Prior { mean, variance, l1, l2_squared } = prior;
    let (d, w) = (rows.rows as f64, rows.width as f64);
    let weight = l2_squared + variance * d * (w - 1.0);
    if weight > 0.0 {
        gather_with(columns, y, out, |sum, _| (mean * l2_squared + variance * (w * sum - d * l1)) / weight);
    } else {
        out.fill(mean);
    }
    Ok(prior)
}
