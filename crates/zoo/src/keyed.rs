//! Adapter that checks and hashes keys in front of a system.

use std::any::Any;

use ucl_data_plane::{HashSeed, InsertError, KeyFormat, Memory, add_weight, joint_weight};

use crate::error::Error;
use crate::plan::{RivalPlan, identity};
use crate::rival::{Cost, Rival, Sketch};

/// Checks and hashes each item once, and passes it to a [`Sketch`].
pub struct Keyed<const N: usize, S> {
    format: KeyFormat,
    seed: HashSeed,
    weight: u64,
    sketch: S,
}

impl<const N: usize, S: Sketch<N>> Keyed<N, S> {
    /// Creates a system for the plan's keys.
    pub fn new(plan: &RivalPlan<'_>, sketch: S) -> Self {
        Self { format: plan.keys, seed: plan.hash_seed(), weight: 0, sketch }
    }

    /// Returns the system.
    pub fn sketch(&self) -> &S {
        &self.sketch
    }

    #[inline(always)]
    fn take(&mut self, key: &[u8; N], weight: u64) -> Result<(), Error> {
        self.weight = add_weight(self.weight, weight)?;
        self.sketch.insert(key, self.seed.hash(key), weight)
    }

    fn take_all(&mut self, keys: &[[u8; N]], weights: Option<&[u64]>) -> Result<(), Error> {
        match weights {
            None => keys.iter().try_for_each(|key| self.take(key, 1)),
            Some(weights) => keys.iter().zip(weights).try_for_each(|(key, &weight)| self.take(key, weight)),
        }
    }
}

impl<const N: usize, S: Sketch<N>> Rival for Keyed<N, S> {
    fn insert(&mut self, key: &[u8], weight: u64) -> Result<(), Error> {
        self.format.check(key.len())?;
        let key = identity(self.format, &self.seed, key).expect("a key of this format");
        self.take(&key, weight)
    }

    fn insert_flat(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), Error> {
        self.format.check(key_bytes)?;
        if !self.format.any_length() {
            return self.take_all(keys.as_chunks::<N>().0, weights);
        }
        let weights = (0..).map(|at| weights.map_or(1, |weights| weights[at]));
        keys.chunks_exact(key_bytes.max(1)).zip(weights).try_for_each(|(key, weight)| self.insert(key, weight))
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.sketch.finish()
    }

    fn estimate(&self, key: &[u8]) -> u64 {
        match identity(self.format, &self.seed, key) {
            Some(key) => self.sketch.estimate(&key, self.seed.hash(&key)),
            None => 0, // no key of the stream
        }
    }

    fn unrounded(&self, key: &[u8]) -> f64 {
        let key = identity(self.format, &self.seed, key);
        key.map_or(0.0, |key| self.sketch.unrounded(&key, self.seed.hash(&key)))
    }

    fn bounds(&self, key: &[u8]) -> Option<(u64, u64)> {
        match identity(self.format, &self.seed, key) {
            Some(key) => self.sketch.bounds(&key, self.seed.hash(&key)),
            None => Some((0, 0)),
        }
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        let key = identity(self.format, &self.seed, key);
        key.map_or(Some(false), |key| self.sketch.knows(&key, self.seed.hash(&key)))
    }

    fn held_weight(&self) -> Option<u64> {
        self.sketch.held_weight()
    }

    fn merge(&mut self, other: &dyn Rival) -> Result<(), Error> {
        let other: &Self = (other as &dyn Any).downcast_ref().ok_or(Error::Unlike)?;
        if (self.format, self.seed) != (other.format, other.seed) || self.sketch.shape() != other.sketch.shape() {
            return Err(Error::Unlike);
        }
        let too_much = InsertError::TotalWeight { total: self.weight, weight: other.weight };
        let weight = joint_weight(self.weight, other.weight).ok_or(too_much)?;
        self.sketch.merge(&other.sketch)?;
        self.weight = weight;
        Ok(())
    }

    fn memory(&self) -> Memory {
        self.sketch.memory()
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.sketch.shape()
    }

    fn cost(&self) -> Cost {
        self.sketch.cost()
    }
}
