//! Long keys in full, one after the other.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ucl_data_plane::MAX_KEY_BYTES;

use crate::tight;

/// Every so many names the place of one is written down; the others are found from there by their
/// lengths.
const GROUP: usize = 64;

/// A name for each key, by number; an empty one was never given. A name takes two bytes beside its
/// own: where each ends would take eight, a tenth of all that the control plane has for a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    /// A key has at most [`MAX_KEY_BYTES`].
    lengths: Vec<u16>,
    /// Where the first name of each group begins.
    starts: Vec<u64>,
}

impl Names {
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// One more key, without a name.
    pub fn push_empty(&mut self) {
        if self.len().is_multiple_of(GROUP) {
            self.starts.push(self.bytes.len() as u64);
        }
        tight::push(&mut self.lengths, 0);
    }

    pub fn get(&self, at: usize) -> &[u8] {
        &self.bytes[self.start(at)..][..usize::from(self.lengths[at])]
    }

    /// Sets the name, of at most [`MAX_KEY_BYTES`], of a key that has none. All later ones move.
    pub fn give(&mut self, at: usize, name: &[u8]) {
        debug_assert!(self.get(at).is_empty());
        if at + 1 == self.len() {
            tight::extend(&mut self.bytes, name);
        } else {
            let start = self.start(at);
            self.bytes.splice(start..start, name.iter().copied());
        }
        self.lengths[at] = u16::try_from(name.len()).expect("a key has at most 65,535 bytes");
        self.starts[at / GROUP + 1..].iter_mut().for_each(|start| *start += name.len() as u64);
    }

    fn start(&self, at: usize) -> usize {
        let first = at / GROUP * GROUP;
        self.starts[at / GROUP] as usize + self.lengths[first..at].iter().map(|&len| usize::from(len)).sum::<usize>()
    }

    /// Bytes of all names.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes taken beside them.
    pub fn index_bytes(&self) -> usize {
        self.lengths.capacity() * size_of::<u16>() + self.starts.capacity() * size_of::<u64>()
    }
}

/// Written as all bytes, and where each name ends.
impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let end = |end: &mut u64, &len: &u16| {
            *end += u64::from(len);
            Some(*end)
        };
        let ends: Vec<u64> = self.lengths.iter().scan(0, end).collect();
        (serde_bytes::Bytes::new(&self.bytes), ends).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (bytes, ends): (serde_bytes::ByteBuf, Vec<u64>) = Deserialize::deserialize(deserializer)?;
        let all = bytes.len() as u64;
        let keys = ends.len();
        let mut names = Self { bytes: bytes.into_vec(), ..Self::default() };
        let mut start = 0;
        for end in ends {
            let len = end.checked_sub(start).and_then(|len| u16::try_from(len).ok());
            let Some(len) = len.filter(|_| end <= all) else {
                return Err(D::Error::custom(format!(
                    "a name from {start} to {end}, of at most {MAX_KEY_BYTES} bytes"
                )));
            };
            if names.len().is_multiple_of(GROUP) {
                names.starts.push(start);
            }
            names.lengths.push(len);
            start = end;
        }
        if start != all {
            return Err(D::Error::custom(format!("{all} bytes of names for {keys} keys, of which {start} are theirs")));
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As many vectors would, in whatever order names are given, and as they are written and
        /// read.
        #[test]
        fn every_key_has_its_name(
            given in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), any::<prop::sample::Index>()), 0..300),
        ) {
            let (mut names, mut want) = (Names::default(), Vec::<Vec<u8>>::new());
            for (name, at) in given {
                names.push_empty();
                want.push(Vec::new());
                let at = at.index(want.len());
                if want[at].is_empty() {
                    names.give(at, &name);
                    want[at] = name;
                }
            }
            let read: Names = postcard::from_bytes(&postcard::to_stdvec(&names).unwrap()).unwrap();
            for names in [names, read] {
                prop_assert_eq!(names.len(), want.len());
                prop_assert_eq!(names.bytes(), want.iter().map(Vec::len).sum::<usize>());
                prop_assert!((0..want.len()).all(|at| names.get(at) == want[at]));
            }
        }
    }

    #[test]
    fn names_that_do_not_fit_together_are_refused() {
        let read = |bytes: &[u8], ends: &[u64]| {
            let written = postcard::to_stdvec(&(serde_bytes::Bytes::new(bytes), ends)).unwrap();
            postcard::from_bytes::<Names>(&written).is_ok()
        };
        assert!(read(b"abc", &[1, 1, 3]) && read(b"", &[]));
        assert!(!read(b"abc", &[2, 1, 3]) && !read(b"abc", &[1, 2]) && !read(b"abc", &[1, 4]) && !read(b"abc", &[]));
        assert!(read(&[7; 65_535], &[65_535]) && !read(&[7; 65_536], &[65_536]));
    }
}
