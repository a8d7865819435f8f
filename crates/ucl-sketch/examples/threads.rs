//! Several threads, each with a sketch of its own, and one answer:
//! `cargo run --release -p ucl-sketch --example threads`

use std::thread;

use ucl_sketch::{InsertError, UclSketch};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    // Sketches that are to be merged are built alike, with the same seed.
    let builder = UclSketch::builder().memory("32KB").keys::<u64>().seed(7);
    let count = |worker: u64| {
        let mut sketch = builder.clone().build()?;
        sketch.insert_all((0..250_000).map(|i| i * (worker + 1) % 3_000))?;
        Ok::<_, Failure>(sketch)
    };
    let sketches: Vec<UclSketch<u64>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || count(worker))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect::<Result<_, _>>()
    })?;
    let mut sketches = sketches.into_iter();
    let mut all = sketches.next().ok_or("there are four workers")?;
    for sketch in sketches {
        all.merge(sketch)?;
    }
    println!("{} items, of which the most frequent is {}", all.items(), all.view().top(1)[0]);
    let refused: Result<(), InsertError> = all.insert_weighted(1, 0);
    println!("a weight of 0: {}", refused.expect_err("0 is no weight"));
    Ok(())
}
