//! The control plane against exact counts, in structures small enough that everything collides.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use ucl_control_plane::{ControlPlane, DecoderKind, Fault, Settings, Source};
use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, CounterIndex, Counters, Cut, CutTotals, DataPlane, HeavyKind, KeyFlags,
    KeyFormat, KeyRef, Report, ReportRule, ReportSink, Shape,
};

fn config(base: Base) -> impl Strategy<Value = Config> {
    (1u32..8, 1u32..9, 1u16..5, 1u32..30, prop::sample::select(&CounterBits::ALL[..]), 0u32..400, 0u8..4, any::<u128>())
        .prop_map(move |(slots, vote_ratio, rows, width, counter_bits, bloom_bits, rule, seed)| Config {
            keys: KeyFormat::Fixed(4),
            shape: Shape {
                slots,
                vote_ratio,
                rows,
                width,
                counter_bits,
                heavy: HeavyKind::Voting,
                base,
                bloom: BloomKind::Classic,
                bloom_bits,
                bloom_hashes: 2,
            },
            rule: ReportRule::ALL[usize::from(rule)],
            seed: seed.into(),
        })
}

fn stream() -> impl Strategy<Value = Vec<(u32, u64)>> {
    // A few hot keys, many cold ones, some weights.
    let key = prop_oneof![3 => 0u32..4, 2 => 0u32..60];
    let weight = prop_oneof![6 => Just(1u64), 2 => 1u64..40, 1 => 1u64..5_000];
    prop::collection::vec((key, weight), 1..500)
}

/// Inserts the stream with a cut every `interval` items; the last epoch stays open.
fn run(config: Config, decoder: DecoderKind, stream: &[(u32, u64)], interval: usize) -> (DataPlane<4>, ControlPlane) {
    run_lagging(config, decoder, stream, interval, &[false])
}

/// The same, and the control plane lags at the cuts for which `lags`, over and over again, says so.
fn run_lagging(
    config: Config,
    decoder: DecoderKind,
    stream: &[(u32, u64)],
    interval: usize,
    lags: &[bool],
) -> (DataPlane<4>, ControlPlane) {
    let mut data = DataPlane::<4>::new(config).unwrap();
    let settings = Settings { decoder, train_every: None, ..Settings::default() };
    let mut control = ControlPlane::new(config, settings).unwrap();
    let mut lags = lags.iter().cycle();
    for (i, &(key, weight)) in stream.iter().enumerate() {
        data.insert(&key.to_le_bytes(), weight, &mut control).unwrap();
        if (i + 1) % interval == 0 {
            control.set_lagging(*lags.next().unwrap());
            data.cut(&mut control);
        }
    }
    assert_eq!(control.fault(), None);
    (data, control)
}

fn exact(stream: &[(u32, u64)]) -> HashMap<u32, u64> {
    let mut exact = HashMap::new();
    for &(key, weight) in stream {
        *exact.entry(key).or_default() += weight;
    }
    exact
}

fn check_bounds(
    config: Config,
    decoder: DecoderKind,
    stream: &[(u32, u64)],
    interval: usize,
) -> Result<(), TestCaseError> {
    bounds_hold(run(config, decoder, stream, interval), stream)
}

