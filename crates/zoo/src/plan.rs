//! Input of every builder: budget, key format, seed and prior knowledge.

use ucl_data_plane::{HashSeed, KeyFormat};

use crate::error::Error;

/// The counters a key touches, in every system: the paper's number of hash functions for all
/// methods.
pub(crate) const ROWS: usize = 4;

/// Budget of a system and prior knowledge. Only [`Knowledge`] depends on the stream.
#[derive(Clone, Copy, Debug)]
pub struct RivalPlan<'a> {
    /// Memory budget in bytes on the device that sees the stream.
    pub budget: usize,
    /// Format of the keys.
    pub keys: KeyFormat,
    /// Seed of every hash and random choice.
    pub seed: u64,
    /// Expected number of distinct keys. The default is a quarter of the budget in bytes. LSS sizes
    /// its filter by it.
    pub expected_keys: Option<u64>,
    /// True to use the paper's parameters for Retail at this budget ([`paper`](crate::paper))
    /// instead of our own division.
    pub paper_shape: bool,
    /// Knowledge for the oracle of a learned sketch.
    pub knowledge: Option<Knowledge<'a>>,
}

/// Knowledge for the oracle of a [learned sketch](crate::learned).
#[derive(Clone, Copy, Debug)]
pub enum Knowledge<'a> {
    /// **Ground truth**: the keys of the stream, the most frequent first. For an ideal oracle.
    Ranking(&'a [&'a [u8]]),
    /// Exact counts of an earlier part of the stream. For a learned oracle.
    Sample(&'a [(&'a [u8], u64)]),
}

impl<'a> RivalPlan<'a> {
    /// Creates a plan without expected keys, paper shape or knowledge.
    pub fn new(budget: usize, keys: KeyFormat, seed: u64) -> Self {
        Self { budget, keys, seed, expected_keys: None, paper_shape: false, knowledge: None }
    }

    pub(crate) fn hash_seed(&self) -> HashSeed {
        HashSeed::new(u128::from(self.seed).into())
    }

    pub(crate) fn expected_keys(&self) -> u64 {
        self.expected_keys.unwrap_or(self.budget as u64 / 4).max(1)
    }

    /// A share of the budget, in bytes.
    pub(crate) fn share(&self, percent: usize) -> usize {
        (self.budget as u128 * percent as u128 / 100) as usize
    }

    /// Returns the number of things of `bytes` bytes that fit into `room`, at least `least` of
    /// them.
    ///
    /// `fixed` is what the rest of the system takes whatever its size; it serves the message only.
    pub(crate) fn fit(&self, room: usize, bytes: usize, least: usize, fixed: usize) -> Result<u32, Error> {
        let count = room / bytes;
        if count < least {
            return Err(Error::Budget { budget: self.budget, least: fixed + least * bytes });
        }
        Ok(count.min(1 << 28) as u32)
    }

    /// The row of the paper's table, if its shapes are asked for: 0 for 16KB, 7 for 128KB.
    pub(crate) fn paper_column(&self) -> Result<Option<usize>, Error> {
        const STEP: usize = 16 << 10;
        if !self.paper_shape {
            return Ok(None);
        }
        let column = self.budget / STEP;
        if self.keys != KeyFormat::Fixed(4) || !self.budget.is_multiple_of(STEP) || !(1..=8).contains(&column) {
            return Err(Error::NoPaperShape { budget: self.budget, keys: self.keys });
        }
        Ok(Some(column - 1))
    }
}

/// A key as a system sees it: itself, or its digest. `None` for a key of another size than the
/// format's.
#[inline]
pub(crate) fn identity<const N: usize>(format: KeyFormat, seed: &HashSeed, key: &[u8]) -> Option<[u8; N]> {
    match format {
        KeyFormat::Fixed(_) => key.try_into().ok(),
        KeyFormat::Digest | KeyFormat::Code(_) => seed.digest_key().digest(key).as_slice().try_into().ok(),
    }
}
