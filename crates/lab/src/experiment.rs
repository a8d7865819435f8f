//! Runs every combination of methods, budgets and seeds on a stream in memory.
//!
//! Every method runs at least twice. The *accuracy* pass has its uplink encoded and is asked for
//! every key of the stream; the *speed* passes insert the stream into fresh instances that encode
//! and decode nothing, and the fastest counts (other work on the machine only ever slows one down).
//! Queries are timed on the items of the stream, in order, as in the paper: frequent keys are asked
//! for often.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ucl_sketch::KeyFormat;

use crate::recording::Recording;
use crate::registry::Method;
use crate::row::Row;
use crate::system::{Options, Pass, Request, System, SystemError};
use ucl_streams::metrics::ErrorMeter;

/// Speed passes end after so many, or after [`SPEED_TIME`].
const SPEED_PASSES: usize = 5;
const SPEED_TIME: Duration = Duration::from_millis(500);
/// Queries that are timed, at most.
const QUERIES: usize = 1_000_000;
/// The same, of queries that run the network.
const BUCKET_QUERIES: usize = 20_000;

/// Methods, budgets and seeds to measure.
///
/// ```
/// use ucl_lab::{Experiment, Options, Recording, MethodRegistry};
/// use ucl_streams::ReadOptions;
///
/// let registry = MethodRegistry::standard();
/// let stream = Recording::read(&["zipf:1.1:20000:3000".parse()?], &ReadOptions::default())?;
/// let experiment = Experiment {
///     methods: registry.select(["ucl-em", "cm"])?,
///     budgets: vec![16 << 10],
///     seeds: vec![1],
///     options: Options::default(),
/// };
/// let rows = experiment.run(&stream, |_| ());
/// let aae: Vec<f64> = rows.iter().filter_map(|row| row.aae).collect();
/// assert!(aae[0] < aae[1] / 10.0, "solving the equations pays");
/// assert!(rows.iter().all(|row| row.bound_violations == Some(0)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Experiment<'a> {
    /// Methods to measure.
    pub methods: Vec<&'a Method>,
    /// Budgets in bytes. A shape given in [`Options::shape`] replaces them.
    pub budgets: Vec<usize>,
    /// Seeds of the systems. The stream is the same for all.
    pub seeds: Vec<u64>,
    /// Settings for all methods.
    pub options: Options,
}

/// Result of one run: its figures, and the system for further queries.
pub struct Measured {
    /// Figures of the run.
    pub row: Row,
    /// System after the end of the stream; `None` if it failed.
    pub system: Option<Box<dyn System>>,
}

/// One run of one method.
#[derive(Clone, Copy, Debug)]
pub struct MethodRun<'a> {
    /// Method to run.
    pub method: &'a Method,
    /// Budget in bytes.
    pub budget: usize,
    /// Seed of the system.
    pub seed: u64,
}

impl<'a> Experiment<'a> {
    /// Returns all runs for a stream with keys of this format, ordered by budget, method and seed.
    pub fn jobs(&self, keys: KeyFormat) -> Vec<MethodRun<'a>> {
        let budgets = match self.options.shape {
            Some(shape) => vec![shape.memory(keys).total()],
            None => self.budgets.clone(),
        };
        let mut jobs = Vec::new();
        for &budget in &budgets {
            for &method in &self.methods {
                jobs.extend(self.seeds.iter().map(|&seed| MethodRun { method, budget, seed }));
            }
        }
        jobs
    }

    /// Runs all methods. `each` receives every row when it is complete.
    pub fn run(&self, stream: &Recording, mut each: impl FnMut(&Row)) -> Vec<Row> {
        let run = |job: MethodRun<'_>| {
            let row = measure(job.method, stream, job.budget, job.seed, &self.options).row;
            each(&row);
            row
        };
        self.jobs(stream.keys()).into_iter().map(run).collect()
    }
}

/// Runs one method once. A method that fails gives a row with the error.
pub fn measure(method: &Method, stream: &Recording, budget: usize, seed: u64, options: &Options) -> Measured {
    let request = Request { budget, keys: stream.keys(), seed, pass: Pass::Speed, stream, options };
    let mut measured = measure_accuracy(method, stream, budget, seed, options);
    if let Some(system) = &measured.system {
        measured.row.query_mops = query_speed(system.as_ref(), stream);
        measured.row.bucket_query_mops = bucket_query_speed(system.as_ref(), stream);
        match insert_speed(method, stream, request) {
            Ok(mops) => measured.row.insert_mops = Some(mops),
            Err(error) => {
                measured.row.error = Some(error.to_string());
                measured.system = None;
            }
        }
    }
    measured
}

