//! Changes in mid-stream and merging, against exact counts, in structures small enough that
//! everything collides.

use std::collections::HashMap;

use proptest::prelude::*;
use ucl_data_plane::{
    AnyHeavy, Base, BaseMap, BloomKind, ColumnMap, Config, ConfigError, CounterBits, DataPlane, HashSeed, HeavyKind,
    HeavyPart, KeyFormat, MergeError, Opening, Report, ReportRule, Shape,
};

fn shapes() -> impl Strategy<Value = Shape> {
    let parts = (prop::sample::select(&HeavyKind::ALL[..]), prop::sample::select(&Base::ALL[..]));
    (parts, 1u32..6, 1u32..4, 1u16..4, 1u32..12, prop::sample::select(&CounterBits::ALL[..]), 0u32..200).prop_map(
        |((heavy, base), slots, vote_ratio, rows, width, counter_bits, bloom_bits)| Shape {
            heavy,
            slots,
            vote_ratio,
            base,
            rows,
            width,
            counter_bits,
            bloom: BloomKind::Classic,
            bloom_bits,
            bloom_hashes: 2,
        },
    )
}

/// A data plane with whatever heavy part its shape says.
type Plane<const N: usize> = DataPlane<N, AnyHeavy<N>>;

fn rules() -> impl Strategy<Value = ReportRule> {
    prop::sample::select(&ReportRule::ALL[..])
}

fn streams() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let weight = prop_oneof![8 => Just(1u64), 2 => 1u64..300, 1 => 1u64..1 << 33];
    prop::collection::vec((0u32..30, weight), 1..120)
}

/// What a control plane would have rebuilt: one set of counters a segment.
#[derive(Default)]
struct Rebuilt {
    segments: Vec<(Config, Vec<i64>)>,
    weights: Vec<u64>,
    keys: Vec<Vec<u8>>,
}

impl Rebuilt {
    fn new(config: Config) -> Self {
        let mut rebuilt = Self::default();
        rebuilt.open(config);
        rebuilt
    }

    fn open(&mut self, config: Config) {
        self.segments.push((config, vec![0; config.shape.geometry().counters()]));
        self.weights.push(0);
    }

    fn take(&mut self, report: Report<'_>) {
        let (config, counters) = self.segments.last_mut().unwrap();
        let unit = config.shape.counter_bits.carry_unit(config.shape.signed());
        match report {
            Report::Carry { at, times } => counters[at.0 as usize] += times * unit,
            Report::Cut(cut) => {
                counters.iter_mut().zip(cut.counters.iter()).for_each(|(sum, more)| *sum += more);
                *self.weights.last_mut().unwrap() = cut.totals.sketch_weight;
            }
            Report::Open { config, opening } => {
                if opening != Opening::Change {
                    *self = Self::default();
                }
                self.open(*config);
            }
            Report::Key { key: ucl_data_plane::KeyRef::Whole(key), .. } => self.keys.push(key.to_vec()),
            Report::Key { .. } | Report::Slot { .. } | Report::Export(_) => {}
        }
    }
}

fn held(plane: &Plane<4>) -> HashMap<u32, u64> {
    plane.heavy().entries().map(|(_, key, count, _)| (u32::from_le_bytes(key), count)).collect()
}

fn add(exact: &mut HashMap<u32, u64>, stream: &[(u32, u64)]) {
    stream.iter().for_each(|&(key, weight)| *exact.entry(key).or_default() += weight);
}

