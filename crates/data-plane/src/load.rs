//! When an epoch ends: before it holds more keys than its counters can tell apart.
//!
//! Delta recovers an epoch by peeling, which works while the unknowns are few against the
//! equations. The unknowns are the *candidates*: the `d` keys that occurred, and those of the `K`
//! known keys whose counters were all touched by others, about `K · f^rows` where a row is filled
//! to `f`. The equations are the touched counters. So the load is
//!
//! ```text
//! L = (d + K · f^rows) / (rows · width · f)
//! ```
//! and an epoch ends when `L` reaches [`LIMIT`]. All of it is known to the device: `f` by counting,
//! `d = -width · ln(1 - f)`, and `K` from a HyperLogLog ([`KnownKeys`]) over the keys that were
//! reported, because a filter that is emptied reports keys again.
//!
//! An item adds one key at most, or two behind Augmented Sketch's filter. So the load says how many
//! items may pass before it needs to be looked at again ([`Limits::room`]), whatever they are: a
//! burst of new keys cannot slip through between two looks, and looks at the same item numbers find
//! the same state, whether items came one by one or in batches.

use alloc::vec::Vec;

use crate::bloom::exp;
use crate::column::Geometry;
use crate::hash::KeyHash;
use crate::table::{OutOfMemory, filled};

/// The load at which an epoch ends. Random systems with four counters a key peel up to 0.81 by this
/// account (a density of 0.772), in the limit of many counters; this leaves room for few counters,
/// for the error of the distinct counter, and for keys that the filter lost: the nearer an epoch is
/// to the end of peeling, the more keys a lost one disturbs. (Between 0.5 and 0.6, an epoch more in
/// ten costs 2% of the uplink.)
pub const LIMIT: f64 = 0.55;

/// Returns the load up to which epochs of counters of this shape can be solved, about: [`LIMIT`]
/// where a key has three or four counters.
///
/// ```
/// use ucl_data_plane::{Geometry, LOAD_LIMIT, load_limit};
/// let geometry = Geometry { rows: 4, width: 1024, degree: 4, signed: false };
/// assert_eq!(load_limit(geometry), LOAD_LIMIT);
/// ```
pub fn load_limit(geometry: Geometry) -> f64 {
    Limits::new(geometry, 1).limit()
}

/// The share of the limit within which an epoch ends: a closer look would cost more than it gives.
const CLOSE: f64 = 1.0 / 64.0;

/// A HyperLogLog of the keys that were reported (Flajolet, Fusy, Gandouet and Meunier 2007), with a
/// standard error of 6.5%.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownKeys {
    registers: Vec<u8>,
    /// The sum of `2^-register`, in units of `2^-MOST_RANK`.
    sum: u64,
    /// Registers that are 0.
    empty: u32,
}

impl KnownKeys {
    /// Registers, a byte each.
    pub const REGISTERS: usize = 256;
    /// Bytes in all.
    pub const BYTES: usize = Self::REGISTERS + 16;
    /// 24 of 32 hash bits are left for the rank, which counts from 1.
    const MOST_RANK: u32 = 25;

    pub fn new() -> Result<Self, OutOfMemory> {
        Ok(Self::of(filled(Self::REGISTERS, 0)?))
    }

    /// Registers that were read, if inserting can have made them.
    #[cfg(feature = "serde")]
    pub fn restored(registers: Vec<u8>) -> Option<Self> {
        let sound = registers.len() == Self::REGISTERS && registers.iter().all(|&r| u32::from(r) <= Self::MOST_RANK);
        sound.then(|| Self::of(registers))
    }

    fn of(registers: Vec<u8>) -> Self {
        let sum = registers.iter().map(|&rank| Self::unit(rank)).sum();
        let empty = registers.iter().filter(|&&rank| rank == 0).count() as u32;
        Self { registers, sum, empty }
    }

    #[cfg(feature = "serde")]
    pub fn registers(&self) -> &[u8] {
        &self.registers
    }

    fn unit(rank: u8) -> u64 {
        1 << (Self::MOST_RANK - u32::from(rank))
    }

