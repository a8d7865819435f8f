//! What the specs share: a job that measures one method, groups of outcomes, tables and panels of them.

use ucl_sketch::Bytes;

use crate::experiment::{Measured, measure, measure_accuracy};
use crate::plot::{Axis, Figure, Line, Panel, Point, size_text};
use crate::reproduce::{Cell, Dataset, Finding, Job, Outcome, Scope, Table, paper};
use crate::summary::Spread;
use crate::system::Options;

/// The paper's four errors: name in outcomes, title of a panel.
pub(super) const ERRORS: [(&str, &str); 4] = [
    ("aae", "AAE (counts)"),
    ("are", "ARE (share of the true count)"),
    ("wmrd", "WMRD (0 to 2)"),
    ("entropy_error", "entropy error (bits, weighted by frequency)"),
];

/// Every system of the paper's main comparison, ours first, then those that the paper does not have.
pub(super) const SYSTEMS: [&str; 15] = [
    "ucl-learned",
    "ucl-refined",
    "ucl-em",
    "ucl-delta",
    "cm",
    "cu",
    "cs",
    "asketch",
    "elastic",
    "univmon",
    "nitro",
    "lcm",
    "lcs",
    "hist",
    "lss",
];

/// What a job measures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Errors and prices.
    Accuracy,
    /// Speeds too; such a job runs alone.
    Speed,
}

/// A method on a dataset with a budget and a seed.
pub(super) struct Case {
    pub(super) dataset: Dataset,
    pub(super) method: &'static str,
    /// The method's name in results, where it is not itself.
    pub(super) name: &'static str,
    pub(super) budget: usize,
    pub(super) seed: u64,
    /// Labels beside dataset, memory, method and seed: whatever else tells the job from others.
    pub(super) more: Vec<(&'static str, String)>,
    pub(super) options: Options,
    pub(super) what: What,
}

impl Case {
    /// A case of the paper's settings, whose network trains as long as the scope allows.
    pub(super) fn new(dataset: Dataset, method: &'static str, budget: usize, seed: u64, scope: &Scope) -> Self {
        let trained = matches!(method, "ucl-learned" | "ucl-refined");
        let epochs = trained.then(|| scope.epochs());
        // Nobody tells a sketch how many keys will come, but who puts one on a backbone link knows that they are many.
        let expected_keys = (dataset == Dataset::Caida).then_some(100_000);
        Self {
            dataset,
            method,
            name: method,
            budget,
            seed,
            more: epochs.map(|epochs| ("epochs", epochs.to_string())).into_iter().collect(),
            options: Options { epochs, expected_keys, ..Options::default() },
            what: What::Accuracy,
        }
    }

