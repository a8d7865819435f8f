//! Which decoder to trust when nobody knows the truth.
//!
//! A twin of the network is trained on all rows but the last, and asked to predict the last one; the classic decoder is
//! asked the same. Whose prediction is closer answers the queries. On the streams where the truth is known this ranks
//! decoders as their true errors do; see [`ucl_equations::left_out`]. It doubles the time of training.

use serde::{Deserialize, Serialize};
use ucl_equations::{Columns, Error, Rows, Workspace, em, left_out};
use ucl_learned::{Cancel, Problem, Shape, Snapshot, Solver, TrainBudget};

use super::DecodeError;

/// When a classic decoder answers in place of the network.
///
/// ```
/// use ucl_control_plane::{Fallback, Settings};
/// assert_eq!(Settings::default().fallback, Fallback::WhenBetter);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fallback {
    /// While the network is not trained, and after that as long as the classic one predicts a row left out better.
    #[default]
    WhenBetter,
    /// While the network is not trained, and no longer: for measuring the network itself.
    WhenUntrained,
}

/// The residuals on the row left out, relative to its sum: smaller is better.
///
/// ```
/// assert!(ucl_control_plane::Verdict { learned: 0.34, classic: 0.30 }.prefers_classic());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Of the network.
    pub learned: f64,
    /// Of the classic decoder.
    pub classic: f64,
}

impl Verdict {
    /// Whether the classic decoder should answer.
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
    pub fn new(shape: Shape, config: &ucl_learned::Config, seed: u64) -> Option<Self> {
        let fewer = Shape { rows: shape.rows.checked_sub(1).filter(|&rows| rows > 0)?, ..shape };
        Solver::new(fewer, config.clone(), seed).ok().map(|twin| Self { twin })
    }

    /// A twin that was trained before, for a network of this shape.
    pub fn of(twin: Solver, shape: Shape, config: &ucl_learned::Config) -> Option<Self> {
        let fewer = Shape { rows: shape.rows.checked_sub(1)?, ..shape };
        (twin.shape() == fewer && twin.config() == config).then_some(Self { twin })
    }

    pub fn twin(&self) -> &Solver {
        &self.twin
    }

    /// Trains the twin as the network was trained, and compares on the newest snapshot.
    pub fn compare(
        &mut self,
        problem: &Problem<'_>,
        budget: TrainBudget,
        cancel: &Cancel,
    ) -> Result<Option<Verdict>, DecodeError> {
        let Some(newest) = problem.window.last() else { return Ok(None) };
        // EM serves columns of ones only; for signed ones there is nothing to compare with.
        if !problem.columns.is_ones() {
            return Ok(None);
        }
        let Shape { rows, width } = self.twin.shape();
        let (seen, layout) = (rows * width, Rows { rows: rows + 1, width });
        let left_out = Some(&[rows][..]);
        let window: Vec<Snapshot<'_>> =
            problem.window.iter().map(|s| Snapshot { counters: &s.counters[..seen], ..*s }).collect();
        let twin = &mut self.twin;
        let learned = left_out::residual(problem.columns, layout, newest.counters, left_out, |part| {
            twin.train(&Problem { columns: part.columns, window: &window, ..*problem }, budget, cancel)?;
            let mut x = vec![0.0; part.columns.len()];
            twin.decode(&twin.encode(part.y)?, &mut x)?;
            Ok::<_, DecodeError>(x)
        })?;
        let classic =
            left_out::residual(problem.columns, layout, newest.counters, left_out, |part| by_em(part.columns, part.y))?;
        Ok(Some(Verdict { learned, classic }))
    }
}

fn by_em(columns: &Columns, y: &[f64]) -> Result<Vec<f64>, Error> {
    let mut x = vec![0.0; columns.len()];
    em::em(columns, y, None, &em::Options::default(), &mut Workspace::default(), &mut x)?;
    Ok(x)
}
