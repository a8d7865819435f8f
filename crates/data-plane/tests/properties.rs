//! The data plane against exact counts, in structures small enough that everything collides.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use ucl_data_plane::{
    AnyHeavy, Base, BaseMap, BloomKind, ColumnMap, Config, CounterBits, DataPlane, HashSeed, HeavyKind, HeavyPart,
    InsertError, KeyFlags, KeyFormat, KeyRef, Report, ReportRule, Shape,
};

/// What a control plane would have gathered.
#[derive(Debug, Default, PartialEq, Eq)]
struct Gathered {
    /// In order: key and heat.
    keys: Vec<(Vec<u8>, bool)>,
    /// Everything in order, as text: to compare the order of reports of all kinds.
    order: Vec<String>,
    counters: Vec<i64>,
    sketch_weight: u64,
    slots: HashMap<u32, u64>,
    cuts: u64,
}

impl Gathered {
    fn take(&mut self, report: Report<'_>, unit: i64) {
        match report {
            Report::Key { key, flags: KeyFlags { hot, .. } } => {
                let bytes = match key {
                    KeyRef::Whole(bytes) | KeyRef::Digested { bytes, .. } | KeyRef::Name(bytes) => bytes.to_vec(),
                    KeyRef::Digest(digest) => digest.to_vec(),
                };
                self.order.push(format!("key {bytes:?} {hot}"));
                self.keys.push((bytes, hot));
            }
            Report::Carry { at, times } => {
                self.order.push(format!("carry {} {times}", at.0));
                self.counter(at.0 as usize, times * unit);
            }
            Report::Slot { slot, holder, count } => {
                self.order.push(format!("slot {slot} {holder:?} {count}"));
                self.slots.insert(slot, count);
            }
            Report::Cut(cut) => {
                self.order.push(format!("cut {} {} {}", cut.totals.items, cut.totals.weight, cut.totals.carries));
                for (at, value) in cut.counters.iter().enumerate() {
                    self.counter(at, value);
                }
                self.sketch_weight = cut.totals.sketch_weight;
                self.cuts += 1;
            }
            Report::Open { .. } | Report::Export(_) => unreachable!("nothing changes here, and nothing is mirrored"),
        }
    }

    fn counter(&mut self, at: usize, value: i64) {
        if self.counters.len() <= at {
            self.counters.resize(at + 1, 0);
        }
        self.counters[at] += value;
    }
}

fn combinations() -> Vec<(Base, HeavyKind)> {
    Base::ALL.iter().flat_map(|&base| HeavyKind::ALL.map(|heavy| (base, heavy))).collect()
}

type Plane = DataPlane<4, AnyHeavy<4>>;

fn configs() -> impl Strategy<Value = Config> {
    (
        prop_oneof![1u32..6, 1u32..70],
        1u32..4,
        1u16..4,
        1u32..12,
        prop::sample::select(&CounterBits::ALL[..]),
        prop::sample::select(combinations()),
        prop::sample::select(&[BloomKind::Classic, BloomKind::SplitBlock, BloomKind::Recent][..]),
        prop_oneof![Just(0u32), 32u32..2000],
        prop::sample::select(&ReportRule::ALL[..]),
        any::<u128>(),
    )
        .prop_map(
            |(slots, vote_ratio, rows, width, counter_bits, (base, heavy), bloom, bloom_bits, rule, seed)| Config {
                keys: KeyFormat::Fixed(4),
                shape: Shape {
                    slots,
                    vote_ratio,
                    rows,
                    width,
                    counter_bits,
                    base,
                    heavy,
                    bloom,
                    bloom_bits,
                    bloom_hashes: if bloom == BloomKind::Recent { BloomKind::RECENT_KEYS } else { 3 },
                },
                rule,
                seed: seed.into(),
            },
        )
}

