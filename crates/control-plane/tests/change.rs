//! Changes in mid-stream and merging against exact counts, in structures small enough that
//! everything collides.

use std::collections::HashMap;

use proptest::prelude::*;
use ucl_control_plane::{ChangeKind, ControlPlane, DecoderKind, Fault, QueryView, ReportError, Settings};
use ucl_data_plane::{
    AnyHeavy, Base, BloomKind, Config, CounterBits, DataPlane, HeavyKind, KeyFormat, MergeError, Opening, Report,
    ReportRule, ReportSink, Shape,
};

type Counts = HashMap<u32, u64>;
type Stream = Vec<(u32, u64)>;

/// Both planes, and the truth about them.
struct Both {
    data: DataPlane<4, AnyHeavy<4>>,
    control: ControlPlane,
    exact: Counts,
    /// The exact counts when each sealed segment ended: items, the streams that were one by then,
    /// counts.
    ends: Vec<(u64, u32, u32, Counts)>,
    /// Where counting starts, where segments were dropped.
    dropped: Vec<(u32, u32, Counts)>,
    streams: u32,
}

impl Both {
    fn new(config: Config, settings: Settings) -> Self {
        let (data, control) = (DataPlane::any(config).unwrap(), ControlPlane::new(config, settings).unwrap());
        Self { data, control, exact: Counts::new(), ends: Vec::new(), dropped: Vec::new(), streams: 0 }
    }

    fn insert(&mut self, stream: &[(u32, u64)], interval: usize) {
        for (i, &(key, weight)) in stream.iter().enumerate() {
            self.data.insert(&key.to_le_bytes(), weight, &mut self.control).unwrap();
            *self.exact.entry(key).or_default() += weight;
            if (i + 1) % interval == 0 {
                self.data.cut(&mut self.control);
            }
        }
    }

    fn change(&mut self, config: Config) {
        self.ends.push((self.data.items(), 0, self.streams, self.exact.clone()));
        self.data.change(config, &mut self.control).unwrap();
    }

    fn reset(&mut self) {
        self.data.reset(false, &mut self.control);
        (self.exact, self.ends, self.dropped, self.streams) = Default::default();
    }

    fn drop_oldest(&mut self) {
        let dropped = self.control.drop_oldest_segment().unwrap();
        assert_eq!(dropped, !self.ends.is_empty());
        if dropped {
            let (_, stream, through, counts) = self.ends.remove(0);
            self.dropped.retain(|(earlier, ..)| !(stream..=through).contains(earlier));
            self.dropped.push((stream, through, counts));
        }
    }

    fn merge(&mut self, mut other: Self) {
        self.data.cut(&mut self.control);
        other.data.cut(&mut other.control);
        self.control.check_merge(&other.control).unwrap();
        self.control.merge(&mut other.control).unwrap();
        self.data.merge(&other.data, &mut self.control).unwrap();
        other.exact.into_iter().for_each(|(key, count)| *self.exact.entry(key).or_default() += count);
        let next = self.streams + 1;
        self.ends.extend(other.ends.into_iter().map(|(items, a, b, counts)| (items, a + next, b + next, counts)));
        self.ends.sort_by_key(|&(items, stream, ..)| (items, stream));
        self.dropped.extend(other.dropped.into_iter().map(|(a, b, counts)| (a + next, b + next, counts)));
        self.streams += other.streams + 1;
    }

    fn view(&mut self) -> QueryView {
        assert_eq!(self.control.fault(), None);
        self.control.view(|sink| self.data.peek(sink)).unwrap()
    }

