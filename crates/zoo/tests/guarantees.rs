//! One table of guarantees × every system, against exact counts, in structures small enough to
//! collide.

mod common;

use common::{Stream, build, feed, plan, ranking, sample};
use ucl_data_plane::KeyFormat;
use ucl_zoo::{ENTRIES, Entry, Error, Rival, RivalPlan, find};

const TIGHT: usize = 3 << 10;

fn fed(entry: &Entry, stream: &Stream, budget: usize, seed: u64) -> Box<dyn Rival> {
    let mut rival = build(entry, stream, budget, seed);
    feed(rival.as_mut(), stream);
    rival.finish().unwrap_or_else(|error| panic!("{}: {error}", entry.name));
    rival
}

#[test]
fn promises_are_kept_on_every_stream() {
    for stream in &Stream::all() {
        for entry in ENTRIES {
            let promised = entry.guarantees;
            let name = format!("{} on {}", entry.name, stream.name);
            let rival = fed(entry, stream, TIGHT, 5);
            let mut wrong = 0;
            for (key, &truth) in &stream.truth {
                let (estimate, bounds) = (rival.estimate(key), rival.bounds(key));
                assert!(!promised.never_underestimates || estimate >= truth, "{name}: {estimate} for {truth}");
                assert_eq!(bounds.is_some(), promised.bounded, "{name}");
                if let Some((lower, upper)) = bounds {
                    assert!((lower..=upper).contains(&truth), "{name}: {truth} is not in {lower}..={upper}");
                    assert!((lower..=upper).contains(&estimate), "{name}: {estimate} is not in {lower}..={upper}");
                }
                wrong += u32::from(estimate != truth);
            }
            assert!(wrong > 0 || stream.truth.len() < 100, "{name}: too much memory to test anything");
            let held = promised.keeps_total_weight.then_some(stream.weight());
            assert_eq!(rival.held_weight(), held, "{name}");
        }
    }
}

/// With room for everything there is nothing to estimate.
#[test]
fn ample_memory_is_exact() {
    let stream = Stream::few_keys();
    for entry in ENTRIES.iter().filter(|entry| entry.guarantees.exact_if_ample) {
        let rival = fed(entry, &stream, 256 << 10, 3);
        for (key, &truth) in &stream.truth {
            assert_eq!(rival.estimate(key), truth, "{}: {key:?}", entry.name);
        }
    }
}

#[test]
fn unbiased_over_the_seeds() {
    let stream = Stream::skewed(4, 400, 2000);
    let seeds = 400;
    let keys: Vec<(&Vec<u8>, f64)> = stream.truth.iter().map(|(key, &truth)| (key, truth as f64)).step_by(40).collect();
    // The network changes nothing but the time: a test of its own.
    for entry in ENTRIES.iter().filter(|entry| entry.guarantees.unbiased && !entry.name.ends_with("-rnn")) {
        let mut errors = vec![Vec::new(); keys.len()];
        for seed in 0..seeds {
            let rival = fed(entry, &stream, 2 << 10, seed);
            for (errors, (key, truth)) in errors.iter_mut().zip(&keys) {
                errors.push(rival.unrounded(key) - truth);
            }
        }
        let mut scattered = false;
        for (errors, (key, truth)) in errors.iter().zip(&keys) {
            let n = errors.len() as f64;
            let mean = errors.iter().sum::<f64>() / n;
            let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let tolerance = 4.5 * (variance / n).sqrt(); // one in 150,000 by chance
            scattered |= variance > 0.0; // keys with a bucket of their own are exact
            assert!(mean.abs() <= tolerance, "{}: {key:?} of {truth} is off by {mean} ± {tolerance}", entry.name);
        }
        assert!(scattered, "{}: too much memory to test anything", entry.name);
    }
}

/// Count-Min is *not* unbiased, and the test above would notice.
#[test]
fn a_biased_system_would_be_caught() {
    let stream = Stream::skewed(4, 400, 4000);
    let (key, &truth) = stream.truth.iter().next().unwrap();
    let errors: Vec<f64> =
        (0..100).map(|seed| fed(find("cm").unwrap(), &stream, 2 << 10, seed).unrounded(key) - truth as f64).collect();
    let mean = errors.iter().sum::<f64>() / 100.0;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / 99.0;
    assert!(mean > 4.5 * (variance / 100.0).sqrt());
}

#[test]
fn an_item_of_weight_five_is_five_items() {
    let weighted = Stream::weighted();
    let repeated = weighted.repeated();
    for entry in ENTRIES.iter().filter(|entry| entry.guarantees.weights_repeat) {
        let (one, many) = (fed(entry, &weighted, TIGHT, 9), fed(entry, &repeated, TIGHT, 9));
        for key in weighted.truth.keys() {
            assert_eq!(one.estimate(key), many.estimate(key), "{}: {key:?}", entry.name);
        }
    }
}

