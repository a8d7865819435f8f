//! The configuration of a data plane, and what it costs in bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::bloom::BloomKind;
use crate::column::{Base, Geometry};
use crate::counters::CounterBits;
use crate::hash::MAX_DEGREE;
use crate::heavy::{CHUNK, HeavyKind};
use crate::key::{KeyFormat, MAX_KEY_BYTES};
use crate::mirrored::{BUDGET_FIXED_BYTES, FIXED_BYTES, MirroredShape, Names};
use crate::report::ReportRule;
use crate::seed::{Hashing, Seed};
use crate::table::OutOfMemory;

/// Kinds and sizes of the heavy part, the linear sketch and the Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Shape {
    /// Table that holds the hot keys.
    pub heavy: HeavyKind,
    /// Slots of the heavy part.
    pub slots: u32,
    /// `vote_ratio · new <= old` evicts; 1 as published (8 in Elastic Sketch). Augmented Sketch's
    /// filter has no votes.
    pub vote_ratio: u32,
    /// Linear sketch that counts the rest.
    pub base: Base,
    /// Rows of the sketch, which is to say its counters per key.
    pub rows: u16,
    /// Counters per row. FlowRadar has as many counters in all (`rows × width`), but in one array.
    pub width: u32,
    /// Bits per counter.
    pub counter_bits: CounterBits,
    /// Placement of Bloom bits.
    pub bloom: BloomKind,
    /// Bits of the Bloom filter.
    pub bloom_bits: u32,
    /// Bits set per key.
    pub bloom_hashes: u8,
}

impl Shape {
    /// The paper's shape for Retail at 64KB: 3000 slots, Count-Min 4×1024 of 32 bits, 80,000 Bloom
    /// bits, 8 hashes.
    pub const PAPER_64KB: Self = Self {
        heavy: HeavyKind::Voting,
        slots: 3000,
        vote_ratio: 1,
        base: Base::CountMin,
        rows: 4,
        width: 1024,
        counter_bits: CounterBits::B32,
        bloom: BloomKind::Classic,
        bloom_bits: 80_000,
        bloom_hashes: 8,
    };

    /// Creates the shape of a mirrored table alone. `name_bits` bits with `name_hashes` hashes
    /// remember which names were sent, for keys of any length.
    pub fn mirrored(table: MirroredShape, name_bits: u32, name_hashes: u8) -> Self {
        Self {
            heavy: HeavyKind::Mirrored(table),
            slots: table.slots() as u32,
            vote_ratio: 1,
            base: Base::CountMin,
            rows: 1,
            width: 1,
            counter_bits: CounterBits::B8,
            bloom: BloomKind::Classic,
            bloom_bits: name_bits,
            bloom_hashes: name_hashes,
        }
    }

    /// A mirrored table, and what takes its evictions while the link does not: a Count-Min sketch
    /// of four rows with 8-bit counters. The rest is as in [`Shape::mirrored`].
    pub fn absorbing(table: MirroredShape, width: u32, name_bits: u32, name_hashes: u8) -> Self {
        Self { rows: 4, width, ..Self::mirrored(table, name_bits, name_hashes) }
    }

    /// Bits of the filter between heavy part and sketch. Behind a mirrored table there is none: who
    /// is known was told by the table, and the filter is that of names.
    pub(crate) fn sketch_bloom_bits(&self) -> u32 {
        if self.absorbs() { 0 } else { self.bloom_bits }
    }

    /// Returns true for a mirrored table with a sketch behind it.
    pub fn absorbs(&self) -> bool {
        matches!(self.heavy, HeavyKind::Mirrored(_)) && self.geometry().counters() > 1
    }

    /// Largest number of slots.
    pub const MOST_SLOTS: u32 = 1 << 28;
    /// Largest number of counters in a row.
    pub const MOST_WIDTH: u32 = 1 << 27;
    /// Largest number of bits of the Bloom filter.
    pub const MOST_BLOOM_BITS: u32 = 1 << 31;

    /// Returns the geometry of the linear sketch.
    pub fn geometry(&self) -> Geometry {
        let Self { rows, width, .. } = *self;
        match self.base {
            Base::CountMin | Base::CountSketch => Geometry { rows, width, degree: rows, signed: self.signed() },
            Base::FlowRadar => {
                Geometry { rows: 1, width: u32::from(rows).saturating_mul(width), degree: rows, signed: false }
            }
        }
    }

    /// Returns true if counters may be negative.
    pub fn signed(&self) -> bool {
        self.base.signed()
    }

    /// Returns the bytes of each part, before anything is built.
    ///
    /// ```
    /// use ucl_data_plane::{KeyFormat, Shape};
    /// let memory = Shape::PAPER_64KB.memory(KeyFormat::Fixed(4));
    /// assert_eq!(memory.part("heavy"), 36_000);
    /// assert!(memory.total() <= 65_536);
    /// ```
    pub fn memory(&self, keys: KeyFormat) -> Memory {
        let bloom = self.bloom.whole_bits(self.bloom_bits, self.bloom_hashes).div_ceil(32) * 4;
        let mut memory = Memory::default();
        let deferred = match (keys, self.heavy) {
            (_, HeavyKind::Mirrored(table)) => {
                memory.add("table", table.memory(keys));
                let fixed = if self.absorbs() { BUDGET_FIXED_BYTES } else { FIXED_BYTES };
                memory.add("totals", fixed);
                memory.add("names", if self.absorbs() && keys.any_length() { Names::BYTES } else { 0 });
                0
            }
            (_, kind) => {
                memory.add("heavy", kind.bytes(self.slots as usize, keys.slot_bytes()));
                match keys {
                    KeyFormat::Fixed(bytes) if !kind.sees_sketch() => CHUNK * deferred_entry_bytes(bytes.into()),
                    _ => 0,
                }
            }
        };
        memory.add("counters", self.counter_bits.bytes(self.geometry().counters()));
        memory.add("bloom", bloom as usize);
        memory.add("deferred", deferred);
        memory
    }

