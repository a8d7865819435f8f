//! Calibration of the likely range of mode delta:
//! `cargo run --release -p ucl-lab --example likely -- [INPUT FORMAT]...`.
//!
//! Generated streams, and those that are named, in three sizes with three seeds each and otherwise
//! with default settings. Every key of a stream is asked for and held against its true count.
//! Widths are those of known keys.

use std::ops::AddAssign;

use ucl_lab::Recording;
use ucl_sketch::{DecoderKind, KeyFormat, Source, UclSketch};
use ucl_streams::ReadOptions;

type Error = Box<dyn std::error::Error>;

const SEEDS: u128 = 3;
const MEMORY: [&str; 3] = ["16KB", "64KB", "256KB"];
const GENERATED: [&str; 9] = [
    "zipf:0.5:300000:10000",
    "zipf:0.5:300000:100000",
    "zipf:0.5:300000:1000000",
    "zipf:0.8:1000000:100000",
    "zipf:0.8:1000000:1000000",
    "zipf:1.1:1000000:100000",
    "zipf:1.1:3000000:1000000",
    "zipf:1.5:1000000:100000",
    "zipf:1.1:100000:58",
];

/// Sums over keys.
#[derive(Clone, Copy, Default)]
struct Sums {
    keys: u64,
    /// How far off the estimates are.
    off: u64,
    /// Keys whose likely range is one number.
    certain: u64,
    /// Keys whose true count is outside of their likely range.
    outside: u64,
    likely_width: u64,
    guaranteed_width: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.keys += other.keys;
        self.off += other.off;
        self.certain += other.certain;
        self.outside += other.outside;
        self.likely_width += other.likely_width;
        self.guaranteed_width += other.guaranteed_width;
    }
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (named, []) = args.as_chunks::<2>() else { return Err("usage: likely [INPUT FORMAT]...".into()) };
    let generated = GENERATED.map(|input| [input.to_owned(), "lines".to_owned()]);
    println!("| stream | memory | keys | AAE | certain | within | likely width | width / AAE | guaranteed width |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut all = Sums::default();
    for [input, format] in generated.iter().chain(named) {
        let reading = ReadOptions { format: format.parse()?, ..ReadOptions::default() };
        let stream = Recording::read(&[input.parse()?], &reading)?;
        let name = input.rsplit('/').next().unwrap_or(input);
        for memory in MEMORY {
            let mut sums = Sums::default();
            for seed in 0..SEEDS {
                sums += run(&stream, memory, seed)?;
            }
            print(name, memory, sums);
            all += sums;
        }
    }
    print("**all**", "", all);
    Ok(())
}

fn run(stream: &Recording, memory: &str, seed: u128) -> Result<Sums, Error> {
    let mut builder = UclSketch::builder().decoder(DecoderKind::Delta).memory(memory).seed(seed);
    if let KeyFormat::Fixed(bytes) = stream.keys() {
        builder = builder.key_bytes(bytes.into());
    }
    let mut sketch = builder.build()?;
    for (key, weight) in stream.batch().items() {
        sketch.insert_weighted(key, weight)?;
    }
    let view = sketch.query_view()?;
    let mut sums = Sums::default();
    for (key, truth) in stream.truth().iter() {
        let answer = view.estimate(key);
        let likely = view.likely(key);
        let known = u64::from(answer.source != Source::Unknown);
        sums += Sums {
            keys: 1,
            off: answer.estimate.abs_diff(truth),
            certain: u64::from(likely.lower == likely.upper),
            outside: u64::from(!(likely.lower..=likely.upper).contains(&truth)),
            likely_width: known * (likely.upper - likely.lower),
            guaranteed_width: known * (answer.upper - answer.lower),
        };
    }
    Ok(sums)
}

fn print(name: &str, memory: &str, sums: Sums) {
    let Sums { keys, off, certain, outside, likely_width, guaranteed_width } = sums;
    let mean = |sum: u64| sum as f64 / keys as f64;
    let ratio = if off == 0 { "-".to_owned() } else { format!("{:.1}", likely_width as f64 / off as f64) };
    let (aae, width, guaranteed) = (mean(off), mean(likely_width), mean(guaranteed_width));
    let (certain, within) = (100.0 * mean(certain), 100.0 - 100.0 * mean(outside));
    println!(
        "| {name} | {memory} | {keys} | {aae:.5} | {certain:.2}% | {within:.4}% | {width:.4} | {ratio} | {guaranteed:.1} |"
    );
}
