//! Empty systems, empty counters, lost keys, wrong input.

use ucl_equations::{
    ColumnId, Columns, Error, Info, LeastSquaresOptions, MultiplicativeOptions, Rows, Stop, Workspace, em, left_out,
    lsmr, lsqr, map, omp, peeling,
};

type Solver = fn(&Columns, &[f64], &mut [f64]) -> Result<Info, Error>;

/// Every iterative solver with its defaults.
const SOLVERS: [(&str, Solver); 4] = [
    ("em", |a, y, x| em::em(a, y, None, &em::Options::default(), &mut Workspace::default(), x)),
    ("lsqr", |a, y, x| lsqr::lsqr(a, y, &lsqr::Options::default(), x)),
    ("lsmr", |a, y, x| lsmr::lsmr(a, y, &lsmr::Options::default(), x)),
    ("omp", |a, y, x| omp::omp(a, y, &omp::Options { atoms: Some(10), tolerance: 0.0 }, x)),
];

fn pair() -> Columns {
    let mut columns = Columns::ones(4, 2);
    columns.push(&[0, 2]);
    columns.push(&[1, 2]);
    columns
}

#[test]
fn nothing_in_gives_nothing_out() {
    for (name, solve) in SOLVERS {
        let info = solve(&Columns::ones(3, 2), &[0.0; 3], &mut []).expect("valid input");
        assert_eq!((info.iterations, info.residual, info.stop), (0, 0.0, Stop::Trivial), "{name}: no columns");
        let info = solve(&Columns::ones(3, 2), &[1.0; 3], &mut []).expect("valid input");
        assert_eq!((info.residual, info.stop), (1.0, Stop::Trivial), "{name}: mass, but no columns");
        let info = solve(&Columns::ones(0, 1), &[], &mut []).expect("valid input");
        assert_eq!(info.residual, 0.0, "{name}: no counters");
        let mut x = [f64::NAN; 2];
        let info = solve(&pair(), &[0.0; 4], &mut x).expect("valid input");
        assert_eq!((x, info.stop), ([0.0; 2], Stop::Trivial), "{name}: no mass");
    }
}

#[test]
fn mass_that_no_column_touches_stays_in_the_residual() {
    for (name, solve) in SOLVERS {
        let mut x = [f64::NAN; 2];
        let info = solve(&pair(), &[3.0, 5.0, 8.0, 16.0], &mut x).expect("valid input");
        assert!((x[0] - 3.0).abs() < 1e-4 && (x[1] - 5.0).abs() < 1e-4, "{name}: {x:?}");
        assert!((info.residual - 0.5).abs() < 1e-5, "{name}: {}", info.residual);
    }
}

#[test]
fn a_key_on_an_empty_counter_is_exactly_zero() {
    let mut columns = Columns::ones(4, 2);
    columns.push(&[0, 2]);
    columns.push(&[1, 2]);
    columns.push(&[3, 3]);
    let mut x = [f64::NAN; 3];
    let start = Some(&[1.0, 1e300, 1.0][..]);
    let y = [7.0, 0.0, 9.0, 4.0];
    em::em(&columns, &y, start, &em::Options::default(), &mut Workspace::default(), &mut x).expect("valid input");
    assert_eq!(x[1], 0.0);
    assert!(x[0] > 0.0 && x[0] <= 9.0);
    // An index that stands twice counts twice: 2 x = 4.
    assert!((x[2] - 2.0).abs() < 1e-6);
}

#[test]
fn a_start_of_zero_stays_zero_and_no_scale_breaks_the_numbers() {
    let columns = pair();
    for scale in [1e-300, 1e-3, 1.0, 1e12, 1e300] {
        for start in [1e-300, 1.0, 1e300] {
            let y = [3.0 * scale, 5.0 * scale, 8.0 * scale, scale];
            let mut x = [f64::NAN; 2];
            let options = em::Options { iterations: 200, ..Default::default() };
            em::em(&columns, &y, Some(&[start; 2]), &options, &mut Workspace::default(), &mut x).expect("valid");
            assert!((x[0] / scale - 3.0).abs() < 1e-4 && (x[1] / scale - 5.0).abs() < 1e-4, "{scale} {start} {x:?}");
            em::em(&columns, &y, Some(&[start, 0.0]), &options, &mut Workspace::default(), &mut x).expect("valid");
            assert!(x[1] == 0.0 && x[0].is_finite() && x[0] > 0.0);
            em::em(&columns, &y, Some(&[0.0; 2]), &options, &mut Workspace::default(), &mut x).expect("valid");
            assert_eq!(x, [0.0; 2]);
        }
    }
}

