//! Products and solvers on seeded Zipf systems. `cargo bench -p ucl-equations`; the peers measure the same systems.

use divan::Bencher;
use ucl_equations::{
    Columns, LeastSquaresOptions, MultiplicativeOptions, Precision, Rows, Workspace, em, lsmr, lsqr, map, omp, peeling,
    smart, sparse,
};

fn main() {
    divan::main();
}

/// SplitMix64: the peers generate the same numbers from it.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// A Count-Min system of 4 rows: columns, true counts (Zipf 1: key `k` has `1 + 20,000/(k+1)`), counters.
struct System {
    columns: Columns,
    y: Vec<f64>,
}

fn system(keys: usize, width: u32) -> System {
    let mut random = Random(1);
    let mut columns = Columns::ones(4 * width as usize, 4);
    for _ in 0..keys {
        let indices = [0, 1, 2, 3].map(|row| row * width + random.below(u64::from(width)) as u32);
        columns.push(&indices);
    }
    let x: Vec<f64> = (0..keys).map(|k| (1 + 20_000 / (k + 1)) as f64).collect();
    let mut y = vec![0.0; columns.counters()];
    columns.product(&x, &mut y).expect("shapes fit");
    System { columns, y }
}

/// Keys, and counters a row: the paper's shape, the narrow-counter shape, and a large one.
const SHAPES: [(usize, u32); 3] = [(15_000, 1024), (16_000, 9338), (200_000, 16_384)];

#[divan::bench(args = SHAPES)]
fn product(bencher: Bencher, (keys, width): (usize, u32)) {
    let System { columns, y } = system(keys, width);
    let x = vec![1.0; keys];
    let mut out = y.clone();
    bencher.bench_local(|| columns.product(&x, &mut out));
}

#[divan::bench(args = SHAPES)]
fn product_transposed(bencher: Bencher, (keys, width): (usize, u32)) {
    let System { columns, y } = system(keys, width);
    let mut out = vec![0.0; keys];
    bencher.bench_local(|| columns.transposed_product(&y, &mut out));
}

fn multiplicative(bencher: Bencher, (keys, width): (usize, u32), precision: Precision, geometric: bool) {
    let System { columns, y } = system(keys, width);
    let options = MultiplicativeOptions { precision, ..Default::default() };
    let mut workspace = Workspace::default();
    let mut out = vec![0.0; keys];
    let solve = if geometric { smart::smart } else { em::em };
    bencher.bench_local(|| solve(&columns, &y, None, &options, &mut workspace, &mut out));
}

#[divan::bench(args = SHAPES)]
fn em_100_single(bencher: Bencher, shape: (usize, u32)) {
    multiplicative(bencher, shape, Precision::Single, false);
}

#[divan::bench(args = SHAPES)]
fn em_100_double(bencher: Bencher, shape: (usize, u32)) {
    multiplicative(bencher, shape, Precision::Double, false);
}

#[divan::bench(args = SHAPES)]
fn smart_100_single(bencher: Bencher, shape: (usize, u32)) {
    multiplicative(bencher, shape, Precision::Single, true);
}

#[divan::bench(args = SHAPES)]
fn peel(bencher: Bencher, (keys, width): (usize, u32)) {
    let System { columns, y } = system(keys, width);
    let y: Vec<i64> = y.iter().map(|&y| y as i64).collect();
    bencher.bench_local(|| peeling::peel(&columns, None, &y));
}

#[divan::bench(args = SHAPES)]
fn map_closed_form(bencher: Bencher, (keys, width): (usize, u32)) {
    let System { columns, y } = system(keys, width);
    let mut out = vec![0.0; keys];
    let rows = Rows { rows: 4, width: width as usize };
    bencher.bench_local(|| map::map(&columns, rows, &y, &mut out));
}

/// The peers' system, with the tolerances that SciPy has by default.
const PAPER: (usize, u32) = SHAPES[0];

#[divan::bench]
fn lsqr_default(bencher: Bencher) {
    let System { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    bencher.bench_local(|| lsqr::lsqr(&columns, &y, &LeastSquaresOptions::default(), &mut out));
}

#[divan::bench]
fn lsmr_default(bencher: Bencher) {
    let System { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    bencher.bench_local(|| lsmr::lsmr(&columns, &y, &LeastSquaresOptions::default(), &mut out));
}

#[divan::bench(args = [100, 300, 1500], max_time = 5)]
fn omp_atoms(bencher: Bencher, atoms: usize) {
    let System { columns, y } = system(PAPER.0, PAPER.1);
    let mut out = vec![0.0; PAPER.0];
    let options = omp::Options { atoms: Some(atoms), tolerance: 0.0 };
    bencher.bench_local(|| omp::omp(&columns, &y, &options, &mut out));
}

/// Keys, counters a row, and distinct keys of an epoch.
const EPOCHS: [(usize, u32, usize); 6] = [
    (16_000, 9_338, 500),
    (16_000, 9_338, 5_000),
    (100_000, 12_000, 500),
    (100_000, 12_000, 2_500),
    (100_000, 12_000, 10_000),
    (1_000_000, 60_000, 10_000),
];

/// Candidates of an epoch: all columns, or those of the touched counters. Building the index is once a block of 16 epochs.
mod candidates {
    use super::*;

    fn epoch((keys, width, items): (usize, u32, usize)) -> (Columns, sparse::Touched) {
        let System { columns, .. } = system(keys, width);
        let mut random = Random(2);
        let mut x = vec![0.0; keys];
        (0..items).for_each(|_| x[random.below(keys as u64) as usize] += 1.0);
        let mut y = vec![0.0; columns.counters()];
        columns.product(&x, &mut y).expect("shapes fit");
        let mut touched = sparse::Touched::default();
        touched.refill(&y.iter().map(|&y| y as i64).collect::<Vec<_>>()).expect("no negative counters");
        (columns, touched)
    }

    #[divan::bench(args = EPOCHS)]
    fn scan(bencher: Bencher, case: (usize, u32, usize)) {
        let (columns, touched) = epoch(case);
        let mut out = Vec::new();
        bencher.bench_local(|| {
            out.clear();
            touched.scan(&columns, 4, columns.len(), &mut out);
        });
    }

    #[divan::bench(args = EPOCHS)]
    fn index(bencher: Bencher, case: (usize, u32, usize)) {
        let (columns, touched) = epoch(case);
        let index = sparse::ByCounter::new(&columns);
        let mut out = Vec::new();
        bencher.bench_local(|| {
            out.clear();
            index.find(&columns, 4, columns.len(), &touched, &mut out);
        });
    }

    #[divan::bench(args = EPOCHS)]
    fn build_index(bencher: Bencher, case: (usize, u32, usize)) {
        let (columns, _) = epoch(case);
        bencher.bench_local(|| sparse::ByCounter::new(&columns));
    }
}
