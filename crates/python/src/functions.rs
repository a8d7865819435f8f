//! The functions of the module: what a budget buys, what a mode costs, and files.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, LargeStringArray, RecordBatch, UInt64Array};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use ucl_lab::experiment::measure_accuracy;
use ucl_lab::predict::{Candidate, Scenario};
use ucl_lab::{MethodRegistry, Recording, Row};
use ucl_sketch::{Epochs, KeyFormat, UclSketch};
use ucl_streams::{BatchBuf, Format, OnError, ReadOptions, Source, Wanted, expand, read};

use crate::answers::{batch, floats};
use crate::column::Column;
use crate::error::Error;
use crate::interrupt;
use crate::key_type::KeyType;
use crate::options::{self, Options};
use crate::rows::{Reading, Rows};
use crate::sketch::{DEFAULT_MEMORY, Inner, Sketch};
use crate::table::Table;

/// The modes that are compared unless told.
const MODES: [&str; 3] = ["exact", "delta", "em"];

/// Predicts error and uplink of a memory budget for each mode, on a made-up stream.
///
/// memory: a size such as "64KB" (the default), or a number of bytes.
/// keys: type of the keys, such as "uint32"; by default keys of any length.
/// expected_keys, items: size of the stream.
/// skew: exponent of its Zipf distribution, from 0 to 4.
/// modes: modes to compare; by default "exact", "delta" and "em".
#[pyfunction]
#[pyo3(signature = (memory = None, *, keys = None, expected_keys = None, items = None, skew = 1.0, modes = None,
                    seed = 0))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn plan(
    py: Python<'_>,
    memory: Option<&Bound<'_, PyAny>>,
    keys: Option<&Bound<'_, PyAny>>,
    expected_keys: Option<u64>,
    items: Option<u64>,
    skew: f64,
    modes: Option<Vec<String>>,
    seed: u64,
) -> Result<Table, Error> {
    let memory = memory.map_or(Ok(DEFAULT_MEMORY), options::size)?;
    let keys = keys.map(KeyType::from_python).transpose()?.map_or(Ok(KeyFormat::Digest), |keys| keys.format())?;
    let expected = expected_keys.unwrap_or(ucl_sketch::plan::default_expected_keys(memory)).max(1);
    let plain = Scenario::new(memory, keys, expected);
    let scenario = Scenario { items: items.unwrap_or(plain.items), skew, seed, ..plain };
    if !(0.0..=4.0).contains(&skew) {
        return Err(Error::Value(format!("skew is from 0 to 4, not {skew}")));
    }
    if !(expected..=100_000_000).contains(&scenario.items) {
        let items = scenario.items;
        return Err(Error::Value(format!("{expected} keys do not occur in a stream of {items} items (at most 10^8)")));
    }
    let methods = methods(modes)?;
    interrupt::long(py, move |stop| {
        let stream = scenario.stream();
        run(&methods, &[memory], stop, |method, _| {
            let planned = Candidate::unlimited().into_iter().find(|candidate| candidate.method == method);
            Ok(scenario.predict(&stream, planned.unwrap_or(Candidate::new(method, Epochs::Open)))?)
        })
    })
}

/// Counts a column in each mode and compares with exact counts.
///
/// column, weights: as for `Sketch.update`.
/// memory: one size, or a list of sizes.
/// modes: modes to compare; by default "exact", "delta" and "em".
#[pyfunction]
#[pyo3(signature = (column, *, memory = None, modes = None, weights = None, keys = None, seed = 0))]
pub fn evaluate(
    py: Python<'_>,
    column: &Bound<'_, PyAny>,
    memory: Option<&Bound<'_, PyAny>>,
    modes: Option<Vec<String>>,
    weights: Option<&Bound<'_, PyAny>>,
    keys: Option<&Bound<'_, PyAny>>,
    seed: u64,
) -> Result<Table, Error> {
    let budgets = match memory {
        None => vec![DEFAULT_MEMORY],
        Some(many) if many.is_instance_of::<PyList>() || many.is_instance_of::<PyTuple>() => {
            many.try_iter()?.map(|size| options::size(&size?)).collect::<Result<_, _>>()?
        }
        Some(one) => vec![options::size(one)?],
    };
    let column = Column::import(column)?;
    let weights = weights.map(Column::import_weights).transpose()?;
    column.check_weights(weights.as_deref())?;
    let keys = keys.map(KeyType::from_python).transpose()?.or_else(|| column.keys.clone());
    let methods = methods(modes)?;
    interrupt::long(py, move |stop| {
        let stream = recording(&column, weights.as_deref(), keys.as_ref())?;
        run(&methods, &budgets, stop, |method, memory| {
            let registry = MethodRegistry::standard();
            Ok(measure_accuracy(registry.find(method)?, &stream, memory, seed, &ucl_lab::Options::default()).row)
        })
    })
}

