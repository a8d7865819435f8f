//! The slow half of UCL-sketch: what runs beside the stream, with a server's memory.
//!
//! It keeps a [`Registry`] of the keys that the data plane reported, rebuilds the counters exactly
//! from remainders and carries ([`Segment`]), and turns them back into counts per key with a
//! [`decoder`]:
//!
//! ```text
//! reports -> registry + segment + window -> decoder (classic | learned | delta) -> QueryView
//! answer(key) = what the heavy part holds + the decoded remainder, a whole number within [lower, upper]
//! ```
//!
//! # What is guaranteed
//!
//! - `lower <= true count <= upper` for every key, known or not, at any moment. (Count Sketch's are
//!   wide; [`QueryView::likely`] has tighter ones that hold with a stated probability.)
//! - A lost, repeated or reordered cut, carry or slot is detected: the rows of counters must add up
//!   to what entered the sketch, and with what the heavy part holds to the stream.
//! - A sketch that changes in mid-stream, or is merged with another, forgets nothing: `answer(key)`
//!   is the sum over all [segments](ChangeKind).
//! - Asking changes nothing: [`ControlPlane::view`] peeks.
//!
//! # What is not
//!
//! Keys that the Bloom filter lost are answered 0 (within their bounds); their number is estimated
//! by [`QueryView::estimated_lost_keys`].

mod appended;
pub mod decoder;
pub mod delta;
mod exports;
mod heavy;
mod key_state;
mod open_epoch;
mod packed;
mod plane;
mod probable;
mod registry;
mod sealed;
mod segment;
pub mod self_check;
mod series;
mod settings;
mod shared;
mod state;
mod tally;
mod tight;
mod view;
mod window;

pub use decoder::judge::{Fallback, Verdict};
pub use decoder::{DecodeError, DecoderKind};
pub use delta::Doubts;
pub use exports::ExportsState;
pub use plane::{ControlPlane, Fault, TrainingJob};
pub use probable::PROBABILITY;
pub use registry::{KeyId, Registry};
pub use sealed::ChangeKind;
pub use segment::{ReportError, Segment};
pub use self_check::SelfCheck;
pub use series::{Change, EpochCounts, Series};
pub use settings::{Settings, SettingsError};
pub use state::{ControlState, Counting, DeltaState, Earlier, Model};
pub use tally::Tally;
pub use view::{BoundKind, Estimate, LIKELY, NetworkQuery, Peek, QueryView, Source};
pub use window::{Snapshot, Window};
