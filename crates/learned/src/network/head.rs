//! Modulated feature to frequencies:
//! `feature · (1 + scale_i) + shift_i -> Linear(h, neck) Linear(neck, L) sigmoid`.
//!
//! Works on a chunk of buckets at a time; columns are (bucket of the chunk, sample).

use super::parameters::BucketLayers;
use crate::division::{Chunk, Division};
use crate::kernels::{add_bias, add_row_sums, sigmoid_rows, vectorised};
use crate::matmul::{Into, View, ViewMut, matmul};

/// The head's view of one batch: weights of the block in use and what it modulates.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) layers: &'a BucketLayers,
    /// The bucket block.
    pub(crate) block: &'a [f32],
    /// `h × lanes`.
    pub(crate) feature: &'a [f32],
    /// Scale and shift of all buckets, `buckets × 2h`.
    pub(crate) modulation: &'a [f32],
    pub(crate) lanes: usize,
}

/// Buffers for one chunk.
pub(crate) struct Scratch {
    /// Modulated features, `h × stride`.
    modulated: Vec<f32>,
    by_modulated: Vec<f32>,
    by_neck: Vec<f32>,
}

impl Scratch {
    pub(crate) fn new(layers: &BucketLayers, plan: &Division) -> Self {
        let [first, _] = &layers.head;
        let zeros = |n: usize| vec![0.0; n * plan.columns()];
        Self { modulated: zeros(first.inputs), by_modulated: zeros(first.inputs), by_neck: zeros(first.outputs) }
    }
}

impl Head<'_> {
    /// Fills `neck` (`neck × stride`) and `outputs` (`rows × stride`), the normalised frequencies.
    pub(crate) fn forward(&self, chunk: &Chunk, scratch: &mut Scratch, neck: &mut [f32], outputs: &mut [f32]) {
        let [first, second] = &self.layers.head;
        let stride = chunk.stride;
        let neck = &mut neck[..first.outputs * stride];
        let outputs = &mut outputs[..chunk.rows * stride];
        self.modulate(chunk, &mut scratch.modulated);
        let modulated = View::new(&scratch.modulated, first.inputs, stride);
        matmul(ViewMut::new(neck, first.outputs, stride), Into::Replace, first.weight(self.block), modulated);
        add_bias(neck, stride, first.bias(self.block));
        let weight = View::new(&self.block[second.weight_range()], chunk.rows, second.inputs);
        let neck = View::new(neck, second.inputs, stride);
        matmul(ViewMut::new(outputs, chunk.rows, stride), Into::Replace, weight, neck);
        sigmoid_rows(outputs, stride, second.bias(self.block));
    }

    /// Given the gradient by the logits (`rows × stride`), adds the block's gradients and those by
    /// the feature (`h × lanes`) and by the modulation of the chunk's buckets.
    pub(crate) fn backward(
        &self,
        chunk: &Chunk,
        scratch: &mut Scratch,
        neck: &[f32],
        by_logits: &[f32],
        into: HeadGradients<'_>,
    ) {
        let [first, second] = &self.layers.head;
        let stride = chunk.stride;
        let by_logits = &by_logits[..chunk.rows * stride];
        let by_logits_view = View::new(by_logits, chunk.rows, stride);

        let (weight, bias) = second.split_mut(into.block);
        let neck = View::new(neck, second.inputs, stride).transposed();
        matmul(ViewMut::new(weight, chunk.rows, second.inputs), Into::Add, by_logits_view, neck);
        add_row_sums(bias, by_logits, stride);
        let by_neck = &mut scratch.by_neck[..first.outputs * stride];
        let weight = View::new(&self.block[second.weight_range()], chunk.rows, second.inputs).transposed();
        matmul(ViewMut::new(by_neck, first.outputs, stride), Into::Replace, weight, by_logits_view);

        self.modulate(chunk, &mut scratch.modulated);
        let by_neck_view = View::new(by_neck, first.outputs, stride);
        let (weight, bias) = first.split_mut(into.block);
        let modulated = View::new(&scratch.modulated, first.inputs, stride).transposed();
        matmul(ViewMut::new(weight, first.outputs, first.inputs), Into::Add, by_neck_view, modulated);
        add_row_sums(bias, by_neck, stride);
        let by_modulated = &mut scratch.by_modulated[..first.inputs * stride];
        let weight = first.weight(self.block).transposed();
        matmul(ViewMut::new(by_modulated, first.inputs, stride), Into::Replace, weight, by_neck_view);

        for b in 0..chunk.buckets {
            let modulation = &self.modulation[(chunk.first_bucket + b) * 2 * first.inputs..][..2 * first.inputs];
            let by_modulation = &mut into.by_modulation[b * 2 * first.inputs..][..2 * first.inputs];
            let columns = Columns { stride, from: b * self.lanes, lanes: self.lanes };
            unmodulate(by_modulated, columns, self.feature, modulation, into.by_feature, by_modulation);
        }
    }

    fn modulate(&self, chunk: &Chunk, modulated: &mut [f32]) {
        let h = self.layers.head[0].inputs;
        for b in 0..chunk.buckets {
            let modulation = &self.modulation[(chunk.first_bucket + b) * 2 * h..][..2 * h];
            let columns = Columns { stride: chunk.stride, from: b * self.lanes, lanes: self.lanes };
            modulate(modulated, columns, self.feature, modulation);
        }
    }
}

/// Where [`Head::backward`] adds its results.
pub(crate) struct HeadGradients<'a> {
    pub(crate) block: &'a mut [f32],
    pub(crate) by_feature: &'a mut [f32],
    /// From the chunk's first bucket on.
    pub(crate) by_modulation: &'a mut [f32],
}

/// One bucket's columns in a chunk's matrix.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    stride: usize,
    from: usize,
    lanes: usize,
}

vectorised! {
    fn modulate(modulated: &mut [f32], columns: Columns, feature: &[f32], modulation: &[f32]) {
        let Columns { stride, from, lanes } = columns;
        let (scale, shift) = modulation.split_at(modulation.len() / 2);
        for (((row, g), s), t) in modulated.chunks_mut(stride).zip(feature.chunks_exact(lanes)).zip(scale).zip(shift) {
            for (m, g) in row[from..from + lanes].iter_mut().zip(g) {
                *m = g * (1.0 + s) + t;
            }
        }
    }
}

vectorised! {
    fn unmodulate(
        by_modulated: &[f32], columns: Columns, feature: &[f32], modulation: &[f32],
        by_feature: &mut [f32], by_modulation: &mut [f32],
    ) {
        let Columns { stride, from, lanes } = columns;
        let h = modulation.len() / 2;
        for i in 0..h {
            let by_m = &by_modulated[i * stride + from..][..lanes];
            let g = &feature[i * lanes..][..lanes];
            let by_g = &mut by_feature[i * lanes..][..lanes];
            let (mut by_scale, mut by_shift) = ([0.0f32; 8], [0.0f32; 8]);
            // Training's lanes are a multiple of 8, and eight partial sums are one vector.
            let eights = by_m.as_chunks::<8>().0.iter().zip(g.as_chunks::<8>().0).zip(by_g.as_chunks_mut::<8>().0);
            for ((m, g), by_g) in eights {
                for s in 0..8 {
                    by_g[s] += m[s] * (1.0 + modulation[i]);
                    by_scale[s] += m[s] * g[s];
                    by_shift[s] += m[s];
                }
            }
            by_modulation[i] += by_scale.iter().sum::<f32>();
            by_modulation[h + i] += by_shift.iter().sum::<f32>();
        }
    }
}
