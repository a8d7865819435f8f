//! What NetFlow and IPFIX exporters do: a fixed table of whole keys and counts, whose evictions are
//! sent as they are.
//!
//! Four ways a set, the least recently used leaves. A record on the link is the key and a count of
//! four bytes; 20 bytes of header go with every 1,400 bytes of records, as in an IPFIX message. An
//! entry takes the key, a count and the time of its last hit, four bytes each. Keys of any length
//! have 32 bytes of room, and longer ones are sent at once.

use ucl_sketch::{KeyFormat, Memory};
use ucl_streams::{Batch, ExactCounts};

use crate::system::{Answer, Extras, Request, System, SystemError};

const WAYS: usize = 4;
/// Room for a key that may have any length, its length included.
const ANY_LENGTH: usize = 32;
pub const COUNT_BYTES: usize = 4;
const MESSAGE_BYTES: u64 = 1_400;
const HEADER_BYTES: u64 = 20;
/// What a byte of a record comes to with its header.
pub const HEADER_SHARE: f64 = 1.0 + HEADER_BYTES as f64 / MESSAGE_BYTES as f64;

/// Bytes of so many bytes of records on the link.
pub fn with_headers(records: u64) -> u64 {
    records + records.div_ceil(MESSAGE_BYTES) * HEADER_BYTES
}

/// A flow cache, and the collector that adds up what it exports.
pub struct FlowCache {
    room: usize,
    /// True if keys differ in length, so that a record has to say how long its key is.
    any_length: bool,
    entries: Vec<Entry>,
    hasher: foldhash::fast::FixedState,
    clock: u64,
    collected: ExactCounts,
    records: u64,
}

#[derive(Clone, Default)]
struct Entry {
    key: Vec<u8>,
    count: u64,
    last_hit: u64,
}

impl FlowCache {
    /// An empty cache of as many entries as fit into the budget.
    pub fn new(request: &Request<'_>) -> Result<Self, SystemError> {
        let (room, any_length) = match request.keys {
            KeyFormat::Fixed(bytes) => (usize::from(bytes), false),
            _ => (ANY_LENGTH, true),
        };
        let set = WAYS * (room + 2 * COUNT_BYTES);
        let sets = request.budget / set;
        if sets == 0 {
            return Err(ucl_zoo::Error::Budget { budget: request.budget, least: set }.into());
        }
        Ok(Self {
            room,
            any_length,
            entries: vec![Entry::default(); sets * WAYS],
            hasher: foldhash::fast::FixedState::with_seed(request.seed),
            clock: 0,
            collected: ExactCounts::new(),
            records: 0,
        })
    }

    fn take(&mut self, key: &[u8], weight: u64) {
        use std::hash::BuildHasher;
        if key.len() + usize::from(self.any_length) > self.room {
            return self.export(key, weight);
        }
        self.clock += 1;
        let sets = self.entries.len() / WAYS;
        let set = ((u128::from(self.hasher.hash_one(key)) * sets as u128) >> 64) as usize * WAYS;
        let ways = &mut self.entries[set..set + WAYS];
        let found = ways.iter().position(|entry| entry.count > 0 && entry.key == key);
        let (way, victim) = match found {
            Some(way) => (way, None),
            None => {
                let way = (0..WAYS).min_by_key(|&way| ways[way].last_hit).unwrap_or(0);
                let new = Entry { key: key.to_vec(), ..Entry::default() };
                (way, Some(std::mem::replace(&mut ways[way], new)))
            }
        };
        ways[way].count += weight;
        ways[way].last_hit = self.clock;
        if let Some(victim) = victim.filter(|victim| victim.count > 0) {
            self.export(&victim.key, victim.count);
        }
    }

    fn export(&mut self, key: &[u8], count: u64) {
        // A count of more than four bytes goes in several records.
        let records = count.div_ceil(1 << 32).max(1);
        self.records += records * (key.len() + usize::from(self.any_length) + COUNT_BYTES) as u64;
        self.collected.insert(key, count);
    }
}

impl System for FlowCache {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        batch.items().for_each(|(key, weight)| self.take(key, weight));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SystemError> {
        for entry in std::mem::take(&mut self.entries) {
            if entry.count > 0 {
                self.export(&entry.key, entry.count);
            }
            self.entries.push(Entry::default());
        }
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        let count = self.collected.get(key);
        Answer { estimate: count, bounds: Some((count, count)) }
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        Some(self.collected.get(key) > 0)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("entries", self.entries.len() * (self.room + 2 * COUNT_BYTES));
        memory
    }

    fn extras(&self) -> Extras {
        Extras {
            uplink_bytes: Some(with_headers(self.records)),
            control_bytes: Some(self.collected.exact_map_bytes()),
            ..Extras::default()
        }
    }
}
