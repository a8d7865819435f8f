//! The fast half of UCL-sketch: what runs per item, where the stream is seen, in a fixed memory
//! budget.
//!
//! Three structures share the budget (paper, Algorithm 1):
//!
//! - the **heavy part** ([`heavy`]) holds hot keys exactly: the paper's filter with votes,
//!   Augmented Sketch's or Elastic Sketch's ([`HeavyKind`]);
//! - the **linear sketch** ([`counters`], [`column`](mod@column)) counts everything else:
//!   `y = A x`, each key adding to a few counters, as in Count-Min, Count Sketch or FlowRadar
//!   ([`Base`]);
//! - the **Bloom filter** ([`bloom`]) remembers which keys were reported, so that each is sent
//!   about once.
//!
//! What the control plane needs to turn the counters back into counts per key leaves through a
//! [`ReportSink`]: keys, carries of overflowing counters, and at every *cut* the counters and the
//! changed heavy slots. No I/O, no threads, no clock; `no_std` with `alloc`.
//!
//! # What is guaranteed
//!
//! - Nothing saturates and nothing wraps: for every row of an unsigned sketch,
//!   `Σ (counters + carries · unit)` is exactly the weight that entered the sketch, and with the
//!   heavy part's counts exactly the weight of the stream.
//! - Every key that left the heavy part or passed it is reported, unless the Bloom filter claimed
//!   to know it.
//! - The same seed gives the same positions on every machine.
//! - Both hold through changes of hashes and sizes ([`DataPlane::change`]) and for data planes that
//!   are merged ([`DataPlane::merge`]).
//!
//! # Differences from the paper
//!
//! - Eviction at `vote_ratio · new <= old` with `<=`, as the paper's text and reference code have
//!   it (its pseudocode has `<`).
//! - An item too heavy for a slot (half a billion and more) goes past the heavy part, and a slot
//!   that would grow to that is flushed into the sketch.
//! - Counters may be narrower than 32 bits, with carries.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bloom;
mod codes;
pub mod column;
mod config;
pub mod counters;
mod hash;
pub mod heavy;
mod insert_error;
mod key;
mod load;
pub mod mirrored;
mod plane;
mod report;
mod resend;
mod seed;
#[cfg(feature = "serde")]
mod state;
mod table;
mod totals;

pub use bloom::{BloomFilter, BloomKind};
pub use codes::CodedKey;
pub use column::{ArrayMap, Base, BaseMap, Column, ColumnMap, CounterIndex, Geometry, RowMap, UnknownBase};
pub use config::{Config, ConfigError, Memory, Shape};
pub use counters::{CounterBits, CounterWords, Counters};
pub use hash::{HashSeed, KeyHash, MAX_BLOOM_HASHES, MAX_DEGREE};
pub use heavy::{
    AnyHeavy, AugmentedFilter, ElasticBuckets, HandedOn, HeavyChange, HeavyKind, HeavyPart, Offer, Reason, SlotChange,
    UnknownHeavy, VotingFilter,
};
pub use insert_error::InsertError;
pub use key::{DigestKey, KeyFormat, MAX_KEY_BYTES, SHORT_KEY_BYTES};
pub use load::{LIMIT as LOAD_LIMIT, load_limit};
pub use plane::{DataPlane, MergeError};
pub use report::{Cut, CutTotals, KeyFlags, KeyRef, Opening, Report, ReportRule, ReportSink, UnknownRule};
pub use resend::{EMPTY_ABOVE, FULL_ABOVE, LEAST_CUTS};
pub use seed::{Hashing, ParseSeedError, Seed};
#[cfg(feature = "serde")]
pub use state::{Inconsistent, RestoredHeavy, ensure};
pub use table::{OutOfMemory, filled, reserve};
pub use totals::{MAX_WEIGHT, add_weight, joint_weight};
