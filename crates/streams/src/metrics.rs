//! Errors of a set of estimates (paper, section "Metrics").
//!
//! With `f` the true and `f*` the estimated frequency of each of the stream's `n` distinct keys,
//! and `n(i)`, `n*(i)` how many of those keys have true and estimated frequency `i`:
//!
//! ```text
//! AAE            (1/n) Σ |f - f*|
//! ARE            (1/n) Σ |f - f*| / f
//! WMRD           Σ_i |n(i) - n*(i)|  /  Σ_i (n(i) + n*(i)) / 2
//! entropy error  |e - e*|,   e = - Σ_i  i · p(i) · log2 p(i),   p(i) = n(i) / Σ_j n(j)
//! ```
//!
//! `i` runs from 1 to the larger of the two maxima, so a key that is estimated at 0 is in no
//! `n*(i)`. For the entropy there are two conventions on such keys, and both are given:
//!
//! - [`Errors::entropy_error`] follows the formula as printed: `p*(i) = n*(i) / Σ_j n*(j)`, so they
//!   are not in the denominator either. An estimate that drops rare keys then has too large a share
//!   of frequent ones, and its error is large however exact the other keys are.
//! - [`Errors::entropy_error_all_keys`] is what the authors' code computes: `p*(i) = n*(i) / n`,
//!   over all keys of the stream. What the paper prints is to be compared with this one.
//!
//! Where no key is estimated at 0 the two are the same. Only frequencies that occur take part in
//! the sums (all other terms are 0), so a key of a billion costs no more than a key of one.
//!
//! The `i` in front of each term of the entropy is the paper's; it is not Shannon's entropy of the
//! stream. WMRD is 2 when no key has a frequency that some key is estimated to have, however near
//! they may be: it judges the shape of the distribution, not the estimates.

use std::collections::BTreeMap;

/// Errors of a set of estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Average absolute error.
    pub aae: f64,
    /// Average relative error.
    pub are: f64,
    /// Weighted mean relative difference of the frequency distributions, from 0 to 2.
    pub wmrd: f64,
    /// Absolute error of the entropy by the paper's formula: keys that are estimated at 0 are left
    /// out.
    pub entropy_error: f64,
    /// Absolute error of the entropy by the authors' code: shares are of all keys.
    pub entropy_error_all_keys: f64,
}

/// Number of keys with each frequency; keys of frequency 0 are not counted.
type Histogram = BTreeMap<u64, u64>;

/// Accumulates errors from true and estimated frequencies.
///
/// ```
/// use ucl_streams::metrics::ErrorMeter;
///
/// let mut meter = ErrorMeter::default();
/// meter.add(10, 12);
/// meter.add(1, 1);
/// let errors = meter.errors();
/// assert_eq!((errors.aae, errors.are), (1.0, 0.1));
/// assert_eq!(errors.wmrd, 1.0, "the key of 10 is missing, one of 12 is too many");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ErrorMeter {
    keys: u64,
    // Whole numbers: the sum does not depend on the order of the keys.
    absolute: u128,
    relative: f64,
    truth: Histogram,
    estimated: Histogram,
}

impl ErrorMeter {
    /// Adds one distinct key of the stream. Its true frequency is at least 1.
    pub fn add(&mut self, truth: u64, estimate: u64) {
        debug_assert!(truth > 0, "only keys of the stream are measured");
        let error = truth.abs_diff(estimate);
        self.keys += 1;
        self.absolute += u128::from(error);
        self.relative += error as f64 / truth.max(1) as f64;
        *self.truth.entry(truth).or_default() += 1;
        if estimate > 0 {
            *self.estimated.entry(estimate).or_default() += 1;
        }
    }

    /// Returns the errors over all keys so far; 0 if there are none.
    pub fn errors(&self) -> Errors {
        let n = self.keys.max(1) as f64;
        let known = |histogram: &Histogram| histogram.values().sum::<u64>() as f64;
        let truth = entropy(&self.truth, n);
        Errors {
            aae: self.absolute as f64 / n,
            are: self.relative / n,
            wmrd: wmrd(&self.truth, &self.estimated),
            entropy_error: (truth - entropy(&self.estimated, known(&self.estimated))).abs(),
            entropy_error_all_keys: (truth - entropy(&self.estimated, n)).abs(),
        }
    }
}

fn wmrd(truth: &Histogram, estimated: &Histogram) -> f64 {
    let of = |histogram: &Histogram, i: &u64| histogram.get(i).copied().unwrap_or(0);
    let common: u64 = truth.iter().map(|(i, &n)| n.abs_diff(of(estimated, i))).sum();
    let only_estimated: u64 = estimated.iter().filter(|(i, _)| !truth.contains_key(i)).map(|(_, &n)| n).sum();
    let keys = truth.values().sum::<u64>() + estimated.values().sum::<u64>();
    (common + only_estimated) as f64 / (keys.max(1) as f64 / 2.0)
}

/// The paper's entropy of a distribution of frequencies, as shares of that many keys.
fn entropy(histogram: &Histogram, keys: f64) -> f64 {
    let term = |(&i, &n): (&u64, &u64)| {
        let p = n as f64 / keys;
        i as f64 * p * p.log2()
    };
    // From 0, not from the -0 of an empty sum.
    histogram.iter().map(term).fold(0.0, |sum, term| sum - term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errors(pairs: &[(u64, u64)]) -> Errors {
        let mut meter = ErrorMeter::default();
        pairs.iter().for_each(|&(truth, estimate)| meter.add(truth, estimate));
        meter.errors()
    }

    #[test]
    fn nothing_measured_is_no_error() {
        assert_eq!(ErrorMeter::default().errors(), Errors::default());
    }

    #[test]
    fn a_huge_frequency_costs_one_entry() {
        let got = errors(&[(u64::MAX, u64::MAX - 1), (1, 1)]);
        assert_eq!((got.aae, got.wmrd), (0.5, 1.0));
    }

    /// One frequent key, and rare ones that are all lost: by the formula the frequent key is all
    /// there is, and has no entropy left.
    #[test]
    fn lost_keys_are_in_one_denominator_only() {
        let mut pairs = vec![(1_000, 1_000)];
        pairs.resize(1 + 99, (1, 0));
        let got = errors(&pairs);
        let rare = -0.99 * 0.99f64.log2();
        let frequent = -1_000.0 * 0.01 * 0.01f64.log2();
        assert!((got.entropy_error - (rare + frequent)).abs() < 1e-9, "{got:?}");
        assert!((got.entropy_error_all_keys - rare).abs() < 1e-9, "{got:?}");
        assert!(got.entropy_error > 1_000.0 * got.entropy_error_all_keys);
    }

    proptest! {
        #[test]
        fn both_entropies_agree_where_no_key_is_lost(pairs in prop::collection::vec((1u64..90, 1u64..90), 1..50)) {
            let got = errors(&pairs);
            prop_assert_eq!(got.entropy_error, got.entropy_error_all_keys);
        }

        #[test]
        fn exact_answers_have_no_error(truth in prop::collection::vec(1u64..1000, 1..50)) {
            let pairs: Vec<_> = truth.iter().map(|&f| (f, f)).collect();
            prop_assert_eq!(errors(&pairs), Errors::default());
        }

        #[test]
        fn wmrd_is_at_most_two(pairs in prop::collection::vec((1u64..30, 0u64..30), 1..50)) {
            let wmrd = errors(&pairs).wmrd;
            prop_assert!((0.0..=2.0).contains(&wmrd), "{}", wmrd);
        }
    }
}
