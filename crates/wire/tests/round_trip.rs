//! Whatever is reported is received, for every key format, counter width and sign, in order and
//! complete.

mod common;

use std::collections::BTreeMap;

use common::{OwnedKey, Told, config, counters, key, tell, told, totals};
use proptest::prelude::*;
use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, ReportSink, Shape};
use ucl_wire::{CutReport, Encoder, EpochReports, Message, Receiver, WireError, decode_header, split_message};

/// What the reports between two cuts say, however they are spread over messages.
#[derive(Debug, Default, PartialEq)]
struct Epoch {
    keys: Vec<(OwnedKey, ucl_data_plane::KeyFlags)>,
    carries: BTreeMap<u32, i128>,
    slots: Vec<(u32, Option<Vec<u8>>, u64)>,
    cut: Option<CutReport>,
}

impl Epoch {
    fn carry(&mut self, at: u32, times: i64) {
        let sum = self.carries.entry(at).or_default();
        *sum += i128::from(times);
        if *sum == 0 {
            self.carries.remove(&at);
        }
    }
}

fn expected(config: &Config, told: &[Told]) -> Vec<Epoch> {
    let mut epochs = vec![Epoch::default()];
    for one in told {
        let epoch = epochs.last_mut().expect("never empty");
        match one {
            Told::Key { bytes, kind, flags } => epoch.keys.push((key(config, bytes, *kind), *flags)),
            Told::Carry { at, times } => epoch.carry(*at, *times),
            Told::Slot { slot, holder, count } => epoch.slots.push((*slot, holder.clone(), *count)),
            Told::Cut { items, weight, adds, reset } => {
                epoch.cut = Some(CutReport {
                    totals: totals(*items, *weight, adds.len()),
                    reset: *reset,
                    counters: counters(config, adds).iter().collect(),
                });
                epochs.push(Epoch::default());
            }
        }
    }
    epochs
}

fn gather(epochs: &mut Vec<Epoch>, reports: &EpochReports) {
    if epochs.last().is_none_or(|epoch| epoch.cut.is_some()) {
        epochs.push(Epoch::default());
    }
    let epoch = epochs.last_mut().expect("never empty");
    epoch.keys.extend(reports.keys.iter().map(|(key, flags)| {
        let owned = match key {
            ucl_data_plane::KeyRef::Whole(bytes) => OwnedKey::Whole(bytes.to_vec()),
            ucl_data_plane::KeyRef::Digested { digest, bytes } => OwnedKey::Digested(digest, bytes.to_vec()),
            ucl_data_plane::KeyRef::Digest(digest) => OwnedKey::Digest(digest),
            ucl_data_plane::KeyRef::Name(bytes) => OwnedKey::Name(bytes.to_vec()),
        };
        (owned, flags)
    }));
    for &(at, times) in &reports.carries {
        epoch.carry(at.0, times);
    }
    epoch.slots.extend(reports.slots.iter().map(|s| (s.slot, s.holder.map(<[u8]>::to_vec), s.count)));
    epoch.cut = reports.cut.clone();
}

fn sent(config: Config, told: &[Told], buffer: usize) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut encoder =
        Encoder::new(300, config, |message: &[u8]| messages.push(message.to_vec())).unwrap().with_buffer(buffer);
    tell(&config, told, &mut encoder);
    encoder.flush();
    let uplink = encoder.uplink();
    drop(encoder);
    assert_eq!(uplink.total(), messages.iter().map(|m| m.len() as u64).sum::<u64>());
    assert_eq!(uplink.messages, messages.len() as u64);
    messages
}

