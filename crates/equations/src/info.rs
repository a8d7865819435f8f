//! How a solver ended.

use crate::{Columns, products};

/// What every solver reports beside its estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Iterations run (for OMP: atoms chosen).
    pub iterations: usize,
    /// `‖y - A x‖₁ / ‖y‖₁`: the share of the counters' mass that the estimate does not explain, over all counters,
    /// those that no column touches included; 0 when `y` is all zero. The same gauge for every solver, but no measure
    /// of truth: an under-determined system has many `x` with residual 0. See [`left_out`](crate::left_out).
    pub residual: f64,
    /// Why it stopped.
    pub stop: Stop,
}

/// Why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing to do: no column, no mass in the counters, or `Aᵀ y = 0`.
    Trivial,
    /// The equations hold to the tolerances.
    Solved,
    /// No `x` solves the equations, but this one is the least-squares solution to the tolerances.
    LeastSquares,
    /// The estimate no longer changes by more than the tolerance.
    Settled,
    /// The estimated condition number passed its limit.
    Conditioning,
    /// OMP: no column is left that is independent of those chosen and correlates with what remains.
    Exhausted,
    /// The limit of iterations (for OMP: of atoms).
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
