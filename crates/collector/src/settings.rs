//! What a collector is told, and what can go wrong.

use std::collections::BTreeMap;
use std::io;

use ucl_link::{LinkError, Name};
use ucl_sketch::{Fault, Settings};

/// Limits of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Streams.
    pub streams: usize,
    /// Incarnations of all streams: each keeps its counts.
    pub incarnations: usize,
    /// Keys known in all incarnations.
    pub keys: usize,
    /// Counters of one device.
    pub counters: usize,
    /// Bytes of memory of all streams.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { streams: 1_000, incarnations: 10_000, keys: 20_000_000, counters: 1 << 20, memory: 2 << 30 }
    }
}

/// Settings of a collector.
#[derive(Clone, Debug)]
pub struct CollectorSettings {
    /// Settings of the decoder.
    pub decoding: Settings,
    /// Limits of tenants that have none of their own.
    pub limits: Limits,
    /// Limits by tenant.
    pub tenants: BTreeMap<Name, Limits>,
    /// Bytes of a file of the log.
    pub log_file_bytes: u64,
    /// Bytes of log above which states are written so that its beginning can be removed.
    pub log_bytes: u64,
    /// Epochs of a stream after which its state is written.
    pub checkpoint_epochs: u64,
    /// Times of the last epochs that are kept for each incarnation.
    pub kept_epochs: usize,
    /// Bytes that a sender may put in a request.
    pub window: u64,
    /// Milliseconds after which an incarnation of which nothing came is deleted
    /// ([`Collector::delete_idle`](crate::Collector::delete_idle)); `None` for never.
    pub forget_after_ms: Option<u64>,
}

impl Default for CollectorSettings {
    fn default() -> Self {
        Self {
            decoding: Settings::default(),
            limits: Limits::default(),
            tenants: BTreeMap::new(),
            log_file_bytes: 16 << 20,
            log_bytes: 256 << 20,
            checkpoint_epochs: 256,
            kept_epochs: 1_024,
            window: 4 << 20,
            forget_after_ms: None,
        }
    }
}

impl CollectorSettings {
    pub(crate) fn limits(&self, tenant: &Name) -> Limits {
        self.tenants.get(tenant).copied().unwrap_or(self.limits)
    }
}

/// Error of a collector that cannot start or go on. What was acknowledged is on the disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectorError {
    /// The disk failed: open the collector again.
    #[error("the collector's folder: {0}")]
    Storage(#[from] io::Error),
    /// A write failed before, and what is in memory may not be on the disk: open the collector
    /// again.
    #[error("the collector has failed and must be opened again")]
    Failed,
    /// A newer version of the program wrote a state; without it, acknowledged epochs would be lost.
    #[error("a newer version of this program wrote {file}: update this program")]
    NewerState {
        /// The state's file.
        file: String,
    },
    /// Decoding failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A request that is no request. Nothing of it was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// The body is not a list of envelopes.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// An envelope is of another sender than the request.
    #[error("an envelope of {found} in a request of {wanted}")]
    Identity {
        /// Sender of the envelope.
        found: String,
        /// Sender of the request.
        wanted: String,
    },
    /// The request is empty.
    #[error("the request holds no envelope")]
    Empty,
}