fn bounds_hold((data, mut control): (DataPlane<4>, ControlPlane), stream: &[(u32, u64)]) -> Result<(), TestCaseError> {
    let before = data.clone();
    let view = control.view(|sink| data.peek(sink)).unwrap();
    prop_assert_eq!(&data, &before);
    let total: u64 = stream.iter().map(|(_, weight)| weight).sum();
    prop_assert_eq!((view.items(), view.weight()), (stream.len() as u64, total));
    let exact = exact(stream);
    // All keys of the stream, and some that never came.
    for key in 0..80u32 {
        let truth = exact.get(&key).copied().unwrap_or(0);
        let answer = view.estimate(&key.to_le_bytes());
        prop_assert!(answer.lower <= truth && truth <= answer.upper, "key {}: {} not in {:?}", key, truth, answer);
        prop_assert!(answer.lower <= answer.estimate && answer.estimate <= answer.upper);
        if answer.source == Source::Unknown {
            prop_assert_eq!(answer.estimate, 0);
        }
    }
    // Asking twice gives the same answer.
    let again = control.view(|sink| data.peek(sink)).unwrap();
    prop_assert!(view.all().eq(again.all()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_for_count_min(
        config in config(Base::CountMin),
        stream in stream(),
        interval in 1usize..200,
        decoder in prop::sample::select(&[DecoderKind::Cm, DecoderKind::Map, DecoderKind::Lsqr, DecoderKind::Lsmr, DecoderKind::Omp, DecoderKind::Em][..]),
    ) {
        check_bounds(config, decoder, &stream, interval)?;
    }

    #[test]
    fn bounds_hold_for_delta(config in config(Base::CountMin), stream in stream(), interval in 1usize..80) {
        check_bounds(config, DecoderKind::Delta, &stream, interval)?;
    }

    /// Epochs that are added together, because decoding lags behind, have bounds as true as those
    /// that are not.
    #[test]
    fn bounds_hold_while_delta_lags(
        config in config(Base::CountMin),
        stream in stream(),
        interval in 1usize..80,
        lags in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        bounds_hold(run_lagging(config, DecoderKind::Delta, &stream, interval, &lags), &stream)?;
    }

    #[test]
    fn bounds_hold_for_count_sketch(
        config in config(Base::CountSketch),
        stream in stream(),
        interval in 1usize..200,
        decoder in prop::sample::select(&[DecoderKind::Cm, DecoderKind::Lsqr, DecoderKind::Lsmr, DecoderKind::Omp][..]),
    ) {
        check_bounds(config, decoder, &stream, interval)?;
    }

    /// With counters and filter to spare, delta is exact, whatever the stream and the interval,
    /// also while it lags.
    #[test]
    fn ample_memory_is_exact(stream in stream(), interval in 1usize..200, seed: u128, narrow: bool, lags: [bool; 5]) {
        let counter_bits = if narrow { CounterBits::B4 } else { CounterBits::B32 };
        let shape = Shape { slots: 2, width: 2048, counter_bits, bloom_bits: 1 << 16, ..Shape::PAPER_64KB };
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: seed.into() };
        let (data, mut control) = run_lagging(config, DecoderKind::Delta, &stream, interval, &lags);
        let view = control.view(|sink| data.peek(sink)).unwrap();
        for (key, truth) in exact(&stream) {
            prop_assert_eq!(view.estimate(&key.to_le_bytes()).estimate, truth);
        }
        prop_assert_eq!(view.unexplained(), 0);
    }

    /// With memory to spare the counts of every epoch are exact, for hot keys too.
    #[test]
    fn time_series_are_exact_with_ample_memory(stream in stream(), interval in 1usize..100, seed: u128, slots in 1u32..6) {
        let shape = Shape { slots, width: 4096, bloom_bits: 1 << 16, ..Shape::PAPER_64KB };
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: seed.into() };
        let mut data = DataPlane::<4>::new(config).unwrap();
        let settings = Settings { decoder: DecoderKind::Delta, retain_epochs: 1000, ..Settings::default() };
        let mut control = ControlPlane::new(config, settings).unwrap();
        for part in stream.chunks(interval) {
            for &(key, weight) in part {
                data.insert(&key.to_le_bytes(), weight, &mut control).unwrap();
            }
            data.cut(&mut control);
        }
        let view = control.view(|sink| data.peek(sink)).unwrap();
        for (epoch, part) in stream.chunks(interval).enumerate() {
            let truth = exact(part);
            for (id, _) in view.all() {
                let key = u32::from_le_bytes(view.registry().key(id).try_into().unwrap());
                let counted = view.series().count(id, epoch..=epoch);
                prop_assert!((counted - truth.get(&key).copied().unwrap_or(0) as f64).abs() < 0.5,
                    "key {key}, epoch {epoch}: {counted} for {:?}", truth.get(&key));
            }
        }
    }

    /// Cutting at the end and then peeking answers as peeking at the open epoch does.
    #[test]
    fn a_peek_is_as_good_as_a_cut(config in config(Base::CountMin), stream in stream(), interval in 1usize..80) {
        let (mut data, mut control) = run(config, DecoderKind::Delta, &stream, interval);
        let open = control.view(|sink| data.peek(sink)).unwrap();
        data.cut(&mut control);
        let closed = control.view(|sink| data.peek(sink)).unwrap();
        for key in 0..60u32 {
            let (a, b) = (open.estimate(&key.to_le_bytes()), closed.estimate(&key.to_le_bytes()));
            prop_assert!(a.estimate.abs_diff(b.estimate) <= 1, "{key}: {a:?} and {b:?}"); // one by rounding
            prop_assert_eq!((a.lower, a.upper), (b.lower, b.upper));
        }
    }

    /// A report that is lost, repeated or moved behind the next cut is noticed.
    #[test]
    fn tampering_is_noticed(config in config(Base::CountMin), stream in stream(), interval in 5usize..60, at: prop::sample::Index, how in 0..3) {
        let mut data = DataPlane::<4>::new(config).unwrap();
        let mut reports = Recorder::default();
        for (i, &(key, weight)) in stream.iter().enumerate() {
            data.insert(&key.to_le_bytes(), weight, &mut reports).unwrap();
            if (i + 1) % interval == 0 {
                data.cut(&mut reports);
            }
        }
        data.cut(&mut reports);
        let mut reports = reports.0;
        let mut untouched = ControlPlane::new(config, Settings::default()).unwrap();
        reports.iter().for_each(|report| report.send(&mut untouched));
        prop_assert_eq!(untouched.fault(), None);
        let last = reports.len() - 1;
        let weighty: Vec<usize> = (0..last).filter(|&i| reports[i].matters()).collect();
        prop_assume!(!weighty.is_empty());
        let victim = weighty[at.index(weighty.len())];
        let what = reports[victim].clone();
        match how {
            0 => drop(reports.remove(victim)),
            1 => reports.insert(victim, what.clone()),
            _ => {
                let cut = (victim + 1..=last).find(|&i| reports[i].is_cut()).unwrap();
                reports[victim..=cut].rotate_left(1);
            }
        }
        let mut control = ControlPlane::new(config, Settings::default()).unwrap();
        reports.iter().for_each(|report| report.send(&mut control));
        prop_assert!(matches!(control.fault(), Some(Fault::Report(_))), "{what:?} went unnoticed: {:?}", control.fault());
    }
}