    /// Notes a key.
    #[inline]
    pub fn insert(&mut self, hash: KeyHash) {
        let word = hash.salted(u32::MAX);
        let rank = (word << 8 | 1 << 7).leading_zeros() as u8 + 1;
        self.raise((word >> 24) as usize, rank);
    }

    #[inline]
    fn raise(&mut self, at: usize, rank: u8) {
        let register = &mut self.registers[at];
        if rank > *register {
            self.sum -= Self::unit(*register) - Self::unit(rank);
            self.empty -= u32::from(*register == 0);
            *register = rank;
        }
    }

    /// Notes the keys of another one.
    pub fn unite(&mut self, other: &Self) {
        (0..).zip(&other.registers).for_each(|(at, &rank)| self.raise(at, rank));
    }

    pub fn clear(&mut self) {
        self.registers.fill(0);
        *self = Self::of(core::mem::take(&mut self.registers));
    }

    /// Keys noted, about.
    pub fn estimate(&self) -> f64 {
        let registers = Self::REGISTERS as f64;
        let alpha = 0.7213 / (1.0 + 1.079 / registers);
        let raw = alpha * registers * registers * Self::unit(0) as f64 / self.sum as f64;
        // Few keys are told better by the registers that none of them hit.
        if raw <= 2.5 * registers && self.empty > 0 { -registers * ln(f64::from(self.empty) / registers) } else { raw }
    }
}

/// Numbers that the load of an epoch follows from, beside its counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Counters that a key has in all.
    degree: u16,
    /// Counters of which the fill is known: those of a row.
    width: f64,
    counters: f64,
    /// Keys that an item adds at most.
    keys_per_item: f64,
}

impl Limits {
    pub fn new(geometry: Geometry, keys_per_item: u8) -> Self {
        Self {
            degree: geometry.degree,
            width: f64::from(geometry.width),
            counters: geometry.counters() as f64,
            keys_per_item: keys_per_item.into(),
        }
    }

    /// Keys that an epoch must have had to touch so many of a row's counters, about.
    fn distinct(&self, touched: u32) -> f64 {
        // Where all are touched, as if it were all but half a counter.
        let untouched = (self.width - f64::from(touched)).max(0.5) / self.width;
        -ln(untouched) * self.width / self.per_row()
    }

    /// Counters that a key has in a row.
    fn per_row(&self) -> f64 {
        f64::from(self.degree) * self.width / self.counters
    }

    /// The load of an epoch with so many keys, of so many known ones.
    fn load(&self, distinct: f64, known: f64) -> f64 {
        let fill = 1.0 - exp(-distinct * self.per_row() / self.width);
        let fill = fill.max(1.0 / self.width);
        let chance = (0..self.degree).fold(1.0, |chance, _| chance * fill);
        (distinct + (known - distinct).max(0.0) * chance) / (self.counters * fill)
    }

    /// The limit for this many counters a key: [`LIMIT`] in proportion to the densities up to which
    /// random systems peel (0.772 with four, 0.535 with eight). Those with one or two never peel
    /// whole, for there are always two keys in the same counters: theirs are the loads at which
    /// about one key in ten is in doubt.
    fn limit(&self) -> f64 {
        match self.degree {
            1 => 1.05,
            2 => 0.55,
            3 | 4 => LIMIT,
            5 => LIMIT * 0.702 / 0.772,
            6 => LIMIT * 0.637 / 0.772,
            7 => LIMIT * 0.581 / 0.772,
            8 => LIMIT * 0.535 / 0.772,
            more => LIMIT * 0.535 / 0.772 * 8.0 / f64::from(more),
        }
    }

    /// Items that may pass before the load needs to be looked at again, whatever they are; 0 if the
    /// epoch should end now.
    pub fn room(&self, touched: u32, known: f64) -> u64 {
        let distinct = self.distinct(touched);
        // By halving; beyond the width each key is as good as sure to share all of its counters.
        let (mut within, mut beyond) = (0.0, 4.0 * self.counters);
        let all_new = |more: f64| self.load(distinct + more, known + more);
        for _ in 0..24 {
            let middle = (within + beyond) / 2.0;
            if all_new(middle) < self.limit() { within = middle } else { beyond = middle }
        }
        let items = (within / self.keys_per_item) as u64;
        if touched == 0 {
            // Far more known keys than the counters can tell apart (with one row, any) are beyond
            // the limit at once: epochs of a few items would cost more than they give.
            return items.max((self.width * CLOSE) as u64).max(1);
        }
        if within <= CLOSE * (distinct + within) { 0 } else { items }
    }
}

