//! The network's own answers: without bounds, one key at a time, and after a collapse.
#![cfg(feature = "learned")]

use ucl_control_plane::{ControlPlane, DecoderKind, Fallback, QueryView, Settings};
use ucl_data_plane::{Config, CounterBits, DataPlane, KeyFormat, ReportRule, Shape};
use ucl_learned::Config as Network;

const KEYS: u32 = 400;

fn config() -> Config {
    let shape = Shape {
        slots: 16,
        rows: 3,
        width: 64,
        counter_bits: CounterBits::B32,
        bloom_bits: 1 << 14,
        ..Shape::PAPER_64KB
    };
    Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::Paper, seed: 7.into() }
}

fn network() -> Network {
    // A small network needs longer steps than the paper's.
    Network { hidden: 32, neck: 32, bucket_length: 64, batch: 4, learning_rate: 4e-3, ..Network::default() }
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9e37_79b9).to_le_bytes()
}

/// A stream by Zipf's law through both planes, and a view after training at its last cut.
fn view(decoder: DecoderKind, fallback: Fallback, learned: Network) -> (QueryView, ControlPlane, Vec<u64>) {
    let settings = Settings { decoder, fallback, learned, window: 16, train_every: None, ..Settings::default() };
    let (mut data, mut control) =
        (DataPlane::<4>::new(config()).unwrap(), ControlPlane::new(config(), settings).unwrap());
    let mut counts = vec![0; KEYS as usize];
    let mut random = ucl_streams::SplitMix64::new(3);
    for item in 1..=16_000 {
        let number = ((f64::from(KEYS)).powf(random.unit()) as u32 - 1).min(KEYS - 1);
        counts[number as usize] += 1;
        data.insert(&key(number), 1, &mut control).unwrap();
        if item % 1_000 == 0 {
            data.cut(&mut control);
        }
    }
    control.train().unwrap();
    let view = control.view_at_cut().unwrap();
    (view, control, counts)
}

/// Paper, Algorithm 3: the bucket of a key has the same answer as the decoding of all keys.
#[test]
fn a_query_that_runs_the_network_for_its_bucket_equals_the_whole_decoding() {
    let (view, _, counts) = view(DecoderKind::Learned, Fallback::WhenUntrained, network());
    let mut query = view.network().expect("the network answered").unwrap();
    let mut differ = 0;
    for number in 0..KEYS {
        let whole = view.unbounded(&key(number)).unwrap();
        let bucket = query.estimate(&key(number)).unwrap();
        // One bucket and all of them are different matrix products: a value near a half may round
        // to the next whole number.
        assert!(whole.abs_diff(bucket) <= 1, "key {number}: {whole} {bucket}");
        differ += u32::from(whole != bucket);
    }
    assert!(differ <= KEYS / 100, "{differ} of {KEYS} differ");
    assert!(view.unbounded(&key(0)).unwrap() > counts[0] / 2, "the heavy part's count is in it");
    let stranger = 0xffff_ffffu32.to_le_bytes();
    assert_eq!((view.unbounded(&stranger), query.estimate(&stranger).unwrap()), (Some(0), 0));
}

/// An answer is what the decoder said, put within the bounds.
#[test]
fn bounded_answers_are_unbounded_ones_within_the_bounds() {
    for decoder in [DecoderKind::Learned, DecoderKind::Refined] {
        let (view, ..) = view(decoder, Fallback::WhenUntrained, network());
        let mut moved = 0;
        for number in 0..KEYS {
            let answer = view.estimate(&key(number));
            let unbounded = view.unbounded(&key(number)).unwrap();
            assert_eq!(answer.estimate, unbounded.clamp(answer.lower, answer.upper), "{decoder}, key {number}");
            moved += u32::from(answer.estimate != unbounded);
        }
        // EM keeps to the counters by itself.
        assert!(moved > 0 || decoder == DecoderKind::Refined, "the bounds change nothing, so nothing was tested");
    }
    let (classic, ..) = view(DecoderKind::Em, Fallback::WhenBetter, network());
    assert_eq!(classic.unbounded(&key(0)), None);
    assert!(classic.network().is_none() && classic.outputs().is_none());
}

/// A loss that wants zeros makes every network collapse. It is trained again in vain, EM answers in
/// its place, and whoever insists on the network is told.
#[test]
fn a_collapsed_network_is_reported_and_does_not_answer() {
    let zeros = || Network { lambda: 1e4, ..network() };
    let (view_of_em, control, _) = view(DecoderKind::Learned, Fallback::WhenBetter, zeros());
    assert_eq!(control.network().unwrap().history()[0].restarts, 3);
    assert_eq!(view_of_em.answered_by(), DecoderKind::Em);
    assert!(view_of_em.outputs().unwrap().collapsed());
    assert_eq!(view_of_em.unbounded(&key(0)), None);

    let (insisting, ..) = view(DecoderKind::Learned, Fallback::WhenUntrained, zeros());
    assert_eq!(insisting.answered_by(), DecoderKind::Learned);
    assert!(insisting.outputs().unwrap().collapsed());

    let (sound, control, _) = view(DecoderKind::Learned, Fallback::WhenUntrained, network());
    assert!(!sound.outputs().unwrap().collapsed(), "{:?}", sound.outputs());
    assert_eq!(control.network().unwrap().history()[0].restarts, 0);
}
