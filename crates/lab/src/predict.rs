//! Predicts the errors for a budget before there is a stream: runs the sketch on a generated one.
//!
//! Formulas for the error of a decoder would be loose or wrong; a made-up stream of as many keys,
//! by Zipf's law, takes a second and includes everything: the filter's losses, the heavy part, the
//! encoding on the wire. What it cannot know is the shape of the real stream, so its skew is a
//! setting. `docs/planner.md` has predictions beside what was then measured.

use ucl_data_plane::HashSeed;
use ucl_sketch::{Epochs, KeyFormat};
use ucl_streams::{BatchBuf, ZipfKeys};

use crate::experiment::measure_accuracy;
use crate::recording::Recording;
use crate::registry::{MethodRegistry, UnknownMethod};
use crate::row::Row;
use crate::system::Options;

/// Expected stream and memory budget.
///
/// ```
/// use ucl_lab::predict::{Candidate, Scenario};
/// use ucl_sketch::{Epochs, KeyFormat};
///
/// let scenario = Scenario { items: 40_000, ..Scenario::new(16 << 10, KeyFormat::Fixed(13), 5_000) };
/// let stream = scenario.stream();
/// assert!((4_000..6_000).contains(&stream.truth().distinct()));
/// let row = scenario.predict(&stream, Candidate::new("ucl-delta", Epochs::ByLoad))?;
/// assert!(row.aae.unwrap() < 1.0 && row.uplink_bytes_per_item.unwrap() < 13.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Budget in bytes.
    pub memory: usize,
    /// Format of the keys.
    pub keys: KeyFormat,
    /// Expected number of distinct keys.
    pub expected_keys: u64,
    /// Expected number of items.
    pub items: u64,
    /// Exponent of the Zipf distribution.
    pub skew: f64,
    /// Number of passes over the window in training, for decoders that train.
    pub epochs: usize,
    /// Seed of the stream and of the sketch.
    pub seed: u64,
}

/// Mode of the sketch, and what is set in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Name of the method, as in `ucl methods`.
    pub method: &'static str,
    /// Rule for when epochs end.
    pub epochs: Epochs,
    /// Limit of the uplink in bytes per item, for `ucl-budget`.
    pub uplink: Option<f64>,
    /// Bits of the codes of keys of any length, in a mirrored table; 64 if not given.
    pub code_bits: Option<u8>,
}

impl Candidate {
    /// Creates a candidate without a limit of the uplink.
    pub fn new(method: &'static str, epochs: Epochs) -> Self {
        Self { method, epochs, uplink: None, code_bits: None }
    }

    /// Returns the candidates that have no limit of the uplink: exact without cuts and with some,
    /// delta by load and at several intervals, one snapshot, the paper's, and two without a sketch.
    pub fn unlimited() -> Vec<Self> {
        let exact = [Epochs::Open, Epochs::Every(64_000)].map(|epochs| Self::new("ucl-exact", epochs));
        let delta = [1_000, 4_000, 16_000, 64_000, 256_000].map(Epochs::Every);
        let delta = [Epochs::ByLoad].into_iter().chain(delta).map(|epochs| Self::new("ucl-delta", epochs));
        let paper = Epochs::Every(1_000);
        let others = [("ucl-em", Epochs::Open), ("ucl-learned", paper), ("ucl-refined", paper)];
        let others = others.map(|(method, epochs)| Self::new(method, epochs));
        let without = ["send-keys", "exact-map"].map(|method| Self::new(method, Epochs::Open));
        exact.into_iter().chain(delta).chain(others).chain(without).collect()
    }

    /// Creates exact counting without cuts, with codes of so many bits for keys of any length.
    pub fn coded(bits: u8) -> Self {
        Self { code_bits: Some(bits), ..Self::new("ucl-exact", Epochs::Open) }
    }

    /// Creates a candidate that keeps to this limit of the uplink, in bytes per item.
    pub fn within(uplink: f64) -> Self {
        Self { uplink: Some(uplink), ..Self::new("ucl-budget", Epochs::Open) }
    }
}

impl Scenario {
    /// Creates a scenario with ten items per key, limited to a second or two of work, and skew 1,
    /// as in many streams of words, flows and clicks.
    pub fn new(memory: usize, keys: KeyFormat, expected_keys: u64) -> Self {
        let items = expected_keys.saturating_mul(10).clamp(100_000, 2_000_000);
        Self { memory, keys, expected_keys, items, skew: 1.0, epochs: 30, seed: 0 }
    }

