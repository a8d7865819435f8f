//! Every solver against NumPy, SciPy and scikit-learn (`golden/make_golden.py`).

use std::collections::HashMap;
use ucl_equations::{
    Columns, Info, LeastSquaresOptions, MultiplicativeOptions, Precision, Rows, Workspace, em, lsmr, lsqr, map, omp,
};

/// One block of the file.
struct Golden {
    name: String,
    fields: HashMap<String, Vec<String>>,
}

impl Golden {
    fn numbers(&self, field: &str) -> Vec<f64> {
        let values = self.fields.get(field).unwrap_or_else(|| panic!("{} has no {field}", self.name));
        values.iter().map(|v| v.parse().expect("a number")).collect()
    }

    fn number(&self, field: &str) -> usize {
        self.numbers(field)[0] as usize
    }

    fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    fn columns(&self) -> Columns {
        let counters = self.number("counters");
        let degree = self.number("degree");
        let indices: Vec<u32> = self.numbers("indices").iter().map(|&i| i as u32).collect();
        let coefficients = self.numbers("coefficients");
        let each = indices.chunks_exact(degree).zip(coefficients.chunks_exact(degree));
        match self.fields["kind"][0].as_str() {
            "ones" => {
                let mut columns = Columns::ones(counters, degree);
                each.for_each(|(indices, _)| {
                    columns.push(indices);
                });
                columns
            }
            "signed" => {
                let mut columns = Columns::signed(counters, degree);
                each.for_each(|(indices, c)| {
                    columns.push_signed(indices, &c.iter().map(|&c| c as i8).collect::<Vec<_>>());
                });
                columns
            }
            _ => {
                let mut columns = Columns::weighted(counters, degree);
                each.for_each(|(indices, c)| {
                    columns.push_weighted(indices, &c.iter().map(|&c| c as f32).collect::<Vec<_>>());
                });
                columns
            }
        }
    }
}

fn goldens() -> Vec<Golden> {
    let mut all: Vec<Golden> = Vec::new();
    for line in include_str!("golden/systems.txt").lines() {
        let (field, values) = line.split_once(' ').expect("field and values");
        if field == "system" {
            all.push(Golden { name: values.to_string(), fields: HashMap::new() });
        } else {
            let values = values.split(' ').map(str::to_string).collect();
            all.last_mut().expect("a system first").fields.insert(field.to_string(), values);
        }
    }
    assert_eq!(all.len(), 5);
    all
}

/// The largest difference, relative to the largest value.
fn difference(found: &[f64], golden: &[f64]) -> f64 {
    assert_eq!(found.len(), golden.len());
    let largest = golden.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    found.iter().zip(golden).fold(0.0, |a: f64, (f, g)| a.max((f - g).abs())) / largest
}

type LeastSquares = fn(&Columns, &[f64], &LeastSquaresOptions, &mut [f64]) -> Result<Info, ucl_equations::Error>;
const LEAST_SQUARES: [(&str, LeastSquares); 2] = [("lsqr", lsqr::lsqr), ("lsmr", lsmr::lsmr)];

/// The same iterate after eight iterations: 1e-10 of the largest value.
#[test]
fn least_squares_iterate_as_scipy_does() {
    for golden in goldens() {
        let columns = golden.columns();
        let y = golden.numbers("y");
        let options =
            LeastSquaresOptions { damp: 0.0, atol: 0.0, btol: 0.0, condition_limit: 0.0, iterations: Some(8) };
        for (solver, solve) in LEAST_SQUARES {
            let mut x = vec![0.0; columns.len()];
            assert_eq!(solve(&columns, &y, &options, &mut x).expect("valid input").iterations, 8);
            let off = difference(&x, &golden.numbers(&format!("{solver}_eight")));
            assert!(off < 1e-10, "{solver} on {}: {off:e}", golden.name);
        }
    }
}

