//! `--resume` and `--save`: what the state remembers of the command line, and what may not
//! contradict it.

use std::fmt::Display;
use std::path::Path;

use ucl_sketch::mirrored::Allowance;
use ucl_sketch::plan::{Request, default_expected_keys, plan};
use ucl_sketch::{Config, CounterBits, DecoderKind, Epochs, Fallback, KeyFormat, Mode, ReportRule, Shape, UclSketch};
use ucl_streams::Format;

use super::Args;
use super::over_time::Period;
use crate::fail::{Usage, tell};
use crate::stored::{
    DELIMITER, Difference, FORMAT, HEADER, MEMORY, QUOTES, Reading, SCALE, Stored, WEIGHT, earlier_hashes, key_bytes,
};

/// The number of keys by which the filter was sized, if it was given.
const EXPECTED_KEYS: &str = "expected keys";
/// The width of the counters, if it was given.
const COUNTER_BITS: &str = "counter bits";

/// Writes on a new sketch what a later run has to know.
pub fn label(sketch: &mut UclSketch, args: &Args, format: &Format) {
    sketch.set_label(FORMAT, format.to_string());
    sketch.set_label(MEMORY, args.memory().0.to_string());
    if let Some(weight) = &args.input.weight {
        sketch.set_label(WEIGHT, weight);
    }
    if let Some(scale) = args.input.scale {
        sketch.set_label(SCALE, scale.to_string());
    }
    if let Some(header) = args.input.header_row() {
        sketch.set_label(HEADER, header.to_string());
    }
    if let Some(delimiter) = args.input.delimiter {
        sketch.set_label(DELIMITER, delimiter.to_string());
    }
    if args.input.no_quotes {
        sketch.set_label(QUOTES, false.to_string());
    }
    if let Some(keys) = args.expected_keys {
        sketch.set_label(EXPECTED_KEYS, keys.to_string());
    }
    if let Some(bits) = args.counter_bits {
        sketch.set_label(COUNTER_BITS, bits.bits().to_string());
    }
}

/// The number of keys that the sketch was planned for.
pub fn expected_keys(sketch: &UclSketch, budget: usize) -> u64 {
    let given = sketch.labels().get(EXPECTED_KEYS).and_then(|keys| keys.parse().ok());
    given.unwrap_or_else(|| default_expected_keys(budget))
}

/// Returns true if --expected-keys would have helped: told of so many keys, the planner of delta
/// and EM gives the Bloom filter more without taking counters away. Elsewhere (the other decoders,
/// counters of a given width, budgets with many counters per epoch) it changed nothing or made
/// counts worse, in trials from 4KB to 1MB.
pub fn better_planned(sketch: &mut UclSketch, budget: usize, keys: u64) -> bool {
    let config = *sketch.config();
    let interval = sketch.interval();
    let decoder = sketch.with_control(|control| control.settings().decoder);
    // Epochs that end by load fit, however many keys there are.
    if sketch.epochs() == Epochs::ByLoad {
        return false;
    }
    if sketch.mode().is_mirrored() || !matches!(decoder, DecoderKind::Delta | DecoderKind::Em) {
        return false;
    }
    let Config { keys: key_format, shape, rule, .. } = config;
    let planned = |keys: u64, counter_bits: Option<CounterBits>| {
        let request = Request {
            memory: budget,
            keys: key_format,
            expected_keys: Some(keys),
            counter_bits,
            base: shape.base,
            heavy: shape.heavy,
            interval,
            rule: Some(rule),
            ..Request::default()
        };
        plan(Mode::Sketch(decoder), request).ok().map(|plan| plan.shape)
    };
    let given = sketch.labels().get(COUNTER_BITS).map(|_| shape.counter_bits);
    if planned(expected_keys(sketch, budget), given) != Some(shape) {
        // Not planned, or changed since.
        return false;
    }
    // A filter that is emptied in time loses few keys with one hash more or less.
    let hashes = |other: Shape| if rule == ReportRule::Rotate { shape.bloom_hashes } else { other.bloom_hashes };
    planned(keys, given).is_some_and(|other| {
        let fewer = other.geometry().counters() < shape.geometry().counters();
        !fewer && Shape { bloom_hashes: hashes(other), ..other } != shape
    })
}

