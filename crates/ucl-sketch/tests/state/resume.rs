//! Stopped, saved, loaded, continued: the same as never stopped. With the control plane in a thread
//! of its own: the same as in one.

use proptest::prelude::*;
use ucl_sketch::{
    Base, BloomKind, ChangeKind, CounterBits, DecoderKind, Execution, Fallback, Hashing, HeavyKind, KeyFormat,
    ReportRule, Shape, UclSketch,
};

use crate::cases::{Case, answers, stream};

fn formats() -> impl Strategy<Value = KeyFormat> {
    prop::sample::select(vec![
        KeyFormat::Fixed(4),
        KeyFormat::Fixed(8),
        KeyFormat::Fixed(13),
        KeyFormat::Fixed(16),
        KeyFormat::Digest,
    ])
}

fn cases(decoders: &'static [DecoderKind]) -> impl Strategy<Value = Case> {
    let data = (
        formats(),
        prop::sample::select(CounterBits::ALL.to_vec()),
        prop::sample::select(Base::ALL.to_vec()),
        prop::sample::select(HeavyKind::ALL.to_vec()),
        prop::sample::select(&ReportRule::ALL[..]),
        prop::sample::select(vec![BloomKind::Classic, BloomKind::SplitBlock, BloomKind::Recent]),
    );
    let rest = (
        prop::sample::select(decoders.to_vec()),
        (prop::option::weighted(0.8, 1u64..40), prop::bool::weighted(0.3)),
        0usize..4,
        any::<bool>(),
        prop::sample::select(vec![Fallback::WhenBetter, Fallback::WhenUntrained]),
        (any::<u128>(), prop::sample::select(&Hashing::ALL[..])),
        prop::sample::select(vec![ChangeKind::Sealed, ChangeKind::PaperColumns]),
    );
    (data, rest).prop_map(|(data, rest)| {
        let (keys, bits, base, heavy, rule, bloom) = data;
        let (decoder, (interval, by_load), retain, uplink, fallback, (seed, hashing), change) = rest;
        Case {
            decoder,
            keys,
            bits,
            base,
            heavy,
            rule,
            bloom,
            interval,
            by_load,
            retain,
            uplink,
            fallback,
            change,
            seed,
            hashing,
        }
    })
}

fn items() -> impl Strategy<Value = Vec<(u8, u64)>> {
    // Some keys again and again, and now and then an item that is too heavy for a slot.
    let key = prop_oneof![0u8..8, any::<u8>()];
    let weight = prop_oneof![8 => 1u64..5, 2 => 1u64..400, 1 => Just(1 << 29)];
    prop::collection::vec((key, weight), 0..300)
}

/// What happens to a sketch between two stops.
#[derive(Clone, Copy, Debug)]
enum Event {
    Rehash(u128),
    Resize {
        slots: u32,
        width: u32,
    },
    /// With one that was built alike and has counted as many of the items.
    Merge(usize),
    Cut,
    Drop,
    Reset {
        keep_weights: bool,
    },
}

fn events() -> impl Strategy<Value = Option<Event>> {
    prop::option::weighted(
        0.7,
        prop_oneof![
            4 => any::<u128>().prop_map(Event::Rehash),
            4 => (1u32..12, 6u32..30).prop_map(|(slots, width)| Event::Resize { slots, width }),
            4 => (0usize..100).prop_map(Event::Merge),
            2 => Just(Event::Cut),
            2 => Just(Event::Drop),
            1 => any::<bool>().prop_map(|keep_weights| Event::Reset { keep_weights }),
        ],
    )
}

impl Event {
    fn happen(self, sketch: &mut UclSketch, case: &Case, items: &[(u8, u64)]) {
        match self {
            Self::Rehash(seed) => sketch.rehash(seed).unwrap(),
            Self::Resize { slots, width } => {
                let shape = Shape { slots, width, ..sketch.config().shape };
                sketch.resize(shape).unwrap();
            }
            Self::Merge(some) => {
                let mut other = case.build();
                if some % 2 == 1 {
                    other = other.pipelined();
                }
                case.insert(&mut other, &items[..some.min(items.len())]);
                // It has come the same way, and so the sketches are alike.
                let (config, now) = (*other.config(), *sketch.config());
                if config.shape != now.shape {
                    other.resize(now.shape).unwrap();
                }
                if config.seed != now.seed {
                    other.rehash(now.seed.value()).unwrap();
                }
                sketch.merge(other).unwrap();
            }
            Self::Cut => sketch.cut(),
            Self::Drop => drop(sketch.drop_oldest_segment().unwrap()),
            Self::Reset { keep_weights } => sketch.reset(keep_weights),
        }
    }
}

type Stops = Vec<(prop::sample::Index, Option<Event>, Option<Event>)>;

