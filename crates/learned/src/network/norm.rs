//! Instance normalisation of a feature: `(v - mean) / sqrt(variance + 1e-5)` over its `h` values,
//! per sample.

use crate::kernels::vectorised;

const EPSILON: f32 = 1e-5;

vectorised! {
    /// `out` = the normalised columns of `values` (`h` rows of `lanes` samples); `inverse_std` is
    /// kept for the gradient.
    fn forward(values: &[f32], lanes: usize, out: &mut [f32], inverse_std: &mut [f32]) {
        let h = (values.len() / lanes) as f32;
        let mut mean = vec![0.0f32; lanes];
        for row in values.chunks_exact(lanes) {
            for (m, v) in mean.iter_mut().zip(row) {
                *m += v;
            }
        }
        for m in &mut mean {
            *m /= h;
        }
        inverse_std.fill(0.0);
        for (row, out) in values.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)) {
            for (((s, o), m), v) in inverse_std.iter_mut().zip(out).zip(&mean).zip(row) {
                *o = v - m;
                *s += *o * *o;
            }
        }
        for s in inverse_std.iter_mut() {
            *s = 1.0 / (*s / h + EPSILON).sqrt();
        }
        for out in out.chunks_exact_mut(lanes) {
            for (o, s) in out.iter_mut().zip(inverse_std.iter()) {
                *o *= s;
            }
        }
    }
}

vectorised! {
    /// Turns the gradient by the output into the gradient by the input:
    /// `inverse_std · (g - mean(g) - out · mean(g · out))`.
    fn backward(gradient: &mut [f32], lanes: usize, output: &[f32], inverse_std: &[f32]) {
        let h = (gradient.len() / lanes) as f32;
        let mut mean = vec![0.0f32; lanes];
        let mut along = vec![0.0f32; lanes];
        for (g, o) in gradient.chunks_exact(lanes).zip(output.chunks_exact(lanes)) {
            for (((m, a), g), o) in mean.iter_mut().zip(&mut along).zip(g).zip(o) {
                *m += g;
                *a += g * o;
            }
        }
        for (g, o) in gradient.chunks_exact_mut(lanes).zip(output.chunks_exact(lanes)) {
            for ((((g, o), m), a), s) in g.iter_mut().zip(o).zip(&mean).zip(&along).zip(inverse_std) {
                *g = s * (*g - m / h - o * (a / h));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn output_has_mean_zero_and_variance_one() {
        let mut rng = Rng::new(1);
        let values: Vec<f32> = (0..64 * 3).map(|_| rng.symmetric(5.0) + 2.0).collect();
        let mut out = vec![0.0; values.len()];
        let mut inverse = [0.0; 3];
        forward(&values, 3, &mut out, &mut inverse);
        for lane in 0..3 {
            let column = || out.iter().skip(lane).step_by(3).map(|&v| f64::from(v));
            assert!(column().sum::<f64>().abs() < 1e-4);
            assert!((column().map(|v| v * v).sum::<f64>() / 64.0 - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn a_constant_feature_gives_zero_not_nan() {
        let (mut out, mut inverse) = ([1.0f32; 8], [0.0; 1]);
        forward(&[3.0; 8], 1, &mut out, &mut inverse);
        assert_eq!(out, [0.0; 8]);
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let mut rng = Rng::new(2);
        let (h, lanes) = (6, 2);
        let values: Vec<f32> = (0..h * lanes).map(|_| rng.symmetric(1.0)).collect();
        let weights: Vec<f32> = (0..h * lanes).map(|_| rng.symmetric(1.0)).collect();
        let objective = |values: &[f32]| {
            let (mut out, mut inverse) = (vec![0.0; values.len()], vec![0.0; lanes]);
            forward(values, lanes, &mut out, &mut inverse);
            out.iter().zip(&weights).map(|(o, w)| f64::from(*o) * f64::from(*w)).sum::<f64>()
        };
        let (mut out, mut inverse) = (vec![0.0; values.len()], vec![0.0; lanes]);
        forward(&values, lanes, &mut out, &mut inverse);
        let mut gradient = weights.clone();
        backward(&mut gradient, lanes, &out, &inverse);
        for i in 0..values.len() {
            let (mut up, mut down) = (values.clone(), values.clone());
            up[i] += 1e-2;
            down[i] -= 1e-2;
            let numeric = (objective(&up) - objective(&down)) / f64::from(up[i] - down[i]);
            assert!((numeric - f64::from(gradient[i])).abs() < 2e-3, "{i}: {numeric} {}", gradient[i]);
        }
    }
}
