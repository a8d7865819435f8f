//! Algorithm 2, epoch after epoch: shuffled batches, Adam, patience, the best weights kept.

use std::time::Instant;

use crate::adam::Adam;
use crate::loss::{Context, Workspace, add_gradient};
use crate::outputs::Outputs;
use crate::prepared::{PreparedColumns, Sample, normalise_window};
use crate::problem::{Problem, ProblemError};
use crate::solver::Solver;
use crate::training::{Cancel, EpochReport, Keep, Losses, Stop, TrainBudget, TrainReport};

/// A network that collapses is trained again from other weights, so often at most.
const MOST_RESTARTS: usize = 3;

/// Weights and optimiser: what is kept of the best epoch.
#[derive(Clone)]
struct Kept {
    parameters: Vec<f32>,
    adam: Adam,
}

impl Solver {
    /// Trains on a window, starting from the present weights.
    ///
    /// Keys that arrived since the last call extend the last bucket or open a new one; with shared
    /// buckets no parameter is added or reset. The same solver state, problem and budget give the
    /// same result on any number of threads (rayon's current pool is used).
    ///
    /// If the outputs for the newest (last) snapshot show that the network has collapsed
    /// ([`Outputs::collapsed`]), new weights are drawn and trained with the whole budget, up to
    /// three times. The report tells how often; if even the last weights collapsed, its outputs
    /// say so.
    pub fn train(
        &mut self,
        problem: &Problem<'_>,
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> Result<TrainReport, ProblemError> {
        problem.validate(self.shape)?;
        let start = Instant::now();
        let samples = normalise_window(self.shape, problem);
        let newest = problem.window.last().filter(|_| !samples.is_empty() && !problem.columns.is_empty());
        let Some(newest) = newest else { return Ok(TrainReport::of(Stop::Nothing)) };
        let system = PreparedColumns::new(self.shape, problem.columns, problem.hot);
        let mut restarts = 0;
        loop {
            self.grow(system.keys);
            let before = self.steps();
            // Rows of samples no wider than needed: a window of five snapshots should not pay for
            // 32.
            let mut report = match self.config.batch.min(samples.len()) {
                0..=8 => self.run::<8>(&system, &samples, budget, cancel),
                9..=16 => self.run::<16>(&system, &samples, budget, cancel),
                _ => self.run::<32>(&system, &samples, budget, cancel),
            };
            let mut x = vec![0.0; system.keys];
            self.decode(&self.encode(newest.counters)?, &mut x)?;
            let outputs = Outputs::of(problem.columns, newest.counters, &x);
            (report.outputs, report.restarts, report.time) = (Some(outputs), restarts, start.elapsed());
            let again = outputs.collapsed()
                && self.is_grown_up(before + report.steps as u64, samples.len())
                && report.stop != Stop::Cancelled;
            if !again || restarts == MOST_RESTARTS {
                return Ok(report);
            }
            self.draw_again();
            restarts += 1;
        }
    }

    /// Whether so many steps are as many epochs over a window of so many snapshots as the patience
    /// allows for one improvement: a younger network has not collapsed, it has not begun.
    fn is_grown_up(&self, steps: u64, snapshots: usize) -> bool {
        let steps_an_epoch = snapshots.div_ceil(self.config.batch);
        steps >= self.config.patience.saturating_mul(steps_an_epoch) as u64
    }

    fn run<const LANES: usize>(
        &mut self,
        system: &PreparedColumns<'_>,
        samples: &[Sample],
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> TrainReport {
        let Self { shape, config, layout, parameters, adam, rng, codes } = self;
        let context = Context { shape: *shape, config, layout, system, codes };
        let mut work = Workspace::<LANES>::new(&context);
        let mut gradients = vec![0.0; parameters.len()];
        let mut kept = Kept { parameters: parameters.clone(), adam: adam.clone() };
        let mut report = TrainReport::of(Stop::Epochs);
        let mut order: Vec<&Sample> = samples.iter().collect();
        let mut lowest = f64::INFINITY;
        for epoch in 0..budget.epochs {
            let start = Instant::now();
            let mut sum = Losses::default();
            let mut seen = 0;
            rng.shuffle(&mut order);
            let mut stop = None;
            for batch in order.chunks(config.batch) {
                if cancel.is_cancelled() || report.steps == budget.steps {
                    stop = Some(if cancel.is_cancelled() { Stop::Cancelled } else { Stop::Steps });
                    break;
                }
                gradients.fill(0.0);
                let mut losses = Losses::default();
                for part in batch.chunks(LANES) {
                    let part = add_gradient(&context, parameters, part, batch.len(), rng, &mut work, &mut gradients);
                    losses.add(&part, 1.0);
                }
                if !losses.total(config.lambda).is_finite() {
                    stop = Some(Stop::Diverged);
                    break;
                }
                adam.update(config.learning_rate, parameters, &gradients);
                sum.add(&losses, batch.len() as f64);
                seen += batch.len();
                report.steps += 1;
            }
            if seen > 0 {
                let mut losses = Losses::default();
                losses.add(&sum, 1.0 / seen as f64);
                let total = losses.total(config.lambda);
                report.epochs.push(EpochReport { losses, total, time: start.elapsed() });
                if stop.is_none() && total < lowest {
                    lowest = total;
                    report.best = Some(epoch);
                    if budget.keep == Keep::Best {
                        kept.parameters.clone_from(parameters);
                        kept.adam.clone_from(adam);
                    }
                }
            }
            if stop.is_none() && report.best.is_some_and(|best| epoch - best >= budget.patience) {
                stop = Some(Stop::Patience);
            }
            if let Some(stop) = stop {
                report.stop = stop;
                break;
            }
        }
        let restore = report.stop == Stop::Diverged || (budget.keep == Keep::Best && report.best.is_some());
        if restore {
            Kept { parameters: *parameters, adam: *adam } = kept;
        }
        report
    }
}
