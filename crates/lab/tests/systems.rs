//! One table of cases × every method: guarantees hold against exact counts, in structures small
//! enough to collide.

use ucl_lab::{Experiment, Measured, Method, MethodRegistry, Options, Recording, Row, measure};
use ucl_sketch::{Base, CounterBits, KeyFormat, Shape};
use ucl_streams::{BatchBuf, ReadOptions};

const BUDGET: usize = 10 << 10;

fn quick() -> Options {
    Options { epochs: Some(2), window: Some(4), ..Options::default() }
}

fn generated(source: &str) -> Recording {
    Recording::read(&[source.parse().unwrap()], &ReadOptions::default()).unwrap()
}

/// Items made by hand: `(key, weight)`.
fn recorded(name: &str, items: impl Iterator<Item = (Vec<u8>, u64)>) -> Recording {
    let mut buffer = BatchBuf::new();
    items.for_each(|(key, weight)| buffer.push(&key, weight));
    let mut recording = Recording::new(name);
    recording.extend(buffer.as_batch());
    recording
}

fn streams() -> Vec<Recording> {
    let skewed = |i: u64| (i * i * 7 + i / 3) % (1 + i % 900);
    vec![
        generated("zipf:1.1:12000:3000"),
        generated("caida-like:6000"),
        recorded("words", (0..6000).map(|i| (format!("/page/{}", skewed(i)).into_bytes(), 1))),
        recorded("weighted", (0..6000).map(|i| (skewed(i).to_le_bytes().to_vec(), 1 + i % 1500))),
        recorded("20-byte keys", (0..3000).map(|i| ([skewed(i) as u8; 20].to_vec(), 1))),
        recorded("one item", std::iter::once((b"only".to_vec(), 3))),
    ]
}

fn run(method: &Method, stream: &Recording, options: &Options) -> Row {
    measure(method, stream, BUDGET, 5, options).row
}

#[test]
fn every_method_keeps_its_promises_on_every_stream() {
    let registry = MethodRegistry::standard();
    for stream in &streams() {
        for method in registry.methods() {
            let row = run(method, stream, &quick());
            let what = format!("{} on {}: {row:?}", method.name, stream.name());
            assert_eq!(row.error, None, "{what}");
            let bounded = match ucl_zoo::find(method.name) {
                Some(entry) => entry.guarantees.bounded,
                None => method.name != "sample",
            };
            assert_eq!(row.bound_violations, bounded.then_some(0), "{what}");
            assert_eq!((row.items, row.keys), (stream.items(), stream.truth().distinct() as u64), "{what}");
            assert_eq!(row.memory_parts.values().sum::<usize>(), row.memory_used.unwrap(), "{what}");
            if method.baseline {
                assert_eq!((row.aae, row.wmrd, row.coverage), (Some(0.0), Some(0.0), Some(1.0)), "{what}");
            } else if method.name == "sample" {
                // And the record and the header of which only a part is paid for yet.
                let given = stream.items() as f64 * 0.1;
                let sent = row.uplink_bytes.unwrap() as f64;
                assert!(sent <= given + 50.0 && sent >= given * 0.9, "{what}");
            } else {
                assert!(row.memory_used.unwrap() <= BUDGET, "{what}");
                assert!(row.memory_used.unwrap() > BUDGET * 9 / 10, "the budget is there to be used: {what}");
            }
            if method.name.starts_with("ucl-") {
                let uplink = row.uplink_bytes.unwrap() as f64;
                assert_eq!(row.uplink_bytes_per_item.unwrap(), uplink / stream.items() as f64, "{what}");
                assert!(row.coverage.unwrap() > 0.5 && row.snapshots.unwrap() >= 1, "{what}");
                assert!(row.control_bytes.unwrap() > 0, "{what}");
                assert!(row.decode_ms.unwrap() > 0.0, "{what}");
            }
            if ["ucl-exact", "ucl-budget", "flowcache"].contains(&method.name) {
                assert_eq!((row.aae, row.coverage), (Some(0.0), Some(1.0)), "{what}");
            }
        }
    }
}

