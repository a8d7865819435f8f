//! Count-Min and Count Sketch as published: rows of 32-bit counters that take the whole budget, and nothing else.
//!
//! They answer for any key and know none. Both overestimate or scatter by the weight of the keys that share a counter, about
//! `W / width` a row, which is what solving the equations takes away.
//!
//! References: Cormode and Muthukrishnan, "An improved data stream summary", 2005; Charikar, Chen and Farach-Colton,
//! "Finding frequent items in data streams", 2002.

use std::collections::BTreeMap;

use ucl_data_plane::{CounterBits, Counters, HashSeed, KeyFormat, KeyHash, digest};
use ucl_sketch::{ConfigError, Memory};
use ucl_streams::Batch;

use crate::system::{Answer, Extras, Request, System, SystemError};

/// Rows: the paper's number of hash functions for all methods.
const ROWS: usize = 4;
const BITS: CounterBits = CounterBits::B32;

/// A Count-Min, or, with signs, a Count Sketch.
pub struct RowSketch {
    keys: KeyFormat,
    seed: HashSeed,
    width: u32,
    counters: Counters,
    weight: u64,
}

impl RowSketch {
    /// A sketch that fills the budget.
    pub fn new(request: &Request<'_>, signed: bool) -> Result<Self, SystemError> {
        let row_of_one = BITS.bytes(ROWS);
        let width = request.budget / row_of_one;
        if width == 0 {
            return Err(SystemError::Budget { budget: request.budget, least: row_of_one });
        }
        let width = width.min(1 << 28) as u32;
        Ok(Self {
            keys: request.keys,
            seed: HashSeed::new(request.seed),
            width,
            counters: Counters::new(ROWS * width as usize, BITS, signed),
            weight: 0,
        })
    }

    /// Other hash functions from now on. The counters so far are no longer where anybody looks: what a plain sketch cannot
    /// survive.
    pub(crate) fn rehash(&mut self, seed: u64) {
        self.seed = HashSeed::new(seed);
    }

    #[inline]
    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), SystemError> {
        if !(1..1 << 63).contains(&weight) {
            return Err(ConfigError::Weight { weight }.into());
        }
        let signed = self.counters.signed();
        for row in 0..ROWS {
            let (at, negative) = hash.row(row, self.width);
            if self.counters.add(row * self.width as usize + at as usize, signed & negative, weight) != 0 {
                return Err(SystemError::Overflow);
            }
        }
        self.weight += weight;
        Ok(())
    }

    fn add_all<'k>(
        &mut self,
        hashes: impl Iterator<Item = KeyHash> + 'k,
        weights: Option<&[u64]>,
    ) -> Result<(), SystemError> {
        match weights {
            None => hashes.into_iter().try_for_each(|hash| self.add(hash, 1)),
            Some(weights) => hashes.zip(weights).try_for_each(|(hash, &weight)| self.add(hash, weight)),
        }
    }

    fn insert_fixed<const N: usize>(&mut self, keys: &[u8], weights: Option<&[u64]>) -> Result<(), SystemError> {
        let seed = self.seed;
        self.add_all(keys.as_chunks::<N>().0.iter().map(|key| seed.hash(key)), weights)
    }

    /// `None` for a key of a size that the stream does not have.
    fn hash(&self, key: &[u8]) -> Option<KeyHash> {
        Some(match self.keys {
            KeyFormat::Fixed(4) => self.seed.hash::<4>(key.try_into().ok()?),
            KeyFormat::Fixed(8) => self.seed.hash::<8>(key.try_into().ok()?),
            KeyFormat::Fixed(13) => self.seed.hash::<13>(key.try_into().ok()?),
            KeyFormat::Fixed(_) => self.seed.hash::<16>(key.try_into().ok()?),
            KeyFormat::Digest => self.seed.hash(&digest(key, self.seed.digest_seed())),
        })
    }
}

impl System for RowSketch {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        let weights = batch.weights();
        match (self.keys, batch.fixed()) {
            (KeyFormat::Fixed(4), Some((4, keys))) => self.insert_fixed::<4>(keys, weights),
            (KeyFormat::Fixed(8), Some((8, keys))) => self.insert_fixed::<8>(keys, weights),
            (KeyFormat::Fixed(13), Some((13, keys))) => self.insert_fixed::<13>(keys, weights),
            (KeyFormat::Fixed(16), Some((16, keys))) => self.insert_fixed::<16>(keys, weights),
            (KeyFormat::Digest, _) => {
                let seed = self.seed;
                self.add_all(batch.keys().map(move |key| seed.hash(&digest(key, seed.digest_seed()))), weights)
            }
            (KeyFormat::Fixed(want), _) => {
                let got = batch.keys().map(<[u8]>::len).find(|&len| len != usize::from(want)).unwrap_or(0);
                Err(ConfigError::KeySize { want: want.into(), got }.into())
            }
        }
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        let Some(hash) = self.hash(key) else { return Answer { estimate: 0, bounds: Some((0, 0)) } };
        let signed = self.counters.signed();
        let mut values = [0; ROWS];
        for (row, value) in values.iter_mut().enumerate() {
            let (at, negative) = hash.row(row, self.width);
            let counter = self.counters.get(row * self.width as usize + at as usize);
            *value = if signed & negative { -counter } else { counter };
        }
        values.sort_unstable();
        if !signed {
            let least = values[0] as u64;
            return Answer { estimate: least, bounds: Some((0, least)) };
        }
        // The others have at most W - x, and so `value <= x + (W - x)` and `value >= x - (W - x)`: x <= (value + W) / 2.
        let upper = ((values[0] + self.weight as i64) / 2).max(0) as u64;
        let median = (values[ROWS / 2 - 1] + values[ROWS / 2] + 1).div_euclid(2).max(0) as u64;
        Answer { estimate: median.min(upper), bounds: Some((0, upper)) }
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.counters.memory());
        memory
    }

    fn extras(&self) -> Extras {
        let shape = [("rows", ROWS as u64), ("width", self.width.into()), ("counter_bits", BITS.bits().into())];
        Extras { shape: BTreeMap::from(shape), ..Extras::default() }
    }
}
