//! The facade: both planes together, in every way of running them.

use proptest::prelude::*;
use rayon::prelude::*;
use ucl_data_plane::DataPlane;
use ucl_sketch::plan::{BudgetError, Request, narrow, plan, wide};
use ucl_sketch::{
    Base, CounterBits, DecoderKind, Epochs, Execution, HeavyKind, KeyFormat, Mode, ReportRule, Source, UclSketch,
};
use ucl_streams::SplitMix64;

/// A skewed stream of 4-byte keys, the same every time.
fn stream(items: usize) -> Vec<[u8; 4]> {
    let mut random = SplitMix64::new(12_345);
    (0..items).map(|_| ((1.0 / (random.unit() + 1e-4)) as u32 * 7 + random.below(4) as u32).to_le_bytes()).collect()
}

fn delta() -> ucl_sketch::Builder {
    UclSketch::builder().decoder(DecoderKind::Delta)
}

fn small(decoder: DecoderKind) -> ucl_sketch::Builder {
    UclSketch::builder().memory("8KB").key_bytes(4).seed(3).decoder(decoder).interval(500)
}

#[test]
fn background_and_wire_answer_as_synchronous_does() {
    let keys = stream(20_000);
    let mut here = small(DecoderKind::Em).build().unwrap();
    let mut there = small(DecoderKind::Em).execution(Execution::Background).build().unwrap();
    for part in keys.chunks(777) {
        here.insert_batch(part).unwrap();
        there.insert_batch(part).unwrap();
    }
    let (a, b) = (here.query_view().unwrap(), there.query_view().unwrap());
    assert_eq!(a.keys(), b.keys());
    for key in &keys {
        assert_eq!(a.estimate(key), b.estimate(key));
    }
    // Delta may add epochs together when it lags, so only what does not depend on the resolution is
    // compared.
    let mut there = small(DecoderKind::Delta).execution(Execution::Background).build().unwrap();
    there.insert_batch(&keys).unwrap();
    let view = there.query_view().unwrap();
    let mut exact = std::collections::HashMap::<[u8; 4], u64>::new();
    keys.iter().for_each(|&key| *exact.entry(key).or_default() += 1);
    for (key, count) in exact {
        let answer = view.estimate(&key);
        assert!(answer.lower <= count && count <= answer.upper);
    }
}

/// More reports than a batch has, with and without cuts; more epochs than may wait.
#[test]
fn pipelined_is_synchronous_sooner() {
    let keys: Vec<[u8; 4]> = (0..60_000u32).map(|n| (n * n % 40_009).to_le_bytes()).collect();
    for interval in [None, Some(200), Some(30_000)] {
        let build = || small(DecoderKind::Delta).interval(interval).build().unwrap();
        let (mut here, mut there) = (build(), build().pipelined());
        for part in keys.chunks(7_777) {
            here.insert_batch(part).unwrap();
            there.insert_batch(part).unwrap();
        }
        assert!(here.to_bytes().unwrap() == there.to_bytes().unwrap(), "every {interval:?}");
    }
}

#[test]
fn what_goes_wrong_in_the_other_thread_is_said() {
    let mut sketch = small(DecoderKind::Delta).build().unwrap().pipelined();
    sketch.insert_batch(&stream(5_000)).unwrap();
    sketch.with_control(|control| control.fail("the link went down".into()));
    sketch.insert_batch(&stream(5_000)).unwrap();
    let error = sketch.query_view().unwrap_err();
    assert_eq!(error.to_string(), "the reports can no longer be followed: the link went down");
}

/// Control planes decode in rayon's pool: it must not be full of threads that wait for them.
#[test]
fn pipelined_sketches_in_all_threads_of_the_pool_do_not_wait_for_each_other() {
    let keys = stream(20_000);
    let mut alone = small(DecoderKind::Delta).build().unwrap();
    alone.insert_batch(&keys).unwrap();
    let want = alone.to_bytes().unwrap();
    let begin = || {
        let mut sketch = small(DecoderKind::Delta).build().unwrap().pipelined();
        sketch.insert_batch(&keys).unwrap();
        sketch
    };
    let begun: Vec<UclSketch> = (0..3 * rayon::current_num_threads()).map(|_| begin()).collect();
    begun.into_par_iter().for_each(|mut elsewhere| {
        assert!(elsewhere.to_bytes().unwrap() == want && begin().to_bytes().unwrap() == want);
    });
}

#[test]
fn delta_does_not_depend_on_the_number_of_threads() {
    let keys = stream(60_000);
    let states = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut sketch = small(DecoderKind::Delta).build().unwrap();
            sketch.insert_batch(&keys).unwrap();
            let answers: Vec<_> = sketch.query_view().unwrap().all().collect();
            (sketch.to_bytes().unwrap(), answers)
        })
    });
    assert!(states[0] == states[1] && states[0] == states[2]);
}