/// Reports, owned, so that they can be lost, repeated or moved.
#[derive(Default)]
struct Recorder(Vec<Recorded>);

#[derive(Clone, Debug)]
enum Recorded {
    Key(Vec<u8>, KeyFlags),
    Carry(CounterIndex, i64),
    /// The last one says whether the sum of all slots changed by it.
    Slot(u32, Option<Vec<u8>>, u64, bool),
    Cut(CutTotals, Counters),
}

impl ReportSink for Recorder {
    fn report(&mut self, report: Report<'_>) {
        self.0.push(match report {
            Report::Key { key: KeyRef::Whole(key), flags } => Recorded::Key(key.to_vec(), flags),
            Report::Carry { at, times } => Recorded::Carry(at, times),
            Report::Slot { slot, holder, count } => {
                let before = self.0.iter().rev().find_map(|report| match report {
                    Recorded::Slot(at, _, count, _) if *at == slot => Some(*count),
                    _ => None,
                });
                Recorded::Slot(slot, holder.map(<[u8]>::to_vec), count, before.unwrap_or(0) != count)
            }
            Report::Cut(cut) => Recorded::Cut(cut.totals, cut.counters.clone()),
            other => panic!("no such report from a plane that does not change: {other:?}"),
        });
    }
}

impl Recorded {
    /// Whether it changes a sum: a cut of empty counters does not, nor does a key. (Keys are
    /// numbered by the link.)
    fn matters(&self) -> bool {
        match self {
            Self::Key(..) => false,
            Self::Carry(..) => true,
            Self::Slot(.., changes) => *changes,
            Self::Cut(_, counters) => counters.iter().any(|c| c != 0),
        }
    }

    fn is_cut(&self) -> bool {
        matches!(self, Self::Cut(..))
    }

    fn send(&self, control: &mut ControlPlane) {
        control.report(match self {
            Self::Key(key, flags) => Report::Key { key: KeyRef::Whole(key), flags: *flags },
            Self::Carry(at, times) => Report::Carry { at: *at, times: *times },
            Self::Slot(slot, holder, count, _) => {
                Report::Slot { slot: *slot, holder: holder.as_deref(), count: *count }
            }
            Self::Cut(totals, counters) => Report::Cut(Cut { totals: *totals, counters, reset: true }),
        });
    }
}

