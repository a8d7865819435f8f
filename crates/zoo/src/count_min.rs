//! Count-Min, plain and with conservative update.
//!
//! `d` rows of `w` counters; an item adds to one counter of each row, and the smallest of a key's
//! counters answers. Never too little, and with probability `1 - e^-d` too much by at most
//! `(e/w)·W`, where `W` is the stream's weight. The bound says little about the many keys below it:
//! on a long tail most answers are mostly other keys' weight.
//!
//! **Conservative update** raises a key's counters only to its estimate plus the item's weight.
//! Still never too little, never more than plain Count-Min with the same hashes, but no longer
//! linear: the state depends on the order of the items, and two sketches cannot be merged.
//!
//! # Layout
//! 4 rows of 32-bit counters that take the whole budget. Overflow is an error.
//!
//! References: Cormode and Muthukrishnan, "An improved data stream summary: the Count-Min sketch
//! and its applications", J. Algorithms 2005; Estan and Varghese, "New directions in traffic
//! measurement and accounting", SIGCOMM 2002.
//!
//! ```
//! use ucl_data_plane::{HashSeed, KeyFormat};
//! use ucl_zoo::{RivalPlan, Sketch, count_min::CountMin};
//!
//! let mut sketch = CountMin::<false>::new(&RivalPlan::new(64, KeyFormat::Fixed(4), 1))?; // 4 rows of 4
//! let key = 7u32.to_le_bytes();
//! let seed = HashSeed::new(1.into());
//! sketch.insert(&key, seed.hash(&key), 5)?;
//! assert_eq!(sketch.bounds(&key, seed.hash(&key)), Some((0, 5)));
//! # Ok::<(), ucl_zoo::Error>(())
//! ```

use ucl_data_plane::{KeyHash, Memory};

use crate::error::Error;
use crate::paper;
use crate::plan::{ROWS, RivalPlan};
use crate::rival::Sketch;
use crate::rows::UnsignedRows;

/// Count-Min, with or without conservative update.
#[derive(Clone, Debug)]
pub struct CountMin<const CONSERVATIVE: bool> {
    counters: UnsignedRows,
}

impl<const CONSERVATIVE: bool> CountMin<CONSERVATIVE> {
    /// Creates a sketch that fills the budget.
    pub fn new(plan: &RivalPlan<'_>) -> Result<Self, Error> {
        let width = match plan.paper_column()? {
            Some(column) => paper::WIDTH[column],
            None => plan.fit(plan.budget, 4 * ROWS, 1, 0)?,
        };
        Ok(Self { counters: UnsignedRows::new(ROWS, width) })
    }
}

impl<const N: usize, const CONSERVATIVE: bool> Sketch<N> for CountMin<CONSERVATIVE> {
    #[inline(always)]
    fn insert(&mut self, _key: &[u8; N], hash: KeyHash, weight: u64) -> Result<(), Error> {
        if CONSERVATIVE { self.counters.add_conservatively(hash, weight) } else { self.counters.add(hash, weight) }
    }

    fn estimate(&self, _key: &[u8; N], hash: KeyHash) -> u64 {
        self.counters.least(hash).into()
    }

    fn bounds(&self, _key: &[u8; N], hash: KeyHash) -> Option<(u64, u64)> {
        Some((0, self.counters.least(hash).into()))
    }

    fn held_weight(&self) -> Option<u64> {
        (!CONSERVATIVE).then(|| self.counters.held_weight())
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if CONSERVATIVE { Err(Error::NotMergeable) } else { self.counters.merge(&other.counters) }
    }

    fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("counters", self.counters.bytes());
        memory
    }

    fn shape(&self) -> Vec<(&'static str, u64)> {
        self.counters.shape()
    }
}