fn streams() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let weight = prop_oneof![8 => Just(1u64), 2 => 1u64..300, 1 => 1u64..1 << 33];
    prop::collection::vec((0u32..40, weight), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost(config in configs(), stream in streams(), interval in 1usize..60) {
        let unit = config.shape.counter_bits.carry_unit(config.shape.signed());
        let mut gathered = Gathered::default();
        let mut plane = Plane::any(config).unwrap();
        let mut exact = HashMap::<u32, u64>::new();
        for (i, &(key, weight)) in stream.iter().enumerate() {
            plane.insert(&key.to_le_bytes(), weight, &mut |r: Report<'_>| gathered.take(r, unit)).unwrap();
            *exact.entry(key).or_default() += weight;
            if i % interval == 0 {
                plane.cut(&mut |r: Report<'_>| gathered.take(r, unit));
            }
        }
        plane.cut(&mut |r: Report<'_>| gathered.take(r, unit));

        let total: u64 = exact.values().sum();
        let heavy: HashMap<u32, u64> =
            plane.heavy().entries().map(|(_, key, count, _)| (u32::from_le_bytes(key), count)).collect();
        let held: u64 = heavy.values().sum();
        prop_assert_eq!(gathered.sketch_weight + held, total);
        // The slots as reported are the slots as held.
        prop_assert_eq!(gathered.slots.values().sum::<u64>(), held);

        // The counters are exactly A x, with x what the heavy part does not hold.
        let seed = HashSeed::new(config.seed);
        let map = BaseMap::new(&config.shape);
        let mut y = vec![0i64; config.shape.geometry().counters()];
        for (&key, &count) in &exact {
            let rest = count - heavy.get(&key).copied().unwrap_or(0);
            let column = map.column(seed.hash(&key.to_le_bytes()));
            for (&at, &sign) in column.indices().iter().zip(column.signs()) {
                y[at as usize] += i64::from(sign) * rest as i64;
            }
        }
        prop_assert_eq!(&gathered.counters, &y);

        // Row sums, and Count-Min's promise.
        let geometry = config.shape.geometry();
        if !geometry.signed {
            for row in y.chunks(geometry.width as usize) {
                prop_assert_eq!(row.iter().sum::<i64>() as u64, gathered.sketch_weight * u64::from(geometry.per_row()));
            }
            for (&key, &count) in &exact {
                let column = map.column(seed.hash(&key.to_le_bytes()));
                let least = column.indices().iter().map(|&at| y[at as usize]).min().unwrap() as u64;
                prop_assert!(least + plane.exact(&key.to_le_bytes()) >= count);
            }
        }

        // Every key with weight in the sketch was reported, unless the Bloom filter claims it (or
        // did when it was last emptied).
        let reported: HashSet<&[u8]> = gathered.keys.iter().map(|(key, _)| &key[..]).collect();
        for (&key, &count) in &exact {
            let key_bytes = key.to_le_bytes();
            if count > heavy.get(&key).copied().unwrap_or(0) && !reported.contains(&key_bytes[..]) {
                let forgets = matches!(config.rule, ReportRule::Rotate | ReportRule::Generations)
                    || config.shape.bloom == BloomKind::Recent;
                let claimed = forgets || plane.bloom().contains(seed.hash(&key_bytes));
                prop_assert!(config.shape.bloom_bits > 0 && claimed);
            }
        }
        // Rule `New` reports no key twice, unless there is no filter to tell, or one that forgets.
        if config.rule == ReportRule::New && config.shape.bloom != BloomKind::Recent && plane.bloom().memory() > 0 {
            prop_assert_eq!(reported.len(), gathered.keys.len());
        }
        // Only keys of the stream are reported.
        prop_assert!(gathered.keys.iter().all(|(key, _)| exact.contains_key(&u32::from_le_bytes(key[..].try_into().unwrap()))));
    }

    #[test]
    fn batches_change_nothing(config in configs(), stream in streams(), batch in 1usize..200) {
        let unit = config.shape.counter_bits.carry_unit(config.shape.signed());
        let (mut one, mut many) = (Plane::any(config).unwrap(), Plane::any(config).unwrap());
        let (mut from_one, mut from_many) = (Gathered::default(), Gathered::default());
        for part in stream.chunks(batch) {
            let keys: Vec<[u8; 4]> = part.iter().map(|(key, _)| key.to_le_bytes()).collect();
            let weights: Vec<u64> = part.iter().map(|&(_, weight)| weight).collect();
            for (key, &weight) in keys.iter().zip(&weights) {
                one.insert(key, weight, &mut |r: Report<'_>| from_one.take(r, unit)).unwrap();
                one.insert(key, 1, &mut |r: Report<'_>| from_one.take(r, unit)).unwrap();
            }
            let twice: Vec<[u8; 4]> = keys.iter().flat_map(|&key| [key, key]).collect();
            let both: Vec<u64> = weights.iter().flat_map(|&weight| [weight, 1]).collect();
            many.insert_weighted_batch(&twice, &both, &mut |r: Report<'_>| from_many.take(r, unit)).unwrap();
            for key in &keys {
                one.insert(key, 1, &mut |r: Report<'_>| from_one.take(r, unit)).unwrap();
            }
            many.insert_batch(&keys, &mut |r: Report<'_>| from_many.take(r, unit)).unwrap();
            one.cut(&mut |r: Report<'_>| from_one.take(r, unit));
            many.cut(&mut |r: Report<'_>| from_many.take(r, unit));
        }
        prop_assert_eq!(from_one, from_many);
        prop_assert_eq!(one, many);
    }

    /// Peeking shows what a cut would send, and leaves no trace.
    #[test]
    fn peeking_leaves_no_trace(config in configs(), stream in streams()) {
        let unit = config.shape.counter_bits.carry_unit(config.shape.signed());
        let mut plane = Plane::any(config).unwrap();
        let mut unseen = Gathered::default();
        for &(key, weight) in &stream {
            plane.insert(&key.to_le_bytes(), weight, &mut |r: Report<'_>| unseen.take(r, unit)).unwrap();
        }
        let before = plane.clone();
        let (mut peeked, mut cut) = (Gathered::default(), Gathered::default());
        plane.peek(&mut |r: Report<'_>| peeked.take(r, unit));
        prop_assert_eq!(&plane, &before);
        plane.cut(&mut |r: Report<'_>| cut.take(r, unit));
        prop_assert_eq!(peeked, cut);
    }

    /// Keys of any length: each is sent in full at first sight, and the counters hold what they
    /// should.
    #[test]
    fn long_keys_are_sent_at_first_sight(
        stream in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..3), 1u64..50), 1..300),
        seed: u128,
        paper: bool,
        heavy in prop::sample::select(&HeavyKind::ALL[..]),
    ) {
        let shape = Shape { heavy, slots: 3, width: 50, bloom_bits: 40_000, ..Shape::PAPER_64KB };
        let rule = if paper { ReportRule::Paper } else { ReportRule::New };
        let mut plane = DataPlane::<16, AnyHeavy<16>>::any(Config { keys: KeyFormat::Digest, shape, rule, seed: seed.into() }).unwrap();
        let mut gathered = Gathered::default();
        let mut seen = HashSet::new();
        for (key, weight) in &stream {
            let before = gathered.keys.len();
            plane.insert_bytes(key, *weight, &mut |r: Report<'_>| gathered.take(r, 1 << 32)).unwrap();
            let sent = gathered.keys[before..].iter().any(|(sent, hot)| sent == key && !hot);
            prop_assert_eq!(sent, seen.insert(key.clone()), "a key is sent in full exactly when it is new");
        }
        plane.cut(&mut |r: Report<'_>| gathered.take(r, 1 << 32));
        let held: u64 = plane.heavy().entries().map(|(_, _, count, _)| count).sum();
        prop_assert_eq!(gathered.sketch_weight + held, stream.iter().map(|(_, weight)| weight).sum::<u64>());
        for row in gathered.counters.chunks(50) {
            prop_assert_eq!(row.iter().sum::<i64>() as u64, gathered.sketch_weight);
        }
    }
}

#[test]
fn memory_is_accounted_as_it_is_held() {
    fn check<const N: usize>() {
        for (bloom, bloom_hashes) in
            [(BloomKind::Classic, 8), (BloomKind::SplitBlock, 8), (BloomKind::Recent, BloomKind::RECENT_KEYS)]
        {
            for (i, (base, heavy)) in combinations().into_iter().enumerate() {
                let counter_bits = CounterBits::ALL[i % 4];
                let shape =
                    Shape { bloom, bloom_hashes, counter_bits, base, heavy, rows: 3, width: 1001, ..Shape::PAPER_64KB };
                let config = Config { keys: KeyFormat::Fixed(N as u8), shape, rule: ReportRule::New, seed: 0.into() };
                let plane = DataPlane::<N, AnyHeavy<N>>::any(config).unwrap();
                assert_eq!(plane.memory(), config.memory(), "{N} {shape:?}");
            }
        }
    }
    check::<4>();
    check::<8>();
    check::<13>();
    check::<16>();
}

#[test]
fn bad_requests_are_named() {
    let config =
        Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::Paper, seed: 0.into() };
    let wrong = |shape: Shape| DataPlane::<4>::new(Config { shape, ..config }).unwrap_err().to_string();
    assert_eq!(wrong(Shape { slots: 0, ..config.shape }), "slots is 0, but must be from 1 to 268435456");
    assert_eq!(wrong(Shape { rows: 17, ..config.shape }), "rows is 17, but must be from 1 to 16");
    assert_eq!(
        DataPlane::<8>::new(config).unwrap_err().to_string(),
        "keys of 8 bytes do not fit a sketch of 4-byte keys"
    );
    assert_eq!(
        wrong(Shape { heavy: HeavyKind::Elastic, ..config.shape }),
        "the configuration names the heavy part 'elastic', but the data plane has 'voting'"
    );
    let mut plane = Plane::any(config).unwrap();
    let before = plane.clone();
    let error = plane.insert(&[0; 4], 0, &mut |_: Report<'_>| ()).unwrap_err();
    assert_eq!(error.to_string(), "the weight of an item must be from 1 to 2^63 - 1, not 0");
    assert!(plane.insert_weighted_batch(&[[0; 4]; 2], &[1, u64::MAX], &mut |_: Report<'_>| ()).is_err());
    assert_eq!(plane, before, "a refused insert leaves no trace");
    let most = i64::MAX as u64;
    plane.insert(&[0; 4], most - 5, &mut |_: Report<'_>| ()).unwrap();
    let error = plane.insert(&[0; 4], 6, &mut |_: Report<'_>| ()).unwrap_err();
    assert!(error.to_string().starts_with("the weight of the stream would pass 2^63"), "{error}");
    assert!(plane.insert_weighted_batch(&[[0; 4]; 2], &[3, 3], &mut |_: Report<'_>| ()).is_err());
    let error = plane.insert_batch(&[[0; 4]; 6], &mut |_: Report<'_>| ()).unwrap_err();
    assert_eq!(error.to_string(), "the weight of the stream would pass 2^63: 9223372036854775802 so far, and 6 more");
    assert_eq!(plane.items(), 1);
    plane.insert_batch(&[[0; 4]; 5], &mut |_: Report<'_>| ()).unwrap();
    assert_eq!((plane.items(), plane.weight()), (6, most));

    let error = plane.insert_weighted_batch(&[[0; 4]; 2], &[1], &mut |_: Report<'_>| ()).unwrap_err();
    assert_eq!(error.to_string(), "1 weights for 2 keys");
    let nowhere = &mut |_: Report<'_>| ();
    let digests = Config { keys: KeyFormat::Digest, ..config };
    let mut long = DataPlane::<16>::new(digests).unwrap();
    assert_eq!(long.insert(&[0; 16], 1, nowhere), Err(InsertError::Digests));
    assert_eq!(long.insert_batch(&[[0; 16]], nowhere), Err(InsertError::Digests));
    let mut whole = DataPlane::<16>::new(Config { keys: KeyFormat::Fixed(16), ..config }).unwrap();
    assert_eq!(whole.insert_bytes(b"key", 1, nowhere), Err(InsertError::NoDigests));
}
