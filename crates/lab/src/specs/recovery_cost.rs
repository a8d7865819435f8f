//! `recovery-cost`: how long it takes to decode all keys, and how large the network is, against the
//! number of keys (paper: figure `ablation_2`).
//!
//! Systems of a 4x1024 sketch whose keys have random columns and Zipf counts, up to 500,000 keys. A
//! network's time does not depend on what it has learned, so it trains for one step. Parameters
//! without shared buckets are linear in the buckets, and are computed from networks of one and two.

use std::time::Instant;

use ucl_equations::{Columns, Workspace, em, lsmr, lsqr, omp};
use ucl_sketch::learned::{Cancel, Config, CounterGrid, Problem, Snapshot, Solver, TrainBudget};

use super::common::{mean, mix, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Line, Panel, Point, figure_text};
use crate::reproduce::{Cell, Finding, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "recovery-cost",
    title: "The price of recovery",
    labels: &["ablation_2"],
    about: "Milliseconds to decode all keys of a 4x1024 sketch from one snapshot, and megabytes of parameters with shared buckets and without. OMP names one key in ten, \
            and no more than the sketch has counters. The paper's OMP-GPU is represented by our threaded solver.",
    jobs,
    present,
};

const ROWS: usize = 4;
const WIDTH: usize = 1024;
const DECODERS: [&str; 6] = ["learned", "em", "lsqr", "lsmr", "omp", "cm"];

fn jobs(scope: &Scope) -> Vec<Job> {
    let keys: &[usize] = scope.extent.choose(
        &[1_000, 5_000, 20_000, 50_000, 100_000, 200_000, 500_000],
        &[1_000, 5_000, 20_000, 100_000, 500_000],
        &[500, 1_000],
    );
    // OMP's price grows with the square of what it names; with --quick it stops where that takes
    // minutes.
    let most_omp = scope.extent.choose(usize::MAX, 5_000, 500);
    let mut jobs = Vec::new();
    for &keys in keys {
        for decoder in DECODERS.into_iter().filter(|name| *name != "omp" || keys <= most_omp) {
            let labels = [("decoder", decoder.to_owned()), ("keys", keys.to_string())];
            jobs.push(Job::new(labels, move |_| decode(decoder, keys)).alone());
        }
        let labels = [("decoder", "parameters".to_owned()), ("keys", keys.to_string())];
        jobs.push(Job::new(labels, move |_| parameters(keys)));
    }
    jobs
}

/// Random columns, and counters that add up counts by Zipf's law.
fn system(keys: usize) -> (Columns, Vec<f64>) {
    let mut columns = Columns::ones(ROWS * WIDTH, ROWS);
    let mut y = vec![0.0; ROWS * WIDTH];
    for key in 0..keys {
        let indices: [u32; ROWS] = std::array::from_fn(|row| {
            let place = mix(&(key as u64).to_le_bytes(), row as u64) % WIDTH as u64;
            (row * WIDTH) as u32 + place as u32
        });
        columns.push(&indices);
        let count = (10.0 * keys as f64 / (key + 1) as f64).ceil();
        indices.iter().for_each(|&i| y[i as usize] += count);
    }
    (columns, y)
}

fn decode(decoder: &str, keys: usize) -> Result<Finding, String> {
    let (columns, y) = system(keys);
    let mut x = vec![0.0; keys];
    let text = |error: ucl_equations::Error| error.to_string();
    let start;
    match decoder {
        "learned" => {
            let mut solver = network(Config::default())?;
            train_one_step(&mut solver, &columns, &y)?;
            start = Instant::now();
            let encoded = solver.encode(&y).map_err(|error| error.to_string())?;
            solver.decode(&encoded, &mut x).map_err(|error| error.to_string())?;
        }
        "em" => {
            start = Instant::now();
            em::em(&columns, &y, None, &em::Options::default(), &mut Workspace::default(), &mut x).map_err(text)?;
        }
        "lsqr" => {
            start = Instant::now();
            lsqr::lsqr(&columns, &y, &lsqr::Options::default(), &mut x).map_err(text)?;
        }
        "lsmr" => {
            start = Instant::now();
            lsmr::lsmr(&columns, &y, &lsmr::Options::default(), &mut x).map_err(text)?;
        }
        "omp" => {
            start = Instant::now();
            omp::omp(&columns, &y, &omp::Options::default(), &mut x).map_err(text)?;
        }
        _ => {
            start = Instant::now();
            for (x, indices) in x.iter_mut().zip(columns.all_indices().chunks_exact(ROWS)) {
                *x = indices.iter().map(|&i| y[i as usize]).fold(f64::INFINITY, f64::min);
            }
        }
    }
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let mut finding = Finding::default();
    finding.note("decode_ms", milliseconds);
    std::hint::black_box(x);
    Ok(finding)
}

