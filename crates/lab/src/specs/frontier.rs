//! `frontier`: accuracy against uplink and memory, beside two exact methods.
//!
//! Accuracy has three prices: memory on the device that sees the stream, bytes sent, and work on
//! the server. The figure has one panel for each budget, with the bytes sent per item on the
//! horizontal axis and the AAE on the vertical one. A line joins the intervals of one mode, from
//! frequent cuts (right) to rare ones (left); the line of EM joins counter widths, and those of
//! `ucl-budget` and `sample` the limits that were set. `ucl-exact`, `flowcache` and `send-keys` are
//! exact; `exact-map` sends nothing and is exact where it fits.

use ucl_sketch::CounterBits;

use super::common::{Case, kilobytes, mean, seeds_note, spread, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Line, Panel, Point, size_text};
use crate::reproduce::{Cell, Dataset, Extent, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "frontier",
    title: "Accuracy against uplink against memory",
    labels: &[],
    about: "Every mode at intervals of 1,000 to 256,000 items and with counters of 4 to 32 bits. Uplink is every byte that leaves the place where the stream is seen, as really \
            encoded: keys, carries, slots, snapshots. `ucl-budget` and `sample` keep to limits of it. `ucl-exact`, `flowcache`, `send-keys` and `exact-map` make no error, each at its price.",
    jobs,
    present,
};

/// The names of the lines.
const SEND: &str = "send-keys";
const MAP: &str = "exact-map";
const EXACT: &str = "ucl-exact";
const CACHE: &str = "flowcache";

/// Limits of the uplink, in bytes per item.
const LIMITS: [&str; 7] = ["0.02", "0.05", "0.1", "0.2", "0.4", "0.8", "1.6"];

fn jobs(scope: &Scope) -> Vec<Job> {
    let datasets: Vec<(Dataset, Vec<usize>)> = match scope.extent {
        Extent::Full => vec![
            (Dataset::Retail, kilobytes(&[16, 32, 64, 128])),
            (Dataset::Kosarak, kilobytes(&[16, 32, 64])),
            (Dataset::Caida, kilobytes(&[32, 64, 128, 256])),
        ],
        Extent::Quick => vec![(Dataset::Retail, kilobytes(&[16, 64])), (Dataset::Caida, kilobytes(&[64, 128]))],
        Extent::Slice => vec![(Dataset::Retail, kilobytes(&[8]))],
    };
    let intervals: &[u64] = scope.extent.choose(
        &[1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000],
        &[1_000, 4_000, 16_000, 64_000, 256_000],
        &[1_000, 4_000],
    );
    let mut jobs = Vec::new();
    for (dataset, budgets) in datasets {
        for budget in budgets {
            for &seed in &scope.seeds {
                let case = |method| Case::new(dataset, method, budget, seed, scope);
                for &interval in intervals {
                    jobs.push(every(case("ucl-delta"), interval).job());
                }
                for &interval in intervals
                    .iter()
                    .filter(|&&interval| interval == 1_000 || (scope.extent == Extent::Full && interval == 16_000))
                {
                    jobs.push(every(case("ucl-learned"), interval).job());
                    jobs.push(every(case("ucl-refined"), interval).job());
                }
                jobs.push(case(EXACT).job());
                jobs.push(every(case(EXACT), 64_000).job());
                jobs.push(case(CACHE).job());
                for limit in scope.extent.choose(&LIMITS[..], &LIMITS[1..5], &LIMITS[2..4]) {
                    jobs.push(within(case("ucl-budget"), limit).job());
                    jobs.push(within(case("sample"), limit).job());
                }
                for bits in [4, 8, 16, 32] {
                    jobs.push(of_bits(case("ucl-em"), bits).job());
                    if scope.extent == Extent::Full {
                        jobs.push(of_bits(every(case("ucl-delta"), 16_000), bits).job());
                    }
                }
            }
        }
        // Neither depends on the budget or the seed.
        jobs.push(Case::new(dataset, SEND, 0, 1, scope).job());
        jobs.push(Case::new(dataset, MAP, 0, 1, scope).job());
    }
    jobs
}

fn every(mut case: Case, interval: u64) -> Case {
    case.more.push(("interval", interval.to_string()));
    case.options.interval = Some(Some(interval));
    case
}

/// At a limit of the uplink, in bytes per item.
fn within(mut case: Case, limit: &str) -> Case {
    case.more.push(("limit", limit.to_owned()));
    case.options.uplink = limit.parse().ok();
    case
}

fn of_bits(mut case: Case, bits: u32) -> Case {
    case.more.push(("bits", bits.to_string()));
    case.options.counter_bits = CounterBits::new(bits).ok();
    case
}

/// A line's name and what its points have in common.
const LINES: [(&str, &str, &str); 8] = [
    ("budget, by limit", "ucl-budget", "limit"),
    ("exact, by interval: no error", EXACT, "interval"),
    ("flow cache: no error", CACHE, "method"),
    ("sample, by limit", "sample", "limit"),
    ("delta, by interval", "ucl-delta", "interval"),
    ("EM at the end, by counter width", "ucl-em", "bits"),
    ("learned (the paper's), by interval", "ucl-learned", "interval"),
    ("refined, by interval", "ucl-refined", "interval"),
];

