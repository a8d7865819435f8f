//! SeqSketch: a hash table for the large keys, a fractional sensing matrix for the small ones, and
//! orthogonal matching pursuit.
//!
//! In front is a table that holds large keys exactly, one a slot, by votes. What passes it is
//! sensed: in each row the key adds to one counter *its own fraction* of the item's weight. Ones
//! would do for a Count-Min; fractions make the columns less alike, so that compressive sensing can
//! tell keys apart that share counters. A Bloom filter sends each key that was sensed about once.
//! At the end the known keys' columns and the counters are a system `y = A x`, for which OMP finds
//! the few keys that explain most.
//!
//! Compressive sensing promises exact recovery of `s` large values among zeros from about `s·log n`
//! counters. What passes the table is a long tail, not zeros, and OMP gives all of its weight to
//! the keys it names: at most one in ten of those known, and at most [`MAX_ATOMS`]. Every other
//! known key is answered with 1.
//!
//! # Layout
//! 55% of the budget is slots of `key | votes for | votes against`, 15% the Bloom filter (8
//! hashes), the rest 4 rows of 32-bit counters: the shape of UCL-sketch, as in the UCL-sketch
//! paper. Fractions are sixteenths, and counters hold sixteen times their value, so that sums are
//! exact: a counter overflows, with an error, at 2^28.
//!
//! # Differences
//! - A documented subset: the publication's hash table and its choice of fractions differ in detail
//!   (which it optimises for hardware); fractions here are uniform over 1/16 to 16/16, by hash.
//! - No division of the keys into parts that are decoded separately.
//!
//! Reference: Huang et al., "Toward nearly-zero-error sketching via compressive sensing",
//! NSDI 2021.

use ucl_data_plane::{HandedOn, HeavyPart, KeyHash, MAX_DEGREE, Memory, Offer, VotingFilter};
use ucl_equations::{Columns, omp};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::recorder::{Recorder, whole};
use crate::rival::{Cost, Sketch};
use crate::rng::mix;

/// Largest number of atoms. The time of OMP grows with its third power.
pub const MAX_ATOMS: usize = 1500;
/// Atoms that it may choose in any case, where there are so many keys.
const FEW_ATOMS: usize = 64;

/// Layout of the sensing matrix and of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// True if coefficients are sixteenths chosen by hash, instead of ones.
    pub fractional: bool,
    /// Ratio of votes: a slot changes its holder if `vote_ratio · votes for <= votes against`.
    pub vote_ratio: u32,
    /// Share of the budget for the table, in percent.
    pub heavy_percent: usize,
    /// Share of the budget for the Bloom filter, in percent.
    pub bloom_percent: usize,
}

impl Layout {
    /// Layout of SeqSketch.
    pub const SEQ: Self = Self { fractional: true, vote_ratio: 1, heavy_percent: 55, bloom_percent: 15 };
}

const BLOOM_HASHES: u8 = 8;
/// Coefficients are multiples of one in so many.
const PARTS: u32 = 16;

/// Table, sensing matrix and OMP: SeqSketch, or with ones as coefficients the frequency part of
/// [HistSketch](crate::hist).
#[derive(Clone, Debug)]
pub struct SeqSketch<const N: usize> {
    layout: Layout,
    slots: u32,
    table: VotingFilter<N>,
    rows: usize,
    width: u32,
    /// In [`PARTS`]ths, if fractional.
    counters: Vec<u32>,
    recorder: Recorder<N>,
    seed: ucl_data_plane::HashSeed,
    solution: Vec<f64>,
}

