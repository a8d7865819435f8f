//! What the collector tells of its streams, and snapshots of their counts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ucl_link::{Incarnation, Name, Times, Unseen};
use ucl_storage::Storage;

use crate::collector::Collector;
use crate::life::Life;
use crate::selection::Selection;
use crate::settings::CollectorError;
use crate::snapshot::Snapshot;

/// Times, items and weight of one epoch of an incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochInfo {
    /// Number of the epoch in its incarnation.
    pub seq: u64,
    /// Items of the incarnation up to its end.
    pub items: u64,
    /// Weight of the incarnation up to its end, unless an older version took the epoch.
    pub weight: Option<u64>,
    /// Times of the epoch, by the sender's clocks.
    pub times: Times,
    /// Time of arrival, by the collector's clock; `None` if it came before the collector started.
    pub received_ms: Option<i64>,
}

/// Progress, size and health of one incarnation of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInfo {
    /// The stream.
    pub stream: Name,
    /// The incarnation.
    pub incarnation: Incarnation,
    /// Format that keys are read and shown in.
    pub format: String,
    /// Epochs taken.
    pub epochs: u64,
    /// The checksum of the last envelope, which stands for the whole history.
    pub checksum: u64,
    /// Items counted.
    pub items: u64,
    /// Keys known.
    pub keys: usize,
    /// Bytes of memory.
    pub memory: usize,
    /// Bytes of all envelopes taken.
    pub uplink_bytes: u64,
    /// The last epoch.
    pub last: Option<EpochInfo>,
    /// Items that are known to be missing, before or within this incarnation.
    pub unseen: Option<Unseen>,
    /// Reason why no more epochs are taken, if so.
    pub ended: Option<String>,
}

impl StreamInfo {
    fn new(life: &Life) -> Self {
        Self {
            stream: life.identity.stream.clone(),
            incarnation: life.identity.incarnation,
            format: life.format.clone(),
            epochs: life.sequence.next(),
            checksum: life.sequence.last(),
            items: life.epochs.back().map_or(0, |epoch| epoch.items),
            keys: life.station.keys(),
            memory: life.memory,
            uplink_bytes: life.uplink_bytes,
            last: life.epochs.back().copied(),
            unseen: life.unseen,
            ended: life.ended.clone(),
        }
    }
}

impl<S: Storage> Collector<S> {
    /// Returns the counts of a selection at the last cut of each of its streams.
    ///
    /// # Errors
    /// If a decoder fails.
    pub fn snapshot(&mut self, selection: &Selection) -> Result<Snapshot, CollectorError> {
        let lives = self.lives.iter_mut().filter(|(identity, _)| selection.has(identity));
        let parts = lives.map(|(_, life)| Ok(life.part()?)).collect::<Result<Vec<Arc<_>>, CollectorError>>()?;
        Ok(Snapshot::new(parts))
    }

    /// Returns all incarnations of a selection, by stream.
    pub fn streams(&self, selection: &Selection) -> Vec<StreamInfo> {
        self.lives.values().filter(|life| selection.has(&life.identity)).map(StreamInfo::new).collect()
    }

    /// Tenants that have streams.
    pub fn tenants(&self) -> Vec<Name> {
        let mut tenants: Vec<Name> = self.lives.keys().map(|identity| identity.tenant.clone()).collect();
        tenants.dedup();
        tenants
    }
}
