//! The two traits: what a system implements, and what its user sees.

use std::any::Any;

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;

/// A system for keys of `N` bytes. It gets every key with its one hash.
pub trait Sketch<const N: usize>: Send + 'static {
    /// Takes one item. The weight is from 1 to 2^63 - 1, and so is the sum of all.
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error>;

    /// The stream has ended: decode, where the system decodes.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// The key's count.
    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64;

    /// The estimate before it was made a count: neither rounded nor clamped. It is this one that may be unbiased.
    fn unrounded(&self, key: &[u8; N], hash: KeyHash) -> f64 {
        self.estimate(key, hash) as f64
    }

    /// Where the count is guaranteed to lie, both ends included.
    fn bounds(&self, _key: &[u8; N], _hash: KeyHash) -> Option<(u64, u64)> {
        None
    }

    /// Whether the key is known by name; `None` for systems that know no names.
    fn knows(&self, _key: &[u8; N], _hash: KeyHash) -> Option<bool> {
        None
    }

    /// The stream's weight, added up from the state; `None` for systems that cannot tell.
    fn held_weight(&self) -> Option<u64> {
        None
    }

    /// Takes in the state of another, as if it had seen both streams. Of linear systems only.
    fn merge(&mut self, _other: &Self) -> Result<(), Error> {
        Err(Error::NotMergeable)
    }

    /// Bytes by part at the place where the stream is seen.
    fn memory(&self) -> Memory;

    /// Sizes by name.
    fn shape(&self) -> Vec<(&'static str, u64)>;

    /// What it costs elsewhere.
    fn cost(&self) -> Cost {
        Cost::default()
    }
}

/// What some systems cost beside the bytes where the stream is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes sent to where the answers are given: keys as they sit in a slot, counters as they are, nothing compressed.
    pub uplink_bytes: Option<u64>,
    /// Bytes held there.
    pub control_bytes: Option<usize>,
}

/// A system with its key format, as its user sees it: [`Keyed`](crate::Keyed) makes it from a [`Sketch`].
pub trait Rival: Any + Send {
    /// Takes one item.
    fn insert(&mut self, key: &[u8], weight: u64) -> Result<(), Error>;

    /// Takes keys of `key_bytes` bytes that lie side by side, with their weights (1 each, if `None`). One call a batch.
    fn insert_flat(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), Error>;

    /// The stream has ended: decode, where the system decodes. Answers before that are provisional.
    fn finish(&mut self) -> Result<(), Error>;

    /// The key's count.
    fn estimate(&self, key: &[u8]) -> u64;

    /// The estimate before it was made a count: neither rounded nor clamped.
    fn unrounded(&self, key: &[u8]) -> f64;

    /// Where the count is guaranteed to lie, both ends included.
    fn bounds(&self, key: &[u8]) -> Option<(u64, u64)>;

    /// Whether the key is known by name; `None` for systems that know no names.
    fn knows(&self, key: &[u8]) -> Option<bool>;

    /// The stream's weight, added up from the state; `None` for systems that cannot tell.
    fn held_weight(&self) -> Option<u64>;

    /// Takes in the state of another, as if it had seen both streams.
    fn merge(&mut self, other: &dyn Rival) -> Result<(), Error>;

    /// Bytes by part at the place where the stream is seen.
    fn memory(&self) -> Memory;

    /// Sizes by name.
    fn shape(&self) -> Vec<(&'static str, u64)>;

    /// What it costs elsewhere.
    fn cost(&self) -> Cost;
}
