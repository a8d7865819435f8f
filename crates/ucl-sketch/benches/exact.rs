//! Speed of mode exact by part: the device with its encoder, and the control plane that reads its
//! messages, beside yardsticks of other crates.
//!
//! `cargo bench -p ucl-sketch --bench exact [-- FILE]`, where FILE has keys of 13 bytes (unpacked).
//! 64KB, one thread, a cut every 64,000 items.

use ucl_control_plane::{ControlPlane, Settings};
use ucl_data_plane::Report;
use ucl_data_plane::mirrored::MirroredPlane;
use ucl_sketch::{Config, Station, UclSketch};
use ucl_wire::Encoder;
use ucl_yardsticks::{Rounds, five_tuples, machine, numbers};

const ROUNDS: usize = 15;
const INTERVAL: usize = 64_000;

/// Counts the keys, and hands out each message.
fn send<const N: usize>(config: Config, keys: &[[u8; N]], out: impl FnMut(&[u8])) -> MirroredPlane<N> {
    let mut plane = MirroredPlane::<N>::new(config).expect("the planner's shape is valid");
    let mut encoder = Encoder::new(0, config, out).expect("a valid configuration");
    for epoch in keys.chunks(INTERVAL) {
        plane.insert_batch(epoch, &mut encoder).expect("few items");
        plane.cut(&mut encoder);
    }
    plane
}

fn cases<'a, const N: usize>(rounds: &mut Rounds<'a>, keys: &'a [[u8; N]], messages: &'a [Vec<u8>]) {
    let (config, _) = UclSketch::builder().memory("64KB").key_bytes(N).seed(1).plan().expect("64KB are enough");
    let items = keys.len() as u64;
    rounds.case(
        "table alone, nothing sent",
        move || MirroredPlane::<N>::new(config).expect("the planner's shape is valid"),
        |plane| plane.insert_batch(keys, &mut |_: Report<'_>| {}).expect("few items"),
        move |plane, ()| assert_eq!(plane.weight(), items),
    );
    rounds.case(
        "device: table, encoder, cuts",
        || 0,
        move |bytes| send(config, keys, |message| *bytes += message.len()).weight(),
        move |bytes, weight| assert!(weight == items && bytes > 0),
    );
    rounds.case(
        "control plane, from messages",
        || Station::new(Settings::default()),
        |station| messages.iter().for_each(|message| assert!(station.receive(message).is_ok())),
        move |station, ()| assert_eq!(station.control().map(ControlPlane::weight), Some(items)),
    );
}

fn run<const N: usize>(title: &str, keys: &[[u8; N]], count: usize) {
    let (config, _) = UclSketch::builder().memory("64KB").key_bytes(N).seed(1).plan().expect("64KB are enough");
    let mut messages = Vec::new();
    send(config, keys, |message| messages.push(message.to_vec()));
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let mut rounds = Rounds::new(format!("{title}, {:.4} B/item", bytes as f64 / keys.len() as f64));
    ucl_yardsticks::fixed(&mut rounds, keys);
    cases(&mut rounds, keys, &messages);
    println!("{}", rounds.run(count, keys.len()));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls this too: one round, so that the bench keeps compiling.
    let count = if arguments.iter().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    println!("{}\n", machine());
    if let Some(file) = arguments.iter().find(|argument| !argument.starts_with("--")) {
        let bytes = std::fs::read(file).expect("the file can be read");
        return run(file, bytes.as_chunks::<13>().0, count);
    }
    let numbers = numbers();
    run("4-byte keys", &numbers, count);
    run("13-byte keys", &five_tuples(&numbers), count);
}
