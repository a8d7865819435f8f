//! One suite for every combination: base sketch × heavy part × counter bits × decoder, against
//! exact counts, in structures small enough that everything collides. What is not supported is
//! named.

use std::collections::HashMap;

use ucl_control_plane::{ControlPlane, PROBABILITY};
use ucl_data_plane::{AnyHeavy, BaseMap, BloomKind, ColumnMap, DataPlane, HashSeed, HeavyPart};
use ucl_sketch::learned::Config as Network;
use ucl_sketch::{
    Base, BoundKind, Config, CounterBits, DecoderKind, Execution, Fallback, HeavyKind, KeyFormat, ReportRule, Settings,
    Shape, UclSketch,
};
use ucl_streams::SplitMix64;

type Plane = DataPlane<4, AnyHeavy<4>>;
type Item = ([u8; 4], u64);

/// Every base sketch with every heavy part.
fn combinations() -> impl Iterator<Item = (Base, HeavyKind)> {
    Base::ALL.into_iter().flat_map(|base| HeavyKind::ALL.map(|heavy| (base, heavy)))
}

/// A shape in which everything collides.
fn crowded(base: Base, heavy: HeavyKind, counter_bits: CounterBits) -> Shape {
    let (rows, width) = (3, 50);
    let bloom = BloomKind::Classic;
    Shape { heavy, slots: 40, vote_ratio: 2, base, rows, width, counter_bits, bloom, bloom_bits: 4096, bloom_hashes: 3 }
}

/// A shape in which hardly anything does.
fn ample(base: Base, heavy: HeavyKind, counter_bits: CounterBits) -> Shape {
    Shape { slots: 20, rows: 4, width: 4096, bloom_bits: 1 << 17, ..crowded(base, heavy, counter_bits) }
}

fn config(shape: Shape, seed: u64) -> Config {
    Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::Paper, seed: u128::from(seed).into() }
}

/// A skewed stream whose hot keys change half-way; weights are mostly 1 and at times hundreds.
fn stream(items: usize, seed: u64) -> Vec<Item> {
    let mut random = SplitMix64::new(seed);
    let mut item = |i: usize| {
        let key = (1.0 / (random.unit() + 3e-3)) as u32 + if i < items / 2 { 0 } else { 7 };
        (key.to_le_bytes(), if random.below(50) == 0 { 1 + random.below(700) } else { 1 })
    };
    (0..items).map(&mut item).collect()
}

fn exact(stream: &[Item]) -> HashMap<[u8; 4], u64> {
    let mut exact = HashMap::new();
    stream.iter().for_each(|&(key, weight)| *exact.entry(key).or_default() += weight);
    exact
}

/// A network small enough to train within a test.
fn settings(decoder: DecoderKind) -> Settings {
    let learned = Network { epochs: 2, hidden: 8, neck: 8, bucket_length: 64, ..Network::default() };
    Settings {
        decoder,
        window: 8,
        train_every: Some(8),
        learned,
        fallback: Fallback::WhenUntrained,
        ..Settings::default()
    }
}

fn built(config: Config, decoder: DecoderKind) -> Result<UclSketch, String> {
    let builder =
        UclSketch::builder().key_bytes(4).shape(config.shape).report_rule(config.rule).seed(config.seed.value());
    builder.settings(settings(decoder)).interval(300).build().map_err(|error| error.to_string())
}

fn insert(sketch: &mut UclSketch, stream: &[Item]) {
    let (keys, weights): (Vec<[u8; 4]>, Vec<u64>) = stream.iter().copied().unzip();
    sketch.insert_flat(4, keys.as_flattened(), Some(&weights)).unwrap();
}

/// Which decoders work with which base sketch: what the table in `docs/combinations.md` says.
fn supported(base: Base) -> Vec<DecoderKind> {
    use DecoderKind::{Cm, Delta, Em, Learned, Lsmr, Lsqr, Map, Omp, Refined};
    let mut decoders = match base {
        Base::CountMin => vec![Cm, Map, Lsqr, Lsmr, Omp, Em, Learned, Refined, Delta],
        Base::CountSketch => vec![Cm, Lsqr, Lsmr, Omp, Learned],
        Base::FlowRadar => vec![Cm, Lsqr, Lsmr, Omp, Em, Learned, Refined, Delta],
    };
    decoders.retain(|decoder| decoder.is_built());
    decoders
}

