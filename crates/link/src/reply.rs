//! What a collector answers.

use serde::{Deserialize, Serialize};

/// The answer to a request with envelopes of one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Reply {
    /// Envelopes up to this number are on the collector's disk: the number of the next one.
    pub durable_seq: u64,
    /// The checksum of the last of them; 0 if there is none. A sender that has another one there is
    /// not the one that sent it.
    pub checksum: u64,
    /// Number of bytes that the next request may have; 0 asks for a pause.
    pub window: u64,
    /// Wait at least so long before the next request.
    pub retry_after_ms: u64,
    /// Reason why the rest of the request was not taken.
    pub refusal: Option<Refusal>,
}

/// Reason why envelopes were not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// Envelopes from [`Reply::durable_seq`] on are missing: send them, or start a new incarnation
    /// if they are gone.
    Missing,
    /// Two senders have the same identity, or one was set back: start a new incarnation.
    Forked,
    /// The incarnation's messages contradict each other, and nothing more of it is taken: start a
    /// new one.
    Ended {
        /// Contradiction that was found.
        why: String,
    },
    /// A limit of the tenant is reached: wait, and tell the operator.
    Limit {
        /// Name of the limit.
        why: String,
    },
    /// The collector cannot write at the moment: wait.
    Unavailable {
        /// Message of the system.
        why: String,
    },
}
