//! One moment's answer, ready to be printed as text or JSON.

use std::num::NonZeroU64;

use serde::Serialize;
use ucl_sketch::learned::Outputs;
use ucl_sketch::{Estimate, KeyFormat, KeyId, QueryView, Seed, SelfCheck};
use ucl_streams::metrics::ErrorMeter;
use ucl_streams::{ExactCounts, Format};

use super::counter::{Counter, Skipped};
use super::over_time::OverTime;
use crate::key::Key;
use crate::present::Row;
use crate::present::histogram::{self, Bin};
use crate::show::as_text;

/// Questions of the user.
pub struct Asked {
    pub top: usize,
    pub keys: Vec<Vec<u8>>,
    pub prefixes: Vec<String>,
}

/// Everything there is to say. The order of the fields is the order in JSON.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub items: u64,
    /// Known keys.
    pub keys: usize,
    pub entropy: f64,
    /// The decoder that answered.
    pub decoder: &'static str,
    pub memory: Parts,
    /// Memory of the control plane, which decodes.
    pub control: Parts,
    /// The most that the process has had in RAM, everything included, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_resident_bytes: Option<usize>,
    /// Bytes that a device would have sent by now, with the open epoch; only where every report is
    /// encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_bytes: Option<u64>,
    pub seconds: f64,
    /// Seed as text: it has more bits than a JSON number.
    #[serde(serialize_with = "as_text")]
    pub seed: Seed,
    pub top: Vec<Row>,
    pub queries: Vec<Row>,
    /// Warnings to read before trusting the answer.
    pub warnings: Vec<String>,
    // What follows appears only where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u64>,
    /// Factor that all weights, and so all counts, were multiplied by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<NonZeroU64>,
    /// Records of weight 0, which were not counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub zero_weight: u64,
    /// Data planes of the full budget that were merged, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planes: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<PrefixSum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The share of a left-out row that is predicted wrongly.
    #[serde(serialize_with = "residual", skip_serializing_if = "Option::is_none")]
    pub self_check: Option<SelfCheck>,
    /// Weight in the sketch that is in no count: its keys were not known at the end of its epoch.
    #[serde(skip_serializing_if = "is_zero")]
    pub unexplained: u64,
    #[serde(flatten)]
    pub over_time: Option<OverTime>,
    #[serde(rename = "skipped", serialize_with = "skipped_count", skip_serializing_if = "none_skipped")]
    pub skipped: Skipped,
    /// Whether the decoder's network had collapsed.
    #[serde(skip)]
    pub collapsed: bool,
    #[serde(skip)]
    pub configured: &'static str,
    #[serde(skip)]
    pub never_reported: f64,
    /// True if there may be many more.
    #[serde(skip)]
    pub or_more: bool,
    #[serde(skip)]
    pub histogram: Vec<Bin>,
    /// The keys that the sketch was planned for.
    #[serde(skip)]
    pub expected_keys: u64,
    /// True if telling the planner the real number of keys would give a better shape.
    #[serde(skip)]
    pub better_planned: bool,
    /// Weight of all items, whether or not the user gave weights.
    #[serde(skip)]
    pub total: u64,
    /// Packets that have no key.
    #[serde(skip)]
    pub no_ip: u64,
    /// Other records that have no key.
    #[serde(skip)]
    pub no_key: u64,
    /// Known keys whose range is a single number.
    #[serde(skip)]
    pub exact_keys: u64,
    /// Keys that have a code and a count, but no name, and the sum of their counts.
    #[serde(skip)]
    pub nameless: (u64, u64),
    /// Bits of the codes of keys, where they are shorter than the default.
    #[serde(skip)]
    pub short_code: Option<u8>,
    /// Weight that a sketch absorbed because the link had no room for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub absorbed: u64,
    /// Epochs that were too full to be decoded well, and all.
    #[serde(skip)]
    pub crowded: u64,
    #[serde(skip)]
    pub epochs: u64,
    /// Items between two cuts.
    #[serde(skip)]
    pub interval: Option<u64>,
    /// True if epochs end by load.
    #[serde(skip)]
    pub by_load: bool,
    /// Seconds until the last item was in; decoding of earlier epochs included.
    #[serde(skip)]
    pub counting: f64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn none_skipped(skipped: &Skipped) -> bool {
    skipped.count == 0
}

