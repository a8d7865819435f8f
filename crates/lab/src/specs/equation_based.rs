//! `equation-based`: the systems that solve equations, against each other (paper, appendix: figures
//! `fig:equation_sketch_performance`, `fig:es_throughput`, `fig:es_decoding`, table `tab:eae_es`).

use super::beside::beside_the_paper;
use super::common::{Case, ERRORS, What, by_memory, error_figure, kilobytes, mean, spread, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Panel};
use crate::reproduce::{Cell, Dataset, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "equation-based",
    title: "Systems that solve equations",
    labels: &["fig:equation_sketch_performance", "tab:eae_es", "fig:es_throughput", "fig:es_decoding"],
    about: "FlowRadar (peeling), PR-sketch (LSMR) and SeqSketch (OMP over a fractional matrix) against UCL-sketch, and UCL-sketch's own counters decoded \
            by LSMR and OMP. The paper's SeqSketch (G) and PR-sketch (G), which run on a graphics card, are represented by our threaded solvers.",
    jobs,
    present,
};

const SYSTEMS: [&str; 8] = ["flowradar", "pr", "seq", "ucl-learned", "ucl-lsmr", "ucl-omp", "ucl-em", "ucl-delta"];

fn jobs(scope: &Scope) -> Vec<Job> {
    let small = scope.extent.choose(kilobytes(&[16, 32, 48, 64, 80, 96, 112, 128]), kilobytes(&[64]), kilobytes(&[8]));
    let large = scope.extent.choose(kilobytes(&[32, 64, 96, 128, 160, 192, 224, 256]), vec![], vec![]);
    let slice = scope.extent.choose(small.clone(), small.clone(), vec![]);
    let mut jobs = Vec::new();
    for (dataset, budgets) in [(Dataset::Retail, small), (Dataset::Kosarak, slice), (Dataset::Caida, large)] {
        for budget in budgets {
            for method in SYSTEMS {
                for &seed in &scope.seeds {
                    let mut case = Case::new(dataset, method, budget, seed, scope);
                    case.what = What::Speed;
                    jobs.push(case.job());
                }
            }
        }
    }
    jobs
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let beside = beside_the_paper(outcomes, "tab:eae_es", "entropy_error");
    let mut shown = Presentation { remarks: beside.remarks, ..Presentation::default() };
    let methods = values(outcomes, "method");
    let mut table = Table::new(
        "speed",
        "Speed: mean over datasets and budgets",
        ["method", "inserts (million/s)", "decoding (ms)", "training (s)"],
    );
    for method in &methods {
        let of = |figure| Cell::from(mean(outcomes, &[("method", method)], figure));
        table.push([Cell::from(*method), of("insert_mops"), of("decode_ms"), of("train_seconds")]);
    }
    let bars = |figure: &str| -> Vec<_> {
        let bar = |method: &&str| Some(((*method).to_owned(), spread(outcomes, &[("method", method)], figure)?));
        methods.iter().filter_map(bar).collect()
    };
    let speed = Figure {
        title: "Speed of the systems that solve equations".to_owned(),
        note: "means over datasets, budgets and seeds; thin lines from the smallest to the largest".to_owned(),
        panels: vec![
            Panel::bars("inserts (million a second)", Axis::log(""), bars("insert_mops")),
            Panel::bars("decoding all keys (ms), training aside", Axis::log(""), bars("decode_ms")),
        ],
        columns: 2,
    };
    shown.tables.extend([table, beside.table]);
    shown.figures.push(("speed".into(), "Inserting and decoding.".into(), speed));
    for dataset in values(outcomes, "dataset") {
        let caption = format!("The four errors on {dataset}, by memory.");
        shown.figures.push((dataset.to_owned(), caption, error_figure(outcomes, dataset)));
        shown.tables.extend(ERRORS.map(|(name, title)| by_memory(outcomes, dataset, name, title)));
    }
    shown.remarks.push(
        "Decoding is timed once, with all keys asked for at the end; `ucl-delta` has decoded most epochs by then, and all of them count. The paper's decoding times \
         are pictures only: under 0.5 s for its network, up to minutes for OMP."
            .to_owned(),
    );
    shown
}
