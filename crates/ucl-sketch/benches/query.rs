//! Point queries with bounds, over the keys of the stream, beside the `datasketches` crate's
//! Count-Min.
//!
//! `cargo bench -p ucl-sketch --bench query`. 64KB, default settings, one query per item of the
//! stream.

use std::hint::black_box;

use datasketches::countmin::CountMinSketch;
use ucl_sketch::{DecoderKind, UclSketch};
use ucl_yardsticks::{ITEMS, Rounds, machine, numbers};

const ROUNDS: usize = 9;

fn main() {
    // `cargo test --benches` calls this too: one short round, so that the bench keeps compiling and
    // running.
    let count = if std::env::args().any(|argument| argument == "--bench") { ROUNDS } else { 1 };
    let keys = numbers();
    let mut sketch = UclSketch::builder()
        .decoder(DecoderKind::Delta)
        .memory("64KB")
        .key_bytes(4)
        .seed(1)
        .build()
        .expect("a valid sketch");
    sketch.insert_batch(&keys).expect("keys of 4 bytes");
    let view = sketch.query_view().expect("a sound sketch");
    let mut yardstick = CountMinSketch::<u32>::with_seed(4, 4096, 1).expect("a valid shape");
    keys.iter().for_each(|key| yardstick.update(key));
    // Every item asks for its key, so a key that occurs n times is answered n times.
    let mut exact = std::collections::HashMap::<[u8; 4], u64>::new();
    keys.iter().for_each(|&key| *exact.entry(key).or_default() += 1);
    let truth: u64 = exact.values().map(|n| n * n).sum();

    println!("{}\n", machine());
    let mut rounds = Rounds::new("queries of 4-byte keys");
    rounds.case(
        "datasketches 0.6, Count-Min 4x4096, estimate",
        || (),
        |()| keys.iter().map(|key| u64::from(black_box(yardstick.estimate(key)))).sum(),
        |(), sum: u64| assert!(sum >= truth, "Count-Min never underestimates"),
    );
    rounds.case(
        "QueryView, estimate with bounds",
        || (),
        |()| keys.iter().map(|key| black_box(view.estimate(key)).upper).sum(),
        |(), sum: u64| assert!(sum >= truth, "an upper bound never underestimates"),
    );
    println!("{}", rounds.run(count, ITEMS));
}
