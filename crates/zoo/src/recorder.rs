//! Record of the keys that occurred: a Bloom filter on the device that sees the stream, and the
//! keys that it let through on the machine that answers.

use hashbrown::HashTable;
use ucl_data_plane::{BloomFilter, BloomKind, HashSeed, KeyHash, OutOfMemory};

/// Sends each key about once. A key that the filter wrongly claims to know is lost.
#[derive(Clone, Debug)]
pub(crate) struct Recorder<const N: usize> {
    seed: HashSeed,
    filter: BloomFilter,
    hashes: u8,
    /// Sent, in the order of their columns.
    keys: Vec<[u8; N]>,
    /// From a key's hash to its place; built when the stream has ended.
    index: HashTable<(u64, u32)>,
}

impl<const N: usize> Recorder<N> {
    pub fn new(seed: HashSeed, bytes: usize, hashes: u8) -> Result<Self, OutOfMemory> {
        let bits = (bytes / 4 * 32).min(1 << 31) as u32;
        let filter = BloomFilter::new(BloomKind::Classic, bits, hashes)?;
        Ok(Self { seed, filter, hashes, keys: Vec::new(), index: HashTable::new() })
    }

    #[inline(always)]
    pub fn see(&mut self, key: &[u8; N], hash: KeyHash) {
        if self.filter.insert(hash) {
            self.keys.push(*key);
        }
    }

    /// Each known key with its hash.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = ([u8; N], KeyHash)> + '_ {
        self.keys.iter().map(|&key| (key, self.seed.hash(&key)))
    }

    /// No more keys will come: they can be looked up from now on.
    pub fn close(&mut self) {
        self.index.clear();
        for (place, key) in (0..).zip(&self.keys) {
            let word = self.seed.hash(key).table();
            self.index.insert_unique(word, (word, place), |&(word, _)| word);
        }
    }

    /// The place of a known key, once [closed](Self::close).
    pub fn find(&self, key: &[u8; N], hash: KeyHash) -> Option<usize> {
        let word = hash.table();
        let found = self.index.find(word, |&(other, place)| other == word && self.keys[place as usize] == *key);
        found.map(|&(_, place)| place as usize)
    }

    /// Bytes where the stream is seen.
    pub fn filter_bytes(&self) -> usize {
        self.filter.memory()
    }

    /// Bytes sent.
    pub fn sent_bytes(&self) -> u64 {
        (self.keys.len() * N) as u64
    }

    /// Bytes held elsewhere.
    pub fn held_bytes(&self) -> usize {
        self.keys.capacity() * N + self.index.capacity() * size_of::<(u64, u32)>()
    }

    pub fn shape(&self) -> [(&'static str, u64); 2] {
        [("bloom_bits", self.filter.memory() as u64 * 8), ("bloom_hashes", self.hashes.into())]
    }
}

/// A solver's real number as a key's count: rounded half up, and at least 1, for the key was seen;
/// at most what its counters allow.
pub(crate) fn whole(x: f64, upper: u64) -> u64 {
    ((x + 0.5).floor().max(1.0) as u64).min(upper)
}
