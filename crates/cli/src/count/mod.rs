//! `ucl count`: per-key counts of anything.

pub mod answer;
mod counter;
mod every;
mod export;
mod over_time;
mod parallel;
pub mod resume;
pub mod text;
pub mod values;
mod warnings;

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ucl_sketch::plan::WEIGHTED_COUNT_BITS;
use ucl_sketch::{
    Base, Builder, Bytes, CounterBits, DecoderKind, Epochs, Fallback, HeavyKind, KeyFormat, Mode, QueryView,
    ReportRule, Seed, UclSketch, random_seed,
};
use ucl_streams::{Format, Progress, ReadError, ReadSummary, Source, read};

use crate::fail::{Usage, harmless, is_closed_pipe, tell};
use crate::input::{self, InputArgs, check_files};
use crate::key::each_line;
use crate::progress::Bar;
use crate::show::counted;
use answer::{Answer, Asked};
use counter::{Counter, Skipped};
use every::{Every, Live, Periods};
use export::Target;
use over_time::Period;

/// Count how often each key occurs.
///
/// Prints the most frequent keys and a summary. Each count comes with the range in which the true
/// count is guaranteed to lie. The sketch, which would run on the device that sees the stream, uses
/// --memory bytes. The decoder, which would run on a server, uses more, and the summary says how
/// much.
///
/// Keys may have any length: the sketch keeps them as 64-bit codes, or as 16-byte digests in the
/// modes that estimate. Keys of 4, 8, 13 or 16 bytes can be kept as they are, which saves memory.
/// This is automatic for records:4, :8, :13, :16 and for generators; for others, --key-bytes
/// promises that all keys have this size (numbers in fimi: 4, IPv4 five-tuples: 13), and a key of
/// another size is then a bad record. A key whose name never reached the decoder is printed as
/// digest:… or code:… .
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Memory of the sketch, on the device that sees the stream [default: 64KB].
    #[arg(short, long, value_name = "SIZE", help_heading = "Sketch")]
    memory: Option<Bytes>,

    /// Counting mode: exact, budget, or one of the decoders of a sketch: delta, em, learned,
    /// refined, cm, lsmr, lsqr, omp, map [default: exact].
    ///
    /// exact sends every key that leaves the table up the link, and every count is exact. budget
    /// does the same up to --uplink, and absorbs the rest in a sketch. The others estimate, and can
    /// send less. --base, --heavy, --counter-bits and --report-rule are settings of a sketch: with
    /// one of them, the default is delta.
    #[arg(long, value_name = "MODE", conflicts_with = "decoder", help_heading = "Sketch")]
    mode: Option<Mode>,

    /// Bytes per item that may go up the link, as 0.1. Sets mode budget [default: no limit].
    ///
    /// Counts are exact while that is enough. What is beyond it goes into a sketch: the counts of
    /// those keys are estimates with ranges, and keys that were never sent are unknown.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes_per_item, allow_negative_numbers = true, help_heading = "Sketch")]
    uplink: Option<f64>,

    /// Recovery algorithm: delta, em, learned, refined, cm, lsmr, lsqr, omp or map. The same as
    /// --mode with this name.
    ///
    /// delta decodes every epoch on its own and has the smallest errors. em decodes once, at the
    /// end. learned is the paper's network, which trains itself and is slow. refined runs em on the
    /// network's output. cm, lsmr, lsqr, omp and map are for comparison.
    #[arg(short, long, value_name = "NAME", help_heading = "Sketch")]
    decoder: Option<DecoderKind>,

    /// Let the network answer even where em is judged to be better. Only for --mode learned.
    #[arg(long, help_heading = "Sketch")]
    insist: bool,

    /// Counters of the sketch: count-min, count-sketch (signed) or flowradar (a single array)
    /// [default: count-min].
    ///
    /// delta, em, refined and map cannot decode count-sketch; map cannot decode flowradar.
    #[arg(long, value_name = "SKETCH", help_heading = "Sketch")]
    base: Option<Base>,

    /// Table of the most frequent keys: voting (the paper's), augmented (with exchange) or elastic
    /// (buckets) [default: voting].
    #[arg(long, value_name = "PART", help_heading = "Sketch")]
    heavy: Option<HeavyKind>,

    /// Size of every key in bytes: 4, 8, 13, 16 or `any` [default: derived from the input].
    #[arg(long, value_name = "BYTES", value_parser = values::key_bytes, help_heading = "Sketch")]
    key_bytes: Option<KeyFormat>,

    /// Bits of the codes that stand for keys in mode exact, 8 to 64 [default: 64, and none for keys
    /// of one size].
    ///
    /// Fewer bits make more slots and save uplink. They also make it likelier that two keys have
    /// the same code and are counted as one: with N other keys, N in 2 to the power of these bits.
    #[arg(long, value_name = "BITS", value_parser = values::code_bits, conflicts_with = "key_bytes", help_heading = "Sketch")]
    code_bits: Option<u8>,

    /// Number of distinct keys to plan for [default: a quarter of the bytes of --memory].
    #[arg(long, value_name = "N", help_heading = "Sketch")]
    expected_keys: Option<u64>,

    /// Items per epoch [default: chosen while counting for delta, 16000 for --last, --changes and
    /// --keep, 1000 for learned and refined, none for the others].
    ///
    /// After each epoch the device sends what it holds: the counts of its table, or the counters.
    /// delta ends an epoch before it has more keys than its counters can tell apart.
    #[arg(long, value_name = "ITEMS", value_parser = values::items, help_heading = "Sketch")]
    interval: Option<u64>,

    /// End an epoch after this time as well, such as 10s, 2m or 1h: for live input.
    ///
    /// With --last 6 and --cut-every 10s, the answer is about the last minute. An epoch still ends
    /// after --interval items, or 16000.
    #[arg(long, value_name = "TIME", value_parser = every::time, help_heading = "Sketch")]
    cut_every: Option<Duration>,

    /// Bits per counter: 4, 8, 16 or 32 [default: chosen for the decoder and --memory].
    #[arg(long, value_name = "BITS", value_parser = values::counter_bits, help_heading = "Sketch")]
    counter_bits: Option<CounterBits>,

    /// Keys that the sketch sends to the decoder: `paper` (every key that leaves the heavy part),
    /// `new` (keys that the Bloom filter does not know), `refresh` (also some known keys again),
    /// `rotate` (also all keys again from time to time) or `generations` (also keys that have not
    /// occurred for a while) [default: generations for delta, new for em, paper for the others].
    #[arg(long, value_name = "RULE", help_heading = "Sketch")]
    report_rule: Option<ReportRule>,

    /// Seed of the hashes, the network and the generators [default: random].
    ///
    /// A number of up to 128 bits, in decimal or as 0x and hexadecimal digits. A run with the same
    /// seed gives the same answers. Whoever knows the seed can choose keys that spoil the estimates
    /// (never the guaranteed ranges).
    #[arg(long, value_name = "SEED", help_heading = "Sketch")]
    seed: Option<Seed>,

    /// Threads that decode [default: one per core]; with several inputs, also threads that count.
    ///
    /// Each thread that counts has a sketch of the full --memory, as if it were a device of its
    /// own, and takes every N-th input. Their counts are merged at the end. In JSON, planes is the
    /// number of sketches, and memory that of each. With --every, --limit, --save-every or
    /// --resume, one thread counts.
    #[arg(long, value_name = "N", value_parser = values::threads, help_heading = "Sketch")]
    threads: Option<usize>,

    /// Continue counting from the state in this file.
    ///
    /// The sketch, the format and the weight are those of the state. Options that are given here
    /// must agree with it. The result is the same as if there had been no stop.
    #[arg(long, value_name = "STATE", conflicts_with = "audit", help_heading = "State")]
    resume: Option<PathBuf>,

    /// Save the state to this file at the end, for --resume, query, top, inspect and merge.
    ///
    /// An old file is replaced only when the new one is complete.
    #[arg(long, value_name = "STATE", help_heading = "State")]
    save: Option<PathBuf>,

    /// Save the state after every N items as well.
    #[arg(long, value_name = "N", requires = "save", help_heading = "State")]
    save_every: Option<NonZeroU64>,

    /// Number of most frequent keys to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, help_heading = "Answers")]
    top: usize,

    /// Show the count of this key, written as it is printed; can be repeated.
    #[arg(short, long, value_name = "KEY", help_heading = "Answers")]
    query: Vec<OsString>,

    /// Show the counts of the keys in this file, one per line.
    ///
    /// The keys need not be UTF-8.
    #[arg(long, value_name = "FILE", help_heading = "Answers")]
    query_file: Option<PathBuf>,

    /// Show the sum of all known keys that start with PREFIX when printed; can be repeated.
    ///
    /// Its upper bound also covers keys that are not known, or whose name is not.
    #[arg(long, value_name = "PREFIX", help_heading = "Answers")]
    prefix: Vec<String>,

    /// Show the most frequent keys of the last N epochs as well.
    ///
    /// An epoch has --interval items, or 16000. The open epoch counts as one.
    #[arg(long, value_name = "N", value_parser = values::epochs, help_heading = "Answers")]
    last: Option<usize>,

    /// Show the keys that changed most: the last epochs (as many as --last, or 16) compared with as
    /// many before.
    #[arg(long, help_heading = "Answers")]
    changes: bool,

    /// Keep this many epochs for --last and --changes [default: as many as they need].
    ///
    /// An epoch takes 8 bytes of decoder memory for each key that occurs in it. With --resume, it
    /// must have been given when counting began.
    #[arg(long, value_name = "N", value_parser = values::epochs, help_heading = "Answers")]
    keep: Option<usize>,

    /// Print every known key as CSV, and nothing else. The same as --out -.
    #[arg(long, conflicts_with_all = ["json", "every", "audit"], help_heading = "Answers")]
    all: bool,

    /// Write every known key to this file: .csv, .jsonl or .parquet. `-` prints CSV.
    ///
    /// `-.jsonl` and `-.parquet` print as well. In a file, keys are written without the escapes of
    /// the screen (hex:…). CSV has their bytes, quoted where needed. Parquet has a column of text,
    /// or of binary if a key is not valid UTF-8. In JSON, here and with --json, such a key is null,
    /// and key_hex has its bytes in hexadecimal. If writing fails, an old file stays as it was.
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true, help_heading = "Answers")]
    out: Option<Target>,

    /// Count exactly as well, in as much memory as it takes, and show the true errors.
    #[arg(long, help_heading = "Answers")]
    audit: bool,

    /// Print one JSON object. Its warnings are those of the summary and of standard error.
    #[arg(long, help_heading = "Answers")]
    json: bool,

    /// Show the whole summary: entropy, histogram of counts, memory by part, times.
    #[arg(short, long, help_heading = "Answers")]
    verbose: bool,

    /// Print an answer while counting: every 10s (or 500ms, 2m, 1h), or every 100000 items.
    #[arg(long, value_name = "PERIOD", help_heading = "Answers")]
    every: Option<Every>,
}

