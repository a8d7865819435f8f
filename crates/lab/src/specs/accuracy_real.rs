//! `accuracy-real`: AAE, ARE, WMRD and entropy error against memory, on the three real streams
//! (paper: figure `performance`, table `entropy`).

use super::beside::beside_the_paper;
use super::common::{ERRORS, SYSTEMS, by_memory, compare, error_figure, kilobytes, values};
use super::{Presentation, Spec};
use crate::reproduce::{Dataset, Job, Outcome, Scope};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "accuracy-real",
    title: "Accuracy on real streams",
    labels: &["performance", "entropy"],
    about: "Every system sees the same stream once, item by item, in the same number of bytes (one accounting for all), and is then asked \
            for every key. CAIDA 32-256KB, Kosarak and Retail 16-128KB. `ucl-learned` is the paper's system; `ucl-refined`, `ucl-em` and \
            `ucl-delta` go past it. `lcm` and `lcs` have an oracle that knows the truth.",
    jobs,
    present,
};

fn jobs(scope: &Scope) -> Vec<Job> {
    let small =
        scope.extent.choose(kilobytes(&[16, 32, 48, 64, 80, 96, 112, 128]), kilobytes(&[16, 64, 128]), kilobytes(&[8]));
    let large = scope.extent.choose(kilobytes(&[32, 64, 96, 128, 160, 192, 224, 256]), kilobytes(&[64]), vec![]);
    let datasets = [(Dataset::Retail, small.clone()), (Dataset::Kosarak, small), (Dataset::Caida, large)];
    compare(scope, &datasets, &SYSTEMS)
}

pub(super) fn present(outcomes: &[Outcome]) -> Presentation {
    errors(outcomes, "entropy")
}

/// A picture and four tables a dataset, and the printed entropy errors beside ours.
pub(super) fn errors(outcomes: &[Outcome], label: &str) -> Presentation {
    let beside = beside_the_paper(outcomes, label, "entropy_error");
    let mut shown = Presentation { tables: vec![beside.table], remarks: beside.remarks, ..Presentation::default() };
    let epochs = values(outcomes, "epochs");
    if !epochs.is_empty() && epochs != ["300"] {
        shown.remarks.push(format!(
            "The network trained for at most {} epochs here; in the paper it is 300.",
            epochs.join(" and ")
        ));
    }
    for dataset in values(outcomes, "dataset") {
        let caption = format!("The four errors on {dataset}, by memory.");
        shown.figures.push((dataset.to_owned(), caption, error_figure(outcomes, dataset)));
        shown.tables.extend(ERRORS.map(|(name, title)| by_memory(outcomes, dataset, name, title)));
        if outcomes.iter().any(|outcome| outcome.finding.figures.contains_key("entropy_error_all_keys")) {
            let title = "entropy error with shares of all keys (the authors' code)";
            shown.tables.push(by_memory(outcomes, dataset, "entropy_error_all_keys", title));
        }
    }
    shown
}
