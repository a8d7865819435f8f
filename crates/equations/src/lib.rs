//! Solvers for the linear system `y = A x` that the counters of a sketch form.
//!
//! A linear sketch is a matrix `A` (Theorem 1 of the paper). Each key is a column, which lists the
//! counters that the key touches. Each counter is an equation: the sum of its keys. Estimating the
//! counts means solving `y = A x`, usually with far more keys than counters, so the result depends
//! on the assumptions of the solver:
//!
//! | solver | takes | finds | use it for |
//! |---|---|---|---|
//! | [`peeling`] | ones, whole counters | the exact counts of what can be told | sparse systems, before EM |
//! | [`em`](mod@em) | ones, `y >= 0` | `x >= 0` near the start | the default |
//! | [`map`](mod@map) | ones in rows | one linear shrinkage, no iteration | a quick look |
//! | [`lsmr`](mod@lsmr), [`lsqr`](mod@lsqr) | any coefficients | the least-squares `x` of least length | signed counters |
//! | [`omp`](mod@omp) | any coefficients | a few columns that explain most | few heavy keys |
//!
//! [`sparse`] finds the keys that can have mass at all. [`left_out`] compares solvers without
//! ground truth. This crate does not depend on any sketch: the caller fills the [`Columns`].
//!
//! Every result depends on the input alone, to the last bit: work is cut up by the size of the
//! system, never by the number of threads, and sums are added in a fixed order.
//!
//! ```
//! use ucl_equations::{Columns, Workspace, em, peeling};
//!
//! let mut columns = Columns::ones(6, 2); // 2 rows of 3 counters
//! for key in [[0, 3], [0, 4], [1, 4], [1, 5], [2, 5], [2, 4]] {
//!     columns.push(&key);
//! }
//! let y = [10, 7, 5, 9, 6, 7]; // of 9, 1, 2, 5, 2, 3
//! let peeled = peeling::peel(&columns, None, &y)?;
//! assert_eq!(peeled.values()[..2], [Some(9), Some(1)]); // exact; the other four form a cycle
//! let mut x = [0.0; 6];
//! peeled.then_em(&columns, None, &em::Options::default(), &mut Workspace::default(), &mut x)?;
//! assert!((x.iter().sum::<f64>() - 22.0).abs() < 1e-4);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

mod bidiagonal;
mod cholesky;
mod columns;
mod dense;
pub mod em;
mod error;
mod info;
pub mod left_out;
pub mod lsmr;
pub mod lsqr;
pub mod map;
mod multiplicative;
pub mod omp;
pub mod peeling;
mod products;
mod rows;
pub mod sparse;

pub use bidiagonal::LeastSquaresOptions;
pub use columns::{ColumnId, Columns};
pub use error::Error;
pub use info::{Info, Stop};
pub use multiplicative::{MultiplicativeOptions, Precision, Workspace};
pub use peeling::Peeling;
pub use rows::Rows;
