//! Bucket number to scale and shift, by which the shared feature becomes the bucket's own.
//!
//! ```text
//! i -> sinusoidal(h) -> SiLU -> Linear(h, neck) SiLU Linear(neck, 2h) = (scale_i, shift_i)
//! sinusoidal(i) = [sin(i·f_0) .. sin(i·f_(h/2-1)), cos(i·f_0) ..],   f_j = 10000^(-j / (h/2 - 1))
//! ```
//! Sinusoids tell any number of buckets apart with no parameter of their own, so new buckets need
//! none (Ho et al., 2020, use the same for the time steps of a diffusion model).

use std::borrow::Cow;
use std::ops::Range;

use super::parameters::{BucketLayers, Layout};
use crate::kernels::{sigmoid, vectorised};
use crate::matmul::{Into, View, ViewMut, matmul};

/// `SiLU(sinusoidal(i))` of the first buckets, `buckets × h`. It depends on the bucket's number
/// alone, and its sines would take longer than all the rest of decoding, so it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    hidden: usize,
    values: Vec<f32>,
}

impl Codes {
    pub(crate) fn new(hidden: usize) -> Self {
        Self { hidden, values: Vec::new() }
    }

    /// Makes sure that the first `buckets` are there.
    pub(crate) fn grow(&mut self, buckets: usize) {
        let have = self.values.len() / self.hidden;
        self.values.extend((have..buckets).flat_map(|i| code(i, self.hidden)));
    }

    /// The codes of some buckets, computed where not kept.
    fn of(&self, buckets: Range<usize>) -> Cow<'_, [f32]> {
        match self.values.get(buckets.start * self.hidden..buckets.end * self.hidden) {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(buckets.flat_map(|i| code(i, self.hidden)).collect()),
        }
    }
}

/// Activations for the first buckets, bucket-major: row = bucket.
#[derive(Default)]
pub(crate) struct Embedding {
    neck: Vec<f32>,
    activated: Vec<f32>,
    /// Scale and shift of each bucket, `buckets × 2h`.
    pub(crate) modulation: Vec<f32>,
}

impl Embedding {
    /// Fills `modulation` for the first `buckets` buckets.
    pub(crate) fn forward(&mut self, layout: &Layout, parameters: &[f32], codes: &Codes, buckets: usize) {
        self.resize(&layout.bucket, buckets);
        for (group, block) in groups(layout, buckets) {
            self.forward_group(&layout.bucket, &parameters[layout.len(block)..], codes, group.clone(), group.start);
        }
    }

    /// Scale and shift of `buckets`, which all use the parameters `block`.
    pub(crate) fn modulation_of(layout: &Layout, block: &[f32], codes: &Codes, buckets: Range<usize>) -> Vec<f32> {
        let mut embedding = Self::default();
        embedding.resize(&layout.bucket, buckets.len());
        embedding.forward_group(&layout.bucket, block, codes, buckets, 0);
        embedding.modulation
    }

    fn resize(&mut self, layers: &BucketLayers, buckets: usize) {
        let [first, second] = &layers.embed;
        self.neck.resize(buckets * first.outputs, 0.0);
        self.activated.resize(buckets * first.outputs, 0.0);
        self.modulation.resize(buckets * second.outputs, 0.0);
    }

    /// Buckets that use the same parameters; `row` is where their activations begin.
    fn forward_group(
        &mut self,
        layers: &BucketLayers,
        block: &[f32],
        codes: &Codes,
        buckets: Range<usize>,
        row: usize,
    ) {
        let [first, second] = &layers.embed;
        let count = buckets.len();
        let neck = &mut self.neck[row * first.outputs..][..count * first.outputs];
        let activated = &mut self.activated[row * first.outputs..][..count * first.outputs];
        let modulation = &mut self.modulation[row * second.outputs..][..count * second.outputs];
        let codes = codes.of(buckets);
        let inputs = View::new(&codes, count, first.inputs);
        matmul(ViewMut::new(neck, count, first.outputs), Into::Replace, inputs, first.weight(block).transposed());
        add_bias_silu(neck, activated, first.bias(block));
        let activated = View::new(activated, count, second.inputs);
        let weight = second.weight(block).transposed();
        matmul(ViewMut::new(modulation, count, second.outputs), Into::Replace, activated, weight);
        add_bias_rows(modulation, second.bias(block));
    }

