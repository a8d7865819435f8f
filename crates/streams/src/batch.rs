//! Batches of items: one flat byte buffer instead of one allocation per key.
//!
//! A consumer asks [`Batch::fixed`] first. When all keys of the batch have one size they lie side
//! by side, and a tight loop over `chunks_exact` (or a cast to `&[[u8; 4]]`) is possible; otherwise
//! [`Batch::keys`] walks the key ends.

/// Some consecutive items of a stream, borrowed from the reader.
///
/// ```
/// use ucl_streams::BatchBuf;
///
/// let mut buffer = BatchBuf::new();
/// buffer.push(b"ab", 1);
/// buffer.push(b"cd", 1);
/// let batch = buffer.as_batch();
/// assert_eq!(batch.fixed(), Some((2, &b"abcd"[..])));
/// assert_eq!(batch.weights(), None, "every weight is 1");
///
/// buffer.push(b"efg", 5);
/// let batch = buffer.as_batch();
/// assert_eq!(batch.fixed(), None);
/// assert_eq!(batch.items().collect::<Vec<_>>(), [(&b"ab"[..], 1), (b"cd", 1), (b"efg", 5)]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    sizes: KeySizes<'a>,
    weights: Option<&'a [u64]>,
    len: usize,
    pub(crate) mark: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum KeySizes<'a> {
    /// Every key has this many bytes, at least 1.
    Fixed(usize),
    /// Keys of different sizes: the end of each key in `bytes`.
    Varied(&'a [usize]),
}

impl<'a> Batch<'a> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the batch has no item. [`read`](crate::read) hands out no empty batches.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size of the keys and their bytes end to end, if all keys have the same size.
    pub fn fixed(&self) -> Option<(usize, &'a [u8])> {
        match self.sizes {
            KeySizes::Fixed(width) => Some((width, self.bytes)),
            KeySizes::Varied(_) => None,
        }
    }

    /// Returns the weights, or `None` if all of them are 1.
    pub fn weights(&self) -> Option<&'a [u64]> {
        self.weights
    }

    /// Sum of all weights.
    pub fn total_weight(&self) -> u128 {
        self.weights.map_or(self.len as u128, |weights| weights.iter().map(|&w| u128::from(w)).sum())
    }

    /// Returns the byte offset in the input from which a new read delivers the items after this
    /// batch, if there is one. There is none in the middle of a window, in compressed inputs, and
    /// in formats whose records depend on what comes before them (`csv`, `pcap` and others).
    pub fn mark(&self) -> Option<u64> {
        self.mark
    }

    /// Returns the keys in stream order.
    pub fn keys(&self) -> Keys<'a> {
        Keys { batch: *self, index: 0, start: 0 }
    }

    /// Returns the keys with their weights, in stream order.
    pub fn items(&self) -> impl Iterator<Item = (&'a [u8], u64)> + use<'a> {
        let weights = self.weights;
        self.keys().enumerate().map(move |(i, key)| (key, weights.map_or(1, |w| w[i])))
    }
}

/// Iterator over the keys of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Keys<'a> {
    batch: Batch<'a>,
    index: usize,
    start: usize,
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.index == self.batch.len {
            return None;
        }
        let end = match self.batch.sizes {
            KeySizes::Fixed(width) => self.start + width,
            KeySizes::Varied(ends) => ends[self.index],
        };
        let key = &self.batch.bytes[self.start..end];
        self.index += 1;
        self.start = end;
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batch.len - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Keys<'_> {}

/// Owned buffer of items, which can be read as a [`Batch`], cleared and filled again.
#[derive(Debug, Clone, Default)]
pub struct BatchBuf {
    bytes: Vec<u8>,
    /// Filled from the first key that breaks the common width; empty before.
    ends: Vec<usize>,
    /// Filled from the first weight that is not 1; empty before.
    weights: Vec<u64>,
    len: usize,
    width: usize,
    varied: bool,
    weighted: bool,
}

impl BatchBuf {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of items in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the buffer has no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Total bytes of all keys in the buffer.
    pub fn key_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all items and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.weights.clear();
        self.len = 0;
        self.varied = false;
        self.weighted = false;
    }

    /// Appends one item.
    #[inline]
    pub fn push(&mut self, key: &[u8], weight: u64) {
        if self.len == 0 {
            // Keys of no bytes cannot be told apart by width, so they are never `Fixed`.
            self.width = key.len();
            self.varied = key.is_empty();
        } else if !self.varied && key.len() != self.width {
            self.give_up_width();
        }
        self.bytes.extend_from_slice(key);
        if self.varied {
            self.ends.push(self.bytes.len());
        }
        if weight != 1 && !self.weighted {
            self.weighted = true;
            self.weights.resize(self.len, 1);
        }
        if self.weighted {
            self.weights.push(weight);
        }
        self.len += 1;
    }

    /// Appends keys of `width` bytes each that already lie side by side, all of weight 1. A
    /// remainder shorter than a key is not taken.
    pub(crate) fn push_block(&mut self, width: usize, keys: &[u8]) {
        if self.len == 0 {
            self.width = width;
        }
        if self.varied || self.weighted || self.width != width {
            keys.chunks_exact(width).for_each(|key| self.push(key, 1));
        } else {
            let count = keys.len() / width;
            self.bytes.extend_from_slice(&keys[..count * width]);
            self.len += count;
        }
    }

    /// Returns the items in the buffer as a batch.
    pub fn as_batch(&self) -> Batch<'_> {
        let sizes =
            if self.varied || self.len == 0 { KeySizes::Varied(&self.ends) } else { KeySizes::Fixed(self.width) };
        let weights = self.weighted.then_some(&self.weights[..]);
        Batch { bytes: &self.bytes, sizes, weights, len: self.len, mark: None }
    }

    #[cold]
    fn give_up_width(&mut self) {
        self.varied = true;
        self.ends.extend((1..=self.len).map(|i| i * self.width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn what_goes_in_comes_out(items in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), 1u64..4), 0..40)) {
            let mut buffer = BatchBuf::new();
            // Reuse after clear must not remember the old sizes.
            buffer.push(b"left over", 9);
            buffer.clear();
            items.iter().for_each(|(key, weight)| buffer.push(key, *weight));
            let batch = buffer.as_batch();
            let got: Vec<_> = batch.items().map(|(k, w)| (k.to_vec(), w)).collect();
            prop_assert_eq!(&got, &items);
            let widths: std::collections::HashSet<_> = items.iter().map(|(k, _)| k.len()).collect();
            let one_width = widths.len() == 1 && !widths.contains(&0);
            prop_assert_eq!(batch.fixed().is_some(), one_width);
            prop_assert_eq!(batch.weights().is_none(), items.iter().all(|(_, w)| *w == 1));
            prop_assert_eq!(batch.total_weight(), items.iter().map(|(_, w)| u128::from(*w)).sum::<u128>());
        }
    }

    #[test]
    fn blocks_join_single_keys() {
        let mut buffer = BatchBuf::new();
        buffer.push_block(2, b"aabbc");
        buffer.push(b"dd", 1);
        assert_eq!(buffer.as_batch().fixed(), Some((2, &b"aabbdd"[..])));
        buffer.push(b"e", 1);
        buffer.push_block(2, b"ff");
        assert_eq!(buffer.as_batch().keys().collect::<Vec<_>>(), [&b"aa"[..], b"bb", b"dd", b"e", b"ff"]);
    }
}
