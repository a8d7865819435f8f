//! Training while the window slides and keys arrive.

use std::thread;
use std::time::Duration;

use ucl_equations::{ColumnId, Columns};
use ucl_learned::{
    Cancel, Config, Contents, CounterGrid, Keep, Problem, ProblemError, Snapshot, Solver, Stop, TrainBudget,
};

use crate::stream::Stream;

const SHAPE: CounterGrid = CounterGrid { rows: 3, width: 32 };

fn config() -> Config {
    Config { hidden: 16, neck: 8, bucket_length: 64, batch: 4, ..Config::default() }
}

fn solver() -> Solver {
    Solver::new(SHAPE, config(), 5).unwrap()
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let stream = Stream::zipf(SHAPE, 2000, 9, 1);
    let window = stream.window();
    for shared_buckets in [true, false] {
        let train = |threads| {
            let mut solver = Solver::new(SHAPE, Config { shared_buckets, batch: 32, ..config() }, 5).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| solver.train(&stream.problem(&window), TrainBudget::steps(6), &Cancel::default())).unwrap();
            solver.to_safetensors(Contents::Training)
        };
        let one = train(1);
        assert!(one == train(2) && one == train(5));
    }
}

#[test]
fn new_keys_add_and_reset_no_parameter() {
    let stream = Stream::zipf(SHAPE, 150, 8, 2);
    let window = stream.window();
    let mut solver = solver();
    let parameters = solver.parameters();
    // 60 keys are one bucket; 64 fill it; 150 are three.
    for keys in [60, 64, 65, 150] {
        let mut columns = Columns::ones(SHAPE.counters(), SHAPE.rows);
        for k in 0..keys {
            columns.push(stream.columns.indices(ColumnId(k)));
        }
        let problem = Problem { columns: &columns, hot: &stream.hot[..keys as usize], ..stream.problem(&window) };
        let before = solver.steps();
        let report = solver.train(&problem, TrainBudget::steps(5), &Cancel::default()).unwrap();
        assert_eq!((report.steps, report.stop), (5, Stop::Steps));
        assert_eq!(solver.steps(), before + 5);
        assert_eq!(solver.parameters(), parameters);
        // Keys beyond those trained on are decoded all the same.
        let mut x = vec![0.0; keys as usize + 100];
        solver.decode(&solver.encode(&stream.snapshots[7]).unwrap(), &mut x).unwrap();
        assert!(x.iter().all(|x| *x > 0.0 && x.is_finite()));
    }
}

#[test]
fn unshared_buckets_grow_and_answer_zero_until_trained() {
    let stream = Stream::zipf(SHAPE, 150, 8, 2);
    let window = stream.window();
    let mut solver = Solver::new(SHAPE, Config { shared_buckets: false, ..config() }, 5).unwrap();
    let encoded = solver.encode(&stream.snapshots[7]).unwrap();
    let mut x = vec![1.0; 150];
    solver.decode(&encoded, &mut x).unwrap();
    assert_eq!(x, vec![0.0; 150]);
    let before = solver.parameters();
    solver.train(&stream.problem(&window), TrainBudget::steps(2), &Cancel::default()).unwrap();
    assert!(solver.parameters() > before);
    solver.decode(&solver.encode(&stream.snapshots[7]).unwrap(), &mut x).unwrap();
    assert!(x.iter().all(|x| *x > 0.0));
}

#[test]
fn the_best_epoch_is_what_stays() {
    let stream = Stream::zipf(SHAPE, 100, 8, 3);
    let window = stream.window();
    let problem = stream.problem(&window);
    // So large a learning rate that the last epoch is not the best.
    let wild = Config { learning_rate: 0.3, ..config() };
    let train = |epochs, keep| {
        let mut solver = Solver::new(SHAPE, wild.clone(), 5).unwrap();
        let budget = TrainBudget { epochs, steps: usize::MAX, patience: 4, keep };
        let report = solver.train(&problem, budget, &Cancel::default()).unwrap();
        (report, solver)
    };
    let (report, best) = train(100, Keep::Best);
    let at = report.best.unwrap();
    assert_eq!(report.stop, Stop::Patience);
    assert_eq!(report.epochs.len(), at + 1 + 4);
    let (again, last) = train(at + 1, Keep::Last);
    assert_eq!(again.epochs.last().unwrap().losses, report.epochs[at].losses);
    assert_eq!(best.steps(), last.steps());
    let decode = |s: &Solver| {
        let mut x = vec![0.0; 100];
        s.decode(&s.encode(&stream.snapshots[7]).unwrap(), &mut x).unwrap();
        x
    };
    assert_eq!(decode(&best), decode(&last));
}

