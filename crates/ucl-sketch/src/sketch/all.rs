//! Inserting the items of an iterator.

use ucl_data_plane::InsertError;

use super::UclSketch;
use crate::key::{AsKey, Key};

/// Keys of a fixed size are collected by this many before they are inserted.
const BATCH: usize = 256;

impl<K: Key> UclSketch<K> {
    /// Inserts all keys of an iterator. Keys of a fixed size go in batches, which is faster than
    /// one by one.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().keys::<u64>().build()?;
    /// sketch.insert_all((0..10_000).map(|i| i % 7))?;
    /// assert_eq!(sketch.view().estimate(3).count, 1429);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a key does not fit the sketch, or the total weight would pass 2^63. The keys before it
    /// are counted.
    pub fn insert_all(&mut self, keys: impl IntoIterator<Item = impl AsKey<K>>) -> Result<(), InsertError> {
        let Some(size) = K::SIZE.filter(|&size| size > 0) else {
            return keys.into_iter().try_for_each(|key| self.insert(key));
        };
        let mut batch = Vec::with_capacity(BATCH * size);
        for key in keys {
            key.with_key_bytes(|bytes| batch.extend_from_slice(bytes));
            if batch.len() == BATCH * size {
                self.insert_up_to_error(size, &batch, None)?;
                batch.clear();
            }
        }
        self.insert_up_to_error(size, &batch, None)
    }

    /// Inserts all keys of an iterator, each with its weight, as [`UclSketch::insert_all`] does
    /// with keys of weight 1.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().build()?;
    /// sketch.insert_all_weighted([("tea", 12), ("coffee", 3), ("tea", 5)])?;
    /// assert_eq!(sketch.view().estimate("tea").count, 17);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a key does not fit the sketch, a weight is 0 or above 2^63 - 1, or the total weight would
    /// pass 2^63. The keys before it are counted.
    pub fn insert_all_weighted(
        &mut self,
        items: impl IntoIterator<Item = (impl AsKey<K>, u64)>,
    ) -> Result<(), InsertError> {
        let Some(size) = K::SIZE.filter(|&size| size > 0) else {
            return items.into_iter().try_for_each(|(key, weight)| self.insert_weighted(key, weight));
        };
        let mut batch = Vec::with_capacity(BATCH * size);
        let mut weights = Vec::with_capacity(BATCH);
        for (key, weight) in items {
            key.with_key_bytes(|bytes| batch.extend_from_slice(bytes));
            weights.push(weight);
            if weights.len() == BATCH {
                self.insert_up_to_error(size, &batch, Some(&weights))?;
                batch.clear();
                weights.clear();
            }
        }
        self.insert_up_to_error(size, &batch, Some(&weights))
    }

    /// Inserts a batch; if it has an error, the items before the error.
    fn insert_up_to_error(&mut self, size: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), InsertError> {
        // A batch with an error is refused as a whole. Then its items go one by one.
        if self.insert_flat(size, keys, weights).is_ok() {
            return Ok(());
        }
        for (i, key) in keys.chunks_exact(size).enumerate() {
            self.insert_flat(size, key, weights.map(|weights| &weights[i..=i]))?;
        }
        Ok(())
    }
}