fn config_and_told() -> impl Strategy<Value = (Config, Vec<Told>)> {
    config().prop_flat_map(|config| (Just(config), told(config)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn reports_survive_the_wire((config, told) in config_and_told(), buffer in prop_oneof![1usize..2000, Just(1 << 16)]) {
        let messages = sent(config, &told, buffer);
        let mut receiver = Receiver::new(300);
        let mut epochs = Vec::new();
        for message in &messages {
            prop_assert_eq!(decode_header(message)?.seq, receiver.expects().seq);
            match receiver.receive(message)? {
                Message::SegmentOpen(opened) => prop_assert_eq!(opened, config),
                Message::Reset { .. } => prop_assert!(false, "nothing was reset"),
                Message::Reports(reports) => gather(&mut epochs, &reports),
                Message::Export(_) => prop_assert!(false, "there is no table"),
            }
        }
        let mut expected = expected(&config, &told);
        expected.retain(|epoch| *epoch != Epoch::default());
        // An epoch may be sent whose carries came to nothing.
        epochs.retain(|epoch| *epoch != Epoch::default());
        prop_assert_eq!(epochs, expected);
    }

    /// Messages back to back come apart again, and only the next one is taken.
    #[test]
    fn order_is_checked((config, told) in config_and_told(), buffer in 1usize..500) {
        let messages = sent(config, &told, buffer);
        let joined = messages.concat();
        let mut rest = joined.as_slice();
        let mut receiver = Receiver::new(300);
        for (seq, message) in (0u64..).zip(&messages) {
            if let Some(later) = messages.get(seq as usize + 1) {
                prop_assert_eq!(receiver.receive(later), Err(WireError::Lost { expected: seq, got: seq + 1 }));
            }
            let (first, left) = split_message(rest)?;
            prop_assert_eq!(first, message);
            rest = left;
            receiver.receive(first)?;
            prop_assert_eq!(receiver.receive(first), Err(WireError::Repeated { expected: seq + 1, got: seq }));
        }
        prop_assert!(rest.is_empty());
        let mut other = Receiver::new(301);
        prop_assert_eq!(other.receive(&messages[0]), Err(WireError::WrongStream { expected: 301, got: 300 }));
    }
}

fn small() -> Config {
    let shape = ucl_data_plane::Shape { slots: 8, rows: 2, width: 10, ..ucl_data_plane::Shape::PAPER_64KB };
    let keys = ucl_data_plane::KeyFormat::Fixed(4);
    Config { keys, shape, rule: ucl_data_plane::ReportRule::Paper, seed: 5.into() }
}

fn cut(config: &Config, reset: bool, sink: &mut impl ReportSink) {
    let cut = Told::Cut { items: 3, weight: 3, adds: vec![(1, false, 3)], reset };
    tell(config, &[cut], sink);
}

#[test]
fn a_peek_does_not_end_the_epoch() {
    let mut messages = Vec::new();
    let mut encoder = Encoder::new(1, small(), |m: &[u8]| messages.push(m.to_vec())).unwrap();
    cut(&small(), false, &mut encoder);
    assert_eq!(encoder.next().epoch, 0);
    cut(&small(), true, &mut encoder);
    assert_eq!((encoder.next().epoch, encoder.next().seq), (1, 3));
    let mut receiver = Receiver::new(1);
    for message in &messages {
        receiver.receive(message).unwrap();
    }
    assert_eq!((receiver.expects().epoch, receiver.expects().seq), (1, 3));
}

#[test]
fn segments_follow_each_other_and_resume() {
    let mut messages = Vec::new();
    let wide = Config { seed: 6.into(), shape: ucl_data_plane::Shape { width: 20, ..small().shape }, ..small() };
    let mut encoder = Encoder::new(1, small(), |m: &[u8]| messages.push(m.to_vec())).unwrap();
    cut(&small(), true, &mut encoder);
    encoder.open_segment(wide).unwrap();
    let next = encoder.next();
    assert_eq!(next.segment, 1);
    let mut encoder = Encoder::resume(next, wide, |m: &[u8]| messages.push(m.to_vec())).unwrap();
    cut(&wide, true, &mut encoder);

    let mut receiver = Receiver::new(1);
    for message in &messages[..3] {
        receiver.receive(message).unwrap();
    }
    assert_eq!(receiver.segment(), Some(&wide));
    let mut resumed = Receiver::resume(receiver.expects(), wide);
    let Message::Reports(reports) = resumed.receive(&messages[3]).unwrap() else { panic!("reports expected") };
    assert_eq!(reports.cut.unwrap().counters.len(), 40);
    assert_eq!(resumed.expects().epoch, 2);
    // The second segment's reports mean nothing to a receiver that has not seen it open.
    let mut late = Receiver::resume(ucl_wire::Header { segment: 0, ..next }, small());
    assert_eq!(late.receive(&messages[3]), Err(WireError::WrongSegment { expected: 0, got: 1 }));
}

#[test]
fn the_sender_keeps_its_buffer() {
    let mut largest = 0;
    let mut encoder = Encoder::new(1, small(), |m: &[u8]| largest = largest.max(m.len())).unwrap().with_buffer(4096);
    let mut random = ucl_streams::SplitMix64::new(1);
    for _ in 0..100_000 {
        let x = random.next_u64() as u32;
        let flags = ucl_data_plane::KeyFlags { hot: x > 1 << 31, fresh: true };
        encoder.report(Report::Key { key: ucl_data_plane::KeyRef::Whole(&x.to_le_bytes()), flags });
    }
    assert!(encoder.memory() < 64 << 10, "{} bytes held", encoder.memory());
    drop(encoder);
    assert!(largest < 4200, "{largest} bytes in a message");
}

/// Two counters carry 100,000 times: added up they fit one message.
#[test]
fn carries_of_hot_counters_cost_next_to_nothing() {
    let mut encoder = Encoder::new(1, small(), |_: &[u8]| {}).unwrap();
    for i in 0..100_000u32 {
        encoder.report(Report::Carry { at: ucl_data_plane::CounterIndex(i % 2 * 7), times: 1 });
    }
    cut(&small(), true, &mut encoder);
    assert_eq!(encoder.uplink().messages, 2);
    assert!(encoder.uplink().carries < 16, "{:?}", encoder.uplink());
}

/// A data plane that changes says so in order: what was counted, the new configuration, what
/// follows.
#[test]
fn changes_travel() {
    let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    let other = Config { shape: Shape { slots: 10, ..config.shape }, seed: 2.into(), ..config };
    let mut messages = Vec::new();
    let mut encoder = Encoder::new(5, config, |message: &[u8]| messages.push(message.to_vec())).unwrap();
    let mut plane = DataPlane::<4>::new(config).unwrap();
    for key in 0..100u32 {
        plane.insert(&key.to_le_bytes(), 1, &mut encoder).unwrap();
    }
    plane.change(other, &mut encoder).unwrap();
    plane.cut(&mut encoder);
    plane.reset(true, &mut encoder);
    assert_eq!(encoder.next().segment, 2);
    drop(encoder);

    let mut receiver = Receiver::new(5);
    let received: Vec<Message> = messages.iter().map(|message| receiver.receive(message).unwrap()).collect();
    let [first, cut, change, moved, reset] = &received[..] else { panic!("{} messages", received.len()) };
    assert_eq!((first.opens(), change.opens()), (Some(&config), Some(&other)));
    let Message::Reports(cut) = cut else { panic!("{cut:?}") };
    assert!(cut.cut.is_some() && cut.keys.len() < 100);
    let Message::Reports(moved) = moved else { panic!("{moved:?}") };
    assert!(moved.keys.len() >= 80 && moved.slots.iter().count() <= 10, "most keys found no slot");
    assert_eq!(*reset, Message::Reset { config: other, keep_weights: true });
    assert_eq!(receiver.expects().segment, 2);
}
