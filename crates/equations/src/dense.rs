//! Vector kernels with a fixed order of additions, so that results are the same on every machine
//! and with any number of threads.
//!
//! A plain `iter().sum()` is one chain of additions, as slow as their latency. Eight chains side by
//! side vectorise, and folding them in a fixed order keeps the sum the same on every machine.

const LANES: usize = 8;

/// `Σ aᵢ bᵢ`.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_head, a_tail) = a.as_chunks::<LANES>();
    let (b_head, b_tail) = b.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in a_head.iter().zip(b_head) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    fold(lanes) + a_tail.iter().zip(b_tail).map(|(a, b)| a * b).sum::<f64>()
}

/// `Σ aᵢ²`.
pub(crate) fn sum_of_squares(a: &[f64]) -> f64 {
    dot(a, a)
}

/// `‖a‖₂`.
pub(crate) fn norm(a: &[f64]) -> f64 {
    sum_of_squares(a).sqrt()
}

/// `a += t b`.
pub(crate) fn add_scaled(a: &mut [f64], t: f64, b: &[f64]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += t * b;
    }
}

fn fold(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_what_a_loop_sums() {
        for n in [0, 1, 7, 8, 9, 100] {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let b: Vec<f64> = (0..n).map(|i| f64::from(2 * i + 1)).collect();
            assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>());
            assert_eq!(sum_of_squares(&a), a.iter().map(|a| a * a).sum::<f64>());
        }
    }

    #[test]
    fn adds_a_multiple() {
        let mut a = [1.0, 2.0, 3.0];
        add_scaled(&mut a, -2.0, &[1.0, 0.0, 4.0]);
        assert_eq!(a, [-1.0, 2.0, -5.0]);
    }
}
