//! `convergence`: the training loss of the paper's network, plain and logarithmic (paper: figure
//! `fig:losses`).

use super::common::{Case, kilobytes, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::reproduce::{Cell, Dataset, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "convergence",
    title: "Convergence of training",
    labels: &["fig:losses"],
    about: "The loss (Equation 2: measurement, sparsity and equivariance together) by epoch, from fresh weights, on the CAIDA stream with \
            128KB. An epoch is one pass over the window of 128 snapshots, four steps of 32; training stops after 30 epochs without a better loss.",
    jobs,
    present,
};

fn jobs(scope: &Scope) -> Vec<Job> {
    let budget = scope.extent.choose(kilobytes(&[128]), kilobytes(&[128]), kilobytes(&[8]))[0];
    let case = |&seed: &u64| Case::new(Dataset::Caida, "ucl-learned", budget, seed, scope);
    scope.seeds.iter().map(|seed| Case { keep_losses: true, ..case(seed) }.job()).collect()
}

/// The first epoch whose loss is at most `share` of the way from the best to the first.
fn epoch_of(losses: &[f64], share: f64) -> Option<f64> {
    let first = *losses.first()?;
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    losses.iter().position(|loss| *loss <= best + share * (first - best)).map(|at| at as f64 + 1.0)
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let curve = |outcome: &Outcome| outcome.finding.curves.get("loss").cloned().unwrap_or_default();
    let lines = || {
        let line = |outcome: &Outcome| {
            let points =
                curve(outcome).into_iter().enumerate().map(|(epoch, loss)| Point::at(epoch as f64 + 1.0, loss));
            Line::new(format!("seed {}", outcome.label("seed")), points)
        };
        outcomes.iter().map(line).collect::<Vec<_>>()
    };
    let memory = values(outcomes, "memory").first().copied().unwrap_or_default();
    let figure = Figure {
        title: format!("Training loss on caida, {memory}"),
        note: String::new(),
        panels: vec![
            Panel::lines("loss", Axis::linear("epoch"), Axis::linear(""), lines()),
            Panel::lines("loss, logarithmic", Axis::linear("epoch"), Axis::log(""), lines()),
        ],
        columns: 2,
    };
    let mut table = Table::new(
        "convergence",
        "How soon the loss is down",
        ["seed", "first loss", "best loss", "epochs to 10% of the way", "epochs to 1%", "epochs", "seconds an epoch"],
    );
    for outcome in outcomes {
        let losses = curve(outcome);
        let best = losses.iter().copied().reduce(f64::min);
        let epochs = losses.len() as f64;
        table.push([
            outcome.label("seed").into(),
            losses.first().copied().into(),
            best.into(),
            epoch_of(&losses, 0.1).into(),
            epoch_of(&losses, 0.01).into(),
            Cell::Figure(epochs),
            outcome.figure("train_seconds").map(|seconds| seconds / epochs.max(1.0)).into(),
        ]);
    }
    let remarks = vec![
        "The paper says that the loss is \"acceptable\" within 30 iterations and has converged after about 190, without saying what an iteration is; \
         its figure is a picture only. Here one epoch is four steps. Times share the machine with other jobs."
            .to_owned(),
    ];
    Presentation {
        figures: vec![("loss".into(), "Training loss by epoch.".into(), figure)],
        tables: vec![table],
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_soon_a_loss_is_down() {
        let losses = [11.0, 6.0, 1.9, 1.05, 1.0, 1.2];
        assert_eq!(epoch_of(&losses, 0.1), Some(3.0));
        assert_eq!(epoch_of(&losses, 0.01), Some(4.0));
        assert_eq!(epoch_of(&[], 0.1), None);
    }
}
