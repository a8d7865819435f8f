//! LSQR: least squares by bidiagonalisation (Paige & Saunders 1982, ACM TOMS 8(1), 43-71), the
//! decoder that the paper compares against.
//!
//! Minimises `‖y - A x‖₂² + damp² ‖x‖₂²`; of all minima, the `x` of least length. It is conjugate
//! gradients on the normal equations `Aᵀ A x = Aᵀ y`, but works on `A` itself, with an error that
//! grows with its condition number and not with the square of that. Starting from 0, every iterate
//! is a combination of columns' transposes: the part of the truth that `A` does not see (Theorem
//! 1's null space) is estimated as 0, so with more keys than counters the estimate is spread out,
//! and may be negative.
//!
//! **Stopping.** The first of
//! - `‖r‖ <= btol ‖y‖ + atol ‖A‖ ‖x‖`: solved ([`Stop::Solved`]);
//! - `‖Aᵀ r‖ <= atol ‖A‖ ‖r‖`: least squares ([`Stop::LeastSquares`]);
//! - the estimate of `cond(A)` passes `condition_limit` ([`Stop::Conditioning`]);
//! - the limit of iterations, twice the number of columns unless set ([`Stop::Limit`]).
//!
//! `‖A‖`, `‖x‖`, `‖r‖` and `cond(A)` are the running estimates of the paper's section 5; the names
//! `rho`, `phi`, `theta` below are its as well. Tolerances below the machine's precision count as
//! that.
//!
//! ```
//! use ucl_equations::{Columns, Stop, lsqr};
//!
//! let mut columns = Columns::ones(3, 2);
//! columns.push(&[0, 1]);
//! columns.push(&[1, 2]);
//! let mut x = [0.0; 2];
//! let info = lsqr::lsqr(&columns, &[3.0, 8.0, 5.0], &lsqr::Options::default(), &mut x)?;
//! assert_eq!(info.stop, Stop::Solved);
//! assert!((x[0] - 3.0).abs() < 1e-5 && (x[1] - 5.0).abs() < 1e-5);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::bidiagonal::{Bidiagonal, rotation};
use crate::columns::Columns;
use crate::error::Error;
use crate::info::{Info, Stop};

pub use crate::bidiagonal::LeastSquaresOptions as Options;

/// Estimates all columns and writes one value per column to `out`.
///
/// # Errors
/// If a slice has the wrong length, if a number is not finite, or if an option is impossible.
pub fn lsqr(columns: &Columns, y: &[f64], options: &Options, out: &mut [f64]) -> Result<Info, Error> {
    options.check(columns, y, out)?;
    out.fill(0.0);
    let mut basis = Bidiagonal::new(columns, y);
    if basis.alpha * basis.beta == 0.0 {
        return Ok(Info::of(columns, out, y, 0, Stop::Trivial));
    }
    let limit = options.iterations.unwrap_or(2 * columns.len());
    let mut w = {
        let (v, scale) = basis.v();
        v.iter().map(|v| v * scale).collect::<Vec<f64>>()
    };
    let mut state = State::new(&basis, options);
    let mut iterations = 0;
    let mut stop = Stop::Limit;
    while iterations < limit {
        iterations += 1;
        basis.step();
        let direction = state.rotate(&basis);
        // x += (phi/rho) w;  w = v - (theta/rho) w;  and ‖w‖² of the old w, all in one pass.
        let (v, scale) = basis.v();
        let squares = advance(out, &mut w, v, scale, &direction);
        if let Some(reason) = state.test(&basis, squares / (direction.rho * direction.rho)) {
            stop = reason;
            break;
        }
    }
    Ok(Info::of(columns, out, y, iterations, stop))
}

struct Direction {
    rho: f64,
    phi: f64,
    theta: f64,
}

/// Returns `Σ w²` before the update, added in eight lanes.
fn advance(x: &mut [f64], w: &mut [f64], v: &[f64], scale: f64, direction: &Direction) -> f64 {
    let step = direction.phi / direction.rho;
    let keep = -direction.theta / direction.rho;
    let mut squares = 0.0;
    for ((x, w), v) in x.chunks_mut(512).zip(w.chunks_mut(512)).zip(v.chunks(512)) {
        squares += crate::dense::sum_of_squares(w);
        for ((x, w), v) in x.iter_mut().zip(w).zip(v) {
            *x += step * *w;
            *w = scale * v + keep * *w;
        }
    }
    squares
}

