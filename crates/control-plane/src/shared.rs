//! A vector in chunks that two owners share until one of them writes.
//!
//! A view needs what the control plane knows of every key, at one moment. Copied, that would be
//! hundreds of megabytes for some million keys, for each question. So both have the same chunks,
//! and who writes to a chunk that another one still has takes a copy of it first.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Entries of a chunk: a few kilobytes, so that a single write copies little, and sharing all of
/// them is as good as free.
const CHUNK: usize = 1024;

/// One entry per known key or column. The last chunk has entries to spare, no other has.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    chunks: Vec<Arc<[T; CHUNK]>>,
    len: usize,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<T: Copy + Default> Shared<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn get(&self, at: usize) -> T {
        debug_assert!(at < self.len);
        self.chunks[at / CHUNK][at % CHUNK]
    }

    /// The entry, if there are so many.
    #[inline]
    pub fn find(&self, at: usize) -> Option<T> {
        (at < self.len).then(|| self.get(at))
    }

    /// An entry to be written to.
    #[inline]
    pub fn entry(&mut self, at: usize) -> &mut T {
        debug_assert!(at < self.len);
        &mut Arc::make_mut(&mut self.chunks[at / CHUNK])[at % CHUNK]
    }

    /// Changes an entry. One that stays as it is leaves its chunk shared.
    #[inline]
    pub fn update(&mut self, at: usize, change: impl FnOnce(&mut T))
    where
        T: PartialEq,
    {
        let before = self.get(at);
        let mut after = before;
        change(&mut after);
        if after != before {
            *self.entry(at) = after;
        }
    }

    pub fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new([T::default(); CHUNK]));
        }
        self.len += 1;
        *self.entry(self.len - 1) = value;
    }

    /// More entries of this value, up to `len` in all.
    pub fn grow(&mut self, len: usize, value: T) {
        while self.len < len {
            self.push(value);
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.iter().copied()).take(self.len)
    }

    /// The chunks to be written to, with the number of the first entry of each.
    pub fn chunks_mut(&mut self) -> (&mut [Arc<[T; CHUNK]>], usize) {
        (&mut self.chunks, CHUNK)
    }

    /// Bytes taken, those that another one shares too.
    pub fn memory(&self) -> usize {
        self.chunks.len() * size_of::<[T; CHUNK]>() + self.chunks.capacity() * size_of::<Arc<[T; CHUNK]>>()
    }
}

impl<T: Copy + Default> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut shared = Self::default();
        values.into_iter().for_each(|value| shared.push(value));
        shared
    }
}

/// As a vector is.
impl<T: Copy + Default + Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut sequence = serializer.serialize_seq(Some(self.len))?;
        self.iter().try_for_each(|value| sequence.serialize_element(&value))?;
        sequence.end()
    }
}

impl<'de, T: Copy + Default + Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<T>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_after_sharing_is_seen_by_its_owner_alone() {
        let mut ours: Shared<u32> = (0..5_000).collect();
        let theirs = ours.clone();
        *ours.entry(2_000) = 7;
        ours.push(8);
        ours.grow(6_000, 9);
        assert_eq!((theirs.len(), theirs.get(2_000), theirs.find(5_000)), (5_000, 2_000, None));
        assert!(theirs.iter().eq(0..5_000));
        assert_eq!((ours.len(), ours.get(2_000), ours.get(5_000), ours.get(5_999)), (6_000, 7, 8, 9));
        // Only the chunks that were written to are others.
        let same = ours.chunks.iter().zip(&theirs.chunks).filter(|(ours, theirs)| Arc::ptr_eq(ours, theirs)).count();
        assert_eq!((same, theirs.chunks.len()), (3, 5));
    }

    #[test]
    fn it_is_written_as_a_vector_is() {
        for len in [0, 1, CHUNK, 3 * CHUNK + 1] {
            let values: Vec<u64> = (0..len as u64).collect();
            let shared: Shared<u64> = values.iter().copied().collect();
            let written = postcard::to_stdvec(&shared).unwrap();
            assert_eq!(written, postcard::to_stdvec(&values).unwrap());
            assert!(postcard::from_bytes::<Shared<u64>>(&written).unwrap().iter().eq(values));
        }
    }
}