    /// The count of a key since counting starts.
    fn truth(&self, key: u32) -> u64 {
        let before: u64 = self.dropped.iter().filter_map(|(_, _, counts)| counts.get(&key)).sum();
        self.exact.get(&key).copied().unwrap_or(0) - before
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let view = self.view();
        prop_assert_eq!(view.weight(), self.exact.values().sum::<u64>());
        for key in 0..70u32 {
            let (truth, answer) = (self.truth(key), view.estimate(&key.to_le_bytes()));
            prop_assert!(answer.lower <= truth && truth <= answer.upper, "key {}: {} not in {:?}", key, truth, answer);
            prop_assert!(answer.lower <= answer.estimate && answer.estimate <= answer.upper);
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Stream),
    Cut,
    Rehash(u128),
    Resize(Shape),
    Reset,
    /// With a stream that had another seed for its first half.
    Merge(Stream, Option<u128>),
    Drop,
}

fn shape(signed: bool) -> impl Strategy<Value = Shape> {
    let base = if signed { Base::CountSketch } else { Base::CountMin };
    let heavy = prop::sample::select(&HeavyKind::ALL[..]);
    (heavy, 1u32..8, 1u32..9, 1u16..5, 1u32..30, prop::sample::select(&CounterBits::ALL[..]), 0u32..300).prop_map(
        move |(heavy, slots, vote_ratio, rows, width, counter_bits, bloom_bits)| Shape {
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

fn stream() -> impl Strategy<Value = Stream> {
    let key = prop_oneof![3 => 0u32..4, 2 => 0u32..60];
    let weight = prop_oneof![6 => Just(1u64), 2 => 1u64..40, 1 => 1u64..5_000];
    prop::collection::vec((key, weight), 1..120)
}

fn steps(signed: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => stream().prop_map(Step::Insert),
        2 => Just(Step::Cut),
        3 => (0u128..50).prop_map(Step::Rehash),
        2 => shape(signed).prop_map(Step::Resize),
        1 => Just(Step::Reset),
        2 => (stream(), prop::option::of(0u128..50)).prop_map(|(stream, seed)| Step::Merge(stream, seed)),
        2 => Just(Step::Drop),
    ];
    prop::collection::vec(step, 1..10)
}

fn config(shape: Shape, rule: u8, seed: u128) -> Config {
    let rule = ReportRule::ALL[usize::from(rule)];
    Config { keys: KeyFormat::Fixed(4), shape, rule, seed: seed.into() }
}

fn run(both: &mut Both, settings: &Settings, steps: &[Step], interval: usize) -> Result<(), TestCaseError> {
    for step in steps {
        let config = *both.data.config();
        match step {
            Step::Insert(stream) => both.insert(stream, interval),
            Step::Cut => both.data.cut(&mut both.control),
            Step::Rehash(seed) => both.change(Config { seed: (*seed).into(), ..config }),
            Step::Resize(shape) => both.change(Config { shape: *shape, ..config }),
            Step::Reset => both.reset(),
            Step::Merge(stream, first_seed) => {
                let seed = first_seed.map_or(config.seed, Into::into);
                let mut other = Both::new(Config { seed, ..config }, settings.clone());
                let (early, late) = stream.split_at(stream.len() / 2);
                other.insert(early, interval);
                if first_seed.is_some() {
                    other.change(config);
                }
                other.insert(late, interval);
                both.merge(other);
            }
            Step::Drop => both.drop_oldest(),
        }
        both.check()?;
    }
    // Nothing was lost on the way: what is in sketches and slots is the stream.
    if both.dropped.is_empty() {
        both.data.cut(&mut both.control);
        let sketched: u64 = both.control.sealed().chain([both.control.segment()]).map(|s| s.sketch_weight()).sum();
        let held: u64 = (0..70u32).map(|key| both.data.exact(&key.to_le_bytes())).sum();
        prop_assert_eq!(sketched + held, both.exact.values().sum::<u64>());
    }
    Ok(())
}

fn settings(decoder: DecoderKind, change: ChangeKind) -> Settings {
    Settings { decoder, change, train_every: None, retain_epochs: 4, ..Settings::default() }
}

const CLASSIC: [DecoderKind; 6] =
    [DecoderKind::Cm, DecoderKind::Map, DecoderKind::Lsqr, DecoderKind::Lsmr, DecoderKind::Omp, DecoderKind::Em];

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_through_any_changes(
        first in shape(false), rule in 0u8..4, seed: u128, steps in steps(false), interval in 1usize..60,
        decoder in prop::sample::select(&CLASSIC[..]), paper: bool,
    ) {
        let settings = settings(decoder, if paper { ChangeKind::PaperColumns } else { ChangeKind::Sealed });
        run(&mut Both::new(config(first, rule, seed), settings.clone()), &settings, &steps, interval)?;
    }

    #[test]
    fn bounds_hold_for_delta(
        first in shape(false), rule in 0u8..4, seed: u128, steps in steps(false), interval in 1usize..60,
    ) {
        let settings = settings(DecoderKind::Delta, ChangeKind::Sealed);
        run(&mut Both::new(config(first, rule, seed), settings.clone()), &settings, &steps, interval)?;
    }

    #[test]
    fn bounds_hold_for_count_sketch(
        first in shape(true), rule in 0u8..4, seed: u128, steps in steps(true), interval in 1usize..60, lsmr: bool, paper: bool,
    ) {
        let decoder = if lsmr { DecoderKind::Lsmr } else { DecoderKind::Cm };
        let settings = settings(decoder, if paper { ChangeKind::PaperColumns } else { ChangeKind::Sealed });
        run(&mut Both::new(config(first, rule, seed), settings.clone()), &settings, &steps, interval)?;
    }

    /// Remainders and carries are exactly what counters hold that are too wide to overflow, for any
    /// stream, through changes, resets and merges.
    #[test]
    fn narrow_counters_hold_what_wide_ones_do(
        (first, steps) in any::<bool>().prop_flat_map(|signed| (shape(signed), steps(signed))),
        rule in 0u8..4, seed: u128, interval in 1usize..60, bits in prop::sample::select(&CounterBits::ALL[..]),
    ) {
        let settings = settings(DecoderKind::Cm, ChangeKind::Sealed);
        let counters = |counter_bits: CounterBits| {
            // Augmented's filter asks the counters whom to exchange.
            let of_width = |shape: Shape| Shape { counter_bits, heavy: HeavyKind::Voting, ..shape };
            let steps: Vec<Step> = steps.iter().map(|step| match step {
                Step::Resize(shape) => Step::Resize(of_width(*shape)),
                other => other.clone(),
            }).collect();
            let mut both = Both::new(config(of_width(first), rule, seed), settings.clone());
            run(&mut both, &settings, &steps, interval)?;
            both.data.cut(&mut both.control);
            let segments = both.control.sealed().chain([both.control.segment()]);
            Ok::<_, TestCaseError>(segments.map(|segment| segment.cumulative().to_vec()).collect::<Vec<_>>())
        };
        prop_assert_eq!(counters(bits)?, counters(CounterBits::B32)?);
    }

    /// With counters and filter to spare delta stays exact, whatever happens; and so does each
    /// key's count over time.
    #[test]
    fn ample_memory_is_exact(steps in steps(false), seed: u128, slots in 1u32..6, narrow: bool, interval in 1usize..60) {
        let counter_bits = if narrow { CounterBits::B4 } else { CounterBits::B32 };
        let shape = Shape { slots, width: 2048, counter_bits, bloom_bits: 1 << 16, ..Shape::PAPER_64KB };
        let settings = Settings { retain_epochs: 10_000, ..settings(DecoderKind::Delta, ChangeKind::Sealed) };
        let mut both = Both::new(config(shape, 1, seed), settings.clone());
        for step in &steps {
            // Sizes vary, but stay ample.
            let step = match step {
                Step::Resize(other) => Step::Resize(Shape { slots: other.slots, width: 2000 + other.width, ..shape }),
                other => other.clone(),
            };
            run(&mut both, &settings, &[step], interval)?;
            let view = both.view();
            for (id, answer) in view.all() {
                let key = u32::from_le_bytes(view.registry().key(id).try_into().unwrap());
                prop_assert_eq!(answer.estimate, both.truth(key), "key {}", key);
                if both.dropped.is_empty() {
                    let over_time = view.series().count(id, ..);
                    prop_assert!((over_time - both.truth(key) as f64).abs() < 0.5, "key {}: {}", key, over_time);
                }
            }
            prop_assert_eq!(view.unexplained(), 0);
        }
    }

    /// Whose side a stream is on, and in which order streams are merged, changes no bound;
    /// estimates by rounding alone.
    #[test]
    fn merging_is_commutative(
        shape in shape(false), rule in 0u8..4, seed: u128, interval in 1usize..60, streams in prop::collection::vec(stream(), 3),
        decoder in prop::sample::select(&[DecoderKind::Cm, DecoderKind::Em, DecoderKind::Delta][..]),
    ) {
        let settings = settings(decoder, ChangeKind::Sealed);
        let merged = |order: [usize; 2]| {
            let mut sides = order.map(|at| {
                let mut both = Both::new(config(shape, rule, seed), settings.clone());
                both.insert(&streams[at], interval);
                both
            });
            let [ours, theirs] = &mut sides;
            ours.merge(std::mem::replace(theirs, Both::new(config(shape, rule, seed), settings.clone())));
            let [mut ours, _] = sides;
            let view = ours.view();
            (ours.data, view)
        };
        let ((_, ab), (_, ba)) = (merged([0, 1]), merged([1, 0]));
        for key in 0..70u32 {
            let (a, b) = (ab.estimate(&key.to_le_bytes()), ba.estimate(&key.to_le_bytes()));
            prop_assert_eq!((a.lower, a.upper), (b.lower, b.upper), "key {}", key);
            prop_assert!(a.estimate.abs_diff(b.estimate) <= 1 + a.estimate / 50, "key {}: {:?} and {:?}", key, a, b);
        }
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut all = Both::new(config(shape, rule, seed), settings.clone());
            for at in order {
                let mut other = Both::new(config(shape, rule, seed), settings.clone());
                other.insert(&streams[at], interval);
                all.merge(other);
            }
            all.check()?;
        }
    }
}

/// A key that the first segment knew is answered as before, to the digit, right after the change.
#[test]
fn what_was_known_stays_known_at_once() {
    let shape = Shape { slots: 20, width: 60, ..Shape::PAPER_64KB };
    for decoder in [DecoderKind::Em, DecoderKind::Delta, DecoderKind::Cm] {
        let mut both = Both::new(config(shape, 1, 1), settings(decoder, ChangeKind::Sealed));
        let stream: Stream = (0..4_000u32).map(|i| (i.wrapping_mul(i) % 1_009 % 60, 1)).collect();
        both.insert(&stream, 500);
        let before = both.view();
        both.change(config(Shape { slots: 500, ..shape }, 1, 2));
        let after = both.view();
        for (id, answer) in before.all() {
            let now = after.of(id);
            assert_eq!(
                (now.estimate, now.lower, now.upper),
                (answer.estimate, answer.lower, answer.upper),
                "{decoder:?}"
            );
        }
        assert_eq!(both.control.sealed().count(), 1);
        both.control.drop_oldest_segment().unwrap();
        let view = both.view();
        assert_eq!(view.since(), 4_000);
        assert!(view.all().all(|(_, answer)| answer.estimate == 0 && answer.upper == 0), "nothing came since");
    }
}

/// A key that finds no slot in the new heavy part enters the new counters, and how much of it did
/// is known exactly.
#[test]
fn a_key_that_loses_its_slot_is_not_forgotten() {
    for decoder in [DecoderKind::Cm, DecoderKind::Delta] {
        let shape = Shape { slots: 4_000, width: 3, ..Shape::PAPER_64KB };
        let mut both = Both::new(config(shape, 1, 1), settings(decoder, ChangeKind::Sealed));
        let stream: Stream = (0..30u32).map(|key| (key, u64::from(key) + 1)).collect();
        both.insert(&stream, 100);
        let held: Vec<u32> = (0..30u32).filter(|key| both.data.exact(&key.to_le_bytes()) > 0).collect();
        assert!(held.len() > 25, "nearly all have a slot");
        both.change(config(Shape { slots: 1, ..shape }, 1, 2));
        for cut in [false, true] {
            if cut {
                both.data.cut(&mut both.control);
            }
            let view = both.view();
            let known = |key: &u32| view.estimate(&key.to_le_bytes()).lower == u64::from(*key) + 1;
            assert!(held.iter().all(known), "{decoder:?}, cut: {cut}");
        }
    }
}

#[test]
fn the_papers_variant_decodes_all_columns_together() {
    let shape = Shape { slots: 4, width: 512, ..Shape::PAPER_64KB };
    let mut both = Both::new(config(shape, 1, 1), settings(DecoderKind::Em, ChangeKind::PaperColumns));
    let stream: Stream = (0..3_000u32).map(|i| (i % 50, 1)).collect();
    both.insert(&stream, 500);
    both.change(config(shape, 1, 2));
    both.insert(&stream, 500);
    let view = both.view();
    assert_eq!(view.all().filter(|(_, answer)| answer.estimate.abs_diff(120) <= 6).count(), 50);
}

/// The counters go on: both halves are in the window's newest snapshot.
#[cfg(feature = "learned")]
#[test]
fn the_papers_variant_trains_on_all_counters() {
    let shape = Shape { slots: 4, width: 512, ..Shape::PAPER_64KB };
    let stream: Stream = (0..3_000u32).map(|i| (i % 50, 1)).collect();
    let learned = Settings { window: 8, ..settings(DecoderKind::Learned, ChangeKind::PaperColumns) };
    let mut both = Both::new(config(shape, 0, 1), learned);
    both.insert(&stream, 500);
    both.change(config(shape, 0, 2));
    both.insert(&stream, 500);
    let newest = both.control.window().iter().last().unwrap();
    let sketched: u64 = both.control.sealed().chain([both.control.segment()]).map(|s| s.sketch_weight()).sum();
    assert_eq!(newest.counters.iter().sum::<f64>(), 4.0 * sketched as f64);
    both.check().unwrap();
}

/// A lost cut before a change, and a configuration that the decoder cannot take, are noticed.
#[test]
fn a_change_that_does_not_fit_is_noticed() {
    let shape = Shape { slots: 2, width: 8, counter_bits: CounterBits::B4, ..Shape::PAPER_64KB };
    let first = config(shape, 1, 1);
    let mut data = DataPlane::<4>::new(first).unwrap();
    let mut control = ControlPlane::new(first, Settings::default()).unwrap();
    (0..600u32).for_each(|i| data.insert(&(i % 40).to_le_bytes(), 1, &mut control).unwrap());
    control.report(Report::Open { config: &first, opening: Opening::Change });
    assert_eq!(control.fault(), Some(&Fault::Report(ReportError::NotCut)));

    let signed = config(Shape { base: Base::CountSketch, ..shape }, 1, 1);
    let mut both = Both::new(first, Settings::default());
    assert!(both.control.check_change(&signed).is_err() && both.control.check_change(&first).is_ok());
    both.data.change(signed, &mut both.control).unwrap();
    assert!(matches!(both.control.fault(), Some(Fault::Settings(_))));
}

#[test]
fn different_sketches_are_refused_by_name() {
    let shape = Shape { slots: 2, width: 8, ..Shape::PAPER_64KB };
    let control =
        |seed, decoder| ControlPlane::new(config(shape, 1, seed), Settings { decoder, ..Settings::default() }).unwrap();
    let ours = control(1, DecoderKind::Em);
    let refused = |other| ours.check_merge(&other).unwrap_err();
    assert!(matches!(refused(control(2, DecoderKind::Em)), MergeError::Differ { what: "seed", .. }));
    assert_eq!(
        refused(control(1, DecoderKind::Delta)).to_string(),
        "sketches that differ in decoder cannot be merged: em and delta"
    );
}
