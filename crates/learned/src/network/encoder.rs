//! Counters to feature: what a snapshot says, computed once however many buckets are asked.
//!
//! ```text
//! each row of w counters -> Linear(w, h) ReLU Linear(h, h) ReLU        (one set of weights for all rows)
//! the d·h values together -> Linear(d·h, neck) ReLU Linear(neck, h) ReLU -> instance normalisation
//! ```
//! All matrices are feature-major: row = feature, column = (sketch row, sample). Counters arrive as
//! `(column of the sketch, row of the sketch, sample)`, which is already the input matrix
//! `w × (d · lanes)`.

use super::norm;
use super::parameters::{Dense, EncoderLayers};
use crate::kernels::{add_bias_relu, add_row_sums, relu_backward};
use crate::matmul::{Into, View, ViewMut, matmul, matmul_parallel};

/// Activations of one batch, kept for the gradient.
#[derive(Default)]
pub(crate) struct Encoding {
    lanes: usize,
    /// The input, normalised counters: `w × (d · lanes)`.
    pub(crate) counters: Vec<f32>,
    row: [Vec<f32>; 2],
    mix: [Vec<f32>; 2],
    inverse_std: Vec<f32>,
    /// The output: `h × lanes`.
    pub(crate) feature: Vec<f32>,
}

impl Encoding {
    pub(crate) fn new(layers: &EncoderLayers, lanes: usize) -> Self {
        let [first, second] = &layers.row;
        let h = second.outputs;
        let rows = layers.mix[0].inputs / h;
        let zeros = |n: usize| vec![0.0; n];
        Self {
            lanes,
            counters: zeros(first.inputs * rows * lanes),
            row: [zeros(h * rows * lanes), zeros(h * rows * lanes)],
            mix: [zeros(layers.mix[0].outputs * lanes), zeros(h * lanes)],
            inverse_std: zeros(lanes),
            feature: zeros(h * lanes),
        }
    }

    /// Fills `feature` from `counters`.
    pub(crate) fn forward(&mut self, layers: &EncoderLayers, parameters: &[f32]) {
        let lanes = self.lanes;
        let h = layers.row[1].outputs;
        let wide = self.row[0].len() / h;
        dense_relu(&layers.row[0], parameters, &self.counters, wide, &mut self.row[0]);
        let [first, second] = &mut self.row;
        dense_relu(&layers.row[1], parameters, first, wide, second);
        // The first mixing layer sees the rows one below the other; they stand side by side, so it
        // is a sum of products.
        let mix = &layers.mix[0];
        for r in 0..wide / lanes {
            let into = if r == 0 { Into::Replace } else { Into::Add };
            let weight = View::strided(&parameters[mix.weight_range()][r * h..], mix.outputs, h, mix.inputs);
            let input = View::strided(&second[r * lanes..], h, lanes, wide);
            matmul(ViewMut::new(&mut self.mix[0], mix.outputs, lanes), into, weight, input);
        }
        add_bias_relu(&mut self.mix[0], lanes, mix.bias(parameters));
        let [first, second] = &mut self.mix;
        dense_relu(&layers.mix[1], parameters, first, lanes, second);
        norm::forward(second, lanes, &mut self.feature, &mut self.inverse_std);
    }

    /// Adds to `gradients` what the gradient `by_feature` (`h × lanes`, overwritten) means for the
    /// parameters.
    pub(crate) fn backward(
        &self,
        layers: &EncoderLayers,
        parameters: &[f32],
        by_feature: &mut [f32],
        gradients: &mut [f32],
    ) {
        let lanes = self.lanes;
        let h = layers.row[1].outputs;
        let wide = self.row[0].len() / h;
        norm::backward(by_feature, lanes, &self.feature, &self.inverse_std);

        let by_mixed = by_feature;
        relu_backward(by_mixed, &self.mix[1]);
        let mut by_neck = vec![0.0; self.mix[0].len()];
        dense_backward(&layers.mix[1], by_mixed, &self.mix[0], lanes, gradients);
        let mixed_rows = layers.mix[1].outputs;
        matmul(
            ViewMut::new(&mut by_neck, layers.mix[1].inputs, lanes),
            Into::Replace,
            layers.mix[1].weight(parameters).transposed(),
            View::new(by_mixed, mixed_rows, lanes),
        );
        relu_backward(&mut by_neck, &self.mix[0]);

        let mix = &layers.mix[0];
        let by_neck_view = View::new(&by_neck, mix.outputs, lanes);
        let mut by_second = vec![0.0; self.row[1].len()];
        let (weight_gradient, bias_gradient) = mix.split_mut(gradients);
        for r in 0..wide / lanes {
            let input = View::strided(&self.row[1][r * lanes..], h, lanes, wide);
            let into = ViewMut::strided(&mut weight_gradient[r * h..], mix.outputs, h, mix.inputs);
            matmul(into, Into::Add, by_neck_view, input.transposed());
            let weight = View::strided(&parameters[mix.weight_range()][r * h..], mix.outputs, h, mix.inputs);
            let into = ViewMut::strided(&mut by_second[r * lanes..], h, lanes, wide);
            matmul(into, Into::Replace, weight.transposed(), by_neck_view);
        }
        add_row_sums(bias_gradient, &by_neck, lanes);

        relu_backward(&mut by_second, &self.row[1]);
        dense_backward(&layers.row[1], &by_second, &self.row[0], wide, gradients);
        let mut by_first = vec![0.0; self.row[0].len()];
        let weight = layers.row[1].weight(parameters).transposed();
        matmul_parallel(ViewMut::new(&mut by_first, h, wide), Into::Replace, weight, View::new(&by_second, h, wide));
        relu_backward(&mut by_first, &self.row[0]);
        dense_backward(&layers.row[0], &by_first, &self.counters, wide, gradients);
    }
}

fn dense_relu(layer: &Dense, parameters: &[f32], input: &[f32], lanes: usize, output: &mut [f32]) {
    let input = View::new(input, layer.inputs, lanes);
    matmul_parallel(ViewMut::new(output, layer.outputs, lanes), Into::Replace, layer.weight(parameters), input);
    add_bias_relu(output, lanes, layer.bias(parameters));
}

/// Adds a layer's own gradients, given the gradient by its output and its input.
fn dense_backward(layer: &Dense, by_output: &[f32], input: &[f32], lanes: usize, gradients: &mut [f32]) {
    let (weight, bias) = layer.split_mut(gradients);
    let by_output_view = View::new(by_output, layer.outputs, lanes);
    let input = View::new(input, layer.inputs, lanes).transposed();
    matmul_parallel(ViewMut::new(weight, layer.outputs, layer.inputs), Into::Add, by_output_view, input);
    add_row_sums(bias, by_output, lanes);
}
