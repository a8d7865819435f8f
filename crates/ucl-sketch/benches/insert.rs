//! Insert speed of what users get: `UclSketch` in 64KB with default settings (mode exact) and in
//! mode delta, beside yardsticks of other crates.
//!
//! `cargo bench -p ucl-sketch --bench insert`. From the inside out, all with the shape that the
//! planner chooses: the data plane of each mode alone with all reports dropped; delta's as the
//! sketch has it, with reports counted and cuts; the whole sketch, which also decodes (on all
//! cores); the whole sketch with the control plane in threads of its own. The data plane in the
//! paper's shapes is measured by `cargo bench -p ucl-data-plane`.

use ucl_data_plane::mirrored::MirroredPlane;
use ucl_data_plane::{AnyHeavy, DataPlane, Report, ReportSink};
use ucl_sketch::plan::SERIES_INTERVAL;
use ucl_sketch::{Builder, Config, DecoderKind, Execution, Mode, UclSketch};
use ucl_yardsticks::{ITEMS, Rounds, Texts, five_tuples, machine, numbers};

const ROUNDS: usize = 15;
/// Items of a batch, as a reader hands them out.
const BATCH: usize = 4096;

#[derive(Default)]
struct Counting {
    reports: u64,
}

impl ReportSink for Counting {
    #[inline(always)]
    fn report(&mut self, _: Report<'_>) {
        self.reports += 1;
    }
}

/// The default, and delta.
const MODES: [Mode; 2] = [Mode::Exact, Mode::Sketch(DecoderKind::Delta)];
const EXECUTIONS: [(&str, Execution); 2] = [("", Execution::Synchronous), (", pipelined", Execution::Pipelined)];

/// A data plane as the sketch has it.
type Shipped<const N: usize> = (DataPlane<N, AnyHeavy<N>>, Counting);

fn shipped<const N: usize>(config: Config) -> Shipped<N> {
    (DataPlane::any(config).expect("the planner's shape is valid"), Counting::default())
}

fn check_shipped<const N: usize>((plane, sink): Shipped<N>) {
    assert_eq!(plane.weight(), ITEMS as u64);
    assert!(sink.reports > 80_000, "every key is reported, {} reports are too few", sink.reports);
}

fn check_sketch(mut sketch: UclSketch) {
    assert_eq!(sketch.items(), ITEMS as u64);
    assert_eq!(sketch.view().weight(), ITEMS as u64);
}

fn build(builder: &Builder) -> UclSketch {
    builder.clone().build().expect("a valid sketch")
}

