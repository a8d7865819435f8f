//! The two products of the system: `A x` (the counters that `x` gives) and `Aᵀ y` (the sum of each
//! key's counters).
//!
//! `Aᵀ y` *gathers*: each column reads its own few counters, so columns may be shared out among
//! threads as one likes. `A x` *scatters*: columns add into counters that they share. Large systems
//! are cut into a few chunks of columns, each with sums of its own, which are added in order. How
//! many depends on the system alone, so neither product depends on the number of threads, to the
//! last bit. Small systems stay in the calling thread.
//!
//! The road not taken is an index of the entries by counter, which turns `A x` into a gather as
//! well. Its inner loop has a length the processor cannot predict: 58 µs against 41 µs for 15,000
//! keys on 4×1024 counters, and 298 µs against 69 µs for 16,000 keys on 4×9338 (one thread, f64),
//! before the 160-230 µs to build it.
//!
//! ```
//! use ucl_equations::Columns;
//!
//! let mut columns = Columns::ones(4, 2); // 2 rows of 2 counters
//! columns.push(&[0, 2]);
//! columns.push(&[0, 3]);
//! let mut y = [0.0; 4];
//! columns.product(&[5.0, 7.0], &mut y)?;
//! assert_eq!(y, [12.0, 0.0, 5.0, 7.0]);
//! let mut x = [0.0; 2];
//! columns.transposed_product(&y, &mut x)?;
//! assert_eq!(x, [17.0, 19.0]);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::columns::{Coefficients, ColumnId, Columns};
use crate::dense;
use crate::error::{Error, check_len};
use rayon::prelude::*;

/// Entries that one task gathers.
const ENTRIES_PER_GATHER: usize = 1 << 16;
/// Entries that one task scatters, at least; it also pays for sums of its own.
const ENTRIES_PER_SCATTER: usize = 1 << 17;
/// More chunks cost more sums than they save.
const MAX_SCATTERS: usize = 8;

/// Runs `$body` once for the kind of coefficients at hand, with `$at` a function from an entry's
/// position to its coefficient. For ones the multiplication disappears at compile time.
macro_rules! with_coefficients {
    ($coefficients:expr, |$at:ident| $body:expr) => {
        match $coefficients {
            Coefficients::Ones => {
                let $at = |_: usize| 1.0;
                $body
            }
            Coefficients::Signs(signs) => {
                let $at = |entry: usize| f64::from(signs[entry]);
                $body
            }
            Coefficients::Reals(reals) => {
                let $at = |entry: usize| f64::from(reals[entry]);
                $body
            }
        }
    };
}

impl Columns {
    /// Computes `out = A x`, with threads for large systems.
    ///
    /// # Errors
    /// If a slice has the wrong length.
    pub fn product(&self, x: &[f64], out: &mut [f64]) -> Result<(), Error> {
        check_len("x", self.len(), x.len())?;
        check_len("out", self.counters(), out.len())?;
        if scatters(self) == 1 {
            out.fill(0.0);
            scatter(self, x, out);
        } else {
            scatter_with(self, x, &mut Sums::default(), out, |sum, _| sum);
        }
        Ok(())
    }

    /// Computes `out = Aᵀ y`, with threads for large systems.
    ///
    /// # Errors
    /// If a slice has the wrong length.
    pub fn transposed_product(&self, y: &[f64], out: &mut [f64]) -> Result<(), Error> {
        check_len("y", self.counters(), y.len())?;
        check_len("out", self.len(), out.len())?;
        gather_with(self, y, out, |sum, _| sum);
        Ok(())
    }

    /// Returns the squared length `‖a‖₂²` of a column. Coefficients of a repeated index are added
    /// first.
    pub fn squared_norm(&self, id: ColumnId) -> f64 {
        self.inner(id, id)
    }

    /// The inner product of two columns.
    pub(crate) fn inner(&self, a: ColumnId, b: ColumnId) -> f64 {
        let mut sum = 0.0;
        for (i, &at) in self.indices(a).iter().enumerate() {
            for (j, &bt) in self.indices(b).iter().enumerate() {
                if at == bt {
                    sum += f64::from(self.coefficient(a, i)) * f64::from(self.coefficient(b, j));
                }
            }
        }
        sum
    }
}

/// `out += A x`, column after column, in this thread.
pub(crate) fn scatter(columns: &Columns, x: &[f64], out: &mut [f64]) {
    scatter_from(columns, 0, x, out);
}

/// The same for the columns from `first` on, `x` being theirs.
fn scatter_from(columns: &Columns, first: usize, x: &[f64], out: &mut [f64]) {
    let degree = columns.degree();
    with_coefficients!(columns.coefficients(), |at| match degree {
        4 => scatter_of::<4>(columns, first, x, out, at),
        _ => {
            let indices = columns.all_indices()[first * degree..].chunks_exact(degree);
            for (column, (indices, &x)) in (first..).zip(indices.zip(x)) {
                for (entry, &counter) in indices.iter().enumerate() {
                    out[counter as usize] += at(column * degree + entry) * x;
                }
            }
        }
    });
}

