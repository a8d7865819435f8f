//! Budget, cancellation and report of a training.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::outputs::Outputs;

/// Limits of one call of [`Solver::train`](crate::Solver::train), and which weights it keeps.
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

/// Report of one call of [`Solver::train`](crate::Solver::train).
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
    /// What the outputs for the newest snapshot say of the trained network; `None` if there was
    /// nothing to train on.
    pub outputs: Option<Outputs>,
    /// Number of times that the network had collapsed and was trained again from new weights. The
    /// fields above are about the last training.
    pub restarts: usize,
    /// Duration of the call.
    pub time: Duration,
}

impl TrainReport {
    /// A report of no epochs.
    #[cfg(feature = "network")]
    pub(crate) fn of(stop: Stop) -> Self {
        Self { epochs: Vec::new(), steps: 0, best: None, stop, outputs: None, restarts: 0, time: Duration::ZERO }
    }
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

/// Three terms of the loss, each a mean, before multiplication by lambda.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Mean squared error of `A D(y)` against `y`.
    pub measurement: f64,
    /// Mean of `|D(y)|`.
    pub sparsity: f64,
    /// Mean squared error of `D(A z)` against `z`.
    pub equivariant: f64,
}

impl Losses {
    /// Returns the total loss, which training minimises.
    pub fn total(&self, lambda: f32) -> f64 {
        self.measurement + f64::from(lambda) * self.sparsity + self.equivariant
    }

    /// Adds `share` times another loss.
    #[cfg(feature = "network")]
    pub(crate) fn add(&mut self, other: &Self, share: f64) {
        self.measurement += share * other.measurement;
        self.sparsity += share * other.sparsity;
        self.equivariant += share * other.equivariant;
    }
}
