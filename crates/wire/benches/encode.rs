//! Snapshots as bytes: MB/s of counters for 4×9,338 8-bit counters after so many items, beside the
//! two crates that could have done it. Every case also checks that what it wrote reads back.
//!
//! `cargo bench -p ucl-wire`

use std::cell::RefCell;
use std::hint::black_box;

use constriction::stream::Decode;
use constriction::stream::model::ContiguousCategoricalEntropyModel;
use constriction::stream::stack::AnsCoder;
use divan::Bencher;
use divan::counter::BytesCount;
use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, CounterWords, Counters, Cut, CutTotals, DataPlane, HeavyKind, KeyFormat,
    Report, ReportRule, ReportSink, Seed, Shape,
};
use ucl_streams::ZipfKeys;
use ucl_wire::{Encoder, Header, Message, decode_message};

/// Items between cuts; the last is a whole stream of Retail's size.
const INTERVALS: [usize; 4] = [1_000, 16_000, 64_000, 908_576];

const CONFIG: Config = Config {
    keys: KeyFormat::Fixed(4),
    shape: Shape {
        heavy: HeavyKind::Voting,
        slots: 163,
        vote_ratio: 8,
        base: Base::CountMin,
        rows: 4,
        width: 9_338,
        counter_bits: CounterBits::B8,
        bloom: BloomKind::Classic,
        bloom_bits: 209_715,
        bloom_hashes: 6,
    },
    rule: ReportRule::New,
    seed: Seed::new(1),
};

fn main() {
    sizes();
    divan::main();
}

/// Zipf(1) over as many keys as Retail has.
fn items(n: usize) -> Vec<[u8; 4]> {
    ZipfKeys::new(1.0, 16_470, 1).take(n).collect()
}

fn plane(interval: usize) -> DataPlane<4> {
    let mut plane = DataPlane::new(CONFIG).expect("a sound configuration");
    plane.insert_batch(&items(interval), &mut |_: Report<'_>| {}).expect("few items");
    plane
}

fn counters(interval: usize) -> Counters {
    let mut counters = None;
    plane(interval).peek(&mut |report: Report<'_>| {
        if let Report::Cut(cut) = report {
            counters = Some(cut.counters.clone());
        }
    });
    counters.expect("a peek ends with a cut")
}

/// The counters' bytes.
fn words(interval: usize) -> Vec<u8> {
    match counters(interval).words() {
        CounterWords::B8(words) => words.to_vec(),
        _ => unreachable!("8-bit counters"),
    }
}

fn counter_bytes() -> BytesCount {
    BytesCount::new(CONFIG.shape.geometry().counters())
}

/// A message of counters: histogram, table, coding, frame and checksum.
#[divan::bench(args = INTERVALS)]
fn encode(bencher: Bencher<'_, '_>, interval: usize) {
    let counters = &counters(interval);
    let items = interval as u64;
    let totals = CutTotals { items, weight: items, sketch_weight: items, smallest_weight: 1, carries: 0 };
    let cut = Cut { totals, counters, reset: true };
    let sent = RefCell::new(Vec::new());
    let keep = |message: &[u8]| {
        sent.borrow_mut().clear();
        sent.borrow_mut().extend_from_slice(message);
    };
    let mut encoder = Encoder::resume(Header::default(), CONFIG, keep).expect("a sound configuration");
    bencher.counter(counter_bytes()).bench_local(|| encoder.report(Report::Cut(black_box(cut))));
    let (_, message) = decode_message(&sent.borrow(), Some(&CONFIG)).expect("readable");
    let Message::Reports(reports) = message else { panic!("reports expected") };
    assert!(reports.cut.is_some_and(|cut| cut.counters.into_iter().eq(counters.iter())));
}

/// A message of changed slots and counters: what a cut sends at least.
#[divan::bench(args = INTERVALS)]
fn encode_with_slots(bencher: Bencher<'_, '_>, interval: usize) {
    let plane = plane(interval);
    let mut encoder = Encoder::resume(Header::default(), CONFIG, |message: &[u8]| {
        black_box(message);
    })
    .expect("a sound configuration");
    bencher.counter(counter_bytes()).bench_local(|| plane.peek(&mut encoder));
    assert!(encoder.uplink().slots > 0);
}