/// The same with the degree known at compile time.
fn scatter_of<const D: usize>(columns: &Columns, first: usize, x: &[f64], out: &mut [f64], at: impl Fn(usize) -> f64) {
    let (indices, _) = columns.all_indices().as_chunks::<D>();
    for (column, (indices, &x)) in (first..).zip(indices[first..].iter().zip(x)) {
        for (entry, &counter) in indices.iter().enumerate() {
            out[counter as usize] += at(column * D + entry) * x;
        }
    }
}

/// Into how many chunks a scatter is cut: each must be worth a task, and far more work than
/// clearing and adding its sums.
fn scatters(columns: &Columns) -> usize {
    let entries = columns.all_indices().len();
    (entries / ENTRIES_PER_SCATTER).min(entries / (4 * columns.counters().max(1))).clamp(1, MAX_SCATTERS)
}

/// Sums of the chunks of a scatter, kept from product to product.
#[derive(Default)]
pub(crate) struct Sums(Vec<f64>);

/// `out[i] = combine((A x)[i], out[i])`; returns `Σ out[i]²`. One pass does what an iteration
/// needs.
pub(crate) fn scatter_with(
    columns: &Columns,
    x: &[f64],
    sums: &mut Sums,
    out: &mut [f64],
    combine: impl Fn(f64, f64) -> f64 + Sync,
) -> f64 {
    let counters = columns.counters();
    let chunks = scatters(columns);
    let sums = &mut sums.0;
    sums.clear();
    sums.resize(counters * chunks, 0.0);
    if chunks == 1 {
        scatter(columns, x, sums);
    } else {
        let len = columns.len().div_ceil(chunks);
        let parts = sums.par_chunks_exact_mut(counters).zip(x.par_chunks(len)).enumerate();
        parts.for_each(|(chunk, (sums, x))| scatter_from(columns, chunk * len, x, sums));
    }
    let (first, others) = sums.split_at(counters);
    in_chunks(out, counters * chunks, |at, out| {
        for (counter, out) in (at..).zip(out) {
            let mut sum = first[counter];
            for other in others.chunks_exact(counters) {
                sum += other[counter];
            }
            *out = combine(sum, *out);
        }
    })
}

/// `out[k] = combine(Σ y over column k, out[k])`; returns `Σ out[k]²`.
pub(crate) fn gather_with(
    columns: &Columns,
    y: &[f64],
    out: &mut [f64],
    combine: impl Fn(f64, f64) -> f64 + Sync,
) -> f64 {
    with_coefficients!(columns.coefficients(), |at| match columns.degree() {
        4 => gather_of::<4>(columns, y, out, &at, &combine),
        degree => {
            let indices = columns.all_indices();
            in_chunks(out, indices.len(), |first, out| {
                for (column, out) in (first..).zip(out) {
                    let entries = column * degree..(column + 1) * degree;
                    let sum = entries.map(|e| at(e) * y[indices[e] as usize]).sum();
                    *out = combine(sum, *out);
                }
            })
        }
    })
}

/// The same with the degree known at compile time.
fn gather_of<const D: usize>(
    columns: &Columns,
    y: &[f64],
    out: &mut [f64],
    at: &(impl Fn(usize) -> f64 + Sync),
    combine: &(impl Fn(f64, f64) -> f64 + Sync),
) -> f64 {
    let (indices, _) = columns.all_indices().as_chunks::<D>();
    in_chunks(out, indices.len() * D, |first, out| {
        for (column, (indices, out)) in (first..).zip(indices[first..].iter().zip(out)) {
            let mut sum = 0.0;
            for (entry, &counter) in indices.iter().enumerate() {
                sum += at(column * D + entry) * y[counter as usize];
            }
            *out = combine(sum, *out);
        }
    })
}

/// Runs `work(first, chunk)` over the chunks of `out`, in threads where there is more than one, and
/// returns `Σ out²` afterwards, added chunk by chunk in order.
fn in_chunks(out: &mut [f64], entries: usize, work: impl Fn(usize, &mut [f64]) + Sync) -> f64 {
    let chunks = (entries / ENTRIES_PER_GATHER).clamp(1, 256);
    let len = out.len().div_ceil(chunks).max(1);
    let run = |(at, chunk): (usize, &mut [f64])| {
        work(at * len, chunk);
        dense::sum_of_squares(chunk)
    };
    if chunks == 1 {
        return out.chunks_mut(len).enumerate().map(run).sum();
    }
    let squares: Vec<f64> = out.par_chunks_mut(len).enumerate().map(run).collect();
    squares.iter().sum()
}