/// Where to stop, and what happens right before and right after.
fn stops() -> impl Strategy<Value = Stops> {
    prop::collection::vec((any::<prop::sample::Index>(), events(), events()), 0..4)
}

fn check(case: Case, items: &[(u8, u64)], stops: &Stops) -> Result<(), TestCaseError> {
    let (mut straight, mut stopped) = (case.build(), case.build());
    let mut pipelined = case.builder().execution(Execution::Pipelined).build().unwrap();
    let mut stops: Vec<(usize, _, _)> =
        stops.iter().map(|(at, before, after)| (at.index(items.len() + 1), *before, *after)).collect();
    stops.push((items.len(), None, None));
    stops.sort_by_key(|stop| stop.0);
    let mut from = 0;
    for (to, before, after) in stops {
        for sketch in [&mut straight, &mut stopped, &mut pipelined] {
            case.insert(sketch, &items[from..to]);
            before.into_iter().for_each(|event| event.happen(sketch, &case, items));
        }
        from = to;
        let saved = stopped.to_bytes().unwrap();
        stopped = UclSketch::from_bytes(&saved).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(straight.to_bytes().unwrap() == saved, "the same state");
        prop_assert!(stopped.to_bytes().unwrap() == saved, "the same state once read");
        prop_assert!(pipelined.to_bytes().unwrap() == saved, "the same state from two threads");
        for sketch in [&mut straight, &mut stopped, &mut pipelined] {
            after.into_iter().for_each(|event| event.happen(sketch, &case, items));
        }
    }
    for other in [&mut stopped, &mut pipelined] {
        prop_assert_eq!(answers(&straight.query_view().unwrap()), answers(&other.query_view().unwrap()));
        prop_assert!(straight.to_bytes().unwrap() == other.to_bytes().unwrap(), "the same state in the end");
        prop_assert_eq!(straight.uplink(), other.uplink());
        prop_assert_eq!(straight.memory(), other.memory());
    }
    Ok(())
}

const CLASSIC: [DecoderKind; 6] =
    [DecoderKind::Cm, DecoderKind::Map, DecoderKind::Lsqr, DecoderKind::Lsmr, DecoderKind::Omp, DecoderKind::Em];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn classic_decoders(
        case in cases(&CLASSIC), items in items(), stops in stops(),
    ) {
        check(case, &items, &stops)?;
    }

    #[test]
    fn delta(
        case in cases(&[DecoderKind::Delta]), items in items(),
        stops in stops(),
    ) {
        check(case, &items, &stops)?;
    }

    #[cfg(feature = "learned")]
    #[test]
    fn trained_decoders(
        case in cases(&[DecoderKind::Learned, DecoderKind::Refined]), items in items(),
        stops in stops(),
    ) {
        check(case, &items, &stops)?;
    }
}

/// Every decoder with every format of keys, whatever chance leaves out above; by files, in
/// mid-epoch.
#[test]
fn every_decoder_and_every_key_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.ucl");
    let items = stream(700);
    for decoder in DecoderKind::ALL.into_iter().filter(|decoder| decoder.is_built()) {
        for keys in [4, 8, 13, 16].map(KeyFormat::Fixed).into_iter().chain([KeyFormat::Digest]) {
            let case = Case::new(decoder, keys);
            let (mut straight, mut stopped) = (case.build(), case.build());
            case.insert(&mut straight, &items);
            case.insert(&mut stopped, &items[..333]);
            stopped.set_label("kept", "by the file");
            stopped.save(&path).unwrap();
            drop(stopped);
            let mut resumed = UclSketch::load(&path).unwrap();
            assert_eq!(resumed.labels()["kept"], "by the file");
            straight.set_label("kept", "by the file");
            case.insert(&mut resumed, &items[333..]);
            assert_eq!(answers(&straight.query_view().unwrap()), answers(&resumed.query_view().unwrap()), "{case:?}");
            assert!(straight.to_bytes().unwrap() == resumed.to_bytes().unwrap(), "{case:?}");
        }
    }
}

/// A batch ends where the epoch ends, also in the epoch that a load has opened.
#[test]
fn batches_go_on_in_mid_epoch() {
    let case = Case::new(DecoderKind::Delta, KeyFormat::Fixed(4));
    let keys: Vec<[u8; 4]> = (0..500u32).map(|i| (i * i % 300).to_le_bytes()).collect();
    let mut straight = case.build();
    straight.insert_batch(&keys).unwrap();
    let mut stopped = case.build();
    stopped.insert_batch(&keys[..123]).unwrap();
    let mut resumed = UclSketch::from_bytes(&stopped.to_bytes().unwrap()).unwrap();
    resumed.insert_batch(&keys[123..]).unwrap();
    assert!(straight.to_bytes().unwrap() == resumed.to_bytes().unwrap());
}
