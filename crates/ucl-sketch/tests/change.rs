//! Sketches that change in mid-stream, start again, or become one.

use std::collections::HashMap;

use ucl_sketch::{Bytes, ChangeError, DecoderKind, Execution, MergeError, QueryView, Shape, UclSketch};
#[cfg(feature = "learned")]
use ucl_sketch::{Fallback, Settings, learned};
use ucl_streams::SplitMix64;

/// A skewed stream of 4-byte keys, the same for the same seed.
fn stream(seed: u64, items: usize) -> Vec<[u8; 4]> {
    let mut random = SplitMix64::new(seed);
    (0..items).map(|_| ((1.0 / (random.unit() + 1e-4)) as u32 * 7 + random.below(4) as u32).to_le_bytes()).collect()
}

fn small(decoder: DecoderKind) -> ucl_sketch::Builder {
    UclSketch::builder().memory("8KB").key_bytes(4).seed(3).decoder(decoder).interval(500)
}

fn check(view: &QueryView, streams: &[&[[u8; 4]]]) {
    let mut exact = HashMap::<[u8; 4], u64>::new();
    streams.concat().iter().for_each(|&key| *exact.entry(key).or_default() += 1);
    assert_eq!(view.weight(), exact.values().sum::<u64>());
    for (key, truth) in exact {
        let answer = view.estimate(&key);
        assert!(answer.lower <= truth && truth <= answer.upper, "{key:?}: {truth} not in {answer:?}");
    }
}

