//! `theory`: the paper's lemmas and theorems beside what is measured (labels `lemma2`, `theorem2`,
//! `theorem3`, table `anlysis_table`).
//!
//! - **Lemma 2** bounds the expected share of keys that a Bloom filter loses by `1 - exp(-kK/m)`,
//!   the chance that *one* bit is set. That all `k` bits are set is far less likely: the estimate
//!   beside it takes the power `k`, and averages over the keys as they come.
//! - **Theorem 3** asks for rank `n` of `A` stacked on `A T_p`. A transformation scales: hot keys
//!   grow in proportion, all by one factor; a cold key that is raised grows by one. So `T_p` is
//!   diagonal, and column `i` of the stack is column `i` of `A` times its factors. Two hot keys
//!   have the same factors in every transformation, so a transformation cannot tell them apart:
//!   only `A` can.
//! - **Theorem 2** needs `(1 + sqrt 2) sigma_2s < 1`. For one-sparse vectors `sigma_2` is the
//!   largest share of counters that two keys have in common, which is easy to compute. It speaks of
//!   *the* minimiser of `‖x‖₁`. A Count-Min has many: a row's counters add up to the stream's
//!   weight, so every solution without negative counts has that norm, and no solution has a smaller
//!   one. EM ends in one of them, which one depends on its start; the bound has to hold for all, so
//!   the worst of many starts stands beside it.
//! - **Theorem 4** gives the posterior mean of a count under a Gaussian prior. Beside it is what
//!   the mean of the true counts really is, among keys for which the formula says the same.

use ucl_data_plane::bloom::expected_coverage;
use ucl_data_plane::{BloomFilter, BloomKind, HashSeed};
use ucl_equations::{Columns, Workspace, em};

use super::common::{finding, mean, mix, share, values};
use super::{Presentation, Spec};
use crate::experiment::measure;
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::reproduce::{Bench, Cell, Dataset, Finding, Job, Outcome, Scope, Table};
use crate::system::Options;

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "theory",
    title: "Theory beside measurement",
    labels: &["lemma2", "theorem2", "theorem3", "theorem4", "anlysis_table"],
    about: "Lemma 2: lost keys of a Bloom filter of 80,000 bits and 8 hashes. Theorem 3: the rank of the stacked system of 60 keys, 6 of them hot, in sketches \
            too small for them, by the number of transformations. Theorem 2: its bound for s = 1 beside the worst of many minimisers of the norm. Theorem 4: the \
            formula's posterior mean beside the measured one, for counts by a Gaussian and by Zipf's law. The last table has the paper's \
            `anlysis_table` with measured columns, on Retail with 64KB.",
    jobs,
    present,
};