#[test]
fn a_control_plane_accounts_for_at_most_80_bytes_a_key_and_the_key() {
    // Keys of a number below 20,000 that are skewed, all of them once at least.
    let mut random = SplitMix64::new(9);
    let skewed = |n: u32| if n.is_multiple_of(20) { n / 20 } else { 20_000f64.powf(random.unit()) as u32 };
    let keys: Vec<[u8; 4]> = (0..400_000).map(skewed).map(u32::to_le_bytes).collect();
    for (interval, fixed) in [(4_000, true), (16_000, true), (64_000, true), (16_000, false)] {
        let mut builder = delta().memory("64KB").expected_keys(20_000).interval(interval).seed(1);
        if fixed {
            builder = builder.key_bytes(4);
        }
        let mut sketch = builder.build().unwrap();
        for part in keys.chunks(16_000) {
            if fixed {
                sketch.insert_batch(part).unwrap();
            } else {
                part.iter().for_each(|key| sketch.insert(key).unwrap());
            }
            let known = sketch.query_view().unwrap().keys();
            let memory = sketch.control_memory();
            // Of few keys it is the sketch that takes the memory.
            if known > 12_000 {
                let beside = memory.total() - memory.part("keys");
                assert!(beside <= 80 * known, "every {interval}, {known} keys: {memory:?}");
            }
        }
        assert!(sketch.query_view().unwrap().keys() > 19_000);
    }
}

#[test]
fn counters_get_more_where_an_epoch_has_far_more_keys_than_there_are_of_them() {
    let keys = KeyFormat::Fixed(4);
    let filter = |interval| {
        let request = Request { memory: 8 << 10, keys, expected_keys: Some(8_192), interval, ..Request::default() };
        let shape = narrow(request).unwrap();
        assert_eq!(shape.counter_bits, CounterBits::B4);
        shape.memory(keys).part("bloom") as f64 / request.memory as f64
    };
    // About 2,300 counters of 8 bits beside a filter of 65%.
    assert!(filter(Some(3_000)) > 0.55, "few keys an epoch");
    for long in [Some(16_000), None] {
        assert!(filter(long) < 0.45, "every {long:?}");
    }
}

#[test]
fn measuring_the_uplink_changes_no_answer() {
    let keys = stream(20_000);
    let (mut plain, mut measured) =
        (small(DecoderKind::Delta).build().unwrap(), small(DecoderKind::Delta).measure_uplink(true).build().unwrap());
    plain.insert_batch(&keys).unwrap();
    measured.insert_batch(&keys).unwrap();
    assert_eq!(plain.uplink(), None);
    let uplink = measured.uplink().unwrap();
    assert!(uplink.total() > 0 && uplink.messages >= 40, "one message an epoch at least: {uplink:?}");
    assert!(plain.query_view().unwrap().all().eq(measured.query_view().unwrap().all()));
}

#[test]
fn how_items_are_handed_over_changes_no_answer() {
    let keys = stream(5_000);
    let mut batch = small(DecoderKind::Delta).build().unwrap();
    let mut single = small(DecoderKind::Delta).build().unwrap();
    let mut flat = small(DecoderKind::Delta).build().unwrap();
    batch.insert_batch(&keys).unwrap();
    keys.iter().for_each(|key| single.insert(key).unwrap());
    flat.insert_flat(4, keys.as_flattened(), Some(&vec![1; keys.len()])).unwrap();
    let view = batch.query_view().unwrap();
    assert!(view.all().eq(single.query_view().unwrap().all()));
    assert!(view.all().eq(flat.query_view().unwrap().all()));
}

#[test]
fn keys_of_any_length_are_counted_and_named() {
    let mut sketch = delta().memory("4KB").seed(5).interval(100).build().unwrap();
    for i in 0..3_000u32 {
        sketch.insert_weighted(format!("/user/{}/profile", i % 40).as_bytes(), 2).unwrap();
    }
    let view = sketch.query_view().unwrap();
    let answer = view.estimate(b"/user/7/profile");
    assert!(answer.lower <= 150 && 150 <= answer.upper, "{answer:?}");
    let names: Vec<&[u8]> = view.top(40).iter().map(|&(id, _)| view.registry().key(id)).collect();
    assert!(names.contains(&&b"/user/39/profile"[..]));
    assert_eq!(view.estimate(b"never seen").source, Source::Unknown);
    assert!(sketch.insert(vec![0; 65_536]).is_err());
}