/// Runs one method once without measuring speeds, in a fraction of the time.
///
/// ```
/// use ucl_lab::{Options, Recording, MethodRegistry, experiment::measure_accuracy};
/// use ucl_streams::ReadOptions;
///
/// let stream = Recording::read(&["zipf:1.1:5000:1000".parse()?], &ReadOptions::default())?;
/// let registry = MethodRegistry::standard();
/// let row = measure_accuracy(registry.find("cm")?, &stream, 8192, 1, &Options::default()).row;
/// assert!(row.aae.is_some() && row.insert_mops.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn measure_accuracy(method: &Method, stream: &Recording, budget: usize, seed: u64, options: &Options) -> Measured {
    let mut row = Row {
        method: method.name.to_owned(),
        input: stream.name().to_owned(),
        items: stream.items(),
        keys: stream.truth().distinct() as u64,
        memory_budget: budget,
        exact_map_bytes: stream.truth().exact_map_bytes(),
        seed,
        ..Row::default()
    };
    let request = Request { budget, keys: stream.keys(), seed, pass: Pass::Accuracy, stream, options };
    match accuracy(method, stream, request, &mut row) {
        Ok(system) => Measured { row, system: Some(system) },
        Err(error) => {
            row.error = Some(error.to_string());
            Measured { row, system: None }
        }
    }
}

fn accuracy(
    method: &Method,
    stream: &Recording,
    request: Request<'_>,
    row: &mut Row,
) -> Result<Box<dyn System>, SystemError> {
    let mut system = (method.build)(&request)?;
    system.insert(stream.batch())?;
    system.finish()?;

    let memory = system.memory();
    row.memory_used = Some(memory.total());
    for (part, bytes) in memory.parts() {
        *row.memory_parts.entry((*part).to_owned()).or_default() += bytes;
    }
    judge(system.as_ref(), stream, row);

    let extras = system.extras();
    row.train_seconds = extras.train_seconds;
    row.train_epochs = extras.train_epochs;
    row.restarts = extras.restarts;
    row.collapsed = extras.collapsed;
    row.decode_ms = extras.decode_ms;
    row.self_check = extras.self_check;
    row.uplink_bytes = extras.uplink_bytes;
    row.uplink_bytes_per_item = extras.uplink_bytes.map(|bytes| bytes as f64 / stream.items().max(1) as f64);
    row.control_bytes = extras.control_bytes;
    row.snapshots = extras.snapshots;
    row.interval = extras.interval;
    row.rule = extras.rule.map(str::to_owned);
    row.base = extras.base.map(str::to_owned);
    row.heavy = extras.heavy.map(str::to_owned);
    row.counter_bits = extras.shape.get("counter_bits").copied();
    row.shape = extras.shape.iter().map(|(&name, &size)| (name.to_owned(), size)).collect();
    row.answered_by = extras.answered_by;
    Ok(system)
}

/// Holds the answers for all keys of the stream against the truth.
fn judge(system: &dyn System, stream: &Recording, row: &mut Row) {
    let mut meter = ErrorMeter::default();
    let mut unbounded = None::<ErrorMeter>;
    let mut bounded = 0u64;
    let mut violations = 0u64;
    let mut width = 0u128;
    let mut asked = 0u64;
    let mut known = 0u64;
    for (key, truth) in stream.truth().iter() {
        let answer = system.estimate(key);
        meter.add(truth, answer.estimate);
        if let Some(estimate) = system.unbounded(key) {
            unbounded.get_or_insert_default().add(truth, estimate);
        }
        if let Some((lower, upper)) = answer.bounds {
            bounded += 1;
            violations += u64::from(!(lower..=upper).contains(&truth));
            width += u128::from(upper.saturating_sub(lower));
        }
        if let Some(knows) = system.knows(key) {
            asked += 1;
            known += u64::from(knows);
        }
    }
    let errors = meter.errors();
    row.aae = Some(errors.aae);
    row.are = Some(errors.are);
    row.wmrd = Some(errors.wmrd);
    row.entropy_error = Some(errors.entropy_error);
    row.entropy_error_all_keys = Some(errors.entropy_error_all_keys);
    row.unbounded = unbounded.map(|meter| meter.errors().into());
    row.bound_violations = (bounded > 0).then_some(violations);
    row.bound_width = (bounded > 0).then(|| width as f64 / bounded as f64);
    row.coverage = (asked > 0).then(|| known as f64 / asked as f64);
}

fn query_speed(system: &dyn System, stream: &Recording) -> Option<f64> {
    let start = Instant::now();
    let mut asked = 0u64;
    for key in stream.batch().keys().take(QUERIES) {
        black_box(system.estimate(key).estimate);
        asked += 1;
    }
    mops(asked, start.elapsed())
}

fn bucket_query_speed(system: &dyn System, stream: &Recording) -> Option<f64> {
    let asked = stream.items().min(BUCKET_QUERIES as u64);
    let start = Instant::now();
    black_box(system.ask_network(&mut stream.batch().keys().take(BUCKET_QUERIES))?);
    mops(asked, start.elapsed())
}

fn insert_speed(method: &Method, stream: &Recording, request: Request<'_>) -> Result<f64, SystemError> {
    let mut best = Duration::MAX;
    let mut spent = Duration::ZERO;
    for _ in 0..SPEED_PASSES {
        let mut system = (method.build)(&request)?;
        let start = Instant::now();
        system.insert(stream.batch())?;
        let elapsed = start.elapsed();
        black_box(system.memory());
        best = best.min(elapsed);
        spent += elapsed;
        if spent > SPEED_TIME {
            break;
        }
    }
    Ok(mops(stream.items(), best).unwrap_or(0.0))
}

fn mops(operations: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (operations > 0 && seconds > 0.0).then(|| operations as f64 / seconds / 1e6)
}