    /// Checks every limit.
    ///
    /// # Errors
    /// If a size is beyond its limit; the error names the first one.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let HeavyKind::Mirrored(table) = self.heavy {
            table.validate()?;
            let slots = table.slots() as u64;
            range("slots", self.slots.into(), slots, slots)?;
        }
        range("slots", self.slots.into(), 1, Self::MOST_SLOTS.into())?;
        range("vote ratio", self.vote_ratio.into(), 1, 1 << 16)?;
        range("rows", self.rows.into(), 1, MAX_DEGREE as u64)?;
        range("width", self.width.into(), 1, Self::MOST_WIDTH.into())?;
        let [least, most] = self.bloom.hashes().map(u64::from);
        range("Bloom hashes", self.bloom_hashes.into(), least, most)?;
        range("Bloom bits", self.bloom_bits.into(), 0, Self::MOST_BLOOM_BITS.into())
    }
}

/// Checks a limit.
pub(crate) fn range(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::OutOfRange { what, value, least, most })
}

/// An entry of the deferred buffer: key, weight and reason.
const fn deferred_entry_bytes(key_bytes: usize) -> usize {
    // Four bytes of weight and reason, padded to their alignment; and four for the slot's number. A
    // test holds this to the real size.
    (key_bytes + 4).div_ceil(4) * 4 + 4
}

/// Everything that fixes how a data plane behaves.
///
/// ```
/// use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// let config = Config { keys: KeyFormat::Fixed(13), shape: Shape::PAPER_64KB, rule: ReportRule::Paper, seed: 7.into() };
/// assert!(config.memory().total() > 65_536); // 13-byte keys want fewer slots in the same budget
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Config {
    /// Format of keys in the slots.
    pub keys: KeyFormat,
    /// Kinds and sizes of the parts.
    pub shape: Shape,
    /// Rule for which keys are sent.
    pub rule: ReportRule,
    /// Seed of every hash function.
    pub seed: Seed,
}

impl Config {
    /// Returns the bytes of each part.
    pub fn memory(&self) -> Memory {
        self.shape.memory(self.keys)
    }
}

/// Bytes by named part: the one accounting for every system that is compared "at the same memory".
///
/// ```
/// use ucl_data_plane::Memory;
/// let mut memory = Memory::default();
/// memory.add("counters", 16_384);
/// memory.add("bloom", 10_000);
/// assert_eq!((memory.total(), memory.part("bloom")), (26_384, 10_000));
/// assert_eq!(memory.to_string(), "26384 bytes: counters 16384, bloom 10000");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    parts: Vec<(&'static str, usize)>,
}

impl Memory {
    /// Adds a part; parts of no bytes are left out.
    pub fn add(&mut self, part: &'static str, bytes: usize) {
        if bytes > 0 {
            self.parts.push((part, bytes));
        }
    }

    /// Returns all parts, in the order in which they were added.
    pub fn parts(&self) -> &[(&'static str, usize)] {
        &self.parts
    }

    /// Returns the bytes of one part, 0 if there is none of that name.
    pub fn part(&self, name: &str) -> usize {
        self.parts.iter().filter(|(part, _)| *part == name).map(|(_, bytes)| bytes).sum()
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> usize {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.total())?;
        let mut separator = ": ";
        for (part, bytes) in &self.parts {
            write!(f, "{separator}{part} {bytes}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Error of a configuration that cannot be met.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Keys were to be longer than any key may be.
    #[error("keys of {bytes} bytes are longer than {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// The length asked for.
        bytes: usize,
    },
    /// The sketch has keys of another size.
    #[error("keys of {got} bytes do not fit a sketch of {want}-byte keys")]
    KeySize {
        /// Bytes of the sketch's keys.
        want: usize,
        /// Bytes of the keys given.
        got: usize,
    },
    /// The data plane has another heavy part than its configuration names.
    #[error("the configuration names the heavy part '{want}', but the data plane has '{got}'")]
    Heavy {
        /// Heavy part of the configuration.
        want: HeavyKind,
        /// Heavy part of the data plane.
        got: HeavyKind,
    },
    /// The sketch has other hash functions: make a seed by [`Seed::with_value`] from its own.
    #[error("a sketch with hash functions of {want} cannot go on with those of {got}")]
    HashFunctions {
        /// Hash functions of the sketch.
        want: Hashing,
        /// Hash functions of the given seed.
        got: Hashing,
    },
    /// The width of counters is not one of the four.
    #[error("counters have 4, 8, 16 or 32 bits, not {bits}")]
    CounterBits {
        /// Given width.
        bits: u32,
    },
    /// A setting is outside its limits.
    #[error("{what} is {value}, but must be from {least} to {most}")]
    OutOfRange {
        /// Name of the setting.
        what: &'static str,
        /// Given value.
        value: u64,
        /// Smallest allowed value.
        least: u64,
        /// Largest allowed value.
        most: u64,
    },
    /// There is not enough memory for the sketch.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}
