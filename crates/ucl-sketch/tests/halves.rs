//! A device and a station, with nothing but messages between them, answer as one sketch does.

use std::collections::HashMap;

use proptest::prelude::*;
use ucl_sketch::{
    Base, BloomKind, ByteKey, CounterBits, DecoderKind, Device, Fault, HeavyKind, Hit, LoadError, Mode, QueryView,
    Refused, ReportRule, Settings, Shape, Station, UclSketch, View,
};

/// So small that keys collide everywhere.
fn small(counter_bits: CounterBits) -> Shape {
    Shape {
        heavy: HeavyKind::Voting,
        slots: 8,
        vote_ratio: 2,
        base: Base::CountMin,
        rows: 3,
        width: 64,
        counter_bits,
        bloom: BloomKind::Classic,
        bloom_bits: 512,
        bloom_hashes: 3,
    }
}

fn answers(view: &View) -> (Vec<Hit<ByteKey>>, u64, u64) {
    (view.iter().collect(), view.items(), view.weight())
}

fn by_number(view: &QueryView) -> Vec<(Vec<u8>, u64, u64, u64)> {
    let row = |(id, answer): (_, ucl_sketch::Estimate)| {
        (view.registry().key(id).to_vec(), answer.estimate, answer.lower, answer.upper)
    };
    view.all().map(row).collect()
}

/// Every key's truth is within its range.
fn holds(view: &QueryView, truth: &HashMap<Vec<u8>, u64>) -> bool {
    truth.iter().all(|(key, &count)| {
        let answer = view.estimate(key);
        answer.lower <= count && count <= answer.upper
    })
}

fn deliver(device: &mut Device, station: &mut Station) {
    while let Some(message) = device.next_message() {
        assert_eq!(station.receive(&message.bytes).expect("an honest message"), message.ends_epoch);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, u16, u64),
    Cut,
    Hold(bool),
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (any::<u8>(), 1u16..60, 1u64..40).prop_map(|(key, times, weight)| Step::Insert(key, times, weight)),
        2 => Just(Step::Cut),
        1 => any::<bool>().prop_map(Step::Hold),
        1 => Just(Step::Reload),
    ]
}