/// The same reports travel over a wire, and the answers are the same.
#[test]
fn changes_in_the_background_answer_as_synchronous_ones_do() {
    let parts: Vec<Vec<[u8; 4]>> = (0..4).map(|seed| stream(seed, 4_000)).collect();
    let run = |execution| {
        let build = || small(DecoderKind::Em).execution(execution).build().unwrap();
        let mut sketch = build();
        sketch.insert_batch(&stream(9, 3_000)).unwrap();
        sketch.reset(false);
        sketch.insert_batch(&parts[0]).unwrap();
        sketch.rehash(77).unwrap();
        sketch.insert_batch(&parts[1]).unwrap();
        sketch.resize(Bytes(4 << 10)).unwrap();
        assert!(sketch.memory().total() <= 4 << 10);
        sketch.insert_batch(&parts[2]).unwrap();
        let mut other = build();
        other.rehash(77).unwrap();
        other.resize(Bytes(4 << 10)).unwrap();
        other.insert_batch(&parts[3]).unwrap();
        sketch.merge(other).unwrap();
        let view = sketch.query_view().unwrap();
        check(&view, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        sketch.insert_batch(&parts[0]).unwrap();
        // The other one's two segments ended before its first item, and so they are the oldest.
        (0..3).for_each(|_| assert!(sketch.drop_oldest_segment().unwrap()));
        (view, sketch.query_view().unwrap())
    };
    let (here, there) = (run(Execution::Synchronous), run(Execution::Background));
    for (here, there) in [(&here.0, &there.0), (&here.1, &there.1)] {
        assert_eq!((here.keys(), here.since()), (there.keys(), there.since()));
        for (id, answer) in here.all() {
            assert_eq!(there.estimate(here.registry().key(id)), answer);
        }
    }
    assert_eq!(here.1.since(), 4_000);
}

#[test]
fn delta_counts_on_through_changes() {
    let parts: Vec<Vec<[u8; 4]>> = (0..3).map(|seed| stream(seed, 5_000)).collect();
    let mut sketch = small(DecoderKind::Delta).memory("32KB").retain_epochs(100).build().unwrap();
    sketch.insert_batch(&parts[0]).unwrap();
    sketch.rehash(4).unwrap();
    sketch.insert_batch(&parts[1]).unwrap();
    sketch.resize(Shape { width: 4_000, ..sketch.config().shape }).unwrap();
    sketch.insert_batch(&parts[2]).unwrap();
    let view = sketch.query_view().unwrap();
    check(&view, &[&parts[0], &parts[1], &parts[2]]);
    let mut exact = HashMap::<[u8; 4], u64>::new();
    parts.concat().iter().for_each(|&key| *exact.entry(key).or_default() += 1);
    let wrong = exact.iter().filter(|(key, truth)| view.estimate(*key).estimate != **truth).count();
    assert!(wrong * 100 <= exact.len(), "{wrong} of {} keys", exact.len());
    // Thirty epochs and three more that the changes ended early, though empty; each is asked for as
    // before.
    let key = view.registry().find(&parts[0][0]).unwrap();
    let over_time = view.series().count(key, ..);
    assert!((over_time - view.of(key).estimate as f64).abs() < 1.5, "{over_time}");
}

#[test]
fn long_keys_keep_their_names_through_changes_and_merging() {
    let build =
        || UclSketch::builder().decoder(DecoderKind::Delta).memory("16KB").seed(5).interval(100).build().unwrap();
    let fill = |sketch: &mut UclSketch, from: u32| {
        for i in 0..3_000 {
            sketch.insert(format!("/user/{}/profile", from + i % 40).as_bytes()).unwrap();
        }
    };
    let (mut here, mut there) = (build(), build());
    fill(&mut here, 0);
    here.rehash(8).unwrap();
    fill(&mut here, 20);
    there.rehash(8).unwrap();
    fill(&mut there, 40);
    here.merge(there).unwrap();
    let view = here.query_view().unwrap();
    assert_eq!((view.items(), view.keys()), (9_000, 80));
    for user in 0..80u32 {
        let overlap = u64::from((20..60).contains(&user));
        assert_eq!(view.estimate(format!("/user/{user}/profile").as_bytes()).estimate, 75 * (1 + overlap), "{user}");
    }
    let mut stranger =
        UclSketch::builder().decoder(DecoderKind::Delta).memory("16KB").seed(8).interval(100).build().unwrap();
    let error = stranger.merge(here).unwrap_err().to_string();
    assert!(error.starts_with("sketches that differ in first seed cannot be merged"), "{error}");
}

#[cfg(feature = "learned")]
fn network(decoder: DecoderKind) -> Settings {
    let learned = learned::Config { epochs: 3, hidden: 16, neck: 8, bucket_length: 64, ..Default::default() };
    let fallback = Fallback::WhenUntrained;
    Settings { decoder, window: 16, train_every: None, learned, fallback, ..Default::default() }
}

/// The weights stay over a rehash, and over a reset if they are to; a classic decoder answers until
/// they fit again.
#[cfg(feature = "learned")]
#[test]
fn a_network_starts_warm_and_falls_back_until_it_is_trained() {
    for execution in [Execution::Synchronous, Execution::Background] {
        let mut sketch =
            small(DecoderKind::Learned).settings(network(DecoderKind::Learned)).execution(execution).build().unwrap();
        let steps = |sketch: &mut UclSketch| sketch.with_control(|c| c.network().unwrap().solver().steps());
        let answers = |sketch: &mut UclSketch| sketch.query_view().unwrap().answered_by();
        sketch.insert_batch(&stream(1, 8_000)).unwrap();
        sketch.train().unwrap();
        let trained = steps(&mut sketch);
        assert!(trained > 0 && answers(&mut sketch) == DecoderKind::Learned);
        sketch.rehash(5).unwrap();
        assert_eq!((steps(&mut sketch), answers(&mut sketch)), (trained, DecoderKind::Em));
        sketch.insert_batch(&stream(2, 8_000)).unwrap();
        assert_eq!(answers(&mut sketch), DecoderKind::Em);
        sketch.train().unwrap();
        assert_eq!(answers(&mut sketch), DecoderKind::Learned);
        check(&sketch.query_view().unwrap(), &[&stream(1, 8_000), &stream(2, 8_000)]);
        let trained = steps(&mut sketch);
        sketch.reset(true);
        sketch.insert_batch(&stream(3, 2_000)).unwrap();
        assert_eq!((steps(&mut sketch), answers(&mut sketch)), (trained, DecoderKind::Em));
        sketch.reset(false);
        assert_eq!(steps(&mut sketch), 0);
        // Other counters need another network.
        sketch.insert_batch(&stream(1, 8_000)).unwrap();
        sketch.train().unwrap();
        let shape = sketch.config().shape;
        sketch.resize(Shape { width: shape.width / 2, ..shape }).unwrap();
        assert_eq!(steps(&mut sketch), 0);
        sketch.insert_batch(&stream(2, 8_000)).unwrap();
        sketch.train().unwrap();
        check(&sketch.query_view().unwrap(), &[&stream(1, 8_000), &stream(2, 8_000)]);
    }
}

/// Natural change: twice the volume in the same proportions. The network sees the same normalised
/// counters.
#[cfg(feature = "learned")]
#[test]
fn merging_an_equal_sketch_doubles_every_answer_of_the_network() {
    let keys = stream(1, 10_000);
    let build = || {
        let mut sketch = small(DecoderKind::Learned).settings(network(DecoderKind::Learned)).build().unwrap();
        sketch.insert_batch(&keys).unwrap();
        sketch.train().unwrap();
        sketch
    };
    let decode = |sketch: &mut UclSketch| {
        sketch.with_control(|control| {
            let solver = control.network().unwrap().solver();
            let counters: Vec<f64> = control.segment().cumulative().to_vec().iter().map(|&c| c as f64).collect();
            let encoded = solver.encode(&counters).unwrap();
            let mut x = vec![0.0; control.segment().columns().len()];
            solver.decode(&encoded, &mut x).unwrap();
            (encoded.scale(), x.into_iter().map(|x| x / encoded.scale()).collect::<Vec<_>>())
        })
    };
    let mut sketch = build();
    sketch.cut();
    let (scale, outputs) = decode(&mut sketch);
    let before = sketch.query_view().unwrap();
    sketch.merge(build()).unwrap();
    let (doubled, same) = decode(&mut sketch);
    assert_eq!(doubled, 2.0 * scale);
    assert_eq!(outputs, same, "to the bit");
    let after = sketch.query_view().unwrap();
    assert_eq!(after.answered_by(), DecoderKind::Learned);
    for (id, answer) in before.all() {
        assert!(after.of(id).estimate.abs_diff(2 * answer.estimate) <= 1, "{answer:?} and {:?}", after.of(id));
    }
}

#[test]
fn what_cannot_be_done_is_named_and_changes_nothing() {
    let mut sketch = small(DecoderKind::Delta).build().unwrap();
    sketch.insert_batch(&stream(1, 1_200)).unwrap();
    let before = sketch.query_view().unwrap();
    assert!(matches!(sketch.resize(Bytes(50)), Err(ChangeError::Budget(_))));
    let shape = sketch.config().shape;
    assert!(matches!(sketch.resize(Shape { rows: 0, ..shape }), Err(ChangeError::Config(_))));
    let error = sketch.resize(Shape { base: ucl_sketch::Base::CountSketch, ..shape }).unwrap_err();
    assert!(error.to_string().starts_with("the decoder 'delta' cannot decode this sketch"), "{error}");
    let error = sketch.merge(small(DecoderKind::Delta).key_bytes(8).build().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("sketches that differ in key format"), "{error}");
    let error = sketch.merge(small(DecoderKind::Em).shape(shape).build().unwrap()).unwrap_err();
    assert!(matches!(error, MergeError::Refused(_)), "{error}");
    assert!(before.all().eq(sketch.query_view().unwrap().all()));
    let mut sent = small(DecoderKind::Em).measure_uplink(true).build().unwrap();
    // More than a message can hold.
    let huge = Shape { rows: 16, width: 1 << 27, counter_bits: ucl_sketch::CounterBits::B32, ..shape };
    assert!(matches!(sent.resize(huge), Err(ChangeError::Wire(_))));
}