/// Everything that an epoch of so many items sends, keys and carries too; the share of insert time
/// is `epoch_encoded` over `epoch_inserted`, less 1.
#[divan::bench(args = [64_000])]
fn epoch_encoded(bencher: Bencher<'_, '_>, interval: usize) {
    let items = items(4 * interval);
    let sent = RefCell::new(0);
    let mut encoder = Encoder::resume(Header::default(), CONFIG, |message: &[u8]| *sent.borrow_mut() += message.len())
        .expect("a sound configuration");
    bencher
        .with_inputs(|| plane(interval))
        .bench_local_values(|mut plane| epochs(&mut plane, &items, interval, &mut encoder));
    assert!(*sent.borrow() > 0);
}

#[divan::bench(args = [64_000])]
fn epoch_inserted(bencher: Bencher<'_, '_>, interval: usize) {
    let items = items(4 * interval);
    let mut reports = 0u64;
    let mut sink = |_: Report<'_>| reports += 1;
    bencher
        .with_inputs(|| plane(interval))
        .bench_local_values(|mut plane| epochs(&mut plane, &items, interval, &mut sink));
    assert!(reports > 0);
}

fn epochs(plane: &mut DataPlane<4>, items: &[[u8; 4]], interval: usize, sink: &mut impl ReportSink) {
    for epoch in items.chunks(interval) {
        plane.insert_batch(epoch, sink).expect("few items");
        plane.cut(sink);
    }
}

#[divan::bench(args = INTERVALS)]
fn decode(bencher: Bencher<'_, '_>, interval: usize) {
    let mut message = Vec::new();
    let keep = |bytes: &[u8]| message = bytes.to_vec();
    plane(interval).peek(&mut Encoder::resume(Header::default(), CONFIG, keep).expect("a sound configuration"));
    bencher
        .counter(counter_bytes())
        .bench_local(|| decode_message(black_box(&message), Some(&CONFIG)).expect("readable"));
}

/// zstd, level 1, with a context that is kept.
#[divan::bench(args = INTERVALS)]
fn zstd_level_1(bencher: Bencher<'_, '_>, interval: usize) {
    let words = words(interval);
    let mut compressor = zstd::bulk::Compressor::new(1).expect("a level that exists");
    let mut out = vec![0; zstd::zstd_safe::compress_bound(words.len())];
    bencher.counter(counter_bytes()).bench_local(|| compressor.compress_to_buffer(black_box(&words), &mut out[..]));
    assert_eq!(zstd::bulk::decompress(&zstd_bytes(&words), words.len()).expect("readable"), words);
}

fn zstd_bytes(words: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(words, 1).expect("a level that exists")
}

/// constriction: the same frequencies, its asymmetric numeral systems.
#[divan::bench(args = INTERVALS)]
fn constriction_ans(bencher: Bencher<'_, '_>, interval: usize) {
    let words = words(interval);
    bencher.counter(counter_bytes()).bench_local(|| constriction_encode(black_box(&words)).1);
    let (model, mut coded) = constriction_encode(&words);
    let read: Vec<u8> = coded.decode_iid_symbols(words.len(), &model).map(|s| s.expect("readable") as u8).collect();
    assert_eq!(read, words);
}

type Model = ContiguousCategoricalEntropyModel<u16, Vec<u16>, 14>;
type Coder = AnsCoder<u16, u32>;

fn constriction_encode(words: &[u8]) -> (Model, Coder) {
    let mut counts = [0u32; 256];
    words.iter().for_each(|&word| counts[usize::from(word)] += 1);
    let probabilities = counts.map(f64::from);
    let model = Model::from_floating_point_probabilities_fast(&probabilities, None).expect("some symbols");
    let mut coder = Coder::new();
    coder.encode_iid_symbols_reverse(words.iter().map(|&word| usize::from(word)), &model).expect("known symbols");
    (model, coder)
}

fn sizes() {
    println!("interval  order-0 entropy  this crate  zstd -1  constriction (without its table)");
    for interval in INTERVALS {
        let words = words(interval);
        let mut counts = [0u32; 256];
        words.iter().for_each(|&word| counts[usize::from(word)] += 1);
        let n = words.len() as f64;
        let bits = counts.iter().filter(|&&c| c > 0).map(|&c| f64::from(c) * (n / f64::from(c)).log2()).sum::<f64>();
        let mut encoder = Encoder::resume(Header::default(), CONFIG, |_: &[u8]| {}).expect("a sound configuration");
        plane(interval).peek(&mut encoder);
        let coder = constriction_encode(&words).1;
        let (ours, zstd) = (encoder.uplink().counters, zstd_bytes(&words).len());
        println!("{interval:>8}  {:>15.0}  {ours:>10}  {zstd:>7}  {:>12}", bits / 8.0, coder.num_words() * 2);
    }
}
