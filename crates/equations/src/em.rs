//! EM: the multiplicative update for `x >= 0`.
//!
//! ```text
//! x_k  <-  x_k · mean over the counters i of key k of ( y_i / (A x)_i )
//! ```
//!
//! Each counter shares its mass among its keys in proportion to their present estimates, and each
//! key takes the mean of what its counters offer. Every iteration keeps the total (`Σ x` is the
//! mass of the counters that have a live key, divided by the degree) and the signs, and lowers the
//! Kullback-Leibler divergence of `A x` from `y`. It is the EM algorithm of Shepp & Vardi (1982)
//! and the Richardson-Lucy iteration of deconvolution; Kumar et al. (2004) first used such an EM on
//! the counters of a sketch.
//!
//! **The start is the prior.** With fewer counters than keys many `x` solve `y = A x`, and which of
//! them EM reaches is decided by where it starts (the null-space term of the paper's Theorem 1).
//! From ones it prefers even solutions; from the learned decoder's output it refines that. A start
//! of 0 stays 0 for ever: give unlikely keys a small number instead.
//!
//! **Zeros.** A key on a counter with `y = 0` is exactly 0, from the start. Mass on counters that
//! no key explains (a key that the Bloom filter lost) is not shared out, and shows in the residual;
//! where such a key shares counters with known keys, their estimates grow by it.
//!
//! **Stopping.** After [`iterations`](MultiplicativeOptions::iterations) (100 by default), or
//! earlier when `Σ|change of x| <= tolerance · Σ x`, if a tolerance is set. Convergence is slow
//! near solutions with zeros: where counters outnumber keys, [`peeling`](crate::peeling) first
//! gives the accuracy of many iterations for few.
//!
//! **Speed.** See the private module `multiplicative`: only live keys and counters take part, in
//! one pass per iteration.
//!
//! ```
//! use ucl_equations::{Columns, Workspace, em};
//!
//! let mut columns = Columns::ones(4, 2); // 2 rows of 2 counters
//! columns.push(&[0, 2]);
//! columns.push(&[0, 3]);
//! columns.push(&[1, 3]);
//! let y = [12.0, 0.0, 5.0, 7.0]; // 5, 7 and 0
//! let mut x = [0.0; 3];
//! let info = em::em(&columns, &y, None, &em::Options::default(), &mut Workspace::default(), &mut x)?;
//! assert!((x[0] - 5.0).abs() < 1e-4 && (x[1] - 7.0).abs() < 1e-4);
//! assert_eq!(x[2], 0.0); // one of its counters is empty
//! assert!(info.residual < 1e-5);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::{ColumnId, Columns};
use crate::error::Error;
use crate::info::Info;
use crate::multiplicative::{Problem, Workspace, solve};

pub use crate::multiplicative::{MultiplicativeOptions, MultiplicativeOptions as Options, Precision};

const SOLVER: &str = "EM";

/// Estimates all columns. `start` (ones if `None`) and `out` have one value per column.
///
/// # Errors
/// If a slice has the wrong length, or holds a negative number or none that is finite; if the
/// columns have other coefficients than ones.
pub fn em(
    columns: &Columns,
    y: &[f64],
    start: Option<&[f64]>,
    options: &Options,
    workspace: &mut Workspace,
    out: &mut [f64],
) -> Result<Info, Error> {
    let problem = Problem { solver: SOLVER, columns, candidates: None, y, start };
    solve(&problem, options, workspace, out)
}

/// Estimates the candidates and takes all other columns as 0. `start` and `out` have one value per
/// candidate. The other columns are neither read nor copied.
///
/// # Errors
/// As [`em`], and if a candidate is not a column.
pub fn em_among(
    columns: &Columns,
    candidates: &[ColumnId],
    y: &[f64],
    start: Option<&[f64]>,
    options: &Options,
    workspace: &mut Workspace,
    out: &mut [f64],
) -> Result<Info, Error> {
    let problem = Problem { solver: SOLVER, columns, candidates: Some(candidates), y, start };
    solve(&problem, options, workspace, out)
}
