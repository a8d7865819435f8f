//! `ucl count`: per-key counts of anything.

pub mod answer;
mod counter;
mod every;
mod export;
mod histogram;
mod over_time;
mod parallel;
mod parquet;
pub mod resume;
pub mod text;
mod warnings;

use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ucl_sketch::{
    Base, Bytes, CounterBits, DecoderKind, HeavyKind, KeyFormat, Mode, QueryView, ReportRule, Seed, UclSketch,
};
use ucl_streams::{Format, Progress, ReadError, ReadSummary, Source, read};

use crate::fail::{Usage, harmless};
use crate::input::{self, InputArgs, check_files};
use crate::key::each_line;
use crate::progress::Bar;
use answer::{Answer, Asked};
use counter::{Counter, Skipped};
use every::{Every, Live};
use export::Target;
use over_time::Period;

/// Count how often each key occurs.
///
/// Prints the most frequent keys, each with an estimate and the range in which the true count is
/// guaranteed to lie, then a summary. Only --memory bytes are used where the stream is seen; the
/// keys and the decoder live beside it.
///
/// Keys of records:4, :8, :13, :16 and of the generators sit in the sketch's slots as they are. All
/// others may have any length, and sit there as 16-byte digests; if you know that all keys have one
/// of these sizes (numbers in fimi: 4, IPv4 five-tuples in pcap: 13), --key-bytes saves memory, and
/// a key of another size is then a bad record. A key that is known by its digest alone, because the
/// Bloom filter claimed to know it already, is printed as digest:… .
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// The budget where the stream is seen [default: 64KB].
    #[arg(short, long, value_name = "SIZE", help_heading = "Sketch")]
    memory: Option<Bytes>,

    /// How to count: exact, or one of the decoders of a sketch: delta, em, learned, refined, cm,
    /// lsmr, lsqr, omp, map [default: delta].
    ///
    /// exact sends every key that leaves the table up the link, and every count is exact. The
    /// others send less, and estimate.
    #[arg(long, value_name = "MODE", conflicts_with = "decoder", help_heading = "Sketch")]
    mode: Option<Mode>,

    /// Who turns counters into counts: delta, em, learned, refined, cm, lsmr, lsqr, omp or map
    /// [default: delta].
    ///
    /// delta decodes every --interval on its own and is the most exact; em looks once, at the end;
    /// learned is the paper's network, which trains itself and takes its time; refined is em from
    /// where the network ends; cm, lsmr, lsqr, omp and map are there to compare with.
    #[arg(short, long, value_name = "NAME", help_heading = "Sketch")]
    decoder: Option<DecoderKind>,

    /// The linear sketch: count-min, count-sketch (signed) or flowradar (a single array) [default:
    /// count-min].
    ///
    /// delta, em, refined and map cannot decode count-sketch, nor map flowradar.
    #[arg(long, value_name = "SKETCH", help_heading = "Sketch")]
    base: Option<Base>,

    /// The heavy part: voting (the paper's), augmented (with exchange) or elastic (buckets)
    /// [default: voting].
    #[arg(long, value_name = "PART", help_heading = "Sketch")]
    heavy: Option<HeavyKind>,

    /// Every key has this many bytes: 4, 8, 13 or 16; or `any`. Deduced from the input if not
    /// given.
    #[arg(long, value_name = "BYTES", value_parser = key_bytes, help_heading = "Sketch")]
    key_bytes: Option<KeyFormat>,

    /// How many distinct keys to expect [default: a quarter of the budget's bytes].
    #[arg(long, value_name = "N", help_heading = "Sketch")]
    expected_keys: Option<u64>,

    /// Items between two cuts of the stream [default: what suits the decoder].
    #[arg(long, value_name = "ITEMS", value_parser = items, help_heading = "Sketch")]
    interval: Option<u64>,

    /// Bits per counter: 4, 8, 16 or 32 [default: what suits the decoder].
    #[arg(long, value_name = "BITS", value_parser = counter_bits, help_heading = "Sketch")]
    counter_bits: Option<CounterBits>,

    /// Which keys are sent: `paper` (evicted ones always), `new` (those the Bloom filter lacks),
    /// `refresh` (some of the others again) or `rotate` (all again now and then) [default: what
    /// suits the decoder].
    #[arg(long, value_name = "RULE", help_heading = "Sketch")]
    report_rule: Option<ReportRule>,

    /// Fixes the hashes, the network and the generators [default: random].
    ///
    /// A number of up to 128 bits, in decimal or as 0x and hexadecimal digits. Whoever knows it can
    /// choose keys that spoil the estimates (never the guaranteed ranges), so a random one is drawn
    /// and printed unless you give your own.
    #[arg(long, value_name = "SEED", help_heading = "Sketch")]
    seed: Option<Seed>,

    /// Threads for decoding [default: one per core]; with several inputs, also for counting them
    /// side by side.
    ///
    /// Each of these threads then has a data plane of the full --memory, as that many devices would
    /// have, and takes every N-th input; their counts are merged at the end. In JSON, planes is
    /// their number, and memory that of each. Not with --every, --limit and --save-every, which go
    /// by the order of all inputs, nor with --resume, which goes on in the data plane of the state.
    #[arg(long, value_name = "N", value_parser = threads, help_heading = "Sketch")]
    threads: Option<usize>,

    /// Go on counting from the state in this file.
    ///
    /// The sketch, and the format and weight of its records, are those of the state: what is said
    /// of them here must agree. The result is the same as if there had been no stop.
    #[arg(long, value_name = "STATE", conflicts_with = "audit", help_heading = "State")]
    resume: Option<PathBuf>,

    /// Write the state to this file when the input has ended: for --resume, query, top, inspect and
    /// merge.
    ///
    /// It is the old file or the new one, whole, whatever happens on the way.
    #[arg(long, value_name = "STATE", help_heading = "State")]
    save: Option<PathBuf>,

    /// Write the state after every N items as well.
    #[arg(long, value_name = "N", requires = "save", help_heading = "State")]
    save_every: Option<NonZeroU64>,

    /// How many of the most frequent keys to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, help_heading = "Answers")]
    top: usize,

    /// Ask for this key, written as it is printed; may be repeated.
    #[arg(short, long, value_name = "KEY", help_heading = "Answers")]
    query: Vec<OsString>,

    /// Ask for the keys in this file, one a line; they need not be UTF-8.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    query_file: Option<PathBuf>,

    /// Sum over the known keys that start so when printed; may be repeated.
    #[arg(long, value_name = "PREFIX", help_heading = "Answers")]
    prefix: Vec<String>,

    /// Show the most frequent keys of the last N epochs as well (an epoch has --interval items; the
    /// open one counts).
    #[arg(long, value_name = "N", value_parser = epochs, help_heading = "Answers")]
    last: Option<usize>,

    /// Show the keys that changed most: the last epochs (as many as --last, or 16) against as many
    /// before.
    #[arg(long, help_heading = "Answers")]
    changes: bool,

    /// Keep this many epochs for questions about time [default: what --last and --changes need].
    ///
    /// Each costs 8 bytes, beside the sketch, for every key that occurs in it; the summary tells
    /// how much that is.
    #[arg(long, value_name = "N", value_parser = epochs, help_heading = "Answers")]
    keep: Option<usize>,

    /// Print every known key as CSV, and nothing else. Escaped on a terminal; elsewhere as --out
    /// writes it.
    #[arg(long, conflicts_with_all = ["json", "every", "audit"], help_heading = "Answers")]
    all: bool,

    /// Write every known key to this file: .csv, .jsonl or .parquet.
    ///
    /// Keys are written as they are, without the escapes of the screen (hex:…). CSV holds their
    /// bytes, quoted where needed. Parquet has a column of text, or of plain binary if a key is not
    /// valid UTF-8. In JSON, here and with --json, such a key is null and key_hex has its bytes in
    /// hexadecimal. If writing fails, an old file stays as it was.
    #[arg(short, long, value_name = "FILE", help_heading = "Answers")]
    out: Option<Target>,

    /// Count exactly as well, whatever memory it takes, and print the true errors.
    #[arg(long, help_heading = "Answers")]
    audit: bool,

    /// Print one JSON object. Its warnings are what the summary and standard error would say.
    #[arg(long, help_heading = "Answers")]
    json: bool,

    /// Print an answer as it goes: every 10s (or 500ms, 2m, 1h), or every 100000 items.
    #[arg(long, value_name = "PERIOD", help_heading = "Answers")]
    every: Option<Every>,
}

