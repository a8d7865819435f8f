//! `accuracy-zipf`: the errors of `accuracy-real` on Zipf streams of skew 1.2 to 1.5 (paper: figure
//! `performance_zipf`, table `entropy_zipf`).

use super::accuracy_real::errors;
use super::common::{SYSTEMS, compare, kilobytes};
use super::{Presentation, Spec};
use crate::reproduce::{Dataset, Extent, Job, Outcome, Scope};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "accuracy-zipf",
    title: "Accuracy on Zipf streams",
    labels: &["performance_zipf", "entropy_zipf"],
    about: "As `accuracy-real`, on generated streams of 2,000,000 items whose keys follow Zipf's law. Skew 1.2 and 1.3: \
            32-256KB; 1.4 and 1.5: 16-128KB, as in the paper.",
    jobs,
    present,
};

fn jobs(scope: &Scope) -> Vec<Job> {
    let large = kilobytes(&[32, 64, 96, 128, 160, 192, 224, 256]);
    let small = kilobytes(&[16, 32, 48, 64, 80, 96, 112, 128]);
    let all =
        [(Dataset::Zipf12, &large), (Dataset::Zipf13, &large), (Dataset::Zipf14, &small), (Dataset::Zipf15, &small)];
    let datasets: Vec<(Dataset, Vec<usize>)> = match scope.extent {
        Extent::Full => all.into_iter().map(|(dataset, budgets)| (dataset, budgets.clone())).collect(),
        Extent::Quick => all.into_iter().map(|(dataset, _)| (dataset, kilobytes(&[64]))).collect(),
        Extent::Slice => vec![(Dataset::Zipf13, kilobytes(&[8]))],
    };
    compare(scope, &datasets, &SYSTEMS)
}

fn present(outcomes: &[Outcome]) -> Presentation {
    errors(outcomes, "entropy_zipf")
}
