//! The stream of all insert and query benchmarks, with keys of three kinds.

use ucl_streams::{SplitMix64, ZipfKeys};

/// Number of items in the stream.
pub const ITEMS: usize = 2_000_000;
/// Number of keys to draw from; about 82,500 of them occur.
pub const KEYS: u64 = 100_000;

/// Returns the stream with keys of 4 bytes: Zipf(1.1).
pub fn numbers() -> Vec<[u8; 4]> {
    ZipfKeys::new(1.1, KEYS, 7).take(ITEMS).collect()
}

/// Returns the same stream with keys of 13 bytes, as long as an IPv4 five-tuple.
pub fn five_tuples(numbers: &[[u8; 4]]) -> Vec<[u8; 13]> {
    let widen = |&number: &[u8; 4]| {
        let mut key = [0; 13];
        key[..4].copy_from_slice(&number);
        key[4..12].copy_from_slice(&SplitMix64::new(u32::from_le_bytes(number).into()).next_u64().to_le_bytes());
        key[12] = 6;
        key
    };
    numbers.iter().map(widen).collect()
}

/// Keys of various lengths, laid end to end as a reader of lines has them.
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Texts {
    /// Creates the stream of `numbers` with keys of 10 to 40 bytes of text, 25 on average.
    pub fn new(numbers: &[[u8; 4]]) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(numbers.len()));
        for &number in numbers {
            let number = u32::from_le_bytes(number);
            let tail = SplitMix64::new(number.into()).below(31) as usize;
            bytes.extend_from_slice(format!("/{number:08x}/{}", &"abcdefghijklmnopqrstuvwxyz.html"[..tail]).as_bytes());
            ends.push(bytes.len() as u32);
        }
        Self { bytes, ends }
    }

    /// Returns all keys in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end as usize)..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// All three kinds have the same keys under other names. (That they follow Zipf's law is a test
    /// of the generator.)
    #[test]
    fn widening_keeps_keys_apart() {
        let numbers = &numbers()[..100_000];
        let distinct = numbers.iter().collect::<HashSet<_>>().len();
        assert_eq!(five_tuples(numbers).iter().collect::<HashSet<_>>().len(), distinct);
        let texts = Texts::new(numbers);
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), distinct);
        assert_eq!(texts.iter().count(), numbers.len());
        let lengths: HashSet<usize> = texts.iter().map(<[u8]>::len).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max(), lengths.len()), (Some(&10), Some(&40), 31));
    }
}