#[test]
fn a_seed_fixes_everything_but_the_clock() {
    let registry = MethodRegistry::standard();
    let stream = generated("zipf:1.1:6000:2000");
    for method in registry.methods() {
        let timeless = |seed| {
            // A mirrored table counts its coder and models too, and a budget has a sketch beside
            // it.
            let budget = match method.name {
                "ucl-budget" => 8 << 10,
                "ucl-exact" => 4 << 10,
                _ => 2 << 10,
            };
            let row = measure(method, &stream, budget, seed, &quick()).row;
            Row {
                insert_mops: None,
                query_mops: None,
                bucket_query_mops: None,
                train_seconds: None,
                decode_ms: None,
                ..row
            }
        };
        assert_eq!(timeless(1), timeless(1), "{}", method.name);
        if ["ucl-exact", "ucl-budget", "flowcache"].contains(&method.name) {
            assert_eq!((timeless(1).aae, timeless(2).aae), (Some(0.0), Some(0.0)));
            assert_ne!(timeless(1).uplink_bytes, timeless(2).uplink_bytes);
        } else if !method.baseline {
            // What is without error differs in its uplink.
            let outcome = |row: Row| (row.aae, row.uplink_bytes.filter(|_| row.aae == Some(0.0)));
            assert_ne!(outcome(timeless(1)), outcome(timeless(2)), "{}", method.name);
        }
    }
}

/// Each key is drawn as often as its share of the stream, whatever its length.
#[test]
fn samples_are_unbiased() {
    let method = *MethodRegistry::standard().find("sample").unwrap();
    let key = |i: u64| vec![b'a' + (i % 4) as u8; 1 + 7 * (i % 4) as usize];
    let stream = recorded("lengths", (0..40_000u64).map(|i| (key(i * i % 9_973), 1 + i % 3)));
    let weight: u64 = stream.truth().iter().map(|(_, count)| count).sum();
    let mut errors = [0.0; 4];
    for seed in 0..20 {
        let options = Options { uplink: Some(2.0), ..quick() };
        let system = measure(&method, &stream, BUDGET, seed, &options).system.unwrap();
        for i in 0..4 {
            let truth = stream.truth().get(&key(i));
            errors[i as usize] += (system.estimate(&key(i)).estimate as f64 - truth as f64) / weight as f64 / 20.0;
        }
    }
    assert!(errors.iter().all(|error| error.abs() < 0.004), "{errors:?}");
}

#[test]
fn sent_keys_are_counted_byte_by_byte() {
    let method = *MethodRegistry::standard().find("send-keys").unwrap();
    let sent = |stream: &Recording| run(&method, stream, &quick()).uplink_bytes;
    let key = |i: u64| vec![b'x'; 1 + i as usize % 3];
    assert_eq!(sent(&recorded("plain", (0..6).map(|i| (key(i), 1)))), Some(12));
    assert_eq!(sent(&recorded("weighted", (0..6).map(|i| (key(i), 1 + i)))), Some(12 + 6 * 8));
}

#[test]
fn the_last_epoch_is_sent_once() {
    let method = *MethodRegistry::standard().find("ucl-delta").unwrap();
    let snapshots = |items: u64, interval| {
        let options = Options { interval: Some(interval), ..quick() };
        run(&method, &generated(&format!("zipf:1.1:{items}:500")), &options).snapshots
    };
    assert_eq!(snapshots(3000, Some(1000)), Some(3), "the third epoch was closed already");
    assert_eq!(snapshots(3001, Some(1000)), Some(4));
    assert_eq!(snapshots(3000, None), Some(1));
}

