//! Published sketches to compare UCL-sketch with, each built by name from a memory budget.
//!
//! Each is written from its own publication, not from another implementation, and is held to it by
//! one table of guarantees that runs against exact counts (`tests/guarantees.rs`). A module's
//! documentation gives its reference, what it bounds, how its bytes are laid out, and where it
//! differs from what was published.
//!
//! | name | system | answers by |
//! |---|---|---|
//! | `cm`, `cu` | [Count-Min](count_min), with conservative update | the smallest counter |
//! | `cs` | [Count Sketch](count_sketch) | the median |
//! | `asketch` | [Augmented Sketch](augmented) | filter, or smallest counter |
//! | `elastic` | [Elastic Sketch](elastic) | bucket, flag, light part |
//! | `univmon` | [UnivMon](univmon) | the deepest level that sampled the key |
//! | `nitro` | [NitroSketch](nitro) | the median of sampled updates |
//! | `lcm`, `lcs` | [learned Count-Min and Count Sketch](learned) | the key's own bucket, or the sketch |
//! | `flowradar` | [FlowRadar](flow_radar) | peeling |
//! | `pr` | [PR-sketch](pr) | least squares |
//! | `seq`, `hist` | [SeqSketch](seq), [HistSketch](hist) | orthogonal matching pursuit |
//! | `lss` | [locality-sensitive sketch](lss) | the mean of keys of like size |
//!
//! # How it is put together
//!
//! A system implements [`Sketch<N>`](Sketch) for keys of `N` bytes, and gets every key with its
//! hash. [`Keyed`] puts a key format in front of it, hashes each item once, and makes it a
//! [`Rival`]: a trait object that is called once a batch, so that the loop over the items is
//! compiled for one system and one key size. Bytes are accounted by
//! [`Memory`](ucl_data_plane::Memory) and nothing else.
//!
//! ```
//! use ucl_data_plane::KeyFormat;
//! use ucl_zoo::{RivalPlan, find};
//!
//! let mut sketch = find("cm").unwrap().build(&RivalPlan::new(16 << 10, KeyFormat::Fixed(4), 7))?;
//! for key in [1u32, 2, 1, 1] {
//!     sketch.insert(&key.to_le_bytes(), 1)?;
//! }
//! sketch.finish()?;
//! assert_eq!(sketch.estimate(&1u32.to_le_bytes()), 3);
//! assert!(sketch.memory().total() <= 16 << 10);
//! # Ok::<(), ucl_zoo::Error>(())
//! ```

pub mod alike;
pub mod augmented;
mod catalogue;
pub mod count_min;
pub mod count_sketch;
pub mod elastic;
mod error;
pub mod flow_radar;
pub mod hist;
mod keyed;
pub mod learned;
pub mod lss;
pub mod nitro;
pub mod oracle;
pub mod paper;
mod plan;
pub mod pr;
mod recorder;
mod rival;
mod rng;
mod rows;
pub mod seq;
pub mod univmon;

pub use catalogue::{ENTRIES, Entry, Guarantees, Oracle, find};
pub use error::Error;
pub use keyed::Keyed;
pub use plan::{Knowledge, RivalPlan};
pub use rival::{Cost, Rival, Sketch};
