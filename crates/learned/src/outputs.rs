//! What a network's outputs say of the network, where its loss does not.
//!
//! Equation 2 can be small while the network has learned nothing. Counters are divided by the
//! scale, near the largest of them, so most are close to 0, and so is the loss of a network that
//! gives every key nearly 0. The sparsity term even rewards it. Once its layers are dead, such a
//! network stays as it is: it has *collapsed*. It need not be noticed by its answers either, for
//! the bounds put them right.
//!
//! So we look at the outputs themselves, for the newest snapshot. A network has collapsed if
//!
//! - the sum of its outputs is less than half of what the counters hold (a trained network is
//!   within a few percent: the sum is the easiest thing to learn), or
//! - its outputs hardly differ, their standard deviation being below a tenth of their mean, and the
//!   counters differ by more than that.
//!
//! Kosarak, 64KB, the paper's shapes, without the equivariant term: seed 1 stops after 40 epochs
//! with a loss of 0.020 and outputs of 5% of the sum. A sound network has 96% to 99%.
//!
//! A poor network need not have collapsed: one that has not trained long enough has the right sum
//! and outputs that differ, and still explains the counters no better than the same count for every
//! key does. That is told as well, but it is for the [judge] to say who answers.
//!
//! [judge]: https://docs.rs/ucl-control-plane

use ucl_equations::{ColumnId, Columns};

/// What the outputs of a network for one snapshot say of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outputs {
    /// Sum of all outputs, as a share of what the counters hold.
    pub mass: f64,
    /// Standard deviation of the outputs over their mean; 0 if all are the same.
    pub variation: f64,
    /// Share of the counters' variation that the outputs explain, beyond what the same count for
    /// every key does: 1 if they fit the counters, 0 or less if they fit no better.
    pub explained: f64,
}

impl Outputs {
    /// Outputs of less, as a share of what the counters hold, are those of a collapsed network.
    const LEAST_MASS: f64 = 0.5;
    /// Outputs that vary less are, too, if they do not explain the counters.
    const LEAST_VARIATION: f64 = 0.1;
    const LEAST_EXPLAINED: f64 = 0.5;

    /// Returns what the outputs `x` for these counters say. A snapshot without anything in it says
    /// nothing against the network.
    pub fn of(columns: &Columns, counters: &[f64], x: &[f64]) -> Self {
        let keys = columns.len();
        let total: f64 = counters.iter().map(|y| y.abs()).sum();
        if keys == 0 || total == 0.0 {
            return Self { mass: 1.0, variation: f64::INFINITY, explained: 1.0 };
        }
        // Signed counters cancel, and then hold less than the keys have: more outputs are no fault.
        let degree = columns.degree() as f64;
        let mut ours: Vec<f64> = counters.iter().map(|y| -y).collect();
        let mut equal = ours.clone();
        let share = total / (keys as f64 * degree);
        for (k, &x) in x.iter().enumerate() {
            let id = ColumnId(k as u32);
            for (entry, &at) in columns.indices(id).iter().enumerate() {
                let coefficient = f64::from(columns.coefficient(id, entry));
                ours[at as usize] += coefficient * x;
                equal[at as usize] += coefficient * share;
            }
        }
        let squares = |residual: &[f64]| residual.iter().map(|r| r * r).sum::<f64>();
        let ours = squares(&ours);
        let equal = squares(&equal);
        // Counters that the same count for every key fits leave nothing to explain.
        let fits = equal <= 1e-12 * squares(counters);
        let explained = if fits { 1.0 } else { 1.0 - ours / equal };
        let sum = x.iter().sum::<f64>();
        let mean = sum / keys as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / keys as f64;
        let variation = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
        Self { mass: sum * degree / total, variation, explained }
    }

    /// Returns true if the network gives every key nearly the same, or nothing.
    pub fn collapsed(&self) -> bool {
        let equal = self.variation < Self::LEAST_VARIATION && self.explained < Self::LEAST_EXPLAINED;
        self.mass < Self::LEAST_MASS || equal
    }
}
