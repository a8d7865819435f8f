//! Refined: EM that starts from what the network learned.
//!
//! With fewer counters than keys many `x` solve `y = A x`, and EM reaches the one nearest to where it starts. Started from
//! ones it knows no key from another; the network's output knows, but does not quite solve the equations. Each is the
//! better half on some streams (the network where frequencies follow the order of the keys' reports, EM where they do not),
//! so the start is between the two: the geometric mean of EM from ones and EM from the network's output. It needs no
//! knob, and no ground truth to set one.

use ucl_equations::{ColumnId, Workspace, em};

use super::{DecodeError, System};

/// Iterations from the network's output, and from the mean of the two.
const ITERATIONS: usize = 50;
/// Nothing may start at zero, for it would stay there.
const LEAST: f64 = 1e-3;

/// Estimates every column, from the network's estimates.
pub(crate) fn refine(
    system: &System<'_>,
    learned: &[f64],
    options: &em::Options,
    workspace: &mut Workspace,
) -> Result<Vec<f64>, DecodeError> {
    let (columns, y) = (system.columns, system.counters);
    let upper = |column: u32| {
        let smallest = |least: f64, &at: &u32| least.min(y[at as usize]);
        columns.indices(ColumnId(column)).iter().fold(f64::INFINITY, smallest)
    };
    let start: Vec<f64> = (0u32..).zip(learned).map(|(column, &x)| x.max(LEAST).min(upper(column))).collect();
    let short = em::Options { iterations: ITERATIONS, ..*options };
    let mut from_ones = vec![0.0; columns.len()];
    em::em(columns, y, None, options, workspace, &mut from_ones)?;
    let mut from_learned = vec![0.0; columns.len()];
    em::em(columns, y, Some(&start), &short, workspace, &mut from_learned)?;
    let between: Vec<f64> = from_ones.iter().zip(&from_learned).map(|(a, b)| (a * b).sqrt()).collect();
    let mut x = vec![0.0; columns.len()];
    em::em(columns, y, Some(&between), &short, workspace, &mut x)?;
    Ok(x)
}
