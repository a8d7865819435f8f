//! Delta decoding: items a second on one thread and on two, for a million items of Zipf(1) over so
//! many keys; the fastest of 25 rounds. (What still waits for its block to fill at the end is not
//! decoded, for both alike.)
//!
//! `cargo bench -p ucl-control-plane`

use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use ucl_control_plane::{ControlPlane, DecoderKind, Settings};
use ucl_data_plane::{Base, BloomKind, Config, CounterBits, DataPlane, HeavyKind, KeyFormat, ReportRule, Shape};
use ucl_streams::ZipfKeys;

const ITEMS: usize = 1 << 20;

/// Keys, items between cuts and counters a row: near the planner's choices for Retail and for
/// CAIDA-like packets; in the last an epoch touches few of the counters.
const CASES: [(u32, usize, u32); 5] = [
    (16_470, 65_536, 9_338),
    (16_470, 16_384, 9_338),
    (100_000, 16_384, 21_000),
    (100_000, 4_096, 12_000),
    (100_000, 1_024, 30_000),
];

fn main() {
    let pools = [1, 2].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"));
    println!("  keys  interval  one thread         two threads        ratio");
    for (keys, interval, width) in CASES {
        // Turn by turn, so that what else the machine does meets both.
        let rounds = (0..25).map(|_| pools.each_ref().map(|pool| decoding(keys, interval, width, pool)));
        let [one, two] = rounds.reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1])]).expect("25 rounds");
        let speed = |time: Duration| ITEMS as f64 / time.as_secs_f64() / 1e6;
        let shown = |time: Duration| format!("{:6.1} ms {:5.1} M/s", time.as_secs_f64() * 1e3, speed(time));
        let ratio = one.as_secs_f64() / two.as_secs_f64();
        println!("{keys:6}  {interval:8}  {}  {}  {ratio:4.2}", shown(one), shown(two));
    }
}

/// The time that a whole stream takes to decode.
fn decoding(keys: u32, interval: usize, width: u32, pool: &ThreadPool) -> Duration {
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 163,
        vote_ratio: 8,
        base: Base::CountMin,
        rows: 4,
        width,
        counter_bits: CounterBits::B8,
        bloom: BloomKind::Classic,
        bloom_bits: 13 * keys,
        bloom_hashes: 6,
    };
    let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::Rotate, seed: 1.into() };
    let mut data = DataPlane::<4>::new(config).expect("a sound configuration");
    let mut control = ControlPlane::new(config, Settings { decoder: DecoderKind::Delta, ..Settings::default() })
        .expect("settings that go with it");
    let items: Vec<[u8; 4]> = ZipfKeys::new(1.0, keys.into(), 1).take(ITEMS).collect();
    pool.install(|| {
        take_a_core_each();
        for items in items.chunks(interval) {
            data.insert_batch(items, &mut control).expect("few items");
            data.cut(&mut control);
        }
    });
    assert!(control.fault().is_none());
    control.decoding()
}

/// Keeps all threads busy until each has a core. A thread that sleeps may wake up on the core of
/// the one that woke it, and on virtual machines stay there for many milliseconds, the other core
/// being idle: that would measure one core, not two.
fn take_a_core_each() {
    let start = Instant::now();
    rayon::broadcast(|_| while start.elapsed() < Duration::from_millis(30) {});
}