const BITS: u32 = 80_000;
const HASHES: u8 = 8;
/// Starts of EM, each of which ends in another minimiser.
const MINIMISERS: u8 = 16;
const KEYS: usize = 60;
const HOT: usize = 6;
const TRANSFORMATIONS: [usize; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

fn jobs(scope: &Scope) -> Vec<Job> {
    let mut jobs = Vec::new();
    for keys in [2_000u32, 4_000, 8_000, 12_000, 16_000, 24_000, 32_000] {
        for &seed in &scope.seeds {
            let labels = [("part", "lemma2".to_owned()), ("keys", keys.to_string()), ("seed", seed.to_string())];
            jobs.push(Job::new(labels, move |_| Ok(lemma2(keys, seed))));
        }
    }
    for (rows, width) in [(2, 8), (2, 16), (4, 8)] {
        for &seed in &scope.seeds {
            let sketch = format!("{rows}x{width}");
            let labels = [("part", "theorem3".to_owned()), ("sketch", sketch), ("seed", seed.to_string())];
            jobs.push(Job::new(labels, move |_| Ok(theorem3(rows, width, seed))));
        }
    }
    for keys in [20usize, 100, 500, 2_000] {
        for &seed in &scope.seeds {
            let labels = [("part", "theorem2".to_owned()), ("keys", keys.to_string()), ("seed", seed.to_string())];
            jobs.push(Job::new(labels, move |_| theorem2(keys, seed)));
        }
    }
    for law in ["gaussian", "zipf"] {
        for &seed in &scope.seeds {
            let labels = [("part", "theorem4".to_owned()), ("law", law.to_owned()), ("seed", seed.to_string())];
            jobs.push(Job::new(labels, move |_| Ok(theorem4(law, seed))));
        }
    }
    for method in ["cm", "cs", "elastic", "univmon", "ucl-learned"] {
        let epochs = scope.epochs();
        let labels = [("part", "table".to_owned()), ("method", method.to_owned()), ("epochs", epochs.to_string())];
        let run = move |bench: &Bench<'_>| table_row(bench, method, epochs);
        jobs.push(Job::new(labels, run).on(Dataset::Retail).of(method).alone());
    }
    jobs
}

fn lemma2(keys: u32, seed: u64) -> Finding {
    let filter = BloomFilter::new(BloomKind::Classic, BITS, HASHES);
    let mut filter = filter.expect("memory for some kilobytes");
    let hash = HashSeed::new(u128::from(seed).into());
    let lost = (0..keys).filter(|key| !filter.insert(hash.hash(&key.to_le_bytes()))).count();
    let mut finding = Finding::default();
    finding.note("measured", lost as f64 / f64::from(keys));
    finding.note("estimate", 1.0 - expected_coverage(BITS, HASHES, keys.into()));
    finding.note("bound", 1.0 - (-f64::from(HASHES) * f64::from(keys) / f64::from(BITS)).exp());
    finding
}

/// The counters of a key.
fn column(key: usize, rows: usize, width: usize, seed: u64) -> Vec<usize> {
    let place =
        |row: usize| row * width + (mix(&[key as u8, (key >> 8) as u8, row as u8], seed) % width as u64) as usize;
    (0..rows).map(place).collect()
}

fn theorem3(rows: usize, width: usize, seed: u64) -> Finding {
    let columns: Vec<Vec<usize>> = (0..KEYS).map(|key| column(key, rows, width, seed)).collect();
    let counts: Vec<f64> = (0..KEYS).map(|key| (100.0 / (key + 1) as f64).ceil()).collect();
    let hot_volume: f64 = counts[..HOT].iter().sum();
    let factor = |key: usize, transformation: usize| {
        if key < HOT {
            // What is handed out is about the interval's weight, each time a little different.
            1.0 + (50.0 + 10.0 * share(&[transformation as u8], seed)) / hot_volume
        } else if share(&[key as u8, transformation as u8], seed) < 0.05 {
            1.0 + 1.0 / counts[key]
        } else {
            1.0
        }
    };
    let mut finding = Finding::default();
    for transformations in TRANSFORMATIONS {
        let mut stacked: Vec<Vec<f64>> = Vec::new();
        for block in 0..=transformations {
            let mut rows_of = vec![vec![0.0; KEYS]; rows * width];
            for (key, column) in columns.iter().enumerate() {
                let factor = if block == 0 { 1.0 } else { factor(key, block) };
                column.iter().for_each(|&counter| rows_of[counter][key] = factor);
            }
            stacked.append(&mut rows_of);
        }
        finding.note(&format!("rank_{transformations:02}"), rank(stacked) as f64);
    }
    finding
}

/// The rank of a matrix, by elimination with the largest pivot.
fn rank(mut rows: Vec<Vec<f64>>) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let mut rank = 0;
    for column in 0..columns {
        let Some(best) = (rank..rows.len()).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))
        else {
            break;
        };
        if rows[best][column].abs() < 1e-9 {
            continue;
        }
        rows.swap(rank, best);
        let (done, below) = rows.split_at_mut(rank + 1);
        let pivot = &done[rank];
        for row in below.iter_mut().filter(|row| row[column] != 0.0) {
            let share = row[column] / pivot[column];
            row[column..].iter_mut().zip(&pivot[column..]).for_each(|(x, p)| *x -= share * p);
            row[column] = 0.0;
        }
        rank += 1;
    }
    rank
}

