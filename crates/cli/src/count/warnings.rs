//! What to know before trusting an answer: in the summary each at its place, in JSON as `warnings`.

use super::answer::Answer;
use crate::show::{count, counted};
use crate::stored::earlier_hashes;

/// All warnings of an answer.
pub fn all(answer: &Answer) -> Vec<String> {
    let lost = lost_unknown(answer).then(|| "an unknown number of keys was missed".to_owned());
    let skipped = answer.skipped.told().map(|told| format!("skipped {told}"));
    let hashes = earlier_hashes(answer.seed).map(|warning| format!("hash functions: {warning}"));
    let records = [skipped, no_ip(answer), no_key(answer), hashes];
    let warnings = [lost, more_keys(answer), crowded(answer)].into_iter().flatten();
    warnings.chain(notes(answer)).chain(records.into_iter().flatten()).collect()
}

/// Returns notes on how far to trust the counts, the most important first.
pub fn notes(answer: &Answer) -> impl Iterator<Item = String> {
    let notes = [absorbed(answer), shared_codes(answer), nameless(answer), substitute(answer), unexplained(answer)];
    notes.into_iter().flatten()
}

/// Returns true if the Bloom filter is so full that it would have lost far more keys than can be
/// estimated.
pub fn lost_unknown(answer: &Answer) -> bool {
    answer.or_more || answer.never_reported.is_infinite()
}

/// Far more keys than the sketch was planned for, and what to do about it: only what helps.
pub fn more_keys(answer: &Answer) -> Option<String> {
    if answer.absorbed > 0 {
        // It is the link that had no room.
        return None;
    }
    let known = answer.keys as u64;
    let came = answer.keys_came();
    let expected = answer.expected_keys;
    let far_more = answer.never_reported.is_infinite() || answer.or_more && known > expected.saturating_mul(2);
    let sized = format!("sized for {} keys", count(expected));
    match (far_more, answer.better_planned) {
        (true, true) => Some(format!("{sized}, far more seen: rerun with more --memory, or a larger --expected-keys")),
        (true, false) => Some(format!("{sized}, far more seen: rerun with more --memory")),
        (false, true) if came > expected.saturating_mul(2) => {
            Some(format!("{sized}, {} seen: rerun with --expected-keys {came}", count(came)))
        }
        (false, _) => None,
    }
}

/// One epoch in so many may be too full before anything is said.
const MOST_CROWDED: u64 = 20;

/// Epochs with more keys than the counters can tell apart, and what to do about it.
pub fn crowded(answer: &Answer) -> Option<String> {
    let Answer { crowded, epochs, .. } = *answer;
    if answer.absorbed > 0 {
        // Cuts wait for the allowance.
        return None;
    }
    let instead = match answer.interval {
        Some(_) => "rerun with a smaller --interval, or with more --memory",
        None => "rerun with more --memory",
    };
    (crowded * MOST_CROWDED > epochs).then(|| {
        let times = format!("{} of {} times", count(crowded), count(epochs));
        format!("counts may be far off, since {times} more keys came between two reports than fit: {instead}")
    })
}

/// What the link had no room for.
fn absorbed(answer: &Answer) -> Option<String> {
    let share = 100.0 * answer.absorbed as f64 / answer.total.max(1) as f64;
    let what = if answer.weight.is_some() { "weight" } else { "items" };
    (answer.absorbed > 0).then(|| {
        format!("a sketch absorbed {share:.1}% of the {what}, beyond --uplink: those counts are estimates with ranges")
    })
}

/// The decoder that answered for the one that was asked for, or a network that should not have.
fn substitute(answer: &Answer) -> Option<String> {
    let decoder = answer.decoder;
    let configured = answer.configured;
    match (decoder != configured, answer.collapsed) {
        (true, true) => {
            Some(format!("{decoder} answered instead of {configured}, whose network collapsed: {COLLAPSED}"))
        }
        (true, false) => {
            Some(format!("{decoder} answered instead of {configured}, which is not trained yet, or is less exact here"))
        }
        (false, true) => Some(format!("the network of {configured} collapsed: {COLLAPSED}")),
        (false, false) => None,
    }
}

/// What a collapse is.
const COLLAPSED: &str = "it tells hardly any key from another";

/// Keys that share a code, and so a count: with codes that are short for so many keys.
fn shared_codes(answer: &Answer) -> Option<String> {
    let bits = answer.short_code?;
    let codes = 2f64.powi(bits.into());
    // So many keys have so many codes, about.
    let known = answer.keys as f64;
    let keys = -codes * (-known / codes).max(0.5 / codes - 1.0).ln_1p();
    let shared = keys * -(-keys / codes).exp_m1();
    let shown = count(shared.round() as u64);
    (shared >= 1.0).then(|| {
        format!("about {shown} keys share a {bits}-bit code with another key, and each has the count of both: use more --code-bits")
    })
}

/// Keys whose name was taken for sent.
fn nameless(answer: &Answer) -> Option<String> {
    let (keys, sum) = answer.nameless;
    let what = if answer.weight.is_some() { format!("weight {}", count(sum)) } else { counted(sum, "item") };
    (keys > 0)
        .then(|| format!("{} with {what} in all: counted, but the name is not known (code:…)", counted(keys, "key")))
}

/// Weight that came with keys that nobody knew.
fn unexplained(answer: &Answer) -> Option<String> {
    let what = match answer.weight {
        None => counted(answer.unexplained, "item") + if answer.unexplained == 1 { " is" } else { " are" },
        Some(_) => format!("a weight of {} is", count(answer.unexplained)),
    };
    (answer.unexplained > 0).then(|| format!("about {what} in no count: their keys were unknown when they came"))
}

/// Records that have no key, for another reason than being bad.
pub fn no_key(answer: &Answer) -> Option<String> {
    (answer.no_key > 0).then(|| counted(answer.no_key, "record") + " without a key: no match, or null")
}

/// Packets that have no key.
pub fn no_ip(answer: &Answer) -> Option<String> {
    (answer.no_ip > 0).then(|| counted(answer.no_ip, "packet") + " without IP")
}
