//! The paper's decoder: a network that trains itself on the window, with no ground truth.
//!
//! Training is triggered by the number of cuts, never by time, and continues from the last weights
//! as the window slides and keys arrive. Until a model is ready, while a row left out tells that
//! the classic decoder does better ([`judge`](super::judge)), and if the network's outputs show
//! that it has collapsed ([`Outputs`](ucl_learned::Outputs)), the control plane answers by the
//! classic one, and says so.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ucl_data_plane::{Geometry, Inconsistent, ensure};
use ucl_equations::Columns;
use ucl_learned::{Cancel, CounterGrid, Problem, Snapshot, Solver, TrainBudget, TrainReport};

use super::judge::{Fallback, Judge, Verdict};
use super::{DecodeError, Decoder, DecoderKind, LinearSystem};
use crate::settings::Settings;
use crate::window::Window;

/// Facts about a column's key that are known before any decoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownKey {
    /// True if the key was evicted after having been hit again.
    pub hot: bool,
    /// Least count of the key in the sketch.
    pub least: f64,
}

/// The network of one segment, with what its training reported.
///
/// ```
/// use ucl_control_plane::{Fallback, decoder::learned::Learned};
/// use ucl_data_plane::Geometry;
/// use ucl_learned::{Config, TrainBudget};
/// let geometry = Geometry { rows: 4, width: 64, degree: 4, signed: false };
/// let network = Learned::new(geometry, Config::default(), TrainBudget::steps(10), Fallback::WhenUntrained, 1)?;
/// assert!(!network.is_ready());
/// # Ok::<(), ucl_learned::ConfigError>(())
/// ```
pub struct Learned {
    /// Views share it; training goes on with a copy while one does.
    solver: Arc<Solver>,
    budget: TrainBudget,
    cancel: Cancel,
    history: Vec<TrainReport>,
    judge: Option<Judge>,
    verdict: Option<Verdict>,
    /// Whether it was trained since its columns were last replaced.
    settled: bool,
    /// How often they were.
    generation: u64,
}

impl Learned {
    /// A network with fresh weights.
    pub fn new(
        geometry: Geometry,
        config: ucl_learned::Config,
        budget: TrainBudget,
        fallback: Fallback,
        seed: u64,
    ) -> Result<Self, ucl_learned::ConfigError> {
        let shape = CounterGrid { rows: geometry.rows.into(), width: geometry.width as usize };
        let judge = match fallback {
            Fallback::WhenBetter => Judge::new(shape, &config, seed),
            Fallback::WhenUntrained => None,
        };
        let solver = Arc::new(Solver::new(shape, config, seed)?);
        Ok(Self {
            solver,
            budget,
            cancel: Cancel::default(),
            history: Vec::new(),
            judge,
            verdict: None,
            settled: false,
            generation: 0,
        })
    }

    /// A network that was trained before, with its twin if there is one.
    pub(crate) fn assemble(
        geometry: Geometry,
        settings: &Settings,
        solver: Solver,
        twin: Option<Solver>,
        (verdict, settled): (Option<Verdict>, bool),
    ) -> Result<Self, Inconsistent> {
        let shape = CounterGrid { rows: geometry.rows.into(), width: geometry.width as usize };
        let same = solver.shape() == shape && *solver.config() == settings.learned;
        ensure(same, || format!("a network for {:?}, not for {shape:?}, or of another kind", solver.shape()))?;
        let judged = settings.fallback == Fallback::WhenBetter && shape.rows > 1;
        let twins = twin.is_some();
        let judge = twin.and_then(|twin| Judge::of(twin, shape, &settings.learned));
        let sound = twins == judged && judge.is_some() == judged;
        ensure(sound, || "the network's twin is missing, superfluous or of another kind".into())?;
        let solver = Arc::new(solver);
        let budget = settings.budget();
        let cancel = Cancel::default();
        let history = Vec::new();
        // No training is under way that an earlier generation could have asked for.
        Ok(Self { solver, budget, cancel, history, judge, verdict, settled, generation: 0 })
    }

