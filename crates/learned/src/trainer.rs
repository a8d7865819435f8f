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

/// How long one call of [`Solver::train`] may go on, and what it leaves behind.
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
    /// Passes over the window, at most.
    pub epochs: usize,
    /// Steps (batches), at most.
    pub steps: usize,
    /// Epochs without a better loss before training stops.
    pub patience: usize,
    /// Which weights stay.
    pub keep: Keep,
}

/// Which weights training leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Keep {
    /// Those at the end of the epoch with the smallest loss (and the optimiser as it was then).
    Best,
    /// The last ones.
    Last,
}

impl TrainBudget {
    /// All epochs and all patience of the configuration, the best weights kept.
    pub fn whole(config: &Config) -> Self {
        Self { epochs: config.epochs, steps: usize::MAX, patience: config.patience, keep: Keep::Best }
    }

    /// So many steps and no more, the last weights kept.
    pub fn steps(steps: usize) -> Self {
        Self { epochs: usize::MAX, steps, patience: usize::MAX, keep: Keep::Last }
    }
}

/// A handle to stop training from another thread; clones stop the same training.
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
    /// Asks for the end of training; it comes after the current step.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl From<Arc<AtomicBool>> for Cancel {
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}

/// What one call of [`Solver::train`] did.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainReport {
    /// One entry per epoch, the last possibly cut short.
    pub epochs: Vec<EpochReport>,
    /// Steps taken.
    pub steps: usize,
    /// The epoch with the smallest loss, if any was finished.
    pub best: Option<usize>,
    /// Why training ended.
    pub stop: Stop,
}

/// One epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochReport {
    /// Mean over the epoch's snapshots, each at the weights its step began with.
    pub losses: Losses,
    /// The objective: the three terms together.
    pub total: f64,
    /// How long it took.
    pub time: Duration,
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The budget's epochs are used up.
    Epochs,
    /// The budget's steps are used up.
    Steps,
    /// No better loss for as many epochs as patience allows.
    Patience,
    /// [`Cancel::cancel`] was called.
    Cancelled,
    /// No key is known yet, or every snapshot is empty: nothing was trained.
    Nothing,
    /// The loss was no number any more (counters of wildly different size); the best weights so far were restored.
    Diverged,
}

/// Weights and optimiser: what is kept of the best epoch.
#[derive(Clone)]
struct Kept {
    parameters: Vec<f32>,
    adam: Adam,
}

impl Solver {
    /// Trains on a window, going on from the present weights.
    ///
    /// Keys that arrived since the last call extend the last bucket or open a new one; with shared buckets no
    /// parameter is added or reset. The same solver state, problem and budget give the same result on any number of
    /// threads (rayon's current pool is used).
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