const EXAMPLES: &str = "\
Examples:
  zcat access.log.gz | ucl count --format field:1 --memory 64KB
  ucl count access.log.gz --format field:1 --query 10.0.0.1 --query 10.0.0.2
  ucl count sales.csv --format csv:product --weight amount --out sales.parquet
  ucl count capture.pcapng --format pcap:src --weight bytes --prefix 192.168.
  tail -f access.log | ucl count --format field:7 --every 10s
  ucl count access.log --format field:7 --interval 4000 --last 8 --changes
  ucl count access.log access.log.1 access.log.2.gz --format field:1 --threads 3
  ucl count monday.log --save log.ucl; ucl count --resume log.ucl tuesday.log --save log.ucl
  ucl count zipf:1.1 --audit";

impl Args {
    fn memory(&self) -> Bytes {
        self.memory.unwrap_or(Bytes(65_536))
    }

    fn mode(&self) -> Mode {
        self.mode.unwrap_or(Mode::Sketch(self.decoder.unwrap_or_default()))
    }

    /// A second key after one --query is an input that is not there.
    fn once_a_key(&self, error: anyhow::Error) -> anyhow::Error {
        if self.query.is_empty() {
            return error;
        }
        anyhow::anyhow!("{error} (if this is a key: --query takes one, so write --query before each)")
    }
}

