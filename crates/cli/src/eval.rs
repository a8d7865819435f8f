//! `ucl eval`: compares methods on one stream with exact counts.

use std::path::PathBuf;

use ucl_lab::plot::{check_name, plot};
use ucl_lab::{
    Experiment, Method, MethodRegistry, MethodRun, Options, Recording, Row, Spread, Summary, Training, Unbounded,
    measure,
};
use ucl_sketch::{Base, Bytes, CounterBits, HeavyKind, ReportRule, Shape};
use ucl_streams::Source;
use ucl_streams::process::peak_resident_bytes;

use crate::fail::{Usage, harmless, tell};
use crate::input::{self, InputArgs, check_files};
use crate::show;
use crate::spinner::Spinner;

/// Compare methods on one stream by their errors against exact counts.
///
/// Reads the stream once, counts it exactly, runs every method on it, and prints the errors,
/// bounds, bytes sent and speed of each.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    stream: InputArgs,

    /// Same as INPUT, as an option. Several inputs are read in order as one stream.
    #[arg(short = 'i', long = "input", value_name = "INPUT")]
    named: Vec<Source>,

    /// Memory budgets of the device that sees the stream, such as 64KB,128KB [default: 64KB].
    #[arg(short, long, value_name = "SIZE", value_delimiter = ',', help_heading = "Methods")]
    memory: Vec<Bytes>,

    /// Methods to compare, by name, or `all`; `ucl methods` lists them.
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = method_name,
        default_value = "ucl-learned,ucl-em,ucl-delta,cm,cs",
        help_heading = "Methods"
    )]
    method: Vec<String>,

    /// Also show the costs of an exact hash map and of sending every key.
    #[arg(long, help_heading = "Methods")]
    baselines: bool,

    /// Exact sizes of the sketch instead of a budget, such as slots=3000,width=1024,depth=4.
    ///
    /// Sizes that are not given are those of the paper's 64KB: slots=3000, width=1024, depth=4,
    /// bloom-bits=80000, bloom-hashes=8, vote-ratio=1, counter-bits=32. The budget of the other
    /// methods is the number of bytes that this shape takes.
    ///
    /// `paper` gives every method the paper's parameters for Retail: budgets of 16KB to 128KB in
    /// steps of 16KB, and 4-byte keys.
    #[arg(
        long,
        value_name = "SHAPE",
        value_parser = shape_choice,
        conflicts_with = "expected_keys",
        help_heading = "Methods"
    )]
    shape: Option<ShapeChoice>,

    /// Linear sketch of UCL-sketch: count-min, count-sketch (signed) or flowradar (a single array).
    ///
    /// The decoders em, delta, refined and map cannot decode count-sketch, and map cannot decode
    /// flowradar: such a method fails with an error.
    #[arg(long, value_name = "SKETCH", default_value_t, help_heading = "Methods")]
    base: Base,

    /// Heavy part of UCL-sketch: voting (the paper's), augmented (with exchange) or elastic
    /// (buckets).
    #[arg(long, value_name = "PART", default_value_t, help_heading = "Methods")]
    heavy: HeavyKind,

    /// Number of items between two cuts, or `none` for a single snapshot [default: depends on the
    /// method].
    #[arg(long, value_name = "ITEMS", value_parser = interval, help_heading = "Methods")]
    interval: Option<Interval>,

    /// Bits per counter: 4, 8, 16 or 32 [default: depends on the method; 32 with --shape].
    #[arg(long, value_name = "BITS", value_parser = counter_bits, help_heading = "Methods")]
    counter_bits: Option<CounterBits>,

    /// Keys to send: `paper` (every evicted key), `new` (keys that are not in the Bloom filter),
    /// `refresh` (also some known keys again), `rotate` (also all keys again from time to time) or
    /// `generations` (also keys that have not occurred for a while) [default: depends on the
    /// method; paper with --shape].
    #[arg(long, value_name = "RULE", help_heading = "Methods")]
    report_rule: Option<ReportRule>,

    /// Bits of the codes that replace keys in ucl-exact, 8 to 64 [default: 64; keys of one size
    /// have no code].
    #[arg(long, value_name = "BITS", value_parser = crate::count::values::code_bits, help_heading = "Methods")]
    code_bits: Option<u8>,

    /// Expected number of distinct keys; never taken from the exact counts [default: a quarter of
    /// the budget in bytes].
    #[arg(long, value_name = "N", help_heading = "Methods")]
    expected_keys: Option<u64>,

    /// Bytes per item that the methods `ucl-budget` and `sample` may send [default: no limit for
    /// ucl-budget, 0.1 for sample].
    #[arg(long, value_name = "BYTES", value_parser = crate::count::values::bytes_per_item, allow_negative_numbers = true, help_heading = "Methods")]
    uplink: Option<f64>,

    /// Number of snapshots that the learned decoder trains on [default: 128].
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Methods")]
    window: Option<usize>,

    /// When the network trains: `final` (once, at the end of the stream, on its last window) or
    /// `online` (along the stream, as the window slides and keys arrive).
    ///
    /// online trains four times per window, each time for a quarter of --epochs, and continues from
    /// the weights before. A method without a network has no training.
    #[arg(long, value_name = "WHEN", default_value = "final", value_parser = training, help_heading = "Methods")]
    training: Training,

    /// Largest number of training epochs [default: 300].
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Methods")]
    epochs: Option<usize>,

    /// Number of EM iterations, also in the method ucl-delta.
    #[arg(long, value_name = "N", help_heading = "Methods")]
    iterations: Option<usize>,

    /// Seed of the hash functions, the network and the generators.
    #[arg(long, value_name = "SEED", default_value_t = 0, help_heading = "Methods")]
    seed: u64,

    /// Number of seeds to repeat with, from --seed upwards; the stream stays the same.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=10_000),
        default_value_t = 1,
        help_heading = "Methods"
    )]
    seeds: u64,

    /// Number of threads for decoding and training; it does not change the errors [default: one per
    /// core].
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Methods")]
    threads: Option<usize>,

    /// Plot the errors to this .svg file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    plot: Option<PathBuf>,

    /// Print one JSON object per method, budget and seed, as soon as it is measured.
    ///
    /// peak_resident_bytes is the peak memory (RAM) of the process so far, including the stream and
    /// its exact counts.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const DEFAULT_BUDGET: usize = 64 << 10;

