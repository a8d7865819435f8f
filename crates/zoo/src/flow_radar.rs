//! FlowRadar: counters that also store the XOR of their keys, decoded by peeling.
//!
//! A cell has three fields: `FlowXOR`, the XOR of the keys that map to it, `FlowCount`, how many
//! they are, and `PacketCount`, the weight of their items. A Bloom filter tells a key's first item,
//! which is entered into all three fields of the key's 4 cells; later items add to `PacketCount`
//! only. At the end a cell with `FlowCount = 1` names its key and its count; the key is taken out
//! of its other cells, which may leave these with one key, and so on. While there are fewer than
//! about 0.77 keys a cell this almost surely names every key; well above it stops almost at once.
//! (So on the UCL-sketch paper's streams hardly anything peels.)
//!
//! Keys that do not peel are answered by the smallest `PacketCount` that is left in their cells, as
//! by a Count-Min.
//!
//! A key that the Bloom filter wrongly claims to know is in no `FlowXOR`, but its items are in
//! `PacketCount`: what peels from such a cell is too much, and what is left to others too little.
//! So neither side is promised, but the smallest `PacketCount` before peeling is an upper bound.
//!
//! # Layout
//! 20% of the budget is the Bloom filter (4 hashes), the rest cells of key, 32-bit `FlowCount` and
//! 32-bit `PacketCount`. Overflow is an error. Sent: the cells.
//!
//! # Differences
//! - Each of the 4 hash functions has a quarter of the cells to itself, so that a key never meets
//!   itself.
//! - One switch: no decoding across a network.
//!
//! Reference: Li, Miao, Kim and Yu, "FlowRadar: a better NetFlow for data centers", NSDI 2016.

use hashbrown::HashTable;
use ucl_data_plane::{BloomFilter, BloomKind, HashSeed, KeyHash, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::{Cost, Sketch};

/// Percent of the budget for the Bloom filter.
const BLOOM_PERCENT: usize = 20;
const BLOOM_HASHES: u8 = 4;

/// A FlowRadar.
#[derive(Clone, Debug)]
pub struct FlowRadar<const N: usize> {
    seed: HashSeed,
    filter: BloomFilter,
    width: u32,
    /// `FlowXOR`, row by row.
    keys: Vec<[u8; N]>,
    /// `FlowCount`.
    flows: Vec<u32>,
    /// `PacketCount`.
    weights: Vec<u32>,
    decoded: Decoded<N>,
}

/// Keys that peeling found, and what it left.
#[derive(Clone, Debug, Default)]
struct Decoded<const N: usize> {
    counts: Vec<([u8; N], u32)>,
    index: HashTable<(u64, u32)>,
    /// Rest of `PacketCount`.
    left: Vec<u32>,
}

impl<const N: usize> FlowRadar<N> {
    /// Creates a table that fills the budget.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let cell = N + 8;
        let (width, bloom) = match plan.paper_column()? {
            Some(column) => {
                let width = paper::FLOW_RADAR_CELLS[column] / ROWS as u32;
                (width, plan.budget.saturating_sub(cell * ROWS * width as usize))
            }
            None => {
                let bloom = plan.share(BLOOM_PERCENT).next_multiple_of(4);
                // A fifth is left for the filter by what four cells take, and a word for its
                // rounding.
                let least = cell * ROWS / 4 + 4;
                (plan.fit(plan.budget.saturating_sub(bloom), cell * ROWS, 1, least)?, bloom)
            }
        };
        let cells = ROWS * width as usize;
        let bits = (bloom / 4 * 32).min(1 << 31) as u32;
        Ok(Self {
            seed: plan.hash_seed(),
            filter: BloomFilter::new(BloomKind::Classic, bits, BLOOM_HASHES)?,
            width,
            keys: vec![[0; N]; cells],
            flows: vec![0; cells],
            weights: vec![0; cells],
            decoded: Decoded::default(),
        })
    }

    #[inline(always)]
    fn cell(&self, row: usize, hash: KeyHash) -> usize {
        row * self.width as usize + hash.row(row, self.width).0 as usize
    }

    /// Number of keys that were decoded by peeling.
    pub fn peeled(&self) -> usize {
        self.decoded.counts.len()
    }

    fn peel(&self) -> Decoded<N> {
        let mut keys = self.keys.clone();
        let mut flows = self.flows.clone();
        let mut decoded = Decoded { left: self.weights.clone(), ..Decoded::default() };
        let mut pure: Vec<usize> = (0..flows.len()).filter(|&cell| flows[cell] == 1).collect();
        while let Some(cell) = pure.pop() {
            if flows[cell] != 1 {
                continue; // peeled through another of its cells
            }
            let key = keys[cell];
            let count = decoded.left[cell];
            let hash = self.seed.hash(&key);
            let word = hash.table();
            decoded.index.insert_unique(word, (word, decoded.counts.len() as u32), |&(word, _)| word);
            decoded.counts.push((key, count));
            for row in 0..ROWS {
                let cell = self.cell(row, hash);
                keys[cell].iter_mut().zip(key).for_each(|(mine, byte)| *mine ^= byte);
                flows[cell] -= 1; // it was entered into all of its cells, and leaves them once
                decoded.left[cell] = decoded.left[cell].saturating_sub(count);
                if flows[cell] == 1 {
                    pure.push(cell);
                }
            }
        }
        decoded
    }

    fn find(&self, key: &[u8; N], hash: KeyHash) -> Option<u32> {
        let word = hash.table();
        let counts = &self.decoded.counts;
        let found = self.decoded.index.find(word, |&(other, at)| other == word && counts[at as usize].0 == *key);
        found.map(|&(_, at)| counts[at as usize].1)
    }

    fn least(&self, weights: &[u32], hash: KeyHash) -> u64 {
        (0..ROWS).map(|row| weights[self.cell(row, hash)]).min().unwrap_or(0).into()
    }
}

