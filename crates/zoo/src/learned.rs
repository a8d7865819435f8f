//! Learned Count-Min and Count Sketch: keys that an oracle calls heavy get their own counters.
//!
//! Every item is first shown to an [oracle](crate::oracle). What it takes for heavy is counted
//! exactly in a *unique bucket* of `key | count`; the rest goes into a Count-Min or Count Sketch,
//! which is then free of elephants. With a perfect oracle and Zipf's law the error falls by a
//! factor of about `log n`; with a poor one nothing is lost but the buckets' bytes.
//!
//! Three oracles:
//! - **ideal** (`lcm`, `lcs`): knows the stream's most frequent keys. This is **ground truth**: a
//!   bound on what learning could achieve, and what the UCL-sketch paper compares with.
//! - **trained** (`lcm-trained`, `lcs-trained`): a regression on the bytes of the key, fitted to
//!   exact counts of an earlier part of the stream. Its bytes count as memory.
//! - **ideal behind a network** (`lcm-rnn`, `lcs-rnn`): as ideal, but a two-layer recurrent network
//!   reads the key first, for what that costs in time.
//!
//! # Layout
//! Half of the budget is unique buckets (key and 32-bit count), half the sketch (4 rows of 32-bit
//! counters). As in both papers the ideal oracle costs no memory: neither does the index by which
//! it finds the bucket of a key. Overflow is an error.
//!
//! Never too little, with a Count-Min. Weight is kept, items add up and sketches merge as those of
//! the sketch behind (an ideal oracle has the same buckets on both sides; a trained one does not,
//! and cannot be merged).
//!
//! References: Hsu, Indyk, Katabi and Vakilian, "Learning-based frequency estimation algorithms",
//! ICLR 2019; Jiang, Li, Lin, Ruan and Woodruff, "Learning-augmented data stream algorithms", ICLR
//! 2020 (the regression).

use hashbrown::HashTable;
use ucl_data_plane::{KeyHash, Memory};

use crate::alike::AlikeRows;
use crate::error::Error;
use crate::oracle::{Regression, Rnn};
use crate::paper;
use crate::plan::{Knowledge, ROWS, RivalPlan, identity};
use crate::rival::Sketch;
use crate::rows::{SignedRows, UnsignedRows};

/// Percent of the budget for unique buckets.
const UNIQUE_PERCENT: usize = 50;

/// Learned Count-Min.
pub type LearnedCountMin<const N: usize> = LearnedSketch<N, CountMinRest>;
/// Learned Count Sketch whose rows may sign all keys alike ([`crate::alike`]).
pub type AlikeLearnedCountSketch<const N: usize> = LearnedSketch<N, AlikeRows>;
/// Learned Count Sketch.
pub type LearnedCountSketch<const N: usize> = LearnedSketch<N, CountSketchRest>;

/// Learned sketch that counts keys without a bucket in `R`.
#[derive(Clone, Debug)]
pub struct LearnedSketch<const N: usize, R> {
    unique: UniqueBuckets<N>,
    oracle: Oracle,
    rest: R,
}

/// Oracle that tells which keys are heavy.
#[derive(Clone, Debug)]
enum Oracle {
    /// The keys that have buckets, all of them given from the start.
    Ideal,
    /// The same, after a network has read the key.
    IdealBehind(Box<Rnn>),
    /// Keys with this score or more, while buckets are free.
    Trained(Box<Regression>, f32),
}

impl<const N: usize, R: Rest> LearnedSketch<N, R> {
    /// Creates a sketch with an ideal oracle, which gives the first keys of [`Knowledge::Ranking`]
    /// a bucket each.
    pub fn ideal(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let Some(Knowledge::Ranking(ranking)) = plan.knowledge else { return Err(Error::NeedsRanking) };
        let mut sketch = Self::with(plan, Oracle::Ideal, 0)?;
        let seed = plan.hash_seed();
        for key in ranking.iter().filter_map(|key| identity(plan.keys, &seed, key)) {
            let hash = seed.hash(&key);
            if sketch.unique.find(&key, hash).is_none() && !sketch.unique.take(&key, hash) {
                break;
            }
        }
        Ok(sketch)
    }

    /// Creates a sketch with an ideal oracle behind a recurrent network that reads every key.
    pub fn behind_rnn(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        Ok(Self { oracle: Oracle::IdealBehind(Box::new(Rnn::new(plan.seed))), ..Self::ideal(plan)? })
    }