fn key_of(number: u8, format: usize) -> Vec<u8> {
    match format {
        0 => format!("key-{number}-{}", "x".repeat(usize::from(number % 40))).into_bytes(),
        bytes => [number].repeat(bytes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn messages_carry_everything(
        steps in prop::collection::vec(step(), 1..60),
        format in prop::sample::select(vec![0usize, 4, 8, 13, 16]),
        bits in prop::sample::select(vec![CounterBits::B4, CounterBits::B8, CounterBits::B32]),
        decoder in prop::sample::select(vec![DecoderKind::Delta, DecoderKind::Em, DecoderKind::Cm]),
        rule in prop::sample::select(ReportRule::ALL.to_vec()),
    ) {
        let settings = Settings { decoder, retain_epochs: 3, ..Settings::default() };
        let mut builder = UclSketch::builder().shape(small(bits)).interval(None).seed(5).report_rule(rule);
        if format > 0 {
            builder = builder.key_bytes(format);
        }
        let builder = builder.settings(settings.clone());
        let mut whole = builder.clone().build().unwrap();
        let mut device = builder.device().unwrap();
        let mut station = Station::new(settings.clone());
        let mut truth: HashMap<Vec<u8>, u64> = HashMap::new();
        // A device that is held forgets no name, and may lose other keys than one that forgets.
        let forgets = rule == ReportRule::Generations;
        let mut alike = true;
        for step in steps {
            match step {
                Step::Insert(key, times, weight) => {
                    let key = key_of(key, format);
                    *truth.entry(key.clone()).or_default() += u64::from(times) * weight;
                    for _ in 0..times {
                        whole.insert_weighted(&key, weight).unwrap();
                        device.insert(&key, weight).unwrap();
                    }
                }
                Step::Cut => {
                    let bound = device.cut_bound();
                    whole.cut();
                    device.cut();
                    prop_assert!(device.waiting_bytes() <= bound);
                    deliver(&mut device, &mut station);
                    let (remote, local) = (station.query_view().unwrap(), whole.query_view().unwrap());
                    prop_assert!(holds(&remote, &truth));
                    if alike {
                        prop_assert_eq!(answers(&station.view_at_cut().unwrap()), answers(&whole.view()));
                        prop_assert_eq!(by_number(&remote), by_number(&local));
                        prop_assert_eq!(remote.unexplained(), local.unexplained());
                    }
                }
                Step::Hold(hold) => {
                    alike &= !(hold && forgets);
                    device.hold(hold);
                }
                Step::Reload => {
                    deliver(&mut device, &mut station);
                    let bytes = device.to_bytes();
                    device = Device::from_bytes(&bytes).unwrap();
                    prop_assert_eq!(&device.to_bytes(), &bytes);
                    // In mid-epoch a station has no state, and refuses to invent one.
                    if let Ok(bytes) = station.to_bytes() {
                        station = Station::from_bytes(&bytes, settings.clone()).unwrap();
                        prop_assert_eq!(station.to_bytes().unwrap(), bytes);
                    } else {
                        prop_assert_eq!(station.query_view().unwrap_err(), Fault::NotAtCut);
                    }
                }
            }
        }
        device.cut();
        whole.cut();
        deliver(&mut device, &mut station);
        prop_assert!(holds(&station.query_view().unwrap(), &truth));
        if alike {
            prop_assert_eq!(answers(&station.view_at_cut().unwrap()), answers(&whole.view()));
        }
        prop_assert_eq!((device.items(), device.weight()), (whole.items(), whole.weight()));
    }

    /// Whatever happens to the bytes: an error, or the station that wrote them.
    #[test]
    fn damaged_states_are_refused(at in any::<prop::sample::Index>(), flip in 1u8.., cut in any::<bool>()) {
        let mut device = UclSketch::builder().shape(small(CounterBits::B8)).seed(1).device().unwrap();
        let mut station = Station::new(Settings::default());
        for n in 0..500u32 {
            device.insert(format!("{}", n % 90).as_bytes(), 1).unwrap();
        }
        device.cut();
        deliver(&mut device, &mut station);
        for (bytes, is_device) in [(device.to_bytes(), true), (station.to_bytes().unwrap(), false)] {
            let mut bytes = bytes;
            let at = at.index(bytes.len());
            if cut {
                bytes.truncate(at);
            } else {
                bytes[at] ^= flip;
            }
            if is_device {
                prop_assert!(Device::from_bytes(&bytes).is_err());
            } else {
                prop_assert!(Station::from_bytes(&bytes, Settings::default()).is_err());
            }
        }
    }

    /// Made-up sections with right checksums give an error or a half that works.
    #[test]
    fn invented_states_do_no_harm(at in any::<prop::sample::Index>(), byte: u8) {
        let mut device = UclSketch::builder().shape(small(CounterBits::B8)).seed(1).device().unwrap();
        let mut station = Station::new(Settings::default());
        for n in 0..500u32 {
            device.insert(format!("{}", n % 90).as_bytes(), 1).unwrap();
        }
        device.cut();
        deliver(&mut device, &mut station);
        let mut bytes = device.to_bytes();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        ucl_sketch::state::mend(&mut bytes);
        if let Ok(mut device) = Device::from_bytes(&bytes) {
            let _ = device.insert(b"more", 1);
            device.cut();
        }
        let mut bytes = station.to_bytes().unwrap();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        ucl_sketch::state::mend(&mut bytes);
        if let Ok(mut station) = Station::from_bytes(&bytes, Settings::default()) {
            let view = station.view_at_cut();
            prop_assert!(view.is_err() || view.unwrap().items() <= i64::MAX as u64);
        }
    }
}

/// However long an outage lasts, what is held back has a bound, and the totals are exact.
#[test]
fn an_epoch_without_end_stays_within_a_bound() {
    let builder = UclSketch::builder().shape(small(CounterBits::B4)).seed(3).report_rule(ReportRule::New);
    let mut device = builder.clone().device().unwrap();
    let mut whole = builder.interval(None).build().unwrap();
    let mut station = Station::new(Settings::default());
    device.hold(true);
    let mut largest = [0; 2];
    for n in 0..400_000u64 {
        let key = format!("{}", (n * n) % 1_009);
        device.insert(key.as_bytes(), 1 + n % 3).unwrap();
        whole.insert_weighted(&key, 1 + n % 3).unwrap();
        if n % 10_000 == 0 {
            let half = usize::from(n >= 200_000);
            largest[half] = largest[half].max(device.cut_bound());
        }
    }
    assert!(largest[1] <= largest[0] + 1_024, "{largest:?}");
    assert!(largest[1] <= device.largest_cut() + device.waiting_bytes());
    device.cut();
    whole.cut();
    deliver(&mut device, &mut station);
    assert_eq!(answers(&station.view_at_cut().unwrap()), answers(&whole.view()));
}

#[test]
fn messages_out_of_order_change_nothing() {
    let mut device = UclSketch::builder().decoder(DecoderKind::Delta).memory("16KB").seed(1).device().unwrap();
    let mut station = Station::new(Settings::default());
    assert!(matches!(station.view_at_cut(), Err(Fault::Link(_))));
    for epoch in 0..3u32 {
        device.insert(&epoch.to_le_bytes(), 2).unwrap();
        device.cut();
    }
    let messages: Vec<Vec<u8>> = std::iter::from_fn(|| device.next_message()).map(|message| message.bytes).collect();
    assert_eq!(messages.len(), 4);
    assert!(matches!(station.receive(&messages[1]), Err(Refused::Message(_))));
    station.receive(&messages[0]).unwrap();
    station.receive(&messages[1]).unwrap();
    let before = station.to_bytes().unwrap();
    for wrong in [&messages[0][..], &messages[1], &messages[3], b"", b"UC\x03\x02"] {
        assert!(matches!(station.receive(wrong), Err(Refused::Message(_))));
        assert_eq!(station.to_bytes().unwrap(), before);
    }
    station.receive(&messages[2]).unwrap();
    station.receive(&messages[3]).unwrap();
    assert_eq!(station.view_at_cut().unwrap().weight(), 6);
}

#[test]
fn a_device_that_is_too_large_is_refused() {
    let mut device = UclSketch::builder().decoder(DecoderKind::Delta).memory("64KB").device().unwrap();
    let open = device.next_message().unwrap();
    let mut station = Station::new(Settings::default()).with_counter_limit(1_000);
    let error = station.receive(&open.bytes).unwrap_err().to_string();
    assert!(error.contains("at most 1000 are allowed"), "{error}");
}

#[test]
fn the_state_of_one_half_is_not_that_of_another() {
    let device = UclSketch::builder().memory("16KB").device().unwrap();
    let station = Station::new(Settings::default());
    let bytes = device.to_bytes();
    assert!(matches!(Station::from_bytes(&bytes, Settings::default()), Err(LoadError::Missing { .. })));
    assert!(matches!(UclSketch::from_bytes(&bytes), Err(LoadError::Missing { .. })));
    assert!(matches!(Device::from_bytes(&station.to_bytes().unwrap()), Err(LoadError::Missing { .. })));
}

/// Exact counting over two machines, with names and codes, saved and loaded on both sides.
#[test]
fn exact_counts_cross_the_link() {
    let mut device = UclSketch::builder().mode(Mode::Exact).memory("6KB").seed(4).device().unwrap();
    let mut station = Station::new(Settings::default());
    let mut truth = std::collections::HashMap::<String, u64>::new();
    for i in 0..20_000u64 {
        let number = i * i % 2_003;
        let key = if number % 2 == 0 { number.to_string() } else { format!("/articles/{number}") };
        device.insert(key.as_bytes(), 1 + i % 3).unwrap();
        *truth.entry(key).or_default() += 1 + i % 3;
        if i % 6_000 == 5_999 {
            device.cut();
            deliver(&mut device, &mut station);
            device = Device::from_bytes(&device.to_bytes()).unwrap();
            station = Station::from_bytes(&station.to_bytes().unwrap(), Settings::default()).unwrap();
        }
    }
    device.cut();
    deliver(&mut device, &mut station);
    let view = station.view_at_cut().unwrap();
    assert_eq!(view.known_keys(), truth.len());
    for hit in view.iter() {
        let key = hit.known_key().and_then(|key| key.as_str()).expect("a name").to_owned();
        assert_eq!((hit.count, hit.lower, hit.upper), (truth[&key], truth[&key], truth[&key]), "{key}");
    }
}
