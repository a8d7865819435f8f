//! Locality-sensitive sketch: keys of similar counts share a bucket, whose mean is the estimate.
//!
//! A Count-Min bucket mixes elephants and mice, and the sum says nothing of either. LSS has one
//! array of buckets for each *cluster* of sizes, and a bucket holds the sum and the number of its
//! keys: the mean is off by no more than the cluster is wide, however many keys share the bucket.
//! Which cluster a key is in is remembered by a cuckoo filter of fingerprints. When a key's
//! estimate grows out of its cluster, the key moves: it takes the mean with it from one bucket to
//! another.
//!
//! Keys with the same fingerprint and place are taken for one; with 12 bits and buckets of four
//! that happens to about one key in 500. Keys that find no place in a full filter share an array of
//! plain counters, as in a Count-Min of one row: with several times more keys than places it is
//! worse than a Count-Min of the whole budget.
//!
//! The sums add up to the stream's weight. Nothing else is promised: a mean may be above or below
//! the truth.
//!
//! # Layout
//! Up to half of the budget is the cuckoo filter: 16 bits a key (12 of fingerprint, 4 of cluster),
//! for the expected number of keys at a load of 90%. The rest is divided evenly among these arrays,
//! buckets of a 32-bit sum and a 32-bit number. Overflow of a sum is an error.
//!
//! # Differences
//! - A documented subset. The publication finds its clusters by K-means over the sizes of an
//!   earlier trace, and sizes the arrays by what that found; we know no earlier trace, and take
//!   eight clusters by powers of four (1-3, 4-15, 16-63, ..., 16384 and more).
//! - Items are counted as they come. The publication enters flows with their sizes, window by
//!   window.
//!
//! Reference: Fu et al., "Clustering-preserving network flow sketching", INFOCOM 2020.

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;
use crate::plan::RivalPlan;
use crate::rival::Sketch;
use crate::rng::{Rng, mix};

/// Number of clusters.
pub const CLUSTERS: usize = 8;
/// The array of keys that the filter has no place for.
const HOMELESS: usize = CLUSTERS;
/// Keys a bucket of the cuckoo filter.
const PLACES: usize = 4;
/// Keys moved to make room for one, at most.
const KICKS: usize = 64;

/// A locality-sensitive sketch.
#[derive(Clone, Debug)]
pub struct LocalitySensitiveSketch {
    filter: CuckooFilter,
    width: u32,
    /// Cluster by cluster.
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    sum: u32,
    keys: u32,
}

impl Bucket {
    fn mean(self) -> f64 {
        f64::from(self.sum) / f64::from(self.keys.max(1))
    }

    fn add(&mut self, weight: u64) -> Result<(), Error> {
        let sum = u64::from(self.sum).saturating_add(weight);
        self.sum = u32::try_from(sum).map_err(|_| Error::Overflow)?;
        Ok(())
    }
}

/// The cluster of a size.
fn cluster(size: u64) -> usize {
    (size.max(1).ilog2() as usize / 2).min(CLUSTERS - 1)
}

impl LocalitySensitiveSketch {
    /// Creates a sketch that fills the budget. The paper gives no shape.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        plan.paper_column()?;
        let wanted = (plan.expected_keys() as usize).saturating_mul(2).saturating_mul(10) / 9;
        let groups = (wanted.min(plan.budget / 2) / (2 * PLACES)).max(1);
        let bucket = size_of::<Bucket>() * (CLUSTERS + 1);
        let rest = plan.budget.saturating_sub(groups * 2 * PLACES);
        let width = plan.fit(rest, bucket, 1, bucket)?;
        Ok(Self {
            filter: CuckooFilter::new(groups.min(1 << 28) as u32, plan.seed),
            width,
            buckets: vec![Bucket::default(); (CLUSTERS + 1) * width as usize],
        })
    }

    #[inline(always)]
    fn at(&self, cluster: usize, hash: KeyHash) -> usize {
        cluster * self.width as usize + hash.row(0, self.width).0 as usize
    }
}

impl<const N: usize> Sketch<N> for LocalitySensitiveSketch {
    #[inline(always)]
    fn insert(&mut self, _key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        let Some(place) = self.filter.find(hash) else {
            let home = cluster(weight);
            let entered = self.filter.enter(hash, home);
            let at = self.at(if entered { home } else { HOMELESS }, hash);
            self.buckets[at].keys += u32::from(entered);
            return self.buckets[at].add(weight);
        };
        let home = self.filter.cluster(place);
        let at = self.at(home, hash);
        // Whole numbers move, so that no weight is lost to rounding.
        let mean = self.buckets[at].mean() as u64;
        let next = cluster(mean.saturating_add(weight));
        if next == home {
            return self.buckets[at].add(weight);
        }
        self.buckets[at].sum -= mean as u32; // at most the sum
        self.buckets[at].keys = self.buckets[at].keys.saturating_sub(1);
        self.filter.set_cluster(place, next);
        let at = self.at(next, hash);
        self.buckets[at].keys += 1;
        self.buckets[at].add(mean.saturating_add(weight))
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        let home = self.filter.find(hash).map_or(HOMELESS, |place| self.filter.cluster(place));
        (self.buckets[self.at(home, hash)].mean() + 0.5) as u64
    }

