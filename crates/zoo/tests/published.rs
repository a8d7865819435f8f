//! Single steps, as the publications describe them.

mod common;

use common::{Stream, build, feed};
use ucl_data_plane::KeyFormat;
use ucl_zoo::{Rival, RivalPlan, find};

const A: &[u8] = b"aaaa";
const B: &[u8] = b"bbbb";

fn of(name: &str, budget: usize) -> Box<dyn Rival> {
    find(name).unwrap().build(&RivalPlan::new(budget, KeyFormat::Fixed(4), 1)).unwrap()
}

fn insert(rival: &mut dyn Rival, key: &[u8], times: usize) {
    (0..times).for_each(|_| rival.insert(key, 1).unwrap());
}

/// Elastic Sketch with one bucket and one light counter: ostracism at eight votes against one.
#[test]
fn elastic_votes() {
    let mut elastic = of("elastic", 13);
    insert(elastic.as_mut(), A, 1);
    insert(elastic.as_mut(), B, 7);
    assert_eq!((elastic.estimate(A), elastic.bounds(A)), (1, Some((1, 1))), "a holds the bucket, without flag");
    assert_eq!(elastic.estimate(B), 7, "all of b is in the light part");
    insert(elastic.as_mut(), B, 1);
    assert_eq!(elastic.estimate(A), 8, "a is ostracised, into the light part with the seven");
    assert_eq!((elastic.estimate(B), elastic.bounds(B)), (9, Some((1, 9))), "b has a flag: one and the light part");
}

#[test]
fn elastic_light_counters_stay_at_255() {
    let mut elastic = of("elastic", 13);
    insert(elastic.as_mut(), A, 1000);
    insert(elastic.as_mut(), B, 300);
    assert_eq!(elastic.estimate(B), 255, "too little, as published");
    assert_eq!(elastic.bounds(B), Some((0, 1300)), "and the bound knows");
}

/// Augmented Sketch: the 33rd key enters once the sketch says more of it than the filter of its
/// smallest.
#[test]
fn augmented_exchange() {
    let mut asketch = of("asketch", 8 << 10);
    for key in 0..32u32 {
        insert(asketch.as_mut(), &key.to_le_bytes(), 1);
    }
    insert(asketch.as_mut(), A, 1);
    assert_eq!(asketch.bounds(A), Some((0, 1)), "one is not more than one");
    insert(asketch.as_mut(), A, 1);
    insert(asketch.as_mut(), A, 1);
    assert_eq!(asketch.bounds(A), Some((1, 3)), "in the filter with 2 of the sketch, and one exact hit since");
    assert_eq!(asketch.bounds(&0u32.to_le_bytes()), Some((0, 1)), "the first of the smallest went into the sketch");
    assert_eq!(asketch.held_weight(), Some(35));
}

/// FlowRadar names every key while they are few, and none when they are many.
#[test]
fn flow_radar_peels_below_its_threshold() {
    let share = |keys| {
        let stream = Stream::skewed(4, keys, 20_000);
        let mut radar = build(find("flowradar").unwrap(), &stream, 16 << 10, 1); // 1092 cells
        feed(radar.as_mut(), &stream);
        radar.finish().unwrap();
        let named = stream.truth.keys().filter(|key| radar.knows(key) == Some(true)).count();
        named as f64 / stream.truth.len() as f64
    };
    assert_eq!(share(600), 1.0);
    assert!(share(5000) < 0.05);
}

/// LSS keeps elephants and mice apart even if they share every hash: a mean of mice, not of both.
#[test]
fn locality_keeps_sizes_apart() {
    let mut lss = of("lss", 192); // one bucket a cluster
    insert(lss.as_mut(), A, 1000);
    insert(lss.as_mut(), B, 2);
    assert_eq!((lss.estimate(A), lss.estimate(B)), (1000, 2));
    insert(lss.as_mut(), b"cccc", 3);
    assert_eq!((lss.estimate(A), lss.held_weight()), (1000, Some(1005)));
    assert!((2..=3).contains(&lss.estimate(B)));
}
