//! Elastic Sketch: a heavy part of buckets with votes, and a light part of small counters.
//!
//! A bucket holds a key, `vote+` (its hits), `vote-` (items of other keys that came by) and a flag
//! (whether some of the key's items may be in the light part). An item that finds its key adds to
//! `vote+`. Any other adds to `vote-`; while `vote- < 8 · vote+` it goes into the light part, and
//! otherwise the holder is *ostracised*: it goes into the light part with all its `vote+`, and the
//! item takes the bucket with `vote+ = vote- =` its weight and the flag set. A key in a bucket
//! without flag is exact; with the flag, the light part's answer is added; any other key has the
//! light part's answer alone.
//!
//! # Layout
//! A quarter of the budget is buckets of `key | flag and vote+ | vote-`, the rest a Count-Min of
//! **one row of 8-bit counters** that stay at 255, as published: the light part is for mice, and an
//! ostracised elephant does not fit into it. So Elastic Sketch may answer too little, and its upper
//! bound is lost where a counter is full. `vote+` has 31 bits; overflow of a vote is an error.
//!
//! Buckets may also have several entries with one `vote-` for all of them, the smallest entry being
//! the one voted against (the publication's software version): the shape behind the UCL-sketch
//! paper's figures, with a light part of one row of 32-bit counters. There `vote-` starts again
//! at 0.
//!
//! # Differences
//! - No compression, merging of different widths, or growing of the heavy part.
//!
//! Reference: Yang et al., "Elastic Sketch: adaptive and fast network-wide measurements",
//! SIGCOMM 2018.

use ucl_data_plane::{HashSeed, KeyHash, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::RivalPlan;
use crate::rival::Sketch;
use crate::rows::UnsignedRows;

/// Ratio `vote- / vote+` at which a key is evicted (λ).
pub const OSTRACISM: u64 = 8;
/// Percent of the budget for the heavy part.
const HEAVY_PERCENT: usize = 25;
const FLAG: u32 = 1 << 31;
const COUNT: u32 = FLAG - 1;

/// An Elastic Sketch.
#[derive(Clone, Debug)]
pub struct ElasticSketch<const N: usize> {
    seed: HashSeed,
    buckets: u32,
    /// Entries a bucket.
    entries: usize,
    keys: Vec<[u8; N]>,
    /// `vote+` and, in the top bit, the flag.
    votes: Vec<u32>,
    /// `vote-`, one a bucket.
    against: Vec<u32>,
    light: Light,
    weight: u64,
}

#[derive(Clone, Debug)]
enum Light {
    /// One row of bytes that saturate.
    Bytes(Vec<u8>),
    Words(UnsignedRows),
}

impl Light {
    #[inline(always)]
    fn at(counters: &[u8], hash: KeyHash) -> usize {
        hash.row(0, counters.len() as u32).0 as usize
    }

    #[inline(always)]
    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        match self {
            Self::Bytes(counters) => {
                let at = Self::at(counters, hash);
                counters[at] = counters[at].saturating_add(weight.min(255) as u8);
                Ok(())
            }
            Self::Words(rows) => rows.add(hash, weight),
        }
    }

    fn least(&self, hash: KeyHash) -> u64 {
        match self {
            Self::Bytes(counters) => counters[Self::at(counters, hash)].into(),
            Self::Words(rows) => rows.least(hash).into(),
        }
    }

    fn is_full(&self, hash: KeyHash) -> bool {
        matches!(self, Self::Bytes(counters) if counters[Self::at(counters, hash)] == u8::MAX)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Bytes(counters) => counters.len(),
            Self::Words(rows) => rows.bytes(),
        }
    }
}