fn theorem2(keys: usize, seed: u64) -> Result<Finding, String> {
    const ROWS: usize = 4;
    const WIDTH: usize = 1024;
    let indices: Vec<Vec<usize>> = (0..keys).map(|key| column(key, ROWS, WIDTH, seed)).collect();
    let common = |a: &[usize], b: &[usize]| a.iter().zip(b).filter(|(a, b)| a == b).count();
    let pairs = (0..keys).flat_map(|a| (0..a).map(move |b| (a, b)));
    let overlap = pairs.map(|(a, b)| common(&indices[a], &indices[b])).max().unwrap_or(0);
    let sigma = overlap as f64 / ROWS as f64;

    let counts: Vec<f64> = (0..keys).map(|key| (10.0 * keys as f64 / (key + 1) as f64).ceil()).collect();
    let mut columns = Columns::ones(ROWS * WIDTH, ROWS);
    let mut y = vec![0.0; ROWS * WIDTH];
    for (indices, count) in indices.iter().zip(&counts) {
        let indices: Vec<u32> = indices.iter().map(|&i| i as u32).collect();
        columns.push(&indices);
        indices.iter().for_each(|&i| y[i as usize] += count);
    }
    let mut worst: f64 = 0.0;
    let mut residual: f64 = 0.0;
    let mut workspace = Workspace::default();
    for start in 0..MINIMISERS {
        // The first start is the usual one; the others differ by up to four orders of magnitude.
        let spread = |key: usize| 10f64.powf(4.0 * share(&(key as u64).to_le_bytes(), mix(&[start], seed)));
        let from: Vec<f64> = (0..keys).map(|key| if start == 0 { 1.0 } else { spread(key) }).collect();
        let mut x = vec![0.0; keys];
        let options = em::Options { iterations: 2_000, ..em::Options::default() };
        em::em(&columns, &y, Some(&from), &options, &mut workspace, &mut x).map_err(|error| error.to_string())?;
        worst = worst.max(x.iter().zip(&counts).map(|(x, count)| (x - count).abs()).sum());
        let mut ax = vec![0.0; y.len()];
        for (indices, x) in indices.iter().zip(&x) {
            indices.iter().for_each(|&i| ax[i] += x);
        }
        let off = ax.iter().zip(&y).map(|(a, y)| (a - y).abs()).sum::<f64>() / y.iter().sum::<f64>();
        residual = residual.max(off);
    }
    let rest: f64 = counts.iter().sum::<f64>() - counts.iter().copied().fold(0.0, f64::max);
    let root = std::f64::consts::SQRT_2;
    let mut finding = Finding::default();
    finding.note("sigma", sigma);
    finding.note("rest", rest);
    finding.note("error", worst);
    finding.note("residual", residual);
    finding.note("holds", f64::from(u8::from((root + 1.0) * sigma < 1.0)));
    if (root + 1.0) * sigma < 1.0 {
        finding.note("bound", (2.0 + (2.0 * root + 2.0) * sigma) / (1.0 - (root + 1.0) * sigma) * rest);
    }
    Ok(finding)
}

/// Theorem 4 in a Count-Min of 4 rows of 1,024 counters: how the true counts lie about the
/// posterior mean that the formula gives.
fn theorem4(law: &str, seed: u64) -> Finding {
    const ROWS: usize = 4;
    const WIDTH: usize = 1024;
    const KEYS: usize = 20_000;
    /// Groups of keys for which the formula says nearly the same.
    const GROUPS: usize = 20;
    let uniform = |key: usize, draw: u8| share(&[&(key as u64).to_le_bytes()[..], &[draw]].concat(), seed);
    let count = |key: usize| match law {
        // Box and Muller. Some are below 0, as the theorem's are.
        "gaussian" => {
            let radius = (-2.0 * (1.0 - uniform(key, 0)).ln()).sqrt();
            100.0 + 50.0 * radius * (std::f64::consts::TAU * uniform(key, 1)).cos()
        }
        _ => (KEYS as f64 / (key + 1) as f64).ceil(),
    };
    let counts: Vec<f64> = (0..KEYS).map(count).collect();
    let at = |key: usize, row: usize| row * WIDTH + (uniform(key, 2 + row as u8) * WIDTH as f64) as usize;
    let mut y = vec![0.0; ROWS * WIDTH];
    for (key, count) in counts.iter().enumerate() {
        (0..ROWS).for_each(|row| y[at(key, row)] += count);
    }
    let d = ROWS as f64;
    let w = WIDTH as f64;
    let n = KEYS as f64;
    let norm: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|x| x * x).sum();
    let mean = norm / n;
    let variance = squares / n - mean * mean;
    let formula = |key: usize| {
        let sum: f64 = (0..ROWS).map(|row| y[at(key, row)]).sum();
        (mean * squares + variance * (w * sum - d * norm)) / (squares + variance * d * (w - 1.0))
    };
    let mut pairs: Vec<(f64, f64)> = (0..KEYS).map(|key| (formula(key), counts[key])).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let deviation = variance.sqrt();
    let off = |group: &[(f64, f64)]| {
        let (said, true_mean) = group.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        (said - true_mean).abs() / group.len() as f64 / deviation
    };
    let squared = |error: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(|pair| error(pair).powi(2)).sum::<f64>() / n;
    let covariance = pairs.iter().map(|(said, x)| (said - mean) * (x - mean)).sum::<f64>() / n;
    let mut finding = Finding::default();
    // Of a true posterior mean the slope of the counts is 1.
    finding.note("slope", covariance / squared(&|(said, _)| said - mean));
    finding.note("worst_group", pairs.chunks(KEYS / GROUPS).map(off).fold(0.0, f64::max));
    finding.note("error", squared(&|(said, x)| said - x).sqrt());
    finding.note("error_of_the_mean", deviation);
    finding
}

