//! Why an item was not inserted.

use crate::key::MAX_KEY_BYTES;

/// Error of items that cannot be inserted. Whatever was refused left the sketch as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// The key is longer than any key may be.
    #[error("a key of {bytes} bytes is longer than {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Length of the key.
        bytes: usize,
    },
    /// The sketch has keys of another size.
    #[error("a key of {got} bytes does not fit a sketch of {want}-byte keys")]
    KeySize {
        /// Bytes of the sketch's keys.
        want: usize,
        /// Bytes of the key given.
        got: usize,
    },
    /// The sketch has keys of any length, which
    /// [`DataPlane::insert_bytes`](crate::DataPlane::insert_bytes) takes.
    #[error("this sketch has keys of any length: insert them one by one")]
    Digests,
    /// The sketch has 16-byte keys, which [`DataPlane::insert`](crate::DataPlane::insert) takes.
    #[error("this sketch has 16-byte keys: keys of other lengths do not fit")]
    NoDigests,
    /// The bytes of a batch end in the middle of a key.
    #[error("{bytes} bytes are not a whole number of {key_bytes}-byte keys")]
    Ragged {
        /// Number of given bytes.
        bytes: usize,
        /// Bytes of a key.
        key_bytes: usize,
    },
    /// A batch has more or fewer weights than keys.
    #[error("{weights} weights for {keys} keys")]
    Weights {
        /// Number of given keys.
        keys: usize,
        /// Number of given weights.
        weights: usize,
    },
    /// A weight is 0, or beyond 2^63 - 1.
    #[error("the weight of an item must be from 1 to 2^63 - 1, not {weight}")]
    Weight {
        /// The weight given.
        weight: u64,
    },
    /// The total weight of a stream stays below 2^63, as the control plane's counters do.
    #[error("the weight of the stream would pass 2^63: {total} so far, and {weight} more")]
    TotalWeight {
        /// Total weight so far.
        total: u64,
        /// The weight given.
        weight: u64,
    },
}
