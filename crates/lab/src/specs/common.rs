//! Shared parts of the specs: a job that measures one method, groups of outcomes, and tables and
//! panels of them.

use ucl_sketch::Bytes;

use crate::experiment::{Measured, measure, measure_accuracy};
use crate::plot::{Axis, Figure, Line, Panel, Point, size_text};
use crate::reproduce::{Cell, Dataset, Finding, Job, Outcome, Scope, Table};
use crate::summary::Spread;
use crate::system::Options;

/// The paper's four errors: name in outcomes, title of a panel.
pub(super) const ERRORS: [(&str, &str); 4] = [
    ("aae", "AAE (counts)"),
    ("are", "ARE (share of the true count)"),
    ("wmrd", "WMRD (0 to 2)"),
    ("entropy_error", "entropy error (bits, weighted by frequency)"),
];

/// Every system of the paper's main comparison, ours first, then those that the paper does not
/// have.
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
    /// True if the loss of every epoch is kept.
    pub(super) keep_losses: bool,
}

impl Case {
    /// A case of the paper's settings, whose network trains as long as the scope allows.
    pub(super) fn new(dataset: Dataset, method: &'static str, budget: usize, seed: u64, scope: &Scope) -> Self {
        let trained = matches!(method, "ucl-learned" | "ucl-refined");
        let epochs = trained.then(|| scope.epochs());
        // Nobody tells a sketch how many keys will come, but who puts one on a backbone link knows
        // that they are many.
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
            keep_losses: false,
        }
    }

    /// The job.
    pub(super) fn job(self) -> Job {
        let Self { dataset, method, name, budget, seed, more, options, what, keep_losses } = self;
        let mut labels =
            vec![("dataset", dataset.name().to_owned()), ("memory", size_text(budget)), ("method", name.to_owned())];
        labels.extend(more);
        labels.push(("seed", seed.to_string()));
        let job = Job::new(labels, move |bench| {
            let stream = bench.stream(dataset)?;
            let method = bench.method(method)?;
            let measured = match what {
                What::Accuracy => measure_accuracy(method, &stream, budget, seed, &options),
                What::Speed => measure(method, &stream, budget, seed, &options),
            };
            let losses = measured.system.as_ref().map(|system| system.extras().losses).unwrap_or_default();
            let mut finding = finding(measured)?;
            if keep_losses {
                finding.curve("loss", losses);
            }
            Ok(finding)
        });
        let job = job.on(dataset).of(method);
        if what == What::Speed { job.alone() } else { job }
    }
}

/// Everything that a measured system has to say.
pub(super) fn finding(measured: Measured) -> Result<Finding, String> {
    let mut finding = Finding::of_row(&measured.row)?;
    if let Some(system) = measured.system {
        finding.note("parameters", system.extras().parameters.map(|n| n as f64));
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

/// One panel an error: a line a method, against memory; bars, where there is one budget.
pub(super) fn error_panels(outcomes: &[Outcome], dataset: &str) -> Vec<Panel> {
    let here: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
    if let [memory] = values(&here, "memory")[..] {
        // One budget has no line.
        let panel = |(name, title): (&str, &str)| {
            let bar = |method: &str| Some((method.to_owned(), spread(&here, &[("method", method)], name)?));
            let bars = values(&here, "method").into_iter().filter_map(bar).collect();
            Panel::bars(format!("{title}, {memory}"), Axis::log(""), bars)
        };
        return ERRORS.map(panel).into();
    }
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

/// A figure of the answers before they are put within the bounds.
pub(super) fn unbounded(figure: &str) -> String {
    format!("unbounded_{figure}")
}

/// A method a row, a budget a column, for one figure on one dataset. Trained decoders have a second
/// row, for their answers before they are put within the bounds.
pub(super) fn by_memory(outcomes: &[Outcome], dataset: &str, figure: &str, title: &str) -> Table {
    let here: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
    let memories = values(&here, "memory");
    let header = std::iter::once("method").chain(memories.iter().copied());
    let mut table = Table::new(format!("{dataset}-{figure}"), format!("{title}, {dataset}"), header);
    for method in values(&here, "method") {
        let mut row = |name: String, figure: &str| {
            let of = |memory: &&str| mean(&here, &[("method", method), ("memory", *memory)], figure);
            let means: Vec<Option<f64>> = memories.iter().map(of).collect();
            if means.iter().any(Option::is_some) {
                table.push(std::iter::once(Cell::from(name)).chain(means.into_iter().map(Cell::from)));
            }
        };
        row(method.to_owned(), figure);
        row(format!("{method}, unbounded"), &unbounded(figure));
    }
    table
}

/// Budgets from kilobytes.
pub(super) fn kilobytes(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().map(|size| size << 10).collect()
}

/// A number from a key's bytes: FNV-1a, then stirred, so that every bit depends on every byte. For
/// choosing keys at random in the same way on every machine.
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
