//! A network that has collapsed is found by its outputs, reported, and trained again.

use ucl_equations::{ColumnId, Columns};

use crate::{Cancel, Config, CounterGrid, Outputs, Problem, Snapshot, Solver, TrainBudget};

const SHAPE: CounterGrid = CounterGrid { rows: 3, width: 32 };
const KEYS: usize = 300;

/// Keys with counts by Zipf's law, and the counters after each of some equal intervals.
struct Stream {
    columns: Columns,
    counts: Vec<f64>,
    snapshots: Vec<Vec<f64>>,
}

fn stream() -> Stream {
    let mut columns = Columns::ones(SHAPE.counters(), SHAPE.rows);
    for key in 0..KEYS as u64 {
        let at = |row: usize| {
            let mixed = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17 * row as u32 + 5);
            (row * SHAPE.width) as u32 + (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 59) as u32
        };
        columns.push(&[at(0), at(1), at(2)]);
    }
    let counts: Vec<f64> = (0..KEYS).map(|key| (2_000.0 / (key + 1) as f64).ceil()).collect();
    let snapshot = |share: f64| {
        let mut counters = vec![0.0; SHAPE.counters()];
        for (key, count) in counts.iter().enumerate() {
            for &at in columns.indices(ColumnId(key as u32)) {
                counters[at as usize] += (count * share).ceil();
            }
        }
        counters
    };
    let snapshots = (1..=8).map(|part| snapshot(f64::from(part) / 8.0)).collect();
    Stream { columns, counts, snapshots }
}

fn config() -> Config {
    // A small network needs longer steps than the paper's.
    Config { hidden: 32, neck: 32, bucket_length: 64, batch: 4, learning_rate: 4e-3, ..Config::default() }
}

fn train(solver: &mut Solver, stream: &Stream, budget: TrainBudget) -> crate::TrainReport {
    let window: Vec<Snapshot<'_>> =
        stream.snapshots.iter().map(|counters| Snapshot { counters, interval_weight: 1_000.0 }).collect();
    let hot: Vec<bool> = (0..KEYS).map(|key| key < KEYS / 10).collect();
    let problem = Problem { columns: &stream.columns, hot: &hot, window: &window, smallest_weight: 1.0 };
    solver.train(&problem, budget, &Cancel::default()).unwrap()
}

/// Every output is 0, and so is every gradient: nothing can move it.
fn kill(solver: &mut Solver) {
    let bias = solver.layout.bucket.head[1].bias_range();
    let block = solver.layout.len(0);
    solver.parameters[block + bias.start..block + bias.end].fill(-200.0);
}

#[test]
fn a_dead_network_is_reported_and_trained_again() {
    let stream = stream();
    let mut solver = Solver::new(SHAPE, config(), 1).unwrap();
    kill(&mut solver);
    let budget = TrainBudget::whole(solver.config());
    let report = train(&mut solver, &stream, budget);
    assert!((1..=3).contains(&report.restarts), "{report:?}");
    let outputs = report.outputs.unwrap();
    assert!(!outputs.collapsed(), "{outputs:?}");
    // The second training is what a fresh network has: it tells the largest key from the rest.
    let mut x = vec![0.0; KEYS];
    solver.decode(&solver.encode(&stream.snapshots[7]).unwrap(), &mut x).unwrap();
    assert!(x[1..].iter().all(|rest| *rest < x[0]), "{x:?}");
}

#[test]
fn a_loss_that_wants_zeros_is_reported_after_all_attempts() {
    let stream = stream();
    // So much sparsity that the best network gives every key nothing: its loss is small, too.
    let mut solver = Solver::new(SHAPE, Config { lambda: 1e4, ..config() }, 1).unwrap();
    let budget = TrainBudget::whole(solver.config());
    let report = train(&mut solver, &stream, budget);
    assert_eq!(report.restarts, 3);
    assert!(report.outputs.unwrap().collapsed(), "{:?}", report.outputs);
}

#[test]
fn a_network_that_has_hardly_begun_has_not_collapsed() {
    let stream = stream();
    let mut solver = Solver::new(SHAPE, config(), 1).unwrap();
    kill(&mut solver);
    // Two steps an epoch, and a patience of thirty: it is judged from the sixtieth step on.
    for _ in 0..2 {
        let report = train(&mut solver, &stream, TrainBudget::steps(29));
        assert_eq!(report.restarts, 0);
        assert!(report.outputs.unwrap().collapsed());
    }
    assert_eq!(train(&mut solver, &stream, TrainBudget::steps(29)).restarts, 1);
}

#[test]
fn outputs_are_judged_by_what_they_add_up_to() {
    let stream = stream();
    let counters = &stream.snapshots[7];
    let of = |x: &[f64]| Outputs::of(&stream.columns, counters, x);
    let exact = of(&stream.counts);
    assert!((exact.mass - 1.0).abs() < 1e-9 && (exact.explained - 1.0).abs() < 1e-9, "{exact:?}");
    let mean = stream.counts.iter().sum::<f64>() / KEYS as f64;
    let equal = of(&vec![mean; KEYS]);
    assert!((equal.mass - 1.0).abs() < 1e-9 && equal.explained.abs() < 1e-9, "{equal:?}");
    let nothing = of(&vec![0.0; KEYS]);
    assert!(nothing.mass == 0.0 && nothing.explained < 0.0, "{nothing:?}");
    assert!(!exact.collapsed() && equal.collapsed() && nothing.collapsed());
    let empty = Outputs::of(&stream.columns, &vec![0.0; SHAPE.counters()], &vec![0.0; KEYS]);
    assert!(!empty.collapsed(), "nothing can be said of an empty sketch");
}