/// The default tolerances stop both at the same point, give or take one iteration. By then the
/// bidiagonalisation has lost its orthogonality and amplified rounding: SciPy's own answer moves by
/// up to 9e-7, and by one iteration, when the counters of these systems are permuted. Tolerance:
/// 1e-5 of the largest value, ten times that of the stopping rule.
#[test]
fn least_squares_stop_where_scipy_does() {
    for golden in goldens() {
        let columns = golden.columns();
        let y = golden.numbers("y");
        for (solver, solve) in LEAST_SQUARES {
            for (suffix, damp) in [("", 0.0), ("_damped", golden.numbers("damp")[0])] {
                let mut x = vec![0.0; columns.len()];
                let options = LeastSquaresOptions { damp, ..Default::default() };
                let info = solve(&columns, &y, &options, &mut x).expect("valid input");
                let what = format!("{solver}{suffix} on {}", golden.name);
                let iterations = golden.number(&format!("{solver}_iterations{suffix}"));
                assert!(info.iterations.abs_diff(iterations) <= 1, "{what}: {} for {iterations}", info.iterations);
                let off = difference(&x, &golden.numbers(&format!("{solver}{suffix}")));
                assert!(off < 1e-5, "{what}: {off:e}");
            }
        }
    }
}

/// The same atoms, and the same least-squares fit by them: 1e-11 of the largest value.
#[test]
fn omp_agrees_with_scikit_learn() {
    for golden in goldens() {
        let columns = golden.columns();
        let y = golden.numbers("y");
        let mut x = vec![0.0; columns.len()];
        let options = omp::Options { atoms: Some(golden.number("atoms")), ..Default::default() };
        let info = omp::omp(&columns, &y, &options, &mut x).expect("valid input");
        let exact = golden.numbers("omp");
        assert_eq!(info.iterations, exact.iter().filter(|&&v| v != 0.0).count(), "{}", golden.name);
        assert!(x.iter().zip(&exact).all(|(a, b)| (*a == 0.0) == (*b == 0.0)), "other atoms on {}", golden.name);
        let off = difference(&x, &exact);
        assert!(off < 1e-11, "{}: {off:e}", golden.name);
    }
}

/// Double precision to 1e-12 of the largest value; single precision to 1e-5 (24 bits over 100
/// iterations).
#[test]
fn em_agrees_with_numpy() {
    let mut checked = 0;
    for golden in goldens() {
        let columns = golden.columns();
        let y = golden.numbers("y");
        let mut workspace = Workspace::default();
        for (field, iterations) in [("em", 100), ("em_from_start", 20)] {
            if !golden.has(field) {
                continue;
            }
            let start = (iterations == 20).then(|| golden.numbers("start"));
            for (precision, tolerance) in [(Precision::Double, 1e-12), (Precision::Single, 1e-5)] {
                let options = MultiplicativeOptions { iterations, tolerance: None, precision };
                let mut x = vec![0.0; columns.len()];
                let info = em::em(&columns, &y, start.as_deref(), &options, &mut workspace, &mut x).expect("valid");
                assert_eq!(info.iterations, iterations);
                let exact = golden.numbers(field);
                let off = difference(&x, &exact);
                assert!(off < tolerance, "{field} on {}: {off:e}", golden.name);
                let on_empty = x.iter().zip(&exact).filter(|(_, e)| **e == 0.0);
                assert!(on_empty.into_iter().all(|(x, _)| *x == 0.0), "{field}: a zero that is not exact");
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 2 * (2 + 1 + 1));
}

/// Closed form: 1e-13 of the largest value.
#[test]
fn map_agrees_with_numpy() {
    let golden = goldens().into_iter().find(|golden| golden.has("map")).expect("one with rows");
    let shape = golden.numbers("rows");
    let rows = Rows { rows: shape[0] as usize, width: shape[1] as usize };
    let columns = golden.columns();
    let mut x = vec![0.0; columns.len()];
    map::map(&columns, rows, &golden.numbers("y"), &mut x).expect("valid input");
    let off = difference(&x, &golden.numbers("map"));
    assert!(off < 1e-13, "{off:e}");
}
