use ucl_equations::Columns;

use super::reference::{Reference, Tensors};
use crate::config::{Config, CounterGrid};
use crate::loss::{Context, Workspace, add_gradient};
use crate::prepared::{PreparedColumns, Sample, normalise_window};
use crate::problem::{Problem, Snapshot};
use crate::rng::Rng;
use crate::solver::Solver;
use crate::training::Losses;

enum Kind {
    CountMin,
    CountSketch,
    /// One row, three hashes, any coefficients.
    Fractional,
}

struct Case {
    solver: Solver,
    columns: Columns,
    hot: Vec<bool>,
    samples: Vec<Sample>,
}

/// A small random problem in which buckets are partly filled and keys collide.
fn case(kind: Kind, config: Config, samples: usize, seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let keys = 41;
    let (shape, mut columns) = match kind {
        Kind::CountMin => (CounterGrid { rows: 3, width: 8 }, Columns::ones(24, 3)),
        Kind::CountSketch => (CounterGrid { rows: 3, width: 8 }, Columns::signed(24, 3)),
        Kind::Fractional => (CounterGrid { rows: 1, width: 20 }, Columns::weighted(20, 3)),
    };
    for _ in 0..keys {
        let indices: [u32; 3] = std::array::from_fn(|r| (r % shape.rows * shape.width + rng.below(shape.width)) as u32);
        match kind {
            Kind::CountMin => columns.push(&indices),
            Kind::CountSketch => columns.push_signed(&indices, &indices.map(|_| 1 - 2 * (rng.below(2) as i8))),
            Kind::Fractional => columns.push_weighted(&indices, &indices.map(|_| 1.0 + rng.symmetric(0.5))),
        };
    }
    let counters: Vec<Vec<f64>> =
        (0..samples).map(|_| (0..shape.counters()).map(|_| 5.0 + f64::from(rng.symmetric(4.0))).collect()).collect();
    let window: Vec<Snapshot<'_>> =
        counters.iter().map(|counters| Snapshot { counters, interval_weight: 3.0 }).collect();
    let hot: Vec<bool> = (0..keys).map(|k| k % 4 == 0).collect();
    let problem = Problem { columns: &columns, hot: &hot, window: &window, smallest_weight: 0.5 };
    problem.validate(shape).unwrap();
    let mut solver = Solver::new(shape, config, seed).unwrap();
    solver.grow(keys);
    let samples = normalise_window(shape, &problem);
    Case { solver, columns, hot, samples }
}

fn config() -> Config {
    Config { hidden: 8, neck: 6, bucket_length: 10, raised_share: 0.3, ..Config::default() }
}

impl Case {
    /// Loss and gradient as training computes them, and the generator's state before.
    fn gradient<const LANES: usize>(&self, parts: &[&[Sample]]) -> (Losses, Vec<f32>) {
        let Solver { shape, config, layout, parameters, rng, codes, .. } = &self.solver;
        let system = PreparedColumns::new(*shape, &self.columns, &self.hot);
        let context = Context { shape: *shape, config, layout, system: &system, codes };
        let mut work = Workspace::<LANES>::new(&context);
        let mut gradients = vec![0.0; parameters.len()];
        let mut losses = Losses::default();
        let mut rng = rng.clone();
        for part in parts {
            let part: Vec<&Sample> = part.iter().collect();
            let batch = self.samples.len();
            let add = add_gradient(&context, parameters, &part, batch, &mut rng, &mut work, &mut gradients);
            losses.add(&add, 1.0);
        }
        (losses, gradients)
    }