/// The scalars of the recurrence.
struct State<'a> {
    options: &'a Options,
    y_norm: f64,
    rho_bar: f64,
    phi_bar: f64,
    /// `‖A‖²` (Frobenius) and `‖D‖²` so far: their product estimates `cond(A)²`.
    a_squared: f64,
    d_squared: f64,
    /// Part of `‖r‖²` that damping adds.
    damped: f64,
    /// For `‖x‖`: a second set of rotations, from the right.
    x_squared: f64,
    x_norm: f64,
    z: f64,
    cos2: f64,
    sin2: f64,
    /// `|τ|` of the last rotation: `‖Aᵀ r‖ = alpha · |τ|`.
    tau: f64,
}

impl<'a> State<'a> {
    fn new(basis: &Bidiagonal<'_>, options: &'a Options) -> Self {
        Self {
            options,
            y_norm: basis.beta,
            rho_bar: basis.alpha,
            phi_bar: basis.beta,
            a_squared: basis.alpha * basis.alpha,
            d_squared: 0.0,
            damped: 0.0,
            x_squared: 0.0,
            x_norm: 0.0,
            z: 0.0,
            cos2: -1.0,
            sin2: 0.0,
            tau: 0.0,
        }
    }

    /// Turns the next row of the bidiagonal matrix upper triangular.
    fn rotate(&mut self, basis: &Bidiagonal<'_>) -> Direction {
        let damp = self.options.damp;
        self.a_squared += basis.beta * basis.beta + damp * damp;
        // First the damping, then the subdiagonal beta.
        let (cos1, sin1, rho_bar) = rotation(self.rho_bar, damp);
        let psi = sin1 * self.phi_bar;
        let phi_bar = cos1 * self.phi_bar;
        self.damped += psi * psi;
        let (cos, sin, rho) = rotation(rho_bar, basis.beta);
        let (theta, phi) = (sin * basis.alpha, cos * phi_bar);
        self.rho_bar = -cos * basis.alpha;
        self.phi_bar = sin * phi_bar;
        self.tau = (sin * phi).abs();

        let delta = self.sin2 * rho;
        let gamma_bar = -self.cos2 * rho;
        let rhs = phi - delta * self.z;
        let z_bar = rhs / gamma_bar;
        self.x_norm = (self.x_squared + z_bar * z_bar).sqrt();
        let (cos2, sin2, gamma) = rotation(gamma_bar, theta);
        (self.cos2, self.sin2) = (cos2, sin2);
        self.z = rhs / gamma;
        self.x_squared += self.z * self.z;
        Direction { rho, phi, theta }
    }

    fn test(&mut self, basis: &Bidiagonal<'_>, d_squared: f64) -> Option<Stop> {
        self.d_squared += d_squared;
        let a_norm = self.a_squared.sqrt();
        self.a_squared += basis.alpha * basis.alpha;
        let r_norm = (self.phi_bar * self.phi_bar + self.damped).sqrt();
        let condition = a_norm * self.d_squared.sqrt();
        let solved = r_norm / self.y_norm;
        let least_squares = basis.alpha * self.tau / (a_norm * r_norm + f64::EPSILON);
        let inverse_condition = 1.0 / (condition + f64::EPSILON);
        let relative_x = a_norm * self.x_norm / self.y_norm;
        let below = |value: f64, tolerance: f64| value <= tolerance || 1.0 + value <= 1.0;
        if below(solved, self.options.btol + self.options.atol * relative_x) || 1.0 + solved / (1.0 + relative_x) <= 1.0
        {
            Some(Stop::Solved)
        } else if below(least_squares, self.options.atol) {
            Some(Stop::LeastSquares)
        } else if below(inverse_condition, self.options.condition_floor()) {
            Some(Stop::Conditioning)
        } else {
            None
        }
    }
}
