//! The Golub-Kahan bidiagonalisation, which LSQR and LSMR share.
//!
//! From `β₁ u₁ = y`, `α₁ v₁ = Aᵀ u₁`, step by step `β u' = A v - α u`, `α v' = Aᵀ u' - β v`, all of
//! length one. In exact arithmetic the `u` are orthogonal, the `v` too, and `A` is lower bidiagonal
//! between them.
//!
//! The vectors are kept unscaled, each with its length beside: the division happens where the
//! vector is next read, which saves two passes per step.

use crate::columns::Columns;
use crate::dense;
use crate::error::{Error, check_finite, check_len, check_option};
use crate::products::{Sums, gather_with, scatter_with};

/// Damping and stopping rules of LSQR and LSMR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeastSquaresOptions {
    /// Damping: the solvers minimise `‖y - A x‖₂² + damp² ‖x‖₂²`. 0 is plain least squares.
    pub damp: f64,
    /// Assumed relative error of `A`.
    pub atol: f64,
    /// Assumed relative error of `y`.
    pub btol: f64,
    /// Largest estimated condition number of `A`; the solver stops above it. 0 is no limit.
    pub condition_limit: f64,
    /// Largest number of iterations. The default is twice the number of columns for LSQR, and the
    /// smaller of the numbers of columns and counters for LSMR.
    pub iterations: Option<usize>,
}

impl Default for LeastSquaresOptions {
    fn default() -> Self {
        Self { damp: 0.0, atol: 1e-6, btol: 1e-6, condition_limit: 1e8, iterations: None }
    }
}

impl LeastSquaresOptions {
    pub(crate) fn check(&self, columns: &Columns, y: &[f64], out: &[f64]) -> Result<(), Error> {
        check_len("y", columns.counters(), y.len())?;
        check_len("out", columns.len(), out.len())?;
        check_finite("y", y)?;
        columns.check_finite()?;
        check_option("damp", self.damp)?;
        check_option("atol", self.atol)?;
        check_option("btol", self.btol)?;
        check_option("condition_limit", self.condition_limit)
    }

    /// The smallest reciprocal condition number allowed.
    pub(crate) fn condition_floor(&self) -> f64 {
        if self.condition_limit > 0.0 { 1.0 / self.condition_limit } else { 0.0 }
    }
}

/// The present pair of vectors, and the two numbers of the step.
pub(crate) struct Bidiagonal<'a> {
    columns: &'a Columns,
    sums: Sums,
    u: Vec<f64>,
    v: Vec<f64>,
    pub alpha: f64,
    pub beta: f64,
}

impl<'a> Bidiagonal<'a> {
    pub fn new(columns: &'a Columns, y: &[f64]) -> Self {
        let u = y.to_vec();
        let beta = dense::norm(&u);
        let mut v = vec![0.0; columns.len()];
        let mut alpha = 0.0;
        if beta > 0.0 {
            alpha = gather_with(columns, &u, &mut v, |sum, _| sum / beta).sqrt();
        }
        Self { columns, sums: Sums::default(), u, v, alpha, beta }
    }

    /// The next `u`, `v`, `beta` and `alpha`.
    pub fn step(&mut self) {
        let Self { columns, sums, u, v, alpha, beta } = self;
        let (of_v, of_u) = (inverse(*alpha), *alpha * inverse(*beta));
        *beta = scatter_with(columns, v, sums, u, |sum, old| sum * of_v - old * of_u).sqrt();
        if *beta > 0.0 {
            let (of_u, of_v) = (inverse(*beta), *beta * inverse(*alpha));
            *alpha = gather_with(columns, u, v, |sum, old| sum * of_u - old * of_v).sqrt();
        }
    }

    /// The present `v`, to be multiplied by the second value to have length one.
    pub fn v(&self) -> (&[f64], f64) {
        (&self.v, inverse(self.alpha))
    }
}

fn inverse(length: f64) -> f64 {
    if length > 0.0 { 1.0 / length } else { 0.0 }
}

/// The plane rotation that takes `(a, b)` to `(r, 0)`: its cosine, its sine, and `r`. Scaled
/// against overflow.
pub(crate) fn rotation(a: f64, b: f64) -> (f64, f64, f64) {
    let largest = a.abs().max(b.abs());
    if largest == 0.0 {
        return (0.0, 0.0, 0.0);
    }
    if b == 0.0 {
        return (a.signum(), 0.0, a.abs());
    }
    let (x, y) = (a / largest, b / largest);
    let r = (x * x + y * y).sqrt();
    (x / r, y / r, r * largest)
}
