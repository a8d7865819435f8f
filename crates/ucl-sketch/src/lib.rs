//! Near-exact counts per key of an unbounded stream, in kilobytes.
//!
//! How often did each key occur, in a stream too big to count exactly? A hash map of counts is the right tool where it
//! fits. Where it does not (a switch, a kernel hook, a cache-sized budget) but a server stands behind, UCL-sketch counts in
//! a fixed budget (the [data plane](ucl_data_plane)) and recovers every key's count from the counters (the
//! [control plane](ucl_control_plane)), as a whole number with guaranteed bounds.
//!
//! ```
//! use ucl_sketch::UclSketch;
//!
//! let mut sketch = UclSketch::builder().memory("16KB").key_bytes(4).seed(1).build()?;
//! for i in 0..50_000u32 {
//!     sketch.insert(&(i % 3000).to_le_bytes())?; // 3,000 keys: a hash map would take about 100KB
//! }
//! let view = sketch.view()?;
//! for (key, answer) in view.top(3) {
//!     println!("{:?}: {} in {}..={}", view.registry().key(key), answer.estimate, answer.lower, answer.upper);
//! }
//! let seven = view.estimate(&7u32.to_le_bytes());
//! assert!(seven.lower <= 17 && 17 <= seven.upper);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A sketch may change in mid-stream ([`UclSketch::rehash`], [`UclSketch::resize`]) without forgetting, start again
//! ([`UclSketch::reset`]), and take over another one's counts ([`UclSketch::merge`]).
//!
//! The [`Builder`] has two doors: by target ([`Builder::memory`]) and by shape ([`Builder::shape`]). The writer
//! ([`UclSketch`]) and the reader ([`QueryView`]) are different types; a view is one consistent moment and never changes.

mod background;
mod builder;
mod bytes;
mod pipeline;
pub mod plan;
mod plane;
mod sketch;
pub mod state;

pub use background::NoThread;
pub use builder::{BuildError, Builder, Execution};
pub use bytes::{Bytes, ParseBytesError};
pub use sketch::{ChangeError, MergeError, Size, UclSketch};
pub use state::{LoadError, SaveError};
pub use ucl_control_plane::{
    BoundKind, Change, ChangeKind, ControlPlane, DecoderKind, EpochCounts, Estimate, Fallback, Fault, KeyId, QueryView,
    Registry, SelfCheck, Series, Settings, Source, Verdict,
};
pub use ucl_data_plane::{
    Base, BloomKind, Config, ConfigError, CounterBits, Hashing, HeavyKind, KeyFormat, Memory, OutOfMemory,
    ParseSeedError, ReportRule, Seed, Shape,
};
pub use ucl_equations::em;
pub use ucl_learned as learned;
pub use ucl_wire::Uplink;