    /// The twin that judges it.
    pub(crate) fn twin(&self) -> Option<&Solver> {
        self.judge.as_ref().map(Judge::twin)
    }

    /// Trains on the window, from the weights as they are.
    pub fn train(
        &mut self,
        columns: &Columns,
        known: &[KnownKey],
        window: &Window,
        smallest_weight: u64,
    ) -> Result<(), DecodeError> {
        if columns.is_empty() || window.is_empty() {
            return Ok(());
        }
        let snapshots: Vec<Snapshot<'_>> =
            window.iter().map(|s| Snapshot { counters: &s.counters, interval_weight: s.interval_weight }).collect();
        let smallest_weight = smallest_weight.max(1) as f64;
        let hot: Vec<bool> = known.iter().map(|key| key.hot).collect();
        let problem = Problem { columns, hot: &hot, window: &snapshots, smallest_weight };
        let solver = Arc::make_mut(&mut self.solver);
        self.history.push(solver.train(&problem, self.budget, &self.cancel)?);
        self.settled = true;
        if let Some(judge) = &mut self.judge {
            let least: Vec<f64> = known.iter().map(|key| key.least).collect();
            self.verdict = judge.compare(&problem, &least, self.budget, &self.cancel)?;
        }
        Ok(())
    }

    /// Returns true if the network was trained since its columns were last replaced.
    pub fn is_ready(&self) -> bool {
        self.solver.steps() > 0 && self.settled
    }

    /// The columns stand for other keys from now on: the weights stay, as a start, but nothing is
    /// answered before they are trained again.
    pub(crate) fn unsettle(&mut self) {
        self.settled = false;
        self.verdict = None;
        self.generation += 1;
    }

    /// Whether it is a network for such counters.
    pub(crate) fn fits(&self, geometry: Geometry) -> bool {
        self.solver.shape() == CounterGrid { rows: geometry.rows.into(), width: geometry.width as usize }
    }

    /// Whether it was trained since its columns were last replaced.
    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// How often the columns were replaced.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// A network in place of one whose columns were replaced `generation` times.
    pub(crate) fn succeeding(mut self, generation: u64) -> Self {
        self.generation = generation + 1;
        self
    }

    /// Returns how the network did against the classic decoder on a row left out, when it was last
    /// trained; `None` if that is not asked for.
    pub fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Returns true if the network should answer: trained, and not worse than the classic decoder
    /// as far as a row left out can tell.
    pub fn is_trusted(&self) -> bool {
        self.is_ready() && !self.verdict.is_some_and(|verdict| verdict.prefers_classic())
    }

    /// Returns the report of each training.
    pub fn history(&self) -> &[TrainReport] {
        &self.history
    }

    /// The network.
    pub fn solver(&self) -> &Solver {
        &self.solver
    }

    /// The network, for whoever asks it later.
    pub(crate) fn shared(&self) -> Arc<Solver> {
        Arc::clone(&self.solver)
    }

    /// A copy to be trained elsewhere, which ends early once `stop` is set.
    pub fn for_training(&self, stop: Arc<AtomicBool>) -> Self {
        Self {
            solver: self.shared(),
            budget: self.budget,
            cancel: stop.into(),
            history: self.history.clone(),
            judge: self.judge.clone(),
            verdict: self.verdict,
            settled: self.settled,
            generation: self.generation,
        }
    }
}

impl Decoder for Learned {
    fn kind(&self) -> DecoderKind {
        DecoderKind::Learned
    }

    fn decode(&mut self, system: &LinearSystem<'_>) -> Result<Vec<f64>, DecodeError> {
        let mut x = vec![0.0; system.columns.len()];
        let encoded = self.solver.encode(system.counters)?;
        self.solver.decode(&encoded, &mut x)?;
        Ok(x)
    }
}