/// The methods of these modes by their names in the lab.
fn methods(modes: Option<Vec<String>>) -> Result<Vec<&'static str>, Error> {
    let modes = modes.unwrap_or_else(|| MODES.map(str::to_owned).to_vec());
    let registry = MethodRegistry::standard();
    let find = |mode: &String| {
        let ours = registry.find(&format!("ucl-{mode}"));
        Ok(ours.or_else(|_| registry.find(mode))?.name)
    };
    modes.iter().map(find).collect()
}

/// The column as a stream with its exact counts.
fn recording(column: &Column, weights: Option<&[u64]>, keys: Option<&KeyType>) -> Result<Recording, Error> {
    let mut stream = Recording::new("column");
    let (Some(from), Some(to)) = (&column.keys, keys) else { return Ok(stream) };
    let (mut first, mut made, mut items) = (0, vec![], BatchBuf::new());
    for chunk in &column.chunks {
        let rows = Rows::new(chunk, Reading { from, to, padded: column.padded, first })?;
        for row in (0..rows.len()).filter(|&row| !rows.is_null(row)) {
            let weight = weights.map_or(1, |weights| weights[first + row]);
            if weight > 0 {
                items.push(rows.key(row, &mut made), weight);
            }
        }
        first += rows.len();
    }
    if !items.is_empty() {
        stream.extend(items.as_batch());
    }
    Ok(stream)
}