impl<const N: usize> SeqSketch<N> {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>, layout: Layout) -> Result<Self, Error> {
        let (slots, rows, width, bloom) = match plan.paper_column()? {
            Some(_) => {
                let shape = paper::ucl_shape(plan.budget, plan.keys)?;
                (shape.slots, shape.rows.into(), shape.width, shape.bloom_bits as usize / 8)
            }
            None => {
                let slot = N + 8;
                let slots = plan.fit(plan.share(layout.heavy_percent).max(slot), slot, 1, 0)?;
                let bloom = plan.share(layout.bloom_percent).next_multiple_of(4);
                let rest = plan.budget.saturating_sub(slots as usize * slot + bloom);
                // With so little the shares do not work out; four times as much is sure to.
                (slots, ROWS, plan.fit(rest, 4 * ROWS, 1, 4 * (slot + 4 * ROWS))?, bloom)
            }
        };
        Ok(Self {
            layout,
            slots,
            table: VotingFilter::new(slots, layout.vote_ratio)?,
            rows,
            width,
            counters: vec![0; rows * width as usize],
            recorder: Recorder::new(plan.hash_seed(), bloom, BLOOM_HASHES)?,
            seed: plan.hash_seed(),
            solution: Vec::new(),
        })
    }

    /// Counter and coefficient in a row, in [`PARTS`]ths.
    #[inline(always)]
    fn entry(&self, row: usize, hash: KeyHash) -> (usize, u32) {
        let at = row * self.width as usize + hash.row(row, self.width).0 as usize;
        let parts = if self.layout.fractional { 1 + (mix(hash.table()) >> (4 * row)) as u32 % PARTS } else { PARTS };
        (at, parts)
    }

    /// Returns the value of one counter for a weight of one, if its coefficient is 1.
    fn unit(&self) -> u32 {
        if self.layout.fractional { PARTS } else { 1 }
    }

    fn sense(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        self.recorder.see(key, hash);
        for row in 0..self.rows {
            let (at, parts) = self.entry(row, hash);
            let parts = u64::from(parts * self.unit() / PARTS);
            let sum = weight.checked_mul(parts).and_then(|share| share.checked_add(self.counters[at].into()));
            self.counters[at] = sum.and_then(|sum| u32::try_from(sum).ok()).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    /// Returns the most that the key can have in the counters.
    fn sensed_at_most(&self, hash: KeyHash) -> u64 {
        let at_most = |row| {
            let (at, parts) = self.entry(row, hash);
            u64::from(self.counters[at]) / u64::from(parts * self.unit() / PARTS)
        };
        (0..self.rows).map(at_most).min().unwrap_or(0)
    }

    fn columns(&self) -> Columns {
        let mut columns = Columns::weighted(self.counters.len(), self.rows);
        let mut indices = [0; MAX_DEGREE];
        let mut weights = [0.0; MAX_DEGREE];
        for (_, hash) in self.recorder.keys() {
            for row in 0..self.rows {
                let (at, parts) = self.entry(row, hash);
                (indices[row], weights[row]) = (at as u32, parts as f32 / PARTS as f32);
            }
            columns.push_weighted(&indices[..self.rows], &weights[..self.rows]);
        }
        columns
    }
}

impl<const N: usize> Sketch<N> for SeqSketch<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        if weight >= self.table.weight_limit().into() {
            return self.sense(key, hash, weight); // too heavy for a slot
        }
        let mut handed_on = HandedOn::NOTHING;
        if self.table.offer(hash, key, weight as u32, &mut handed_on) == Offer::HandedOn {
            let hash = self.seed.hash(&handed_on.key);
            return self.sense(&handed_on.key, hash, handed_on.weight().into());
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        let columns = self.columns();
        let unit = f64::from(self.unit());
        let y: Vec<f64> = self.counters.iter().map(|&counter| f64::from(counter) / unit).collect();
        self.solution = vec![0.0; columns.len()];
        let atoms = columns.len().div_ceil(10).clamp(FEW_ATOMS, MAX_ATOMS);
        omp::omp(&columns, &y, &omp::Options { atoms: Some(atoms), tolerance: 1e-9 }, &mut self.solution)?;
        self.recorder.close();
        Ok(())
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        let known = self.recorder.find(key, hash).and_then(|place| self.solution.get(place));
        self.table.exact(hash, key) + known.map_or(0, |&x| whole(x, self.sensed_at_most(hash)))
    }

    fn bounds(&self, key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        let held = self.table.exact(hash, key);
        Some((held, held + self.sensed_at_most(hash)))
    }

    fn knows(&self, key: &[u8; N], hash: KeyHash) -> Option<bool> {
        Some(self.table.exact(hash, key) > 0 || self.recorder.find(key, hash).is_some())
    }

    fn held_weight(&self) -> Option<u64> {
        let sensed = || self.counters[..self.width as usize].iter().map(|&counter| u64::from(counter)).sum::<u64>();
        (!self.layout.fractional).then(|| self.table.entries().map(|(_, _, count, _)| count).sum::<u64>() + sensed())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("heavy", self.table.memory());
        memory.add("counters", size_of_val(self.counters.as_slice()));
        memory.add("bloom", self.recorder.filter_bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        let mut shape = vec![
            ("slots", self.slots.into()),
            ("vote_ratio", self.layout.vote_ratio.into()),
            ("rows", self.rows as u64),
            ("width", self.width.into()),
            ("counter_bits", 32),
        ];
        shape.extend(self.recorder.shape());
        shape
    }

    /// The keys sensed, the counters and the table's contents at the end.
    fn cost(&self) -> Cost {
        let counters = size_of_val(self.counters.as_slice());
        let table = self.table.entries().count() * (N + 4);
        let solution = size_of_val(self.solution.as_slice());
        Cost {
            uplink_bytes: Some(self.recorder.sent_bytes() + (counters + table) as u64),
            control_bytes: Some(self.recorder.held_bytes() + counters + table + solution),
        }
    }
}