    /// Adds to `gradients` what the gradient by the modulation (`buckets × 2h`) means for the
    /// parameters.
    pub(crate) fn backward(
        &self,
        layout: &Layout,
        parameters: &[f32],
        codes: &Codes,
        by_modulation: &[f32],
        gradients: &mut [f32],
    ) {
        let [first, second] = &layout.bucket.embed;
        let buckets = by_modulation.len() / second.outputs;
        for (group, block) in groups(layout, buckets) {
            let from = group.start;
            let count = group.len();
            let parameters = &parameters[layout.len(block)..];
            let gradients = &mut gradients[layout.len(block)..];
            let by_modulation = &by_modulation[from * second.outputs..][..count * second.outputs];
            let activated = &self.activated[from * first.outputs..][..count * first.outputs];
            let neck = &self.neck[from * first.outputs..][..count * first.outputs];
            let by_output = View::new(by_modulation, count, second.outputs);

            let (weight, bias) = second.split_mut(gradients);
            let input = View::new(activated, count, second.inputs);
            matmul(ViewMut::new(weight, second.outputs, second.inputs), Into::Add, by_output.transposed(), input);
            add_column_sums(bias, by_modulation);

            let mut by_neck = vec![0.0; neck.len()];
            let by_neck_view = ViewMut::new(&mut by_neck, count, second.inputs);
            matmul(by_neck_view, Into::Replace, by_output, second.weight(parameters));
            silu_backward(&mut by_neck, neck);
            let (weight, bias) = first.split_mut(gradients);
            let codes = codes.of(group);
            let input = View::new(&codes, count, first.inputs);
            let by_output = View::new(&by_neck, count, first.outputs).transposed();
            matmul(ViewMut::new(weight, first.outputs, first.inputs), Into::Add, by_output, input);
            add_column_sums(bias, &by_neck);
        }
    }
}

/// Runs of buckets that use the same parameters, with the number of their parameter block.
fn groups(layout: &Layout, buckets: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let size = if layout.shared { buckets.max(1) } else { 1 };
    (0..buckets).step_by(size).map(move |from| (from..(from + size).min(buckets), layout.block_of(from)))
}

/// The code of one bucket number: sines then cosines, through SiLU.
fn code(bucket: usize, hidden: usize) -> impl Iterator<Item = f32> {
    let half = hidden / 2;
    let angle = move |j: usize| bucket as f64 * (-(10_000f64.ln()) * j as f64 / (half - 1) as f64).exp();
    let sinusoidal = (0..hidden).map(move |j| if j < half { angle(j).sin() } else { angle(j - half).cos() });
    sinusoidal.map(|v| (v / (1.0 + (-v).exp())) as f32)
}

vectorised! {
    /// `v = v + bias`; `activated = v · sigmoid(v)`.
    fn add_bias_silu(values: &mut [f32], activated: &mut [f32], bias: &[f32]) {
        for (row, activated) in values.chunks_exact_mut(bias.len()).zip(activated.chunks_exact_mut(bias.len())) {
            for ((v, a), b) in row.iter_mut().zip(activated).zip(bias) {
                *v += b;
                *a = *v * sigmoid::<FMA>(*v);
            }
        }
    }
}

vectorised! {
    fn silu_backward(gradient: &mut [f32], values: &[f32]) {
        for (g, &v) in gradient.iter_mut().zip(values) {
            let s = sigmoid::<FMA>(v);
            *g *= s * (1.0 + v * (1.0 - s));
        }
    }
}

vectorised! {
    fn add_bias_rows(values: &mut [f32], bias: &[f32]) {
        for row in values.chunks_exact_mut(bias.len()) {
            for (v, b) in row.iter_mut().zip(bias) {
                *v += b;
            }
        }
    }
}

fn add_column_sums(sums: &mut [f32], values: &[f32]) {
    for row in values.chunks_exact(sums.len()) {
        crate::kernels::add_assign(sums, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_same_kept_or_computed() {
        let (mut kept, none) = (Codes::new(8), Codes::new(8));
        kept.grow(2);
        kept.grow(5);
        assert_eq!(kept.of(1..5), none.of(1..5));
        assert_eq!(kept.of(3..9), none.of(3..9));
        assert_ne!(kept.of(3..4), kept.of(4..5));
        // Bucket 0: sines are 0, cosines 1; SiLU(1) = 1 / (1 + 1/e).
        let silu = 1.0 / (1.0 + (-1f32).exp());
        assert!(
            kept.of(0..1).iter().zip([0.0, 0.0, 0.0, 0.0, silu, silu, silu, silu]).all(|(a, b)| (a - b).abs() < 1e-6)
        );
    }
}
