//! Solves the system of the benchmarks, and prints what `bench/peers/solvers_scipy.py` prints for
//! the peers: `cargo run --release -p ucl-equations --example solve [atoms ...]`.

use std::time::{Duration, Instant};
use ucl_equations::{Columns, Error, Info, LeastSquaresOptions, MultiplicativeOptions, Workspace, em, lsmr, lsqr, omp};
use ucl_streams::SplitMix64;

const KEYS: usize = 15_000;
const WIDTH: u64 = 1024;

fn main() -> Result<(), Error> {
    let mut random = SplitMix64::new(1);
    let mut columns = Columns::ones(4 * WIDTH as usize, 4);
    for _ in 0..KEYS {
        columns.push(&[0, 1, 2, 3].map(|row| (row * WIDTH + random.below(WIDTH)) as u32));
    }
    let truth: Vec<f64> = (0..KEYS).map(|k| (1 + 20_000 / (k + 1)) as f64).collect();
    let mut y = vec![0.0; columns.counters()];
    columns.product(&truth, &mut y)?;

    let options = LeastSquaresOptions::default();
    report("lsqr", 7, |x| lsqr::lsqr(&columns, &y, &options, x))?;
    report("lsmr", 7, |x| lsmr::lsmr(&columns, &y, &options, x))?;
    let mut workspace = Workspace::default();
    report("em", 7, |x| em::em(&columns, &y, None, &MultiplicativeOptions::default(), &mut workspace, x))?;
    let asked: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    for &atoms in if asked.is_empty() { &[100, 300, 1500][..] } else { &asked } {
        let options = omp::Options { atoms: Some(atoms), tolerance: 0.0 };
        report(&format!("omp {atoms}"), 3, |x| omp::omp(&columns, &y, &options, x))?;
    }
    Ok(())
}

/// The best of several runs.
fn report(name: &str, runs: usize, mut solve: impl FnMut(&mut [f64]) -> Result<Info, Error>) -> Result<(), Error> {
    let mut x = vec![0.0; KEYS];
    let mut best = Duration::MAX;
    let mut iterations = 0;
    for _ in 0..runs {
        let begin = Instant::now();
        iterations = solve(&mut x)?.iterations;
        best = best.min(begin.elapsed());
    }
    let largest = x.iter().fold(0.0, |a: f64, &b| a.max(b));
    let ms = best.as_secs_f64() * 1e3;
    let sum: f64 = x.iter().sum();
    println!("{name:<12} {ms:10.2} ms  {iterations:5} iterations  sum {sum:.6}  max {largest:.6}");
    Ok(())
}
