//! `ucl count FILE` against an exact count of the same file: whole processes, from their start to
//! their end.
//!
//! `cargo bench -p ucl-cli`. 2M items of Zipf(1.1) over 100,000 keys, as raw records of 4 bytes and
//! as text, one number a line. The exact count reads the file at once into a `HashMap` with a fast
//! hasher and prints its 20 most frequent keys, and is this program, started again. Rounds are
//! interleaved and the fastest of each compared: what disturbs a round only ever makes it slower.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::hash::Hash;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use ucl_streams::ZipfKeys;

const ITEMS: usize = 2_000_000;
const KEYS: u64 = 100_000;
const ROUNDS: usize = 15;

fn main() {
    if let [_, exact, format, file] = &env::args().collect::<Vec<_>>()[..]
        && exact == "exact"
    {
        return count_exactly(format, file);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys: Vec<[u8; 4]> = ZipfKeys::new(1.1, KEYS, 1).take(ITEMS).collect();
    let text = keys.iter().fold(String::new(), |mut text, &key| {
        writeln!(text, "{}", u32::from_le_bytes(key)).expect("room");
        text
    });
    for (format, content) in [("records:4", keys.as_flattened()), ("lines", text.as_bytes())] {
        let file = folder.path().join("stream");
        fs::write(&file, content).expect("room for the stream");
        compare(format, &file);
    }
}

fn compare(format: &str, file: &Path) {
    let this = env::current_exe().expect("this program has a path");
    let mut exact = Command::new(this);
    exact.args(["exact", format]).arg(file);
    let mut ucl = Command::new(env!("CARGO_BIN_EXE_ucl"));
    ucl.args(["count", "--seed", "1", "--format", format]).arg(file);
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        let [one, other] = [&mut exact, &mut ucl].map(|command| {
            let start = Instant::now();
            let output = command.output().expect("it can be started");
            (start.elapsed(), most_frequent(&output))
        });
        assert_eq!(one.1, other.1, "both name the same key first, with the same count");
        best = [best[0].min(one.0), best[1].min(other.0)];
    }
    let ms = best.map(|time| time.as_secs_f64() * 1e3);
    println!("{format:<10} exact {:6.1} ms   ucl count {:6.1} ms   {:.2} times", ms[0], ms[1], ms[1] / ms[0]);
}

/// The first key of an answer, with its count.
fn most_frequent(output: &Output) -> (String, u64) {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find(|line| line.trim_start().starts_with("1 ")).expect("a first key");
    let [_, key, count, ..] = row.split_whitespace().collect::<Vec<_>>()[..] else { panic!("no row: {row}") };
    (key.to_owned(), count.replace(',', "").parse().expect("a count"))
}

fn count_exactly(format: &str, file: &str) {
    let content = fs::read(file).expect("a readable file");
    if format == "lines" {
        let mut start = 0;
        let lines =
            memchr::memchr_iter(b'\n', &content).map(|end| &content[std::mem::replace(&mut start, end + 1)..end]);
        print_top(lines, |line| String::from_utf8_lossy(line).into_owned());
    } else {
        print_top(content.as_chunks::<4>().0.iter().copied(), |key| {
            key.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
        });
    }
}

fn print_top<K: Copy + Eq + Hash>(keys: impl Iterator<Item = K>, show: impl Fn(K) -> String) {
    let mut counts = HashMap::<K, u64, FixedState>::default();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    let mut all: Vec<(K, u64)> = counts.into_iter().collect();
    let top = 20.min(all.len());
    if top < all.len() {
        all.select_nth_unstable_by_key(top, |&(_, count)| Reverse(count));
    }
    all[..top].sort_unstable_by_key(|&(_, count)| Reverse(count));
    for (rank, &(key, count)) in (1..).zip(&all[..top]) {
        println!("{rank} {} {count}", show(key));
    }
}
