//! The traits [`Sketch`], which a system implements, and [`Rival`], which its user calls.

use std::any::Any;

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;

/// System for keys of `N` bytes. It gets every key with its hash.
pub trait Sketch<const N: usize>: Send + 'static {
    /// Inserts one item. Its weight, and the total weight, must be from 1 to 2^63 - 1.
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error>;

    /// Ends the stream and decodes, if the system decodes.
    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the estimated count of a key.
    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64;

    /// Returns the estimate before rounding and clamping. An unbiased system is unbiased in this
    /// value.
    fn unrounded(&self, key: &[u8; N], hash: KeyHash) -> f64 {
        self.estimate(key, hash) as f64
    }

    /// Returns guaranteed lower and upper bounds of the count, both inclusive.
    fn bounds(&self, _key: &[u8; N], _hash: KeyHash) -> Option<(u64, u64)> {
        None
    }

    /// Returns whether the key is known by name; `None` for systems that store no names.
    fn knows(&self, _key: &[u8; N], _hash: KeyHash) -> Option<bool> {
        None
    }

    /// Returns the weight of the stream as the state gives it; `None` for systems that cannot tell.
    fn held_weight(&self) -> Option<u64> {
        None
    }

    /// Adds the state of `other`, as if this system had seen both streams. Only linear systems can
    /// do this.
    fn merge(&mut self, _other: &Self) -> Result<(), Error> {
        Err(Error::NotMergeable)
    }

    /// Returns the bytes by part on the device that sees the stream.
    fn memory(&self) -> Memory;

    /// Returns the sizes by name.
    fn shape(&self) -> Vec<(&'static str, u64)>;

    /// Returns the costs outside the device that sees the stream.
    fn cost(&self) -> Cost {
        Cost::default()
    }
}

/// Costs of a system outside the device that sees the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes sent to the machine that answers, without compression.
    pub uplink_bytes: Option<u64>,
    /// Bytes held by the machine that answers.
    pub control_bytes: Option<usize>,
}

/// System with its key format, as its user sees it. [`Keyed`](crate::Keyed) makes it from a
/// [`Sketch`].
pub trait Rival: Any + Send {
    /// Inserts one item.
    fn insert(&mut self, key: &[u8], weight: u64) -> Result<(), Error>;

    /// Inserts keys of `key_bytes` bytes each that are stored end to end, with their weights (1
    /// each if `None`).
    fn insert_flat(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), Error>;

    /// Ends the stream and decodes, if the system decodes. Earlier answers are provisional.
    fn finish(&mut self) -> Result<(), Error>;

    /// Returns the estimated count of a key.
    fn estimate(&self, key: &[u8]) -> u64;

    /// Returns the estimate before rounding and clamping.
    fn unrounded(&self, key: &[u8]) -> f64;

    /// Returns guaranteed lower and upper bounds of the count, both inclusive.
    fn bounds(&self, key: &[u8]) -> Option<(u64, u64)>;

    /// Returns whether the key is known by name; `None` for systems that store no names.
    fn knows(&self, key: &[u8]) -> Option<bool>;

    /// Returns the weight of the stream as the state gives it; `None` for systems that cannot tell.
    fn held_weight(&self) -> Option<u64>;

    /// Adds the state of `other`, as if this system had seen both streams.
    fn merge(&mut self, other: &dyn Rival) -> Result<(), Error>;

    /// Returns the bytes by part on the device that sees the stream.
    fn memory(&self) -> Memory;

    /// Returns the sizes by name.
    fn shape(&self) -> Vec<(&'static str, u64)>;

    /// Returns the costs outside the device that sees the stream.
    fn cost(&self) -> Cost;
}
