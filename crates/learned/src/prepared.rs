//! The system to learn, prepared for the inner loops.

use ucl_equations::{ColumnId, Columns};

use crate::config::CounterGrid;
use crate::normalise::scale;
use crate::problem::{Problem, Snapshot};
use crate::rng::Rng;

/// The columns as the inner loops read them.
pub(crate) struct PreparedColumns<'a> {
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

impl<'a> PreparedColumns<'a> {
    pub(crate) fn new(shape: CounterGrid, columns: &Columns, hot: &'a [bool]) -> Self {
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
pub(crate) fn normalise_window(shape: CounterGrid, problem: &Problem<'_>) -> Vec<Sample> {
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
pub(crate) fn normalised(shape: CounterGrid, counters: &[f64], scale: f64) -> Vec<f32> {
    let mut out = vec![0.0; counters.len()];
    for (i, c) in counters.iter().enumerate() {
        out[input_position(shape, i)] = (c / scale) as f32;
    }
    out
}

/// Where counter `row * width + column` stands in the encoder's input: column by column, the rows
/// side by side, so that the layers over a row see all rows in one product.
#[inline]
fn input_position(shape: CounterGrid, counter: usize) -> usize {
    (counter % shape.width) * shape.rows + counter / shape.width
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
            let system = PreparedColumns::new(CounterGrid { rows: 1, width: 4 }, &columns, &hot);
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
    fn empty_snapshots_are_left_out() {
        let shape = CounterGrid { rows: 2, width: 2 };
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
