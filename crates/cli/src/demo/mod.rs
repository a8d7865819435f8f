//! `ucl demo`: counts one stream by several methods in the same 64KB, and writes a page of plots.

#[cfg(feature = "server")]
mod distributed;
mod page;
mod plots;
mod svg;

use std::path::PathBuf;
use std::time::Instant;

use ucl_lab::{Measured, MethodRegistry, Options, Recording, Row, System, measure};
use ucl_streams::{Format, ReadOptions, Source};

use crate::show::{bytes, count, figure, table};
use crate::spinner::Spinner;

/// Show UCL-sketch on a generated stream, and write a report with plots.
///
/// Counts a stream of a million items by several methods in 64KB each, and compares them with exact
/// counts. Takes about ten seconds and needs no files.
#[derive(clap::Args)]
pub struct Args {
    /// File for the report.
    #[arg(short, long, value_name = "FILE", default_value = "ucl-demo.html")]
    out: PathBuf,

    /// Number of items in the stream.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    items: u64,

    /// Seed of the stream, the hash functions and the network.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Run a collector and three agents as separate processes instead, kill each of them, and
    /// compare the answers with exact counts. Takes about ten seconds.
    #[cfg(feature = "server")]
    #[arg(long)]
    distributed: bool,

    /// Number of times that each process is killed, with --distributed.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "distributed", value_parser = clap::value_parser!(u64).range(0..=1000))]
    kills: u64,
}

const BUDGET: usize = 65_536;
/// A sixth of what the paper allows: most of the way down the loss, and no long wait.
const EPOCHS: usize = 50;

/// The methods shown: name in the lab, name for people.
const METHODS: [(&str, &str); 6] = [
    ("cm", "Count-Min"),
    ("ucl-learned", "UCL, learned"),
    ("ucl-em", "UCL, EM"),
    ("ucl-delta", "UCL, delta"),
    ("ucl-exact", "UCL, exact (default)"),
    ("exact-map", "exact hash map"),
];
/// Positions in [`METHODS`] of Count-Min, the paper's decoder and the default mode.
const COUNT_MIN: usize = 0;
const LEARNED: usize = 1;
const BEST: usize = 4;
/// The first methods, which have errors to draw.
const PLOTTED: usize = 4;

/// Result of one method.
struct Contender {
    name: &'static str,
    row: Row,
    system: Box<dyn System>,
}

/// A key whose answers are shown.
struct Example {
    rank: usize,
    key: String,
    truth: u64,
    count_min: u64,
    ours: u64,
    range: (u64, u64),
}

/// All that is shown, on the terminal and on the page.
struct Findings {
    stream: Recording,
    contenders: Vec<Contender>,
    examples: Vec<Example>,
    seed: u64,
    seconds: f64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    #[cfg(feature = "server")]
    if args.distributed {
        return distributed::run(args.items / 3, args.seed, args.kills);
    }
    let findings = find(args.items, args.seed)?;
    std::fs::write(&args.out, page::render(&findings))
        .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", args.out.display()))?;
    let text = text(&findings) + &format!("\nReport with plots: {}\n", args.out.display());
    crate::show::print(text)
}

fn find(items: u64, seed: u64) -> anyhow::Result<Findings> {
    let start = Instant::now();
    let spinner = Spinner::new();
    spinner.say("generating a stream");
    let source: Source = format!("zipf:1.1:{items}:50000").parse()?;
    let stream = Recording::read(&[source], &ReadOptions { seed, ..ReadOptions::default() })?;
    let registry = MethodRegistry::standard();
    let options = Options { epochs: Some(EPOCHS), ..Options::default() };
    let mut contenders = Vec::new();
    for (method, name) in METHODS {
        spinner.say(format!("counting with {name}"));
        let Measured { row, system } = measure(registry.find(method)?, &stream, BUDGET, seed, &options);
        let error = || anyhow::anyhow!("{name}: {}", row.error.as_deref().unwrap_or("no answers"));
        contenders.push(Contender { name, system: system.ok_or_else(error)?, row });
    }
    let examples = examples(&stream, &contenders);
    spinner.clear();
    Ok(Findings { stream, contenders, examples, seed, seconds: start.elapsed().as_secs_f64() })
}

/// Keys of very different frequency, by their true rank.
fn examples(stream: &Recording, contenders: &[Contender]) -> Vec<Example> {
    let ranked = stream.truth().top(usize::MAX);
    let example = |rank: usize| {
        let &(key, truth) = ranked.get(rank - 1)?;
        let ours = contenders[BEST].system.estimate(key);
        Some(Example {
            rank,
            key: Format::Fimi.key_display(key),
            truth,
            count_min: contenders[COUNT_MIN].system.estimate(key).estimate,
            ours: ours.estimate,
            range: ours.bounds.unwrap_or((0, u64::MAX)),
        })
    };
    [1, 10, 100, 1_000, 10_000].into_iter().filter_map(example).collect()
}

/// The cells of a contender's line, on the terminal and on the page alike.
fn cells(contender: &Contender) -> Vec<String> {
    let row = &contender.row;
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "–".to_owned());
    vec![
        contender.name.to_owned(),
        or_dash(row.aae.map(figure)),
        or_dash(row.are.map(figure)),
        or_dash(row.memory_used.map(bytes)),
        or_dash(row.uplink_bytes.map(|sent| bytes(sent as usize))),
        or_dash(row.insert_mops.map(|mops| format!("{mops:.1} M/s"))),
        or_dash(row.train_seconds.map(|seconds| format!("{seconds:.1} s"))),
    ]
}

const HEADER: [&str; 7] = ["method", "AAE", "ARE", "memory", "uplink", "inserts", "training"];
const EXAMPLE_HEADER: [&str; 7] = ["rank", "key", "true count", "Count-Min", "ours", "at least", "at most"];

fn example_cells(example: &Example) -> Vec<String> {
    let (lower, upper) = example.range;
    let numbers = [example.truth, example.count_min, example.ours, lower, upper].map(count);
    [count(example.rank as u64), example.key.clone()].into_iter().chain(numbers).collect()
}

fn text(findings: &Findings) -> String {
    let truth = findings.stream.truth();
    let items = count(findings.stream.items());
    let keys = count(truth.distinct() as u64);
    let map = bytes(truth.exact_map_bytes());
    let mut text = format!(
        "A stream of {items} items over {keys} keys ({}, seed {}), counted in {}.\n\
         Errors over all keys (AAE: mean absolute error, ARE: mean relative error):\n\n",
        findings.stream.name(),
        findings.seed,
        bytes(BUDGET)
    );
    let numbers = [false, true, true, true, true, true, true];
    text += &table(&HEADER, &numbers, findings.contenders.iter().map(cells));
    text += &format!(
        "\nUplink: bytes sent from the device that sees the stream to the server that answers. If the device has\n\
         {map} to spare, use the hash map.\n\nFive keys, with the guaranteed range of each count:\n\n"
    );
    let numbers = [true, true, true, true, true, true, true];
    text += &table(&EXAMPLE_HEADER, &numbers, findings.examples.iter().map(example_cells));
    text
}
