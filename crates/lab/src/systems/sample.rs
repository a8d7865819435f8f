//! Uniform sampling at a given uplink: a share of the items is sent as whole keys, and each stands
//! for the items that were not.
//!
//! Items fall into runs, and of each run one item is sent, every one with the same probability. A
//! run ends when what was given has paid for the records before it, whichever item is drawn: so the
//! estimates are unbiased, and the uplink passes what was given by one record at most. A record is
//! the key (and its weight, where weights differ from 1); 20 bytes of header go with every 1,400
//! bytes of records, as for `flowcache`. It has no bounds: a key that was never drawn may have come
//! any number of times.

use ucl_sketch::{KeyFormat, Memory};
use ucl_streams::{Batch, ExactCounts, SplitMix64};

use super::flow_cache::{COUNT_BYTES, HEADER_SHARE, with_headers};
use crate::system::{Answer, Extras, Request, System, SystemError};

/// Bytes per item where nobody says how many.
const UPLINK: f64 = 0.1;

/// A sampler, and the collector that scales up what it draws.
pub struct Sample {
    /// Bytes per item that may be sent.
    uplink: f64,
    /// True if keys differ in length, so that a record has to say how long its key is.
    any_length: bool,
    /// True if an item had a weight other than 1.
    weighted: bool,
    random: SplitMix64,
    /// Bytes that all items so far allow, less what was sent.
    credit: f64,
    /// The item that would be sent of this run, and the items of the run so far.
    drawn: (Vec<u8>, u64),
    run: u64,
    sent: u64,
    /// What the drawn items stand for.
    collected: ExactCounts,
}

impl Sample {
    /// A sampler for the uplink of the options.
    pub fn new(request: &Request<'_>) -> Self {
        Self {
            uplink: request.options.uplink.unwrap_or(UPLINK),
            any_length: !matches!(request.keys, KeyFormat::Fixed(_)),
            weighted: request.stream.batch().weights().is_some(),
            random: SplitMix64::new(request.seed),
            credit: 0.0,
            drawn: (Vec::new(), 0),
            run: 0,
            sent: 0,
            collected: ExactCounts::new(),
        }
    }

    fn take(&mut self, key: &[u8], weight: u64) {
        self.credit += self.uplink;
        self.run += 1;
        // Every item of the run so far is as likely as any other to be the one that is drawn.
        if self.random.below(self.run) == 0 {
            self.drawn = (key.to_vec(), weight);
        }
        let record = self.drawn.0.len() + usize::from(self.any_length) + if self.weighted { COUNT_BYTES } else { 0 };
        if self.credit >= 0.0 {
            self.credit -= record as f64 * HEADER_SHARE;
            self.sent += record as u64;
            let (key, weight) = std::mem::take(&mut self.drawn);
            self.collected.insert(&key, weight.saturating_mul(self.run));
            self.run = 0;
        }
    }
}

impl System for Sample {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        batch.items().for_each(|(key, weight)| self.take(key, weight));
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        Answer { estimate: self.collected.get(key), bounds: None }
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        Some(self.collected.get(key) > 0)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("sampler", size_of::<Self>() + self.drawn.0.capacity());
        memory
    }

    fn extras(&self) -> Extras {
        Extras {
            uplink_bytes: Some(with_headers(self.sent)),
            control_bytes: Some(self.collected.exact_map_bytes()),
            ..Extras::default()
        }
    }
}
