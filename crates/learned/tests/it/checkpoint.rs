//! Checkpoints: training resumes as if it had not stopped, and what does not fit is named.

use ucl_learned::{Cancel, CheckpointError, Config, Contents, CounterGrid, Solver, TrainBudget};

use crate::stream::Stream;

const SHAPE: CounterGrid = CounterGrid { rows: 2, width: 32 };

fn config() -> Config {
    Config { hidden: 16, neck: 8, bucket_length: 32, batch: 4, ..Config::default() }
}

fn message(error: CheckpointError) -> String {
    error.to_string()
}

#[test]
fn training_resumes_identically() {
    let stream = Stream::zipf(SHAPE, 100, 10, 1);
    let window = stream.window();
    for shared_buckets in [true, false] {
        let train = |solver: &mut Solver| {
            solver.train(&stream.problem(&window), TrainBudget::steps(7), &Cancel::default()).unwrap()
        };
        let mut whole = Solver::new(SHAPE, Config { shared_buckets, ..config() }, 3).unwrap();
        train(&mut whole);
        let mut resumed = Solver::from_safetensors(&whole.to_safetensors(Contents::Training)).unwrap();
        let (a, b) = (train(&mut whole), train(&mut resumed));
        assert_eq!(a.epochs.last().unwrap().losses, b.epochs.last().unwrap().losses);
        assert_eq!(whole.to_safetensors(Contents::Training), resumed.to_safetensors(Contents::Training));

        // Weights alone decode the same, but the optimiser starts afresh.
        let light = whole.to_safetensors(Contents::Weights);
        assert!(light.len() * 2 < whole.to_safetensors(Contents::Training).len());
        let light = Solver::from_safetensors(&light).unwrap();
        assert_eq!((light.steps(), light.parameters()), (0, whole.parameters()));
        let (mut x, mut again) = ([0.0; 100], [0.0; 100]);
        whole.decode(&whole.encode(&stream.snapshots[9]).unwrap(), &mut x).unwrap();
        light.decode(&light.encode(&stream.snapshots[9]).unwrap(), &mut again).unwrap();
        assert_eq!(x, again);
    }
}

#[test]
fn every_setting_survives() {
    let odd = Config {
        lambda: 0.3,
        equivariant: false,
        raised_share: 0.07,
        learning_rate: 3e-4,
        epochs: 17,
        patience: 3,
        ..config()
    };
    let solver = Solver::new(SHAPE, odd.clone(), 1).unwrap();
    let again = Solver::from_safetensors(&solver.to_safetensors(Contents::Weights)).unwrap();
    assert_eq!((again.config(), again.shape()), (&odd, SHAPE));
}

#[test]
fn a_misfit_names_every_tensor_and_both_shapes() {
    let file = Solver::new(SHAPE, config(), 1).unwrap().to_safetensors(Contents::Weights);
    let mut other = Solver::new(CounterGrid { rows: 2, width: 48 }, config(), 1).unwrap();
    let before = other.to_safetensors(Contents::Training);
    let text = message(other.load(&file).unwrap_err());
    assert_eq!(text, "checkpoint does not fit the network:\n  row.0.weight: is F32 [16, 32], expected F32 [16, 48]");
    assert_eq!(other.to_safetensors(Contents::Training), before, "a failed load changes nothing");

    let mut unshared = Solver::new(SHAPE, Config { shared_buckets: false, ..config() }, 1).unwrap();
    let text = message(unshared.load(&file).unwrap_err());
    assert!(text.contains("head.0.bias: not a tensor of this network"), "{text}");
    let empty = unshared.to_safetensors(Contents::Weights);
    let text = message(Solver::new(SHAPE, config(), 1).unwrap().load(&empty).unwrap_err());
    assert!(text.contains("embed.0.weight: missing, expected F32 [8, 16]"), "{text}");
}

#[test]
fn rubbish_is_refused_without_a_panic() {
    let file = Solver::new(SHAPE, config(), 1).unwrap().to_safetensors(Contents::Training);
    assert!(matches!(Solver::from_safetensors(&[]), Err(CheckpointError::Format(_))));
    for cut in [7, 8, 100, file.len() / 2, file.len() - 1] {
        assert!(Solver::from_safetensors(&file[..cut]).is_err());
    }
    // Flipped header bytes: whatever comes of it, it is no panic and no gigantic allocation.
    for at in 0..file.len().min(2600) {
        let mut bytes = file.clone();
        bytes[at] ^= 0x11;
        let _ = Solver::from_safetensors(&bytes);
    }
    // A weight that is no number would poison every answer.
    let mut bytes = file.clone();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = Solver::from_safetensors(&bytes).map(|_| ()).unwrap_err();
    assert!(message(error).contains("is NaN"));
}

#[test]
fn random_state_can_be_saved_and_restored() {
    let stream = Stream::zipf(SHAPE, 100, 10, 1);
    let window = stream.window();
    let mut a = Solver::new(SHAPE, config(), 3).unwrap();
    let mut b = a.clone();
    assert!(!b.set_random_state([0; 4]));
    assert!(b.set_random_state([1, 2, 3, 4]));
    assert_ne!(a.random_state(), b.random_state());
    assert!(b.set_random_state(a.random_state()));
    let train = |solver: &mut Solver| {
        let report = solver.train(&stream.problem(&window), TrainBudget::steps(3), &Cancel::default()).unwrap();
        report.epochs[0].losses
    };
    assert_eq!(train(&mut a), train(&mut b));
}
