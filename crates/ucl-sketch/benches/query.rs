//! Point queries with bounds, over the keys of the stream, against the `datasketches` crate's Count-Min, as a ratio within
//! one run. `cargo bench -p ucl-sketch`. 2M Zipf(1.1) items over 100K keys, 64KB; rounds are interleaved and the fastest of
//! each compared.

use std::hint::black_box;
use std::time::Instant;

use datasketches::countmin::CountMinSketch;
use ucl_sketch::UclSketch;
use ucl_streams::ZipfKeys;

const ITEMS: usize = 2_000_000;
const ROUNDS: usize = 9;

fn main() {
    // `cargo test --benches` calls this too: one short round, so that the bench keeps compiling and running.
    let rounds = if std::env::args().any(|a| a == "--bench") { ROUNDS } else { 1 };
    let keys: Vec<[u8; 4]> = ZipfKeys::new(1.1, 100_000, 7).take(ITEMS).collect();
    let mut sketch = UclSketch::builder().memory("64KB").key_bytes(4).seed(1).build().expect("a valid sketch");
    sketch.insert_batch(&keys).expect("keys of 4 bytes");
    let view = sketch.query_view().expect("a sound sketch");
    let mut yardstick = CountMinSketch::<u32>::with_seed(4, 4096, 1).expect("a valid shape");
    keys.iter().for_each(|key| yardstick.update(key));

    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..rounds {
        let start = Instant::now();
        let sum: u64 = keys.iter().map(|key| u64::from(black_box(yardstick.estimate(key)))).sum();
        fastest[0] = fastest[0].min(start.elapsed().as_secs_f64());
        assert!(sum >= ITEMS as u64, "Count-Min never underestimates");
        let start = Instant::now();
        let sum: u64 = keys.iter().map(|key| black_box(view.estimate(key)).upper).sum();
        fastest[1] = fastest[1].min(start.elapsed().as_secs_f64());
        assert!(sum >= ITEMS as u64, "an upper bound is one");
    }
    for (name, time) in
        ["datasketches Count-Min 4x4096, estimate", "QueryView::estimate, with bounds"].iter().zip(fastest)
    {
        println!("{name:<45} {:7.1} M queries/s   {:5.2}x", ITEMS as f64 / time / 1e6, fastest[0] / time);
    }
}
