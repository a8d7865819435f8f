//! Algorithm 2, epoch after epoch: shuffled batches, Adam, patience, the best weights kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::adam::Adam;
use crate::config::Config;
use crate::loss::{Context, Losses, Workspace, add_gradient};
use crate::problem::{Problem, ProblemError, Sample, System, normalise_window};
use crate::solver::Solver;

/// Limits of one call of [`Solver::train`], and which weights it keeps.
///
/// ```
/// use ucl_learned::{Config, TrainBudget};
///
/// // From scratch, as published: 300 epochs, patience 30, best weights.
/// let whole = TrainBudget::whole(&Config::default());
/// assert_eq!((whole.epochs, whole.patience), (300, 30));
/// // Online: a few steps each time the window slides, going on from where they lead.
/// let online = TrainBudget::steps(8);
/// assert_eq!(online.steps, 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainBudget {
    /// Largest number of passes over the window.
    pub epochs: usize,
    /// Largest number of steps (batches).
    pub steps: usize,
    /// Number of epochs without a better loss after which training stops.
    pub patience: usize,
    /// Weights to keep.
    pub keep: Keep,
}

/// Weights that remain after training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// Weights and optimiser at the end of the epoch with the smallest loss.
    Best,
    /// Weights after the last step.
    Last,
}

impl TrainBudget {
    /// Returns a budget with the epochs and the patience of the configuration, which keeps the best
    /// weights.
    pub fn whole(config: &Config) -> Self {
        Self { epochs: config.epochs, steps: usize::MAX, patience: config.patience, keep: Keep::Best }
    }

    /// Returns a budget of `steps` steps, which keeps the last weights.
    pub fn steps(steps: usize) -> Self {
        Self { epochs: usize::MAX, steps, patience: usize::MAX, keep: Keep::Last }
    }
}

/// Handle to stop training from another thread. Clones stop the same training.
///
/// ```
/// let cancel = ucl_learned::Cancel::default();
/// let handle = cancel.clone();
/// handle.cancel();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Requests the end of training after the current step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the end was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Cancel {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// Report of one call of [`Solver::train`].
#[derive(Clone, Debug, PartialEq)]
pub struct TrainReport {
    /// Reports of all epochs. The last epoch may be incomplete.
    pub epochs: Vec<EpochReport>,
    /// Number of steps taken.
    pub steps: usize,
    /// Number of the epoch with the smallest loss, if any epoch was completed.
    pub best: Option<usize>,
    /// Reason why training ended.
    pub stop: Stop,
}

/// Report of one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochReport {
    /// Mean losses over the epoch's snapshots, each with the weights before its step.
    pub losses: Losses,
    /// Total loss.
    pub total: f64,
    /// Duration of the epoch.
    pub time: Duration,
}

/// Reason why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All epochs of the budget were run.
    Epochs,
    /// All steps of the budget were taken.
    Steps,
    /// The loss did not improve for as many epochs as the patience allows.
    Patience,
    /// [`Cancel::cancel`] was called.
    Cancelled,
    /// There was nothing to train on: no key is known, or every snapshot is empty.
    Nothing,
    /// The loss was not a number, because counters differ too much in size. The best weights so far
    /// were restored.
    Diverged,
}

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
    pub fn train(
        &mut self,
        problem: &Problem<'_>,
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> Result<TrainReport, ProblemError> {
        problem.validate(self.shape)?;
        let samples = normalise_window(self.shape, problem);
        if samples.is_empty() || problem.columns.is_empty() {
            return Ok(TrainReport { epochs: Vec::new(), steps: 0, best: None, stop: Stop::Nothing });
        }
        let system = System::new(self.shape, problem.columns, problem.hot);
        self.grow(system.keys);
        // Rows of samples no wider than needed: a window of five snapshots should not pay for 32.
        Ok(match self.config.batch.min(samples.len()) {
            0..=8 => self.run::<8>(&system, &samples, budget, cancel),
            9..=16 => self.run::<16>(&system, &samples, budget, cancel),
            _ => self.run::<32>(&system, &samples, budget, cancel),
        })
    }

    fn run<const LANES: usize>(
        &mut self,
        system: &System<'_>,
        samples: &[Sample],
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> TrainReport {
        let Self { shape, config, layout, parameters, adam, rng, codes } = self;
        let context = Context { shape: *shape, config, layout, system, codes };
        let mut work = Workspace::<LANES>::new(&context);
        let mut gradients = vec![0.0; parameters.len()];
        let mut kept = Kept { parameters: parameters.clone(), adam: adam.clone() };
        let mut report = TrainReport { epochs: Vec::new(), steps: 0, best: None, stop: Stop::Epochs };
        let mut order: Vec<&Sample> = samples.iter().collect();
        let mut lowest = f64::INFINITY;
        for epoch in 0..budget.epochs {
            let start = Instant::now();
            let (mut sum, mut seen) = (Losses::default(), 0);
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
