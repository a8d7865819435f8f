//! At the limits of weights, sizes and memory: exact answers or a named error, and an error changes
//! nothing.

use ucl_sketch::{Base, Builder, CounterBits, DecoderKind, Execution, HeavyKind, InsertError, Shape, UclSketch};

/// The most that a stream may weigh.
const MOST: u64 = i64::MAX as u64;

fn small(base: Base, heavy: HeavyKind, counter_bits: CounterBits) -> Shape {
    Shape { heavy, slots: 4, base, rows: 3, width: 7, counter_bits, bloom_bits: 512, ..Shape::PAPER_64KB }
}

/// The defect: `ucl count --base count-sketch` of one item of weight 2^63 - 1 answered
/// 2,147,483,647, with a range that did not have the truth in it.
#[test]
fn every_sketch_counts_up_to_the_limit() {
    let streams: [&[u64]; 4] = [
        &[MOST],
        // What was carried passes 2^63 on the way, with a negative remainder.
        &[1 << 62, (1 << 62) - 1],
        &[MOST - 3, 1, 1, 1],
        &[MOST / 3, MOST / 3, MOST / 3],
    ];
    for base in Base::ALL {
        for heavy in HeavyKind::ALL {
            for bits in CounterBits::ALL {
                for (weights, execution) in
                    streams.iter().flat_map(|&w| [(w, Execution::Synchronous), (w, Execution::Background)])
                {
                    let what = format!("{base}, {heavy}, {bits}, {execution:?}: {weights:?}");
                    let builder = UclSketch::builder().key_bytes(4).shape(small(base, heavy, bits)).seed(1);
                    let builder = builder.decoder(DecoderKind::Cm).interval(2).execution(execution);
                    let mut sketch = builder.build().unwrap();
                    for &weight in weights {
                        sketch.insert_weighted(b"key1", weight).unwrap();
                    }
                    let truth: u64 = weights.iter().sum();
                    let check = |sketch: &mut UclSketch| {
                        let answer = sketch.query_view().unwrap().estimate(b"key1");
                        assert_eq!((answer.lower <= truth, answer.upper), (true, truth), "{what}");
                        assert!((answer.lower..=answer.upper).contains(&answer.estimate), "{what}: {answer:?}");
                    };
                    check(&mut sketch);
                    // In the middle of an epoch, with carries under way.
                    let bytes = sketch.to_bytes().unwrap();
                    check(&mut UclSketch::from_bytes(&bytes).unwrap_or_else(|error| panic!("{what}: {error}")));
                    sketch.cut();
                    check(&mut sketch);
                    if truth == MOST {
                        assert!(matches!(sketch.insert(b"key2"), Err(InsertError::TotalWeight { .. })), "{what}");
                        check(&mut sketch);
                    }
                }
            }
        }
    }
}

/// Both signs at once, merged: half of the weight on either side.
#[test]
fn merged_count_sketches_count_up_to_the_limit() {
    for bits in CounterBits::ALL {
        let build = || {
            let builder =
                UclSketch::builder().key_bytes(4).shape(small(Base::CountSketch, HeavyKind::Voting, bits)).seed(1);
            builder.decoder(DecoderKind::Cm).interval(None).seed(3).build().unwrap()
        };
        let keys: Vec<[u8; 4]> = (0..40u32).map(u32::to_le_bytes).collect();
        let (mut here, mut there) = (build(), build());
        for key in &keys {
            here.insert_weighted(key, MOST / 80).unwrap();
            there.insert_weighted(key, MOST / 80).unwrap();
        }
        here.merge(there).unwrap();
        let view = here.query_view().unwrap();
        for key in &keys {
            let (answer, truth) = (view.estimate(key), 2 * (MOST / 80));
            assert!(answer.lower <= truth && truth <= answer.upper, "{bits}, {key:?}: {answer:?}");
        }
        assert_eq!(view.weight(), 80 * (MOST / 80));
    }
}

