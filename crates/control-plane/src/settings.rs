//! What a control plane is told when it is built.

use serde::{Deserialize, Serialize};
use ucl_data_plane::OutOfMemory;
use ucl_equations::em;
use ucl_learned::TrainBudget;

use crate::decoder::judge::Fallback;
use crate::decoder::{DecoderKind, Unsupported};
use crate::sealed::ChangeKind;

/// Settings of the decoder.
///
/// ```
/// use ucl_control_plane::{DecoderKind, Settings};
/// let settings = Settings { decoder: DecoderKind::Delta, retain_epochs: 100, ..Settings::default() };
/// assert_eq!(settings.window, 128);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The decoder that answers.
    pub decoder: DecoderKind,
    /// Snapshots that the learned decoder trains on.
    pub window: usize,
    /// Train after so many cuts; `None` only on request
    /// ([`ControlPlane::train`](crate::ControlPlane::train)).
    pub train_every: Option<u64>,
    /// Time limit of one training.
    pub train_budget: Option<TrainBudget>,
    /// The network.
    pub learned: ucl_learned::Config,
    /// Rule for when a classic decoder answers in place of the network.
    pub fallback: Fallback,
    /// EM, for `em` and `delta`.
    pub em: em::Options,
    /// Epochs whose counts `delta` keeps one by one, for questions about time; 0 keeps the totals
    /// alone.
    pub retain_epochs: usize,
    /// Fate of the counters when the sketch changes in mid-stream.
    pub change: ChangeKind,
    /// Fixes the network's weights and every random choice of training.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            decoder: DecoderKind::default(),
            window: 128,
            train_every: Some(128),
            train_budget: None,
            learned: ucl_learned::Config::default(),
            fallback: Fallback::default(),
            em: em::Options::default(),
            retain_epochs: 0,
            change: ChangeKind::default(),
            seed: 0,
        }
    }
}

impl Settings {
    /// Returns the settings that train the network along the stream, as the window slides: four
    /// times per window, each time for a quarter of the network's epochs. So a snapshot has had as
    /// many epochs when it leaves the window as in one training of the whole window.
    ///
    /// ```
    /// use ucl_control_plane::Settings;
    /// let online = Settings { window: 128, ..Settings::default() }.online();
    /// assert_eq!((online.train_every, online.train_budget.unwrap().epochs), (Some(32), 75));
    /// ```
    #[must_use]
    pub fn online(self) -> Self {
        const PARTS: usize = 4;
        let whole = TrainBudget::whole(&self.learned);
        let budget = TrainBudget { epochs: whole.epochs.div_ceil(PARTS), ..whole };
        let train_every = Some(self.window.div_ceil(PARTS).max(1) as u64);
        Self { train_every, train_budget: Some(budget), ..self }
    }

    /// How long one training may take: what was asked for, or all that the network's configuration
    /// allows.
    pub(crate) fn budget(&self) -> TrainBudget {
        self.train_budget.unwrap_or(TrainBudget::whole(&self.learned))
    }
}

/// A control plane that cannot be built.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings, SettingsError};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let mut settings = Settings { decoder: "learned".parse()?, ..Settings::default() };
/// settings.learned.hidden = 7;
/// assert!(matches!(ControlPlane::new(config, settings), Err(SettingsError::Learned(_))));
/// # Ok::<(), ucl_control_plane::decoder::UnknownDecoder>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The decoder cannot decode this base sketch.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// There is not enough memory for the control plane of this sketch.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The network's configuration is invalid.
    #[error(transparent)]
    Learned(#[from] ucl_learned::ConfigError),
}
