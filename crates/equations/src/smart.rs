//! SMART, the simultaneous multiplicative algebraic reconstruction technique: EM's sibling with a geometric mean.
//!
//! ```text
//! x_k  <-  x_k · exp( mean over the counters i of key k of log( y_i / (A x)_i ) )
//! ```
//!
//! Where the equations can be met with `x >= 0`, its limit is the solution nearest to the start in relative entropy,
//! `Σ x log(x / start) - x + start` (Byrne 1993, "Iterative image reconstruction algorithms based on cross-entropy
//! minimization"): the start is a prior in the exact sense, where [`em`](mod@crate::em) is one loosely. It does not keep the total on
//! the way, and where no `x >= 0` meets the equations (lost keys) it minimises the divergence `D(A x ‖ y)`, and EM
//! `D(y ‖ A x)`: the two then differ in their limits, too.
//!
//! Zeros, starts, candidates, stopping rule and cost are those of [`em`](mod@crate::em). The mean is taken as a product of `degree`-th
//! roots, made of operations that every machine rounds alike; `exp` and `log` are not.
//!
//! ```
//! use ucl_equations::{Columns, Workspace, smart};
//!
//! let mut columns = Columns::ones(4, 2); // 2 rows of 2 counters
//! columns.push(&[0, 2]);
//! columns.push(&[0, 3]);
//! let y = [12.0, 0.0, 5.0, 7.0];
//! let mut x = [0.0; 2];
//! smart::smart(&columns, &y, None, &smart::Options::default(), &mut Workspace::default(), &mut x)?;
//! assert!((x[0] - 5.0).abs() < 1e-4 && (x[1] - 7.0).abs() < 1e-4);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::{ColumnId, Columns};
use crate::error::Error;
use crate::info::Info;
use crate::multiplicative::{Mean, Problem, Real, Workspace, solve};

pub use crate::multiplicative::{MultiplicativeOptions, MultiplicativeOptions as Options, Precision};

const SOLVER: &str = "SMART";

/// The geometric mean.
struct Geometric;

impl Mean for Geometric {
    fn shares<F: Real>(ratios: &mut [F], degree: usize) {
        match degree {
            1 => {}
            2 => ratios.iter_mut().for_each(|ratio| *ratio = ratio.sqrt()),
            4 => ratios.iter_mut().for_each(|ratio| *ratio = ratio.sqrt().sqrt()),
            _ => ratios.iter_mut().for_each(|ratio| *ratio = F::from_f64(root(ratio.to_f64(), degree))),
        }
    }
    fn join<F: Real>(a: F, b: F) -> F {
        a * b
    }
}

/// `a^(1/degree)` for `a >= 0`, by Newton's iteration from above on `t^degree = a`.
fn root(a: f64, degree: usize) -> f64 {
    if a <= 0.0 {
        return 0.0;
    }
    let n = degree as f64;
    let power = i32::try_from(degree - 1).unwrap_or(i32::MAX);
    // 2^(e/n), rounded up, is at or above the root: from there Newton falls monotonically.
    let exponent = (a.to_bits() >> 52) as i32 - 1022;
    let mut t = two_to(exponent.div_euclid(degree as i32) + 1);
    loop {
        let next = ((n - 1.0) * t + a / int_power(t, power)) / n;
        if next >= t {
            return t;
        }
        t = next;
    }
}

/// `2^e`.
fn two_to(e: i32) -> f64 {
    f64::from_bits(((e + 1023).clamp(1, 2046) as u64) << 52)
}

/// `t^power` by squaring: `powi` may round differently elsewhere.
fn int_power(mut t: f64, mut power: i32) -> f64 {
    let mut product = 1.0;
    while power > 0 {
        if power & 1 == 1 {
            product *= t;
        }
        t *= t;
        power >>= 1;
    }
    product
}

/// Estimates all columns: `out` gets one value per column, `start` (ones if `None`) has one per column.
pub fn smart(
    columns: &Columns,
    y: &[f64],
    start: Option<&[f64]>,
    options: &Options,
    workspace: &mut Workspace,
    out: &mut [f64],
) -> Result<Info, Error> {
    let problem = Problem { solver: SOLVER, columns, candidates: None, y, start };
    solve::<Geometric>(&problem, options, workspace, out)
}

/// Estimates the candidates alone, all other columns being 0: `start` and `out` have one value per candidate.
pub fn smart_among(
    columns: &Columns,
    candidates: &[ColumnId],
    y: &[f64],
    start: Option<&[f64]>,
    options: &Options,
    workspace: &mut Workspace,
    out: &mut [f64],
) -> Result<Info, Error> {
    let problem = Problem { solver: SOLVER, columns, candidates: Some(candidates), y, start };
    solve::<Geometric>(&problem, options, workspace, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_roots() {
        for degree in [3, 5, 6, 7, 12, 100] {
            for a in [1e-20, 1e-3, 0.5, 1.0, 1.5, 2.0, 27.0, 1e9, 1e20] {
                let exact = f64::powf(a, 1.0 / degree as f64);
                assert!((root(a, degree) / exact - 1.0).abs() < 1e-13, "{a}^(1/{degree})");
            }
            assert_eq!(root(0.0, degree), 0.0);
        }
    }
}
