//! Time of one training step and peak memory, for the case that `bench/peers/learned_pytorch.py`
//! measures too.
//!
//! ```text
//! cargo run --release -p ucl-learned --example training_step -- [keys] [threads] [steps]
//! python bench/peers/learned_pytorch.py [keys] [threads] [steps]
//! ```
//! Count-Min of 4 rows of 1024 counters, batch 32, the paper's network; 15,000 keys, one thread, 40
//! steps by default. One process per case, because peak memory is the process's.

use std::time::Instant;

use ucl_equations::Columns;
use ucl_learned::{Cancel, Config, CounterGrid, Problem, Snapshot, Solver, TrainBudget};

const SHAPE: CounterGrid = CounterGrid { rows: 4, width: 1024 };
const BATCH: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut argument = |default| arguments.next().unwrap_or(Ok(default));
    let (keys, threads, steps) = (argument(15_000)?, argument(1)?, argument(40)?);

    let (columns, frequencies) = stream(keys);
    let snapshots: Vec<Vec<f64>> = (1..=BATCH).map(|t| snapshot(&columns, &frequencies, t as f64)).collect();
    let window: Vec<Snapshot<'_>> =
        snapshots.iter().map(|counters| Snapshot { counters, interval_weight: 1000.0 }).collect();
    let hot: Vec<bool> = (0..keys).map(|k| k % 20 == 0).collect();
    let problem = Problem { columns: &columns, hot: &hot, window: &window, smallest_weight: 1.0 };

    let mut solver = Solver::new(SHAPE, Config::default(), 1)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut times = Vec::new();
    let mut losses = Vec::new();
    let report = pool.install(|| solver.train(&problem, TrainBudget::steps(steps), &Cancel::default()))?;
    for epoch in &report.epochs {
        times.push(epoch.time.as_secs_f64() * 1e3);
        losses.push(epoch.total);
    }
    times.sort_by(f64::total_cmp);
    assert!(losses.last() < losses.first(), "training must reduce the loss: {losses:?}");

    let encoded = solver.encode(&snapshots[BATCH - 1])?;
    let mut out = vec![0.0; keys];
    let mut decode = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        solver.decode(&encoded, &mut out)?;
        decode = decode.min(start.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "keys {keys}  threads {threads}  step {:.2} ms (best {:.2})  decode {decode:.3} ms  peak memory {}",
        times[times.len() / 2],
        times[0],
        peak_memory().map_or("unknown".into(), |kb| format!("{:.0} MB", kb / 1024.0)),
    );
    Ok(())
}

/// Columns of a Count-Min and Zipf frequencies, from a multiplicative hash: the data does not
/// matter, its shape does.
fn stream(keys: usize) -> (Columns, Vec<f64>) {
    let mut columns = Columns::ones(SHAPE.counters(), SHAPE.rows);
    for key in 0..keys as u64 {
        let index = |row: usize| {
            let hash = (key * 4 + row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (row * SHAPE.width) as u32 + ((u128::from(hash ^ hash >> 29) * SHAPE.width as u128) >> 64) as u32
        };
        columns.push(&std::array::from_fn::<u32, 4, _>(index));
    }
    (columns, (0..keys).map(|k| (keys as f64 / (k + 1) as f64).ceil()).collect())
}

/// The counters after `t` intervals.
fn snapshot(columns: &Columns, frequencies: &[f64], t: f64) -> Vec<f64> {
    let mut counters = vec![0.0; columns.counters()];
    for (entries, frequency) in columns.all_indices().chunks_exact(columns.degree()).zip(frequencies) {
        for &i in entries {
            counters[i as usize] += (frequency * t).floor();
        }
    }
    counters
}

/// The process's peak resident memory in KB, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}
