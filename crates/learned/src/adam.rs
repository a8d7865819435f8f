//! Adam (Kingma & Ba, 2015) with the default decay rates, as PyTorch computes it.

use rayon::prelude::*;

use crate::kernels::vectorised;

const BETA: [f64; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;

/// Moments of every parameter's gradient, and the steps they were taken over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Adam {
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
    pub(crate) step: u64,
}

impl Adam {
    /// Room for `parameters` parameters; those that are new have seen no gradient.
    pub(crate) fn grow(&mut self, parameters: usize) {
        self.first.resize(parameters, 0.0);
        self.second.resize(parameters, 0.0);
    }

    /// One step down the gradient.
    pub(crate) fn update(&mut self, learning_rate: f64, parameters: &mut [f32], gradients: &[f32]) {
        /// Parameters that one thread updates at a time.
        const BLOCK: usize = 1 << 15;
        self.step += 1;
        // In f64: 1 - 0.999^t has lost half of its digits in f32 after a few steps.
        let [one, two] = BETA.map(|beta| 1.0 - beta.powf(self.step as f64));
        let rate = (learning_rate / one) as f32;
        let root = two.sqrt() as f32;
        (parameters.par_chunks_mut(BLOCK), gradients.par_chunks(BLOCK))
            .into_par_iter()
            .zip((self.first.par_chunks_mut(BLOCK), self.second.par_chunks_mut(BLOCK)))
            .for_each(|((p, g), (m, v))| update(p, g, m, v, rate, root));
    }
}

vectorised! {
    fn update(parameters: &mut [f32], gradients: &[f32], first: &mut [f32], second: &mut [f32], rate: f32, root: f32) {
        const A: f32 = BETA[0] as f32;
        const B: f32 = BETA[1] as f32;
        const ONE_LESS_A: f32 = (1.0 - BETA[0]) as f32;
        const ONE_LESS_B: f32 = (1.0 - BETA[1]) as f32;
        for (((p, g), m), v) in parameters.iter_mut().zip(gradients).zip(first).zip(second) {
            *m = A * *m + ONE_LESS_A * g;
            *v = B * *v + ONE_LESS_B * (g * g);
            *p -= rate * *m / (v.sqrt() / root + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_has_the_size_of_the_learning_rate() {
        let mut adam = Adam::default();
        let mut p = vec![1.0, 1.0, 1.0];
        adam.grow(3);
        adam.update(0.01, &mut p, &[5.0, -1e-3, 0.0]);
        for (p, want) in p.iter().zip([0.99, 1.01, 1.0]) {
            assert!((p - want).abs() < 1e-6, "{p} {want}");
        }
    }

    #[test]
    fn it_finds_the_minimum_of_a_parabola() {
        let mut adam = Adam::default();
        let mut p = vec![3.0f32];
        adam.grow(1);
        for _ in 0..2000 {
            let gradient = [2.0 * (p[0] - 0.5)];
            adam.update(0.01, &mut p, &gradient);
        }
        assert!((p[0] - 0.5).abs() < 1e-3, "{}", p[0]);
    }
}
