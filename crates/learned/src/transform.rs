//! The transformation `T_p` of the equivariant term.
//!
//! The next interval of a Zipfian stream looks like the last: a few hot keys grow in proportion to
//! what they have, of the many cold ones some appear once more. `T_p` plays one interval forward on
//! an estimate `x` (all normalised):
//!
//! ```text
//! u   = max(x, smallest weight)                          every known key has entered the sketch at least once
//! z_k = u_k + c · u_k / (sum of u over the hot keys)     hot keys share the interval's weight c
//! z_k = u_k + smallest weight                            a random 5% of the cold keys
//! z_k = u_k                                              the other cold keys
//! ```
//! If frequency vectors stay frequency vectors under `T_p`, then `D(A z) = z` must hold as well: an
//! equation that the null space of `A` does not satisfy by itself (paper, Theorem 3). Without hot
//! keys `c` is not shared out.
//!
//! `z` is a target, so no gradient flows through it, and it is cheap: it is computed again wherever
//! it is needed instead of being stored.

use crate::prepared::Sample;

/// The transformation's numbers for each sample of a batch.
pub(crate) struct Transform<const LANES: usize> {
    /// The smallest weight.
    pub(crate) smallest: [f32; LANES],
    /// `1 + c / (hot volume)`.
    gain: [f32; LANES],
}

impl<const LANES: usize> Transform<LANES> {
    pub(crate) fn new(samples: &[&Sample], hot_volume: &[f64; LANES]) -> Self {
        let mut smallest = [0.0; LANES];
        let mut gain = [1.0; LANES];
        for (s, sample) in samples.iter().enumerate() {
            smallest[s] = sample.smallest;
            if hot_volume[s] > 0.0 {
                gain[s] = (1.0 + f64::from(sample.interval) / hot_volume[s]) as f32;
            }
        }
        Self { smallest, gain }
    }

    /// `z` of one key, given its estimates and which samples raise it.
    #[inline(always)]
    pub(crate) fn apply(&self, x: &[f32; LANES], hot: bool, raised: u32) -> [f32; LANES] {
        let mut z = [0.0; LANES];
        for s in 0..LANES {
            // Not `f32::max`, which spends two more instructions on NaN.
            z[s] = if x[s] > self.smallest[s] { x[s] } else { self.smallest[s] };
        }
        if hot {
            for (z, gain) in z.iter_mut().zip(&self.gain) {
                *z *= gain;
            }
        } else {
            for (s, (z, smallest)) in z.iter_mut().zip(&self.smallest).enumerate() {
                *z += ((raised >> s) & 1) as f32 * smallest;
            }
        }
        z
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_plays_one_interval_forward() {
        let sample = Sample { counters: vec![], smallest: 0.1, interval: 0.6 };
        // Two hot keys of volume 0.3 and (clamped) 0.1; three cold ones.
        let keys = [(0.3, true, 0), (0.05, true, 0), (0.02, false, 0), (0.02, false, 1), (0.5, false, 1)];
        let t = Transform::<1>::new(&[&sample], &[0.4]);
        let z = keys.map(|(x, hot, raised)| t.apply(&[x], hot, raised)[0]);
        for (z, want) in z.iter().zip([0.3 + 0.45, 0.1 + 0.15, 0.1, 0.2, 0.6]) {
            assert!((z - want).abs() < 1e-6, "{z} {want}");
        }
    }

    #[test]
    fn without_hot_keys_nothing_is_shared() {
        let sample = Sample { counters: vec![], smallest: 0.1, interval: 0.6 };
        let t = Transform::<1>::new(&[&sample], &[0.0]);
        assert_eq!(t.apply(&[0.4], false, 0), [0.4]);
    }
}
