//! The input of training: snapshots of counters, columns and hot flags.

use thiserror::Error;
use ucl_equations::Columns;

use crate::config::CounterGrid;

/// Counters at one cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot<'a> {
    /// All counters; the index is `row * width + column`.
    pub counters: &'a [f64],
    /// Weight `c` that entered the linear sketch since the previous cut. The transformation gives
    /// it to the hot keys.
    pub interval_weight: f64,
}

/// System to learn: `y = A x` for every snapshot `y` of the window, with the present `A`.
///
/// Columns registered after a snapshot was taken simply have frequency zero in it; the network
/// learns that too.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Columns of `A`, one per known key.
    pub columns: &'a Columns,
    /// True if the key of each column is hot: evicted from the heavy part after it was hit again.
    pub hot: &'a [bool],
    /// Last snapshots, the newest at the end: by that one it is told whether the network has
    /// collapsed.
    pub window: &'a [Snapshot<'a>],
    /// Smallest weight of an item; 1 if items are counted.
    pub smallest_weight: f64,
}

/// Error of a problem that is inconsistent or does not fit the solver.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ProblemError {
    /// The columns belong to a sketch with another number of counters.
    #[error("columns over {columns} counters, but the network was built for {rows} rows of {width}")]
    Columns {
        /// Number of counters that the columns refer to.
        columns: usize,
        /// Number of rows of the network's sketch.
        rows: usize,
        /// Number of counters in a row of the network's sketch.
        width: usize,
    },
    /// The number of hot flags differs from the number of columns.
    #[error("{hot} hot flags for {columns} columns")]
    Hot {
        /// Number of hot flags given.
        hot: usize,
        /// Number of columns given.
        columns: usize,
    },
    /// A snapshot has the wrong number of counters.
    #[error("snapshot {snapshot} has {found} counters, not {expected}")]
    Counters {
        /// Position of the snapshot in the window, from 0.
        snapshot: usize,
        /// Number of counters in the snapshot.
        found: usize,
        /// Number of counters that the network expects.
        expected: usize,
    },
    /// A snapshot holds a NaN or an infinity.
    #[error("snapshot {snapshot}: {what} is {value}")]
    NotFinite {
        /// Position of the snapshot in the window, from 0.
        snapshot: usize,
        /// Name of the value that is not finite.
        what: String,
        /// The value found.
        value: f64,
    },
    /// A snapshot was encoded by a network of another size.
    #[error("a feature of {found} values, but the network's has {expected}")]
    Feature {
        /// Number of values in the encoded snapshot.
        found: usize,
        /// Hidden dimension of the network.
        expected: usize,
    },
    /// The smallest weight is not a positive, finite number.
    #[error("smallest weight is {0}, but must be positive and finite")]
    SmallestWeight(f64),
}

impl Problem<'_> {
    /// Checks that the problem is consistent and fits a network over `shape`.
    pub fn validate(&self, shape: CounterGrid) -> Result<(), ProblemError> {
        let columns = self.columns.counters();
        if columns != shape.counters() {
            return Err(ProblemError::Columns { columns, rows: shape.rows, width: shape.width });
        }
        if self.hot.len() != self.columns.len() {
            return Err(ProblemError::Hot { hot: self.hot.len(), columns: self.columns.len() });
        }
        if !(self.smallest_weight > 0.0 && self.smallest_weight.is_finite()) {
            return Err(ProblemError::SmallestWeight(self.smallest_weight));
        }
        for (snapshot, s) in self.window.iter().enumerate() {
            let (found, expected) = (s.counters.len(), shape.counters());
            if found != expected {
                return Err(ProblemError::Counters { snapshot, found, expected });
            }
            let not_finite = |what, value| Err(ProblemError::NotFinite { snapshot, what, value });
            if let Some(at) = s.counters.iter().position(|c| !c.is_finite()) {
                return not_finite(format!("counter {at}"), s.counters[at]);
            }
            if !(s.interval_weight.is_finite() && s.interval_weight >= 0.0) {
                return not_finite("interval weight".into(), s.interval_weight);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_does_not_fit() {
        let shape = CounterGrid { rows: 1, width: 4 };
        let mut columns = Columns::ones(4, 1);
        columns.push(&[2]);
        let counters = [0.0, 0.0, f64::NAN, 0.0];
        let window = [Snapshot { counters: &counters[..], interval_weight: 1.0 }];
        let good = Problem { columns: &columns, hot: &[false], window: &[], smallest_weight: 1.0 };
        good.validate(shape).unwrap();
        let message = |p: Problem<'_>, s: CounterGrid| p.validate(s).unwrap_err().to_string();
        assert_eq!(
            message(good, CounterGrid { rows: 2, width: 4 }),
            "columns over 4 counters, but the network was built for 2 rows of 4"
        );
        assert_eq!(message(Problem { hot: &[], ..good }, shape), "0 hot flags for 1 columns");
        assert_eq!(message(Problem { window: &window, ..good }, shape), "snapshot 0: counter 2 is NaN");
        let short = [Snapshot { counters: &counters[..2], interval_weight: 1.0 }];
        assert_eq!(message(Problem { window: &short, ..good }, shape), "snapshot 0 has 2 counters, not 4");
        let weightless = Problem { smallest_weight: 0.0, ..good };
        assert_eq!(message(weightless, shape), "smallest weight is 0, but must be positive and finite");
    }
}