impl<const N: usize> Sketch<N> for FlowRadar<N> {
    #[inline(always)]
    fn insert(&mut self, key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        let weight = u32::try_from(weight).map_err(|_| Error::Overflow)?;
        let new = self.filter.insert(hash);
        let mut overflowed = false;
        for row in 0..ROWS {
            let cell = self.cell(row, hash);
            if new {
                self.keys[cell].iter_mut().zip(key).for_each(|(mine, byte)| *mine ^= byte);
                self.flows[cell] += 1; // distinct keys that pass a filter of at most 2^31 bits
            }
            let (sum, over) = self.weights[cell].overflowing_add(weight);
            self.weights[cell] = sum;
            overflowed |= over;
        }
        if overflowed { Err(Error::Overflow) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.decoded = self.peel();
        Ok(())
    }

    fn estimate(&self, key: &[u8; N], hash: KeyHash) -> u64 {
        let upper = self.least(&self.weights, hash);
        match self.find(key, hash) {
            Some(count) => u64::from(count).min(upper),
            None if self.decoded.left.is_empty() => upper,
            None => self.least(&self.decoded.left, hash),
        }
    }

    fn bounds(&self, _key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        Some((0, self.least(&self.weights, hash)))
    }

    fn knows(&self, key: &[u8; N], hash: KeyHash) -> Option<bool> {
        Some(self.find(key, hash).is_some())
    }

    fn held_weight(&self) -> Option<u64> {
        Some(self.weights[..self.width as usize].iter().map(|&weight| u64::from(weight)).sum())
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("cells", self.keys.len() * (N + 8));
        memory.add("bloom", self.filter.memory());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("rows", ROWS as u64),
            ("width", self.width.into()),
            ("counter_bits", 32),
            ("bloom_bits", self.filter.memory() as u64 * 8),
            ("bloom_hashes", BLOOM_HASHES.into()),
        ]
    }

    fn cost(&self) -> Cost {
        let cells = self.keys.len() * (N + 8);
        let decoded = self.decoded.counts.capacity() * (N + 4) + self.decoded.index.capacity() * 16;
        Cost {
            uplink_bytes: Some(cells as u64),
            control_bytes: Some(cells + size_of_val(self.decoded.left.as_slice()) + decoded),
        }
    }
}
