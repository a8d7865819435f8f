//! Counts how often each key occurs in a stream, near-exactly, in a few kilobytes.
//!
//! A hash map of counts is the right tool where it fits. Where it does not (a switch, a kernel
//! hook, a budget of kilobytes) but a server stands behind, UCL-sketch counts in a fixed budget
//! (the *data plane*) and recovers every key's count from the counters (the *control plane*). Every
//! count comes with a range in which the true count is guaranteed to lie.
//!
//! ```
//! use ucl_sketch::UclSketch;
//!
//! let mut sketch = UclSketch::builder().memory("64KB").build()?;
//! for word in "to be or not to be".split(' ') {
//!     sketch.insert(word)?;
//! }
//! for hit in sketch.view().top(10) {
//!     println!("{}: {} ({}..={})", hit.key(), hit.count, hit.lower, hit.upper);
//! }
//! assert_eq!(sketch.view().estimate("be").count, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`UclSketch::builder`] sets the memory, the type of the keys and everything else
//!   ([`Builder`]).
//! - [`UclSketch::insert`] counts an item, [`UclSketch::insert_weighted`] one with a weight,
//!   [`UclSketch::insert_all`], [`UclSketch::insert_all_weighted`] and [`UclSketch::insert_batch`]
//!   many.
//! - [`UclSketch::view`] returns the counts at one moment ([`View`]): [`View::top`],
//!   [`View::estimate`], [`View::iter`]. Each answer is a [`Hit`].
//! - Keys are text or bytes, or any [`Key`]: integers, addresses, tuples ([`Builder::keys`]).
//! - [`UclSketch::save`] and [`UclSketch::load`] keep a sketch in a file, [`UclSketch::merge`] adds
//!   the counts of another one, [`UclSketch::rehash`] and [`UclSketch::resize`] change it in
//!   mid-stream.
//!
//! Where the stream is seen on one machine and asked about on another, a [`Device`] counts and
//! writes messages, and a [`Station`] reads them and answers.
//!
//! Everything below these types can be used by itself: the [data plane](ucl_data_plane), the
//! [wire format](ucl_wire) and the [control plane](ucl_control_plane).

#![cfg_attr(not(feature = "state"), allow(dead_code, reason = "some of the basement serves state files alone"))]

mod background;
mod builder;
mod bytes;
mod device;
mod epochs;
mod hit;
mod key;
mod mode;
mod pipeline;
pub mod plan;
mod plane;
mod sink;
mod sketch;
#[cfg(feature = "state")]
pub mod state;
mod station;
mod view;

pub use background::NoThread;
pub use builder::{BuildError, Builder, Execution, random_seed};
pub use bytes::{Bytes, ParseBytesError};
pub use device::{Device, Outgoing};
pub use epochs::Epochs;
pub use hit::Hit;
pub use key::{AsKey, ByteKey, Key, KeyName};
pub use mode::{Mode, UnknownMode};
pub use sketch::{ChangeError, MergeError, Size, UclSketch};
#[cfg(feature = "state")]
pub use state::{LoadError, SaveError};
pub use station::{Prepared, Refused, Station};
pub use ucl_control_plane::{
    BoundKind, Change, ChangeKind, ControlPlane, DecodeError, DecoderKind, EpochCounts, Estimate, Fallback, Fault,
    KeyId, LIKELY, QueryView, Registry, SelfCheck, Series, Settings, Source, Verdict,
};
pub use ucl_data_plane::mirrored;
pub use ucl_data_plane::{
    Base, BloomKind, Config, ConfigError, CounterBits, Hashing, HeavyKind, Inconsistent, InsertError, KeyFormat,
    Memory, OutOfMemory, ParseSeedError, ReportRule, Seed, Shape,
};
pub use ucl_equations::em;
pub use ucl_learned as learned;
pub use ucl_wire::{MAX_COUNTERS, Uplink, WireError};
pub use view::View;

/// The README's program, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