/// One system: measured, and what the theory's formula comes to for this stream.
fn table_row(bench: &Bench<'_>, method: &'static str, epochs: usize) -> Result<Finding, String> {
    let stream = bench.stream(Dataset::Retail)?;
    let options = Options { epochs: Some(epochs), ..Options::default() };
    let measured = measure(bench.method(method)?, &stream, 64 << 10, 1, &options);
    let shape = measured.row.shape.clone();
    let mut finding = finding(measured)?;
    let of = |name: &str| shape.get(name).map(|&size| size as f64);
    let mut counts: Vec<f64> = stream.truth().iter().map(|(_, count)| count as f64).collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let e = std::f64::consts::E;
    let formula = match method {
        "cm" => of("width").map(|width| e / width * counts.iter().sum::<f64>()),
        "cs" => of("width").map(|width| (e / width).sqrt() * counts.iter().map(|x| x * x).sum::<f64>().sqrt()),
        "ucl-learned" => of("slots").zip(of("rows")).zip(of("width")).map(|((slots, rows), width)| {
            // What the slots hold is not in the sketch. Beyond an eighth of the counters 2s columns
            // cannot be disjoint, so s is that.
            let sparse = rows * width / (2.0 * rows);
            counts.iter().skip((slots + sparse) as usize).sum::<f64>() / counts.len() as f64
        }),
        _ => None,
    };
    finding.note("formula", formula);
    Ok(finding)
}