const EXAMPLES: &str = "\
Examples:
  ucl eval --input retail.dat --format fimi --memory 64KB,128KB --method ucl-learned,ucl-em
  ucl eval zipf:1.2 --method all --baselines --plot errors.svg
  ucl eval zipf:1.2 --method ucl-learned --base count-sketch --heavy elastic
  ucl eval retail.dat --format fimi --shape slots=3000,width=1024 --seeds 3
  ucl eval retail.dat --format fimi --shape paper --memory 16KB,64KB --method all";

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(path) = &args.plot {
        check_name(path).map_err(Usage::because)?;
    }
    if matches!(args.shape, Some(ShapeChoice::ByHand(_))) && !args.memory.is_empty() {
        return Err(Usage::because("a --shape with sizes determines the memory: remove --memory").into());
    }
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let registry = MethodRegistry::standard();
    let spinner = Spinner::new();
    let result = measure_all(args, &registry, &spinner);
    spinner.clear();
    let (stream, rows) = result?;
    if !args.json {
        show::print(report(&stream, &rows, args))?;
    }
    if let Some(path) = &args.plot {
        plot(&rows, path)?;
    }
    if rows.iter().all(|row| row.error.is_some()) {
        anyhow::bail!("no method could be measured");
    }
    match stream.cut_off() {
        None => Ok(()),
        Some(why) => {
            let covered = show::counted(stream.items(), "item");
            anyhow::bail!("{why}{}; the figures cover the {covered} before it", input::remedy(why))
        }
    }
}

fn measure_all(args: &Args, registry: &MethodRegistry, spinner: &Spinner) -> anyhow::Result<(Recording, Vec<Row>)> {
    let methods = selected(args, registry)?;
    spinner.say("reading");
    let stream = read(args)?;
    let experiment = Experiment {
        methods,
        budgets: if args.memory.is_empty() {
            vec![DEFAULT_BUDGET]
        } else {
            args.memory.iter().map(|size| size.0).collect()
        },
        seeds: (0..args.seeds).map(|i| args.seed.wrapping_add(i)).collect(),
        options: options(args),
    };
    let jobs = experiment.jobs(stream.keys());
    let mut rows = Vec::with_capacity(jobs.len());
    for (number, &MethodRun { method, budget, seed }) in jobs.iter().enumerate() {
        let name = method.name;
        let size = show::bytes(budget);
        spinner.say(format!("{} of {}: {name}, {size}, seed {seed}", number + 1, jobs.len()));
        let row = measure(method, &stream, budget, seed, &experiment.options).row;
        if args.json {
            show::print(json(&row)? + "\n")?;
        }
        rows.push(row);
    }
    Ok((stream, rows))
}

/// A row, and what the process has taken so far.
fn json(row: &Row) -> serde_json::Result<String> {
    #[derive(serde::Serialize)]
    struct Line<'r> {
        #[serde(flatten)]
        row: &'r Row,
        peak_resident_bytes: Option<usize>,
    }
    serde_json::to_string(&Line { row, peak_resident_bytes: peak_resident_bytes() })
}