#[test]
fn no_iteration_gives_the_start() {
    let options = MultiplicativeOptions { iterations: 0, ..Default::default() };
    let mut x = [f64::NAN; 2];
    let y = [3.0, 0.0, 8.0, 0.0];
    let info =
        em::em(&pair(), &y, Some(&[3.0, 4.0]), &options, &mut Workspace::default(), &mut x).expect("valid input");
    assert_eq!((x, info.iterations, info.residual), ([3.0, 0.0], 0, 5.0 / 11.0));
}

#[test]
fn em_stops_when_it_has_settled() {
    for degree in [2, 4, 6] {
        let mut columns = Columns::ones(8, degree);
        columns.push(&[0, 1, 2, 3, 4, 5][..degree]);
        columns.push(&[0, 1, 6, 7, 6, 7][..degree]);
        let mut y = [0.0; 8];
        columns.product(&[3.0, 9.0], &mut y).expect("shapes fit");
        let options = MultiplicativeOptions { iterations: 10_000, tolerance: Some(1e-6), ..Default::default() };
        let mut x = [0.0; 2];
        let info = em::em(&columns, &y, None, &options, &mut Workspace::default(), &mut x).expect("valid input");
        assert_eq!(info.stop, Stop::Settled);
        assert!(info.iterations < 10_000);
        // With two counters, both shared, nothing tells the two keys apart.
        let exact = if degree == 2 { [6.0, 6.0] } else { [3.0, 9.0] };
        assert!(x.iter().zip(exact).all(|(a, b)| (a - b).abs() < 1e-3), "{x:?}");
    }
}

#[test]
fn peeling_notices_a_lost_key() {
    let mut columns = Columns::ones(6, 2);
    columns.push(&[0, 3]);
    columns.push(&[1, 3]);
    columns.push(&[2, 4]);
    // Column 0 holds 5, column 1 holds 7, column 2 is lost and holds 4; so is a key of 10 on
    // counters 0 and 5.
    let y = [15, 7, 4, 12, 4, 10];
    let candidates = [ColumnId(0), ColumnId(1)];
    let peeled = peeling::peel(&columns, Some(&candidates), &y).expect("valid input");
    assert_eq!(peeled.values(), [Some(5), Some(7)], "15 does not fit into counter 3, so 5 must come from there");
    assert_eq!(peeled.remaining(), [10, 0, 4, 0, 4, 10]);
    assert_eq!(peeled.unexplained(), 28);
    assert!(peeled.is_complete());
}

#[test]
fn peeling_refuses_what_does_not_fit() {
    let mut columns = Columns::ones(3, 2);
    columns.push(&[0, 0]);
    let peeled = peeling::peel(&columns, None, &[7, 0, 0]).expect("valid input");
    assert_eq!((&peeled.values()[..], peeled.refused()), (&[None][..], 1), "7 is not twice anything");
    assert_eq!(peeling::peel(&columns, None, &[8, 0, 0]).expect("valid input").values(), [Some(4)]);
    // Two keys with the same counters cannot be told apart.
    let mut twins = Columns::ones(3, 2);
    twins.push(&[0, 1]);
    twins.push(&[0, 1]);
    let peeled = peeling::peel(&twins, None, &[8, 8, 0]).expect("valid input");
    assert_eq!(peeled.unsolved(), [ColumnId(0), ColumnId(1)]);
    let mut x = [0.0; 2];
    peeled
        .then_em(&twins, Some(&|at| [3.0, 1.0][at]), &em::Options::default(), &mut Workspace::default(), &mut x)
        .expect("valid");
    assert!((x[0] - 6.0).abs() < 1e-4 && (x[1] - 2.0).abs() < 1e-4, "shared in proportion to the start: {x:?}");
}

/// The defect: the sum stopped at 2^63, and a share of it was told as the whole.
#[test]
fn the_largest_masses_are_added_up() {
    let mut twins = Columns::ones(4, 2);
    twins.push(&[0, 1]);
    twins.push(&[0, 1]);
    let peeled = peeling::peel(&twins, None, &[i64::MAX; 4]).expect("valid input");
    assert_eq!(peeled.unexplained(), 2 * i128::from(i64::MAX));
}

#[test]
fn zeros_travel() {
    // Counter 0 empties when key 0 is peeled from counter 2; keys 1 and 2 are then 0, which leaves
    // counter 1 to key 3.
    let mut columns = Columns::ones(4, 2);
    for key in [[0, 2], [0, 1], [0, 1], [1, 3], [1, 3]] {
        columns.push(&key);
    }
    let peeled = peeling::peel(&columns, None, &[5, 6, 5, 6]).expect("valid input");
    assert_eq!(peeled.values(), [Some(5), Some(0), Some(0), None, None]);
}

