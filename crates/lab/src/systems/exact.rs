//! Two ways to make no error, each at its price.

use ucl_sketch::Memory;
use ucl_streams::{Batch, ExactCounts};

use crate::system::{Answer, Extras, System, SystemError};

/// Exact hash map on the device that sees the stream. It may take more bytes than the budget.
#[derive(Clone, Debug, Default)]
pub struct ExactMap {
    counts: ExactCounts,
}

impl System for ExactMap {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        self.counts.insert_batch(batch);
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        exact(self.counts.get(key))
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        Some(self.counts.get(key) > 0)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("map", self.counts.exact_map_bytes());
        memory
    }
}

/// System that sends every key as it is and counts on the other side. Where weights differ from 1,
/// every item also sends its weight in 8 bytes.
#[derive(Clone, Debug, Default)]
pub struct SendKeys {
    counts: ExactCounts,
    sent: u64,
}

impl System for SendKeys {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        let keys: usize = match batch.fixed() {
            Some((_, bytes)) => bytes.len(),
            None => batch.keys().map(<[u8]>::len).sum(),
        };
        self.sent += (keys + batch.weights().map_or(0, size_of_val)) as u64;
        self.counts.insert_batch(batch);
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        exact(self.counts.get(key))
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        Some(self.counts.get(key) > 0)
    }

    fn memory(&self) -> Memory {
        Memory::default()
    }

    fn extras(&self) -> Extras {
        let control = self.counts.exact_map_bytes();
        Extras { uplink_bytes: Some(self.sent), control_bytes: Some(control), ..Extras::default() }
    }
}

fn exact(count: u64) -> Answer {
    Answer { estimate: count, bounds: Some((count, count)) }
}
