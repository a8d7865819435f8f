//! Exact counts in a hash map: the ground truth for estimates, and the memory that a sketch must
//! beat.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::batch::Batch;

/// Exact map from keys to total weights.
///
/// Keys live side by side in one buffer, entries in first-seen order, and the hash table holds only
/// entry numbers: no allocation per key, and an order of iteration that depends on the stream
/// alone.
///
/// ```
/// use ucl_streams::ExactCounts;
///
/// let mut counts = ExactCounts::new();
/// counts.insert(b"tea", 2);
/// counts.insert(b"milk", 1);
/// counts.insert(b"tea", 3);
/// assert_eq!((counts.total(), counts.distinct()), (6, 2));
/// assert_eq!((counts.get(b"tea"), counts.get(b"rum")), (5, 0));
/// assert_eq!(counts.top(1), [(&b"tea"[..], 5)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ExactCounts {
    table: HashTable<u32>,
    entries: Vec<Entry>,
    keys: Vec<u8>,
    hasher: FixedState,
    total: u128,
    smallest_weight: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    /// Offset of the key in `keys`.
    start: usize,
    len: usize,
    count: u64,
}

impl ExactCounts {
    /// Creates an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one item. Counts saturate at 2^64 - 1.
    ///
    /// # Panics
    /// With more than 2^32 distinct keys, at which point memory has long run out.
    #[inline]
    pub fn insert(&mut self, key: &[u8], weight: u64) {
        let Self { table, entries, keys, .. } = self;
        let hash = self.hasher.hash_one(key);
        let same = |&i: &u32| {
            let entry = &entries[i as usize];
            entry.hash == hash && &keys[entry.start..entry.start + entry.len] == key
        };
        match table.find(hash, same) {
            Some(&i) => {
                let count = &mut entries[i as usize].count;
                *count = count.saturating_add(weight);
            }
            None => {
                let number = u32::try_from(entries.len()).expect("fewer than 2^32 distinct keys");
                entries.push(Entry { hash, start: keys.len(), len: key.len(), count: weight });
                keys.extend_from_slice(key);
                table.insert_unique(hash, number, |&i| entries[i as usize].hash);
            }
        }
        self.total += u128::from(weight);
        self.smallest_weight = Some(self.smallest_weight.map_or(weight, |w| w.min(weight)));
    }

    /// Adds all items of a batch.
    pub fn insert_batch(&mut self, batch: Batch<'_>) {
        batch.items().for_each(|(key, weight)| self.insert(key, weight));
    }

    /// Total weight of all items inserted.
    pub fn total(&self) -> u128 {
        self.total
    }

    /// Number of distinct keys.
    pub fn distinct(&self) -> usize {
        self.entries.len()
    }

    /// Smallest weight of any item inserted; `None` if there is none.
    pub fn smallest_weight(&self) -> Option<u64> {
        self.smallest_weight
    }

    /// Returns the count of a key, or 0 if the key did not occur.
    pub fn get(&self, key: &[u8]) -> u64 {
        let hash = self.hasher.hash_one(key);
        self.table
            .find(hash, |&i| self.key(&self.entries[i as usize]) == key)
            .map_or(0, |&i| self.entries[i as usize].count)
    }

    /// Returns keys and counts in the order in which the keys first occurred.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], u64)> {
        self.entries.iter().map(|entry| (self.key(entry), entry.count))
    }

    /// Returns the `n` largest counts, largest first. Equal counts are ordered by the bytes of
    /// their keys.
    pub fn top(&self, n: usize) -> Vec<(&[u8], u64)> {
        let mut all: Vec<_> = self.iter().collect();
        let order = |a: &(&[u8], u64), b: &(&[u8], u64)| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0));
        if n < all.len() {
            all.select_nth_unstable_by(n, order);
            all.truncate(n);
        }
        all.sort_unstable_by(order);
        all
    }

    /// Bytes that this map holds.
    pub fn memory(&self) -> usize {
        self.table.allocation_size() + self.entries.capacity() * size_of::<Entry>() + self.keys.capacity()
    }

    /// Bytes of a plain hash map with these keys, for comparison with a sketch.
    ///
    /// Counted like the maps in common use: a power of two of buckets, at most 7/8 of them full; in
    /// each a control byte, a count of 8 bytes, and the key. Keys of one size lie in the bucket;
    /// others are pointed to (16 bytes) and lie outside.
    pub fn exact_map_bytes(&self) -> usize {
        let distinct = self.entries.len();
        if distinct == 0 {
            return 0;
        }
        let buckets = (distinct * 8).div_ceil(7).next_power_of_two();
        let width = self.entries[0].len;
        if self.entries.iter().all(|entry| entry.len == width) {
            buckets * (1 + 8 + width)
        } else {
            buckets * (1 + 8 + 16) + self.keys.len()
        }
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.keys[entry.start..entry.start + entry.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_a_sorted_map(items in prop::collection::vec((prop::collection::vec(0u8..3, 0..4), 1u64..5), 0..300), n in 0usize..20) {
            let mut counts = ExactCounts::new();
            let mut expected = BTreeMap::<Vec<u8>, u64>::new();
            for (key, weight) in &items {
                counts.insert(key, *weight);
                *expected.entry(key.clone()).or_default() += weight;
            }
            prop_assert_eq!(counts.distinct(), expected.len());
            prop_assert_eq!(counts.total(), items.iter().map(|(_, w)| u128::from(*w)).sum::<u128>());
            prop_assert_eq!(counts.iter().map(|(k, c)| (k.to_vec(), c)).collect::<BTreeMap<_, _>>(), expected.clone());
            prop_assert!(expected.iter().all(|(k, c)| counts.get(k) == *c));
            prop_assert_eq!(counts.get(b"never"), 0);
            let mut top: Vec<_> = expected.iter().map(|(k, c)| (&k[..], *c)).collect();
            top.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
            top.truncate(n);
            prop_assert_eq!(counts.top(n), top);
        }
    }

    #[test]
    fn order_is_that_of_first_sight() {
        let mut counts = ExactCounts::new();
        for key in ["c", "a", "c", "b"] {
            counts.insert(key.as_bytes(), 1);
        }
        assert_eq!(counts.iter().map(|(k, _)| k).collect::<Vec<_>>(), [b"c", b"a", b"b"]);
    }

    #[test]
    fn map_bytes() {
        let mut counts = ExactCounts::new();
        assert_eq!(counts.exact_map_bytes(), 0);
        (0..7u32).for_each(|i| counts.insert(&i.to_le_bytes(), 1));
        assert_eq!(counts.exact_map_bytes(), 8 * 13);
        counts.insert(b"longer", 1);
        assert_eq!(counts.exact_map_bytes(), 16 * 25 + 34);
        assert!(counts.memory() > 0);
    }
}
