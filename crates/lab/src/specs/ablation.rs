//! `ablation`: parts of the network and of its loss taken away, and classic decoders in its place
//! (paper: figure `ablation_1`, table `entropy_ab`).

use ucl_sketch::learned::Config;

use super::beside::beside_the_paper;
use super::common::{Case, ERRORS, mean, seeds_note, spread, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Panel};
use crate::reproduce::{Cell, Dataset, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "ablation",
    title: "What each part is worth",
    labels: &["ablation_1", "entropy_ab"],
    about: "Kosarak with 64KB, the paper's shapes. Without SA: every bucket owns its parameters. Without EQ: no equivariant term. Without SR: no sparsity term. \
            `ucl-omp`, `ucl-lsqr` and `ucl-cm` decode the same counters by orthogonal matching pursuit, by least squares, and by the smallest counter. \
            The paper's OMP-GPU is represented by our threaded solver.",
    jobs,
    present,
};

/// Name in results, registered method, network.
fn variants() -> [(&'static str, &'static str, Config); 7] {
    let paper = Config::default;
    [
        ("ucl-learned", "ucl-learned", paper()),
        ("without SA", "ucl-learned", Config { shared_buckets: false, ..paper() }),
        ("without EQ", "ucl-learned", Config { equivariant: false, ..paper() }),
        ("without SR", "ucl-learned", Config { lambda: 0.0, ..paper() }),
        ("ucl-omp", "ucl-omp", paper()),
        ("ucl-lsqr", "ucl-lsqr", paper()),
        ("ucl-cm", "ucl-cm", paper()),
    ]
}

fn jobs(scope: &Scope) -> Vec<Job> {
    let mut jobs = Vec::new();
    let budget = scope.extent.choose(64 << 10, 64 << 10, 8 << 10);
    for (name, method, config) in variants() {
        for &seed in &scope.seeds {
            let mut case = Case::new(Dataset::Kosarak, method, budget, seed, scope);
            case.name = name;
            case.options.learned = Some(config.clone());
            jobs.push(case.job());
        }
    }
    jobs
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let methods = values(outcomes, "method");
    let panel = |(figure, title): (&str, &str)| {
        let bars = methods
            .iter()
            .filter_map(|method| Some(((*method).to_owned(), spread(outcomes, &[("method", method)], figure)?)));
        Panel::bars(title, Axis::log(""), bars.collect())
    };
    let memory = values(outcomes, "memory").first().copied().unwrap_or_default();
    let figure = Figure {
        title: format!("Parts taken away: kosarak, {memory}"),
        note: seeds_note(outcomes),
        panels: ERRORS.map(panel).into(),
        columns: 2,
    };
    let header = ["variant", "AAE", "ARE", "WMRD", "entropy error"];
    let mut table = Table::new("variants", "The variants", header);
    for method in &methods {
        let of = |figure| Cell::from(mean(outcomes, &[("method", method)], figure));
        let mut row = vec![Cell::from(*method)];
        row.extend(["aae", "are", "wmrd", "entropy_error"].map(of));
        table.push(row);
    }
    let beside = beside_the_paper(outcomes, "entropy_ab", "entropy_error");
    Presentation {
        figures: vec![("variants".into(), "The four errors of each variant.".into(), figure)],
        tables: vec![table, beside.table],
        remarks: beside.remarks,
    }
}
