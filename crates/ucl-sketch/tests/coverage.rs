//! The paper's shapes keep the names of the keys: over 99% of them where the memory allows it.

use std::collections::HashSet;

use ucl_sketch::plan::{Request, expected_coverage, plan};
use ucl_sketch::{DecoderKind, KeyFormat, Mode, Shape, UclSketch};
use ucl_streams::{CaidaLike, ZipfKeys};

/// The share of the distinct keys that are known by name at the end, with the paper's shape.
fn coverage<const N: usize>(items: impl Iterator<Item = [u8; N]>, memory: usize, expected: u64) -> (f64, Shape) {
    // The minimum of Count-Min has the shapes of the network, and nothing to train.
    let mut sketch = UclSketch::builder()
        .memory_bytes(memory)
        .key_bytes(N)
        .expected_keys(expected)
        .mode(Mode::Sketch(DecoderKind::Cm))
        .build()
        .unwrap();
    assert!(sketch.memory().total() <= memory);
    let mut keys = HashSet::new();
    for key in items {
        sketch.insert(key).unwrap();
        keys.insert(key);
    }
    let view = sketch.query_view().unwrap();
    let registry = view.registry();
    let known = keys.iter().filter(|key| registry.find(key.as_slice()).is_some()).count();
    (known as f64 / keys.len() as f64, sketch.config().shape)
}

/// 103,000 flows: 99% of them would need 88KB for the filter alone.
#[test]
fn coverage_of_packets_in_96_kilobytes() {
    let (covered, shape) = coverage(CaidaLike::new(1_000_000, 1).take(1_000_000), 96 << 10, 100_000);
    assert!(covered >= 0.93, "{covered} with {shape:?}");
}

#[test]
fn coverage_of_packets_where_the_rule_fits() {
    let (covered, shape) = coverage(CaidaLike::new(1_000_000, 2).take(1_000_000), 256 << 10, 100_000);
    assert_eq!(shape.bloom_hashes, 8);
    assert!(covered >= 0.99, "{covered} with {shape:?}");
}

#[test]
fn coverage_of_skewed_streams() {
    for (skew, seed) in [(0.8, 3), (1.0, 4), (1.2, 5), (1.3, 6)] {
        let keys = ZipfKeys::new(skew, 20_000, seed).take(300_000);
        let (covered, shape) = coverage(keys, 64 << 10, 20_000);
        assert!(covered >= 0.99, "{covered} at skew {skew} with {shape:?}");
    }
}

/// For every budget and number of keys: 8 hashes and over 99%, or no room for it and the hashes
/// that lose the fewest. A larger number of keys never gets a smaller filter.
#[test]
fn the_filter_follows_the_keys() {
    let mut fits = 0;
    for memory in (1..=32).map(|step| (8 * step) << 10) {
        let mut before = 0;
        for keys in [1_000u64, 4_000, 16_000, 40_000, 100_000, 400_000] {
            let request =
                Request { memory, keys: KeyFormat::Fixed(4), expected_keys: Some(keys), ..Request::default() };
            let shape = plan(Mode::Sketch(DecoderKind::Learned), request).unwrap().shape;
            assert!(shape.memory(request.keys).total() <= memory, "{memory} for {keys}: {shape:?}");
            let covered = |hashes| expected_coverage(shape.bloom_bits, hashes, keys as f64);
            if covered(8) > 0.99 {
                assert_eq!(shape.bloom_hashes, 8);
                fits += 1;
            } else {
                // The largest filter that the rule allows does not do it: 65% of what the fixed
                // part leaves, and no more than counters and 10% for the heavy part leave.
                let fixed = Shape { slots: 0, width: 0, bloom_bits: 0, ..shape }.memory(request.keys).total();
                let room = (memory - fixed) as f64;
                let counters = (shape.geometry().counters() * 4) as f64;
                let largest = (room * 0.65).min(room * 0.9 - counters) * 8.0;
                let best = expected_coverage(largest as u32, 8, keys as f64);
                assert!(best <= 0.99, "{best} for {keys} keys in {memory} would fit: {shape:?}");
                assert!((1..=12).all(|other| covered(other) <= covered(shape.bloom_hashes)));
            }
            assert!(shape.bloom_bits >= before, "{memory} for {keys}: {shape:?}");
            before = shape.bloom_bits;
        }
    }
    assert!((1..192).contains(&fits), "the two cases both occur: {fits} of 192");
}

/// The figures in the documentation of the rule.
#[test]
fn fewer_hashes_cover_more_of_too_many_keys() {
    let request =
        Request { memory: 32 << 10, keys: KeyFormat::Fixed(4), expected_keys: Some(100_000), ..Request::default() };
    let shape = plan(Mode::Sketch(DecoderKind::Learned), request).unwrap().shape;
    let percent = |hashes| (100.0 * expected_coverage(shape.bloom_bits, hashes, 100_000.0)).round();
    assert_eq!((shape.bloom_hashes, percent(8), percent(shape.bloom_hashes)), (2, 55.0, 79.0));
}