#[test]
fn merged_is_the_union() {
    let whole = Stream::skewed(4, 900, 9000);
    let (first, second) = whole.split(3000);
    for entry in ENTRIES {
        let (mut one, mut other) = (build(entry, &whole, TIGHT, 2), build(entry, &whole, TIGHT, 2));
        feed(one.as_mut(), &first);
        feed(other.as_mut(), &second);
        if !entry.guarantees.mergeable {
            assert_eq!(one.merge(other.as_ref()), Err(Error::NotMergeable), "{}", entry.name);
            continue;
        }
        one.merge(other.as_ref()).unwrap();
        one.finish().unwrap();
        let both = fed(entry, &whole, TIGHT, 2);
        assert_eq!(one.held_weight(), both.held_weight(), "{}", entry.name);
        for key in whole.truth.keys() {
            let answers = |rival: &dyn Rival| (rival.estimate(key), rival.bounds(key));
            assert_eq!(answers(one.as_ref()), answers(both.as_ref()), "{}: {key:?}", entry.name);
        }
        let strange = build(entry, &whole, TIGHT, 3);
        assert_eq!(one.merge(strange.as_ref()), Err(Error::Unlike), "{}: other hashes", entry.name);
        let wider = build(entry, &whole, 2 * TIGHT, 2);
        assert_eq!(one.merge(wider.as_ref()), Err(Error::Unlike), "{}: another shape", entry.name);
    }
}

#[test]
fn a_seed_fixes_everything() {
    let stream = Stream::skewed(8, 900, 6000);
    for entry in ENTRIES {
        let answers = |seed| -> Vec<u64> {
            let rival = fed(entry, &stream, TIGHT, seed);
            stream.truth.keys().map(|key| rival.estimate(key)).collect()
        };
        assert_eq!(answers(1), answers(1), "{}", entry.name);
        assert_ne!(answers(1), answers(2), "{}", entry.name);
    }
}

/// One by one, or by the batch.
#[test]
fn a_batch_is_its_items() {
    for stream in [Stream::skewed(13, 300, 2000), Stream::weighted(), Stream::skewed(20, 300, 2000)] {
        for entry in ENTRIES {
            let mut single = build(entry, &stream, TIGHT, 4);
            stream.items.iter().for_each(|(key, weight)| single.insert(key, *weight).unwrap());
            let mut batch = build(entry, &stream, TIGHT, 4);
            let keys: Vec<u8> = stream.items.iter().flat_map(|(key, _)| key.iter().copied()).collect();
            let weights: Vec<u64> = stream.items.iter().map(|(_, weight)| *weight).collect();
            let all_ones = weights.iter().all(|&weight| weight == 1);
            batch.insert_flat(stream.items[0].0.len(), &keys, (!all_ones).then_some(&weights)).unwrap();
            single.finish().unwrap();
            batch.finish().unwrap();
            for key in stream.truth.keys() {
                assert_eq!(single.estimate(key), batch.estimate(key), "{} on {}", entry.name, stream.name);
            }
        }
    }
}

#[test]
fn the_budget_is_used_and_kept() {
    let formats = [4, 8, 13, 16].map(KeyFormat::Fixed).into_iter().chain([KeyFormat::Digest]);
    for keys in formats {
        let heavy: Vec<Vec<u8>> = (0..60_000u64).map(|i| common::key(i, keys)).collect();
        let ranking: Vec<&[u8]> = heavy.iter().map(Vec::as_slice).collect();
        let counts: Vec<(&[u8], u64)> = ranking.iter().take(500).map(|&key| (key, 1 + u64::from(key[0]))).collect();
        for budget in [8 << 10, 10_000, 16 << 10, 50_001, 64 << 10, 128 << 10, 256 << 10] {
            for entry in ENTRIES {
                let plan = RivalPlan {
                    knowledge: common::knowledge(entry, &ranking, &counts),
                    ..RivalPlan::new(budget, keys, 1)
                };
                let used = entry.build(&plan).unwrap_or_else(|e| panic!("{}: {e}", entry.name)).memory().total();
                let name = format!("{} with {keys} took {used} of {budget}", entry.name);
                assert!(used <= budget && used * 10 >= budget * 9, "{name}");
            }
        }
    }
}

