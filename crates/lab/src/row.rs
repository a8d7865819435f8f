//! One line of results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one method did on one stream, with one budget and one seed.
///
/// All fields are always there in JSON, `null` where the method has nothing to say; only `error` and `answered_by` appear
/// when there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The method's name.
    pub method: String,
    /// The stream.
    pub input: String,
    /// Its items.
    pub items: u64,
    /// Its distinct keys.
    pub keys: u64,
    /// Bytes allowed at the place where the stream is seen.
    pub memory_budget: usize,
    /// Bytes used there.
    pub memory_used: Option<usize>,
    /// The same by part.
    pub memory_parts: BTreeMap<String, usize>,
    /// Average absolute error.
    pub aae: Option<f64>,
    /// Average relative error.
    pub are: Option<f64>,
    /// Weighted mean relative difference.
    pub wmrd: Option<f64>,
    /// Absolute error of the entropy.
    pub entropy_error: Option<f64>,
    /// Share of the stream's distinct keys that the control plane knows by name.
    pub coverage: Option<f64>,
    /// Keys whose true count is outside of its bounds: a defect, if not 0.
    pub bound_violations: Option<u64>,
    /// Mean of `upper - lower` over all keys.
    pub bound_width: Option<f64>,
    /// Million inserts per second, from memory, nothing encoded.
    pub insert_mops: Option<f64>,
    /// Million queries per second, for the items of the stream.
    pub query_mops: Option<f64>,
    /// Seconds of training.
    pub train_seconds: Option<f64>,
    /// Passes over the window in training.
    pub train_epochs: Option<usize>,
    /// Milliseconds of decoding, training aside.
    pub decode_ms: Option<f64>,
    /// The share of a row left out that the estimates predict wrongly.
    pub self_check: Option<f64>,
    /// Bytes sent to the control plane, as encoded.
    pub uplink_bytes: Option<u64>,
    /// The same per item.
    pub uplink_bytes_per_item: Option<f64>,
    /// Bytes held by the control plane.
    pub control_bytes: Option<usize>,
    /// Bytes of an exact hash map of the same keys.
    pub exact_map_bytes: usize,
    /// Snapshots sent.
    pub snapshots: Option<u64>,
    /// Fixes every hash and random choice.
    pub seed: u64,
    /// Items between two cuts.
    pub interval: Option<u64>,
    /// Which keys are sent.
    pub rule: Option<String>,
    /// The linear sketch.
    #[serde(default)]
    pub base: Option<String>,
    /// The heavy part.
    #[serde(default)]
    pub heavy: Option<String>,
    /// Bits per counter.
    pub counter_bits: Option<u64>,
    /// The sizes by name.
    pub shape: BTreeMap<String, u64>,
    /// The decoder that answered, where it was not the one asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Row {
    /// The row as one line of JSON.
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
