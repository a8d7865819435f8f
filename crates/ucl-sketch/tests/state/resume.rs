//! Stopped, saved, loaded, continued: the same as never stopped.

use proptest::prelude::*;
use ucl_sketch::{BloomKind, CounterBits, DecoderKind, Fallback, KeyFormat, ReportRule, UclSketch};

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
        any::<bool>(),
        prop::sample::select(vec![ReportRule::Paper, ReportRule::New, ReportRule::Refresh]),
        prop::sample::select(vec![BloomKind::Classic, BloomKind::SplitBlock]),
    );
    let rest = (
        prop::sample::select(decoders.to_vec()),
        prop::option::weighted(0.8, 1u64..40),
        0usize..4,
        any::<bool>(),
        prop::sample::select(vec![Fallback::WhenBetter, Fallback::WhenUntrained]),
        any::<u64>(),
    );
    (data, rest).prop_map(|((keys, bits, signed, rule, bloom), (decoder, interval, retain, uplink, fallback, seed))| {
        Case { decoder, keys, bits, signed, rule, bloom, interval, retain, uplink, fallback, seed }
    })
}

fn items() -> impl Strategy<Value = Vec<(u8, u64)>> {
    // Some keys again and again, and now and then an item that is too heavy for a slot.
    let key = prop_oneof![0u8..8, any::<u8>()];
    let weight = prop_oneof![8 => 1u64..5, 2 => 1u64..400, 1 => Just(1 << 29)];
    prop::collection::vec((key, weight), 0..300)
}

fn check(case: Case, items: &[(u8, u64)], stops: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    let (mut straight, mut stopped) = (case.build(), case.build());
    let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(items.len() + 1)).collect();
    stops.extend([0, items.len()]);
    stops.sort_unstable();
    for pair in stops.windows(2) {
        case.insert(&mut straight, &items[pair[0]..pair[1]]);
        case.insert(&mut stopped, &items[pair[0]..pair[1]]);
        let saved = stopped.to_bytes().unwrap();
        stopped = UclSketch::from_bytes(&saved).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(straight.to_bytes().unwrap() == saved, "the same state");
        prop_assert!(stopped.to_bytes().unwrap() == saved, "the same state once read");
    }
    prop_assert_eq!(answers(&straight.view().unwrap()), answers(&stopped.view().unwrap()));
    prop_assert_eq!(straight.uplink(), stopped.uplink());
    prop_assert_eq!(straight.memory(), stopped.memory());
    Ok(())
}

const CLASSIC: [DecoderKind; 6] =
    [DecoderKind::Cm, DecoderKind::Map, DecoderKind::Lsqr, DecoderKind::Lsmr, DecoderKind::Omp, DecoderKind::Em];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn classic_decoders(
        case in cases(&CLASSIC), items in items(), stops in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        check(case, &items, &stops)?;
    }

    #[test]
    fn delta(
        case in cases(&[DecoderKind::Delta]), items in items(),
        stops in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        check(case, &items, &stops)?;
    }

    #[test]
    fn trained_decoders(
        case in cases(&[DecoderKind::Learned, DecoderKind::Refined]), items in items(),
        stops in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        check(case, &items, &stops)?;
    }
}

/// Every decoder with every format of keys, whatever chance leaves out above; by files, in mid-epoch.
#[test]
fn every_decoder_and_every_key_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.ucl");
    let items = stream(700);
    for decoder in DecoderKind::ALL {
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
            assert_eq!(answers(&straight.view().unwrap()), answers(&resumed.view().unwrap()), "{case:?}");
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
