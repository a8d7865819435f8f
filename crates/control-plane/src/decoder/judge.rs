//! Which decoder to trust when nobody knows the truth.
//!
//! A twin of the network is trained on all rows but the last, and asked to predict the last one;
//! the classic decoder and the refined one are asked the same. Whose prediction is closer answers
//! the queries. On the streams where the truth is known this ranks decoders as their true errors
//! do; see [`ucl_equations::left_out`]. It doubles the time of training.

use serde::{Deserialize, Serialize};
use ucl_data_plane::Geometry;
use ucl_equations::{Rows, Workspace, em, left_out};
use ucl_learned::{Cancel, CounterGrid, Problem, Snapshot, Solver, TrainBudget};

use super::{DecodeError, DecoderKind, LinearSystem, refine};

/// Rule for when a classic decoder answers in place of the network.
///
/// ```
/// use ucl_control_plane::{Fallback, Settings};
/// assert_eq!(Settings::default().fallback, Fallback::WhenBetter);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fallback {
    /// While the network is not trained, and after that as long as the classic one predicts a row
    /// left out better.
    #[default]
    WhenBetter,
    /// While the network is not trained, and no longer: for measuring the network itself.
    WhenUntrained,
}

/// The residuals on the row left out, relative to its sum: smaller is better.
///
/// ```
/// assert!(ucl_control_plane::Verdict { learned: 0.34, classic: 0.30, refined: 0.28 }.prefers_classic());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Error of the network.
    pub learned: f64,
    /// Error of the classic decoder.
    pub classic: f64,
    /// Error of EM from the network's output.
    pub refined: f64,
}

impl Verdict {
    /// Returns the error of one of the decoders.
    pub fn of(&self, decoder: DecoderKind) -> f64 {
        match decoder {
            DecoderKind::Learned => self.learned,
            DecoderKind::Refined => self.refined,
            _ => self.classic,
        }
    }

    /// Returns true if the classic decoder should answer.
    pub fn prefers_classic(&self) -> bool {
        self.classic < self.learned
    }
}

/// The twin that sees one row less.
#[derive(Clone, Debug)]
pub(crate) struct Judge {
    twin: Solver,
}

impl Judge {
    /// A twin for a network of this shape; `None` if there is no row to spare.
    pub fn new(shape: CounterGrid, config: &ucl_learned::Config, seed: u64) -> Option<Self> {
        let fewer = CounterGrid { rows: shape.rows.checked_sub(1).filter(|&rows| rows > 0)?, ..shape };
        Solver::new(fewer, config.clone(), seed).ok().map(|twin| Self { twin })
    }

    /// A twin that was trained before, for a network of this shape.
    pub fn of(twin: Solver, shape: CounterGrid, config: &ucl_learned::Config) -> Option<Self> {
        let fewer = CounterGrid { rows: shape.rows.checked_sub(1)?, ..shape };
        (twin.shape() == fewer && twin.config() == config).then_some(Self { twin })
    }

    pub fn twin(&self) -> &Solver {
        &self.twin
    }

    /// Trains the twin as the network was trained, and compares on the newest snapshot. `known` is
    /// what each column's key is known to have at least.
    pub fn compare(
        &mut self,
        problem: &Problem<'_>,
        known: &[f64],
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> Result<Option<Verdict>, DecodeError> {
        let Some(newest) = problem.window.last() else { return Ok(None) };
        // EM serves columns of ones only; for signed ones there is nothing to compare with.
        if !problem.columns.is_ones() {
            return Ok(None);
        }
        let CounterGrid { rows, width } = self.twin.shape();
        let seen = rows * width;
        let layout = Rows { rows: rows + 1, width };
        let geometry = Geometry { rows: rows as u16, width: width as u32, degree: rows as u16, signed: false };
        let window: Vec<Snapshot<'_>> =
            problem.window.iter().map(|s| Snapshot { counters: &s.counters[..seen], ..*s }).collect();
        let residual = |decode: &mut dyn FnMut(&LinearSystem<'_>) -> Result<Vec<f64>, DecodeError>| {
            left_out::residual(problem.columns, layout, newest.counters, Some(&[rows]), |part| {
                decode(&LinearSystem { columns: part.columns, geometry, counters: part.y, known })
            })
        };
        let twin = &mut self.twin;
        let options = em::Options::default();
        let mut workspace = Workspace::default();
        let mut guess = vec![0.0; problem.columns.len()];
        let learned = residual(&mut |system| {
            twin.train(&Problem { columns: system.columns, window: &window, ..*problem }, budget, cancel)?;
            twin.decode(&twin.encode(system.counters)?, &mut guess)?;
            Ok(guess.clone())
        })?;
        let classic = residual(&mut |system| system.em(None, &options, &mut workspace))?;
        let refined = residual(&mut |system| refine(system, &guess, &options, &mut workspace))?;
        Ok(Some(Verdict { learned, classic, refined }))
    }
}