    /// Generates a stream with about the expected number of distinct keys.
    pub fn stream(&self) -> Recording {
        let universe = universe(self.skew, self.items, self.expected_keys);
        let scatter = HashSeed::new(u128::from(self.seed).into()).digest_key();
        let mut items = BatchBuf::new();
        for number in ZipfKeys::new(self.skew, universe, self.seed).take(self.items as usize) {
            // Short keys are their own digest: only longer ones are scattered.
            let scattered = scatter.digest(&[number; 4].concat());
            match self.keys {
                KeyFormat::Fixed(bytes) => items.push(&scattered[..bytes.into()], 1),
                // Names and addresses of many streams are about this long.
                KeyFormat::Digest | KeyFormat::Code(_) => {
                    items.push(format!("{:020}", u64::from_le_bytes(first(scattered))).as_bytes(), 1)
                }
            }
        }
        let mut stream = Recording::new(format!("zipf:{}:{}:{universe}", self.skew, self.items));
        stream.extend(items.as_batch());
        stream
    }

    /// Runs a candidate on the generated stream.
    ///
    /// # Errors
    /// If there is no method of this name.
    pub fn predict(&self, stream: &Recording, candidate: Candidate) -> Result<Row, UnknownMethod> {
        let Candidate { method, epochs, uplink, code_bits } = candidate;
        let options = Options {
            interval: (epochs != Epochs::ByLoad).then_some(epochs.interval()),
            uplink,
            code_bits,
            expected_keys: Some(self.expected_keys),
            epochs: Some(self.epochs),
            ..Options::default()
        };
        let registry = MethodRegistry::standard();
        Ok(measure_accuracy(registry.find(method)?, stream, self.memory, self.seed, &options).row)
    }
}

fn first(digest: [u8; 16]) -> [u8; 8] {
    std::array::from_fn(|i| digest[i])
}

/// How many keys a Zipf stream must choose from for `distinct` of them to occur in `items` items.
fn universe(skew: f64, items: u64, distinct: u64) -> u64 {
    // Half of the items being new keys is as much as a stand-in has to reach.
    let (mut low, mut high) = (distinct.max(1), distinct.max(1).saturating_mul(1 << 10).min(ZipfKeys::MAX_KEYS));
    while low < high {
        let middle = low.midpoint(high);
        if expected_distinct(skew, middle, items) < distinct as f64 { low = middle + 1 } else { high = middle }
    }
    low
}

/// The expected number of distinct keys, over bins of ranks that grow by 5%.
fn expected_distinct(skew: f64, universe: u64, items: u64) -> f64 {
    let bins = || {
        let mut from = 1u64;
        std::iter::from_fn(move || {
            (from <= universe).then(|| {
                let to = (from + from / 20).min(universe);
                let bin = ((to - from + 1) as f64, (from as f64 * to as f64).sqrt());
                from = to + 1;
                bin
            })
        })
    };
    let total: f64 = bins().map(|(ranks, rank)| ranks * rank.powf(-skew)).sum();
    bins().map(|(ranks, rank)| ranks * -(-(items as f64) * rank.powf(-skew) / total).exp_m1()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_has_the_keys_that_are_expected() {
        for (skew, expected) in [(0.0, 2_000), (1.0, 5_000), (1.2, 5_000)] {
            for keys in [KeyFormat::Fixed(4), KeyFormat::Fixed(13), KeyFormat::Digest] {
                let scenario = Scenario { skew, items: 50_000, ..Scenario::new(8192, keys, expected) };
                let stream = scenario.stream();
                assert_eq!(stream.keys(), keys);
                let distinct = stream.truth().distinct() as f64;
                assert!((distinct / expected as f64 - 1.0).abs() < 0.05, "skew {skew}: {distinct} of {expected}");
            }
        }
    }

    #[test]
    fn every_candidate_has_a_row() {
        let scenario = Scenario { items: 8_000, epochs: 1, ..Scenario::new(16 << 10, KeyFormat::Fixed(4), 1_000) };
        let stream = scenario.stream();
        let limit = 0.5;
        for candidate in Candidate::unlimited().into_iter().chain([Candidate::within(limit), Candidate::coded(30)]) {
            let row = scenario.predict(&stream, candidate).unwrap();
            assert_eq!(row.error, None, "{candidate:?}");
            assert!(row.aae.is_some());
            // And the first bytes, before there are items that allow them.
            let most = candidate.uplink.map(|limit| limit + 0.3 * 16_384.0 / 8_000.0);
            assert!(most.is_none_or(|most| row.uplink_bytes_per_item.unwrap() < most), "{row:?}");
        }
    }
}
