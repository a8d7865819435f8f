//! Refined: EM that starts from what the network learned.
//!
//! With fewer counters than keys many `x` solve `y = A x`, and EM reaches the one nearest to where
//! it starts. Started from ones it knows no key from another; the network's output knows, but does
//! not quite solve the equations. So:
//!
//! 1. the network's estimates, put within the bounds, are the start;
//! 2. what is known of each key is taken off the counters;
//! 3. EM shares out the rest in proportion to the start.
//!
//! The start is not lessened by what is known: a key that was large so far is likely to have more
//! of the rest, too. That is also why a known lower bound counts as a start where the network's
//! guess is below it. It needs no ground truth. Mean absolute errors on the paper's shapes at 64KB,
//! one seed (`ucl eval --method ucl-refined,ucl-em,ucl-learned --interval 1000 --shape
//! slots=3000,width=1024,depth=4,bloom-bits=80000,bloom-hashes=8`):
//!
//! | | refined | EM | learned |
//! |---|---|---|---|
//! | Retail | 9.6 | 11.4 | 17.6 |
//! | Kosarak | 1.74 | 2.28 | 3.53 |
//! | `zipf:1.2:2000000` | 1.23 | 1.31 | 2.41 |
//! | `zipf:1.3:2000000` | 1.50 | 1.54 | 2.62 |

use ucl_equations::{ColumnId, Workspace, em};

use super::{DecodeError, LinearSystem};

/// Iterations from the network's output.
const ITERATIONS: usize = 50;
/// Nothing may start at zero, for it would stay there.
const LEAST: f64 = 0.1;

/// Estimates every column, from the network's estimates.
pub(crate) fn refine(
    system: &LinearSystem<'_>,
    learned: &[f64],
    options: &em::Options,
    workspace: &mut Workspace,
) -> Result<Vec<f64>, DecodeError> {
    let upper = |column: u32| {
        let smallest = |least: f64, &at: &u32| least.min(system.counters[at as usize]);
        system.columns.indices(ColumnId(column)).iter().fold(f64::INFINITY, smallest)
    };
    let within = |(column, (&learned, &known)): (u32, (&f64, &f64))| learned.min(upper(column)).max(known).max(LEAST);
    let start: Vec<f64> = (0u32..).zip(learned.iter().zip(system.known)).map(within).collect();
    system.em(Some(&start), &em::Options { iterations: ITERATIONS, ..*options }, workspace)
}
