//! What a solver is trained on, and the same prepared for the inner loops.

use thiserror::Error;
use ucl_equations::{ColumnId, Columns};

use crate::config::Shape;
use crate::normalise::{input_position, scale};
use crate::rng::Rng;

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
    /// Whether the key of each column is hot: evicted from the heavy part after it was hit again.
    pub hot: &'a [bool],
    /// Last snapshots, in any order.
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
        /// Counters of the columns.
        columns: usize,
        /// Rows of the network's sketch.
        rows: usize,
        /// Width of the network's sketch.
        width: usize,
    },
    /// The number of hot flags differs from the number of columns.
    #[error("{hot} hot flags for {columns} columns")]
    Hot {
        /// Flags given.
        hot: usize,
        /// Columns given.
        columns: usize,
    },
    /// A snapshot has the wrong number of counters.
    #[error("snapshot {snapshot} has {found} counters, not {expected}")]
    Counters {
        /// Which snapshot of the window.
        snapshot: usize,
        /// Its counters.
        found: usize,
        /// The network's counters.
        expected: usize,
    },
    /// A snapshot holds a NaN or an infinity.
    #[error("snapshot {snapshot}: {what} is {value}")]
    NotFinite {
        /// Which snapshot of the window.
        snapshot: usize,
        /// Which value.
        what: String,
        /// What stands there.
        value: f64,
    },
    /// A snapshot was encoded by a network of another size.
    #[error("a feature of {found} values, but the network's has {expected}")]
    Feature {
        /// Values of the feature.
        found: usize,
        /// The network's hidden dimension.
        expected: usize,
    },
    /// The smallest weight is not a positive, finite number.
    #[error("smallest weight is {0}, but must be positive and finite")]
    SmallestWeight(f64),
}

impl Problem<'_> {
    /// Checks that the problem is consistent and fits a network over `shape`.
    pub fn validate(&self, shape: Shape) -> Result<(), ProblemError> {
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

/// The columns as the inner loops read them.
pub(crate) struct System<'a> {
    pub(crate) keys: usize,
    pub(crate) counters: usize,
    pub(crate) degree: usize,
    /// The counters of the columns as positions in the encoder's input, column after column.
    pub(crate) positions: Vec<u32>,
    /// In the same order; empty when every coefficient is one.
    pub(crate) coefficients: Vec<f32>,
    pub(crate) hot: &'a [bool],
    cold: Vec<u32>,
}

impl<'a> System<'a> {
    pub(crate) fn new(shape: Shape, columns: &Columns, hot: &'a [bool]) -> Self {
        let position = |&i: &u32| input_position(shape, i as usize) as u32;
        let ids = 0..columns.len() as u32;
        let coefficients = |k| (0..columns.degree()).map(move |e| columns.coefficient(ColumnId(k), e));
        Self {
            keys: columns.len(),
            counters: columns.counters(),
            degree: columns.degree(),
            positions: columns.all_indices().iter().map(position).collect(),
            coefficients: if columns.is_ones() { Vec::new() } else { ids.clone().flat_map(coefficients).collect() },
            hot,
            cold: ids.filter(|&k| !hot[k as usize]).collect(),
        }
    }

    /// For every sample, marks the given share of the cold keys: bit `s` of `raised[k]` says that
    /// sample `s` raises key `k`.
    ///
    /// Exactly that many different keys per sample, drawn with rejection (rare for a share of 5%,
    /// and never endless: at most half are drawn, for a larger share those to spare).
    pub(crate) fn draw_raised(&self, share: f64, samples: usize, rng: &mut Rng, raised: &mut Vec<u32>) {
        let wanted = (share * self.cold.len() as f64).round() as usize;
        let spare = wanted > self.cold.len() / 2;
        let draws = if spare { self.cold.len() - wanted } else { wanted };
        raised.clear();
        raised.resize(self.keys, 0);
        for sample in 0..samples {
            let bit = 1 << sample;
            for _ in 0..draws {
                loop {
                    let mask = &mut raised[self.cold[rng.below(self.cold.len())] as usize];
                    if *mask & bit == 0 {
                        *mask |= bit;
                        break;
                    }
                }
            }
        }
        if spare {
            let all = u32::MAX >> (32 - samples);
            for &key in &self.cold {
                raised[key as usize] ^= all;
            }
        }
    }
}