impl<const N: usize> ElasticSketch<N> {
    /// Creates a sketch as published, or with the paper's shape.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let (buckets, entries, light) = match plan.paper_column()? {
            Some(column) => {
                let (buckets, entries) = paper::ELASTIC[column];
                (buckets, entries as usize, Light::Words(UnsignedRows::new(1, paper::NARROW_WIDTH[column])))
            }
            None => {
                let bucket = N + 8;
                // A budget for which the share would be none at all has one bucket and one counter.
                let buckets = plan.fit(plan.share(HEAVY_PERCENT).max(bucket), bucket, 1, 0)?;
                let heavy = buckets as usize * bucket;
                let width = plan.fit(plan.budget.saturating_sub(heavy), 1, 1, bucket)?;
                (buckets, 1, Light::Bytes(vec![0; width as usize]))
            }
        };
        let all = buckets as usize * entries;
        Ok(Self {
            seed: plan.hash_seed(),
            buckets,
            entries,
            keys: vec![[0; N]; all],
            votes: vec![0; all],
            against: vec![0; buckets as usize],
            light,
            weight: 0,
        })
    }

    /// The key's entry, or else an empty one, or else the one with the fewest votes.
    #[inline(always)]
    fn entry(&self, bucket: usize, key: &[u8; N]) -> Entry {
        let first = bucket * self.entries;
        let mut fewest = u32::MAX;
        let mut place = first;
        for at in first..first + self.entries {
            let votes = self.votes[at] & COUNT;
            if votes == 0 {
                return Entry::Empty(at); // entries fill up in order, and are never emptied
            }
            if self.keys[at] == *key {
                return Entry::Own(at);
            }
            if votes < fewest {
                (fewest, place) = (votes, at);
            }
        }
        Entry::Other(place)
    }

    fn own(&self, key: &[u8; N], hash: KeyHash) -> Option<(u64, bool)> {
        match self.entry(hash.slot(self.buckets), key) {
            Entry::Own(at) => Some(((self.votes[at] & COUNT).into(), self.votes[at] & FLAG != 0)),
            Entry::Empty(_) | Entry::Other(_) => None,
        }
    }
}

enum Entry {
    Own(usize),
    Empty(usize),
    Other(usize),
}

/// Votes are counted in 31 bits.
#[inline(always)]
fn vote(votes: u32, weight: u64) -> Result<u32, Error> {
    let sum = u64::from(votes & COUNT).saturating_add(weight);
    if sum > COUNT.into() { Err(Error::Overflow) } else { Ok(sum as u32 | votes & FLAG) }
}

impl<const N: usize> Sketch<N> for ElasticSketch<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.weight += weight;
        let bucket = hash.slot(self.buckets);
        let at = match self.entry(bucket, key) {
            Entry::Own(at) => {
                self.votes[at] = vote(self.votes[at], weight)?;
                return Ok(());
            }
            Entry::Empty(at) => {
                (self.keys[at], self.votes[at]) = (*key, vote(0, weight)?);
                return Ok(());
            }
            Entry::Other(at) => at,
        };
        let against = vote(self.against[bucket], weight)?;
        self.against[bucket] = against;
        let holder = u64::from(self.votes[at] & COUNT);
        if u64::from(against) < OSTRACISM * holder {
            return self.light.add(hash, weight);
        }
        self.light.add(self.seed.hash(&self.keys[at]), holder)?;
        (self.keys[at], self.votes[at]) = (*key, vote(FLAG, weight)?);
        self.against[bucket] = if self.entries == 1 { vote(0, weight)? } else { 0 };
        Ok(())
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        match self.own(key, hash) {
            Some((votes, false)) => votes,
            Some((votes, true)) => votes + self.light.least(hash),
            None => self.light.least(hash),
        }
    }

    /// A key without flag is exact. The upper bound of others is the stream's weight where the
    /// light counter is full.
    fn bounds(&self, key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        let (lower, flag) = self.own(key, hash).unwrap_or((0, true));
        let upper = if self.light.is_full(hash) { self.weight } else { lower + self.light.least(hash) };
        Some((lower, if flag { upper } else { lower }))
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("heavy", self.keys.len() * (N + 4) + self.against.len() * 4);
        memory.add("light", self.light.bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let (rows, bits) = match &self.light {
            Light::Bytes(_) => (1, 8),
            Light::Words(rows) => (rows.rows(), 32),
        };
        let width = self.light.bytes() * 8 / bits / rows;
        vec![
            ("buckets", self.buckets.into()),
            ("entries", self.entries as u64),
            ("rows", rows as u64),
            ("width", width as u64),
            ("counter_bits", bits as u64),
        ]
    }
}