#[cfg(feature = "learned")]
#[test]
fn the_learned_decoder_falls_back_until_it_is_trained_and_says_so() {
    let settings = ucl_sketch::Settings {
        decoder: DecoderKind::Learned,
        window: 16,
        train_every: Some(20),
        learned: ucl_sketch::learned::Config {
            epochs: 3,
            hidden: 16,
            neck: 8,
            bucket_length: 64,
            ..Default::default()
        },
        fallback: ucl_sketch::Fallback::WhenUntrained,
        ..Default::default()
    };
    for execution in [Execution::Synchronous, Execution::Background] {
        let mut sketch = small(DecoderKind::Learned).settings(settings.clone()).execution(execution).build().unwrap();
        let keys = stream(15_000);
        sketch.insert_batch(&keys[..5_000]).unwrap();
        let view = sketch.query_view().unwrap();
        assert_eq!((view.decoder(), view.answered_by()), (DecoderKind::Learned, DecoderKind::Em));
        assert!(view.all().any(|(_, answer)| answer.source == Source::Fallback));
        sketch.insert_batch(&keys[5_000..]).unwrap();
        // In the background the training of the twentieth cut may still be under way; asked for, it
        // is done here.
        sketch.train().unwrap();
        assert_eq!(sketch.query_view().unwrap().answered_by(), DecoderKind::Learned);
    }
}

/// A network of three epochs knows nothing yet; EM predicts the row left out better, and so it
/// answers.
#[cfg(feature = "learned")]
#[test]
fn a_worse_network_is_not_trusted() {
    let settings = ucl_sketch::Settings {
        decoder: DecoderKind::Learned,
        window: 16,
        train_every: None,
        learned: ucl_sketch::learned::Config {
            epochs: 3,
            hidden: 16,
            neck: 8,
            bucket_length: 64,
            ..Default::default()
        },
        ..Default::default()
    };
    let mut sketch = small(DecoderKind::Learned).settings(settings).build().unwrap();
    sketch.insert_batch(&stream(15_000)).unwrap();
    sketch.train().unwrap();
    let verdict = sketch.with_control(|control| control.network().unwrap().verdict()).unwrap();
    assert!(verdict.prefers_classic(), "{verdict:?}");
    let view = sketch.query_view().unwrap();
    assert_eq!(view.answered_by(), DecoderKind::Em);
    assert!(view.all().any(|(_, answer)| answer.source == Source::Fallback));
}

#[cfg(feature = "learned")]
#[test]
fn synchronous_training_is_deterministic() {
    let settings = ucl_sketch::Settings {
        decoder: DecoderKind::Learned,
        window: 8,
        train_every: Some(8),
        learned: ucl_sketch::learned::Config { epochs: 2, hidden: 8, neck: 8, bucket_length: 64, ..Default::default() },
        ..Default::default()
    };
    let answers = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut sketch = small(DecoderKind::Learned).settings(settings.clone()).build().unwrap();
            sketch.insert_batch(&stream(10_000)).unwrap();
            sketch.query_view().unwrap().all().collect::<Vec<_>>()
        })
    };
    assert_eq!(answers(1), answers(3));
}

#[test]
fn bad_requests_are_named() {
    let message = |builder: ucl_sketch::Builder| builder.build().expect_err("refused").to_string();
    let builder = UclSketch::builder;
    assert_eq!(
        message(builder().memory("64 parsecs")),
        "'64 parsecs' is not a size: write a number with an optional unit, as in 65536, 64KB, 1.5MB"
    );
    assert!(message(builder().memory("100")).starts_with("a budget of 100 bytes is too small for keys of any length"));
    assert!(message(builder().interval(0)).starts_with("an interval of 0 items"));
    assert!(message(builder().base(Base::CountSketch)).starts_with("the decoder 'delta' cannot decode this sketch"));
    assert!(message(builder().key_bytes(70_000)).contains("longer than 65535"));
    let mut sketch = builder().key_bytes(8).build().unwrap();
    assert!(sketch.insert(b"four").unwrap_err().to_string().contains("a key of 4 bytes does not fit"));
    assert!(sketch.insert_batch(&[[0; 4]]).is_err());
    assert_eq!(sketch.items(), 0);
}