/// The paper's shapes exist for its budgets and nothing else, and fit.
#[test]
fn the_papers_shapes() {
    let stream = Stream::skewed(4, 9000, 20_000);
    let (ranking, sample) = (ranking(&stream), sample(&stream));
    for entry in ENTRIES {
        let knowledge = common::knowledge(entry, &ranking, &sample);
        let plan = |budget, keys| RivalPlan { paper_shape: true, knowledge, ..RivalPlan::new(budget, keys, 1) };
        for kilobytes in (16..=128).step_by(16) {
            let budget = kilobytes << 10;
            let rival = entry.build(&plan(budget, KeyFormat::Fixed(4))).unwrap();
            let used = rival.memory().total();
            assert!(used <= budget && used * 5 >= budget * 2, "{} at {kilobytes}KB: {used}", entry.name);
        }
        for (budget, keys) in
            [(100, KeyFormat::Fixed(4)), (144 << 10, KeyFormat::Fixed(4)), (64 << 10, KeyFormat::Digest)]
        {
            let error = entry.build(&plan(budget, keys)).err();
            assert_eq!(error, Some(Error::NoPaperShape { budget, keys }), "{}", entry.name);
        }
    }
}

#[test]
fn bad_items_are_refused() {
    let stream = Stream::skewed(4, 100, 1000);
    for entry in ENTRIES {
        let mut rival = build(entry, &stream, TIGHT, 1);
        let refused = |result: Result<(), Error>, text: &str| {
            assert_eq!(result.unwrap_err().to_string(), text, "{}", entry.name);
        };
        refused(rival.insert(b"key!", 0), "the weight of an item must be from 1 to 2^63 - 1, not 0");
        refused(rival.insert(b"long key", 1), "a key of 8 bytes does not fit a sketch of 4-byte keys");
        refused(rival.insert_flat(8, b"long key", None), "a key of 8 bytes does not fit a sketch of 4-byte keys");
        assert_eq!((rival.estimate(b"long key"), rival.bounds(b"long key").unwrap_or((0, 0))), (0, (0, 0)));
        feed(rival.as_mut(), &stream);
        rival.finish().unwrap();
        assert!(stream.truth.keys().any(|key| rival.estimate(key) > 0), "{}: and it goes on", entry.name);
    }
}

#[test]
fn too_small_a_budget_says_how_much_would_do() {
    let stream = Stream::skewed(4, 100, 1000);
    let (ranking, sample) = (ranking(&stream), sample(&stream));
    for entry in ENTRIES {
        let knowledge = common::knowledge(entry, &ranking, &sample);
        let build = |budget| entry.build(&RivalPlan { knowledge, ..plan(&stream, budget, 1) });
        let Err(Error::Budget { budget: 3, least }) = build(3) else { panic!("{} in 3 bytes", entry.name) };
        assert!(build(least).is_ok_and(|rival| rival.memory().total() <= least), "{} in {least} bytes", entry.name);
    }
}

#[test]
fn a_budget_beyond_memory_is_an_error() {
    let stream = Stream::skewed(4, 100, 1000);
    for entry in ENTRIES {
        let built = entry.build(&plan(&stream, usize::MAX / 4, 1));
        assert!(matches!(built, Err(Error::OutOfMemory(_))), "{}", entry.name);
    }
}

/// Heavy items overflow with a word, or are carried; none is a panic.
#[test]
fn a_heavy_stream_never_panics() {
    let stream = Stream::heavy();
    for entry in ENTRIES {
        let mut rival = build(entry, &stream, TIGHT, 1);
        let result = stream.items.iter().try_for_each(|(key, weight)| rival.insert(key, *weight));
        match result.and_then(|()| rival.finish()) {
            Err(error) => assert_eq!(error, Error::Overflow, "{}", entry.name),
            Ok(()) => {
                stream.truth.keys().for_each(|key| assert!(rival.estimate(key) <= stream.weight(), "{}", entry.name))
            }
        }
    }
}

/// A network in front costs time and changes nothing.
#[test]
fn the_network_is_not_listened_to() {
    let stream = Stream::skewed(4, 900, 3000);
    for (plain, behind) in [("lcm", "lcm-rnn"), ("lcs", "lcs-rnn")] {
        let [plain, behind] = [plain, behind].map(|name| fed(find(name).unwrap(), &stream, TIGHT, 1));
        assert!(stream.truth.keys().all(|key| plain.estimate(key) == behind.estimate(key)));
    }
}

/// Conservative update is never further off than plain Count-Min with the same hashes.
#[test]
fn conservative_update_is_at_most_count_min() {
    for stream in Stream::all() {
        let [cm, cu] = ["cm", "cu"].map(|name| fed(find(name).unwrap(), &stream, TIGHT, 5));
        assert!(stream.truth.keys().all(|key| cu.estimate(key) <= cm.estimate(key)), "{}", stream.name);
    }
}

/// What an oracle is not told, it cannot know.
#[test]
fn oracles_need_knowledge() {
    let plan = RivalPlan::new(TIGHT, KeyFormat::Fixed(4), 1);
    assert_eq!(find("lcm").unwrap().build(&plan).err(), Some(Error::NeedsRanking));
    assert_eq!(find("lcs-trained").unwrap().build(&plan).err(), Some(Error::NeedsSample));
    assert!(find("lcm").unwrap().uses_ground_truth() && !find("lcm-trained").unwrap().uses_ground_truth());
}