/// No weight is lost or counted twice, and the control plane's counters are exactly `A x`.
#[test]
fn the_counters_are_exactly_a_x() {
    for (base, heavy) in combinations() {
        for counter_bits in CounterBits::ALL {
            let config = config(crowded(base, heavy, counter_bits), 5);
            let what = format!("{base}, {heavy}, {counter_bits}");
            let mut data = Plane::any(config).unwrap();
            let mut control = ControlPlane::new(config, settings(DecoderKind::Cm)).unwrap();
            let stream = stream(4_000, 1);
            for (i, (key, weight)) in stream.iter().enumerate() {
                data.insert(key, *weight, &mut control).unwrap();
                if i % 300 == 299 {
                    data.cut(&mut control);
                }
            }
            data.cut(&mut control);
            assert_eq!(control.fault(), None, "{what}");
            let map = BaseMap::new(&config.shape);
            let seed = HashSeed::new(config.seed);
            let mut y = vec![0i64; config.shape.geometry().counters()];
            for (key, count) in exact(&stream) {
                let column = map.column(seed.hash(&key));
                for (&at, &sign) in column.indices().iter().zip(column.signs()) {
                    y[at as usize] += i64::from(sign) * (count - data.exact(&key)) as i64;
                }
            }
            assert_eq!(control.segment().cumulative().to_vec(), y, "{what}");
            let held: u64 = data.heavy().entries().map(|(_, _, count, _)| count).sum();
            let total: u64 = stream.iter().map(|(_, weight)| weight).sum();
            assert_eq!(control.segment().sketch_weight() + held, total, "{what}");
            assert!(held > 0 && held < total, "both halves are at work: {what}");
        }
    }
}

/// Guaranteed bounds hold for every key, known or not, whoever decodes.
#[test]
fn guaranteed_bounds_hold() {
    let stream = stream(3_000, 2);
    let exact = exact(&stream);
    for (base, heavy) in combinations() {
        for (decoder, counter_bits) in supported(base).into_iter().zip(CounterBits::ALL.into_iter().cycle()) {
            let what = format!("{base}, {heavy}, {decoder}, {counter_bits}");
            let mut sketch = built(config(crowded(base, heavy, counter_bits), 9), decoder).unwrap();
            insert(&mut sketch, &stream);
            let view = sketch.query_view().unwrap();
            assert_eq!(view.answered_by(), decoder, "{what}");
            for key in (0..400u32).map(u32::to_le_bytes) {
                let truth = exact.get(&key).copied().unwrap_or(0);
                let answer = view.estimate(&key);
                assert_eq!(answer.bound, BoundKind::Guaranteed);
                assert!((answer.lower..=answer.upper).contains(&truth), "{what}: {truth} is not in {answer:?}");
                assert!((answer.lower..=answer.upper).contains(&answer.estimate), "{what}: {answer:?}");
            }
            assert_eq!(view.weight(), stream.iter().map(|(_, weight)| weight).sum::<u64>(), "{what}");
        }
    }
}

/// Probable bounds hold as often as they say, over keys and seeds, and are worth having; others are
/// guaranteed.
#[test]
fn probable_bounds_hold_as_often_as_they_say() {
    for (base, heavy) in combinations() {
        let (mut asked, mut inside, mut tighter) = (0u32, 0u32, 0u32);
        for seed in 0..6 {
            let stream = stream(3_000, seed);
            let mut sketch = built(config(crowded(base, heavy, CounterBits::B32), seed), DecoderKind::Cm).unwrap();
            insert(&mut sketch, &stream);
            let view = sketch.query_view().unwrap();
            for (key, truth) in exact(&stream) {
                let (certain, probable) = (view.estimate(&key), view.likely(&key));
                assert!((probable.lower..=probable.upper).contains(&probable.estimate));
                if base != Base::CountSketch {
                    assert_eq!(probable, certain);
                    continue;
                }
                asked += 1;
                inside += u32::from((probable.lower..=probable.upper).contains(&truth));
                tighter +=
                    u32::from(probable.bound == BoundKind::Probable(PROBABILITY) && probable.upper < certain.upper);
            }
        }
        let needed = PROBABILITY * f64::from(asked);
        assert!(f64::from(inside) >= needed && f64::from(tighter) >= needed, "{heavy}: {inside}, {tighter} of {asked}");
    }
}