    fn check<const LANES: usize>(&self) {
        let (losses, gradients) = self.gradient::<LANES>(&[&self.samples]);
        let Solver { shape, config, layout, parameters, rng, .. } = &self.solver;
        let system = PreparedColumns::new(*shape, &self.columns, &self.hot);
        let lambda = f64::from(config.lambda);
        let reference = Reference { layout, system: &system, rows: shape.rows, lambda };
        let places = layout.tensors(layout.blocks_in(parameters.len()));
        let mut tensors: Tensors = places
            .iter()
            .map(|(name, _, range)| (name.clone(), parameters[range.clone()].iter().map(|&p| f64::from(p)).collect()))
            .collect();

        let mut raised = Vec::new();
        system.draw_raised(config.raised_share, self.samples.len(), &mut rng.clone(), &mut raised);
        let target = |(s, sample): (usize, &Sample)| {
            let y: Vec<f64> = sample.counters.iter().map(|&c| f64::from(c)).collect();
            let x = reference.decode(&tensors, &y);
            config.equivariant.then(|| reference.transform(&x, sample, |k| raised[k] >> s & 1 == 1))
        };
        let targets: Vec<Option<Vec<f64>>> = self.samples.iter().enumerate().map(target).collect();
        let mean = |f: &dyn Fn(&Sample, Option<&[f64]>) -> f64| {
            let each = self.samples.iter().zip(&targets).map(|(sample, z)| f(sample, z.as_deref()));
            each.sum::<f64>() / self.samples.len() as f64
        };

        for (i, got) in [losses.measurement, losses.sparsity, losses.equivariant].into_iter().enumerate() {
            let want = mean(&|sample, z| reference.losses(&tensors, sample, z)[i]);
            assert!((got - want).abs() <= 1e-5 * want.abs(), "term {i}: {got} {want}");
        }
        let mut pick = Rng::new(9);
        for (name, _, range) in &places {
            let largest = gradients[range.clone()].iter().fold(0.0f32, |m, g| m.max(g.abs()));
            for _ in 0..range.len().min(8) {
                let at = pick.below(range.len());
                let mut at_offset = |offset: f64| {
                    let before = tensors[name][at];
                    tensors.get_mut(name).unwrap()[at] += offset;
                    let total = mean(&|sample, z| reference.total(&tensors, sample, z));
                    tensors.get_mut(name).unwrap()[at] = before;
                    total
                };
                let step = 1e-6;
                let numeric = (at_offset(step) - at_offset(-step)) / (2.0 * step);
                let got = f64::from(gradients[range.start + at]);
                let tolerance = 2e-4 * f64::from(largest) + 1e-8;
                assert!((got - numeric).abs() <= tolerance, "{name}[{at}]: {got} {numeric} (largest {largest})");
            }
            assert!(largest > 0.0, "{name} has no gradient at all");
        }
    }
}

#[test]
fn count_min() {
    case(Kind::CountMin, config(), 8, 1).check::<8>();
}

#[test]
fn count_sketch() {
    case(Kind::CountSketch, config(), 6, 2).check::<8>();
}

#[test]
fn one_row_with_coefficients() {
    case(Kind::Fractional, config(), 5, 3).check::<8>();
}

#[test]
fn wide_rows_of_samples_some_empty() {
    case(Kind::CountMin, config(), 11, 4).check::<16>();
    case(Kind::CountMin, config(), 30, 5).check::<32>();
}

#[test]
fn unshared_buckets() {
    case(Kind::CountMin, Config { shared_buckets: false, ..config() }, 7, 6).check::<8>();
}

#[test]
fn without_the_equivariant_term() {
    case(Kind::CountMin, Config { equivariant: false, ..config() }, 7, 7).check::<8>();
}

#[test]
fn without_the_sparsity_term() {
    case(Kind::CountMin, Config { lambda: 0.0, ..config() }, 7, 8).check::<8>();
}

#[test]
fn a_bucket_longer_than_the_keys() {
    case(Kind::CountMin, Config { bucket_length: 64, ..config() }, 7, 9).check::<8>();
}

#[test]
fn a_batch_in_parts_is_the_batch() {
    // Without raised keys the parts draw nothing, so they see the same transformations as the
    // whole.
    let case = case(Kind::CountMin, Config { raised_share: 0.0, ..config() }, 8, 10);
    let (one, whole) = case.gradient::<8>(&[&case.samples]);
    let (two, parts) = case.gradient::<8>(&[&case.samples[..5], &case.samples[5..]]);
    assert!((one.total(0.1) - two.total(0.1)).abs() < 1e-6 * one.total(0.1));
    for (a, b) in whole.iter().zip(&parts) {
        assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{a} {b}");
    }
}