    /// Creates a sketch with an oracle trained on [`Knowledge::Sample`]. A key is heavy if it
    /// scores at least as high as the last key of the sample that would have had a bucket.
    pub fn trained(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let Some(Knowledge::Sample(sample)) = plan.knowledge else { return Err(Error::NeedsSample) };
        let seed = plan.hash_seed();
        let known = |&(key, count): &(&[u8], u64)| Some((identity::<N>(plan.keys, &seed, key)?, count));
        let mut sample: Vec<([u8; N], u64)> = sample.iter().filter_map(known).collect();
        sample.sort_unstable(); // the order of a hash map is nothing to train by
        let model = Regression::fit(&sample);
        let mut scores: Vec<f32> = sample.iter().map(|(key, _)| model.score(key)).collect();
        scores.sort_unstable_by(|a, b| b.total_cmp(a));
        let bytes = model.bytes();
        let mut sketch = Self::with(plan, Oracle::Trained(Box::new(model), f32::INFINITY), bytes)?;
        let last = sketch.unique.capacity.min(scores.len()).checked_sub(1);
        if let (Some(last), Oracle::Trained(_, threshold)) = (last, &mut sketch.oracle) {
            *threshold = scores[last];
        }
        Ok(sketch)
    }

    fn with(plan: &RivalPlan<'_>, oracle: Oracle, oracle_bytes: usize) -> Result<Self, Error> {
        let (buckets, width) = match plan.paper_column()? {
            Some(column) => {
                let width = paper::NARROW_WIDTH[column];
                let room = plan.budget.saturating_sub(4 * ROWS * width as usize + oracle_bytes) / (N + 4);
                (paper::LEARNED_BUCKETS[column].min(room as u32), width)
            }
            None => {
                let bucket = N + 4;
                let room = plan.budget.saturating_sub(oracle_bytes);
                let buckets = plan.fit((room * UNIQUE_PERCENT / 100).max(bucket), bucket, 1, oracle_bytes)?;
                let rest = room.saturating_sub(buckets as usize * bucket);
                (buckets, plan.fit(rest, 4 * ROWS, 1, oracle_bytes + bucket.max(4 * ROWS + 4))?)
            }
        };
        Ok(Self { unique: UniqueBuckets::new(buckets as usize), oracle, rest: R::new(width, plan.seed) })
    }

    #[inline(always)]
    fn consult(&self, key: &[u8; N]) -> bool {
        match &self.oracle {
            Oracle::Ideal => true,
            Oracle::IdealBehind(network) => {
                std::hint::black_box(network.score(key)); // paid for, not listened to
                true
            }
            Oracle::Trained(model, threshold) => model.score(key) >= *threshold,
        }
    }
}

impl<const N: usize, R: Rest> Sketch<N> for LearnedSketch<N, R> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        if self.consult(key) {
            if let Some(bucket) = self.unique.find(key, hash) {
                return self.unique.add(bucket, weight);
            }
            if matches!(self.oracle, Oracle::Trained(..)) && self.unique.take(key, hash) {
                return self.unique.add(self.unique.keys.len() - 1, weight);
            }
        }
        self.rest.add(hash, weight)
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        let heavy = self.consult(key);
        match self.unique.find(key, hash) {
            Some(bucket) if heavy => self.unique.counts[bucket].into(),
            _ => self.rest.estimate(hash),
        }
    }

    fn unrounded(&self, key: &[u8; N], hash: KeyHash) -> f64 {
        match self.unique.find(key, hash) {
            Some(bucket) => self.unique.counts[bucket].into(),
            None => self.rest.unrounded(hash),
        }
    }

    /// A key with a bucket is exact.
    fn bounds(&self, key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        let upper = self.rest.upper(hash)?;
        let exact = self.unique.find(key, hash).map(|bucket| u64::from(self.unique.counts[bucket]));
        Some(exact.map_or((0, upper), |count| (count, count)))
    }

    fn held_weight(&self) -> Option<u64> {
        let unique: u64 = self.unique.counts.iter().map(|&count| u64::from(count)).sum();
        self.rest.held_weight().map(|rest| unique + rest)
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if let Oracle::Trained(..) = self.oracle {
            return Err(Error::NotMergeable);
        }
        if self.unique.keys != other.unique.keys {
            return Err(Error::Unlike);
        }
        for (bucket, &count) in other.unique.counts.iter().enumerate() {
            self.unique.add(bucket, count.into())?;
        }
        self.rest.merge(&other.rest)
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("unique", self.unique.capacity * (N + 4));
        memory.add("counters", self.rest.bytes());
        if let Oracle::Trained(model, _) = &self.oracle {
            memory.add("oracle", model.bytes());
        }
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let mut shape = self.rest.shape();
        shape.push(("slots", self.unique.capacity as u64));
        shape
    }
}