/// The state to go on with, if the command line does not contradict it.
pub fn open(path: &Path, args: &Args) -> anyhow::Result<Stored> {
    let mut stored = Stored::load(path)?;
    if let Some(warning) = earlier_hashes(stored.sketch.config().seed) {
        tell(format_args!("{}: hash functions: {warning}", path.display()));
    }
    let mode = stored.sketch.mode();
    let insists = stored.sketch.with_control(|control| control.settings().fallback == Fallback::WhenUntrained);
    let sketch = &stored.sketch;
    let config = stored.sketch.config();
    let file = path.display();
    let contradiction = |option: &str, given: &str, has: Option<String>| {
        let has = has.map_or(format!("without --{option}"), |has| format!("with --{option} {has}"));
        Usage(format!(
            "{file} was made {has}, so --{option} {given} cannot continue it: leave the option out, or start a new count"
        ))
    };
    let same = |option: &str, given: Option<String>, has: Option<String>| match given {
        Some(given) if has.as_ref() != Some(&given) => Err(contradiction(option, &given, has)),
        _ => Ok(()),
    };
    fn text(value: impl Display) -> Option<String> {
        Some(value.to_string())
    }
    same("memory", args.memory.and_then(text), text(ucl_sketch::Bytes(stored.budget)))?;
    same("mode", args.mode.and_then(text), text(mode))?;
    same("mode", args.decoder.and_then(text), text(mode))?;
    same("base", args.base.and_then(text), text(config.shape.base))?;
    same("heavy", args.heavy.and_then(text), text(config.shape.heavy))?;
    same("key-bytes", args.key_bytes.map(key_bytes), Some(key_bytes(config.keys)))?;
    let code_bits = if let KeyFormat::Code(bits) = config.keys { text(bits) } else { None };
    same("code-bits", args.code_bits.and_then(text), code_bits)?;
    same("expected-keys", args.expected_keys.and_then(text), sketch.labels().get(EXPECTED_KEYS).cloned())?;
    same("interval", args.interval.and_then(text), sketch.interval().and_then(text))?;
    let bits = |bits: CounterBits| bits.bits().to_string();
    let uplink = sketch.allowance().and_then(|allowance| allowance.bytes_per_item());
    // As they are kept: in steps of 1/4096.
    let kept = |bytes: f64| Allowance::per_item(bytes).bytes_per_item();
    same("uplink", args.uplink.and_then(kept).and_then(text), uplink.and_then(text))?;
    same("counter-bits", args.counter_bits.map(bits), Some(bits(config.shape.counter_bits)))?;
    same("report-rule", args.report_rule.and_then(text), text(config.rule))?;
    if args.insist && !insists {
        let why =
            "was made without --insist, so it cannot continue with it: leave the option out, or start a new count";
        return Err(Usage(format!("{file} {why}")).into());
    }
    same("seed", args.seed.and_then(text), text(config.seed))?;
    let Reading { format, weight, scale } = stored.reading.clone();
    let given = Reading {
        format: args.input.format.clone().unwrap_or(format),
        weight: args.input.weight.clone().or(weight),
        scale: args.input.scale.or(scale),
    };
    match given.difference(&stored.reading) {
        None => Ok(stored),
        Some(Difference { option, ours, theirs }) => {
            Err(contradiction(option, &ours.unwrap_or_default(), theirs).into())
        }
    }
}

impl Stored {
    /// Reads the options about time, if the state has kept enough to answer.
    pub fn period(&mut self, args: &Args) -> Result<Option<Period>, Usage> {
        let kept = self.sketch.with_control(|control| control.settings().retain_epochs);
        let period = Period::of(args, self.sketch.mode())?;
        match period.map(|period| period.epochs(args)).filter(|&epochs| epochs > kept) {
            None => Ok(period),
            Some(epochs) => Err(Usage(format!(
                "{epochs} epochs are needed, but the state keeps {kept}: start a new count with --keep {epochs}"
            ))),
        }
    }
}