/// Batches, single inserts and a control plane behind the wire: the same answers.
#[test]
fn how_items_travel_changes_no_answer() {
    let stream = stream(3_000, 3);
    for ((base, heavy), counter_bits) in combinations().zip(CounterBits::ALL.into_iter().cycle()) {
        let config = config(crowded(base, heavy, counter_bits), 4);
        let mut batch = built(config, DecoderKind::Lsmr).unwrap();
        insert(&mut batch, &stream);
        let mut single = built(config, DecoderKind::Lsmr).unwrap();
        stream.iter().for_each(|(key, weight)| single.insert_weighted(key, *weight).unwrap());
        let builder = UclSketch::builder().key_bytes(4).shape(config.shape).seed(config.seed.value()).interval(300);
        let behind = builder.settings(settings(DecoderKind::Lsmr)).execution(Execution::Background);
        let mut behind = behind.build().unwrap();
        insert(&mut behind, &stream);
        let view = batch.query_view().unwrap();
        assert!(view.all().eq(single.query_view().unwrap().all()), "{base}, {heavy}, {counter_bits}: one by one");
        let there = behind.query_view().unwrap();
        assert_eq!(view.keys(), there.keys());
        for (key, _) in &stream {
            assert_eq!(view.estimate(key), there.estimate(key), "{base}, {heavy}, {counter_bits}: over the wire");
        }
    }
}

/// With memory to spare the counts are exact, by every decoder that solves the equations.
#[test]
fn ample_memory_is_exact() {
    let stream = stream(3_000, 4);
    let exact = exact(&stream);
    for (base, heavy) in combinations() {
        for decoder in [DecoderKind::Cm, DecoderKind::Lsmr, DecoderKind::Em, DecoderKind::Delta] {
            if !supported(base).contains(&decoder) {
                continue;
            }
            for counter_bits in [CounterBits::B4, CounterBits::B32] {
                let mut sketch = built(config(ample(base, heavy, counter_bits), 6), decoder).unwrap();
                insert(&mut sketch, &stream);
                let view = sketch.query_view().unwrap();
                for (key, &truth) in &exact {
                    let estimate = view.estimate(key).estimate;
                    assert_eq!(estimate, truth, "{base}, {heavy}, {decoder}, {counter_bits}: {key:?}");
                }
            }
        }
    }
}

#[test]
fn unsupported_pairs_are_named() {
    for (base, heavy) in combinations() {
        for decoder in DecoderKind::ALL.into_iter().filter(|decoder| decoder.is_built()) {
            let shape = crowded(base, heavy, CounterBits::B32);
            match built(config(shape, 1), decoder) {
                Ok(_) => assert!(supported(base).contains(&decoder), "{base} with {decoder}"),
                Err(error) => {
                    let start = format!("the decoder '{decoder}' cannot decode this sketch: it needs ");
                    assert!(
                        !supported(base).contains(&decoder) && error.starts_with(&start),
                        "{base}, {decoder}: {error}"
                    );
                }
            }
        }
    }
}

/// Twice the weight of everything is the same stream to the network: what it sees and says is
/// normalised.
#[cfg(feature = "learned")]
#[test]
fn natural_change_leaves_the_normalised_output_as_it_is() {
    let once = stream(2_400, 7);
    let twice: Vec<Item> = once.iter().map(|&(key, weight)| (key, 2 * weight)).collect();
    for (base, heavy) in combinations() {
        let decoded = |stream: &[Item]| {
            let mut sketch = built(config(crowded(base, heavy, CounterBits::B32), 8), DecoderKind::Learned).unwrap();
            insert(&mut sketch, stream);
            sketch.with_control(|control| {
                let counters: Vec<f64> = control.segment().cumulative().to_vec().iter().map(|&y| y as f64).collect();
                let solver = control.network().unwrap().solver();
                assert!(solver.steps() > 0);
                let mut x = vec![0.0; control.segment().columns().len()];
                solver.decode(&solver.encode(&counters).unwrap(), &mut x).unwrap();
                x
            })
        };
        let (once, twice) = (decoded(&once), decoded(&twice));
        assert!(!once.is_empty());
        let doubled: Vec<f64> = once.iter().map(|x| 2.0 * x).collect();
        assert_eq!(twice, doubled, "{base}, {heavy}");
    }
}

/// The planner keeps to the budget with any combination, and says what it takes.
#[test]
fn plans_differ_in_what_was_asked_for_only() {
    for (base, heavy) in combinations() {
        let builder = UclSketch::builder().key_bytes(4).base(base).heavy(heavy).decoder(DecoderKind::Learned);
        let (config, _) = builder.plan().unwrap();
        assert_eq!((config.shape.base, config.shape.heavy), (base, heavy));
        assert!((4000..=4096).contains(&config.shape.geometry().counters()));
        let used = config.memory().total();
        assert!(used <= 65_536 && used > 65_000, "{base}, {heavy}: {used}");
        // A shape by hand keeps its sizes.
        let (by_hand, _) = builder.shape(Shape::PAPER_64KB).plan().unwrap();
        assert_eq!(by_hand.shape, Shape { base, heavy, ..Shape::PAPER_64KB });
    }
}