/// One normalised snapshot.
pub(crate) struct Sample {
    /// `y / scale`, in the order of the encoder's input.
    pub(crate) counters: Vec<f32>,
    /// The smallest weight over the scale.
    pub(crate) smallest: f32,
    /// The interval's weight over the scale.
    pub(crate) interval: f32,
}

/// The window's snapshots, normalised; those with nothing in them are left out.
pub(crate) fn normalise_window(shape: Shape, problem: &Problem<'_>) -> Vec<Sample> {
    let sample = |s: &Snapshot<'_>| {
        let scale = scale(shape, s.counters);
        (scale > 0.0).then(|| Sample {
            counters: normalised(shape, s.counters, scale),
            smallest: (problem.smallest_weight / scale) as f32,
            interval: (s.interval_weight / scale) as f32,
        })
    };
    problem.window.iter().filter_map(sample).collect()
}

/// `y / scale` in the order of the encoder's input.
pub(crate) fn normalised(shape: Shape, counters: &[f64], scale: f64) -> Vec<f32> {
    let mut out = vec![0.0; counters.len()];
    for (i, c) in counters.iter().enumerate() {
        out[input_position(shape, i)] = (c / scale) as f32;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn exactly_the_share_of_the_cold_keys_is_raised(
            keys in 1usize..200, share in 0.0f64..=1.0, samples in 1usize..=32, seed: u64,
        ) {
            let mut columns = Columns::ones(4, 1);
            (0..keys).for_each(|k| { columns.push(&[k as u32 % 4]); });
            let hot: Vec<bool> = (0..keys).map(|k| k % 3 == 0).collect();
            let system = System::new(Shape { rows: 1, width: 4 }, &columns, &hot);
            let mut raised = Vec::new();
            system.draw_raised(share, samples, &mut crate::rng::Rng::new(seed), &mut raised);
            let cold = hot.iter().filter(|h| !**h).count();
            for s in 0..32 {
                let count = raised.iter().filter(|m| *m >> s & 1 == 1).count();
                let want = if s < samples { (share * cold as f64).round() as usize } else { 0 };
                prop_assert_eq!(count, want);
            }
            prop_assert!(raised.iter().zip(&hot).all(|(m, h)| !h || *m == 0));
        }
    }

    #[test]
    fn errors_say_what_does_not_fit() {
        let shape = Shape { rows: 1, width: 4 };
        let mut columns = Columns::ones(4, 1);
        columns.push(&[2]);
        let counters = [0.0, 0.0, f64::NAN, 0.0];
        let window = [Snapshot { counters: &counters[..], interval_weight: 1.0 }];
        let good = Problem { columns: &columns, hot: &[false], window: &[], smallest_weight: 1.0 };
        good.validate(shape).unwrap();
        let message = |p: Problem<'_>, s: Shape| p.validate(s).unwrap_err().to_string();
        assert_eq!(
            message(good, Shape { rows: 2, width: 4 }),
            "columns over 4 counters, but the network was built for 2 rows of 4"
        );
        assert_eq!(message(Problem { hot: &[], ..good }, shape), "0 hot flags for 1 columns");
        assert_eq!(message(Problem { window: &window, ..good }, shape), "snapshot 0: counter 2 is NaN");
        let short = [Snapshot { counters: &counters[..2], interval_weight: 1.0 }];
        assert_eq!(message(Problem { window: &short, ..good }, shape), "snapshot 0 has 2 counters, not 4");
        let weightless = Problem { smallest_weight: 0.0, ..good };
        assert_eq!(message(weightless, shape), "smallest weight is 0, but must be positive and finite");
    }

    #[test]
    fn empty_snapshots_are_left_out() {
        let shape = Shape { rows: 2, width: 2 };
        let columns = Columns::ones(4, 2);
        let (zero, some) = ([0.0; 4], [3.0, 1.0, 2.0, 2.0]);
        let window = [&zero, &some].map(|c| Snapshot { counters: &c[..], interval_weight: 4.0 });
        let problem = Problem { columns: &columns, hot: &[], window: &window, smallest_weight: 1.0 };
        let samples = normalise_window(shape, &problem);
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].counters, [1.5, 1.0, 0.5, 1.0]);
        assert_eq!((samples[0].smallest, samples[0].interval), (0.5, 2.0));
    }
}