fn of_kind(key_bytes: Option<usize>) -> Builder {
    let shape = small(Base::CountMin, HeavyKind::Voting, CounterBits::B8);
    let builder = UclSketch::builder().shape(shape).decoder(DecoderKind::Em).interval(3).seed(5);
    key_bytes.map_or(builder.clone(), |bytes| builder.key_bytes(bytes))
}

/// A batch is refused whole, whatever is wrong with it and wherever: also past the end of an epoch.
#[test]
fn a_refused_batch_leaves_the_sketch_as_it_was() {
    let keys: Vec<[u8; 4]> = (0..10u32).map(u32::to_le_bytes).collect();
    let flat = keys.as_flattened();
    let weights = |at: usize, weight: u64| (0..10).map(|i| if i == at { weight } else { 2 }).collect::<Vec<u64>>();
    for kind in [Some(4), None] {
        let mut sketch = of_kind(kind).build().unwrap();
        sketch.insert_batch(&keys[..2]).unwrap();
        let before = sketch.to_bytes().unwrap();
        let refused = |result: Result<(), InsertError>, sketch: &mut UclSketch, message: &str| {
            assert_eq!(result.unwrap_err().to_string(), message, "{kind:?}");
            assert!(sketch.to_bytes().unwrap() == before, "{kind:?}, {message}: something counted");
        };
        for at in [0, 5, 9] {
            let result = sketch.insert_flat(4, flat, Some(&weights(at, 0)));
            refused(result, &mut sketch, "the weight of an item must be from 1 to 2^63 - 1, not 0");
            let result = sketch.insert_flat(4, flat, Some(&weights(at, MOST)));
            assert!(matches!(result, Err(InsertError::TotalWeight { .. })), "{result:?}");
            assert!(sketch.to_bytes().unwrap() == before);
        }
        let result = sketch.insert_flat(4, flat, Some(&[1; 9]));
        refused(result, &mut sketch, "9 weights for 10 keys");
        let result = sketch.insert_flat(4, flat, Some(&[1; 11]));
        refused(result, &mut sketch, "11 weights for 10 keys");
        let result = sketch.insert_flat(4, &flat[..39], None);
        refused(result, &mut sketch, "39 bytes are not a whole number of 4-byte keys");
        let result = sketch.insert_flat(0, flat, None);
        refused(result, &mut sketch, "40 bytes are not a whole number of 0-byte keys");
    }
    let mut sketch = of_kind(None).build().unwrap();
    let before = sketch.to_bytes().unwrap();
    let result = sketch.insert_batch(&[[1; 65_536]]);
    assert_eq!(result, Err(InsertError::KeyTooLong { bytes: 65_536 }));
    assert!(sketch.to_bytes().unwrap() == before);
    let mut sketch = of_kind(Some(4)).build().unwrap();
    assert_eq!(sketch.insert_batch(&[[]; 3]), Err(InsertError::KeySize { want: 4, got: 0 }));
}

/// The total is checked for batches as for single items; before, the state that they left could not
/// be loaded.
#[test]
fn batches_stop_at_the_limit() {
    for kind in [Some(4), None] {
        let mut sketch = of_kind(kind).build().unwrap();
        sketch.insert_weighted(b"key1", MOST - 4).unwrap();
        let error = sketch.insert_batch(&[*b"key2"; 5]).unwrap_err();
        assert_eq!(error, InsertError::TotalWeight { total: MOST - 4, weight: 5 });
        sketch.insert_batch(&[*b"key2"; 4]).unwrap();
        assert_eq!((sketch.items(), sketch.weight()), (5, MOST));
        let mut again = UclSketch::from_bytes(&sketch.to_bytes().unwrap()).unwrap();
        assert_eq!(again.query_view().unwrap().weight(), MOST);
    }
}

