//! Result of one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ucl_streams::metrics::Errors;

/// Result of one method on one stream, with one budget and one seed.
///
/// All fields are always there in JSON, `null` where the method has nothing to say; only those
/// about a network, `error` and `answered_by` appear when there is something to tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the method.
    pub method: String,
    /// Name of the stream.
    pub input: String,
    /// Number of items in the stream.
    pub items: u64,
    /// Number of distinct keys in the stream.
    pub keys: u64,
    /// Memory budget in bytes on the device that sees the stream.
    pub memory_budget: usize,
    /// Memory used in bytes on the device that sees the stream.
    pub memory_used: Option<usize>,
    /// Memory used by part.
    pub memory_parts: BTreeMap<String, usize>,
    /// Average absolute error.
    pub aae: Option<f64>,
    /// Average relative error.
    pub are: Option<f64>,
    /// Weighted mean relative difference.
    pub wmrd: Option<f64>,
    /// Absolute error of the entropy by the paper's formula, which leaves keys that are estimated
    /// at 0 out.
    pub entropy_error: Option<f64>,
    /// Absolute error of the entropy by the authors' code, whose shares are of all keys.
    #[serde(default)]
    pub entropy_error_all_keys: Option<f64>,
    /// Errors of a trained decoder's answers before they are put within the bounds; `None` for
    /// other methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded: Option<Unbounded>,
    /// Share of the distinct keys that the control plane knows by name.
    pub coverage: Option<f64>,
    /// Number of keys whose true count is outside its bounds: a bug if not 0.
    pub bound_violations: Option<u64>,
    /// Mean of `upper - lower` over all keys.
    pub bound_width: Option<f64>,
    /// Million inserts per second, from memory and without encoding.
    pub insert_mops: Option<f64>,
    /// Million queries per second, over the items of the stream, of answers that are decoded.
    pub query_mops: Option<f64>,
    /// Million queries per second by Algorithm 3: the network runs for the bucket of each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_query_mops: Option<f64>,
    /// Seconds of training.
    pub train_seconds: Option<f64>,
    /// Number of passes over the window in training.
    pub train_epochs: Option<usize>,
    /// Number of times that the network collapsed in training and was trained again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<usize>,
    /// Whether the network had collapsed when it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collapsed: Option<bool>,
    /// Milliseconds of decoding, without training.
    pub decode_ms: Option<f64>,
    /// Self-check: share of a row left out that the estimates predict wrongly.
    pub self_check: Option<f64>,
    /// Bytes sent to the control plane, as encoded.
    pub uplink_bytes: Option<u64>,
    /// Bytes sent to the control plane per item.
    pub uplink_bytes_per_item: Option<f64>,
    /// Bytes held by the control plane.
    pub control_bytes: Option<usize>,
    /// Bytes of an exact hash map of the same keys.
    pub exact_map_bytes: usize,
    /// Number of snapshots sent.
    pub snapshots: Option<u64>,
    /// Seed of every hash and random choice.
    pub seed: u64,
    /// Number of items between two cuts.
    pub interval: Option<u64>,
    /// Rule by which keys are reported.
    pub rule: Option<String>,
    /// Kind of the linear sketch.
    #[serde(default)]
    pub base: Option<String>,
    /// Kind of the heavy part.
    #[serde(default)]
    pub heavy: Option<String>,
    /// Bits per counter.
    pub counter_bits: Option<u64>,
    /// Sizes by name.
    pub shape: BTreeMap<String, u64>,
    /// Name of the decoder that answered, if it is not the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Error, if the method failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Errors of the answers that a trained decoder gives before they are put within the bounds.
///
/// The bounds are often so tight that they hide a poor network, so it is judged by these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unbounded {
    /// Average absolute error.
    pub aae: f64,
    /// Average relative error.
    pub are: f64,
    /// Weighted mean relative difference.
    pub wmrd: f64,
    /// Absolute error of the entropy by the paper's formula.
    pub entropy_error: f64,
    /// Absolute error of the entropy by the authors' code.
    pub entropy_error_all_keys: f64,
}

impl From<Errors> for Unbounded {
    fn from(errors: Errors) -> Self {
        let Errors { aae, are, wmrd, entropy_error, entropy_error_all_keys } = errors;
        Self { aae, are, wmrd, entropy_error, entropy_error_all_keys }
    }
}

impl Row {
    /// Returns the row as one line of JSON.
    ///
    /// ```
    /// use ucl_lab::Row;
    /// let row = Row { method: "cm".into(), aae: Some(2.5), ..Row::default() };
    /// let back: Row = serde_json::from_str(&row.to_json())?;
    /// assert_eq!(back, row);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers only")
    }
}
