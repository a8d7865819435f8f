//! Fifty-one training steps against PyTorch (`tests/golden/make_trace.py`).

use ucl_equations::Columns;
use ucl_learned::{Cancel, Config, CounterGrid, Problem, Snapshot, Solver, TrainBudget};

const TRACE: &str = include_str!("../golden/trace.txt");

/// All records of one name, as numbers.
fn records(name: &str) -> Vec<Vec<f64>> {
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect();
    TRACE.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(numbers).collect()
}

/// The agreement asked for: f32 sums in another order, amplified by Adam over all the steps.
const TOLERANCE: f64 = 1e-4;

#[test]
fn training_follows_pytorch() {
    let shape = &records("shape")[0];
    let shape = CounterGrid { rows: shape[0] as usize, width: shape[1] as usize };
    let network: Vec<usize> = records("network")[0].iter().map(|&n| n as usize).collect();
    let [hidden, neck, bucket_length, batch, seed, interval] = network[..] else { panic!("{network:?}") };
    let mut columns = Columns::ones(shape.counters(), shape.rows);
    for column in records("column") {
        columns.push(&column.iter().map(|&i| i as u32).collect::<Vec<_>>());
    }
    let hot: Vec<bool> = records("hot")[0].iter().map(|&h| h == 1.0).collect();
    let snapshots = records("snapshot");
    let window: Vec<Snapshot<'_>> =
        snapshots.iter().map(|counters| Snapshot { counters, interval_weight: interval as f64 }).collect();
    let problem = Problem { columns: &columns, hot: &hot, window: &window, smallest_weight: 1.0 };

    let expected = records("epoch");
    let config = Config { hidden, neck, bucket_length, batch, ..Config::default() };
    let mut solver = Solver::new(shape, config, seed as u64).unwrap();
    let steps = expected.len() * snapshots.len().div_ceil(batch);
    assert!(steps > 50);
    let report = solver.train(&problem, TrainBudget::steps(steps), &Cancel::default()).unwrap();
    assert_eq!(report.epochs.len(), expected.len());
    for (epoch, (got, want)) in report.epochs.iter().zip(&expected).enumerate() {
        let got = [got.losses.measurement, got.losses.sparsity, got.losses.equivariant];
        for (term, (got, want)) in got.iter().zip(want).enumerate() {
            assert!((got / want - 1.0).abs() < TOLERANCE, "epoch {epoch}, term {term}: {got}, PyTorch {want}");
        }
    }
    let mut x = vec![0.0; columns.len()];
    solver.decode(&solver.encode(snapshots.last().unwrap()).unwrap(), &mut x).unwrap();
    for (k, (got, want)) in x.iter().zip(&records("decoded")[0]).enumerate() {
        assert!((got / want - 1.0).abs() < TOLERANCE, "key {k}: {got}, PyTorch {want}");
    }
}
