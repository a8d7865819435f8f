//! Products and solvers on seeded Zipf systems. `cargo bench -p ucl-equations`; the peers measure
//! the same systems.

use divan::Bencher;
use ucl_equations::{
    Columns, LeastSquaresOptions, MultiplicativeOptions, Precision, Rows, Workspace, em, lsmr, lsqr, map, omp, peeling,
};
use ucl_streams::SplitMix64;

fn main() {
    divan::main();
}

/// A Count-Min system of 4 rows: columns, true counts (Zipf 1: key `k` has `1 + 20,000/(k+1)`),
/// counters. The peers draw the same numbers.
struct Case {
    columns: Columns,
    y: Vec<f64>,
}

fn system(keys: usize, width: u32) -> Case {
    let mut random = SplitMix64::new(1);
    let mut columns = Columns::ones(4 * width as usize, 4);
    for _ in 0..keys {
        let indices = [0, 1, 2, 3].map(|row| row * width + random.below(u64::from(width)) as u32);
        columns.push(&indices);
    }
    let x: Vec<f64> = (0..keys).map(|k| (1 + 20_000 / (k + 1)) as f64).collect();
    let mut y = vec![0.0; columns.counters()];
    columns.product(&x, &mut y).expect("shapes fit");
    Case { columns, y }
}

/// Keys, and counters a row: the paper's shape, the narrow-counter shape, and a large one.
const SHAPES: [(usize, u32); 3] = [(15_000, 1024), (16_000, 9338), (200_000, 16_384)];

#[divan::bench(args = SHAPES)]
fn product(bencher: Bencher, (keys, width): (usize, u32)) {
    let Case { columns, y } = system(keys, width);
    let x = vec![1.0; keys];
    let mut out = y.clone();
    bencher.bench_local(|| columns.product(&x, &mut out));
}

#[divan::bench(args = SHAPES)]
fn product_transposed(bencher: Bencher, (keys, width): (usize, u32)) {
    let Case { columns, y } = system(keys, width);
    let mut out = vec![0.0; keys];
    bencher.bench_local(|| columns.transposed_product(&y, &mut out));
}

fn em_100(bencher: Bencher, (keys, width): (usize, u32), precision: Precision) {
    let Case { columns, y } = system(keys, width);
    let options = MultiplicativeOptions { precision, ..Default::default() };
    let mut workspace = Workspace::default();
    let mut out = vec![0.0; keys];
    bencher.bench_local(|| em::em(&columns, &y, None, &options, &mut workspace, &mut out));
}

#[divan::bench(args = SHAPES)]
fn em_100_single(bencher: Bencher, shape: (usize, u32)) {
    em_100(bencher, shape, Precision::Single);
}

#[divan::bench(args = SHAPES)]
fn em_100_double(bencher: Bencher, shape: (usize, u32)) {
    em_100(bencher, shape, Precision::Double);
}

#[divan::bench(args = SHAPES)]
fn peel(bencher: Bencher, (keys, width): (usize, u32)) {
    let Case { columns, y } = system(keys, width);
    let y: Vec<i64> = y.iter().map(|&y| y as i64).collect();
    bencher.bench_local(|| peeling::peel(&columns, None, &y));
}

#[divan::bench(args = SHAPES)]
fn map_closed_form(bencher: Bencher, (keys, width): (usize, u32)) {
    let Case { columns, y } = system(keys, width);
    let mut out = vec![0.0; keys];
    let rows = Rows { rows: 4, width: width as usize };
    bencher.bench_local(|| map::map(&columns, rows, &y, &mut out));
}

/// The peers' system, with the tolerances that SciPy has by default.
const PAPER: (usize, u32) = SHAPES[0];

#[divan::bench]
fn lsqr_default(bencher: Bencher) {
    let Case { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    bencher.bench_local(|| lsqr::lsqr(&columns, &y, &LeastSquaresOptions::default(), &mut out));
}

#[divan::bench]
fn lsmr_default(bencher: Bencher) {
    let Case { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    bencher.bench_local(|| lsmr::lsmr(&columns, &y, &LeastSquaresOptions::default(), &mut out));
}

#[divan::bench(args = [100, 300, 1500], max_time = 5)]
fn omp_atoms(bencher: Bencher, atoms: usize) {
    let Case { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    let options = omp::Options { atoms: Some(atoms), tolerance: 0.0 };
    bencher.bench_local(|| omp::omp(&columns, &y, &options, &mut out));
}

/// Keys, counters a row, and items of an epoch.
const EPOCHS: [(usize, u32, usize); 6] = [
    (16_000, 9_338, 500),
    (16_000, 9_338, 5_000),
    (100_000, 12_000, 500),
    (100_000, 12_000, 2_500),
    (100_000, 12_000, 10_000),
    (1_000_000, 60_000, 10_000),
];

/// What becomes of a block of epochs before EM.
mod block {
    use super::*;
    use ucl_equations::ColumnId;
    use ucl_equations::peeling::Peeler;
    use ucl_equations::sparse::{Candidates, Shrinker, Touched};

    struct Epoch {
        y: Vec<i64>,
        touched: Touched,
    }

    fn block((keys, width, items): (usize, u32, usize)) -> (Columns, Vec<Epoch>) {
        let Case { columns, .. } = system(keys, width);
        let mut random = SplitMix64::new(2);
        let mut epoch = || {
            let mut y = vec![0; columns.counters()];
            for _ in 0..items {
                let key = ColumnId(random.below(keys as u64) as u32);
                columns.indices(key).iter().for_each(|&at| y[at as usize] += 1);
            }
            let word = |y: &[i64]| (0..).zip(y).fold(0, |word, (bit, &y)| word | u64::from(y > 0) << bit);
            Epoch { touched: Touched::new(y.chunks(64).map(word).collect()), y }
        };
        let epochs = (0..16).map(|_| epoch()).collect();
        (columns, epochs)
    }

    fn touched(epochs: &[Epoch]) -> Vec<Touched> {
        epochs.iter().map(|epoch| epoch.touched.clone()).collect()
    }

    /// Of all epochs.
    #[divan::bench(args = EPOCHS)]
    fn candidates(bencher: Bencher, case: (usize, u32, usize)) {
        let (columns, epochs) = block(case);
        let touched = touched(&epochs);
        bencher.bench_local(|| {
            let [candidates, _] = Candidates::new(&columns, 3, &touched, &[0]);
            (0..touched.len()).map(|epoch| candidates.of_epoch(epoch, columns.len()).len()).sum::<usize>()
        });
    }

    /// One epoch shrunk to its candidates, and peeled.
    #[divan::bench(args = EPOCHS)]
    fn epoch(bencher: Bencher, case: (usize, u32, usize)) {
        let (columns, epochs) = block(case);
        let [candidates, _] = Candidates::new(&columns, 3, &touched(&epochs), &[]);
        let ids = candidates.of_epoch(0, columns.len());
        let (mut shrinker, mut peeler) = (Shrinker::default(), Peeler::default());
        bencher.bench_local(|| {
            let shrunk = shrinker.shrink(&columns, 4, &epochs[0].touched, ids);
            let y: Vec<i64> = shrunk.counters.iter().map(|&at| epochs[0].y[at as usize]).collect();
            peeler.peel(&shrunk.columns, None, &y).expect("a sound system").unsolved().len()
        });
    }
}