const EXAMPLES: &str = "\
Examples:
  zcat access.log.gz | ucl count --format field:1 --memory 64KB
  ucl count access.log.gz --format field:1 --query 10.0.0.1 --query 10.0.0.2
  ucl count sales.csv --format csv:product --weight amount --out sales.parquet
  ucl count access.log --format combined:path,status --top 10
  ucl count capture.pcapng --format pcap:src/24 --weight bytes
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
        self.builder().chosen_mode()
    }

    /// Returns a builder with the options of the sketch; the mode follows from them.
    fn builder(&self) -> Builder {
        let mut builder = UclSketch::builder();
        if let Some(mode) = self.mode.or(self.decoder.map(Mode::Sketch)) {
            builder = builder.mode(mode);
        }
        if let Some(base) = self.base {
            builder = builder.base(base);
        }
        if let Some(heavy) = self.heavy {
            builder = builder.heavy(heavy);
        }
        if let Some(bits) = self.counter_bits {
            builder = builder.counter_bits(bits);
        }
        if let Some(rule) = self.report_rule {
            builder = builder.report_rule(rule);
        }
        if let Some(bits) = self.code_bits {
            builder = builder.code_bits(bits);
        }
        if let Some(bytes) = self.uplink {
            builder = builder.uplink_per_item(bytes);
        }
        if self.insist {
            builder = builder.fallback(Fallback::WhenUntrained);
        }
        builder
    }

    /// Returns the place where every known key is printed, if nothing else is.
    fn printed(&self) -> Option<Target> {
        let to_stdout = self.out.clone().filter(|target| target.path().is_none());
        to_stdout.or_else(|| self.all.then_some(Target::STDOUT))
    }

    /// Refuses two things on standard output.
    fn check_stdout(&self) -> Result<(), Usage> {
        let prints = self.out.as_ref().is_some_and(|target| target.path().is_none());
        let other =
            [(self.json, "--json"), (self.all, "--all"), (self.audit, "--audit"), (self.every.is_some(), "--every")];
        match other.into_iter().find(|(given, _)| prints && *given) {
            None => Ok(()),
            Some((_, option)) => {
                Err(Usage(format!("--out - and {option} both print to standard output: give one of them")))
            }
        }
    }

    /// A second key after one --query is an input that is not there.
    fn once_a_key(&self, error: anyhow::Error) -> anyhow::Error {
        if self.query.is_empty() {
            return error;
        }
        anyhow::anyhow!("{error} (if this is a key, write --query before it: --query takes one key)")
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    args.check_stdout()?;
    if args.insist && args.resume.is_none() && args.mode() != Mode::Sketch(DecoderKind::Learned) {
        return Err(Usage(
            "--insist is for --mode learned: no other mode has a network that may be overruled".to_owned(),
        )
        .into());
    }
    let stored = args.resume.as_deref().map(|path| resume::open(path, args)).transpose()?;
    let (seed, input) = match &stored {
        None => (args.seed.unwrap_or_else(|| random_seed().into()), args.input.clone()),
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
    export::check_outputs(args.out.as_ref(), args.save.as_deref(), &sources)?;

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
    let run = Run { args, asked: &asked, period, format, seed, budget, weighted, scale, planes, start, interrupt };
    if planes > 1 {
        bar.say("counting");
        let (mut counter, result) = parallel::count(sketches, &sources, &options, args.audit)?;
        return conclude(&mut counter, &run, result, &bar);
    }
    let sketch = sketches.remove(0);
    // The answers are the same either way.
    let sketch = if rayon::current_num_threads() > 1 { sketch.pipelined() } else { sketch };
    let counter = Counter::new(sketch, args.audit);
    let live = Mutex::new(Live::new(counter, args.every, args.save_every));
    let periods = Periods::new(args.every, args.cut_every);
    let result = every::with_clock(periods, &live, interrupt, &run, &bar, || {
        read(&sources, &options, &mut |batch| {
            let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
            bar.update();
            if live.take(batch, &run, &bar).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    let mut live = live.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = live.failure.take() {
        bar.clear();
        // Nobody reads the answers any more, or they could not be written; the state is still good.
        run.save(&mut live.counter)?;
        return Err(error);
    }
    conclude(&mut live.counter, &run, result, &bar)
}

/// Answers for what was read, whatever ended the reading; then fails if that was an error.
fn conclude(
    counter: &mut Counter,
    run: &Run<'_>,
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
    let covered = format!("the answer covers the {} before", counted(summary.items, "item"));
    let stopped = run.interrupt.load(Ordering::Relaxed).then(|| format!("stopped: {covered}"));
    let failure = failure.map(|message| format!("{message}; {covered}"));
    bar.say("decoding");
    let done = finish(counter, run, &summary, failure.as_deref().or(stopped.as_deref()), bar);
    bar.clear();
    input::notes(&summary);
    let unread = done.as_ref().is_err_and(is_closed_pipe);
    match (failure, stopped) {
        (Some(message), _) if done.is_ok() || unread => anyhow::bail!(message),
        (Some(message), _) | (None, Some(message)) => tell(harmless(&message)),
        (None, None) => (),
    }
    done
}

/// Data that all answers of a run have in common.
struct Run<'a> {
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
    /// True if a signal ended the input.
    interrupt: &'a AtomicBool,
}

impl Run<'_> {
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
        answer.interval = counter.sketch.interval();
        answer.by_load = counter.sketch.epochs() == Epochs::ByLoad;
        answer.skipped = Skipped::of(summary);
        answer.no_ip = summary.no_ip;
        answer.no_key = summary.no_key;
        answer.zero_weight = summary.zero_weight;
        answer.counting = counted.as_secs_f64();
        answer.seconds = self.start.elapsed().as_secs_f64();
        answer.peak_resident_bytes = ucl_streams::process::peak_resident_bytes();
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
    run: &Run<'_>,
    summary: &ReadSummary,
    early: Option<&str>,
    bar: &Bar,
) -> anyhow::Result<()> {
    // Before a training that a longer stream would not have had; and the answer is given even if
    // this fails.
    let saved = run.save(counter);
    let answered = answer(counter, run, summary, early, bar);
    saved.and(answered)
}

fn answer(
    counter: &mut Counter,
    run: &Run<'_>,
    summary: &ReadSummary,
    early: Option<&str>,
    bar: &Bar,
) -> anyhow::Result<()> {
    let args = run.args;
    crate::stored::train_if_not_ready(&mut counter.sketch)?;
    let file = args.out.as_ref().filter(|target| target.path().is_some());
    if let Some(target) = args.printed() {
        let view = counter.sketch.query_view()?;
        // Before anything is printed: whoever reads that may stop (`| head`).
        let filed = file.map_or(Ok(()), |target| target.write(&view, run.format));
        bar.clear();
        let printed = target.write(&view, run.format);
        tell_left_out(summary);
        return filed.and(printed);
    }
    let (mut answer, view) = run.answer(counter, summary)?;
    answer.self_check = view.self_check()?;
    answer.warnings.extend(early.map(str::to_owned));
    let text = if args.json { serde_json::to_string(&answer)? + "\n" } else { text::whole(&answer, args.verbose) };
    let filed = file.map_or(Ok(()), |target| target.write(&view, run.format));
    // What is printed would follow the bar on its line.
    bar.clear();
    filed.and(crate::show::print(text))
}

/// Tells which records are not in the keys that are printed.
fn tell_left_out(summary: &ReadSummary) {
    if let Some(told) = Skipped::of(summary).told() {
        tell(format_args!("skipped {told}"));
    }
    if summary.zero_weight > 0 {
        tell(format_args!("note: {} of weight 0, not counted", counted(summary.zero_weight, "record")));
    }
    if summary.no_key > 0 {
        tell(format_args!("note: {} without a key, not counted", counted(summary.no_key, "record")));
    }
}

fn build(
    args: &Args,
    period: Option<Period>,
    sources: &[Source],
    format: &Format,
    seed: Seed,
) -> Result<UclSketch, Usage> {
    let mut builder = args.builder().memory_bytes(args.memory().0).seed(seed.value());
    let mirrored = args.mode().is_mirrored();
    builder = builder.measure_uplink(mirrored);
    let keys = match (args.key_bytes, args.code_bits) {
        (Some(keys), _) => keys,
        (None, Some(_)) => KeyFormat::Digest,
        (None, None) => deduced_keys(sources, format),
    };
    if let KeyFormat::Fixed(bytes) = keys {
        builder = builder.key_bytes(bytes.into());
    }
    if args.input.weight.is_some() {
        builder = builder.count_bits(WEIGHTED_COUNT_BITS);
    }
    if let Some(keys) = args.expected_keys {
        builder = builder.expected_keys(keys);
    }
    if args.interval.is_some() || (mirrored && args.cut_every.is_some()) {
        // Epochs that end by the clock need no other end.
        builder = builder.interval(args.interval);
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
    let Some(path) = &args.query_file else { return Ok(keys) };
    let shown = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| anyhow::anyhow!("cannot open {shown}: {error}"))?;
    let push = |key| {
        keys.push(key);
        Ok(())
    };
    each_line(std::io::BufReader::new(file), &shown, format, push)?;
    Ok(keys)
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
