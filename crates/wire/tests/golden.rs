//! The bytes of every version, pinned: a reader of tomorrow reads the messages of today, and every
//! machine writes the same.
//!
//! After a change of the format (a new version, never an old one):
//! `UCL_REGENERATE=1 cargo test -p ucl-wire --test golden`, which writes the files of the newest
//! version only.

use std::fmt::Write as _;
use std::path::PathBuf;

use ucl_data_plane::mirrored::{MirroredPlane, MirroredShape, Policy};
use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, CounterIndex, Counters, Cut, CutTotals, HashSeed, HeavyKind, KeyFormat,
    KeyRef, Report, ReportRule, ReportSink, Seed, Shape,
};
use ucl_wire::{Encoder, Header, Message, Receiver, VERSION, decode_message};

fn config(seed: Seed, keys: KeyFormat, width: u32, counter_bits: CounterBits, base: Base) -> Config {
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 100,
        vote_ratio: 8,
        base,
        rows: 2,
        width,
        counter_bits,
        bloom: BloomKind::SplitBlock,
        bloom_bits: 4096,
        bloom_hashes: 6,
    };
    Config { keys, shape, rule: ReportRule::New, seed }
}

fn counters(config: &Config) -> Counters {
    let shape = &config.shape;
    let mut counters = Counters::new(shape.geometry().counters(), shape.counter_bits, shape.signed()).unwrap();
    for i in 0..counters.len() as u64 {
        let weight = i * i % 97 / 24 * (i * i % 89) / 20 + u64::from(i % 500 == 3) * 100_000;
        let _carried = counters.add(i as usize, shape.signed() && i % 3 == 0, weight);
    }
    counters
}

/// One of each report, with counters that only integers decide.
fn tell(config: &Config, reset: bool, sink: &mut impl ReportSink) {
    for i in 0..40u32 {
        let long = format!("/item/{}", i * i);
        let small = (i * 37 % 300).to_le_bytes();
        let fixed: Vec<u8> = small.iter().copied().cycle().take(config.keys.slot_bytes()).collect();
        let own = HashSeed::new(config.seed).digest_key().digest(long.as_bytes());
        let key = match (config.keys, i % 8) {
            (KeyFormat::Fixed(_), _) => KeyRef::Whole(&fixed),
            (KeyFormat::Digest, 7) => KeyRef::Digest(own),
            (KeyFormat::Digest, 6) => KeyRef::Digested { digest: [i as u8; 16], bytes: long.as_bytes() },
            (KeyFormat::Digest, _) => KeyRef::Digested { digest: own, bytes: long.as_bytes() },
            (KeyFormat::Code(_), _) => KeyRef::Name(long.as_bytes()),
        };
        let flags = ucl_data_plane::KeyFlags { hot: i % 3 == 0, fresh: i % 5 != 0 };
        sink.report(Report::Key { key, flags });
        let at = CounterIndex(i * 11 % 30);
        sink.report(Report::Carry { at, times: if config.shape.signed() && i % 2 == 0 { -2 } else { 1 } });
    }
    for slot in (0..100).step_by(7) {
        let holder = vec![slot as u8; config.keys.slot_bytes()];
        sink.report(Report::Slot {
            slot,
            holder: (slot % 2 == 0).then_some(&holder[..]),
            count: u64::from(slot).pow(3),
        });
    }
    let counters = counters(config);
    let (items, weight, sketch_weight) = (1_000_000, 1_000_500, 800_000);
    let totals = CutTotals { items, weight, sketch_weight, smallest_weight: 1, carries: 40 };
    sink.report(Report::Cut(Cut { totals, counters: &counters, reset }));
}

const SEED: u128 = 0xfedc_ba98_7654_3210_0123_4567_89ab_cdef;

type Case = (&'static str, Config, bool);

fn cases(version: u8) -> Vec<Case> {
    let (fixed, plain, signed) = (KeyFormat::Fixed, Base::CountMin, Base::CountSketch);
    let seed = if version < 3 { Seed::v1(0x0123_4567_89ab_cdef) } else { SEED.into() };
    let config = |keys, width, bits, base| config(seed, keys, width, bits, base);
    let mut cases = vec![
        ("fixed4-8bit", config(fixed(4), 60, CounterBits::B8, plain), true),
        ("fixed4-8bit-long", config(fixed(4), 5000, CounterBits::B8, plain), true),
        ("fixed8-4bit-peek", config(fixed(8), 75, CounterBits::B4, plain), false),
        ("fixed13-16bit-signed", config(fixed(13), 60, CounterBits::B16, signed), true),
        ("fixed16-32bit", config(fixed(16), 700, CounterBits::B32, plain), true),
        ("digest-8bit-signed", config(KeyFormat::Digest, 60, CounterBits::B8, signed), true),
    ];
    if version >= 3 {
        let seed = Seed::v1(7);
        cases.push(("digest-earlier-hashes", Config { seed, ..cases[5].1 }, true));
    }
    if version >= 2 {
        let with = |heavy, config: Config| Config { shape: Shape { heavy, ..config.shape }, ..config };
        let flowradar = config(fixed(4), 60, CounterBits::B8, Base::FlowRadar);
        let count_sketch = config(fixed(8), 60, CounterBits::B32, signed);
        cases.push(("flowradar-elastic", with(HeavyKind::Elastic, flowradar), true));
        cases.push(("count-sketch-augmented", with(HeavyKind::Augmented, count_sketch), true));
    }
    cases
}

fn messages(config: &Config, reset: bool) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut encoder = Encoder::new(300, *config, |message: &[u8]| messages.push(message.to_vec())).unwrap();
    tell(config, reset, &mut encoder);
    drop(encoder);
    messages
}

