//! Questions about ranges of time, held against exact counts of every epoch.

use std::collections::HashMap;

use ucl_agent::{Agent, AgentSettings};
use ucl_collector::{Collector, CollectorSettings, Selection, Snapshot, TimeRange};
use ucl_link::Now;
use ucl_sketch::{
    Base, BloomKind, Config, CounterBits, DecoderKind, HeavyKind, Mode, ReportRule, Settings, Shape, UclSketch,
};
use ucl_storage::SimDisk;

const KEPT: usize = 6;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key-{number:0>width$}", width = if number.is_multiple_of(3) { 20 } else { 2 }).into_bytes()
}

/// Small enough that keys collide in slots and counters.
fn delta(seed: u128) -> Config {
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
    UclSketch::builder()
        .mode(Mode::Sketch(DecoderKind::Delta))
        .shape(shape)
        .report_rule(ReportRule::New)
        .seed(seed)
        .plan()
        .unwrap()
        .0
}

fn exact(seed: u128) -> Config {
    UclSketch::builder().mode(Mode::Exact).memory("4KB").seed(seed).plan().unwrap().0
}

/// An epoch as it was: when it began and ended, and what came.
struct Truth {
    started_ms: i64,
    ended_ms: i64,
    counts: HashMap<u64, u64>,
    items: u64,
}

struct World {
    collector: Collector<SimDisk>,
    /// By stream.
    epochs: Vec<Vec<Truth>>,
}

fn settings() -> CollectorSettings {
    let decoding = Settings { retain_epochs: KEPT, ..Settings::default() };
    CollectorSettings { decoding, kept_epochs: KEPT, checkpoint_epochs: 3, ..CollectorSettings::default() }
}

fn world(configs: &[Config], epochs: usize, keys: u64, rng: &mut Rng) -> World {
    let mut collector = Collector::open(SimDisk::new(9), settings()).unwrap();
    let mut all = Vec::new();
    for (number, config) in configs.iter().enumerate() {
        let mut agent_settings =
            AgentSettings::new("t".parse().unwrap(), format!("s{number}").parse().unwrap(), *config);
        agent_settings.cut_ms = 10_000;
        let mut now = Now { wall_ms: 1_000_000, mono_ms: 0 };
        let (mut agent, _) = Agent::open(SimDisk::new(1), agent_settings, now, 42 + number as u64).unwrap();
        let mut truths = Vec::new();
        for _ in 0..epochs {
            let mut truth = Truth { started_ms: now.wall_ms, ended_ms: 0, counts: HashMap::new(), items: 0 };
            // Some have a single item, and some keys come with weights.
            for _ in 0..1 + rng.below(3) * rng.below(keys.max(60)) {
                let number = rng.below(keys).min(rng.below(keys));
                let weight = 1 + rng.below(3);
                agent.insert(&key(number), weight).unwrap();
                *truth.counts.entry(number).or_default() += weight;
                truth.items += 1;
            }
            let length = 10_000 + rng.below(5_000);
            now = Now { wall_ms: now.wall_ms + length as i64, mono_ms: now.mono_ms + length };
            truth.ended_ms = now.wall_ms;
            agent.advance(now, b"").unwrap();
            let request = agent.request(now).unwrap().expect("an epoch");
            let requests = [(&request.identity, &request.body[..])];
            let reply = collector.submit(&requests, now).unwrap().remove(0).unwrap();
            assert_eq!(reply.refusal, None);
            agent.on_reply(now, request.id, Ok(reply), 7).unwrap();
            truths.push(truth);
        }
        all.push(truths);
    }
    World { collector, epochs: all }
}

impl World {
    fn snapshot(&mut self) -> Snapshot {
        self.collector.snapshot(&Selection::tenant("t".parse().unwrap())).unwrap()
    }

    /// What is kept of each stream, and in the range.
    fn in_range(&self, range: TimeRange) -> Vec<&Truth> {
        let kept = self.epochs.iter().flat_map(|epochs| epochs.iter().rev().take(KEPT));
        kept.filter(|epoch| range.from_ms < epoch.ended_ms && epoch.ended_ms <= range.to_ms).collect()
    }

    fn check(&mut self, range: TimeRange, keys: u64, is_exact: bool) {
        let snapshot = self.snapshot();
        let slice = snapshot.over(Some(range));
        let coverage = slice.coverage().unwrap();
        let truths = self.in_range(range);
        assert_eq!(coverage.epochs, truths.len(), "{range:?}");
        assert_eq!(coverage.items, truths.iter().map(|epoch| epoch.items).sum::<u64>());
        let weight: u64 = truths.iter().flat_map(|epoch| epoch.counts.values()).sum();
        assert_eq!(coverage.weight, Some(weight));
        assert_eq!(coverage.from_ms, truths.iter().map(|epoch| epoch.started_ms).min());
        assert_eq!(coverage.to_ms, truths.iter().map(|epoch| epoch.ended_ms).max());
        let missing = self.epochs.iter().any(|epochs| {
            let dropped = epochs.len().saturating_sub(KEPT);
            epochs[..dropped].iter().any(|epoch| range.from_ms < epoch.ended_ms)
        });
        assert_eq!(coverage.complete, !missing, "{range:?}");
        let count = |number: u64| truths.iter().filter_map(|epoch| epoch.counts.get(&number)).sum::<u64>();
        let mut total = 0;
        for number in 0..keys {
            let (sum, count) = (slice.estimate(&key(number)), count(number));
            assert!(sum.lower <= count && count <= sum.upper, "key {number}: {sum:?}, but {count}");
            assert!(sum.lower <= sum.count && sum.count <= sum.upper && sum.upper <= weight);
            assert!(!is_exact || sum.lower == sum.upper, "key {number}: {sum:?}");
            // Over time it is the same.
            let points = slice.series(&key(number)).into_iter().flat_map(|series| series.points);
            let (mut lower, mut upper) = (0, 0);
            for point in points {
                lower += point.sum.lower;
                upper += point.sum.upper;
            }
            assert!(lower <= count && count <= upper, "key {number}");
            total += sum.count;
        }
        let top = slice.top(5);
        assert!(top.is_sorted_by(|a, b| a.sum.count >= b.sum.count));
        if is_exact {
            assert_eq!(total, weight);
            let mut counts: Vec<u64> = (0..keys).map(count).filter(|&count| count > 0).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts.truncate(5);
            assert_eq!(top.iter().map(|answer| answer.sum.count).collect::<Vec<_>>(), counts);
        }
        let wanted = |key: &[u8]| key.ends_with(b"7");
        let (found, sum) = slice.sum_where(wanted);
        let truth: u64 = (0..keys).filter(|&number| wanted(&key(number))).map(count).sum();
        assert!(found > 0 || truth == 0 || !is_exact);
        assert!(sum.lower <= truth && (!is_exact || sum.upper == truth), "{sum:?}, but {truth}");
    }
}

