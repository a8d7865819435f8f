//! Insert speed of the data plane alone, in the paper's shapes, beside yardsticks of other crates.
//!
//! `cargo bench -p ucl-data-plane`. One thread, 64KB. "Bare" drops all reports and never cuts; the
//! others count reports and cut every 16,000 items, as a sender would. What users get by default is
//! measured by `cargo bench -p ucl-sketch`.

use ucl_data_plane::{
    BloomKind, Config, CounterBits, DataPlane, KeyFormat, Report, ReportRule, ReportSink, Seed, Shape,
};
use ucl_yardsticks::{ITEMS, Rounds, Texts, five_tuples, machine, numbers};

const INTERVAL: usize = 16_000;
const ROUNDS: usize = 15;

/// Counts reports, and reads the counters of a cut as a sender would.
#[derive(Default)]
struct Counting {
    reports: u64,
    cuts: usize,
}

impl ReportSink for Counting {
    #[inline(always)]
    fn report(&mut self, report: Report<'_>) {
        self.reports += 1;
        self.cuts += usize::from(matches!(report, Report::Cut(_)));
    }
}

fn config(keys: KeyFormat, shape: Shape) -> Config {
    Config { keys, shape, rule: ReportRule::Paper, seed: Seed::new(1) }
}

fn check<const N: usize>(plane: DataPlane<N>) {
    assert_eq!((plane.items(), plane.weight()), (ITEMS as u64, ITEMS as u64));
}

fn check_reports<const N: usize>((plane, sink): (DataPlane<N>, Counting)) {
    check(plane);
    assert_eq!(sink.cuts, ITEMS.div_ceil(INTERVAL));
    assert!(sink.reports > 80_000, "every key is reported, {} reports are too few", sink.reports);
}

fn fixed<'a, const N: usize>(rounds: &mut Rounds<'a>, keys: &'a [[u8; N]], classic: Shape) {
    let build = |shape| DataPlane::<N>::new(config(KeyFormat::Fixed(N as u8), shape)).expect("a valid shape");
    rounds.case(
        "DataPlane, bare, insert_batch",
        move || build(classic),
        |plane| plane.insert_batch(keys, &mut |_: Report<'_>| {}).expect("few items"),
        |plane, ()| check(plane),
    );
    rounds.case(
        "DataPlane, bare, insert",
        move || build(classic),
        |plane| keys.iter().for_each(|key| plane.insert(key, 1, &mut |_: Report<'_>| {}).expect("weight 1")),
        |plane, ()| check(plane),
    );
    let split = Shape { bloom: BloomKind::SplitBlock, ..classic };
    let narrow = Shape { width: 4 * classic.width, counter_bits: CounterBits::B8, ..classic };
    for (name, shape) in [("classic filter", classic), ("split-block filter", split), ("8-bit counters", narrow)] {
        let build = move || (build(shape), Counting::default());
        rounds.case(
            format!("DataPlane, {name}, insert_batch"),
            build,
            |(plane, sink)| {
                for epoch in keys.chunks(INTERVAL) {
                    plane.insert_batch(epoch, sink).expect("few items");
                    plane.cut(sink);
                }
            },
            |both, ()| check_reports(both),
        );
        rounds.case(
            format!("DataPlane, {name}, insert"),
            build,
            |(plane, sink)| {
                for epoch in keys.chunks(INTERVAL) {
                    epoch.iter().for_each(|key| plane.insert(key, 1, sink).expect("weight 1"));
                    plane.cut(sink);
                }
            },
            |both, ()| check_reports(both),
        );
    }
}

fn main() {
    // `cargo test --benches` calls this too: one short round, so that the bench keeps compiling and
    // running.
    let count = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let numbers = numbers();
    let (tuples, texts) = (five_tuples(&numbers), Texts::new(&numbers));
    println!("{}\n", machine());

    let mut rounds = Rounds::new("4-byte keys");
    ucl_yardsticks::fixed(&mut rounds, &numbers);
    fixed(&mut rounds, &numbers, Shape::PAPER_64KB);
    println!("{}", rounds.run(count, ITEMS));

    // Slots of 13-byte keys take 21 bytes, those of digests 24: as many as fit the same budget.
    let mut rounds = Rounds::new("13-byte keys");
    ucl_yardsticks::fixed(&mut rounds, &tuples);
    fixed(&mut rounds, &tuples, Shape { slots: 1700, ..Shape::PAPER_64KB });
    println!("{}", rounds.run(count, ITEMS));

    let mut rounds = Rounds::new("keys of 10 to 40 bytes");
    ucl_yardsticks::texts(&mut rounds, &texts);
    let shape = Shape { slots: 1500, ..Shape::PAPER_64KB };
    rounds.case(
        "DataPlane, bare, insert_bytes",
        move || DataPlane::<16>::new(config(KeyFormat::Digest, shape)).expect("a valid shape"),
        |plane| texts.iter().for_each(|key| plane.insert_bytes(key, 1, &mut |_: Report<'_>| {}).expect("weight 1")),
        |plane, ()| check(plane),
    );
    println!("{}", rounds.run(count, ITEMS));
}