/// Measures every method with every budget.
fn run(
    methods: &[&'static str],
    budgets: &[usize],
    stop: &AtomicBool,
    mut measure: impl FnMut(&'static str, usize) -> Result<Row, Error>,
) -> Result<Table, Error> {
    let mut rows = vec![];
    for &memory in budgets {
        for &method in methods {
            if !stop.load(Ordering::Relaxed) {
                rows.push(measure(method, memory)?);
            }
        }
    }
    Ok(Table::new(measured(&rows)?, None))
}

fn measured(rows: &[Row]) -> Result<RecordBatch, Error> {
    let number = |of: &dyn Fn(&Row) -> Option<u64>| Arc::new(rows.iter().map(of).collect::<UInt64Array>()) as ArrayRef;
    let float = |of: &dyn Fn(&Row) -> Option<f64>| floats(rows.iter().map(of));
    let modes: LargeStringArray = rows.iter().map(|row| Some(row.method.trim_start_matches("ucl-"))).collect();
    let errors: LargeStringArray = rows.iter().map(|row| row.error.as_deref()).collect();
    batch([
        ("mode", Arc::new(modes) as ArrayRef),
        ("memory", number(&|row| Some(row.memory_budget as u64))),
        ("memory_used", number(&|row| row.memory_used.map(|bytes| bytes as u64))),
        ("decoder_memory", number(&|row| row.control_bytes.map(|bytes| bytes as u64))),
        ("coverage", float(&|row| row.coverage)),
        ("mean_error", float(&|row| row.aae)),
        ("mean_relative_error", float(&|row| row.are)),
        ("range_violations", number(&|row| row.bound_violations)),
        ("mean_range", float(&|row| row.bound_width)),
        ("sent_bytes_per_item", float(&|row| row.uplink_bytes_per_item)),
        ("failed", Arc::new(errors)),
    ])
}

/// Counts the records of files, and returns the sketch.
///
/// path: a file, packed or not, a folder or a pattern, or a list of those.
/// format: where the key is, as in `ucl count --format`: "lines", "field:7", "csv:product", ...
/// weight: where the weight is, such as "amount"; `scale` multiplies it.
/// header: whether the first record of a table names its columns; by default it is looked at.
/// on_error: "stop" at a record that cannot be read, or "skip" it.
/// limit: number of records to read.
///
/// The other arguments are those of `Sketch`.
#[pyfunction]
#[pyo3(signature = (path, *, format = "lines", weight = None, scale = None, header = None, on_error = "stop",
                    limit = None, memory = None, mode = "exact", seed = None, interval = None,
                    expected_keys = None, keep_epochs = 0))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn count(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    format: &str,
    weight: Option<&str>,
    scale: Option<NonZeroU64>,
    header: Option<bool>,
    on_error: &str,
    limit: Option<u64>,
    memory: Option<&Bound<'_, PyAny>>,
    mode: &str,
    seed: Option<u128>,
    interval: Option<u64>,
    expected_keys: Option<u64>,
    keep_epochs: usize,
) -> Result<Sketch, Error> {
    let format: Format = format.parse()?;
    let weight_text = weight;
    let weight = weight.map(|weight| format.parse_weight(weight)).transpose()?;
    let on_error = match on_error {
        "stop" => OnError::Stop,
        "skip" => OnError::Skip,
        other => return Err(Error::Value(format!("on_error is 'stop' or 'skip', not '{other}'"))),
    };
    let sources = expand(&sources(path)?, Wanted::All).map_err(Error::Inputs)?.sources;
    let memory = memory.map_or(Ok(DEFAULT_MEMORY), options::size)?;
    let made = Options::new(memory, mode, seed, interval, expected_keys, keep_epochs)?;
    let format = sources.iter().find_map(Source::own_format).unwrap_or(format);
    let keys = KeyType::of_format(&format);
    let mut sketch = made.builder(&keys)?.build()?;
    // The command line reads these.
    sketch.set_label("format", format.to_string());
    sketch.set_label("memory", memory.to_string());
    for (name, text) in [
        ("weight", weight_text.map(str::to_owned)),
        ("scale", scale.map(|scale| scale.to_string())),
        ("header", header.map(|header| header.to_string())),
    ] {
        if let Some(text) = text {
            sketch.set_label(name, text);
        }
    }
    let key_bytes = match sketch.config().keys {
        KeyFormat::Fixed(bytes) => Some(bytes.into()),
        _ => None,
    };
    let options = ReadOptions {
        format,
        weight,
        header,
        scale,
        key_bytes,
        on_error,
        limit,
        seed: seed.unwrap_or_default() as u64,
        ..ReadOptions::default()
    };
    interrupt::long(py, move |stop| {
        let options = ReadOptions { interrupt: Some(Arc::clone(stop)), ..options };
        let mut failed = None;
        let mut each = |items: ucl_streams::Batch<'_>| match insert(&mut sketch, items) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        read(&sources, &options, &mut each)?;
        failed.map_or(Ok(()), Err)?;
        Ok(Sketch::of(Inner::of_sketch(sketch, keys)))
    })
}

fn insert(sketch: &mut UclSketch, items: ucl_streams::Batch<'_>) -> Result<(), Error> {
    match items.fixed() {
        Some((size, keys)) => sketch.insert_flat(size, keys, items.weights())?,
        None => items.items().try_for_each(|(key, weight)| sketch.insert_weighted(key, weight))?,
    }
    Ok(())
}

/// One path, or a list of paths.
fn sources(path: &Bound<'_, PyAny>) -> Result<Vec<Source>, Error> {
    if path.is_instance_of::<PyList>() || path.is_instance_of::<PyTuple>() {
        return path.try_iter()?.map(|path| Ok(sources(&path?)?.remove(0))).collect();
    }
    if let Ok(text) = path.cast::<PyString>() {
        return Ok(vec![text.to_str()?.parse()?]);
    }
    Ok(vec![Source::Path(path.extract()?)])
}
