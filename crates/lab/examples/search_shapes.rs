//! The search behind the planner's narrow shapes: every split of the budget on a grid, on generated
//! streams, against what the planner chooses.
//!
//! ```console
//! $ cargo run --release -p ucl-lab --example search_shapes
//! ```
//!
//! For each scenario (budget, key size, expected keys) and mode it prints the planner's error and
//! uplink with its split, the best error on the grid with its own, and the ratio of the two errors;
//! at the end the geometric mean of the ratio. Errors below `FLOOR` count as that: nobody tells
//! 0.001 from 0.002.

use rayon::prelude::*;
use ucl_lab::predict::Scenario;
use ucl_lab::{MethodRegistry, Options, Recording, experiment::measure_accuracy};
use ucl_sketch::plan::{Request, bloom_hashes, plan};
use ucl_sketch::{BloomKind, CounterBits, DecoderKind, KeyFormat, Mode, Shape};

const FLOOR: f64 = 0.01;
const ITEMS: u64 = 200_000;

#[derive(Clone, Copy)]
struct Split {
    bits: CounterBits,
    bloom: f64,
    heavy: f64,
}

fn main() {
    println!("memory  key  keys  mode  planner AAE, bytes an item (bits bloom% heavy%)  the same of the best  ratio");
    let mut ratios = Vec::new();
    for memory in [8 << 10, 16 << 10, 64 << 10, 256 << 10] {
        for keys in [KeyFormat::Fixed(4), KeyFormat::Fixed(13)] {
            for expected in [memory as u64 / 8, memory as u64 / 4, memory as u64] {
                if expected > ITEMS / 3 {
                    continue;
                }
                let scenario = Scenario { items: ITEMS, ..Scenario::new(memory, keys, expected) };
                let stream = scenario.stream();
                for (decoder, interval) in
                    [(DecoderKind::Em, None), (DecoderKind::Delta, Some(4_000)), (DecoderKind::Delta, Some(16_000))]
                {
                    ratios.push(compare(&scenario, &stream, decoder, interval));
                }
            }
        }
    }
    let mean = (ratios.iter().map(|ratio: &f64| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    println!("\nplanner / best, geometric mean over {} cases: {mean:.2}", ratios.len());
}

fn compare(scenario: &Scenario, stream: &Recording, decoder: DecoderKind, interval: Option<u64>) -> f64 {
    let memory = scenario.memory;
    let keys = scenario.keys;
    let expected = scenario.expected_keys;
    let request = Request { memory, keys, expected_keys: Some(expected), interval, ..Request::default() };
    let planned = plan(Mode::Sketch(decoder), request).expect("a budget that is large enough").shape;
    let mut candidates = vec![planned];
    for bits in [CounterBits::B4, CounterBits::B8] {
        for bloom in [0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8] {
            for heavy in [0.01, 0.03, 0.08] {
                candidates.push(split(scenario, interval, &planned, Split { bits, bloom, heavy }));
            }
        }
    }
    let (errors, uplinks): (Vec<f64>, Vec<f64>) =
        candidates.par_iter().map(|&shape| measure(scenario, stream, decoder, interval, shape)).unzip();
    let best = (0..errors.len()).min_by(|&a, &b| errors[a].total_cmp(&errors[b])).unwrap_or(0);
    let ratio = errors[0].max(FLOOR) / errors[best].max(FLOOR);
    let shown = |at: usize| {
        let shape = candidates[at];
        let parts = shape.memory(keys);
        let share = |part: &str| 100.0 * parts.part(part) as f64 / memory as f64;
        let bits = shape.counter_bits.bits();
        format!("{:.4} {:.2} ({bits} {:.0} {:.1})", errors[at], uplinks[at], share("bloom"), share("heavy"))
    };
    let mode = interval.map_or("em".to_owned(), |interval| format!("delta {interval}"));
    println!("{:>4}KB {keys:?} {expected:>7} {mode:<11} {:<28} {:<28} {ratio:.2}", memory >> 10, shown(0), shown(best));
    ratio
}

/// The planner's shape with another split of the same budget.
fn split(scenario: &Scenario, interval: Option<u64>, planned: &Shape, Split { bits, bloom, heavy }: Split) -> Shape {
    let empty = Shape { slots: 0, width: 0, bloom_bits: 0, ..*planned };
    let budget = (scenario.memory - empty.memory(scenario.keys).total()) as f64;
    let bloom_bits = (budget * bloom / 4.0) as u32 * 32;
    let bloom_hashes = match planned.bloom {
        BloomKind::Recent => planned.bloom_hashes,
        _ => bloom_hashes(bloom_bits, scenario.expected_keys as f64, interval),
    };
    let slots = ((budget * heavy) as usize / (scenario.keys.slot_bytes() + 8)).max(8) as u32;
    let rows = f64::from(planned.rows);
    let mut shape = Shape { counter_bits: bits, slots, bloom_bits, bloom_hashes, ..*planned };
    shape.width = (budget * (1.0 - bloom - heavy) * 8.0 / f64::from(bits.bits()) / rows) as u32;
    while shape.memory(scenario.keys).total() > scenario.memory {
        shape.width -= 1;
    }
    shape
}

/// Error and uplink.
fn measure(
    scenario: &Scenario,
    stream: &Recording,
    decoder: DecoderKind,
    interval: Option<u64>,
    shape: Shape,
) -> (f64, f64) {
    let (method, rule) = match decoder {
        DecoderKind::Em => ("ucl-em", ucl_sketch::ReportRule::New),
        _ => ("ucl-delta", ucl_sketch::ReportRule::Generations),
    };
    let options = Options { shape: Some(shape), rule: Some(rule), interval: Some(interval), ..Options::default() };
    let registry = MethodRegistry::standard();
    let method = registry.find(method).expect("a method of our own");
    let row = measure_accuracy(method, stream, scenario.memory, scenario.seed, &options).row;
    (row.aae.unwrap_or(f64::INFINITY), row.uplink_bytes_per_item.unwrap_or(f64::NAN))
}
