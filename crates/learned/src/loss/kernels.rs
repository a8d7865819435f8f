//! The sparse products of a bucket, and what stands between them: rows of `LANES` samples, one row
//! per key.

use crate::division::Chunk;
use crate::kernels::vectorised;
use crate::prepared::PreparedColumns;
use crate::transform::Transform;

/// The values of key `i` of the chunk's bucket `b`.
#[inline(always)]
fn row<'a, const LANES: usize>(values: &'a [f32], chunk: &Chunk, b: usize, i: usize) -> &'a [f32; LANES] {
    values[i * chunk.stride + b * LANES..].first_chunk().expect("a row of the chunk")
}

#[inline(always)]
fn row_mut<'a, const LANES: usize>(values: &'a mut [f32], chunk: &Chunk, b: usize, i: usize) -> &'a mut [f32; LANES] {
    values[i * chunk.stride + b * LANES..].first_chunk_mut().expect("a row of the chunk")
}

/// The column of one key: counters, and coefficients unless all are one.
#[inline(always)]
fn column<'a>(system: &'a PreparedColumns<'_>, key: usize) -> (&'a [u32], Option<&'a [f32]>) {
    let entries = key * system.degree..(key + 1) * system.degree;
    (&system.positions[entries.clone()], system.coefficients.get(entries))
}

/// `product += a_k · values`, for the column `a_k` of one key.
///
/// Key after key beats entry after entry (whose counters would stay in the second-level cache): the
/// values are in registers, and loading them once per entry costs more than the misses.
#[inline(always)]
fn scatter<const LANES: usize>(
    system: &PreparedColumns<'_>,
    key: usize,
    values: &[f32; LANES],
    product: &mut [[f32; LANES]],
) {
    let (indices, coefficients) = column(system, key);
    match coefficients {
        None => {
            for &at in indices {
                let sum = &mut product[at as usize];
                for s in 0..LANES {
                    sum[s] += values[s];
                }
            }
        }
        Some(coefficients) => {
            for (&at, c) in indices.iter().zip(coefficients) {
                let sum = &mut product[at as usize];
                for s in 0..LANES {
                    sum[s] += c * values[s];
                }
            }
        }
    }
}

/// `start + a_k · residual`, for the column `a_k` of one key.
#[inline(always)]
fn gather<const LANES: usize>(
    system: &PreparedColumns<'_>,
    key: usize,
    residual: &[[f32; LANES]],
    start: &[f32; LANES],
) -> [f32; LANES] {
    let (indices, coefficients) = column(system, key);
    let mut sum = *start;
    match coefficients {
        None => {
            for &at in indices {
                let r = &residual[at as usize];
                for s in 0..LANES {
                    sum[s] += r[s];
                }
            }
        }
        Some(coefficients) => {
            for (&at, c) in indices.iter().zip(coefficients) {
                let r = &residual[at as usize];
                for s in 0..LANES {
                    sum[s] += c * r[s];
                }
            }
        }
    }
    sum
}

vectorised! {
    /// `product += A x` for one bucket. Returns the sums of `x` over all keys and of the clamped
    /// `x` over hot ones.
    fn measure<const LANES: usize>(
        system: &PreparedColumns<'_>, chunk: &Chunk, b: usize, outputs: &[f32], smallest: &[f32; LANES], product: &mut [f32],
    ) -> ([f32; LANES], [f32; LANES]) {
        let product = product.as_chunks_mut().0;
        let mut all = [0.0; LANES];
        let mut hot = [0.0; LANES];
        for (i, key) in chunk.keys_of(b).enumerate() {
            let x = row::<LANES>(outputs, chunk, b, i);
            scatter(system, key, x, product);
            for s in 0..LANES {
                all[s] += x[s];
            }
            if system.hot[key] {
                for s in 0..LANES {
                    hot[s] += x[s].max(smallest[s]);
                }
            }
        }
        (all, hot)
    }
}

vectorised! {
    /// `product += A z` for one bucket.
    fn measure_transformed<const LANES: usize>(
        system: &PreparedColumns<'_>, chunk: &Chunk, b: usize, outputs: &[f32], transform: &Transform<LANES>, raised: &[u32],
        product: &mut [f32],
    ) {
        let product = product.as_chunks_mut().0;
        for (i, key) in chunk.keys_of(b).enumerate() {
            let z = transform.apply(row(outputs, chunk, b, i), system.hot[key], raised[key]);
            scatter(system, key, &z, product);
        }
    }
}