/// The natural logarithm of a normal positive number. (`core` has none; a plain series serves
/// estimates.)
pub(crate) fn ln(x: f64) -> f64 {
    // x = m · 2^e with m from 0.7 to 1.4, and ln m = 2 artanh((m - 1) / (m + 1)).
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let (mantissa, exponent) =
        if mantissa > core::f64::consts::SQRT_2 { (mantissa / 2.0, exponent + 1) } else { (mantissa, exponent) };
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = (0..9).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * t * series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashSeed;

    #[test]
    fn the_logarithm_agrees_with_std() {
        for i in 1..20_000u32 {
            let x = f64::from(i) / 1_000.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12 * x.ln().abs().max(1.0), "ln({x})");
        }
        assert!((ln(1e-9) - 1e-9f64.ln()).abs() < 1e-9);
    }

    /// Within four standard errors at every size, over several seeds, and exactly as many the
    /// second time.
    #[test]
    fn known_keys_are_counted_once() {
        for seed in 0..5u128 {
            let seed = HashSeed::new(seed.into());
            let mut known = KnownKeys::new().unwrap();
            let mut keys = 0u32;
            for target in [1, 10, 100, 500, 1_000, 5_000, 50_000, 1_000_000] {
                (keys..target).for_each(|key| known.insert(seed.hash(&key.to_le_bytes())));
                keys = target;
                let before = known.clone();
                (0..target.min(10_000)).for_each(|key| known.insert(seed.hash(&key.to_le_bytes())));
                assert_eq!(before, known, "a key that is reported again is not counted again");
                let off = known.estimate() / f64::from(target) - 1.0;
                assert!(off.abs() < 0.26, "{off} at {target}");
            }
            let mut again = KnownKeys::new().unwrap();
            again.unite(&known);
            assert_eq!(again, known);
            known.clear();
            assert_eq!(known, KnownKeys::new().unwrap());
            assert!(known.estimate() == 0.0);
        }
    }

    /// The room is as much as the limit leaves: all of it new keys, the load is at the limit.
    #[test]
    fn the_room_ends_at_the_limit() {
        for (width, known) in [(64, 0.0), (64, 1e4), (2_000, 0.0), (2_000, 1e6), (1_000_000, 5e6)] {
            let geometry = Geometry { rows: 4, width, degree: 4, signed: false };
            let limits = Limits::new(geometry, 1);
            let room = limits.room(0, known) as f64;
            let off = limits.load(room + 1.0, known + room + 1.0) / LIMIT;
            assert!(room >= 1.0 && limits.load(room, known + room) <= LIMIT && off > 0.9, "{room} items of {width}");
            // Counters that many keys touched leave less room, and in the end none.
            let touched = |share: f64| (f64::from(width) * share) as u32;
            let rooms = [0.01, 0.05, 0.2, 0.5, 0.9].map(|share| limits.room(touched(share).max(1), known));
            assert!(rooms.is_sorted_by(|a, b| a >= b), "{rooms:?}");
            assert_eq!(limits.room(width, known), 0);
        }
    }

    /// Two keys an item leave half the room, and one row (FlowRadar) as much as several.
    #[test]
    fn rooms_of_other_systems() {
        let rows = Geometry { rows: 4, width: 1_000, degree: 4, signed: false };
        let array = Geometry { rows: 1, width: 4_000, degree: 4, signed: false };
        let room = |geometry, keys| Limits::new(geometry, keys).room(0, 1e5);
        assert_eq!(room(rows, 2), room(rows, 1) / 2);
        assert_eq!(room(rows, 1), room(array, 1));
        for degree in [1, 2, 3, 6, 8] {
            let geometry = Geometry { rows: degree, width: 1_000, degree, signed: false };
            assert!((15..3_000).contains(&room(geometry, 1)), "{degree} rows: {}", room(geometry, 1));
        }
    }
}