#[test]
fn cancelling_ends_training() {
    let stream = Stream::zipf(SHAPE, 100, 8, 4);
    let window = stream.window();
    let cancel = Cancel::default();
    let handle = cancel.clone();
    let stopper = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        handle.cancel();
    });
    let mut solver = solver();
    let report = solver.train(&stream.problem(&window), TrainBudget::steps(usize::MAX), &cancel).unwrap();
    stopper.join().unwrap();
    assert_eq!(report.stop, Stop::Cancelled);
    // A cancelled handle stays cancelled: nothing is trained at all.
    let report = solver.train(&stream.problem(&window), TrainBudget::steps(10), &cancel).unwrap();
    assert_eq!((report.stop, report.steps), (Stop::Cancelled, 0));
}

#[test]
fn nothing_to_train_is_said_and_empty_sketches_decode_to_zero() {
    let stream = Stream::zipf(SHAPE, 100, 2, 4);
    let zero = vec![0.0; SHAPE.counters()];
    let empty = [Snapshot { counters: &zero, interval_weight: 0.0 }];
    let mut solver = solver();
    let report = solver.train(&stream.problem(&empty), TrainBudget::steps(10), &Cancel::default()).unwrap();
    assert_eq!((report.stop, report.steps), (Stop::Nothing, 0));
    let columns = Columns::ones(SHAPE.counters(), SHAPE.rows);
    let window = stream.window();
    let none = Problem { columns: &columns, hot: &[], ..stream.problem(&window) };
    let report = solver.train(&none, TrainBudget::steps(10), &Cancel::default()).unwrap();
    assert_eq!(report.stop, Stop::Nothing);
    let mut x = vec![1.0; 100];
    solver.decode(&solver.encode(&zero).unwrap(), &mut x).unwrap();
    assert_eq!(x, vec![0.0; 100]);
}

#[test]
fn counters_beyond_any_measure_are_survived() {
    // Two rows that differ by 60 orders of magnitude overflow f32 after normalisation.
    let mut counters = vec![1.0; SHAPE.counters()];
    counters[0] = 1e60;
    let stream = Stream::zipf(SHAPE, 100, 2, 4);
    let window = [Snapshot { counters: &counters, interval_weight: 1.0 }];
    let mut solver = solver();
    let before = solver.to_safetensors(Contents::Training);
    let report = solver.train(&stream.problem(&window), TrainBudget::steps(3), &Cancel::default()).unwrap();
    assert_eq!(report.stop, Stop::Diverged);
    let after = Solver::from_safetensors(&solver.to_safetensors(Contents::Training)).unwrap();
    assert_eq!(after.steps(), Solver::from_safetensors(&before).unwrap().steps());
}

#[test]
fn what_does_not_fit_is_refused() {
    let solver = solver();
    assert_eq!(
        solver.encode(&[1.0; 5]).unwrap_err(),
        ProblemError::Counters { snapshot: 0, found: 5, expected: SHAPE.counters() }
    );
    let other = Solver::new(SHAPE, Config { hidden: 32, ..config() }, 1).unwrap();
    let encoded = other.encode(&vec![1.0; SHAPE.counters()]).unwrap();
    let error = solver.decode(&encoded, &mut [0.0; 4]).unwrap_err();
    assert_eq!(error.to_string(), "a feature of 32 values, but the network's has 16");
}

#[test]
fn batches_beyond_32_train_too() {
    let stream = Stream::zipf(SHAPE, 200, 70, 4);
    let window = stream.window();
    let mut solver = Solver::new(SHAPE, Config { batch: 64, ..config() }, 5).unwrap();
    let report = solver.train(&stream.problem(&window), TrainBudget::steps(60), &Cancel::default()).unwrap();
    assert_eq!((report.steps, report.epochs.len()), (60, 30));
    assert!(report.epochs[29].total < 0.5 * report.epochs[0].total);
}
