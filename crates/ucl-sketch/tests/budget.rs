//! Mode budget: exact while the allowance lasts, within the allowance when it does not, and honest
//! about it in both cases.

use std::collections::HashMap;

use ucl_sketch::plan::WEIGHTED_COUNT_BITS;
use ucl_sketch::{BuildError, Builder, ByteKey, DecoderKind, Mode, QueryView, Settings, Source, Station, UclSketch};
use ucl_streams::ZipfKeys;

type Keys = Vec<[u8; 4]>;

fn zipf(skew: f64, keys: u64, items: usize) -> Keys {
    ZipfKeys::new(skew, keys, 7).take(items).collect()
}

/// A steady stream, with a burst of new keys in the middle.
fn with_burst() -> (Keys, usize, usize) {
    let mut keys = zipf(1.3, 4_000, 400_000);
    let (from, to) = (120_000, 140_000);
    (from..to).for_each(|at| keys[at] = (1 << 31 | at as u32).to_le_bytes());
    (keys, from, to)
}

fn builder(memory: &str) -> Builder<ByteKey> {
    UclSketch::builder().memory(memory).key_bytes(4).seed(3).measure_uplink(true)
}

fn truth(keys: &[[u8; 4]]) -> HashMap<[u8; 4], u64> {
    let mut truth = HashMap::new();
    keys.iter().for_each(|key| *truth.entry(*key).or_default() += 1);
    truth
}

/// The mean absolute error; every range has to hold the truth.
fn error(view: &QueryView, truth: &HashMap<[u8; 4], u64>) -> f64 {
    let errors = truth.iter().map(|(key, &count)| {
        let answer = view.estimate(key);
        assert!(answer.lower <= count && count <= answer.upper, "{key:?} has {count}: {answer:?}");
        answer.estimate.abs_diff(count)
    });
    errors.sum::<u64>() as f64 / truth.len() as f64
}

/// Half of what exact counting takes, with a cut every 64,000 items.
fn half_of_exact(memory: &str, keys: &[[u8; 4]]) -> f64 {
    let mut exact = builder(memory).mode(Mode::Exact).interval(64_000).build().unwrap();
    exact.insert_batch(keys).unwrap();
    exact.cut();
    exact.uplink().unwrap().total() as f64 / keys.len() as f64 / 2.0
}

#[test]
fn without_a_limit_it_is_exact() {
    let keys = zipf(1.1, 20_000, 200_000);
    let mut sketch = builder("16KB").mode(Mode::Budget).build().unwrap();
    sketch.insert_batch(&keys).unwrap();
    let view = sketch.query_view().unwrap();
    assert_eq!((error(&view, &truth(&keys)), view.absorbed(), view.mean_bound_width()), (0.0, 0, 0.0));
    assert!(!view.filter_overflows());
}

/// On every stream the uplink stays within the allowance, the last cut included; every range holds;
/// and the error is below that of the sketches that send as little, and of what is not counted.
#[test]
fn half_of_what_exact_takes() {
    for (keys, memory) in [
        (zipf(1.1, 100_000, 600_000), "16KB"),
        (zipf(1.1, 100_000, 600_000), "64KB"),
        (zipf(0.7, 20_000, 400_000), "32KB"),
        (zipf(1.5, 50_000, 500_000), "16KB"),
        (with_burst().0, "8KB"),
    ] {
        let limit = half_of_exact(memory, &keys);
        let truth = truth(&keys);
        let measure = |builder: Builder<ByteKey>| {
            let mut sketch = builder.build().unwrap();
            sketch.insert_batch(&keys).unwrap();
            let error = error(&sketch.query_view().unwrap(), &truth);
            sketch.cut();
            (error, sketch.uplink().unwrap().total() as f64 / keys.len() as f64)
        };
        let (error, uplink) = measure(builder(memory).uplink_per_item(limit));
        assert!(uplink <= limit, "{memory}: {uplink} of {limit}");
        assert!(uplink > 0.8 * limit, "{memory}: {uplink} of {limit} is used");
        let sketches = [
            builder(memory).decoder(DecoderKind::Em),
            builder(memory).decoder(DecoderKind::Delta).interval(16_000),
            builder(memory).decoder(DecoderKind::Delta).interval(128_000),
        ];
        for sketch in sketches {
            let (other, sent) = measure(sketch);
            assert!(sent > limit || error <= other, "{memory}: {error}, but {other} with {sent} of {limit}");
        }
        let nothing = keys.len() as f64 / truth.len() as f64;
        assert!(error < nothing / 2.0, "{memory}: {error} of {nothing}");
    }
}

