//! Report of a solver: iterations, residual, and reason why it stopped.

use crate::{Columns, products};

/// Report of a solver beside its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Number of iterations; for OMP, number of atoms chosen.
    pub iterations: usize,
    /// Relative residual `‖y - A x‖₁ / ‖y‖₁` over all counters, including those that no column
    /// touches; 0 if `y` is zero. It is comparable between solvers but does not measure truth: an
    /// under-determined system has many `x` with residual 0. See [`left_out`](crate::left_out).
    pub residual: f64,
    /// Reason why the solver stopped.
    pub stop: Stop,
}

/// Reason why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There was nothing to solve: no column, no mass in the counters, or `Aᵀ y = 0`.
    Trivial,
    /// The equations hold within the tolerances.
    Solved,
    /// No `x` solves the equations; the estimate is the least-squares solution within the
    /// tolerances.
    LeastSquares,
    /// The estimate changed by less than the tolerance.
    Settled,
    /// The estimated condition number is over its limit.
    Conditioning,
    /// OMP found no further column that is independent of the chosen ones and correlates with the
    /// residual.
    Exhausted,
    /// The limit of iterations (for OMP, of atoms) was reached.
    Limit,
}

impl Info {
    pub(crate) fn of(columns: &Columns, x: &[f64], y: &[f64], iterations: usize, stop: Stop) -> Self {
        let mut product = vec![0.0; columns.counters()];
        products::scatter(columns, x, &mut product);
        Self { iterations, residual: relative_l1(y, &product), stop }
    }
}

/// `‖y - z‖₁ / ‖y‖₁`, and 0 where `y` is all zero.
pub(crate) fn relative_l1(y: &[f64], z: &[f64]) -> f64 {
    let mass: f64 = y.iter().map(|v| v.abs()).sum();
    let off: f64 = y.iter().zip(z).map(|(y, z)| (y - z).abs()).sum();
    if mass > 0.0 { off / mass } else { 0.0 }
}