fn path(version: u8, name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", &format!("v{version}-{name}.hex")].iter().collect()
}

/// 32 bytes a line, a blank line between messages.
fn to_hex(messages: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for (i, message) in messages.iter().enumerate() {
        text.push_str(if i > 0 { "\n" } else { "" });
        for line in message.chunks(32) {
            line.iter().for_each(|byte| write!(text, "{byte:02x}").expect("writing to a string"));
            text.push('\n');
        }
    }
    text
}

fn from_hex(text: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let message = |hex: &str| hex.replace('\n', "").as_bytes().chunks(2).map(byte).collect();
    text.trim_end().split("\n\n").map(message).collect()
}

#[test]
fn the_newest_version_is_written_as_ever() {
    for (name, config, reset) in cases(VERSION) {
        let written = messages(&config, reset);
        if std::env::var_os("UCL_REGENERATE").is_some() {
            std::fs::write(path(VERSION, name), to_hex(&written)).unwrap();
        }
        let golden = std::fs::read_to_string(path(VERSION, name)).unwrap();
        assert_eq!(to_hex(&written), golden, "{name}");
    }
}

#[test]
fn every_version_is_read_as_ever() {
    let cases = (1..=VERSION).flat_map(|version| cases(version).into_iter().map(move |case| (version, case)));
    for (version, (name, config, reset)) in cases {
        let golden = from_hex(&std::fs::read_to_string(path(version, name)).unwrap());
        let [open, reports] = golden.as_slice() else { panic!("{name}: two messages") };
        let (header, message) = decode_message(open, None).unwrap();
        assert_eq!(header, Header { stream: 300, ..Header::default() });
        assert_eq!(message, Message::SegmentOpen(config), "{name}");
        let (header, message) = decode_message(reports, Some(&config)).unwrap();
        assert_eq!(header.seq, 1);
        let Message::Reports(reports) = message else { panic!("{name}: reports") };
        assert_eq!(reports.keys.len(), 40);
        assert_eq!(reports.carries.iter().map(|&(_, n)| n).sum::<i64>(), if config.shape.signed() { -20 } else { 40 });
        assert_eq!(
            reports.slots.iter().map(|s| s.count).sum::<u64>(),
            (0..100).step_by(7).map(|s: u64| s.pow(3)).sum()
        );
        let cut = reports.cut.unwrap();
        assert_eq!((cut.totals.items, cut.totals.weight, cut.reset), (1_000_000, 1_000_500, reset));
        assert_eq!(cut.counters, counters(&config).iter().collect::<Vec<_>>(), "{name}");
    }
}

/// A mirrored table of a few slots, with keys of any length.
fn table_config() -> Config {
    let table = MirroredShape { sets: 5, count_bits: 4, buffer: 200, policy: Policy::Skewed };
    let shape = Shape::mirrored(table, 2_048, 5);
    Config { keys: KeyFormat::Code(64), shape, rule: ReportRule::New, seed: SEED.into() }
}

fn table_messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let mut encoder = Encoder::new(300, table_config(), |message: &[u8]| messages.push(message.to_vec())).unwrap();
    let mut plane = MirroredPlane::<8>::new(table_config()).unwrap();
    for i in 0..400u64 {
        // Numbers and short keys, which are their own codes, and paths, which have names.
        let key = if i % 3 == 0 { format!("{}", i * i % 61) } else { format!("/item/{}", i * i % 47) };
        plane.insert_bytes(key.as_bytes(), 1 + i % 5, &mut encoder).unwrap();
    }
    plane.cut(&mut encoder);
    drop(encoder);
    messages
}

/// What a table sends is pinned like everything else: the models of its coder too.
#[test]
fn a_table_is_written_as_ever() {
    let written = table_messages();
    let path = path(VERSION, "table");
    if std::env::var_os("UCL_REGENERATE").is_some() {
        std::fs::write(&path, to_hex(&written)).unwrap();
    }
    assert_eq!(to_hex(&written), std::fs::read_to_string(path).unwrap());
}

#[test]
fn a_table_of_every_version_is_read_as_ever() {
    for version in 4..=VERSION {
        let messages = from_hex(&std::fs::read_to_string(path(version, "table")).unwrap());
        read_table(&messages);
    }
}

fn read_table(messages: &[Vec<u8>]) {
    let mut receiver = Receiver::new(300);
    let (mut exports, mut names) = (0, 0);
    for message in messages {
        match receiver.receive(message).unwrap() {
            Message::Export(_) => exports += 1,
            Message::Reports(reports) => names += reports.keys.len(),
            Message::SegmentOpen(config) => assert_eq!(config, table_config()),
            Message::Reset { .. } => panic!("nothing was reset"),
        }
    }
    // Of 24 paths nine are short enough to be their own codes.
    assert_eq!((exports, names), (7, 15));
}
