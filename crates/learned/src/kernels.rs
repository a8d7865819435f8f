//! Loops that must be vector code, compiled twice: for any CPU, and for AVX2, chosen when called.
//!
//! The bodies are plain Rust over `[f32; LANES]` rows; only the instruction set differs between the
//! two copies. Within a body the constant `FMA` says whether fused multiply-add is an instruction
//! (elsewhere it is a slow call). Without the second copy a plain `cargo build --release` would run
//! these loops with SSE2, at about half the speed.

/// Compiles a function for the build's target and for AVX2, and picks one at each call.
macro_rules! vectorised {
    ($(#[$meta:meta])* fn $name:ident $(<const $lanes:ident: usize>)? ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        pub(crate) fn $name $(<const $lanes: usize>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2 $(<const $lanes: usize>)? ($($arg: $ty),*) $(-> $ret)? {
                    #[allow(dead_code, reason = "few bodies ask")]
                    const FMA: bool = true;
                    $body
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the features were just detected.
                    #[allow(unsafe_code, reason = "calling the AVX2 copy, whose features were checked")]
                    return unsafe { avx2 $(::<$lanes>)? ($($arg),*) };
                }
            }
            #[allow(dead_code, reason = "few bodies ask")]
            const FMA: bool = cfg!(target_arch = "aarch64");
            $body
        }
    };
}
pub(crate) use vectorised;

/// The exponential as a polynomial: `2^n · p(r)`, `|r| <= ln 2 / 2`, relative error below 2e-7 on
/// `[-87, 87]`, to which the argument is clamped. (`f32::exp` is a call that no compiler
/// vectorises.)
#[inline(always)]
pub(crate) fn exp<const FMA: bool>(t: f32) -> f32 {
    /// Adding and subtracting 1.5 · 2^23 rounds to an integer, which also stands in the low bits of
    /// the sum.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first exact in few bits, so that `n · HIGH` is exact.
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let t = t.clamp(-87.0, 87.0);
    let shifted = multiply_add::<FMA>(t, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = multiply_add::<FMA>(n, -LOW, multiply_add::<FMA>(n, -HIGH, t));
    // Minimax coefficients of Cephes' expf.
    let mut p = 1.987_569_1e-4;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = multiply_add::<FMA>(p, r, c);
    }
    let p = multiply_add::<FMA>(p, r * r, r) + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    p * power
}

/// `a · b + c`, fused where that is fast.
#[inline(always)]
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
pub(crate) fn sigmoid<const FMA: bool>(t: f32) -> f32 {
    1.0 / (1.0 + exp::<FMA>(-t))
}

vectorised! {
    /// `v = sigmoid(v + bias)`, one bias per row of `stride` values.
    fn sigmoid_rows(values: &mut [f32], stride: usize, bias: &[f32]) {
        for (row, &b) in values.chunks_exact_mut(stride).zip(bias) {
            for v in row {
                *v = sigmoid::<FMA>(*v + b);
            }
        }
    }
}

vectorised! {
    /// `out = scale · sigmoid(logit + bias)`, one bias per value.
    fn sigmoid_scaled(out: &mut [f64], logits: &[f32], bias: &[f32], scale: f64) {
        for ((out, &t), &b) in out.iter_mut().zip(logits).zip(bias) {
            *out = f64::from(sigmoid::<FMA>(t + b)) * scale;
        }
    }
}

vectorised! {
    /// `v = v + bias`, one bias per row of `stride` values.
    fn add_bias(values: &mut [f32], stride: usize, bias: &[f32]) {
        for (row, &b) in values.chunks_exact_mut(stride).zip(bias) {
            for v in row {
                *v += b;
            }
        }
    }
}

vectorised! {
    /// `v = max(v + bias, 0)`, one bias per row of `stride` values.
    fn add_bias_relu(values: &mut [f32], stride: usize, bias: &[f32]) {
        for (row, &b) in values.chunks_exact_mut(stride).zip(bias) {
            for v in row {
                *v = (*v + b).max(0.0);
            }
        }
    }
}

vectorised! {
    /// Gradient through ReLU: zero where its output was.
    fn relu_backward(gradient: &mut [f32], output: &[f32]) {
        for (g, &o) in gradient.iter_mut().zip(output) {
            *g = if o > 0.0 { *g } else { 0.0 };
        }
    }
}

vectorised! {
    /// `sums[i] += sum of row i`, rows of `stride` values: the gradient of a bias.
    fn add_row_sums(sums: &mut [f32], values: &[f32], stride: usize) {
        for (sum, row) in sums.iter_mut().zip(values.chunks_exact(stride)) {
            // Eight partial sums: a single one could not be vectorised without reordering.
            let (eights, rest) = row.as_chunks::<8>();
            let mut partial = [0.0f32; 8];
            for eight in eights {
                for (p, v) in partial.iter_mut().zip(eight) {
                    *p += v;
                }
            }
            *sum += partial.iter().sum::<f32>() + rest.iter().sum::<f32>();
        }
    }
}

vectorised! {
    /// `into += values`, element by element.
    fn add_assign(into: &mut [f32], values: &[f32]) {
        for (a, b) in into.iter_mut().zip(values) {
            *a += b;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_and_clamped() {
        let mut worst = 0.0f64;
        for i in -86_000..=86_000 {
            let t = i as f32 / 1000.0;
            let exact = f64::from(t).exp();
            for got in [exp::<false>(t), exp::<true>(t)] {
                worst = worst.max((f64::from(got) / exact - 1.0).abs());
            }
        }
        assert!(worst < 2e-7, "{worst}");
        assert!(exp::<false>(1e30).is_finite() && exp::<true>(-1e30) > 0.0);
        assert_eq!(exp::<false>(0.0), 1.0);
    }

    #[test]
    fn sigmoid_stays_within_its_range() {
        let mut values: Vec<f32> = (-200..=200).map(|i| i as f32).collect();
        let stride = values.len();
        sigmoid_rows(&mut values, stride, &[0.5]);
        assert!(values.iter().all(|v| (0.0..=1.0).contains(v)));
        assert!(values.is_sorted());
        let mut out = [0.0];
        let logits = [0.25];
        sigmoid_scaled(&mut out, &logits, &[0.25], 10.0);
        assert!((out[0] - 10.0 / (1.0 + (-0.5f64).exp())).abs() < 1e-5);
    }

    #[test]
    fn row_sums_take_every_value() {
        let values: Vec<f32> = (0..22).map(|i| i as f32).collect();
        let mut sums = [1.0, 2.0];
        add_row_sums(&mut sums, &values, 11);
        assert_eq!(sums, [1.0 + 55.0, 2.0 + 55.0 + 121.0]);
    }
}
