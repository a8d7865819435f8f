//! LSMR: least squares by bidiagonalisation, with a monotone gradient (Fong & Saunders 2011, SIAM
//! J. Sci. Comput. 33(5), 2950-2971).
//!
//! Solves what [`lsqr`](mod@crate::lsqr) solves, from the same bidiagonalisation, but is MINRES
//! instead of conjugate gradients on the normal equations: `‖Aᵀ r‖` falls with every iteration, so
//! that on systems without a solution (keys that the Bloom filter lost) it can be stopped earlier.
//! The limit is the same.
//!
//! **Stopping.** As for LSQR; the limit of iterations is the smaller number of counters and columns
//! unless set. The estimates of `‖r‖`, `‖Aᵀ r‖`, `‖A‖` and `cond(A)` are those of the paper's
//! section 3; the names are its as well (`rho_dot` for ρ̇, `rho_bar` for ρ̄, `theta_tilde` for θ̃).
//!
//! ```
//! use ucl_equations::{Columns, Stop, lsmr};
//!
//! let mut columns = Columns::ones(3, 2);
//! columns.push(&[0, 1]);
//! columns.push(&[1, 2]);
//! let mut x = [0.0; 2];
//! let info = lsmr::lsmr(&columns, &[3.0, 8.0, 5.0], &lsmr::Options::default(), &mut x)?;
//! assert_eq!(info.stop, Stop::Solved);
//! assert!((x[0] - 3.0).abs() < 1e-5 && (x[1] - 5.0).abs() < 1e-5);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::bidiagonal::{Bidiagonal, rotation};
use crate::columns::Columns;
use crate::dense;
use crate::error::Error;
use crate::info::{Info, Stop};

pub use crate::bidiagonal::LeastSquaresOptions as Options;

/// Estimates all columns and writes one value per column to `out`.
///
/// # Errors
/// If a slice has the wrong length, if a number is not finite, or if an option is impossible.
pub fn lsmr(columns: &Columns, y: &[f64], options: &Options, out: &mut [f64]) -> Result<Info, Error> {
    options.check(columns, y, out)?;
    out.fill(0.0);
    let mut basis = Bidiagonal::new(columns, y);
    if basis.alpha * basis.beta == 0.0 {
        return Ok(Info::of(columns, out, y, 0, Stop::Trivial));
    }
    let limit = options.iterations.unwrap_or(columns.len().min(columns.counters()));
    let mut h = {
        let (v, scale) = basis.v();
        v.iter().map(|v| v * scale).collect::<Vec<f64>>()
    };
    let mut h_bar = vec![0.0; h.len()];
    let mut state = State::new(&basis, options);
    let mut iterations = 0;
    let mut stop = Stop::Limit;
    while iterations < limit {
        iterations += 1;
        basis.step();
        let step = state.rotate(&basis);
        let (v, scale) = basis.v();
        let x_norm = advance(out, &mut h, &mut h_bar, v, scale, &step).sqrt();
        if let Some(reason) = state.test(x_norm) {
            stop = reason;
            break;
        }
    }
    Ok(Info::of(columns, out, y, iterations, stop))
}

/// The factors of `h_bar = h + of_h_bar · h_bar`, `x += of_x · h_bar`, `h = v + of_h · h`.
struct Step {
    of_h_bar: f64,
    of_x: f64,
    of_h: f64,
}

/// All three updates in one pass; returns `Σ x²` after it.
fn advance(x: &mut [f64], h: &mut [f64], h_bar: &mut [f64], v: &[f64], scale: f64, step: &Step) -> f64 {
    let mut squares = 0.0;
    let blocks = x.chunks_mut(512).zip(h.chunks_mut(512)).zip(h_bar.chunks_mut(512)).zip(v.chunks(512));
    for (((x, h), h_bar), v) in blocks {
        for (((x, h), h_bar), v) in x.iter_mut().zip(h).zip(h_bar).zip(v) {
            *h_bar = *h + step.of_h_bar * *h_bar;
            *x += step.of_x * *h_bar;
            *h = scale * v + step.of_h * *h;
        }
        squares += dense::sum_of_squares(x);
    }
    squares
}

/// The scalars of the recurrence.
struct State<'a> {
    options: &'a Options,
    y_norm: f64,
    alpha_bar: f64,
    zeta_bar: f64,
    rho: f64,
    rho_bar: f64,
    cos_bar: f64,
    sin_bar: f64,
    zeta: f64,
    residual: Residual,
    /// `‖A‖²` (Frobenius) so far, without and with the newest alpha.
    a_squared: f64,
    next_a_squared: f64,
    /// The extremes of `rho_bar`, and its newest, still changing value: their quotient estimates
    /// `cond(A)`.
    largest: f64,
    smallest: f64,
    newest: f64,
    first: bool,
}

/// Numbers that the estimate of `‖r‖` needs (section 3.1 and table 3 of the paper).
struct Residual {
    beta_ddot: f64,
    beta_dot: f64,
    rho_dot: f64,
    tau_tilde: f64,
    theta_tilde: f64,
    damped: f64,
    norm: f64,
}