/// Packets by their bytes. The defect: 8-bit counters behind the table overflowed at each of them,
/// and what they carried went up the link whatever the limit; that took all of the allowance.
#[test]
fn items_that_weigh_much_keep_to_it() {
    let keys = zipf(1.1, 100_000, 300_000);
    let weights: Vec<u64> = (0..300_000).map(|i| [40, 40, 52, 576, 1_500, 1_500][i * i % 11 % 6]).collect();
    let mut truth: HashMap<[u8; 4], u64> = HashMap::new();
    keys.iter().zip(&weights).for_each(|(key, weight)| *truth.entry(*key).or_default() += weight);
    let known = |limit: f64| {
        let builder = builder("64KB").count_bits(WEIGHTED_COUNT_BITS).uplink_per_item(limit);
        let mut sketch = builder.build().unwrap();
        sketch.insert_flat(4, keys.as_flattened(), Some(&weights)).unwrap();
        let view = sketch.query_view().unwrap();
        error(&view, &truth);
        sketch.cut();
        let sent = sketch.uplink().unwrap().total() as f64 / keys.len() as f64;
        assert!(sent <= limit && sent > 0.8 * limit, "{sent} of {limit}");
        view.keys()
    };
    let (few, many) = (known(0.1), known(0.4));
    assert!(few > 1_000 && many > 4 * few, "{few} and {many} keys are known");
}

/// A burst of new keys is absorbed in part; after it nothing is.
/// What a name takes is foretold: the limit holds for names that are easy to predict, and for some
/// that are not, and most of it is used.
#[test]
fn text_keeps_to_the_limit() {
    type Name = fn(u32) -> String;
    let names: [(&str, Name); 4] = [
        ("paths", |id| format!("/product/{id}")),
        ("pages", |id| format!("https://news.example/{:06x}.html", id.wrapping_mul(0x9E37_79B1) >> 8)),
        ("identifiers", |id| {
            format!("{:032x}", u128::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834))
        }),
        ("numbers", |id| id.to_string()),
    ];
    let stream = zipf(1.0, 20_000, 150_000);
    for (family, name) in names {
        let keys: Vec<String> = stream.iter().map(|key| name(u32::from_le_bytes(*key))).collect();
        let mut truth: HashMap<&str, u64> = HashMap::new();
        keys.iter().for_each(|key| *truth.entry(key).or_default() += 1);
        for limit in [0.3, 1.5] {
            let builder = UclSketch::builder().memory("32KB").seed(3).measure_uplink(true);
            let mut sketch = builder.uplink_per_item(limit).build().unwrap();
            keys.iter().for_each(|key| sketch.insert(key).unwrap());
            sketch.cut();
            let sent = sketch.uplink().unwrap().total() as f64 / keys.len() as f64;
            assert!(sent <= limit && sent > 0.6 * limit, "{family} within {limit}: {sent}");
            let view = sketch.query_view().unwrap();
            for (&key, &count) in &truth {
                let answer = view.estimate(key.as_bytes());
                assert!(answer.lower <= count && count <= answer.upper, "{key} has {count}: {answer:?}");
            }
        }
    }
}

#[test]
fn after_a_burst_it_is_exact_again() {
    let (keys, from, to) = with_burst();
    let mut sketch = builder("16KB").uplink_per_item(0.25).build().unwrap();
    sketch.insert_batch(&keys[..from]).unwrap();
    let absorbed = |sketch: &mut UclSketch| sketch.query_view().unwrap().absorbed();
    let before = absorbed(&mut sketch);
    sketch.insert_batch(&keys[from..to]).unwrap();
    let during = absorbed(&mut sketch);
    assert!(during > before + 5_000, "{before}, then {during}");
    sketch.insert_batch(&keys[to..2 * to]).unwrap();
    let recovered = absorbed(&mut sketch);
    sketch.insert_batch(&keys[2 * to..]).unwrap();
    assert_eq!(absorbed(&mut sketch), recovered, "what comes once the allowance has recovered is exported");
    let view = sketch.query_view().unwrap();
    error(&view, &truth(&keys));
    assert!(view.filter_overflows(), "nobody knows how many keys were never named");
}