fn network(config: Config) -> Result<Solver, String> {
    Solver::new(CounterGrid { rows: ROWS, width: WIDTH }, config, 1).map_err(|error| error.to_string())
}

fn train_one_step(solver: &mut Solver, columns: &Columns, y: &[f64]) -> Result<(), String> {
    let window = [Snapshot { counters: y, interval_weight: 1000.0 }];
    let hot = vec![false; columns.len()];
    let problem = Problem { columns, hot: &hot, window: &window, smallest_weight: 1.0 };
    let trained = solver.train(&problem, TrainBudget::steps(1), &Cancel::default());
    trained.map(drop).map_err(|error| error.to_string())
}

fn parameters(keys: usize) -> Result<Finding, String> {
    let megabytes = |parameters: usize| parameters as f64 * 4.0 / f64::from(1 << 20);
    let unshared = || Config { shared_buckets: false, ..Config::default() };
    let length = unshared().bucket_length;
    let of = |buckets: usize| {
        let mut solver = network(unshared())?;
        let (columns, y) = system(buckets * length);
        train_one_step(&mut solver, &columns, &y)?;
        Ok::<usize, String>(solver.parameters())
    };
    let (one, two) = (of(1)?, of(2)?);
    let mut finding = Finding::default();
    finding.note("shared_mb", megabytes(network(Config::default())?.parameters()));
    finding.note("unshared_mb", megabytes(one + (keys.div_ceil(length) - 1) * (two - one)));
    Ok(finding)
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let sizes = values(outcomes, "keys");
    let x = |keys: &str| keys.parse().unwrap_or(0.0);
    let line = |name: &str, decoder: &str, figure: &str| {
        let point =
            |keys: &&str| Some(Point::at(x(keys), mean(outcomes, &[("decoder", decoder), ("keys", keys)], figure)?));
        Line::new(name, sizes.iter().filter_map(point))
    };
    let times = DECODERS.iter().map(|decoder| line(decoder, decoder, "decode_ms")).collect();
    let sizes_of = [("with shared buckets", "shared_mb"), ("without shared buckets", "unshared_mb")];
    let parameters = sizes_of.map(|(name, figure)| line(name, "parameters", figure)).into();
    let keys = || Axis::log("keys").with_ticks(sizes.iter().map(|keys| (x(keys), figure_text(x(keys)))));
    let figure = Figure {
        title: "Recovery of all keys from a 4x1024 sketch".to_owned(),
        note: String::new(),
        panels: vec![
            Panel::lines("decoding (ms)", keys(), Axis::log(""), times),
            Panel::lines("parameters (MB)", keys(), Axis::log(""), parameters),
        ],
        columns: 2,
    };
    let header = ["keys"].into_iter().map(str::to_owned);
    let header = header.chain(DECODERS.iter().map(|name| format!("{name} (ms)")));
    let header = header.chain(["parameters (MB)".to_owned(), "without shared buckets (MB)".to_owned()]);
    let mut table = Table::new("recovery", "Time and size", header);
    for keys in &sizes {
        let time = |decoder: &&str| Cell::from(mean(outcomes, &[("decoder", decoder), ("keys", keys)], "decode_ms"));
        let size = |figure| Cell::from(mean(outcomes, &[("decoder", "parameters"), ("keys", keys)], figure));
        let row = std::iter::once(Cell::from(figure_text(x(keys)))).chain(DECODERS.iter().map(time));
        table.push(row.chain(["shared_mb", "unshared_mb"].map(size)));
    }
    let remarks = vec![
        "The paper prints: about 0.5 s for its network, over 60 s for OMP in some cases; at 500K keys 1MB of parameters with shared buckets and over 250MB without.".to_owned(),
        "EM and the least-squares solvers iterate to their defaults; all of them use every core, the smallest counter one.".to_owned(),
    ];
    Presentation {
        figures: vec![("recovery".into(), "Time and parameters by the number of keys.".into(), figure)],
        tables: vec![table],
        remarks,
    }
}
