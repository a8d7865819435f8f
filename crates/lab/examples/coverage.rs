//! What raises key coverage, and what it costs:
//! `cargo run --release -p ucl-lab --example coverage -- INPUT FORMAT
//! MEMORY INTERVAL [EXPECTED_KEYS]`.
//!
//! A key that the Bloom filter takes for known at first sight is never named, and what it adds to
//! the counters ends up with others. Delta with the planner's shape, mean of three seeds, with each
//! lever:
//!
//! - `new`: a key is named when the filter does not know it, and that is all;
//! - `filter x1.5`, `filter x2`: the same with more of the budget for the filter, and less for the
//!   counters;
//! - `refresh`: some that the filter claims to know are named again;
//! - `rehash N`: new hashes, and with them an empty filter, N times in the stream, so that every
//!   key is named again;
//! - `rotate`: the filter alone is emptied when its claims are false too often (the planner's
//!   choice).

use ucl_lab::Recording;
use ucl_sketch::plan::{Request, bloom_hashes, default_expected_keys, plan};
use ucl_sketch::{BloomKind, Bytes, DecoderKind, Mode, ReportRule, Shape, UclSketch};
use ucl_streams::ReadOptions;
use ucl_streams::metrics::ErrorMeter;

type Error = Box<dyn std::error::Error>;

const SEEDS: u64 = 3;

struct Lever {
    name: String,
    shape: Shape,
    rule: ReportRule,
    rehashes: u64,
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, format, memory, interval, expected @ ..] = &args[..] else {
        return Err("usage: coverage INPUT FORMAT MEMORY INTERVAL [EXPECTED_KEYS]".into());
    };
    let reading = ReadOptions { format: format.parse()?, ..ReadOptions::default() };
    let stream = Recording::read(&[input.parse()?], &reading)?;
    let memory = memory.parse::<Bytes>()?.0;
    let interval = interval.parse()?;
    let expected_keys = expected.first().map(|keys| keys.parse()).transpose()?;
    let request =
        Request { memory, keys: stream.keys(), expected_keys, interval: Some(interval), ..Request::default() };
    let planned = plan(Mode::Sketch(DecoderKind::Delta), request)?.shape;
    println!("{:<12} {:>9} {:>9} {:>9} {:>14}", "lever", "AAE", "ARE", "coverage", "uplink B/item");
    let keys = expected_keys.unwrap_or(default_expected_keys(memory)) as f64;
    let hashes = |interval| bloom_hashes(planned.bloom_bits, keys, interval);
    for lever in levers(planned, hashes(None), hashes(Some(interval))) {
        let runs = (0..SEEDS).map(|seed| run(&stream, &lever, interval, seed)).collect::<Result<Vec<_>, _>>()?;
        let mean = |at: usize| runs.iter().map(|run| run[at]).sum::<f64>() / SEEDS as f64;
        let name = lever.name;
        let coverage = 100.0 * mean(2);
        println!("{name:<12} {:>9.4} {:>9.4} {coverage:>8.2}% {:>14.3}", mean(0), mean(1), mean(3));
    }
    Ok(())
}

/// `hashes` go with a Bloom filter that is not emptied, and others with one that is.
fn levers(planned: Shape, hashes: u8, hashes_if_emptied: u8) -> Vec<Lever> {
    let lever = |name: String, shape: Shape, rule: ReportRule, rehashes| Lever { name, shape, rule, rehashes };
    let mut levers = vec![lever("planned".into(), planned, ReportRule::Generations, 0)];
    let planned = Shape { bloom: BloomKind::Classic, bloom_hashes: hashes, ..planned };
    let emptied = Shape { bloom_hashes: hashes_if_emptied, ..planned };
    levers.push(lever("new".into(), planned, ReportRule::New, 0));
    for factor in [1.5, 2.0] {
        // What the filter gains, the counters lose.
        let bits = (f64::from(planned.bloom_bits) * factor) as u32 / 32 * 32;
        let per_width = u32::from(planned.rows) * planned.counter_bits.bits();
        if let Some(width) = planned.width.checked_sub((bits - planned.bloom_bits).div_ceil(per_width)) {
            let shape = Shape { bloom_bits: bits, width, ..planned };
            levers.push(lever(format!("filter x{factor}"), shape, ReportRule::New, 0));
        }
    }
    levers.push(lever("refresh".into(), planned, ReportRule::Refresh, 0));
    for rehashes in [1, 7] {
        levers.push(lever(format!("rehash {rehashes}"), planned, ReportRule::New, rehashes));
    }
    levers.push(lever("rotate".into(), emptied, ReportRule::Rotate, 0));
    levers.retain(|lever| lever.shape.validate().is_ok());
    levers
}

/// AAE, ARE, the share of keys known, and bytes sent an item.
fn run(stream: &Recording, lever: &Lever, interval: u64, seed: u64) -> Result<[f64; 4], Error> {
    let mut sketch = UclSketch::builder()
        .shape(lever.shape)
        .key_bytes(stream.keys().slot_bytes())
        .decoder(DecoderKind::Delta)
        .report_rule(lever.rule)
        .interval(interval)
        .measure_uplink(true)
        .seed(seed.into())
        .build()?;
    let every = stream.items() / (lever.rehashes + 1) + 1;
    for (at, (key, weight)) in (1..).zip(stream.batch().items()) {
        sketch.insert_weighted(key, weight)?;
        if at % every == 0 {
            sketch.rehash((seed + 1_000 * at).into())?;
        }
    }
    sketch.cut();
    let view = sketch.query_view()?;
    let mut meter = ErrorMeter::default();
    for (key, count) in stream.truth().iter() {
        meter.add(count, view.estimate(key).estimate);
    }
    let errors = meter.errors();
    let coverage = view.keys() as f64 / stream.truth().distinct() as f64;
    let uplink = sketch.uplink().map_or(0, |uplink| uplink.total()) as f64 / stream.items() as f64;
    Ok([errors.aae, errors.are, coverage, uplink])
}