#[test]
fn ranges_hold_the_truth() {
    let mut rng = Rng(3);
    for run in 0..30u128 {
        let kinds: [&[Config]; 3] = [&[exact(run), exact(run + 1)], &[delta(run)], &[delta(run), exact(run)]];
        let which = run as usize % 3;
        // More than the table of an exact device holds.
        let keys = if which == 0 { 1_500 } else { 40 };
        let mut world = world(kinds[which], 2 + rng.below(12) as usize, keys, &mut rng);
        let end = 1_000_000 + 15_000 * 14;
        for _ in 0..20 {
            let (one, other) = (900_000 + rng.below(end) as i64, 900_000 + rng.below(end) as i64);
            world.check(TimeRange { from_ms: one.min(other), to_ms: one.max(other) }, keys, which == 0);
        }
        // From the very end of one epoch to that of another.
        let ends: Vec<i64> = world.epochs.iter().flatten().map(|epoch| epoch.ended_ms).collect();
        for (&one, &other) in ends.iter().zip(&ends[1..]) {
            world.check(TimeRange { from_ms: one.min(other), to_ms: one.max(other) }, keys, which == 0);
        }
        // Everything that is kept, and nothing at all.
        world.check(TimeRange { from_ms: i64::MIN, to_ms: i64::MAX }, keys, which == 0);
        world.check(TimeRange { from_ms: 5, to_ms: 5 }, keys, which == 0);
    }
}

#[test]
fn neighbouring_ranges_add_up_and_changes_compare_them() {
    let mut rng = Rng(8);
    let mut world = world(&[exact(1), exact(2)], KEPT, 30, &mut rng);
    let snapshot = world.snapshot();
    let after = TimeRange { from_ms: 1_035_000, to_ms: 1_070_000 };
    let before = after.before();
    assert_eq!(before, TimeRange { from_ms: 1_000_000, to_ms: 1_035_000 });
    let [first, second, both] = [before, after, TimeRange { from_ms: before.from_ms, to_ms: after.to_ms }]
        .map(|range| snapshot.over(Some(range)));
    for number in 0..30 {
        let [a, b, c] = [&first, &second, &both].map(|slice| slice.estimate(&key(number)).count);
        assert_eq!(a + b, c);
    }
    let changes = second.changes(&first, 10);
    assert!(changes.is_sorted_by(|a, b| a.difference().abs() >= b.difference().abs()));
    let difference = |number: u64| {
        let of = |slice: &ucl_collector::Slice<'_>| slice.estimate(&key(number)).count as i128;
        of(&second) - of(&first)
    };
    let mut truth: Vec<u128> = (0..30).map(|number| difference(number).unsigned_abs()).collect();
    truth.sort_unstable_by(|a, b| b.cmp(a));
    let found: Vec<u128> = changes.iter().map(|change| change.difference().unsigned_abs()).collect();
    assert_eq!(found, truth[..10]);
    assert!(changes.iter().all(|change| change.named && change.after.lower == change.after.upper));
}

/// A restart keeps what each epoch had.
#[test]
fn ranges_survive_a_restart() {
    let mut rng = Rng(5);
    let mut world = world(&[exact(1), delta(2)], 9, 30, &mut rng);
    let range = TimeRange { from_ms: 1_050_000, to_ms: i64::MAX };
    let answers = |world: &mut World| {
        let snapshot = world.snapshot();
        let slice = snapshot.over(Some(range));
        let sums: Vec<_> = (0..30).map(|number| slice.estimate(&key(number))).collect();
        (slice.coverage(), sums, slice.top(9))
    };
    let before = answers(&mut world);
    let infos = |world: &World| {
        let infos = world.collector.streams(&Selection::tenant("t".parse().unwrap()));
        infos.into_iter().map(|info| info.uplink_bytes).collect::<Vec<u64>>()
    };
    let uplink = infos(&world);
    assert!(uplink.iter().all(|&bytes| bytes > 500), "{uplink:?}");
    for flush in [false, true] {
        if flush {
            world.collector.flush().unwrap();
        }
        let World { collector, epochs } = world;
        world = World { collector: Collector::open(collector.into_storage(), settings()).unwrap(), epochs };
        assert_eq!(answers(&mut world), before);
        assert_eq!(infos(&world), uplink);
    }
}