/// A key of no bytes is a key where keys may have any length.
#[test]
fn empty_keys_count() {
    let mut sketch = of_kind(None).build().unwrap();
    sketch.insert_batch(&[[]; 5]).unwrap();
    sketch.insert_flat(0, b"", Some(&[10, 20])).unwrap();
    sketch.insert(b"").unwrap();
    assert_eq!((sketch.items(), sketch.weight()), (8, 36));
    assert_eq!(sketch.query_view().unwrap().estimate(b"").estimate, 36);
    let error = sketch.insert_flat(0, b"", None).unwrap_err();
    assert_eq!(error.to_string(), "0 bytes are not a whole number of 0-byte keys", "nobody can say how many");
}

/// More counters than a remote reader takes by default: in one process that is no reason to refuse.
#[test]
fn a_large_sketch_works_whether_or_not_its_reports_are_encoded() {
    for execution in [Execution::Synchronous, Execution::Background] {
        let builder = UclSketch::builder().key_bytes(4).memory("32MB").decoder(DecoderKind::Em).seed(1);
        let mut sketch = builder.measure_uplink(true).execution(execution).build().unwrap();
        assert!(sketch.config().shape.geometry().counters() > 1 << 24);
        for i in 0..1_000u32 {
            sketch.insert_weighted(i.to_le_bytes(), u64::from(i) + 1).unwrap();
        }
        sketch.cut();
        let view = sketch.query_view().unwrap();
        assert!((0..1_000u32).all(|i| view.estimate(&i.to_le_bytes()).estimate == u64::from(i) + 1));
        assert!(sketch.uplink().is_some_and(|uplink| uplink.counters > 0));
    }
}

#[test]
fn what_no_memory_can_hold_is_named() {
    let message = |builder: Builder| builder.build().err().unwrap().to_string();
    let builder = UclSketch::builder;
    let error = message(builder().memory("1TB"));
    assert!(error.starts_with("a budget of 1024GB is too large for one sketch: its table would have "), "{error}");
    assert!(error.ends_with(" slots, but the most is 268435456"), "{error}");
    for decoder in [DecoderKind::Delta, DecoderKind::Cm] {
        assert!(message(builder().memory("1TB").decoder(decoder)).contains("is too large for one sketch"));
    }
    assert!(message(builder().memory("8000TB")).contains("is too large for one sketch"));
    let mut sketch = builder().build().unwrap();
    sketch.insert(b"kept").unwrap();
    assert!(sketch.resize(ucl_sketch::Bytes(1 << 40)).is_err());
    assert_eq!(sketch.query_view().unwrap().estimate(b"kept").estimate, 1);
}

/// Parts stop at their limits before a budget is refused: sizes wrapped around at 2^32 before.
#[test]
fn large_budgets_are_planned_within_the_limits() {
    for gigabytes in [1, 2, 4, 6] {
        for decoder in [DecoderKind::Delta, DecoderKind::Em, DecoderKind::Cm] {
            let builder = UclSketch::builder().memory_bytes(gigabytes << 30).decoder(decoder);
            let (config, _) = builder.plan().unwrap();
            let used = config.memory().total();
            assert!(used <= gigabytes << 30 && used > (gigabytes << 30) / 100 * 97, "{decoder}, {gigabytes}GB: {used}");
        }
    }
}

/// A merge that is refused ends no epoch.
#[test]
fn a_refused_merge_leaves_the_sketch_as_it_was() {
    let mut sketch = of_kind(Some(4)).build().unwrap();
    sketch.insert_batch(&[*b"key1"; 2]).unwrap();
    let before = sketch.to_bytes().unwrap();
    let mut failed = of_kind(Some(4)).build().unwrap();
    failed.with_control(|control| control.fail("the link went down".into()));
    assert!(sketch.merge(failed).is_err());
    let mut heavy = of_kind(Some(4)).build().unwrap();
    heavy.insert_weighted(b"key1", MOST - 1).unwrap();
    assert!(sketch.merge(heavy).is_err());
    assert!(sketch.to_bytes().unwrap() == before);
}
