//! Streams of keys: readers for files, pipes and captures, seeded generators, exact counts, and the
//! error of estimates beside them.
//!
//! A stream is a sequence of *items*, each a key (up to 65,535 bytes) and a weight (at least 1; all
//! weights together are at most [`MAX_WEIGHT`]). Where it comes from is a [`Source`]; how its bytes
//! are cut into keys is a [`Format`]; [`read`] puts both together and hands out [`Batch`]es of some
//! thousands of items, which [`ExactCounts`] or a sketch takes in.
//!
//! ```
//! use std::ops::ControlFlow;
//! use ucl_streams::{ExactCounts, Format, ReadOptions, read_from};
//!
//! // Which host sent how many bytes?
//! let log = "host,path,bytes\nalice,/a,100\nbob,/b,20\nalice,/c,5\n";
//! let format: Format = "csv:host".parse()?;
//! let weight = Some(format.parse_weight("bytes")?);
//! let options = ReadOptions { format, weight, ..ReadOptions::default() };
//!
//! let mut counts = ExactCounts::new();
//! let summary = read_from(log.as_bytes(), "log", &options, &mut |batch| {
//!     counts.insert_batch(batch);
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!((summary.items, summary.weight), (3, 125));
//! assert_eq!(counts.top(1), [(&b"alice"[..], 105)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! - **No allocation per key, one copy per byte.**
//!   `cargo run --release -p ucl-streams --example throughput` shows the speed of each format;
//!   lines of 20 bytes come in at several times the 200 MB/s at which they are to be counted.
//! - **Live input is live**: after every `read` of the system, what came is handed on. Nothing
//!   waits for a buffer to fill, except in xz and bzip2, which come in blocks.
//! - **Bad input is named** by file and line (or byte offset), and stops the reading or is skipped
//!   and counted ([`OnError`]). What came before it has been delivered, also when a compressed file
//!   or a capture is cut off.
//! - **Content is recognised**: gzip, zstd, xz and bzip2 are unpacked, and a capture, an archive or
//!   a saved state is never taken for text ([`Content`]).
//! - **A seed fixes a generated stream** on every machine, bit by bit.
//!
//! # What it does not do
//! One thread reads. Tunnels inside captures are not opened. Zip, lz4 and brotli are not unpacked:
//! pipe them. Parquet is read in builds with the feature `parquet`, which is off by default.

mod batch;
mod collect;
mod composite;
mod content;
mod decode;
mod error;
mod exact;
mod expand;
mod format;
mod generate;
mod key_text;
pub mod metrics;
mod open;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
pub mod process;
mod read;
mod source;
pub mod table;

pub use batch::{Batch, BatchBuf, Keys};
pub use collect::Consumer;
pub use composite::{join as join_parts, split as split_parts};
pub use content::{Content, content_of, head_of};
pub use error::{BadReason, BadRecord, Place, ReadError, ReadErrorKind, SpecError};
pub use exact::ExactCounts;
pub use expand::{Expanded, Wanted, expand};
pub use format::{Column, Format, JsonPointer, LogField, PacketKey, Pattern, Prefix, Weight};
pub use generate::{CaidaLike, Generator, SplitMix64, ZipfKeys};
pub use key_text::acts_on_terminal;
pub use options::{AssumedHeader, Delimiter, Ended, OnError, Progress, ReadOptions, ReadSummary};
#[cfg(feature = "parquet")]
pub use parquet::parquet_columns;
pub use read::{read, read_from};
pub use source::Source;
pub use ucl_data_plane::{MAX_KEY_BYTES, MAX_WEIGHT};

/// Largest number of items in a batch.
pub const BATCH_ITEMS: usize = 4096;

/// Largest size in bytes of a line, row, packet or capture block.
pub const MAX_RECORD_BYTES: usize = 1 << 24;

/// Largest number of parts of a key.
pub const MAX_PARTS: usize = 16;

/// Largest number of columns in a row of a table.
pub const MAX_COLUMNS: usize = 1 << 20;
