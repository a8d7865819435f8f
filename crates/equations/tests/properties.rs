//! What holds for every system.

use proptest::prelude::*;
use ucl_equations::{
    ColumnId, Columns, LeastSquaresOptions, MultiplicativeOptions, Precision, Rows, Workspace, em, left_out, lsmr,
    lsqr, omp, peeling, sparse,
};

/// Columns of any kind, with indices anywhere, repeats included.
fn any_columns() -> impl Strategy<Value = Columns> {
    let shape = (1usize..30, 1usize..8, 0usize..40, 0..3);
    shape.prop_flat_map(|(counters, degree, keys, kind)| {
        let entry = (0..counters as u32, prop::bool::ANY, -4i8..=4);
        prop::collection::vec(prop::collection::vec(entry, degree), keys).prop_map(move |keys| {
            let mut columns = match kind {
                0 => Columns::ones(counters, degree),
                1 => Columns::signed(counters, degree),
                _ => Columns::weighted(counters, degree),
            };
            for key in keys {
                let indices: Vec<u32> = key.iter().map(|e| e.0).collect();
                match kind {
                    0 => columns.push(&indices),
                    1 => {
                        columns.push_signed(&indices, &key.iter().map(|e| if e.1 { 1 } else { -1 }).collect::<Vec<_>>())
                    }
                    _ => columns.push_weighted(&indices, &key.iter().map(|e| f32::from(e.2) / 4.0).collect::<Vec<_>>()),
                };
            }
            columns
        })
    })
}

/// Columns of ones with a count each, a fifth of them zero.
fn counts() -> impl Strategy<Value = (Columns, Vec<i64>)> {
    (1usize..60, 1usize..7, 0usize..50).prop_flat_map(|(counters, degree, keys)| {
        let key = (prop::collection::vec(0..counters as u32, degree), -20i64..80);
        prop::collection::vec(key, keys).prop_map(move |keys| {
            let mut columns = Columns::ones(counters, degree);
            let x = keys.iter().map(|(_, count)| (*count).max(0)).collect();
            keys.iter().for_each(|(indices, _)| {
                columns.push(indices);
            });
            (columns, x)
        })
    })
}

/// The same with one counter a row, as Count-Min has them: no column has a counter twice.
fn counts_by_row() -> impl Strategy<Value = (Columns, Vec<i64>)> {
    (2u32..30, 3usize..5, 0usize..50).prop_flat_map(|(width, rows, keys)| {
        let key = (prop::collection::vec(0..width, rows), -20i64..80);
        prop::collection::vec(key, keys).prop_map(move |keys| {
            let mut columns = Columns::ones(width as usize * rows, rows);
            for (indices, _) in &keys {
                let by_row: Vec<u32> = (0u32..).zip(indices).map(|(row, at)| row * width + at).collect();
                columns.push(&by_row);
            }
            (columns, keys.iter().map(|(_, count)| (*count).max(0)).collect())
        })
    })
}

fn product(columns: &Columns, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; columns.counters()];
    columns.product(x, &mut y).expect("shapes fit");
    y
}

fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 101) as f64 - 50.0).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Candidates are those with mass at all their first counters, epoch by epoch, and shrinking
    /// renames counters and nothing else.
    #[test]
    fn sparse_systems((columns, x) in counts(), known: prop::sample::Index, epochs in 1usize..=20, fewer: bool) {
        let y = |epoch: usize| -> Vec<i64> {
            let x: Vec<f64> = x.iter().map(|&x| ((x as usize + epoch) % 3) as f64).collect();
            product(&columns, &x).iter().map(|&y| y as i64).collect()
        };
        let known = known.index(columns.len() + 1);
        let degree = columns.degree();
        let entries = if fewer && degree > 1 { degree - 1 } else { degree };
        let block: Vec<_> = (0..epochs)
            .map(|epoch| {
                let y = y(epoch);
                let word = |y: &[i64]| (0..).zip(y).fold(0, |word, (bit, &y)| word | u64::from(y > 0) << bit);
                sparse::Touched::new(y.chunks(64).map(word).collect())
            })
            .collect();
        let asked = Vec::from_iter(0..epochs);
        let [all, some] = sparse::Candidates::new(&columns, entries, &block, &asked);
        let candidates = if fewer { some } else { all };
        for (epoch, touched) in block.iter().enumerate() {
        let y = y(epoch);
        let candidate = |id: &ColumnId| columns.indices(*id)[..entries].iter().all(|&at| y[at as usize] > 0);
        let want: Vec<ColumnId> = (0..known as u32).map(ColumnId).filter(candidate).collect();
        prop_assert_eq!(candidates.of_epoch(epoch, known), &want);
        let mut shrinker = sparse::Shrinker::default();
        for _ in 0..2 {
            let shrunk = shrinker.shrink(&columns, entries, touched, &want);
            prop_assert_eq!(shrunk.columns.counters(), shrunk.counters.len());
            for (at, &id) in (0..).zip(&want) {
                let former: Vec<u32> =
                    shrunk.columns.indices(ColumnId(at)).iter().map(|&i| shrunk.counters[i as usize]).collect();
                prop_assert_eq!(&former, &columns.indices(id)[..entries]);
            }
            let with_mass = (0..y.len() as u32).filter(|&at| y[at as usize] > 0);
            prop_assert_eq!(&shrunk.counters, &with_mass.collect::<Vec<_>>());
            let number = |at: &u32| shrunk.counters.iter().position(|former| former == at);
            prop_assert!((0..y.len() as u32).all(|at| shrunk.number(at) == number(&at)));
        }
        }
    }

    /// Coefficients are quarters and vectors whole numbers, so the two sides are equal, not just
    /// near.
    #[test]
    fn the_products_are_adjoint(columns in any_columns()) {
        let (x, y) = (wave(columns.len()), wave(columns.counters()));
        let mut back = vec![0.0; columns.len()];
        columns.transposed_product(&y, &mut back).expect("shapes fit");
        prop_assert_eq!(dot(&product(&columns, &x), &y), dot(&x, &back));
    }

    #[test]
    fn a_subset_has_the_same_columns(columns in any_columns(), picks in prop::collection::vec(0u32..40, 0..20)) {
        let ids: Vec<ColumnId> = picks.into_iter().filter(|&k| (k as usize) < columns.len()).map(ColumnId).collect();
        let subset = columns.subset(&ids).expect("known columns");
        prop_assert_eq!(subset.len(), ids.len());
        for (k, &id) in (0..).map(ColumnId).zip(&ids) {
            prop_assert_eq!(subset.indices(k), columns.indices(id));
            for entry in 0..columns.degree() {
                prop_assert_eq!(subset.coefficient(k, entry), columns.coefficient(id, entry));
            }
        }
    }

    /// `Σ x` is the mass of the counters with a live key, over the degree; nothing is negative or
    /// NaN.
    #[test]
    fn em_keeps_the_total((columns, x) in counts(), iterations in 1usize..40) {
        let y = product(&columns, &x.iter().map(|&x| x as f64).collect::<Vec<_>>());
        let options = MultiplicativeOptions { iterations, precision: Precision::Double, tolerance: None };
        let mut found = vec![f64::NAN; columns.len()];
        em::em(&columns, &y, None, &options, &mut Workspace::default(), &mut found).expect("valid input");
        prop_assert!(found.iter().all(|&x| x >= 0.0));
        let total: f64 = x.iter().sum::<i64>() as f64;
        prop_assert!((found.iter().sum::<f64>() - total).abs() <= 1e-9 * total);
        for (id, &x) in (0..).map(ColumnId).zip(&found) {
            prop_assert!(columns.indices(id).iter().all(|&i| y[i as usize] > 0.0) || x == 0.0);
        }
    }

    /// The truth is a fixed point.
    #[test]
    fn the_truth_stays((columns, x) in counts()) {
        let x: Vec<f64> = x.iter().map(|&x| x as f64).collect();
        let y = product(&columns, &x);
        let options = MultiplicativeOptions { iterations: 30, precision: Precision::Double, tolerance: None };
        let mut found = vec![f64::NAN; columns.len()];
        let info = em::em(&columns, &y, Some(&x), &options, &mut Workspace::default(), &mut found).expect("valid");
        prop_assert!(info.residual <= 1e-12);
        prop_assert!(found.iter().zip(&x).all(|(a, b)| (a - b).abs() <= 1e-9 * b));
    }

    /// Candidates give what a compact copy gives, to the last bit, whatever the workspace saw
    /// before.
    #[test]
    fn candidates_are_a_subset((columns, x) in counts(), skip in 2usize..5) {
        let ids: Vec<ColumnId> = (0..columns.len() as u32).step_by(skip).map(ColumnId).collect();
        let subset = columns.subset(&ids).expect("known columns");
        let x: Vec<f64> = ids.iter().map(|id| x[id.0 as usize] as f64).collect();
        let y = product(&subset, &x);
        let options = MultiplicativeOptions { iterations: 10, ..Default::default() };
        let mut workspace = Workspace::default();
        let (mut a, mut b) = (vec![0.0; ids.len()], vec![0.0; ids.len()]);
        let first = em::em(&subset, &y, None, &options, &mut workspace, &mut a).expect("valid input");
        em::em(&columns, &vec![1.0; y.len()], None, &options, &mut workspace, &mut vec![0.0; columns.len()]).expect("valid");
        let second = em::em_among(&columns, &ids, &y, None, &options, &mut workspace, &mut b).expect("valid input");
        prop_assert_eq!(a, b);
        prop_assert_eq!(first, second);
    }

    /// What is peeled is exact, and what remains is what the unsolved keys hold.
    #[test]
    fn peeling_is_exact((columns, x) in prop_oneof![counts(), counts_by_row()]) {
        let y: Vec<i64> = product(&columns, &x.iter().map(|&x| x as f64).collect::<Vec<_>>()).iter().map(|&y| y as i64).collect();
        let peeled = peeling::peel(&columns, None, &y).expect("valid input");
        prop_assert_eq!((peeled.refused(), peeled.unexplained()), (0, 0));
        let mut left = vec![0.0; x.len()];
        for (k, value) in peeled.values().iter().enumerate() {
            match value {
                Some(value) => prop_assert_eq!(*value, x[k]),
                None => left[k] = x[k] as f64,
            }
        }
        let remaining: Vec<f64> = peeled.remaining().iter().map(|&y| y as f64).collect();
        prop_assert_eq!(product(&columns, &left), remaining);
        let open = left.iter().zip(peeled.values()).filter(|(_, v)| v.is_none()).count();
        prop_assert_eq!(open, peeled.unsolved().len());
        let mut all = vec![f64::NAN; x.len()];
        peeled.then_em(&columns, None, &em::Options::default(), &mut Workspace::default(), &mut all).expect("valid input");
        let total: f64 = x.iter().sum::<i64>() as f64;
        prop_assert!((all.iter().sum::<f64>() - total).abs() <= 1e-4 * total);
        for (value, out) in peeled.values().iter().zip(&all) {
            prop_assert!(value.is_none_or(|value| value as f64 == *out));
        }
    }

    /// Keys that are not among the candidates: no panic, no negative counter, and the mass adds up.
    #[test]
    fn peeling_with_lost_keys_keeps_the_mass((columns, x) in prop_oneof![counts(), counts_by_row()], lost in 1usize..4) {
        let y: Vec<i64> = product(&columns, &x.iter().map(|&x| x as f64).collect::<Vec<_>>()).iter().map(|&y| y as i64).collect();
        let ids: Vec<ColumnId> = (0..columns.len() as u32).skip(lost).map(ColumnId).collect();
        let peeled = peeling::peel(&columns, Some(&ids), &y).expect("valid input");
        prop_assert!(peeled.remaining().iter().all(|&y| y >= 0));
        let solved: i64 = peeled.values().iter().flatten().sum();
        let mass: i64 = peeled.remaining().iter().sum::<i64>() + solved * columns.degree() as i64;
        prop_assert_eq!(mass, y.iter().sum::<i64>());
    }

    /// Counters that need more than 32 bits are peeled as small ones are.
    #[test]
    fn peeling_knows_no_size((columns, x) in prop_oneof![counts(), counts_by_row()], lost in 0usize..4) {
        // With no factor in common with how often a column can have a counter: what can be divided
        // stays the same.
        const LARGE: i64 = (1 << 33) + 17;
        let y: Vec<i64> = product(&columns, &x.iter().map(|&x| x as f64).collect::<Vec<_>>()).iter().map(|&y| y as i64).collect();
        let ids: Vec<ColumnId> = (0..columns.len() as u32).skip(lost).map(ColumnId).collect();
        let peel = |y: Vec<i64>| peeling::peel(&columns, Some(&ids), &y).expect("valid input");
        let (small, large) = (peel(y.clone()), peel(y.iter().map(|y| y * LARGE).collect()));
        prop_assert_eq!(small.values().iter().map(|value| value.map(|value| value * LARGE)).collect::<Vec<_>>(), large.values());
        prop_assert_eq!(small.remaining().iter().map(|mass| mass * LARGE).collect::<Vec<_>>(), large.remaining());
        prop_assert_eq!(small.unsolved(), large.unsolved());
        prop_assert_eq!((small.refused(), small.unexplained() * i128::from(LARGE)), (large.refused(), large.unexplained()));
    }

    /// Both find the least-squares solution: the residual is orthogonal to every column.
    #[test]
    fn least_squares_is_least_squares(columns in any_columns()) {
        let y = wave(columns.counters());
        let options = LeastSquaresOptions { atol: 1e-12, btol: 1e-12, condition_limit: 0.0, iterations: Some(2000), ..Default::default() };
        for solve in [lsqr::lsqr, lsmr::lsmr] {
            let mut x = vec![f64::NAN; columns.len()];
            solve(&columns, &y, &options, &mut x).expect("valid input");
            let left: Vec<f64> = product(&columns, &x).iter().zip(&y).map(|(z, y)| y - z).collect();
            let mut gradient = vec![0.0; columns.len()];
            columns.transposed_product(&left, &mut gradient).expect("shapes fit");
            prop_assert!(gradient.iter().all(|g| g.abs() < 1e-5), "{gradient:?}");
        }
    }

    /// With as many atoms as columns OMP is least squares, too.
    #[test]
    fn omp_with_all_atoms_is_least_squares(columns in any_columns()) {
        let y = wave(columns.counters());
        let mut x = vec![f64::NAN; columns.len()];
        let options = omp::Options { atoms: Some(columns.len()), tolerance: 0.0 };
        omp::omp(&columns, &y, &options, &mut x).expect("valid input");
        let left: Vec<f64> = product(&columns, &x).iter().zip(&y).map(|(z, y)| y - z).collect();
        let mut gradient = vec![0.0; columns.len()];
        columns.transposed_product(&left, &mut gradient).expect("shapes fit");
        prop_assert!(gradient.iter().all(|g| g.abs() < 1e-7), "{gradient:?}");
    }

    /// An estimator that knows the truth has residual 0 on every row.
    #[test]
    fn the_truth_predicts_the_row_left_out(keys in prop::collection::vec((prop::array::uniform3(0u32..5), 0u32..50), 1..30)) {
        let rows = Rows { rows: 3, width: 5 };
        let mut columns = Columns::ones(15, 3);
        for (hashes, _) in &keys {
            columns.push(&[hashes[0], 5 + hashes[1], 10 + hashes[2]]);
        }
        let x: Vec<f64> = keys.iter().map(|(_, count)| f64::from(*count)).collect();
        let y = product(&columns, &x);
        let mut seen = Vec::new();
        let residual = left_out::residual(&columns, rows, &y, None, |part| {
            seen.push(part.row);
            let predicted = product(part.columns, &x);
            assert_eq!(predicted, part.y);
            Ok::<_, ucl_equations::Error>(x.clone())
        });
        prop_assert_eq!(residual, Ok(0.0));
        prop_assert!(seen == [0, 1, 2] || y.iter().all(|&y| y == 0.0));
    }
}