#[test]
fn the_papers_shapes_are_near_its_table() {
    // 4-byte keys; the paper's table for Retail: slots, depth, width.
    let table = [
        ("16KB", 500, 4, 512),
        ("32KB", 1500, 4, 512),
        ("48KB", 2000, 4, 1024),
        ("64KB", 3000, 4, 1024),
        ("96KB", 4500, 6, 1024),
        ("128KB", 6000, 8, 1024),
    ];
    for (memory, slots, rows, width) in table {
        let memory = memory.parse::<ucl_sketch::Bytes>().unwrap().0;
        let request = Request { memory, keys: KeyFormat::Fixed(4), ..Request::default() };
        let shape = wide(request).unwrap();
        let near =
            |a: u32, b: u32, factor: f64| f64::from(a) < f64::from(b) * factor && f64::from(b) < f64::from(a) * factor;
        assert_eq!(shape.rows, rows);
        assert!(near(shape.slots, slots, 1.5) && near(shape.width, width, 1.1), "{memory}: {shape:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every budget the planner accepts is kept and well used; every one it refuses is below the
    /// least it names.
    #[test]
    fn plans_keep_to_the_budget(
        memory in prop_oneof![64usize..6_000, 64usize..300_000],
        key_bytes in prop::sample::select(&[4usize, 8, 13, 16, 40][..]),
        expected in prop::option::of(1u64..2_000_000),
        bits in prop::option::of(prop::sample::select(&CounterBits::ALL[..])),
        decoder in prop::sample::select(&DecoderKind::ALL[..]),
        interval in prop::option::of(1u64..100_000),
        base in prop::sample::select(&Base::ALL[..]),
        heavy in prop::sample::select(&HeavyKind::ALL[..]),
    ) {
        let keys = KeyFormat::for_key_bytes(key_bytes).unwrap();
        let asked = Request { memory, keys, expected_keys: expected, counter_bits: bits, ..Request::default() };
        let request = Request { interval, base, heavy, ..asked };
        match plan(Mode::Sketch(decoder), request) {
            Ok(plan) => {
                let watching = if plan.epochs == Epochs::ByLoad { DataPlane::<4>::KNOWN_KEYS_BYTES } else { 0 };
                let used = plan.shape.memory(keys).total() + watching;
                prop_assert!(used <= memory, "{used} of {memory}: {:?}", plan.shape);
                prop_assert!(memory < 2_000 || used * 100 >= memory * 97, "only {used} of {memory}: {:?}", plan.shape);
                prop_assert!(plan.shape.validate().is_ok());
            }
            Err(BudgetError::TooSmall { least, .. }) => {
                prop_assert!(memory < least);
                let enough = Request { memory: least, ..request };
                prop_assert!(plan(Mode::Sketch(decoder), enough).is_ok(), "not even {least}");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[test]
fn narrow_shapes_have_many_more_counters() {
    let request = Request { memory: 65_536, keys: KeyFormat::Fixed(4), ..Request::default() };
    let (narrow, wide) = (narrow(request).unwrap(), wide(request).unwrap());
    assert!(narrow.geometry().counters() > 8 * wide.geometry().counters());
    assert_eq!(plan(Mode::Sketch(DecoderKind::Delta), request).unwrap().rule, ReportRule::Generations);
    assert_eq!(narrow.counter_bits, CounterBits::B8);
    let short = plan(Mode::Sketch(DecoderKind::Delta), Request { interval: Some(1_000), ..request }).unwrap();
    assert_eq!(short.shape.counter_bits, CounterBits::B4, "short epochs need few bits");
}

/// The last epochs of streams that were merged are the last epochs of each, however many there are
/// and whether or not their epochs had just ended.
#[test]
fn the_last_epochs_of_merged_streams_are_those_of_each() {
    for items in [4_000u32, 3_970] {
        let device = |first: u32| {
            let builder = delta().memory("16KB").key_bytes(4).interval(100).retain_epochs(50).seed(1);
            let mut sketch = builder.build().unwrap();
            for item in 0..items {
                sketch.insert(((first + item) % 10).to_le_bytes()).unwrap();
            }
            sketch
        };
        let mut merged = device(0);
        merged.merge(device(3)).unwrap();
        merged.merge(device(7)).unwrap();
        let view = merged.query_view().unwrap();
        let series = view.series();
        assert_eq!(series.len(), items.div_ceil(100) as usize);
        let last = if items % 100 == 0 { 10.0 } else { f64::from(items % 100 / 10) };
        for (key, _) in view.all() {
            let name = u32::from_le_bytes(view.registry().key(key).try_into().unwrap());
            assert_eq!((series.last(key, 1), series.last(key, 3)), (3.0 * last, 3.0 * (last + 20.0)), "key {name}");
        }
        let changes = series.changes(series.len() - 4..series.len() - 2, series.len() - 2.., 1);
        assert!((changes[0].after - changes[0].before).abs() < 1e-9, "nothing changed: {changes:?}");
    }
}

/// Long keys are reported at first sight, before anything of them is in the sketch; but they came.
#[test]
fn known_keys_came_once_at_least() {
    let mut sketch = delta().memory("2KB").interval(500).seed(1).build().unwrap();
    for item in 0..20_000u32 {
        sketch.insert_weighted(format!("key {}", item % 3_000).as_bytes(), 3).unwrap();
    }
    let view = sketch.query_view().unwrap();
    assert!(view.keys() > 1_000 && view.all().all(|(_, answer)| answer.lower >= 3 && answer.estimate >= 3));
}