fn selected<'r>(args: &Args, registry: &'r MethodRegistry) -> anyhow::Result<Vec<&'r Method>> {
    let mut names: Vec<&str> = args.method.iter().map(String::as_str).collect();
    if args.baselines {
        names.extend(registry.methods().iter().filter(|method| method.baseline).map(|method| method.name));
    }
    Ok(registry.select(names)?)
}

fn options(args: &Args) -> Options {
    let counter_bits = args.counter_bits;
    Options {
        base: Some(args.base),
        heavy: Some(args.heavy),
        shape: match args.shape {
            Some(ShapeChoice::ByHand(shape)) => {
                Some(Shape { counter_bits: counter_bits.unwrap_or(shape.counter_bits), ..shape })
            }
            Some(ShapeChoice::Paper) | None => None,
        },
        paper_shapes: args.shape == Some(ShapeChoice::Paper),
        interval: args.interval.map(|Interval(items)| items),
        counter_bits,
        rule: args.report_rule,
        expected_keys: args.expected_keys,
        window: args.window,
        uplink: args.uplink,
        training: args.training,
        code_bits: args.code_bits,
        weighted: args.stream.weight.is_some(),
        iterations: args.iterations,
        epochs: args.epochs,
        learned: None,
    }
}

/// Reads the input into memory, with exact counts.
fn read(args: &Args) -> anyhow::Result<Recording> {
    let mut sources = [args.stream.inputs.as_slice(), args.named.as_slice()].concat();
    if sources.is_empty() {
        sources = args.stream.sources()?;
    }
    let options = args.stream.read_options(&sources, args.seed)?;
    check_files(&sources, &options)?;
    let stream = Recording::read(&sources, &options)
        .map_err(|error| anyhow::anyhow!("{error}{}", input::remedy(&error.kind)))?;
    let summary = stream.summary();
    input::notes(summary);
    if let Some(first) = &summary.first_skip {
        let first = harmless(&first.to_string());
        tell(format_args!("skipped {}; the first: {first}", show::counted(summary.skipped, "bad record")));
    }
    if stream.items() == 0 {
        anyhow::bail!("{}: the stream has no items", stream.name());
    }
    Ok(stream)
}

const COLUMNS: usize = 14;

/// The table, with what has to be said about it.
fn report(stream: &Recording, rows: &[Row], args: &Args) -> String {
    let header: [&str; COLUMNS] = [
        "method",
        "memory",
        "AAE",
        "ARE",
        "WMRD",
        "entropy error",
        "entropy, all keys",
        "coverage",
        "bound width",
        "violations",
        "uplink B/item",
        "insert Mops",
        "decode ms",
        "train s",
    ];
    let right: Vec<bool> = header.iter().map(|&name| name != "method").collect();
    let summaries = Summary::of(rows);
    let items = show::count(stream.items());
    let keys = show::count(stream.truth().distinct() as u64);
    let map = show::bytes(stream.truth().exact_map_bytes());
    let mut text = format!("{}: {items} items, {keys} keys; an exact hash map takes {map}\n\n", stream.name());
    let lines = summaries.iter().flat_map(|summary| std::iter::once(cells(summary)).chain(unbounded(summary)));
    text += &show::table(&header, &right, lines);
    let mut notes: Vec<String> = Vec::new();
    if summaries.iter().any(|summary| unbounded(summary).is_some()) {
        notes.push(UNBOUNDED.to_owned());
    }
    if let Some(peak) = peak_resident_bytes() {
        let peak = show::bytes(peak);
        notes.push(format!("Peak memory of the process: {peak}, including the stream and its exact counts."));
    }
    if args.seeds > 1 {
        let last = args.seed.wrapping_add(args.seeds - 1);
        notes.push(format!("Mean ± standard deviation of {} seeds, {} to {last}.", args.seeds, args.seed));
    }
    for summary in &summaries {
        let first = summary.first();
        let who = format!("{} at {}", first.method, show::bytes(first.memory_budget));
        if let Some(error) = summary.error() {
            notes.push(format!("{who} failed: {error}."));
        }
        notes.extend(collapses(summary).map(|told| format!("{who}: {told}.")));
        if let Some(decoder) = &first.answered_by {
            notes.push(format!("{who} was decoded by {decoder}: there was no snapshot to train on."));
        }
    }
    if !notes.is_empty() {
        text += "\n";
        text += &notes.join("\n");
        text += "\n";
    }
    text
}

/// What the second line of a method with a network means.
const UNBOUNDED: &str = "\
\"unbounded\": the network's own answers, before they are put within the guaranteed bounds. The bounds hide much of \
a network's error.";

/// The text of a figure.
type Text = fn(Spread) -> String;

fn mean(spread: Spread) -> String {
    show::figure(spread.mean)
}

/// An error, with its spread over the seeds; that of a single seed is nothing to show.
fn error(summary: &Summary<'_>) -> Text {
    if summary.seeds() == 1 {
        return mean;
    }
    |spread| format!("{} ± {}", show::figure(spread.mean), show::figure(spread.deviation))
}