#[test]
fn an_unsupported_pair_is_named() {
    let shape = Shape { base: Base::CountSketch, ..Shape::PAPER_64KB };
    let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
    let settings = Settings { decoder: DecoderKind::Em, ..Settings::default() };
    let error = ControlPlane::new(config, settings).err().unwrap().to_string();
    assert_eq!(error, "the decoder 'em' cannot decode this sketch: it needs columns without negative coefficients");
}

/// A filter of two bits a key, emptied in time, loses a small share of what one that forgets
/// nothing does, and the view says about how many.
#[test]
fn an_emptied_filter_loses_few_keys() {
    const KEYS: u32 = 20_000;
    let lost = |rule: ReportRule| {
        let shape = Shape { slots: 64, width: 4_096, bloom_bits: 2 * KEYS, bloom_hashes: 4, ..Shape::PAPER_64KB };
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule, seed: 3.into() };
        let settings = Settings { decoder: DecoderKind::Delta, ..Settings::default() };
        let (mut data, mut control) =
            (DataPlane::<4>::new(config).unwrap(), ControlPlane::new(config, settings).unwrap());
        for key in 0..KEYS {
            data.insert(&key.to_le_bytes(), 1, &mut control).unwrap();
            if key % 250 == 0 {
                data.cut(&mut control);
            }
        }
        let view = control.view(|sink| data.peek(sink)).unwrap();
        (f64::from(KEYS) - view.keys() as f64, view.estimated_lost_keys())
    };
    let ((kept, _), (emptied, said)) = (lost(ReportRule::New), lost(ReportRule::Rotate));
    assert!(emptied > 0.0 && emptied * 10.0 < kept, "{emptied} of {kept}");
    assert!(said > emptied / 3.0 && said < emptied * 3.0, "{said} for {emptied}");
}

/// A key that the filter claimed at first sight is known by the digest in its slot; its name comes
/// when the filter has been emptied.
#[test]
fn a_name_that_comes_late_is_learned() {
    struct Names<'a>(&'a mut ControlPlane, HashSet<Vec<u8>>);
    impl ReportSink for Names<'_> {
        fn report(&mut self, report: Report<'_>) {
            if let Report::Key { key: KeyRef::Digested { bytes, .. }, .. } = report {
                self.1.insert(bytes.to_vec());
            }
            self.0.report(report);
        }
    }
    let shape = Shape { slots: 64, bloom_bits: 512, bloom_hashes: 2, ..Shape::PAPER_64KB };
    let config = Config { keys: KeyFormat::Digest, shape, rule: ReportRule::Rotate, seed: 1.into() };
    let settings = Settings { decoder: DecoderKind::Delta, ..Settings::default() };
    let mut data = DataPlane::<16>::new(config).unwrap();
    let mut control = ControlPlane::new(config, settings).unwrap();
    let mut sink = Names(&mut control, HashSet::new());
    for i in 0..20_000u64 {
        data.insert_bytes(format!("key {}", (i * i * 7 + i) % 997).as_bytes(), 1, &mut sink).unwrap();
        if i % 500 == 499 {
            data.cut(&mut sink);
        }
    }
    let sent = sink.1;
    let view = control.view(|sink| data.peek(sink)).unwrap();
    let known: HashSet<&[u8]> = view.all().map(|(id, _)| view.registry().key(id)).collect();
    assert!(sent.len() > 100 && sent.iter().all(|name| known.contains(&name[..])));
}

/// Small counts and large ones.
#[test]
fn how_often_counts_occur() {
    let shape = Shape { slots: 500, ..Shape::PAPER_64KB };
    let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
    let counts = [(1u32, 3u64), (2, 3), (3, 1_023), (4, 1_024), (5, 70_000), (6, 70_000)];
    let (data, mut control) = run(config, DecoderKind::Em, &counts, 100);
    let view = control.view(|sink| data.peek(sink)).unwrap();
    assert_eq!(view.histogram().into_iter().collect::<Vec<_>>(), [(3, 2), (1_023, 1), (1_024, 1), (70_000, 2)]);
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let shares = counts.iter().map(|&(_, count)| count as f64 / total as f64);
    assert!((view.entropy() + shares.map(|share| share * share.log2()).sum::<f64>()).abs() < 1e-12);
}