    /// The job.
    pub(super) fn job(self) -> Job {
        let Self { dataset, method, name, budget, seed, more, options, what } = self;
        let mut labels =
            vec![("dataset", dataset.name().to_owned()), ("memory", size_text(budget)), ("method", name.to_owned())];
        labels.extend(more);
        labels.push(("seed", seed.to_string()));
        let job = Job::new(labels, move |bench| {
            let (stream, method) = (bench.stream(dataset)?, bench.method(method)?);
            finding(match what {
                What::Accuracy => measure_accuracy(method, &stream, budget, seed, &options),
                What::Speed => measure(method, &stream, budget, seed, &options),
            })
        });
        let job = job.on(dataset).of(method);
        if what == What::Speed { job.alone() } else { job }
    }
}

/// Everything that a measured system has to say.
pub(super) fn finding(measured: Measured) -> Result<Finding, String> {
    let mut finding = Finding::of_row(&measured.row)?;
    if let Some(system) = measured.system {
        let extras = system.extras();
        finding.note("parameters", extras.parameters.map(|n| n as f64));
        if !extras.losses.is_empty() {
            finding.curve("loss", extras.losses);
        }
    }
    Ok(finding)
}

/// Every system on these datasets with these budgets.
pub(super) fn compare(scope: &Scope, datasets: &[(Dataset, Vec<usize>)], systems: &[&'static str]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (dataset, budgets) in datasets {
        for &budget in budgets {
            for &method in systems {
                jobs.extend(scope.seeds.iter().map(|&seed| Case::new(*dataset, method, budget, seed, scope).job()));
            }
        }
    }
    jobs
}

/// The values of a label, in the order of their first appearance.
pub(super) fn values<'o>(outcomes: &'o [Outcome], label: &str) -> Vec<&'o str> {
    let mut values: Vec<&str> = Vec::new();
    for outcome in outcomes {
        let value = outcome.label(label);
        if !value.is_empty() && !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Mean and spread of a figure over the outcomes with these labels.
pub(super) fn spread(outcomes: &[Outcome], labels: &[(&str, &str)], figure: &str) -> Option<Spread> {
    let fits = |outcome: &&Outcome| labels.iter().all(|(name, value)| outcome.label(name) == *value);
    Spread::of(outcomes.iter().filter(fits).filter_map(|outcome| outcome.figure(figure)))
}

/// The mean of a figure over the outcomes with these labels.
pub(super) fn mean(outcomes: &[Outcome], labels: &[(&str, &str)], figure: &str) -> Option<f64> {
    spread(outcomes, labels, figure).map(|spread| spread.mean)
}

/// `64KB` as bytes.
pub(super) fn bytes(memory: &str) -> f64 {
    memory.parse::<Bytes>().map_or(0.0, |bytes| bytes.0 as f64)
}

/// An axis of these budgets.
pub(super) fn memory_axis(outcomes: &[Outcome]) -> Axis {
    let ticks = values(outcomes, "memory").into_iter().map(|memory| (bytes(memory), memory.to_owned()));
    Axis::log("memory where the stream is seen").with_ticks(ticks)
}

/// One panel an error: a line a method, against memory.
pub(super) fn error_panels(outcomes: &[Outcome], dataset: &str) -> Vec<Panel> {
    let here: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
    let panel = |(name, title): (&str, &str)| {
        let lines = values(&here, "method").into_iter().map(|method| {
            let points = values(&here, "memory").into_iter().filter_map(|memory| {
                let y = spread(&here, &[("method", method), ("memory", memory)], name)?;
                Some(Point { x: bytes(memory), y })
            });
            Line::new(method, points)
        });
        Panel::lines(title, memory_axis(&here), Axis::log(""), lines.collect())
    };
    ERRORS.map(panel).into()
}

/// The four errors of one dataset as a picture.
pub(super) fn error_figure(outcomes: &[Outcome], dataset: &str) -> Figure {
    let items = mean(outcomes, &[("dataset", dataset)], "items").unwrap_or(0.0);
    let keys = mean(outcomes, &[("dataset", dataset)], "keys").unwrap_or(0.0);
    let count = crate::plot::figure_text;
    Figure {
        title: format!("{dataset}: {} items, {} keys", count(items), count(keys)),
        note: seeds_note(outcomes),
        panels: error_panels(outcomes, dataset),
        columns: 2,
    }
}

/// What a reader has to know about seeds.
pub(super) fn seeds_note(outcomes: &[Outcome]) -> String {
    match values(outcomes, "seed").len() {
        0 | 1 => String::new(),
        seeds => format!("mean of {seeds} seeds, thin lines from the smallest to the largest"),
    }
}

/// A method a row, a budget a column, for one figure on one dataset.
pub(super) fn by_memory(outcomes: &[Outcome], dataset: &str, figure: &str, title: &str) -> Table {
    let here: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
    let memories = values(&here, "memory");
    let header = std::iter::once("method").chain(memories.iter().copied());
    let mut table = Table::new(format!("{dataset}-{figure}"), format!("{title}, {dataset}"), header);
    for method in values(&here, "method") {
        let cells =
            memories.iter().map(|memory| Cell::from(mean(&here, &[("method", method), ("memory", memory)], figure)));
        table.push(std::iter::once(Cell::from(method)).chain(cells));
    }
    table
}

/// The paper's printed figures beside ours, and what to say about the two.
pub(super) struct Beside {
    pub(super) table: Table,
    pub(super) remarks: Vec<String>,
}

/// Sets what the paper prints under `label` beside the outcomes with the same dataset, memory and method.
pub(super) fn beside_the_paper(outcomes: &[Outcome], label: &str, figure: &str) -> Beside {
    let title = format!("The paper's `{label}` beside ours ({figure})");
    let mut table = Table::new(
        format!("paper-{}", label.replace([':', '_'], "-")),
        title,
        ["dataset", "memory", "method", "paper", "ours", "ours / paper"],
    );
    let (mut near, mut all) = (0, 0);
    let mut far: Vec<(String, String)> = Vec::new();
    for printed in paper::printed().iter().filter(|printed| printed.label == label && printed.figure == figure) {
        let labels = [
            ("dataset", printed.dataset.as_str()),
            ("memory", printed.memory.as_str()),
            ("method", printed.method.as_str()),
        ];
        let Some(ours) = mean(outcomes, &labels, figure) else { continue };
        let ratio = ours / printed.value;
        all += 1;
        if (0.5..=2.0).contains(&ratio) {
            near += 1;
        } else if !far.contains(&(printed.dataset.clone(), printed.method.clone())) {
            far.push((printed.dataset.clone(), printed.method.clone()));
        }
        let words = [printed.dataset.as_str(), &printed.memory, &printed.method].map(Cell::from);
        table.push(words.into_iter().chain([printed.value, ours, ratio].map(Cell::Figure)));
    }
    let mut remarks = Vec::new();
    if all > 0 {
        remarks.push(format!("Of the {all} figures that the paper prints in `{label}` and that were measured here, {near} are within a factor of 2 of ours."));
    }
    for (dataset, method) in far {
        remarks.push(format!("{method} on {dataset} differs by more than that: {}", why(&dataset, &method)));
    }
    Beside { table, remarks }
}

/// Why our figures may differ from the printed ones.
fn why(dataset: &str, method: &str) -> &'static str {
    match (dataset, method) {
        ("caida", _) => {
            "the paper's trace may not be passed on, so this is another stream of about as many packets and flows."
        }
        ("kosarak", _) => {
            "the paper takes a segment of 1,000,000 clicks that it does not name; the file at hand may be another part."
        }
        (_, "ucl-learned") => {
            "answers here are whole numbers, at least 1 and within their bounds, and the network's transformation raises a random 5% \
             of the cold keys, where the public code raises one; the budget is split by our planner."
        }
        (_, "lcm" | "lcs") => {
            "the oracle and the split of the budget are ours; the paper's table names its shapes for Retail alone."
        }
        (_, "elastic") => {
            "the light part here has the published 8-bit counters; the paper's table suggests wider ones."
        }
        (_, "cm" | "cs") => {
            "the public code counts a counter as 4 bytes, as we do, but feeds totals instead of the stream; the median of four rows is the mean of the middle two here."
        }
        (_, "univmon" | "nitro") => {
            "levels, sampling and heavy-hitter heaps are left open by the paper, and take memory here."
        }
        (_, "ucl-omp" | "ucl-lsqr" | "seq" | "pr") => {
            "the paper does not give its stopping rules; ours are in the solver's documentation."
        }
        (_, "without SA" | "without EQ" | "without SR") => {
            "the term matters far less here than printed: what is left of the loss already fits the counters, and answers are held within their bounds."
        }
        _ => "the paper does not say enough about its setup to tell.",
    }
}

/// Budgets from kilobytes.
pub(super) fn kilobytes(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().map(|size| size << 10).collect()
}

/// A number from a key's bytes: FNV-1a, then stirred, so that every bit depends on every byte. For choosing keys at random
/// in the same way on every machine.
pub(super) fn mix(key: &[u8], seed: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = key.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// The same as a share, from 0 to 1.
pub(super) fn share(key: &[u8], seed: u64) -> f64 {
    (mix(key, seed) >> 11) as f64 / (1u64 << 53) as f64
}
