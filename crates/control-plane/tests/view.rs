//! A view runs on a clone of the open epoch: it answers as after a cut, and leaves nothing behind.

use serde::Serialize;
use serde::de::DeserializeOwned;
use ucl_control_plane::{ControlPlane, ControlState, DecoderKind, Fault, ReportError, Settings, Source};
use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, DataPlane, HeavyKind, KeyFormat, Report, ReportRule, Shape,
};

/// Few slots, and a Bloom filter so small that it soon claims to know every key.
fn config() -> Config {
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 8,
        vote_ratio: 1,
        base: Base::CountMin,
        rows: 3,
        width: 64,
        counter_bits: CounterBits::B8,
        bloom: BloomKind::Classic,
        bloom_bits: 64,
        bloom_hashes: 2,
    };
    Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() }
}

fn planes(decoder: DecoderKind) -> (DataPlane<4>, ControlPlane) {
    let settings = Settings { decoder, retain_epochs: 4, ..Settings::default() };
    (DataPlane::new(config()).unwrap(), ControlPlane::new(config(), settings).unwrap())
}

/// Everything that would be written down.
fn written(control: &ControlPlane) -> Vec<u8> {
    let state = control.state().unwrap();
    postcard::to_stdvec(&(state.registry, state.counting, state.earlier, state.window, state.delta)).unwrap()
}

/// The control plane as it would be after a save and a load.
fn reloaded(control: &ControlPlane) -> ControlPlane {
    fn copy<A: Serialize, B: DeserializeOwned>(part: &A) -> B {
        postcard::from_bytes(&postcard::to_stdvec(part).unwrap()).unwrap()
    }
    let state = control.state().unwrap();
    let copied = ControlState {
        registry: copy(&state.registry),
        counting: copy(&state.counting),
        earlier: copy(&state.earlier),
        window: copy(&state.window),
        delta: copy(&state.delta),
        doubts: copy(&state.doubts),
        model: None,
        exports: None,
    };
    ControlPlane::restore(config(), control.settings().clone(), copied).unwrap()
}

#[test]
fn keys_that_lost_their_slots_unseen_have_columns_in_the_view_alone() {
    for decoder in [DecoderKind::Em, DecoderKind::Delta] {
        let (mut data, mut control) = planes(decoder);
        let mut unseen = 0;
        for n in 0..3_000u32 {
            data.insert(&(n * n % 701).to_le_bytes(), 1, &mut control).unwrap();
            if n % 500 == 499 {
                data.cut(&mut control);
            }
            if n % 100 != 50 {
                continue;
            }
            let before = written(&control);
            let view = control.view(|sink| data.peek(sink)).unwrap();
            assert_eq!(written(&control), before, "{decoder}, item {n}");
            let registry = control.registry();
            unseen += view
                .all()
                .filter(|(_, answer)| answer.source == Source::Decoded)
                .filter(|(id, _)| {
                    let known = registry.find(view.registry().key(*id));
                    known.is_some_and(|known| control.segment().column_of(known).is_none())
                })
                .count();
            // The same answers as after a cut, from the same keys.
            let mut other = reloaded(&control);
            let mut there = data.clone();
            there.cut(&mut other);
            let cut = other.view(|sink| there.peek(sink)).unwrap();
            assert_eq!(view.all().collect::<Vec<_>>(), cut.all().collect::<Vec<_>>(), "{decoder}, item {n}");
        }
        assert!(unseen > 0, "{decoder}: no key lost its slot unseen");
    }
}

#[test]
fn a_peek_of_another_data_plane_is_an_error_that_changes_nothing() {
    let (mut data, mut control) = planes(DecoderKind::Delta);
    for n in 0..2_000u32 {
        data.insert(&(n % 300).to_le_bytes(), 1, &mut control).unwrap();
    }
    let before = written(&control);
    let answers = control.view(|sink| data.peek(sink)).unwrap().all().collect::<Vec<_>>();
    let wide = Shape { width: 65, slots: 9, ..config().shape };
    let mut other = DataPlane::<4>::new(Config { shape: wide, ..config() }).unwrap();
    (0..40u32).for_each(|n| other.insert(&n.to_le_bytes(), 9, &mut |_: Report<'_>| ()).unwrap());
    let error = control.view(|sink| other.peek(sink)).expect_err("another data plane");
    assert!(matches!(error, Fault::Report(ReportError::Slot { .. } | ReportError::Counters { .. })), "{error}");
    assert_eq!(written(&control), before);
    assert_eq!(control.fault(), None);
    assert_eq!(control.view(|sink| data.peek(sink)).unwrap().all().collect::<Vec<_>>(), answers);
}

/// A state that was never written down is as good as one that was read.
#[test]
fn a_state_of_a_live_plane_is_restored() {
    for decoder in [DecoderKind::Em, DecoderKind::Delta] {
        let (mut data, mut control) = planes(decoder);
        for n in 0..1_500u32 {
            data.insert(&(n * n % 701).to_le_bytes(), 1, &mut control).unwrap();
            if n % 400 == 399 {
                data.cut(&mut control);
            }
        }
        data.change(Config { seed: 2.into(), ..config() }, &mut control).unwrap();
        for n in 0..300u32 {
            data.insert(&(n % 97).to_le_bytes(), 2, &mut control).unwrap();
        }
        let config = *data.config();
        let mut again = ControlPlane::restore(config, control.settings().clone(), control.state().unwrap()).unwrap();
        assert_eq!(written(&again), written(&control), "{decoder}");
        let answers =
            |control: &mut ControlPlane| control.view(|sink| data.peek(sink)).unwrap().all().collect::<Vec<_>>();
        assert_eq!(answers(&mut again), answers(&mut control), "{decoder}");
    }
}