vectorised! {
    /// Turns `A x` into `factor · (A x - y)`; returns the sums of squares.
    fn residual<const LANES: usize>(product: &mut [f32], counters: &[f32], factor: &[f32; LANES]) -> [f32; LANES] {
        let mut squares = [0.0; LANES];
        for (p, y) in product.as_chunks_mut::<LANES>().0.iter_mut().zip(counters.as_chunks::<LANES>().0) {
            for s in 0..LANES {
                let difference = p[s] - y[s];
                squares[s] += difference * difference;
                p[s] = difference * factor[s];
            }
        }
        squares
    }
}

vectorised! {
    /// `1 / scale` of each sample; 0 where the scale is.
    fn inverse_scales<const LANES: usize>(counters: &[f32], rows: usize) -> [f32; LANES] {
        let mut scale = [f32::INFINITY; LANES];
        for r in 0..rows {
            let mut max = [0.0f32; LANES];
            for c in counters.as_chunks::<LANES>().0.iter().skip(r).step_by(rows) {
                for s in 0..LANES {
                    max[s] = max[s].max(c[s].abs());
                }
            }
            for s in 0..LANES {
                scale[s] = scale[s].min(max[s]);
            }
        }
        scale.map(|s| if s > 0.0 { 1.0 / s } else { 0.0 })
    }
}

vectorised! {
    /// Multiplies every row by `factor`.
    fn multiply_rows<const LANES: usize>(values: &mut [f32], factor: &[f32; LANES]) {
        for row in values.as_chunks_mut::<LANES>().0 {
            for s in 0..LANES {
                row[s] *= factor[s];
            }
        }
    }
}

/// What [`equivariant`] compares with.
pub(crate) struct Equivariant<'a, const LANES: usize> {
    pub(crate) transform: &'a Transform<LANES>,
    pub(crate) unit: &'a [f32; LANES],
    pub(crate) factor: &'a [f32; LANES],
    pub(crate) raised: &'a [u32],
    pub(crate) outputs: &'a [f32],
}

vectorised! {
    /// Turns `D(A z)` in `values` into the gradient by its logits; returns the bucket's share of
    /// the loss.
    fn equivariant<const LANES: usize>(
        system: &PreparedColumns<'_>, chunk: &Chunk, b: usize, with: &Equivariant<'_, LANES>, values: &mut [f32],
    ) -> f64 {
        let keys = chunk.keys_of(b);
        let mut squares = [0.0; LANES];
        for (i, key) in keys.clone().enumerate() {
            let z = with.transform.apply(row(with.outputs, chunk, b, i), system.hot[key], with.raised[key]);
            let v = row_mut::<LANES>(values, chunk, b, i);
            for s in 0..LANES {
                let difference = v[s] - z[s] * with.unit[s];
                squares[s] += difference * difference;
                v[s] = difference * with.factor[s] * v[s] * (1.0 - v[s]);
            }
        }
        for i in keys.len()..chunk.rows {
            row_mut::<LANES>(values, chunk, b, i).fill(0.0);
        }
        // The factor is the derivative's, twice the mean's.
        squares.iter().zip(with.factor).map(|(q, f)| 0.5 * f64::from(*q) * f64::from(*f)).sum()
    }
}

vectorised! {
    /// The gradient by the logits of `D(y)`: measurement (`Aᵀ residual`) and sparsity (`pull`).
    fn consistent<const LANES: usize>(
        system: &PreparedColumns<'_>, chunk: &Chunk, b: usize, outputs: &[f32], residual: &[f32], pull: &[f32; LANES],
        by_logits: &mut [f32],
    ) {
        let keys = chunk.keys_of(b);
        let residual = residual.as_chunks().0;
        for (i, key) in keys.clone().enumerate() {
            let by_x = gather(system, key, residual, pull);
            let x = row::<LANES>(outputs, chunk, b, i);
            let out = row_mut::<LANES>(by_logits, chunk, b, i);
            for s in 0..LANES {
                out[s] = by_x[s] * x[s] * (1.0 - x[s]);
            }
        }
        for i in keys.len()..chunk.rows {
            row_mut::<LANES>(by_logits, chunk, b, i).fill(0.0);
        }
    }
}