/// Buckets of one key each.
#[derive(Clone, Debug)]
struct UniqueBuckets<const N: usize> {
    capacity: usize,
    keys: Vec<[u8; N]>,
    counts: Vec<u32>,
    index: HashTable<(u64, u32)>,
}

impl<const N: usize> UniqueBuckets<N> {
    fn new(capacity: usize) -> Self {
        let keys = Vec::with_capacity(capacity);
        let counts = Vec::with_capacity(capacity);
        Self { capacity, keys, counts, index: HashTable::with_capacity(capacity) }
    }

    #[inline(always)]
    fn find(&self, key: &[u8; N], hash: KeyHash) -> Option<usize> {
        let word = hash.table();
        let found = self.index.find(word, |&(other, bucket)| other == word && self.keys[bucket as usize] == *key);
        found.map(|&(_, bucket)| bucket as usize)
    }

    /// Gives the key a bucket, unless all are taken.
    fn take(&mut self, key: &[u8; N], hash: KeyHash) -> bool {
        let free = self.keys.len() < self.capacity;
        if free {
            let entry = (hash.table(), self.keys.len() as u32);
            self.index.insert_unique(entry.0, entry, |&(word, _)| word);
            self.keys.push(*key);
            self.counts.push(0);
        }
        free
    }

    #[inline(always)]
    fn add(&mut self, bucket: usize, weight: u64) -> Result<(), Error> {
        let sum = u64::from(self.counts[bucket]).saturating_add(weight);
        self.counts[bucket] = u32::try_from(sum).map_err(|_| Error::Overflow)?;
        Ok(())
    }
}

/// A sketch for the keys without a bucket.
pub trait Rest: Clone + Send + 'static {
    /// Creates 4 rows of this width. The seed is for what the rows draw beside the keys' hashes.
    fn new(width: u32, seed: u64) -> Self;
    /// Adds an item.
    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error>;
    /// Returns the count of a key.
    fn estimate(&self, hash: KeyHash) -> u64;
    /// Returns the count of a key before rounding and clamping.
    fn unrounded(&self, hash: KeyHash) -> f64;
    /// Returns an upper bound of the count of a key, if the counters have one.
    fn upper(&self, hash: KeyHash) -> Option<u64>;
    /// Returns the total weight added, if the counters determine it.
    fn held_weight(&self) -> Option<u64>;
    /// Adds the counters of `other`.
    fn merge(&mut self, other: &Self) -> Result<(), Error>;
    /// Bytes of memory held.
    fn bytes(&self) -> usize;
    /// Returns the sizes by name.
    fn shape(&self) -> Vec<(&'static str, u64)>;
}

/// A Count-Min.
#[derive(Clone, Debug)]
pub struct CountMinRest(UnsignedRows);

impl Rest for CountMinRest {
    fn new(width: u32, _seed: u64) -> Self {
        Self(UnsignedRows::new(ROWS, width))
    }

    #[inline(always)]
    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.0.add(hash, weight)
    }

    fn estimate(&self, hash: KeyHash) -> u64 {
        self.0.least(hash).into()
    }

    fn unrounded(&self, hash: KeyHash) -> f64 {
        self.0.least(hash).into()
    }

    fn upper(&self, hash: KeyHash) -> Option<u64> {
        Some(self.0.least(hash).into())
    }

    fn held_weight(&self) -> Option<u64> {
        Some(self.0.held_weight())
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.0.merge(&other.0)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.0.shape()
    }
}

/// A Count Sketch.
#[derive(Clone, Debug)]
pub struct CountSketchRest {
    counters: SignedRows,
    weight: u64,
}

impl Rest for CountSketchRest {
    fn new(width: u32, _seed: u64) -> Self {
        Self { counters: SignedRows::new(ROWS, width, 0), weight: 0 }
    }

    #[inline(always)]
    fn add(&mut self, hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.weight += weight;
        self.counters.add(hash, weight)
    }

    fn estimate(&self, hash: KeyHash) -> u64 {
        self.counters.median(hash).min(self.counters.upper(hash, self.weight))
    }

    fn unrounded(&self, hash: KeyHash) -> f64 {
        self.counters.unrounded(hash)
    }

    fn upper(&self, hash: KeyHash) -> Option<u64> {
        Some(self.counters.upper(hash, self.weight))
    }

    fn held_weight(&self) -> Option<u64> {
        None
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.weight += other.weight;
        self.counters.merge(&other.counters)
    }

    fn bytes(&self) -> usize {
        self.counters.bytes()
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.counters.shape()
    }
}
