//! How an agent learns which of its epochs are durable.

use serde::{Deserialize, Serialize};

use crate::{Incarnation, Reply};

/// An agent's question to the collector of its partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Incarnation that asks; tenant and stream are in the subject.
    pub incarnation: Incarnation,
    /// The number after the last envelope that was sent.
    pub next: u64,
    /// The largest number in the partition that the broker gave one of them.
    pub sequence: u64,
}

/// The collector's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Epochs that are durable, as over HTTP.
    pub reply: Reply,
    /// True if the collector has read the partition up to [`Ask::sequence`]: what is not durable by
    /// then will not be, and has to be sent again.
    pub passed: bool,
}