fn skipped_count<S: serde::Serializer>(skipped: &Skipped, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(skipped.count)
}

fn residual<S: serde::Serializer>(check: &Option<SelfCheck>, serializer: S) -> Result<S::Ok, S::Error> {
    check.map(|check| check.residual).serialize(serializer)
}

/// Bytes by part.
#[derive(Debug, Serialize)]
pub struct Parts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<usize>,
    pub used: usize,
    #[serde(serialize_with = "as_map")]
    pub parts: Vec<(&'static str, usize)>,
}

fn as_map<S: serde::Serializer>(parts: &[(&'static str, usize)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parts.iter().copied())
}

/// The sum over the known keys that start alike. The range is guaranteed for these; a key that was
/// never reported may come on top, and would make any range for *all* keys uselessly wide. The true
/// sum is over all keys.
#[derive(Debug, Serialize)]
pub struct PrefixSum {
    pub prefix: String,
    /// Number of known keys that start with the prefix.
    pub keys: usize,
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
    #[serde(rename = "true", skip_serializing_if = "Option::is_none")]
    pub truth: Option<u64>,
}

/// Estimates against exact counts, over all keys of the stream.
#[derive(Debug, Serialize)]
pub struct Audit {
    pub keys: usize,
    pub aae: f64,
    pub are: f64,
    pub max_error: u64,
    /// Share of the keys whose estimate is the true count.
    pub exact: f64,
    pub bound_violations: u64,
    pub exact_map_bytes: usize,
}

impl Answer {
    /// Asks a view. Seed, budget and times are the caller's to fill in.
    pub fn new(view: &QueryView, counter: &mut Counter, format: &Format, asked: &Asked) -> Self {
        let parts =
            |memory: ucl_sketch::Memory| Parts { budget: None, used: memory.total(), parts: memory.parts().to_vec() };
        let memory = parts(counter.sketch.memory());
        let control = parts(counter.sketch.control_memory());
        let mode = counter.sketch.mode();
        let exact = counter.exact.as_ref();
        let truth = |key: &[u8]| exact.map(|exact| exact.get(key));
        let named = |id: KeyId| view.registry().is_named(id).then(|| view.registry().key(id));
        let known = |(id, answer): (KeyId, Estimate)| Row {
            truth: named(id).and_then(truth),
            ..Row::new(Key::known(view, format, id), answer)
        };
        let queried = |key: &Vec<u8>| Row { truth: truth(key), ..Row::new(Key::new(format, key), view.estimate(key)) };
        Self {
            items: view.items(),
            keys: view.keys(),
            // Not -0 for a stream of one key.
            entropy: view.entropy() + 0.0,
            decoder: if mode.is_mirrored() { mode.name() } else { view.answered_by().name() },
            memory,
            control,
            peak_resident_bytes: None,
            uplink_bytes: counter.sketch.uplink_with_open_epoch().map(|uplink| uplink.total()),
            seconds: 0.0,
            seed: 0.into(),
            top: view.top(asked.top).into_iter().map(known).collect(),
            queries: asked.keys.iter().map(queried).collect(),
            warnings: Vec::new(),
            weight: Some(view.weight()),
            scale: None,
            zero_weight: 0,
            planes: None,
            prefixes: prefix_sums(view, format, &asked.prefixes, exact),
            audit: exact.map(|exact| audit(view, exact)),
            self_check: None,
            unexplained: view.unexplained(),
            over_time: None,
            skipped: Skipped::default(),
            collapsed: view.outputs().is_some_and(Outputs::collapsed),
            configured: if mode.is_mirrored() { mode.name() } else { view.decoder().name() },
            nameless: nameless(view),
            short_code: match counter.sketch.config().keys {
                KeyFormat::Code(bits) if bits < KeyFormat::CODE_BITS => Some(bits),
                _ => None,
            },
            absorbed: if mode.is_mirrored() { view.absorbed() } else { 0 },
            never_reported: view.estimated_lost_keys(),
            or_more: view.filter_overflows(),
            histogram: histogram::bins(&view.histogram()),
            expected_keys: 0,
            better_planned: false,
            total: view.weight(),
            no_ip: 0,
            no_key: 0,
            exact_keys: view.certain_keys(),
            crowded: view.crowded_epochs(),
            epochs: view.epochs(),
            interval: None,
            by_load: false,
            counting: 0.0,
        }
    }
}

impl Answer {
    /// The keys that came, as far as can be told: those that are known, and an estimate of those
    /// that are not.
    pub fn keys_came(&self) -> u64 {
        (self.keys as u64).saturating_add(self.never_reported.round() as u64)
    }
}

/// The keys without a name, and the sum of their counts.
fn nameless(view: &QueryView) -> (u64, u64) {
    if !view.registry().format().any_length() {
        return (0, 0);
    }
    let counts = view.all().filter(|&(id, _)| !view.registry().is_named(id)).map(|(_, answer)| answer.estimate);
    counts.fold((0, 0), |(keys, sum), count| (keys + 1, u64::saturating_add(sum, count)))
}

fn prefix_sums(view: &QueryView, format: &Format, prefixes: &[String], exact: Option<&ExactCounts>) -> Vec<PrefixSum> {
    if prefixes.is_empty() {
        return Vec::new();
    }
    let mut sums: Vec<PrefixSum> = prefixes
        .iter()
        .map(|prefix| PrefixSum { prefix: prefix.clone(), keys: 0, estimate: 0, lower: 0, upper: 0, truth: None })
        .collect();
    // Weight that keys with another prefix have at least. A key without a name may have any.
    let mut others = vec![0u64; sums.len()];
    for (id, answer) in view.all().filter(|&(id, _)| view.registry().is_named(id)) {
        let key = Key::known(view, format, id).shown;
        for (sum, others) in sums.iter_mut().zip(&mut others) {
            if key.starts_with(&sum.prefix) {
                sum.keys += 1;
                sum.estimate = sum.estimate.saturating_add(answer.estimate);
                sum.lower = sum.lower.saturating_add(answer.lower);
            } else {
                *others = others.saturating_add(answer.lower);
            }
        }
    }
    for (sum, others) in sums.iter_mut().zip(others) {
        sum.upper = view.weight().saturating_sub(others);
        // Each estimate lies within its bounds, but together they may pass the weight of the
        // stream.
        sum.estimate = sum.estimate.min(sum.upper);
        sum.truth = exact.map(|exact| {
            let theirs = exact.iter().filter(|(key, _)| format.key_display(key).starts_with(&sum.prefix));
            theirs.map(|(_, count)| count).sum()
        });
    }
    sums
}

fn audit(view: &QueryView, exact: &ExactCounts) -> Audit {
    let mut meter = ErrorMeter::default();
    let mut max_error = 0;
    let mut right = 0u64;
    let mut violations = 0;
    for (key, truth) in exact.iter() {
        let answer = view.estimate(key);
        meter.add(truth, answer.estimate);
        max_error = max_error.max(truth.abs_diff(answer.estimate));
        right += u64::from(truth == answer.estimate);
        violations += u64::from(!(answer.lower..=answer.upper).contains(&truth));
    }
    let errors = meter.errors();
    Audit {
        keys: exact.distinct(),
        aae: errors.aae,
        are: errors.are,
        max_error,
        exact: if exact.distinct() == 0 { 1.0 } else { right as f64 / exact.distinct() as f64 },
        bound_violations: violations,
        exact_map_bytes: exact.exact_map_bytes(),
    }
}
