//! What to know before trusting an answer: in the summary each at its place, in JSON as `warnings`.

use super::answer::Answer;
use crate::show::{count, counted};
use crate::stored::earlier_hashes;

/// All warnings of an answer.
pub fn all(answer: &Answer) -> Vec<String> {
    let lost = lost_unknown(answer).then(|| format!("{LOST_UNKNOWN} of keys was never reported"));
    let substitute = substitute(answer).map(|why| format!("decoded by {why}"));
    let skipped = answer.skipped.told().map(|told| format!("skipped {told}"));
    let hashes = earlier_hashes(answer.seed).map(|warning| format!("hash functions: {warning}"));
    let warnings = [lost, more_keys(answer), substitute, unexplained(answer), skipped, no_ip(answer), hashes];
    warnings.into_iter().flatten().collect()
}

/// How many keys a full filter has lost.
pub const LOST_UNKNOWN: &str = "an unknown number";

/// Whether the Bloom filter is so full that it would have lost far more keys than can be estimated.
pub fn lost_unknown(answer: &Answer) -> bool {
    answer.or_more || answer.never_reported.is_infinite()
}

/// Far more keys than the sketch was planned for, and what to do about it: only what helps.
pub fn more_keys(answer: &Answer) -> Option<String> {
    let (known, came, expected) = (answer.keys as u64, answer.keys_came(), answer.expected_keys);
    let far_more = answer.never_reported.is_infinite() || answer.or_more && known > expected.saturating_mul(2);
    match (far_more, answer.better_planned) {
        (true, true) => {
            Some("far more keys came than planned for: more --memory or --expected-keys would name them".to_owned())
        }
        (true, false) => Some("far more keys came than fit: more --memory would name them".to_owned()),
        (false, true) if came > expected.saturating_mul(2) => {
            let expected = count(expected);
            Some(format!("planned for {expected}: --expected-keys {came} gives better counts another time"))
        }
        (false, _) => None,
    }
}

/// The decoder that answered for the one that was asked for.
pub fn substitute(answer: &Answer) -> Option<String> {
    let (decoder, configured) = (answer.decoder, answer.configured);
    let why = || format!("{decoder} (for {configured}, which is not trained yet, or does worse here)");
    (decoder != configured).then(why)
}

/// Weight that came with keys that nobody knows.
pub fn unexplained(answer: &Answer) -> Option<String> {
    let told = || format!("a weight of {} in the sketch fits no known key", count(answer.unexplained));
    (answer.unexplained > 0).then(told)
}

/// Packets that have no key.
pub fn no_ip(answer: &Answer) -> Option<String> {
    (answer.no_ip > 0).then(|| counted(answer.no_ip, "packet") + " without IP")
}