fn part(outcomes: &[Outcome], name: &str) -> Vec<Outcome> {
    outcomes.iter().filter(|outcome| outcome.label("part") == name).cloned().collect()
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let mut shown = Presentation::default();
    let (lemma2, rank_of) = (part(outcomes, "lemma2"), part(outcomes, "theorem3"));
    let lost = |name: &str, figure: &str| {
        let point = |keys: &str| Some(Point::at(keys.parse().ok()?, mean(&lemma2, &[("keys", keys)], figure)?));
        Line::new(name, values(&lemma2, "keys").into_iter().filter_map(point))
    };
    let coverage = vec![
        lost("Lemma 2's bound on the mean", "bound"),
        lost("estimate, all k bits set", "estimate"),
        lost("measured", "measured"),
    ];
    let ranks = values(&rank_of, "sketch").into_iter().map(|sketch| {
        let point =
            |&n: &usize| Some(Point::at(n as f64, mean(&rank_of, &[("sketch", sketch)], &format!("rank_{n:02}"))?));
        Line::new(format!("sketch {sketch}"), TRANSFORMATIONS.iter().filter_map(point))
    });
    let figure = Figure {
        title: "Lemma 2 and Theorem 3".to_owned(),
        note: String::new(),
        panels: vec![
            Panel::lines("share of keys lost to the Bloom filter", Axis::log("keys"), Axis::log(""), coverage),
            Panel::lines(
                format!("rank of the stacked system, {KEYS} keys"),
                Axis::linear("transformations"),
                Axis::linear(""),
                ranks.collect(),
            ),
        ],
        columns: 2,
    };
    shown.figures.push(("theory".into(), "Lost keys, and ranks.".into(), figure));

    let mut table = Table::new(
        "lemma2",
        "Lemma 2: share of keys lost, 80,000 bits, 8 hashes",
        ["keys", "bound on the mean", "estimate", "measured"],
    );
    for keys in values(&lemma2, "keys") {
        let of = |figure| Cell::from(mean(&lemma2, &[("keys", keys)], figure));
        table.push([keys.into(), of("bound"), of("estimate"), of("measured")]);
    }
    shown.tables.push(table);

    let header = ["sketch".to_owned(), "counters".to_owned()].into_iter();
    let header =
        header.chain(TRANSFORMATIONS.iter().map(|n| if *n == 0 { "A alone".to_owned() } else { format!("{n}") }));
    let mut table =
        Table::new("theorem3", format!("Theorem 3: rank by the number of transformations ({KEYS} keys)"), header);
    for sketch in values(&rank_of, "sketch") {
        let counters = sketch.split('x').filter_map(|n| n.parse::<f64>().ok()).product::<f64>();
        let ranks =
            TRANSFORMATIONS.iter().map(|n| Cell::from(mean(&rank_of, &[("sketch", sketch)], &format!("rank_{n:02}"))));
        table.push([sketch.into(), counters.into()].into_iter().chain(ranks));
    }
    shown.tables.push(table);

    let bounds = part(outcomes, "theorem2");
    let mut table = Table::new(
        "theorem2",
        format!(
            "Theorem 2 with s = 1, sketch 4x1024: the bound on the summed error beside the worst of {MINIMISERS} minimisers of the norm"
        ),
        [
            "keys",
            "sigma_2",
            "volume beyond the largest key",
            "bound",
            "worst error",
            "counters off by",
            "seeds where the premise holds",
        ],
    );
    for keys in values(&bounds, "keys") {
        let of = |figure| Cell::from(mean(&bounds, &[("keys", keys)], figure));
        let cell: Cell = mean(&bounds, &[("keys", keys)], "bound").map_or("none".into(), Cell::Figure);
        let holds =
            mean(&bounds, &[("keys", keys)], "holds").map(|share| format!("{:.0}%", share * 100.0)).unwrap_or_default();
        table.push([keys.into(), of("sigma"), of("rest"), cell, of("error"), of("residual"), holds.into()]);
    }
    shown.tables.push(table);

    let posteriors = part(outcomes, "theorem4");
    let mut table = Table::new(
        "theorem4",
        "Theorem 4: the formula's posterior mean beside the measured one (20,000 keys, sketch 4x1024)",
        [
            "law of the counts",
            "slope of the counts on the formula (1 is right)",
            "worst of 20 groups (deviations)",
            "error of the formula",
            "error of answering the mean",
        ],
    );
    for law in values(&posteriors, "law") {
        let of = |figure| Cell::from(mean(&posteriors, &[("law", law)], figure));
        table.push([law.into(), of("slope"), of("worst_group"), of("error"), of("error_of_the_mean")]);
    }
    shown.tables.push(table);

    let rows = part(outcomes, "table");
    let mut table = Table::new(
        "anlysis-table",
        "The paper's `anlysis_table` with measured columns: Retail, 64KB",
        [
            "algorithm",
            "space (paper)",
            "time (paper)",
            "average error (paper)",
            "bytes",
            "inserts (million/s)",
            "the error's formula comes to",
            "AAE",
        ],
    );
    let formulas = [
        ("cm", "O(e/ε · ln 1/δ)", "O(ln 1/δ)", "O(ε ‖F‖₁)"),
        ("cs", "O(e/ε² · ln 1/δ)", "O(ln 1/δ)", "O(ε ‖F‖₂)"),
        ("elastic", "O(-s log K / ln(1 - ε_b δ_b) + e/ε² · ln 1/δ)", "O(ln 1/δ)", "O(ε ‖f‖₁)"),
        ("univmon", "O(log N (e/ε · ln 1/δ + s log N))", "O(log N · ln s/δ)", "/"),
        ("ucl-learned", "O(m_b + e/ε · ln 1/δ + b s)", "O(log 1/(ε_b δ_b) + ln 1/δ)", "O(‖f outside T₀‖₁ / K)"),
    ];
    for (method, space, time, error) in formulas {
        let of = |figure| Cell::from(mean(&rows, &[("method", method)], figure));
        if values(&rows, "method").contains(&method) {
            let words = [method, space, time, error].map(Cell::from);
            table.push(words.into_iter().chain([of("memory_used"), of("insert_mops"), of("formula"), of("aae")]));
        }
    }
    shown.tables.push(table);
    shown.remarks.extend([
        "Lemma 2 is true and very loose: it takes the chance that one bit is set for the chance that all eight are.".to_owned(),
        "Theorem 3: transformations do raise the rank, to all keys where every group of keys with equal factors can be told apart by A alone; keys that are hot together \
         always grow by the same factor, so what A cannot tell of them no transformation can."
            .to_owned(),
        "Theorem 2's premise fails as soon as two keys share two of their four counters (sigma_2 = 0.5), which a few hundred keys in a sketch of 4,096 counters do. At the \
         paper's own sizes, 15,000 keys and more, it promises nothing, whatever the measured error."
            .to_owned(),
        "Theorem 2 speaks of the minimiser of the norm, but every solution without negative counts minimises it: each row of counters adds up to the stream's weight. So the norm \
         chooses nothing in a Count-Min, and the bound has to hold for all of them: EM from many starts ends in such solutions (column \"counters off by\": how exactly)."
            .to_owned(),
        "Theorem 4 is right where its premise is: Gaussian counts lie about its posterior mean as they should. Counts by Zipf's law do not, for their deviation is that of a few \
         large keys."
            .to_owned(),
        "In the last table the formula for Count Sketch takes ε = sqrt(e/w). For UCL-sketch T₀ holds as many keys as an eighth of the counters, and f is the stream without the keys \
         that fit the slots; the constant in front, of Theorem 2, is left out as in the paper."
            .to_owned(),
    ]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_small_matrices() {
        assert_eq!(rank(vec![vec![1.0, 2.0], vec![2.0, 4.0]]), 1);
        assert_eq!(rank(vec![vec![0.0, 2.0, 1.0], vec![1.0, 0.0, 0.0], vec![1.0, 2.0, 1.0]]), 2);
        assert_eq!(rank(vec![vec![0.0; 3]; 3]), 0);
        assert_eq!(rank(vec![]), 0);
    }

    #[test]
    fn a_sketch_alone_has_at_most_as_many_independent_equations_as_counters() {
        let finding = theorem3(2, 8, 1);
        assert!(finding.figures["rank_00"] <= 15.0, "one equation too many: both rows have the same sum");
        assert!(finding.figures["rank_64"] > finding.figures["rank_00"]);
        assert!(finding.figures["rank_64"] <= KEYS as f64);
    }

    #[test]
    fn the_bound_holds_where_it_is_one() {
        let finding = theorem2(20, 1).unwrap();
        if let Some(bound) = finding.figures.get("bound") {
            assert!(finding.figures["error"] <= *bound);
        }
        assert!(finding.figures["residual"] < 1e-3, "a minimiser solves the equations");
        assert_eq!(theorem2(2_000, 1).unwrap().figures["holds"], 0.0);
    }

    /// Theorem 4 on counts that are as it assumes, and on counts that are not.
    #[test]
    fn the_posterior_mean_is_right_for_gaussian_counts_alone() {
        let gaussian = theorem4("gaussian", 1).figures;
        assert!((gaussian["slope"] - 1.0).abs() < 0.1 && gaussian["worst_group"] < 0.15, "{gaussian:?}");
        assert!(gaussian["error"] < gaussian["error_of_the_mean"], "{gaussian:?}");
        let zipf = theorem4("zipf", 1).figures;
        assert!(zipf["worst_group"] > 2.0 * gaussian["worst_group"], "{zipf:?}");
    }

    #[test]
    fn lemma2_is_a_bound() {
        let finding = lemma2(16_000, 1);
        assert!(finding.figures["measured"] <= finding.figures["bound"]);
        assert!((finding.figures["measured"] / finding.figures["estimate"] - 1.0).abs() < 0.2);
    }
}