#[test]
fn omp_stops_where_columns_repeat() {
    let mut columns = Columns::ones(4, 2);
    (0..5).for_each(|_| {
        columns.push(&[0, 1]);
    });
    let mut x = [0.0; 5];
    let options = omp::Options { atoms: Some(5), tolerance: 0.0 };
    let info = omp::omp(&columns, &[4.0, 4.0, 1.0, 0.0], &options, &mut x).expect("valid input");
    assert_eq!((info.iterations, info.stop), (1, Stop::Exhausted));
    assert!((x[0] - 4.0).abs() < 1e-12 && x[1..] == [0.0; 4]);
    let info = omp::omp(&columns, &[4.0, 4.0, 0.0, 0.0], &omp::Options { atoms: None, tolerance: 1e-9 }, &mut x);
    assert_eq!(info.expect("valid input").stop, Stop::Solved);
}

#[test]
fn map_of_equal_counts_is_their_mean() {
    let rows = Rows { rows: 1, width: 1 };
    let mut columns = Columns::ones(1, 1);
    columns.push(&[0]);
    columns.push(&[0]);
    let mut x = [f64::NAN; 2];
    let prior = map::map(&columns, rows, &[10.0], &mut x).expect("valid input");
    assert_eq!((x, prior.variance), ([5.0; 2], 0.0));
    map::map(&columns, rows, &[0.0], &mut x).expect("valid input");
    assert_eq!(x, [0.0; 2]);
    map::map(&Columns::ones(1, 1), rows, &[10.0], &mut []).expect("valid input");
}

#[test]
fn wrong_shapes_and_numbers_are_named() {
    let columns = pair();
    for (name, solve) in SOLVERS {
        let mut x = [0.0; 2];
        let error = solve(&columns, &[1.0; 3], &mut x).expect_err(name);
        assert_eq!(error.to_string(), "y has 3 values where the system has 4");
        let error = solve(&columns, &[1.0; 4], &mut x[..1]).expect_err(name);
        assert_eq!(error.to_string(), "out has 1 values where the system has 2");
        let error = solve(&columns, &[1.0, f64::NAN, 1.0, 1.0], &mut x).expect_err(name);
        assert_eq!(error.to_string(), "y[1] is NaN, not a finite number");
        let error = solve(&columns, &[1.0, 1.0, f64::NEG_INFINITY, 1.0], &mut x).expect_err(name);
        assert_eq!(error.to_string(), "y[2] is -inf, not a finite number");
    }
    let mut out = [0.0; 4];
    assert_eq!(columns.product(&[1.0], &mut out), Err(Error::Shape { what: "x", expected: 2, found: 1 }));
    assert!(columns.transposed_product(&[1.0; 4], &mut out).is_err());
}

#[test]
fn em_and_peeling_need_ones_and_no_negatives() {
    let mut signed = Columns::signed(4, 2);
    signed.push_signed(&[0, 1], &[1, -1]);
    let columns = pair();
    let solve = |columns: &Columns, y: &[f64; 4], x: &mut [f64]| {
        em::em(columns, y, None, &em::Options::default(), &mut Workspace::default(), x)
    };
    let error = solve(&signed, &[1.0; 4], &mut [0.0]).expect_err("signs");
    assert_eq!(error.to_string(), "EM needs columns of ones, but these carry signs or weights");
    let error = solve(&columns, &[1.0, 1.0, -2.5, 1.0], &mut [0.0; 2]).expect_err("a negative counter");
    assert_eq!(error.to_string(), "y[2] is -2.5, but this solver needs numbers >= 0");
    assert!(peeling::peel(&signed, None, &[0; 4]).is_err());
    let error = peeling::peel(&columns, None, &[0, -3, 0, 0]).expect_err("negative");
    assert_eq!(error.to_string(), "y[1] is -3, but this solver needs numbers >= 0");
    let options = em::Options::default();
    let em = |start: &[f64], ids: &[u32], options: &em::Options| {
        let ids: Vec<ColumnId> = ids.iter().copied().map(ColumnId).collect();
        let mut out = vec![0.0; ids.len()];
        em::em_among(&columns, &ids, &[1.0; 4], Some(start), options, &mut Workspace::default(), &mut out)
    };
    assert_eq!(em(&[1.0; 3], &[0, 1], &options), Err(Error::Shape { what: "start", expected: 2, found: 3 }));
    assert!(matches!(em(&[1.0, -1.0], &[0, 1], &options), Err(Error::Negative { what: "start", at: 1, .. })));
    assert_eq!(em(&[1.0; 2], &[0, 2], &options), Err(Error::UnknownColumn { at: 1, id: 2, len: 2 }));
    let bad = em::Options { tolerance: Some(f64::NAN), ..options };
    let error = em(&[1.0; 2], &[0, 1], &bad).expect_err("NaN");
    assert_eq!(error.to_string(), "option tolerance is NaN, but must be a finite number >= 0");
    assert!(columns.subset(&[ColumnId(2)]).is_err());
}