pub fn key_bytes(text: &str) -> Result<KeyFormat, String> {
    match text.parse::<usize>() {
        _ if text == "any" => Ok(KeyFormat::Digest),
        Ok(bytes) if KeyFormat::FIXED_SIZES.contains(&bytes) => Ok(KeyFormat::Fixed(bytes as u8)),
        _ => Err("keys of 4, 8, 13 or 16 bytes sit in slots as they are; `any` stands for all others".to_owned()),
    }
}

fn epochs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number of epochs, at least 1".to_owned()),
        Ok(epochs) => Ok(epochs),
    }
}

fn items(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number of items, at least 1".to_owned()),
        Ok(items) => Ok(items),
    }
}

/// Each takes memory of its own, and thousands of them longer to start than to count.
const MOST_THREADS: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=MOST_THREADS) => Ok(threads),
        _ => Err(format!("give a number of threads, from 1 to {MOST_THREADS}")),
    }
}

fn counter_bits(text: &str) -> Result<CounterBits, String> {
    let bits: u32 = text.parse().map_err(|_| "a number of bits is wanted: 4, 8, 16 or 32".to_owned())?;
    CounterBits::new(bits).map_err(|error| error.to_string())
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let stored = args.resume.as_deref().map(|path| resume::open(path, args)).transpose()?;
    let (seed, input) = match &stored {
        None => (args.seed.unwrap_or_else(random_seed), args.input.clone()),
        Some(stored) => (stored.sketch.config().seed, stored.input(&args.input)),
    };
    let sources = input.sources()?;
    let mut options = input.read_options(&sources, seed.folded())?;
    let asked = Asked { top: args.top, keys: queried_keys(args, &options.format)?, prefixes: args.prefix.clone() };
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    }
    let planes = parallel::planes(args, &sources);
    let weighted = input.weight.is_some();
    let (mut sketches, budget, period) = match stored {
        Some(mut stored) => {
            let period = stored.period(args)?;
            (vec![stored.sketch], stored.budget, period)
        }
        None => {
            let period = Period::of(args, args.mode())?;
            let build = || {
                let mut sketch = build(args, period, &sources, &options.format, seed)?;
                resume::label(&mut sketch, args, &options.format);
                Ok(sketch)
            };
            ((0..planes).map(|_| build()).collect::<Result<Vec<_>, Usage>>()?, args.memory().0, period)
        }
    };
    let first = &sketches[0];
    options.weight_before = first.weight();
    options.key_bytes = match first.config().keys {
        KeyFormat::Fixed(bytes) => Some(bytes.into()),
        KeyFormat::Digest | KeyFormat::Code(_) => None,
    };
    check_files(&sources, &options).map_err(|error| args.once_a_key(error))?;
    check_outputs(args, &sources)?;

    let progress = Arc::new(Progress::default());
    let interrupt = Arc::new(AtomicBool::new(false));
    options.progress = Some(Arc::clone(&progress));
    options.interrupt = Some(Arc::clone(&interrupt));
    end_input_on_ctrl_c(&interrupt)?;

    let bar = Bar::new(&sources, options.limit, progress);
    let start = Instant::now();
    let format = &options.format;
    let scale = options.scale;
    let interrupt = &interrupt;
    let job = Job { args, asked: &asked, period, format, seed, budget, weighted, scale, planes, start, interrupt };
    if planes > 1 {
        bar.say("counting");
        let (mut counter, result) = parallel::count(sketches, &sources, &options, args.audit)?;
        return conclude(&mut counter, &job, result, &bar);
    }
    let sketch = sketches.remove(0);
    // The answers are the same either way.
    let sketch = if rayon::current_num_threads() > 1 { sketch.pipelined() } else { sketch };
    let counter = Counter::new(sketch, args.audit);
    let live = Mutex::new(Live::new(counter, args.every, args.save_every));
    let result = every::with_clock(args.every, &live, interrupt, &job, &bar, || {
        read(&sources, &options, &mut |batch| {
            let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
            bar.update();
            if live.take(batch, &job, &bar).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    let mut live = live.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = live.failure.take() {
        bar.clear();
        // Nobody reads the answers any more, or they could not be written; the state is still good.
        job.save(&mut live.counter)?;
        return Err(error);
    }
    conclude(&mut live.counter, &job, result, &bar)
}

/// Answers for what was read, whatever ended the reading; then fails if that was an error.
fn conclude(
    counter: &mut Counter,
    job: &Job<'_>,
    result: Result<ReadSummary, ReadError>,
    bar: &Bar,
) -> anyhow::Result<()> {
    let (summary, failure) = match result {
        Ok(mut summary) => {
            let cut_off = summary.truncated.take();
            (summary, cut_off)
        }
        Err(error) => {
            let message = format!("{error}{}", input::remedy(&error.kind));
            (*error.summary, Some(message))
        }
    };
    if let Some(message) = failure.as_ref().filter(|_| summary.items == 0) {
        bar.clear();
        anyhow::bail!("{message}");
    }
    let covered = format!("the answer covers the {} before", crate::show::counted(summary.items, "item"));
    let stopped = job.interrupt.load(Ordering::Relaxed).then(|| format!("stopped: {covered}"));
    let failure = failure.map(|message| format!("{message}; {covered}"));
    bar.say("decoding");
    let done = finish(counter, job, &summary, failure.as_deref().or(stopped.as_deref()), bar);
    bar.clear();
    input::notes(&summary);
    match (failure, stopped) {
        (Some(message), _) if done.is_ok() => anyhow::bail!(message),
        (Some(message), _) | (None, Some(message)) => eprintln!("ucl: {}", harmless(&message)),
        (None, None) => (),
    }
    done
}

/// What all answers of a run have in common.
struct Job<'a> {
    args: &'a Args,
    asked: &'a Asked,
    period: Option<Period>,
    format: &'a Format,
    seed: Seed,
    /// The memory of each data plane.
    budget: usize,
    weighted: bool,
    scale: Option<NonZeroU64>,
    /// Data planes that count.
    planes: usize,
    start: Instant,
    /// Whether a signal ended the input.
    interrupt: &'a AtomicBool,
}

impl Job<'_> {
    /// The answer of this moment, and the view that gave it.
    fn answer(&self, counter: &mut Counter, summary: &ReadSummary) -> anyhow::Result<(Answer, QueryView)> {
        // The control plane may still be at work.
        counter.sketch.with_control(|_| ());
        let counted = self.start.elapsed();
        let view = counter.sketch.query_view()?;
        let mut answer = Answer::new(&view, counter, self.format, self.asked);
        answer.over_time = self.period.map(|period| period.ask(&view, self.format));
        answer.memory.budget = Some(self.budget);
        answer.seed = self.seed;
        answer.expected_keys = resume::expected_keys(&counter.sketch, self.budget);
        answer.better_planned = resume::better_planned(&mut counter.sketch, self.budget, answer.keys_came());
        answer.planes = Some(self.planes).filter(|&planes| planes > 1);
        answer.weight = answer.weight.filter(|_| self.weighted);
        answer.scale = self.scale;
        (answer.skipped, answer.no_ip) = (Skipped::of(summary), summary.no_ip);
        answer.zero_weight = summary.zero_weight;
        answer.counting = counted.as_secs_f64();
        answer.seconds = self.start.elapsed().as_secs_f64();
        answer.peak_resident_bytes = ucl_lab::process::peak_resident_bytes();
        answer.warnings = warnings::all(&answer);
        Ok((answer, view))
    }

    /// Saves, if that was asked for.
    fn save(&self, counter: &mut Counter) -> anyhow::Result<()> {
        self.args.save.as_ref().map_or(Ok(()), |path| Ok(counter.sketch.save(path)?))
    }
}

/// Answers for the whole input, in every way that was asked for.
/// `early` tells why that is not all of it.
fn finish(
    counter: &mut Counter,
    job: &Job<'_>,
    summary: &ReadSummary,
    early: Option<&str>,
    bar: &Bar,
) -> anyhow::Result<()> {
    // Before a training that a longer stream would not have had; and the answer is given even if
    // this fails.
    let saved = job.save(counter);
    answer(counter, job, summary, early, bar)?;
    saved
}

fn answer(
    counter: &mut Counter,
    job: &Job<'_>,
    summary: &ReadSummary,
    early: Option<&str>,
    bar: &Bar,
) -> anyhow::Result<()> {
    let args = job.args;
    crate::stored::train_if_not_ready(&mut counter.sketch)?;
    if args.all {
        let view = counter.sketch.query_view()?;
        bar.clear();
        export::print(&view, job.format)?;
        if let Some(told) = Skipped::of(summary).told() {
            eprintln!("ucl: skipped {told}");
        }
        if summary.zero_weight > 0 {
            eprintln!("ucl: note: {} of weight 0, not counted", crate::show::counted(summary.zero_weight, "record"));
        }
        return args.out.as_ref().map_or(Ok(()), |target| target.write(&view, job.format));
    }
    let (mut answer, view) = job.answer(counter, summary)?;
    answer.self_check = view.self_check()?;
    answer.warnings.extend(early.map(str::to_owned));
    let text = if args.json { serde_json::to_string(&answer)? + "\n" } else { text::whole(&answer) };
    if let Some(target) = &args.out {
        target.write(&view, job.format)?;
    }
    // What is printed would follow the bar on its line.
    bar.clear();
    crate::show::print(text)
}

fn build(
    args: &Args,
    period: Option<Period>,
    sources: &[Source],
    format: &Format,
    seed: Seed,
) -> Result<UclSketch, Usage> {
    let mut builder = UclSketch::builder().memory_bytes(args.memory().0).mode(args.mode()).seed(seed.value());
    if let Some(base) = args.base {
        builder = builder.base(base);
    }
    if let Some(heavy) = args.heavy {
        builder = builder.heavy(heavy);
    }
    builder = builder.measure_uplink(args.mode() == Mode::Exact);
    if let KeyFormat::Fixed(bytes) = args.key_bytes.unwrap_or_else(|| deduced_keys(sources, format)) {
        builder = builder.key_bytes(bytes.into());
    }
    if let Some(keys) = args.expected_keys {
        builder = builder.expected_keys(keys);
    }
    if let Some(items) = args.interval {
        builder = builder.interval(items);
    }
    if let Some(bits) = args.counter_bits {
        builder = builder.counter_bits(bits);
    }
    if let Some(rule) = args.report_rule {
        builder = builder.report_rule(rule);
    }
    if let Some(period) = period {
        builder = builder.retain_epochs(period.epochs(args));
    }
    builder.build().map_err(Usage::because)
}

/// The size of the keys, where the input guarantees it. A capture may hold IPv6 and a `fimi` file
/// text at any point, and a sketch cannot change the size of its slots.
fn deduced_keys(sources: &[Source], format: &Format) -> KeyFormat {
    let guaranteed = matches!(format, Format::Records(_)) || sources.iter().all(|source| source.own_format().is_some());
    let bytes = format.key_bytes_hint().filter(|_| guaranteed);
    bytes.and_then(|bytes| KeyFormat::for_key_bytes(bytes).ok()).unwrap_or(KeyFormat::Digest)
}

/// The keys of `--query` and `--query-file`, checked before anything is read.
fn queried_keys(args: &Args, format: &Format) -> anyhow::Result<Vec<Vec<u8>>> {
    let parse = |key: &OsString| format.parse_key_bytes(key.as_encoded_bytes()).map_err(Usage::because);
    let mut keys = args.query.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.query_file {
        let shown = path.display().to_string();
        let file = std::fs::File::open(path).map_err(|error| anyhow::anyhow!("cannot open {shown}: {error}"))?;
        each_line(std::io::BufReader::new(file), &shown, format, |key| {
            keys.push(key);
            Ok(())
        })?;
    }
    Ok(keys)
}

/// 128 bits from the system's randomness, which keys the standard library's hash maps.
fn random_seed() -> Seed {
    let random = RandomState::new();
    let half = |number: u8| u128::from(random.hash_one(number));
    (half(0) | half(1) << 64).into()
}

/// Fails now if a file cannot be written, rather than after all has been counted; or if it would
/// replace what is read, or the other one.
fn check_outputs(args: &Args, sources: &[Source]) -> anyhow::Result<()> {
    let out = args.out.as_ref().map(Target::path);
    let read: Vec<&Path> = sources
        .iter()
        .filter_map(|source| if let Source::Path(path) = source { Some(&**path) } else { None })
        .collect();
    for output in out.into_iter().chain(args.save.as_deref()) {
        if read.iter().any(|input| is_same_file(input, output)) {
            return Err(Usage(format!("{} is an input, and would be overwritten", output.display())).into());
        }
    }
    if let (Some(out), Some(save)) = (out, &args.save)
        && (out == save || is_same_file(out, save))
    {
        return Err(Usage(format!("--out and --save are both {}", out.display())).into());
    }
    args.out.as_ref().map_or(Ok(()), Target::check)?;
    args.save.as_deref().map_or(Ok(()), resume::check_target)
}

/// Whether both are there, and one. (Terminals, pipes and the like can be read and written.)
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.is_file() && std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}

/// The first Ctrl-C, or request to end, ends the input; the second the program.
fn end_input_on_ctrl_c(interrupt: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let interrupt = Arc::clone(interrupt);
    ctrlc::set_handler(move || {
        if interrupt.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })?;
    Ok(())
}