/// A key of which nothing can be in the sketch is exact, and says so, beside others that are not.
#[test]
fn exact_answers_are_told_from_estimates() {
    // The sketch is not so full that any key may be in it.
    let keys = with_burst().0;
    let mut sketch = builder("256KB").uplink_per_item(0.25).build().unwrap();
    sketch.insert_batch(&keys).unwrap();
    let view = sketch.query_view().unwrap();
    let truth = truth(&keys);
    let mut estimates = 0;
    for (key, &count) in &truth {
        let answer = view.estimate(key);
        if answer.source == Source::Exact {
            assert_eq!((answer.estimate, answer.lower, answer.upper), (count, count, count), "{key:?}");
        } else {
            estimates += 1;
        }
    }
    assert!((100..truth.len()).contains(&estimates), "{estimates} of {}", truth.len());
    assert!(view.all().all(|(_, answer)| answer.source != Source::Heavy));
}

/// A sketch that was sealed may have absorbed a key that nobody knew then.
#[test]
fn nothing_is_exact_that_a_sealed_sketch_may_have() {
    let mut sketch = builder("16KB").uplink_per_item(0.1).build().unwrap();
    let keys: Keys = (0..4_000u32).map(u32::to_le_bytes).collect();
    sketch.insert_batch(&keys).unwrap();
    sketch.rehash(4).unwrap();
    // Tokens for a key that nobody knows.
    sketch.insert_batch(&vec![keys[0]; 100_000]).unwrap();
    let view = sketch.query_view().unwrap();
    let unknown = |key: &&[u8; 4]| view.estimate(&key[..]).source == Source::Unknown;
    let late = *keys.iter().find(unknown).expect("a key that was absorbed");
    sketch.insert_batch(&[late]).unwrap();
    let view = sketch.query_view().unwrap();
    let answer = view.estimate(&late);
    assert!(answer.lower == 1 && answer.upper >= 2, "{answer:?}");
    assert_ne!(answer.source, Source::Exact, "{answer:?}");
}

/// Text, over two machines, with a limit, saved and loaded on both sides.
#[test]
fn messages_carry_it() {
    // A device ends no epoch by itself.
    let builder = UclSketch::builder().memory("8KB").seed(4).uplink_per_item(1.5).interval(None);
    let mut whole = builder.clone().build().unwrap();
    let mut device = builder.device().unwrap();
    let mut station = Station::new(Settings::default());
    for i in 0..30_000u64 {
        let key = format!("/articles/{}", i * i % 4_001);
        whole.insert(&key).unwrap();
        device.insert(key.as_bytes(), 1).unwrap();
        if i % 7_000 == 6_999 {
            whole.cut();
            device.cut();
            while let Some(message) = device.next_message() {
                station.receive(&message.bytes).unwrap();
            }
            device = ucl_sketch::Device::from_bytes(&device.to_bytes()).unwrap();
            station = Station::from_bytes(&station.to_bytes().unwrap(), Settings::default()).unwrap();
            let (here, there) = (whole.query_view().unwrap(), station.query_view().unwrap());
            assert!(here.absorbed() > 0);
            assert_eq!(here.keys(), there.keys());
            // Names and records reach the station in another order.
            for (id, answer) in here.all() {
                assert_eq!(there.estimate(here.registry().key(id)), answer);
            }
        }
    }
}

/// Time is the caller's: tokens can be granted, and other traffic charged.
#[test]
fn tokens_are_granted_and_spent() {
    let mut device = builder("16KB").uplink_per_item(0.0).device().unwrap();
    let left = |device: &ucl_sketch::Device| device.allowance().unwrap().left(device.items());
    let advance = left(&device);
    assert!((1..16_384).contains(&advance));
    device.grant(10_000);
    device.spend(4_000);
    assert_eq!(left(&device), 6_000.max(advance) - if advance > 10_000 { 4_000 } else { 0 });
    device.spend(1 << 40);
    let keys = zipf(1.1, 5_000, 50_000);
    device.insert_batch(4, keys.as_flattened(), None).unwrap();
    assert!(!device.affords_cut());
    device.grant(1 << 41);
    assert!(device.affords_cut());
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let exact = builder("16KB").mode(Mode::Exact).uplink_per_item(1.0).build();
    assert_eq!(exact.unwrap_err(), BuildError::NoBudget { mode: Mode::Exact });
    for bytes in [-1.0, f64::NAN] {
        assert_eq!(builder("16KB").uplink_per_item(bytes).build().unwrap_err(), BuildError::Uplink);
    }
    let too_small = UclSketch::builder().mode(Mode::Budget).memory("1KB").build().unwrap_err();
    assert!(too_small.to_string().contains("a budget of 1KB is too small"), "{too_small}");
}