fn cell(summary: &Summary<'_>, figure: impl Fn(&Row) -> Option<f64>, text: Text) -> String {
    summary.spread(figure).map_or_else(|| "-".to_owned(), text)
}

/// The errors of a network without bounds, in the same columns.
fn unbounded(summary: &Summary<'_>) -> Option<Vec<String>> {
    summary.first().unbounded?;
    let figures: [fn(Unbounded) -> f64; 5] =
        [|of| of.aae, |of| of.are, |of| of.wmrd, |of| of.entropy_error, |of| of.entropy_error_all_keys];
    let mut cells = vec!["  unbounded".to_owned(), String::new()];
    cells.extend(figures.map(|figure| cell(summary, |row| row.unbounded.map(figure), error(summary))));
    cells.resize(COLUMNS, String::new());
    Some(cells)
}

/// How often networks collapsed, over all seeds.
fn collapses(summary: &Summary<'_>) -> Option<String> {
    let restarts = summary.total(|row| row.restarts.map(|restarts| restarts as u64));
    let collapsed = summary.total(|row| row.collapsed.map(u64::from));
    let networks = show::counted(summary.seeds() as u64, "network");
    (restarts + collapsed > 0).then(|| {
        format!("of {networks}, {collapsed} had collapsed at the end; trained again after a collapse: {restarts} times")
    })
}

fn cells(summary: &Summary<'_>) -> Vec<String> {
    let row = summary.first();
    let error = error(summary);
    let cell = |figure: fn(&Row) -> Option<f64>, text: Text| cell(summary, figure, text);
    vec![
        row.method.clone(),
        show::bytes(row.memory_used.unwrap_or(row.memory_budget)),
        cell(|row| row.aae, error),
        cell(|row| row.are, error),
        cell(|row| row.wmrd, error),
        cell(|row| row.entropy_error, error),
        cell(|row| row.entropy_error_all_keys, error),
        cell(|row| row.coverage, |spread| format!("{:.2}%", 100.0 * spread.mean)),
        cell(|row| row.bound_width, mean),
        summary.violations().map_or_else(|| "-".to_owned(), show::count),
        cell(|row| row.uplink_bytes_per_item, mean),
        cell(|row| row.insert_mops, mean),
        cell(|row| row.decode_ms, mean),
        cell(|row| row.train_seconds, mean),
    ]
}

/// Items between two cuts, or none.
#[derive(Clone, Copy)]
struct Interval(Option<u64>);

fn interval(text: &str) -> Result<Interval, String> {
    match text.parse() {
        _ if text == "none" => Ok(Interval(None)),
        Ok(0) | Err(_) => Err("give a number of items, at least 1, or 'none'".into()),
        Ok(items) => Ok(Interval(Some(items))),
    }
}

fn training(text: &str) -> Result<Training, String> {
    text.parse()
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "give a number, at least 1".into())
}

fn counter_bits(text: &str) -> Result<CounterBits, String> {
    let bits = text.parse().map_err(|_| "give 4, 8, 16 or 32")?;
    CounterBits::new(bits).map_err(|error| error.to_string())
}

fn method_name(text: &str) -> Result<String, String> {
    MethodRegistry::standard().select([text]).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Shapes other than the planners'.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ShapeChoice {
    /// The paper's for Retail, for every method.
    Paper,
    /// Shape of the UCL-sketch; its bytes are the other methods' budget.
    ByHand(Shape),
}

fn shape_choice(text: &str) -> Result<ShapeChoice, String> {
    if text == "paper" { Ok(ShapeChoice::Paper) } else { shape(text).map(ShapeChoice::ByHand) }
}

/// Parses a shape from `name=number` pairs; the other sizes are those of the paper's 64KB.
fn shape(text: &str) -> Result<Shape, String> {
    fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
        value.parse().map_err(|_| format!("'{value}' is not a valid number for {name}"))
    }
    let mut shape = Shape::PAPER_64KB;
    for pair in text.split(',') {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is not of the form name=number"))?;
        match name {
            "slots" => shape.slots = number(name, value)?,
            "width" => shape.width = number(name, value)?,
            "depth" => shape.rows = number(name, value)?,
            "bloom-bits" => shape.bloom_bits = number(name, value)?,
            "bloom-hashes" => shape.bloom_hashes = number(name, value)?,
            "vote-ratio" => shape.vote_ratio = number(name, value)?,
            "counter-bits" => shape.counter_bits = counter_bits(value)?,
            _ => {
                return Err(format!(
                    "unknown size '{name}'; a shape has slots, width, depth, bloom-bits, bloom-hashes, vote-ratio and \
                     counter-bits"
                ));
            }
        }
    }
    shape.validate().map_err(|error| error.to_string())?;
    Ok(shape)
}