fn line(here: &[Outcome], name: &str, method: &str, label: &str) -> Line {
    let here: Vec<Outcome> = here.iter().filter(|outcome| outcome.label("method") == method).cloned().collect();
    let point = |value: &str| {
        // Of what the other lines go by, nothing was set.
        let others = ["interval", "bits", "limit"].into_iter().filter(|other| *other != label);
        let mut labels: Vec<(&str, &str)> = others.map(|other| (other, "")).collect();
        labels.push((label, value));
        let here = &here;
        Some(Point { x: mean(here, &labels, "uplink_bytes_per_item")?, y: spread(here, &labels, "aae")? })
    };
    let mut points: Vec<Point> = values(&here, label).into_iter().filter_map(point).collect();
    // A single cut, at the end.
    if label == "interval" {
        points.extend(point(""));
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line::new(name, points)
}

fn figure(outcomes: &[Outcome], dataset: &str) -> Figure {
    let of = |name: &str, value: &str| -> Vec<Outcome> {
        outcomes
            .iter()
            .filter(|outcome| outcome.label("dataset") == dataset && outcome.label(name) == value)
            .cloned()
            .collect()
    };
    let raw = mean(&of("method", SEND), &[], "uplink_bytes_per_item");
    let map = mean(&of("method", MAP), &[], "memory_used").unwrap_or(0.0);
    let panel = |memory: &&str| {
        let here = of("memory", memory);
        let mut lines: Vec<Line> = LINES.iter().map(|(name, method, by)| line(&here, name, method, by)).collect();
        // No error has no place on a logarithmic axis: it is drawn at the lower edge.
        lines.extend(raw.map(|raw| Line::new("send every key: no error", [Point::at(raw, 0.0)])));
        Panel::lines(format!("AAE (counts), {memory}"), Axis::log("uplink (bytes per item)"), Axis::log(""), lines)
    };
    let all: Vec<Outcome> = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
    let memories: Vec<&str> = values(&all, "memory").into_iter().filter(|memory| *memory != "0B").collect();
    let keys = crate::plot::figure_text(mean(&all, &[], "keys").unwrap_or(0.0));
    let mut note = format!("an exact hash map takes {} and sends nothing", size_text(map as usize));
    if !seeds_note(outcomes).is_empty() {
        note = format!("{note}; {}", seeds_note(outcomes));
    }
    Figure {
        title: format!("{dataset} ({keys} keys): error against bytes sent, by memory"),
        note,
        panels: memories.iter().map(panel).collect(),
        columns: 2,
    }
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let mut shown = Presentation::default();
    for dataset in values(outcomes, "dataset") {
        shown.figures.push((
            dataset.to_owned(),
            format!("Error against uplink on {dataset}, a panel a memory."),
            figure(outcomes, dataset),
        ));
        let header = [
            "memory",
            "method",
            "interval",
            "limit B/item",
            "counter bits",
            "AAE",
            "ARE",
            "coverage",
            "bound width",
            "uplink B/item",
            "control plane, bytes a key",
        ];
        let here: Vec<Outcome> =
            outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset).cloned().collect();
        for memory in values(&here, "memory") {
            let title = if memory == "0B" { "without a sketch" } else { memory };
            let mut table =
                Table::new(format!("{dataset}-{memory}"), format!("The frontier on {dataset}, {title}"), header);
            let mut seen: Vec<String> = Vec::new();
            for outcome in here.iter().filter(|outcome| outcome.label("memory") == memory) {
                let labels = ["memory", "method", "interval", "bits", "limit"].map(|name| (name, outcome.label(name)));
                let id = format!("{labels:?}");
                if !seen.contains(&id) {
                    seen.push(id);
                    table.push(row(outcome, |figure| mean(&here, &labels, figure)));
                }
            }
            shown.tables.push(table);
        }
    }
    let violations: f64 = outcomes.iter().filter_map(|outcome| outcome.figure("bound_violations")).sum();
    shown
        .remarks
        .push(format!("Over all runs, keys whose true count was outside of the bounds given for it: {violations}."));
    shown.remarks.push("See docs/frontier.md for what this means.".to_owned());
    shown
}

/// A row of the table: what was run, and what it gave.
fn row(outcome: &Outcome, of: impl Fn(&str) -> Option<f64>) -> Vec<Cell> {
    let memory = match outcome.label("method") {
        MAP => of("memory_used").map_or(String::new(), |bytes| size_text(bytes as usize)),
        SEND => "0".to_owned(),
        _ => outcome.label("memory").to_owned(),
    };
    let interval = match (outcome.label("method"), outcome.label("interval")) {
        ("ucl-em", _) => "one snapshot",
        (EXACT, "") => "one cut",
        (_, interval) => interval,
    };
    let limit = outcome.label("limit");
    let mut row = vec![Cell::from(memory), outcome.label("method").into(), interval.into(), limit.into()];
    let figures = ["counter_bits", "aae", "are", "coverage", "bound_width", "uplink_bytes_per_item"];
    row.extend(figures.map(|figure| Cell::from(of(figure))));
    row.push(of("control_bytes").zip(of("keys")).map(|(bytes, keys)| bytes / keys.max(1.0)).into());
    row
}