fn fixed<'a, const N: usize>(rounds: &mut Rounds<'a>, keys: &'a [[u8; N]]) {
    let builder = UclSketch::builder().memory("64KB").key_bytes(N).seed(1);
    let (table, _) = builder.plan().expect("64KB are enough");
    rounds.case(
        "mirrored plane, bare, insert_batch",
        move || MirroredPlane::<N>::new(table).expect("the planner's shape is valid"),
        |plane| keys.chunks(BATCH).for_each(|keys| plane.insert_batch(keys, &mut |_: Report<'_>| {}).expect("few")),
        |plane, ()| assert_eq!(plane.weight(), ITEMS as u64),
    );
    let (config, _) = builder.clone().mode(MODES[1]).plan().expect("64KB are enough");
    let interval = SERIES_INTERVAL as usize;
    let bare = move || DataPlane::<N>::new(config).expect("the planner's shape is valid");
    rounds.case(
        "data plane, bare, insert_batch",
        bare,
        |plane| plane.insert_batch(keys, &mut |_: Report<'_>| {}).expect("few items"),
        |plane, ()| assert_eq!(plane.weight(), ITEMS as u64),
    );
    rounds.case(
        "data plane, bare, insert",
        bare,
        |plane| keys.iter().for_each(|key| plane.insert(key, 1, &mut |_: Report<'_>| {}).expect("weight 1")),
        |plane, ()| assert_eq!(plane.weight(), ITEMS as u64),
    );
    rounds.case(
        "data plane, reports counted, insert_batch",
        move || shipped::<N>(config),
        move |(plane, sink)| {
            for epoch in keys.chunks(interval) {
                plane.insert_batch(epoch, sink).expect("few items");
                plane.cut(sink);
            }
        },
        |both, ()| check_shipped(both),
    );
    rounds.case(
        "data plane, reports counted, insert",
        move || shipped::<N>(config),
        move |(plane, sink)| {
            for epoch in keys.chunks(interval) {
                epoch.iter().for_each(|key| plane.insert(key, 1, sink).expect("weight 1"));
                plane.cut(sink);
            }
        },
        |both, ()| check_shipped(both),
    );
    for (mode, (how, execution)) in MODES.into_iter().flat_map(|mode| EXECUTIONS.map(|execution| (mode, execution))) {
        let batches = builder.clone().mode(mode).execution(execution);
        let singles = batches.clone();
        let name = format!("UclSketch, {mode}{how}");
        rounds.case(
            format!("{name}, insert_batch"),
            move || build(&batches),
            |sketch| keys.chunks(BATCH).for_each(|batch| sketch.insert_batch(batch).expect("keys of this size")),
            |sketch, ()| check_sketch(sketch),
        );
        rounds.case(
            format!("{name}, insert"),
            move || build(&singles),
            |sketch| keys.iter().for_each(|key| sketch.insert(key).expect("keys of this size")),
            |sketch, ()| check_sketch(sketch),
        );
    }
}

/// Keys of any length go in one by one: only keys of one size make a batch.
fn texts<'a>(rounds: &mut Rounds<'a>, keys: &'a Texts) {
    let builder = UclSketch::builder().memory("64KB").seed(1);
    let (config, _) = builder.clone().mode(MODES[1]).plan().expect("64KB are enough");
    let interval = SERIES_INTERVAL;
    rounds.case(
        "data plane, bare, insert_bytes",
        move || DataPlane::<16>::new(config).expect("the planner's shape is valid"),
        |plane| keys.iter().for_each(|key| plane.insert_bytes(key, 1, &mut |_: Report<'_>| {}).expect("weight 1")),
        |plane, ()| assert_eq!(plane.weight(), ITEMS as u64),
    );
    rounds.case(
        "data plane, reports counted, insert_bytes",
        move || shipped::<16>(config),
        move |(plane, sink)| {
            for (key, number) in keys.iter().zip(1u64..) {
                plane.insert_bytes(key, 1, sink).expect("weight 1");
                if number.is_multiple_of(interval) {
                    plane.cut(sink);
                }
            }
        },
        |both, ()| check_shipped(both),
    );
    for (mode, (how, execution)) in MODES.into_iter().flat_map(|mode| EXECUTIONS.map(|execution| (mode, execution))) {
        let builder = builder.clone().mode(mode).execution(execution);
        rounds.case(
            format!("UclSketch, {mode}{how}, insert"),
            move || build(&builder),
            |sketch| keys.iter().for_each(|key| sketch.insert(key).expect("short keys")),
            |sketch, ()| check_sketch(sketch),
        );
    }
}

fn main() {
    // `cargo test --benches` calls this too: one short round, so that the bench keeps compiling and
    // running.
    let count = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let numbers = numbers();
    let (tuples, strings) = (five_tuples(&numbers), Texts::new(&numbers));
    println!("{}\n", machine());

    let mut rounds = Rounds::new("4-byte keys");
    ucl_yardsticks::fixed(&mut rounds, &numbers);
    fixed(&mut rounds, &numbers);
    println!("{}", rounds.run(count, ITEMS));

    let mut rounds = Rounds::new("13-byte keys");
    ucl_yardsticks::fixed(&mut rounds, &tuples);
    fixed(&mut rounds, &tuples);
    println!("{}", rounds.run(count, ITEMS));

    let mut rounds = Rounds::new("keys of 10 to 40 bytes");
    ucl_yardsticks::texts(&mut rounds, &strings);
    texts(&mut rounds, &strings);
    println!("{}", rounds.run(count, ITEMS));
}
