//! What the facade promises to those who use it as a library.

use std::collections::HashMap;
use std::fmt::Debug;

use proptest::prelude::*;
use ucl_sketch::{BuildError, Builder, ByteKey, Hit, InsertError, KeyName, LoadError, UclSketch, View};

#[test]
fn types_can_be_sent_and_shared() {
    fn sent<T: Send + Debug>() {}
    fn shared<T: Send + Sync + Debug>() {}
    sent::<UclSketch>();
    sent::<UclSketch<(u32, String)>>();
    shared::<View>();
    shared::<View<u32>>();
    shared::<Hit<ByteKey>>();
    shared::<Builder<u64>>();
    shared::<BuildError>();
    shared::<InsertError>();
    shared::<LoadError>();
}

#[test]
fn text_and_bytes_are_inserted_and_asked_for_in_any_form() {
    let mut sketch = UclSketch::builder().build().unwrap();
    sketch.insert("tea").unwrap();
    sketch.insert(b"tea").unwrap();
    sketch.insert(&b"tea"[..]).unwrap();
    let owned = String::from("tea");
    sketch.insert(&owned).unwrap();
    sketch.insert(owned).unwrap();
    sketch.insert(vec![b't', b'e', b'a']).unwrap();
    sketch.insert(ByteKey::from("tea")).unwrap();
    let view = sketch.view();
    assert_eq!(view.estimate("tea").count, 7);
    assert_eq!(view.estimate(ByteKey::from("tea")).count, 7);
    assert_eq!(view.top(3).len(), 1);
    assert_eq!(view.top(1)[0].known_key().unwrap(), "tea");
    assert_eq!(view.estimate("coffee").to_string(), "coffee: 0");
}

/// Two sketches with default settings have different seeds, so that nobody can prepare keys for
/// them.
#[test]
fn seeds_are_random_unless_given() {
    let seed = |builder: Builder| builder.build().unwrap().config().seed;
    let one = UclSketch::builder();
    assert_ne!(seed(one.clone()), seed(one.clone()));
    assert_eq!(seed(one.clone().seed(1 << 100)), seed(one.seed(1 << 100)));
}

/// A filter of names that is far too small loses some. Their counts are exact all the same, and the
/// key is shown by its code.
#[test]
fn a_key_without_a_name_is_shown_by_its_code() {
    let name = |i: u32| format!("/articles/{i}");
    let builder = UclSketch::builder().memory("4KB").seed(1);
    let (config, _) = builder.plan().unwrap();
    let shape = ucl_sketch::Shape { bloom_bits: 64, bloom_hashes: 1, ..config.shape };
    let mut sketch = builder.shape(shape).interval(None).build().unwrap();
    for i in 0..9_000 {
        sketch.insert(name(i % 3_000)).unwrap();
    }
    let view = sketch.view();
    let unnamed: Vec<_> = view.iter().filter(|hit| hit.known_key().is_none()).collect();
    assert!(!unnamed.is_empty() && unnamed.len() < 3_000);
    for hit in &unnamed {
        assert!(matches!(hit.key(), KeyName::Code(_)) && hit.is_exact() && hit.count == 3, "{hit:?}");
        assert_eq!(hit.key().to_string().len(), "code:0123456789abcdef".len());
    }
    // Asked by name, it is answered.
    assert!((0..3_000).all(|i| view.estimate(name(i)).count == 3));
}

#[test]
fn keys_of_another_type_are_refused() {
    let mut sketch = UclSketch::builder().keys::<u32>().build().unwrap();
    sketch.insert_weighted(5, 3).unwrap();
    let bytes = sketch.to_bytes().unwrap();
    let load = || UclSketch::from_bytes(&bytes).unwrap();
    assert_eq!(load().with_keys::<i32>().unwrap().view().estimate(5).count, 3);
    let error = load().with_keys::<String>().unwrap_err();
    assert_eq!(error.to_string(), "the state has 4-byte keys, not keys of type alloc::string::String");
    // As bytes, the sketch tells the key as it is stored.
    assert_eq!(load().view().top(1)[0].key(), &KeyName::Known(ByteKey::from(&5u32.to_le_bytes()[..])));
    let error = load().insert("five bytes").unwrap_err();
    assert_eq!(error, InsertError::KeySize { want: 4, got: 10 });
}

proptest! {
    /// A few keys of any type are counted exactly, and come back as they were.
    #[test]
    fn typed_keys_come_back(items in prop::collection::vec(((0u8..5, "[a-c]{0,20}"), 1u64..9), 0..100), seed: u128) {
        let mut sketch = UclSketch::builder().keys::<(u8, String)>().seed(seed).build().unwrap();
        let mut exact = HashMap::new();
        for (key, weight) in items {
            sketch.insert_weighted(&key, weight).unwrap();
            *exact.entry(key).or_insert(0) += weight;
        }
        let view = sketch.view();
        prop_assert_eq!(view.known_keys(), exact.len());
        for hit in view.iter() {
            let key = hit.known_key().cloned().unwrap();
            prop_assert!(hit.lower <= exact[&key] && exact[&key] <= hit.upper);
            prop_assert_eq!(&view.estimate(key), &hit);
        }
        prop_assert_eq!(view.weight(), exact.values().sum::<u64>());
    }

    #[test]
    fn batches_of_an_iterator_are_single_inserts(keys in prop::collection::vec(0u64..50, 0..1000), seed: u128) {
        let build = || UclSketch::builder().memory("16KB").keys::<u64>().seed(seed).build().unwrap();
        let (mut together, mut single) = (build(), build());
        together.insert_all(&keys).unwrap();
        for key in &keys {
            single.insert(key).unwrap();
        }
        prop_assert_eq!(together.to_bytes().unwrap(), single.to_bytes().unwrap());
    }

    #[test]
    fn weighted_batches_of_an_iterator_are_single_inserts(
        items in prop::collection::vec((0u64..50, 1u64..1 << 20), 0..1000),
        seed: u128,
    ) {
        let build = || UclSketch::builder().memory("16KB").keys::<u64>().seed(seed).build().unwrap();
        let (mut together, mut single) = (build(), build());
        together.insert_all_weighted(items.iter().copied()).unwrap();
        for &(key, weight) in &items {
            single.insert_weighted(key, weight).unwrap();
        }
        prop_assert_eq!(together.to_bytes().unwrap(), single.to_bytes().unwrap());
    }
}

/// A batch is refused as a whole, an iterator is not: the place of the error in it does not matter.
#[test]
fn keys_before_a_bad_weight_are_counted() {
    for good in [0, 1, 255, 256, 300u64] {
        let items = || (0..good).map(|i| (i % 5, 2)).chain([(9, 0), (9, 1)]);
        let mut fixed = UclSketch::builder().keys::<u64>().build().unwrap();
        assert!(matches!(fixed.insert_all_weighted(items()), Err(InsertError::Weight { weight: 0 })));
        assert_eq!((fixed.items(), fixed.weight()), (good, 2 * good));
        let mut text = UclSketch::builder().build().unwrap();
        let named = items().map(|(key, weight)| (key.to_string(), weight));
        assert!(matches!(text.insert_all_weighted(named), Err(InsertError::Weight { weight: 0 })));
        assert_eq!((text.items(), text.weight()), (good, 2 * good));
    }
}