#[test]
fn the_learned_decoder_says_who_answered_for_it() {
    let method = *MethodRegistry::standard().find("ucl-learned").unwrap();
    let stream = generated("zipf:1.1:3000:500");
    let trained = measure(&method, &stream, BUDGET, 1, &quick());
    assert_eq!((trained.row.answered_by, trained.row.train_epochs), (None, Some(2)));
    assert_eq!(trained.system.unwrap().extras().losses.len(), 2);
    let untrained = run(&method, &stream, &Options { interval: Some(None), ..quick() });
    assert_eq!((untrained.answered_by.as_deref(), untrained.train_epochs), (Some("em"), None));
}

#[test]
fn what_cannot_run_says_why() {
    let registry = MethodRegistry::standard();
    let stream = generated("zipf:1.1:1000:100");
    let error = |name: &str, budget, options: &Options| {
        let Measured { row, system } = measure(registry.find(name).unwrap(), &stream, budget, 1, options);
        assert!(system.is_none() && row.aae.is_none() && row.memory_budget == budget);
        row.error.unwrap()
    };
    assert_eq!(
        error("ucl-em", 100, &quick()),
        "a budget of 100 bytes is too small for 4-byte keys: at least 992 bytes are needed"
    );
    assert_eq!(error("cs", 15, &quick()), "a budget of 15 bytes is too small: at least 16 are needed");
    let signed = Options { shape: Some(Shape { base: Base::CountSketch, ..Shape::PAPER_64KB }), ..quick() };
    assert_eq!(
        error("ucl-delta", 65_536, &signed),
        "the decoder 'delta' cannot decode this sketch: it needs columns without negative coefficients"
    );
    let none = Options { interval: Some(Some(0)), ..quick() };
    assert!(error("ucl-em", BUDGET, &none).starts_with("an interval of 0 items"));
}

#[test]
fn plain_sketches_say_when_a_counter_overflows() {
    let stream = recorded("heavy", (0..4u64).map(|_| (b"key!".to_vec(), 1 << 31)));
    for name in ["cm", "cs"] {
        let row = run(MethodRegistry::standard().find(name).unwrap(), &stream, &quick());
        assert_eq!(row.error.as_deref(), Some("a 32-bit counter overflowed: the stream is too heavy for this method"));
    }
}

#[test]
fn a_shape_by_hand_is_the_others_budget() {
    let registry = MethodRegistry::standard();
    let shape = Shape { slots: 100, width: 128, counter_bits: CounterBits::B8, ..Shape::PAPER_64KB };
    let stream = generated("zipf:1.1:5000:2000");
    let experiment = Experiment {
        methods: registry.select(["ucl-em", "cm"]).unwrap(),
        budgets: vec![1, 2, 3],
        seeds: vec![1, 2],
        options: Options { shape: Some(shape), ..quick() },
    };
    let mut seen = 0;
    let rows = experiment.run(&stream, |_| seen += 1);
    let bytes = shape.memory(KeyFormat::Fixed(4)).total();
    assert_eq!((rows.len(), seen), (4, 4));
    assert!(rows.iter().all(|row| row.memory_budget == bytes && row.error.is_none()));
    assert_eq!(rows[0].memory_used, Some(bytes));
    assert_eq!((rows[0].shape["slots"], rows[0].counter_bits, rows[0].rule.as_deref()), (100, Some(8), Some("paper")));
    assert!(rows[2].memory_used.unwrap() > bytes - 16);
}

#[test]
fn all_leaves_the_yardsticks_out() {
    let registry = MethodRegistry::standard();
    let names = |asked: &[&str]| -> Vec<&str> {
        registry.select(asked.iter().copied()).unwrap().iter().map(|method| method.name).collect()
    };
    assert_eq!(names(&["cs", "cm", "cs"]), ["cs", "cm"]);
    assert!(!names(&["all"]).contains(&"exact-map"));
    assert_eq!(names(&["all", "exact-map"]).last(), Some(&"exact-map"));
}
