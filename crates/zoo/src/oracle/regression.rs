//! Regression that predicts the frequency of a key from its bytes.
//!
//! A linear model of `log2(1 + count)`: one weight for each value of each half-byte, `32·N` in all
//! for a key of `N` bytes (512 bytes of `f32` for a 4-byte key). It can learn that some prefixes,
//! ports or ranges of numbers are busy; it can learn nothing from keys that were hashed before
//! (digests of long keys are). Fitted by normalised least mean squares over the sample, twenty
//! times: deterministic, and good enough for an additive model.
//!
//! Hsu et al. train recurrent networks on millions of flows; for what such a network costs per item
//! see [`Rnn`](super::Rnn).

/// Fitted regression model.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    bias: f32,
    /// Sixteen for each half-byte.
    weights: Vec<f32>,
}

const PASSES: usize = 20;
const RATE: f32 = 0.1;

impl Regression {
    /// Fits the model to keys and their counts, in the given order.
    ///
    /// ```
    /// use ucl_zoo::oracle::Regression;
    /// // Keys below 16 are busy, whatever else.
    /// let sample: Vec<([u8; 4], u64)> = (0..256u32).map(|key| (key.to_le_bytes(), if key < 16 { 1000 } else { 2 })).collect();
    /// let model = Regression::fit(&sample);
    /// assert!(model.score(&5u32.to_le_bytes()) > model.score(&50u32.to_le_bytes()) + 5.0);
    /// ```
    pub fn fit<const N: usize>(sample: &[([u8; N], u64)]) -> Self {
        let target = |count: u64| libm::log2(1.0 + count as f64) as f32;
        let mean = sample.iter().map(|&(_, count)| f64::from(target(count))).sum::<f64>() / sample.len().max(1) as f64;
        let mut model = Self { bias: mean as f32, weights: vec![0.0; 32 * N] };
        for _ in 0..PASSES {
            for (key, count) in sample {
                let step = RATE * (target(*count) - model.score(key)) / (2 * N) as f32;
                features(key).for_each(|at| model.weights[at] += step);
            }
        }
        model
    }

    /// Predicts `log2(1 + count)` of a key.
    #[inline]
    pub fn score<const N: usize>(&self, key: &[u8; N]) -> f32 {
        self.bias + features(key).map(|at| self.weights[at]).sum::<f32>()
    }

    /// Bytes of memory that the model takes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.weights.as_slice()) + size_of::<f32>()
    }
}

/// The weights that a key's half-bytes choose.
fn features<const N: usize>(key: &[u8; N]) -> impl Iterator<Item = usize> + '_ {
    let halves = key.iter().flat_map(|&byte| [byte & 15, byte >> 4]);
    halves.enumerate().map(|(place, half)| place * 16 + usize::from(half))
}