impl<'a> State<'a> {
    fn new(basis: &Bidiagonal<'_>, options: &'a Options) -> Self {
        let alpha_squared = basis.alpha * basis.alpha;
        Self {
            options,
            y_norm: basis.beta,
            alpha_bar: basis.alpha,
            zeta_bar: basis.alpha * basis.beta,
            rho: 1.0,
            rho_bar: 1.0,
            cos_bar: 1.0,
            sin_bar: 0.0,
            zeta: 0.0,
            residual: Residual {
                beta_ddot: basis.beta,
                beta_dot: 0.0,
                rho_dot: 1.0,
                tau_tilde: 0.0,
                theta_tilde: 0.0,
                damped: 0.0,
                norm: basis.beta,
            },
            a_squared: alpha_squared,
            next_a_squared: alpha_squared,
            largest: 0.0,
            smallest: f64::INFINITY,
            newest: 0.0,
            first: true,
        }
    }

    fn rotate(&mut self, basis: &Bidiagonal<'_>) -> Step {
        let (alpha, beta) = (basis.alpha, basis.beta);
        // Damping; then Q, which makes the bidiagonal matrix upper triangular; then Q̄, which does
        // so to its transpose.
        let (cos_hat, sin_hat, alpha_hat) = rotation(self.alpha_bar, self.options.damp);
        let rho_old = self.rho;
        let (cos, sin, rho) = rotation(alpha_hat, beta);
        self.rho = rho;
        let theta = sin * alpha;
        self.alpha_bar = cos * alpha;

        let rho_bar_old = self.rho_bar;
        let zeta_old = self.zeta;
        let theta_bar = self.sin_bar * rho;
        self.newest = self.cos_bar * rho;
        (self.cos_bar, self.sin_bar, self.rho_bar) = rotation(self.newest, theta);
        self.zeta = self.cos_bar * self.zeta_bar;
        self.zeta_bar *= -self.sin_bar;

        self.residual.rotate((cos_hat, sin_hat), (cos, sin), theta_bar, self.rho_bar, zeta_old, self.zeta);
        self.a_squared = self.next_a_squared + beta * beta;
        self.next_a_squared = self.a_squared + alpha * alpha;
        self.largest = self.largest.max(rho_bar_old);
        if !self.first {
            self.smallest = self.smallest.min(rho_bar_old);
        }
        self.first = false;
        Step {
            of_h_bar: -theta_bar * rho / (rho_old * rho_bar_old),
            of_x: self.zeta / (rho * self.rho_bar),
            of_h: -theta / rho,
        }
    }

    fn test(&self, x_norm: f64) -> Option<Stop> {
        let a_norm = self.a_squared.sqrt();
        let r_norm = self.residual.norm;
        let condition = self.largest.max(self.newest) / self.smallest.min(self.newest);
        let solved = r_norm / self.y_norm;
        let gradient = a_norm * r_norm;
        let least_squares = if gradient > 0.0 { self.zeta_bar.abs() / gradient } else { f64::INFINITY };
        let relative_x = a_norm * x_norm / self.y_norm;
        let below = |value: f64, tolerance: f64| value <= tolerance || 1.0 + value <= 1.0;
        if below(solved, self.options.btol + self.options.atol * relative_x) || 1.0 + solved / (1.0 + relative_x) <= 1.0
        {
            Some(Stop::Solved)
        } else if below(least_squares, self.options.atol) {
            Some(Stop::LeastSquares)
        } else if below(1.0 / condition, self.options.condition_floor()) {
            Some(Stop::Conditioning)
        } else {
            None
        }
    }
}

impl Residual {
    fn rotate(
        &mut self,
        (cos_hat, sin_hat): (f64, f64),
        (cos, sin): (f64, f64),
        theta_bar: f64,
        rho_bar: f64,
        zeta_old: f64,
        zeta: f64,
    ) {
        let beta_acute = cos_hat * self.beta_ddot;
        let beta_check = -sin_hat * self.beta_ddot;
        let beta_hat = cos * beta_acute;
        self.beta_ddot = -sin * beta_acute;

        let theta_tilde_old = self.theta_tilde;
        let (cos_tilde, sin_tilde, rho_tilde) = rotation(self.rho_dot, theta_bar);
        self.theta_tilde = sin_tilde * rho_bar;
        self.rho_dot = cos_tilde * rho_bar;
        self.beta_dot = cos_tilde * beta_hat - sin_tilde * self.beta_dot;

        self.tau_tilde = (zeta_old - theta_tilde_old * self.tau_tilde) / rho_tilde;
        let tau_dot = (zeta - self.theta_tilde * self.tau_tilde) / self.rho_dot;
        self.damped += beta_check * beta_check;
        let off = self.beta_dot - tau_dot;
        self.norm = (self.damped + off * off + self.beta_ddot * self.beta_ddot).sqrt();
    }
}