/// The counters `A x` of what each key has in a segment.
fn product(config: &Config, x: &HashMap<u32, i64>) -> Vec<i64> {
    let seed = HashSeed::new(config.seed);
    let map = BaseMap::new(&config.shape);
    let mut y = vec![0; config.shape.geometry().counters()];
    for (key, x) in x {
        let column = map.column(seed.hash(&key.to_le_bytes()));
        column.indices().iter().zip(column.signs()).for_each(|(&at, &sign)| y[at as usize] += i64::from(sign) * x);
    }
    y
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every segment's counters are exactly `A x` for what entered the sketch while it was open;
    /// and with the heavy part that is all there was.
    #[test]
    fn a_change_loses_nothing_and_counts_nothing_twice(
        parts in prop::collection::vec((shapes(), any::<u128>(), streams()), 1..4),
        rule in rules(),
    ) {
        let config = |shape, seed: u128| Config { keys: KeyFormat::Fixed(4), shape, rule, seed: seed.into() };
        let first = config(parts[0].0, parts[0].1);
        let mut plane = Plane::<4>::any(first).unwrap();
        let mut rebuilt = Rebuilt::new(first);
        let mut exact = HashMap::new();
        // What each key has in the sketch, segment by segment: what came, less what the heavy part
        // gained.
        let mut in_sketch: Vec<HashMap<u32, i64>> = Vec::new();
        let mut before = HashMap::new();
        for (i, (shape, seed, stream)) in parts.iter().enumerate() {
            if i > 0 {
                plane.change(config(*shape, *seed), &mut |r: Report<'_>| rebuilt.take(r)).unwrap();
            }
            for &(key, weight) in stream {
                plane.insert(&key.to_le_bytes(), weight, &mut |r: Report<'_>| rebuilt.take(r)).unwrap();
            }
            add(&mut exact, stream);
            let mut x = HashMap::new();
            add(&mut x, stream);
            let mut x: HashMap<u32, i64> = x.into_iter().map(|(key, count)| (key, count as i64)).collect();
            let now = held(&plane);
            before.iter().for_each(|(&key, &count): (&u32, &u64)| *x.entry(key).or_default() += count as i64);
            now.iter().for_each(|(&key, &count)| *x.entry(key).or_default() -= count as i64);
            in_sketch.push(x);
            before = now;
        }
        plane.cut(&mut |r: Report<'_>| rebuilt.take(r));
        prop_assert_eq!(rebuilt.segments.len(), parts.len());
        for ((config, counters), x) in rebuilt.segments.iter().zip(&in_sketch) {
            prop_assert_eq!(counters, &product(config, x));
        }
        let total: u64 = exact.values().sum();
        prop_assert_eq!(rebuilt.weights.iter().sum::<u64>() + before.values().sum::<u64>(), total);
    }

    /// Merging is commutative, its total exact, and its counters those of both.
    #[test]
    fn merging_adds_up(shape in shapes(), seed: u128, rule in rules(), one in streams(), two in streams(), cut: bool) {
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule, seed: seed.into() };
        let fill = |stream: &[(u32, u64)]| {
            let (mut plane, mut rebuilt) = (Plane::<4>::any(config).unwrap(), Rebuilt::new(config));
            for &(key, weight) in stream {
                plane.insert(&key.to_le_bytes(), weight, &mut |r: Report<'_>| rebuilt.take(r)).unwrap();
            }
            if cut {
                plane.cut(&mut |r: Report<'_>| rebuilt.take(r));
            }
            (plane, rebuilt)
        };
        let merged = |a: &[(u32, u64)], b: &[(u32, u64)]| {
            let ((mut plane, mut ours), (other, theirs)) = (fill(a), fill(b));
            // The sink knows the reports of both.
            ours.segments[0].1.iter_mut().zip(&theirs.segments[0].1).for_each(|(sum, more)| *sum += more);
            plane.merge(&other, &mut |r: Report<'_>| ours.take(r)).unwrap();
            plane.cut(&mut |r: Report<'_>| ours.take(r));
            (plane, ours)
        };
        let ((plane, rebuilt), (mirrored, other)) = (merged(&one, &two), merged(&two, &one));
        // Where several slots are as good, who sits in which may depend on the order; what is held
        // may not.
        if shape.heavy == HeavyKind::Voting {
            prop_assert_eq!(&plane, &mirrored);
        }
        prop_assert_eq!(held(&plane), held(&mirrored));
        prop_assert_eq!((plane.items(), plane.bloom()), (mirrored.items(), mirrored.bloom()));
        prop_assert_eq!(&rebuilt.segments, &other.segments);
        let mut x: HashMap<u32, i64> = HashMap::new();
        one.iter().chain(&two).for_each(|&(key, weight)| *x.entry(key).or_default() += weight as i64);
        let total: i64 = x.values().sum();
        held(&plane).iter().for_each(|(&key, &count)| *x.entry(key).or_default() -= count as i64);
        prop_assert_eq!(&rebuilt.segments[0].1, &product(&config, &x));
        prop_assert_eq!(rebuilt.weights[0] + held(&plane).values().sum::<u64>(), total as u64);
        prop_assert_eq!(plane.items(), (one.len() + two.len()) as u64);
    }

    /// A reset leaves nothing: what follows is what a new data plane would do.
    #[test]
    fn a_reset_starts_from_zero(shape in shapes(), rule in rules(), seed: u128, one in streams(), two in streams()) {
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule, seed: seed.into() };
        let (mut used, mut fresh) = (Plane::<4>::any(config).unwrap(), Plane::<4>::any(config).unwrap());
        for &(key, weight) in &one {
            used.insert(&key.to_le_bytes(), weight, &mut |_: Report<'_>| ()).unwrap();
        }
        used.cut(&mut |_: Report<'_>| ());
        used.reset(false, &mut |_: Report<'_>| ());
        for &(key, weight) in &two {
            used.insert(&key.to_le_bytes(), weight, &mut |_: Report<'_>| ()).unwrap();
            fresh.insert(&key.to_le_bytes(), weight, &mut |_: Report<'_>| ()).unwrap();
        }
        prop_assert_eq!(used, fresh);
    }
}

/// The largest of the keys that meet keeps the slot.
#[test]
fn fewer_slots_keep_the_largest() {
    let shape = Shape { slots: 500, ..Shape::PAPER_64KB };
    let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
    let mut plane = Plane::<4>::any(config).unwrap();
    for key in 0..100u32 {
        plane.insert(&key.to_le_bytes(), u64::from(key) + 1, &mut |_: Report<'_>| ()).unwrap();
    }
    let before = held(&plane);
    let one = Config { shape: Shape { slots: 1, ..shape }, ..config };
    let mut evicted = 0;
    plane.change(one, &mut |r: Report<'_>| evicted += u32::from(matches!(r, Report::Key { .. }))).unwrap();
    assert_eq!(held(&plane), HashMap::from([(99, 100)]));
    assert!(before.len() > 80 && evicted >= before.len() as u32 - 1, "all others were reported: {evicted}");
}

#[test]
fn long_keys_keep_their_digests() {
    let shape = Shape { slots: 64, ..Shape::PAPER_64KB };
    let config = Config { keys: KeyFormat::Digest, shape, rule: ReportRule::New, seed: 1.into() };
    let mut plane = Plane::<16>::any(config).unwrap();
    plane.insert_bytes(b"a long key", 5, &mut |_: Report<'_>| ()).unwrap();
    plane.change(Config { seed: 2.into(), ..config }, &mut |_: Report<'_>| ()).unwrap();
    plane.insert_bytes(b"a long key", 2, &mut |_: Report<'_>| ()).unwrap();
    let counts: Vec<u64> = plane.heavy().entries().map(|(_, _, count, _)| count).collect();
    assert_eq!(counts, [7], "the same digest before and after");
    let mut other = Plane::<16>::any(Config { seed: 2.into(), ..config }).unwrap();
    let error = other.merge(&plane, &mut |_: Report<'_>| ()).unwrap_err();
    assert!(matches!(error, MergeError::Differ { what: "first seed", .. }), "{error}");
}

#[test]
fn what_cannot_be_merged_or_changed_is_named_and_left_as_it_is() {
    let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    let mut plane = Plane::<4>::any(config).unwrap();
    plane.insert(b"key1", 1 << 62, &mut |_: Report<'_>| ()).unwrap();
    let before = plane.clone();
    let with = |config: Config| Plane::<4>::any(config).unwrap();
    let mut refused = |other: &Plane<4>| plane.merge(other, &mut |_: Report<'_>| ()).unwrap_err().to_string();
    let shape = |shape: Shape| with(Config { shape, ..config });
    assert_eq!(
        refused(&shape(Shape { width: 512, ..config.shape })),
        "sketches that differ in width cannot be merged: 1024 and 512"
    );
    assert_eq!(
        refused(&shape(Shape { counter_bits: CounterBits::B8, ..config.shape })),
        "sketches that differ in counter bits cannot be merged: 32 and 8"
    );
    assert_eq!(
        refused(&with(Config { rule: ReportRule::Paper, ..config })),
        "sketches that differ in report rule cannot be merged: new and paper"
    );
    assert!(refused(&before.clone()).starts_with("the weight of both streams would pass 2^63"));
    let narrow = Config { shape: Shape { rows: 17, ..config.shape }, ..config };
    assert!(plane.change(narrow, &mut |_: Report<'_>| ()).is_err());
    let longer = Config { keys: KeyFormat::Fixed(8), ..config };
    assert_eq!(plane.change(longer, &mut |_: Report<'_>| ()), Err(ConfigError::KeySize { want: 4, got: 8 }));
    assert_eq!(plane, before);
}
