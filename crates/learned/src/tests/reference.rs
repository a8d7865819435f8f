//! The network and the loss once more, in f64 and without a thought for speed: one loop per formula
//! of the paper.

use std::collections::HashMap;

use crate::network::parameters::Layout;
use crate::prepared::{PreparedColumns, Sample};

/// Tensors by name.
pub(super) type Tensors = HashMap<String, Vec<f64>>;

pub(super) struct Reference<'a> {
    pub(super) layout: &'a Layout,
    pub(super) system: &'a PreparedColumns<'a>,
    pub(super) rows: usize,
    pub(super) lambda: f64,
}

impl Reference<'_> {
    fn dense(&self, t: &Tensors, name: &str, input: &[f64]) -> Vec<f64> {
        let (weight, bias) = (&t[&format!("{name}.weight")], &t[&format!("{name}.bias")]);
        let row = |(i, b): (usize, &f64)| {
            b + weight[i * input.len()..][..input.len()].iter().zip(input).map(|(w, v)| w * v).sum::<f64>()
        };
        bias.iter().enumerate().map(row).collect()
    }

    fn relu(v: Vec<f64>) -> Vec<f64> {
        v.into_iter().map(|v| v.max(0.0)).collect()
    }

    fn silu(v: Vec<f64>) -> Vec<f64> {
        v.into_iter().map(|v| v / (1.0 + (-v).exp())).collect()
    }

    /// `D(y)` for all keys; `y` in the order of the encoder's input.
    pub(super) fn decode(&self, t: &Tensors, y: &[f64]) -> Vec<f64> {
        let mut wide = Vec::new();
        for r in 0..self.rows {
            let row: Vec<f64> = y.iter().skip(r).step_by(self.rows).copied().collect();
            wide.extend(Self::relu(self.dense(t, "row.1", &Self::relu(self.dense(t, "row.0", &row)))));
        }
        let v = Self::relu(self.dense(t, "mix.1", &Self::relu(self.dense(t, "mix.0", &wide))));
        let h = v.len();
        let mean = v.iter().sum::<f64>() / h as f64;
        let variance = v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / h as f64;
        let feature: Vec<f64> = v.iter().map(|v| (v - mean) / (variance + 1e-5).sqrt()).collect();
        let mut x = Vec::new();
        for bucket in 0.. {
            if x.len() >= self.system.keys {
                break;
            }
            let prefix = if self.layout.shared { String::new() } else { format!("bucket.{bucket}.") };
            let angle = |j: usize| bucket as f64 * 10_000f64.powf(-(j as f64) / (h / 2 - 1) as f64);
            let sines = (0..h / 2).map(|j| angle(j).sin());
            let code: Vec<f64> = sines.chain((0..h / 2).map(|j| angle(j).cos())).collect();
            let hidden = Self::silu(self.dense(t, &format!("{prefix}embed.0"), &Self::silu(code)));
            let modulation = self.dense(t, &format!("{prefix}embed.1"), &hidden);
            let own: Vec<f64> = (0..h).map(|i| feature[i] * (1.0 + modulation[i]) + modulation[h + i]).collect();
            let logits = self.dense(t, &format!("{prefix}head.1"), &self.dense(t, &format!("{prefix}head.0"), &own));
            x.extend(logits.iter().map(|l| 1.0 / (1.0 + (-l).exp())));
        }
        x.truncate(self.system.keys);
        x
    }

    pub(super) fn measure(&self, x: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.system.counters];
        for (k, x) in x.iter().enumerate() {
            for e in 0..self.system.degree {
                let at = k * self.system.degree + e;
                let c = self.system.coefficients.get(at).map_or(1.0, |c| f64::from(*c));
                y[self.system.positions[at] as usize] += c * x;
            }
        }
        y
    }

    /// `T_p x`.
    pub(super) fn transform(&self, x: &[f64], sample: &Sample, raised: impl Fn(usize) -> bool) -> Vec<f64> {
        let smallest = f64::from(sample.smallest);
        let u: Vec<f64> = x.iter().map(|x| x.max(smallest)).collect();
        let hot: f64 = u.iter().zip(self.system.hot).filter(|(_, h)| **h).map(|(u, _)| u).sum();
        let next = |(k, u): (usize, &f64)| match (self.system.hot[k], raised(k)) {
            (true, _) => u + f64::from(sample.interval) * u / hot,
            (false, true) => u + smallest,
            (false, false) => *u,
        };
        u.iter().enumerate().map(next).collect()
    }

    /// The three terms for one sample, before lambda; `z` is given, as no gradient flows through
    /// it.
    pub(super) fn losses(&self, t: &Tensors, sample: &Sample, z: Option<&[f64]>) -> [f64; 3] {
        let mse = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64;
        let y: Vec<f64> = sample.counters.iter().map(|&c| f64::from(c)).collect();
        let x = self.decode(t, &y);
        let again = z.map_or(0.0, |z| {
            let measured = self.measure(z);
            let row_max = |r| measured.iter().skip(r).step_by(self.rows).fold(0.0f64, |m, v| m.max(v.abs()));
            let scale = (0..self.rows).map(row_max).fold(f64::INFINITY, f64::min);
            let normalised = |values: &[f64]| values.iter().map(|v| v / scale).collect::<Vec<f64>>();
            mse(&self.decode(t, &normalised(&measured)), &normalised(z))
        });
        [mse(&self.measure(&x), &y), x.iter().sum::<f64>() / x.len() as f64, again]
    }

    pub(super) fn total(&self, t: &Tensors, sample: &Sample, z: Option<&[f64]>) -> f64 {
        let [measurement, sparsity, equivariant] = self.losses(t, sample, z);
        measurement + self.lambda * sparsity + equivariant
    }
}
