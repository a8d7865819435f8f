//! Encodes the reports of a data plane as bytes: versioned, checksummed and entropy-coded.
//!
//! The device runs an [`Encoder`], which is a [`ReportSink`](ucl_data_plane::ReportSink): it
//! collects reports and hands out messages. The control plane runs one [`Receiver`] per stream,
//! which reads them and notices a message that is missing, repeated or out of order. The uplink in
//! every result is the length of these bytes ([`Encoder::uplink`]).
//!
//! ```
//! use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
//! use ucl_wire::{Encoder, Message, Receiver};
//!
//! let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
//! let mut plane = DataPlane::<4>::new(config)?;
//! let mut receiver = Receiver::new(7);
//! let mut keys = 0;
//! let mut encoder = Encoder::new(7, config, |message: &[u8]| {
//!     if let Ok(Message::Reports(reports)) = receiver.receive(message) {
//!         keys += reports.keys.len();
//!     }
//! })?;
//! for key in 0..20_000u32 {
//!     plane.insert(&(key % 5_000).to_le_bytes(), 1, &mut encoder)?;
//! }
//! plane.cut(&mut encoder);
//! drop(encoder);
//! assert!(keys > 1_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Version 5
//!
//! ```text
//! message  = "UC" version kind varint(length) header payload crc32        little-endian throughout
//! header   = varint stream, segment, epoch, seq
//! payload  = configuration                                     (kind 0: opens a segment)
//!          | keys carries slots                                (1: the buffer was full before the cut)
//!          | keys carries slots totals counters                (2: a cut; 3: a peek, which does not end the epoch)
//! keys     = n, flags, byte columns (or lengths, text, digests)
//! carries  = n, gaps between counters, multiplicities          sorted, those of one counter added up
//! slots    = n, gaps, taken flags, counts, holders' byte columns
//! ```
//! What a mirrored table sends (kind 5) is framed piece by piece ([`ExportFrames`]).
//!
//! Older versions are still read. Version 4 wrote names as one block of bytes, and version 3 had no
//! mirrored table. Versions 1 and 2 had seeds of 64 bits for other hash functions, and version 1
//! had no FlowRadar and no heavy part but the paper's.
//!
//! Every list is a block of byte symbols, raw, constant or entropy-coded, with its own frequency
//! table: a message can be read without the ones before it, given the configuration that opened its
//! segment. At an interval of 1,000 items, header, totals and checksum take 25 bytes.
//!
//! # What is guaranteed
//!
//! - The same reports give the same bytes on every machine; the bytes of every version are pinned
//!   by golden files.
//! - Any bytes give a message or a [`WireError`], never a panic; a decoder allocates a few times
//!   [`MAX_BUFFER`] and eight bytes per configured counter (at most [`MAX_COUNTERS`] unless the
//!   [`Receiver`] is told otherwise), whatever the numbers in a message claim.
//! - The sender holds at most its buffer ([`Encoder::with_buffer`]) and what encoding one cut
//!   takes.
//! - Key order, and the sum of carries per counter, are what was reported. The order of carries is
//!   not kept.
//!
//! A CRC notices accidents, not forgers: authenticate the transport where that matters.
//!
//! # Why a coder of our own
//!
//! One snapshot of 4×9,338 8-bit counters after so many items, in bytes, and MB/s of counters: the
//! best of 100, all in one run, on an AMD EPYC (`cargo bench -p ucl-wire`).
//! Ours includes table, frame and checksum; `constriction` 0.5 writes no table.
//!
//! | items | order-0 entropy | this crate | zstd, level 1 | constriction (rANS, 14 bits) |
//! |---|---|---|---|---|
//! | 1,000 | 1,301 | 1,335 at 840 | 2,812 at 1,288 | 1,404 at 209 |
//! | 16,000 | 8,244 | 8,324 at 961 | 11,488 at 552 | 8,334 at 226 |
//! | 64,000 | 15,035 | 15,144 at 1,007 | 16,534 at 602 | 15,104 at 242 |
//! | 908,576 | 29,343 | 29,521 at 1,004 | 29,659 at 1,591 | 29,350 at 242 |
//!
//! zstd looks for repetitions that hashed counters do not have, and its Huffman codes spend a whole
//! bit on every zero; constriction divides where we multiply by a reciprocal, and has one state
//! where we have four. Decoding a message runs at 730-790.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bytes;
mod encoder;
mod entropy;
mod error;
mod exports;
mod message;
mod receiver;
mod sections;
#[cfg(feature = "serde")]
mod state;

pub use encoder::{Encoder, Uplink};
pub use error::WireError;
pub use exports::{Export, ExportFrames};
pub use message::{EpochReports, Header, Message, decode_header, decode_message, split_message};
pub use receiver::Receiver;
pub use sections::cut::CutReport;
pub use sections::keys::Keys;
pub use sections::slots::{SlotReport, Slots};
#[cfg(feature = "serde")]
pub use state::EncoderState;

/// Returns an error if a data plane of this configuration cannot be sent: if it is beyond its own
/// limits, or has more than [`MAX_COUNTER_BYTES`] of counters.
///
/// ```
/// use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// let shape = Shape { rows: 16, width: 1 << 26, ..Shape::PAPER_64KB };
/// let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// assert!(ucl_wire::check_config(&config).is_err());
/// ```
///
/// # Errors
/// If the configuration is invalid, or has more counters than a message can hold.
pub fn check_config(config: &ucl_data_plane::Config) -> Result<(), WireError> {
    sections::segment::check(config)
}

/// The version of the format that is written.
pub const VERSION: u8 = 5;

/// Counters of the largest sketch that a reader takes unless told otherwise
/// ([`Receiver::with_counter_limit`]): a hostile configuration makes it allocate 128 MiB, no more.
pub const MAX_COUNTERS: usize = 1 << 24;

/// Bytes of counters of the largest sketch that can be sent: the length of a message has 32 bits.
pub const MAX_COUNTER_BYTES: usize = 1 << 31;

/// Bytes of reports that an [`Encoder`] collects before it sends a message without waiting for the
/// cut.
pub const DEFAULT_BUFFER: usize = 1 << 16;

/// The most that [`Encoder::with_buffer`] allows.
pub const MAX_BUFFER: usize = 1 << 20;
