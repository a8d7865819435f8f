//! Arbitrary reports, and what a receiver should make of them.

use proptest::prelude::*;
use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, CounterIndex, Counters, Cut, CutTotals, HashSeed, Hashing, HeavyKind,
    KeyFlags, KeyFormat, KeyRef, Report, ReportRule, ReportSink, Seed, Shape,
};

/// A report that owns what it says.
#[derive(Clone, Debug)]
pub enum Told {
    Key { bytes: Vec<u8>, kind: u8, flags: KeyFlags },
    Carry { at: u32, times: i64 },
    Slot { slot: u32, holder: Option<Vec<u8>>, count: u64 },
    Cut { items: u64, weight: u64, adds: Vec<(usize, bool, u64)>, reset: bool },
}

pub fn config() -> impl Strategy<Value = Config> {
    let keys = prop::sample::select(vec![
        KeyFormat::Fixed(4),
        KeyFormat::Fixed(8),
        KeyFormat::Fixed(13),
        KeyFormat::Fixed(16),
        KeyFormat::Digest,
    ]);
    let bits = prop::sample::select(CounterBits::ALL.to_vec());
    let combinations: Vec<(Base, HeavyKind)> =
        Base::ALL.iter().flat_map(|&base| HeavyKind::ALL.map(|heavy| (base, heavy))).collect();
    (
        keys,
        bits,
        prop::sample::select(combinations),
        1u16..4,
        1u32..700,
        (any::<u128>(), prop::sample::select(&Hashing::ALL[..])),
    )
        .prop_map(|(keys, counter_bits, (base, heavy), rows, width, (seed, hashing))| {
            let seed = Seed::from(seed).with_hashing(hashing);
            let shape = Shape { heavy, slots: 300, base, rows, width, counter_bits, ..Shape::PAPER_64KB };
            Config { keys, shape: Shape { bloom: BloomKind::SplitBlock, ..shape }, rule: ReportRule::New, seed }
        })
}

pub fn told(config: Config) -> impl Strategy<Value = Vec<Told>> {
    let counters = config.shape.geometry().counters();
    let slot_bytes = config.keys.slot_bytes();
    let key_bytes = match config.keys {
        KeyFormat::Fixed(bytes) => usize::from(bytes)..usize::from(bytes) + 1,
        KeyFormat::Digest | KeyFormat::Code(_) => 0..60,
    };
    let byte = prop_oneof![Just(0u8), 0u8..4, any::<u8>()];
    let key = (prop::collection::vec(byte, key_bytes), 0u8..3, any::<bool>(), any::<bool>())
        .prop_map(|(bytes, kind, hot, fresh)| Told::Key { bytes, kind, flags: KeyFlags { hot, fresh } });
    let times = prop_oneof![5 => Just(1i64), 1 => any::<i64>()];
    let carry = (0..counters as u32, times).prop_map(|(at, times)| Told::Carry { at, times });
    let holder = prop::option::of(prop::collection::vec(any::<u8>(), slot_bytes));
    let count = prop_oneof![0u64..50, any::<u64>()];
    let slot = (0u32..300, holder, count).prop_map(|(slot, holder, count)| Told::Slot { slot, holder, count });
    let add = (0..counters, any::<bool>(), prop_oneof![9 => 1u64..9, 1 => 1u64..1 << 33]);
    let cut = (any::<u64>(), any::<u64>(), prop::collection::vec(add, 0..400), any::<bool>())
        .prop_map(|(items, weight, adds, reset)| Told::Cut { items, weight, adds, reset });
    prop::collection::vec(prop_oneof![20 => key, 10 => carry, 10 => slot, 1 => cut], 0..120)
}

/// Tells the sink everything.
pub fn tell(config: &Config, told: &[Told], sink: &mut impl ReportSink) {
    for one in told {
        match one {
            Told::Key { bytes, kind, flags } => {
                sink.report(Report::Key { key: key(config, bytes, *kind).borrowed(), flags: *flags });
            }
            Told::Carry { at, times } => sink.report(Report::Carry { at: CounterIndex(*at), times: *times }),
            Told::Slot { slot, holder, count } => {
                sink.report(Report::Slot { slot: *slot, holder: holder.as_deref(), count: *count });
            }
            Told::Cut { items, weight, adds, reset } => sink.report(Report::Cut(Cut {
                totals: totals(*items, *weight, adds.len()),
                counters: &counters(config, adds),
                reset: *reset,
            })),
        }
    }
}

/// The totals of a cut after so many carries.
pub fn totals(items: u64, weight: u64, carries: usize) -> CutTotals {
    CutTotals { items, weight, sketch_weight: weight / 2, smallest_weight: 1, carries: carries as u64 }
}

/// A key that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedKey {
    Whole(Vec<u8>),
    Digested([u8; 16], Vec<u8>),
    Digest([u8; 16]),
    Name(Vec<u8>),
}

impl OwnedKey {
    pub fn borrowed(&self) -> KeyRef<'_> {
        match self {
            Self::Whole(bytes) => KeyRef::Whole(bytes),
            Self::Digested(digest, bytes) => KeyRef::Digested { digest: *digest, bytes },
            Self::Digest(digest) => KeyRef::Digest(*digest),
            Self::Name(bytes) => KeyRef::Name(bytes),
        }
    }
}

/// The key of a report: for long keys, with its own digest, with another, or as a digest alone.
pub fn key(config: &Config, bytes: &[u8], kind: u8) -> OwnedKey {
    let own = HashSeed::new(config.seed).digest_key().digest(bytes);
    match (config.keys, kind) {
        (KeyFormat::Fixed(_), _) => OwnedKey::Whole(bytes.to_vec()),
        (KeyFormat::Digest, 0) => OwnedKey::Digested(own, bytes.to_vec()),
        (KeyFormat::Digest, 1) => OwnedKey::Digested([7; 16], bytes.to_vec()),
        (KeyFormat::Digest, _) => OwnedKey::Digest(own),
        (KeyFormat::Code(_), _) => OwnedKey::Name(bytes.to_vec()),
    }
}

pub fn counters(config: &Config, adds: &[(usize, bool, u64)]) -> Counters {
    let shape = &config.shape;
    let mut counters = Counters::new(shape.geometry().counters(), shape.counter_bits, shape.signed()).unwrap();
    for &(at, negative, weight) in adds {
        let _carried = counters.add(at, negative && shape.signed(), weight);
    }
    counters
}
