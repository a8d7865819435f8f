//! Insert speed against the `datasketches` crate's Count-Min, as ratios within one run: machines are shared and noisy.
//!
//! `cargo bench -p ucl-data-plane`. One thread, 2M Zipf(1.1) items over 100K keys, 64KB in the paper's shape, seeded hash,
//! reports to a counting sink, a cut every 16,000 items. Rounds are interleaved and
//! the fastest of each compared: what disturbs a round only ever makes it slower.

use std::time::Instant;

use datasketches::countmin::CountMinSketch;
use ucl_data_plane::{BloomKind, Config, DataPlane, KeyFormat, Report, ReportRule, Shape};

const ITEMS: usize = 2_000_000;
const KEYS: usize = 100_000;
const INTERVAL: usize = 16_000;
const ROUNDS: usize = 15;

/// Counts reports, and reads the counters of a cut as a sender would.
#[derive(Default)]
struct Counting {
    reports: u64,
    sum: u64,
}

impl ucl_data_plane::ReportSink for Counting {
    #[inline(always)]
    fn report(&mut self, report: Report<'_>) {
        self.reports += 1;
        if let Report::Cut(cut) = report {
            self.sum = self.sum.wrapping_add(cut.totals.sketch_weight);
        }
    }
}

fn zipf_ranks() -> Vec<u32> {
    let mut cumulative: Vec<f64> = (1..=KEYS).map(|rank| (rank as f64).powf(-1.1)).collect();
    for i in 1..KEYS {
        cumulative[i] += cumulative[i - 1];
    }
    let mut state = 7u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..ITEMS).map(|_| cumulative.partition_point(|&c| c < uniform() * cumulative[KEYS - 1]) as u32).collect()
}

fn key<const N: usize>(rank: u32) -> [u8; N] {
    let mixed = u128::from(rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes();
    let mut key = [0; N];
    key.copy_from_slice(&mixed[..N]);
    key[..4].copy_from_slice(&rank.wrapping_mul(0x9e37_79b1).to_le_bytes());
    key
}

fn plane<const N: usize>(shape: Shape) -> DataPlane<N> {
    let config = Config { keys: KeyFormat::Fixed(N as u8), shape, rule: ReportRule::Paper, seed: 1.into() };
    DataPlane::new(config).expect("a valid shape")
}

type Run<'a> = Box<dyn FnMut() -> u64 + 'a>;

fn cases<'a, const N: usize>(keys: &'a [[u8; N]], slots: u32) -> Vec<(String, Run<'a>)> {
    let classic = Shape { slots, ..Shape::PAPER_64KB };
    let split = Shape { bloom: BloomKind::SplitBlock, ..classic };
    let narrow = Shape { width: 4096, counter_bits: ucl_data_plane::CounterBits::B8, ..classic };
    let yardstick: Run<'a> = Box::new(move || {
        let mut sketch = CountMinSketch::<u32>::with_seed(4, 4096, 1).expect("a valid shape");
        for key in keys {
            sketch.update(key);
        }
        sketch.total_weight().into()
    });
    let mut all = vec![(format!("datasketches Count-Min 4x4096, {N}-byte keys"), yardstick)];
    for (name, shape) in [("classic", classic), ("split-block", split), ("8-bit", narrow)] {
        let batch: Run<'a> = Box::new(move || {
            let (mut plane, mut sink) = (plane::<N>(shape), Counting::default());
            for epoch in keys.chunks(INTERVAL) {
                plane.insert_batch(epoch, &mut sink).expect("few items");
                plane.cut(&mut sink);
            }
            sink.reports ^ sink.sum
        });
        all.push((format!("insert_batch, {name}, {N}-byte keys"), batch));
        let single: Run<'a> = Box::new(move || {
            let (mut plane, mut sink) = (plane::<N>(shape), Counting::default());
            for epoch in keys.chunks(INTERVAL) {
                for key in epoch {
                    plane.insert(key, 1, &mut sink).expect("weight 1");
                }
                plane.cut(&mut sink);
            }
            sink.reports ^ sink.sum
        });
        all.push((format!("insert, {name}, {N}-byte keys"), single));
    }
    all
}

fn main() {
    // `cargo test --benches` calls this too: one short round, so that the bench keeps compiling and running.
    let rounds = if std::env::args().any(|a| a == "--bench") { ROUNDS } else { 1 };
    let ranks = zipf_ranks();
    let four: Vec<[u8; 4]> = ranks.iter().map(|&r| key(r)).collect();
    let thirteen: Vec<[u8; 13]> = ranks.iter().map(|&r| key(r)).collect();
    // 13-byte keys take 21-byte slots: 1,700 of them fit the same budget.
    for mut group in [cases(&four, 3000), cases(&thirteen, 1700)] {
        let mut times = vec![Vec::new(); group.len()];
        let mut answers = vec![None; group.len()];
        for _ in 0..rounds {
            for (case, (_, run)) in group.iter_mut().enumerate() {
                let start = Instant::now();
                let answer = run();
                times[case].push(start.elapsed().as_secs_f64());
                assert_eq!(*answers[case].get_or_insert(answer), answer, "the same input gives the same reports");
            }
        }
        // Single and batch must have reported the same.
        for pair in answers[1..].chunks(2) {
            assert_eq!(pair[0], pair[1]);
        }
        let fastest: Vec<f64> = times.iter().map(|t| t.iter().copied().fold(f64::INFINITY, f64::min)).collect();
        for ((name, _), time) in group.iter().zip(&fastest) {
            println!("{name:<50} {:7.1} M items/s   {:5.2}x", ITEMS as f64 / time / 1e6, fastest[0] / time);
        }
    }
}
