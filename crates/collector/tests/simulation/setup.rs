//! Streams small enough to collide, and settings small enough that everything happens often.

use ucl_collector::CollectorSettings;
use ucl_sketch::mirrored::{MirroredShape, Policy};
use ucl_sketch::{Base, BloomKind, Config, CounterBits, HeavyKind, ReportRule, Settings, Shape, UclSketch};

pub const KEYS: u32 = 40;

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

pub fn key(number: u32) -> Vec<u8> {
    // Some are longer than a digest.
    format!("key-{number:0>width$}", width = if number.is_multiple_of(3) { 20 } else { 2 }).into_bytes()
}

/// Whether a stream counts exactly while its link allows; the others count in a sketch.
pub fn is_budget(seed: u64) -> bool {
    seed % 2 == 1
}

pub fn config(seed: u64) -> Config {
    let builder = UclSketch::builder().seed(seed.into());
    if is_budget(seed) {
        let table = MirroredShape { sets: 2, count_bits: 3, buffer: 60, policy: Policy::Skewed };
        let shape = Shape { counter_bits: CounterBits::B4, ..Shape::absorbing(table, 16, 256, 2) };
        return builder.shape(shape).report_rule(ReportRule::New).plan().unwrap().0;
    }
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 4,
        vote_ratio: 2,
        base: Base::CountMin,
        rows: 2,
        width: 16,
        counter_bits: CounterBits::B4,
        bloom: BloomKind::Classic,
        bloom_bits: 256,
        bloom_hashes: 2,
    };
    let rule = [ReportRule::New, ReportRule::Refresh, ReportRule::Rotate][seed as usize % 3];
    builder.shape(shape).report_rule(rule).plan().unwrap().0
}

pub fn decoding() -> Settings {
    Settings { retain_epochs: 4, ..Settings::default() }
}

pub fn collector_settings() -> CollectorSettings {
    CollectorSettings {
        decoding: decoding(),
        log_file_bytes: 4_000,
        log_bytes: 12_000,
        checkpoint_epochs: 7,
        kept_epochs: 10_000,
        ..CollectorSettings::default()
    }
}

pub fn seed_of(stream: &ucl_link::Name) -> u64 {
    stream.as_str().bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte))
}