#[test]
fn weights_and_options_are_checked() {
    let mut weighted = Columns::weighted(4, 2);
    weighted.push_weighted(&[0, 1], &[1.0, f32::INFINITY]);
    let error = lsqr::lsqr(&weighted, &[1.0; 4], &LeastSquaresOptions::default(), &mut [0.0]).expect_err("infinite");
    assert_eq!(error.to_string(), "coefficients[1] is inf, not a finite number");
    assert!(omp::omp(&weighted, &[1.0; 4], &omp::Options::default(), &mut [0.0]).is_err());
    let options = LeastSquaresOptions { damp: -1.0, ..Default::default() };
    assert!(matches!(lsmr::lsmr(&pair(), &[1.0; 4], &options, &mut [0.0; 2]), Err(Error::Option { name: "damp", .. })));
    let options = omp::Options { atoms: None, tolerance: f64::INFINITY };
    assert!(omp::omp(&pair(), &[1.0; 4], &options, &mut [0.0; 2]).is_err());
}

#[test]
fn rows_are_checked() {
    let columns = pair();
    let mut x = [0.0; 2];
    let error = map::map(&columns, Rows { rows: 2, width: 3 }, &[1.0; 4], &mut x).expect_err("shape");
    assert_eq!(error.to_string(), "2 rows of 3 counters do not fit 4 counters and columns of 2 entries");
    let mut crossed = Columns::ones(4, 2);
    crossed.push(&[2, 0]);
    let rows = Rows { rows: 2, width: 2 };
    let error = map::map(&crossed, rows, &[1.0; 4], &mut x[..1]).expect_err("order");
    assert_eq!(error.to_string(), "entry 0 of column 0 is counter 2, outside row 0");
    let zeros = |part: left_out::LeftOut<'_>| Ok::<_, Error>(vec![0.0; part.columns.len()]);
    let error = left_out::residual(&columns, rows, &[1.0; 4], Some(&[2]), zeros).expect_err("row");
    assert_eq!(error.to_string(), "row 2 of 2 cannot be left out");
    let mut single = Columns::ones(4, 1);
    single.push(&[1]);
    assert!(left_out::residual(&single, Rows { rows: 1, width: 4 }, &[1.0; 4], None, zeros).is_err());
    assert_eq!(left_out::residual(&columns, rows, &[1.0; 4], Some(&[1]), zeros), Ok(1.0));
    assert_eq!(left_out::residual(&columns, rows, &[0.0; 4], None, zeros), Ok(0.0));
    let short = |_: left_out::LeftOut<'_>| Ok::<_, Error>(vec![0.0]);
    assert!(left_out::residual(&columns, rows, &[1.0; 4], None, short).is_err());
}

/// Signs travel with their entries when a row is left out.
#[test]
fn a_signed_row_can_be_left_out() {
    let mut columns = Columns::signed(6, 3);
    columns.push_signed(&[0, 2, 4], &[1, -1, 1]);
    columns.push_signed(&[0, 3, 5], &[-1, 1, -1]);
    let x = [5.0, 2.0];
    let mut y = [0.0; 6];
    columns.product(&x, &mut y).expect("shapes fit");
    let rows = Rows { rows: 3, width: 2 };
    let residual = left_out::residual(&columns, rows, &y, None, |part| {
        let mut seen = vec![0.0; part.columns.counters()];
        part.columns.product(&x, &mut seen)?;
        assert_eq!(seen, part.y);
        Ok::<_, Error>(x.to_vec())
    });
    assert_eq!(residual, Ok(0.0));
}

/// As many candidates, and as much mass, as a counter of one word can have, and one more.
#[test]
fn peeling_at_the_end_of_a_range() {
    for keys in [65_535u32, 65_536] {
        for largest in [i64::from(u32::MAX), i64::from(u32::MAX) + 1] {
            // Two keys share a counter of the first row.
            let mut columns = Columns::ones(4 * keys as usize, 4);
            for key in 0..keys {
                columns.push(&[key / 2, keys + key, 2 * keys + key, 3 * keys + key]);
            }
            let count = |key: u32| if key == keys / 2 { largest - 1 } else { 1 };
            let mut y = vec![0; columns.counters()];
            for key in 0..keys {
                columns.indices(ColumnId(key)).iter().for_each(|&at| y[at as usize] += count(key));
            }
            let peeled = peeling::peel(&columns, None, &y).expect("valid input");
            assert!(peeled.is_complete() && peeled.remaining().iter().all(|&left| left == 0));
            assert!(peeled.values().into_iter().eq((0..keys).map(|key| Some(count(key)))), "{keys}, {largest}");
        }
    }
}
