//! Recurrent network in front of a sketch, to measure its cost.
//!
//! The UCL-sketch paper measures the speed of learned sketches with "a simple two-layer RNN model"
//! run once before each update. This is one: the key's bytes go in one after the other, scaled to
//! 0..1, through two layers of [`HIDDEN`] units,
//!
//! ```text
//! h1 <- tanh(w x + U1 h1 + b1),   h2 <- tanh(V h1 + U2 h2 + b2),   score = o · h2
//! ```
//!
//! with seeded random weights. **It is a model of cost only**: nothing is trained, and nobody
//! listens to its scores.

use crate::rng::Rng;

/// Number of units in a layer.
pub const HIDDEN: usize = 32;

type Vector = [f32; HIDDEN];
type Matrix = [Vector; HIDDEN];

/// Two-layer recurrent network with random weights, forward pass only.
#[derive(Clone, Debug)]
pub struct Rnn {
    input: Vector,
    first: Matrix,
    first_bias: Vector,
    between: Matrix,
    second: Matrix,
    second_bias: Vector,
    output: Vector,
}

impl Rnn {
    /// Creates a network with weights uniform in `±1/√HIDDEN`.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let scale = 1.0 / (HIDDEN as f64).sqrt();
        let mut vector = || -> Vector { std::array::from_fn(|_| ((2.0 * rng.unit() - 1.0) * scale) as f32) };
        Self {
            input: vector(),
            first_bias: vector(),
            second_bias: vector(),
            output: vector(),
            first: std::array::from_fn(|_| vector()),
            between: std::array::from_fn(|_| vector()),
            second: std::array::from_fn(|_| vector()),
        }
    }

    /// Runs one forward pass.
    ///
    /// ```
    /// use ucl_zoo::oracle::Rnn;
    /// let network = Rnn::new(1);
    /// assert_ne!(network.score(b"some"), network.score(b"keys"));
    /// ```
    pub fn score<const N: usize>(&self, key: &[u8; N]) -> f32 {
        let (mut h1, mut h2) = ([0.0; HIDDEN], [0.0; HIDDEN]);
        for &byte in key {
            let x = f32::from(byte) / 255.0;
            let mut sum: Vector = std::array::from_fn(|i| self.first_bias[i] + self.input[i] * x);
            add_product(&mut sum, &self.first, &h1);
            h1 = sum.map(tanh);
            let mut sum = self.second_bias;
            add_product(&mut sum, &self.between, &h1);
            add_product(&mut sum, &self.second, &h2);
            h2 = sum.map(tanh);
        }
        h2.iter().zip(&self.output).map(|(h, o)| h * o).sum()
    }
}

/// Column by column: row sums would not vectorise.
fn add_product(sum: &mut Vector, matrix: &Matrix, vector: &Vector) {
    for (column, &x) in matrix.iter().zip(vector) {
        for (sum, &a) in sum.iter_mut().zip(column) {
            *sum += a * x;
        }
    }
}

/// A rational approximation that vectorises, to 2%: a network of random weights needs no better.
fn tanh(x: f32) -> f32 {
    let x = x.clamp(-3.0, 3.0);
    x * (27.0 + x * x) / (27.0 + 9.0 * x * x)
}
