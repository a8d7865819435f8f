//! Matrix products on the `gemm-f32` crate, behind views whose bounds are checked once per product.
//!
//! Every product runs on the calling thread: we split over buckets or output rows ourselves, in
//! parts fixed by the problem, so that results do not depend on the number of threads.
#![allow(unsafe_code, reason = "gemm takes raw pointers; the views below prove them in bounds")]

use rayon::prelude::*;

/// A matrix to read: element `(i, j)` at `i * row_stride + j * col_stride`.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    /// Row after row without gaps.
    pub(crate) fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// Rows `row_stride` apart.
    pub(crate) fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        Self { data, rows, cols, row_stride, col_stride: 1 }
    }

    /// The same memory read as the transpose.
    pub(crate) fn transposed(self) -> Self {
        let Self { data, rows, cols, row_stride, col_stride } = self;
        Self { data, rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride }
    }

    fn row_range(self, from: usize, rows: usize) -> Self {
        Self { data: &self.data[from * self.row_stride..], rows, ..self }
    }
}

/// A matrix to write, its columns adjacent.
pub(crate) struct ViewMut<'a> {
    data: &'a mut [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
}

impl<'a> ViewMut<'a> {
    pub(crate) fn new(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self { data, rows, cols, row_stride: cols }
    }

    pub(crate) fn strided(data: &'a mut [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        Self { data, rows, cols, row_stride }
    }
}

/// Whether a product replaces what is there or adds to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into {
    Replace,
    Add,
}

fn last_index(rows: usize, cols: usize, row_stride: usize, col_stride: usize) -> usize {
    (rows - 1) * row_stride + (cols - 1) * col_stride
}

/// `dst = a b` or `dst += a b`.
pub(crate) fn matmul(dst: ViewMut<'_>, into: Into, a: View<'_>, b: View<'_>) {
    let (m, n, k) = (dst.rows, dst.cols, a.cols);
    assert_eq!((a.rows, b.cols, b.rows), (m, n, k), "shapes of a product");
    if m == 0 || n == 0 {
        return;
    }
    assert!(k > 0, "an empty inner dimension");
    assert!(n <= dst.row_stride || m == 1, "rows of the result overlap");
    assert!(last_index(m, n, dst.row_stride, 1) < dst.data.len());
    assert!(last_index(m, k, a.row_stride, a.col_stride) < a.data.len());
    assert!(last_index(k, n, b.row_stride, b.col_stride) < b.data.len());
    // SAFETY: the three assertions above bound every element that gemm touches (strides are
    // non-negative, so the last element has the largest offset); `dst` is borrowed mutably and
    // cannot alias `a` or `b`.
    let mut multiply = |m, n, (dst_cs, dst_rs), lhs: View<'_>, rhs: View<'_>| unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            dst.data.as_mut_ptr(),
            dst_cs,
            dst_rs,
            into == Into::Add,
            lhs.data.as_ptr(),
            lhs.col_stride as isize,
            lhs.row_stride as isize,
            rhs.data.as_ptr(),
            rhs.col_stride as isize,
            rhs.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    };
    // The kernel prefers columns without gaps, and ours are the rows: it is given the transpose.
    let row_stride = dst.row_stride as isize;
    if row_stride > 1 {
        multiply(n, m, (row_stride, 1), b.transposed(), a.transposed());
    } else {
        multiply(m, n, (1, row_stride), a, b);
    }
}

/// As [`matmul`], the rows of the result split into blocks of `ROW_BLOCK` over the threads.
pub(crate) fn matmul_parallel(dst: ViewMut<'_>, into: Into, a: View<'_>, b: View<'_>) {
    /// Blocks of 32 rows lose a quarter of gemm's speed (measured on the encoder's first layer), 64
    /// nothing to speak of.
    const ROW_BLOCK: usize = 64;
    let ViewMut { data, rows, cols, row_stride } = dst;
    assert_eq!(rows, a.rows, "shapes of a product");
    data.par_chunks_mut(ROW_BLOCK * row_stride).enumerate().for_each(|(block, data)| {
        let from = block * ROW_BLOCK;
        if from < rows {
            let block_rows = ROW_BLOCK.min(rows - from);
            let dst = ViewMut { data, rows: block_rows, cols, row_stride };
            matmul(dst, into, a.row_range(from, block_rows), b);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn random(rng: &mut Rng, n: usize) -> Vec<f32> {
        (0..n).map(|_| rng.symmetric(1.0)).collect()
    }

    fn at(v: View<'_>, i: usize, j: usize) -> f32 {
        v.data[i * v.row_stride + j * v.col_stride]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn products_match_the_definition(
            m in 1usize..70, n in 1usize..40, k in 1usize..40, gap in 0usize..3,
            ta: bool, tb: bool, add: bool, seed: u64,
        ) {
            let mut rng = Rng::new(seed);
            let (a_data, b_data) = (random(&mut rng, (m + gap) * (k + gap) * 2), random(&mut rng, (n + gap) * (k + gap) * 2));
            let a = if ta { View::strided(&a_data, k, m, m + gap).transposed() } else { View::strided(&a_data, m, k, k + gap) };
            let b = if tb { View::strided(&b_data, n, k, k + gap).transposed() } else { View::strided(&b_data, k, n, n + gap) };
            let before = random(&mut rng, m * (n + gap));
            let into = if add { Into::Add } else { Into::Replace };
            let (mut one, mut split) = (before.clone(), before.clone());
            matmul(ViewMut::strided(&mut one, m, n, n + gap), into, a, b);
            matmul_parallel(ViewMut::strided(&mut split, m, n, n + gap), into, a, b);
            for i in 0..m {
                for j in 0..n + gap {
                    let at_ij = i * (n + gap) + j;
                    let mut want = if add || j >= n { f64::from(before[at_ij]) } else { 0.0 };
                    if j < n {
                        want += (0..k).map(|l| f64::from(at(a, i, l)) * f64::from(at(b, l, j))).sum::<f64>();
                    }
                    prop_assert!((f64::from(one[at_ij]) - want).abs() < 1e-5);
                    prop_assert!((f64::from(split[at_ij]) - want).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "shapes of a product")]
    fn mismatched_shapes_are_refused() {
        let data = [0.0; 12];
        matmul(ViewMut::new(&mut [0.0; 4], 2, 2), Into::Replace, View::new(&data, 2, 3), View::new(&data, 2, 2));
    }
}