    fn unrounded(&self, _key: &[u8; N], hash: KeyHash) -> f64 {
        let home = self.filter.find(hash).map_or(HOMELESS, |place| self.filter.cluster(place));
        self.buckets[self.at(home, hash)].mean()
    }

    fn held_weight(&self) -> Option<u64> {
        Some(self.buckets.iter().map(|bucket| u64::from(bucket.sum)).sum())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("filter", size_of_val(self.filter.entries.as_slice()));
        memory.add("buckets", size_of_val(self.buckets.as_slice()));
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let slots = self.filter.entries.len() as u64;
        vec![("clusters", CLUSTERS as u64), ("width", self.width.into()), ("counter_bits", 32), ("slots", slots)]
    }
}

/// A set of fingerprints with a cluster each (Fan et al., "Cuckoo filter: practically better than
/// Bloom", CoNEXT 2014).
///
/// A key has two groups; the second is found from the first and the fingerprint alone, so that keys
/// can be moved without being known. Not by XOR, which wants a power of two:
/// `other = (hash of the fingerprint - one) mod groups` is its own inverse for any number of
/// groups.
#[derive(Clone, Debug)]
struct CuckooFilter {
    groups: u32,
    /// 12 bits of fingerprint, never 0, over 4 bits of cluster; 0 is empty.
    entries: Vec<u16>,
    /// True if making room failed once: it would hardly ever succeed again, and every item of a
    /// homeless key would try.
    full: bool,
    rng: Rng,
}

impl CuckooFilter {
    fn new(groups: u32, seed: u64) -> Self {
        Self { groups, entries: vec![0; groups as usize * PLACES], full: false, rng: Rng::new(seed) }
    }

    /// Fingerprint and both groups.
    #[inline(always)]
    fn places(&self, hash: KeyHash) -> (u16, u32, u32) {
        let fingerprint = (1 + (hash.table() >> 52) % 4095) as u16;
        let group = hash.slot(self.groups) as u32;
        (fingerprint, group, self.other(group, fingerprint))
    }

    #[inline(always)]
    fn other(&self, group: u32, fingerprint: u16) -> u32 {
        let word = (mix(fingerprint.into()) % u64::from(self.groups)) as u32;
        if word >= group { word - group } else { word + (self.groups - group) }
    }

    #[inline(always)]
    fn find(&self, hash: KeyHash) -> Option<usize> {
        let (fingerprint, one, two) = self.places(hash);
        let matches = |&at: &usize| self.entries[at] >> 4 == fingerprint;
        group(one).find(matches).or_else(|| group(two).find(matches))
    }

    fn cluster(&self, place: usize) -> usize {
        (self.entries[place] & 15).into()
    }

    fn set_cluster(&mut self, place: usize, cluster: usize) {
        self.entries[place] = self.entries[place] & !15 | cluster as u16;
    }

    /// Enters a key that is not there; `false`, and nothing changed, if no room can be made.
    fn enter(&mut self, hash: KeyHash, cluster: usize) -> bool {
        let (fingerprint, one, two) = self.places(hash);
        let entry = fingerprint << 4 | cluster as u16;
        for at in group(one).chain(group(two)) {
            if self.entries[at] == 0 {
                self.entries[at] = entry;
                return true;
            }
        }
        if self.full {
            return false;
        }
        let mut homeless = entry;
        let mut from = one;
        let mut path = Vec::with_capacity(KICKS);
        for _ in 0..KICKS {
            let at = from as usize * PLACES + (self.rng.next_u64() % PLACES as u64) as usize;
            std::mem::swap(&mut self.entries[at], &mut homeless);
            path.push(at);
            from = self.other(from, homeless >> 4);
            if let Some(free) = group(from).find(|&at| self.entries[at] == 0) {
                self.entries[free] = homeless;
                return true;
            }
        }
        for at in path.into_iter().rev() {
            std::mem::swap(&mut self.entries[at], &mut homeless); // back the way they came
        }
        self.full = true;
        false
    }
}

/// The places of a group.
#[inline(always)]
fn group(number: u32) -> std::ops::Range<usize> {
    number as usize * PLACES..(number as usize + 1) * PLACES
}
