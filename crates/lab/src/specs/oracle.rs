//! The price of a learned oracle: a two-layer recurrent network that reads a key byte by byte.
//!
//! The paper runs "a simple two-layer RNN model once before each update" to stand for what a learned Count-Min does in practice
//! (Hsu et al., ICLR 2019, use recurrent networks too). Sizes are not given; 64 hidden units are our choice. The weights are
//! random: what is wanted is the time.

use std::hint::black_box;
use std::time::Instant;

use super::common::share;
use crate::recording::Recording;

const HIDDEN: usize = 64;
/// Keys that are timed.
const KEYS: usize = 20_000;

type Matrix = Vec<[f32; HIDDEN]>;

/// `h1 <- tanh(E[byte] + U1 h1)`, `h2 <- tanh(W2 h1 + U2 h2)` for every byte, then one output.
pub(super) struct Oracle {
    embedding: Matrix,
    first: Matrix,
    between: Matrix,
    second: Matrix,
    output: [f32; HIDDEN],
}

impl Oracle {
    pub(super) fn new() -> Self {
        let weight = |matrix: usize, i: usize, j: usize| {
            let place = [matrix as u8, i as u8, (i >> 8) as u8, j as u8];
            (share(&place, 1) as f32 - 0.5) / (HIDDEN as f32).sqrt()
        };
        let matrix = |number: usize, rows: usize| -> Matrix {
            (0..rows).map(|i| std::array::from_fn(|j| weight(number, i, j))).collect()
        };
        Self {
            embedding: matrix(0, 256),
            first: matrix(1, HIDDEN),
            between: matrix(2, HIDDEN),
            second: matrix(3, HIDDEN),
            output: std::array::from_fn(|j| weight(4, 0, j)),
        }
    }

    /// What the network makes of a key.
    fn score(&self, key: &[u8]) -> f32 {
        let (mut one, mut two) = ([0.0; HIDDEN], [0.0; HIDDEN]);
        for &byte in key {
            let mut next = self.embedding[usize::from(byte)];
            add_product(&self.first, &one, &mut next);
            one = next.map(f32::tanh);
            let mut next = [0.0; HIDDEN];
            add_product(&self.between, &one, &mut next);
            add_product(&self.second, &two, &mut next);
            two = next.map(f32::tanh);
        }
        two.iter().zip(&self.output).map(|(a, b)| a * b).sum()
    }

    /// Million keys a second.
    pub(super) fn speed(&self, stream: &Recording) -> Option<f64> {
        let keys: Vec<&[u8]> = stream.batch().keys().take(KEYS).collect();
        let start = Instant::now();
        for key in &keys {
            black_box(self.score(key));
        }
        let seconds = start.elapsed().as_secs_f64();
        (seconds > 0.0 && !keys.is_empty()).then(|| keys.len() as f64 / seconds / 1e6)
    }
}

/// `into += weights^T x`, row by row so that it vectorises.
fn add_product(weights: &Matrix, x: &[f32; HIDDEN], into: &mut [f32; HIDDEN]) {
    for (row, &x) in weights.iter().zip(x) {
        for (into, &weight) in into.iter_mut().zip(row) {
            *into += weight * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_reads_every_byte() {
        let oracle = Oracle::new();
        assert_eq!(oracle.score(b"abcd"), oracle.score(b"abcd"));
        assert_ne!(oracle.score(b"abcd"), oracle.score(b"xbcd"));
        assert_ne!(oracle.score(b"abcd"), oracle.score(b"abcx"));
    }
}
