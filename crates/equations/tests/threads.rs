//! The same bits in pools of 1, 2 and 3 threads, on systems large enough to be cut up.

use ucl_equations::{Columns, LeastSquaresOptions, MultiplicativeOptions, Precision, Workspace, em, lsmr, lsqr, omp};
use ucl_streams::SplitMix64;

const KEYS: u32 = 100_000;
const WIDTH: u32 = 4096;

fn system() -> (Columns, Vec<f64>) {
    let mut columns = Columns::ones(4 * WIDTH as usize, 4);
    let mut random = SplitMix64::new(1);
    for _ in 0..KEYS {
        columns.push(&[0, 1, 2, 3].map(|row| row * WIDTH + random.below(WIDTH.into()) as u32));
    }
    let x: Vec<f64> = (0..KEYS).map(|k| f64::from(1 + 30_000 / (k + 1))).collect();
    let mut y = vec![0.0; columns.counters()];
    columns.product(&x, &mut y).expect("shapes fit");
    (columns, y)
}

/// Runs `solve` in pools of 1, 2 and 3 threads.
fn same_in_every_pool(what: &str, solve: impl Fn(&mut [f64]) + Sync) {
    let results = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let mut out = vec![0.0; KEYS as usize];
        pool.install(|| solve(&mut out));
        out.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
    });
    assert!(results[0].iter().any(|&bits| bits != 0), "{what} did nothing");
    assert!(results[0] == results[1] && results[0] == results[2], "{what} depends on the threads");
}

#[test]
fn results_do_not_depend_on_the_threads() {
    let (columns, y) = system();
    let thirds: Vec<f64> = (0..KEYS).map(|k| f64::from(k) / 3.0).collect();
    same_in_every_pool("A x", |out| {
        let mut product = vec![0.0; columns.counters()];
        columns.product(&thirds, &mut product).expect("shapes fit");
        out[..product.len()].copy_from_slice(&product);
    });
    same_in_every_pool("Aᵀ y", |out| columns.transposed_product(&y, out).expect("shapes fit"));
    for precision in [Precision::Single, Precision::Double] {
        let options = MultiplicativeOptions { iterations: 5, precision, tolerance: Some(0.0) };
        same_in_every_pool("EM", |out| {
            em::em(&columns, &y, None, &options, &mut Workspace::default(), out).expect("valid input");
        });
    }
    let options = LeastSquaresOptions { iterations: Some(5), ..Default::default() };
    same_in_every_pool("LSQR", |out| {
        lsqr::lsqr(&columns, &y, &options, out).expect("valid input");
    });
    same_in_every_pool("LSMR", |out| {
        lsmr::lsmr(&columns, &y, &options, out).expect("valid input");
    });
    let options = omp::Options { atoms: Some(5), tolerance: 0.0 };
    same_in_every_pool("OMP", |out| {
        omp::omp(&columns, &y, &options, out).expect("valid input");
    });
}
