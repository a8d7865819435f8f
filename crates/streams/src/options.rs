//! How to read, and what came of it.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{BadRecord, Format, SpecError, Weight};

/// What to do about a bad record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Deliver what came before, then fail.
    #[default]
    Stop,
    /// Leave it out, count it, go on.
    Skip,
}

/// How to read.
///
/// ```
/// use ucl_streams::{Format, ReadOptions};
///
/// let format: Format = "csv:user".parse()?;
/// let weight = format.parse_weight("bytes_sent")?;
/// let options = ReadOptions { format, weight: Some(weight), limit: Some(1_000_000), ..ReadOptions::default() };
/// # assert_eq!(options.format.to_string(), "csv:user");
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Where the key is. Generators do not need it.
    pub format: Format,
    /// Where the weight is; without it every weight is 1, as it always is for generated items.
    pub weight: Option<Weight>,
    /// Whether the first row of a table is a header and no record. `None`: it is, if a column is
    /// asked for by name. With numbers only it is taken for one, unless there is a number in the
    /// weight's column; [`ReadSummary::assumed_header`] tells.
    pub header: Option<bool>,
    /// Every weight that is read is multiplied by this, which makes decimals whole: `12.34` is 1234
    /// at a scale of 100.
    pub scale: Option<NonZeroU64>,
    /// All keys have this many bytes; any other key is a bad record.
    pub key_bytes: Option<usize>,
    /// Weight of the items that came before. With them, all weights together are at most
    /// [`MAX_WEIGHT`](crate::MAX_WEIGHT).
    pub weight_before: u64,
    /// Take the bytes of an input as they are: unpack nothing, and do not look for
    /// [`Content`](crate::Content) of another kind.
    pub raw: bool,
    /// What to do about bad records.
    pub on_error: OnError,
    /// Stop after this many items, over all inputs.
    pub limit: Option<u64>,
    /// Seed of the generators.
    pub seed: u64,
    /// Kept up to date while reading, for another thread to look at.
    pub progress: Option<Arc<Progress>>,
    /// Set it (say, in a Ctrl-C handler) and the input ends after the current batch, even if a pipe has nothing to read.
    pub interrupt: Option<Arc<AtomicBool>>,
}

impl ReadOptions {
    /// Checks that the options do not contradict each other, before anything is opened.
    ///
    /// # Errors
    /// A weight that belongs to another format, or a column asked for by name in a table without
    /// header row.
    pub fn check(&self) -> Result<(), SpecError> {
        crate::decode::for_options(self).map(drop)
    }
}

/// How far a [`read`](crate::read) has come; share it by `Arc` and look at it from another thread.
///
/// ```
/// use std::sync::Arc;
/// use ucl_streams::{Progress, ReadOptions, Source, read};
///
/// let progress = Arc::new(Progress::default());
/// let options = ReadOptions { progress: Some(progress.clone()), ..ReadOptions::default() };
/// read(&["zipf:1.2:5000".parse::<Source>()?], &options, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// assert_eq!(progress.items(), 5000);
/// assert_eq!(progress.total_bytes(), None, "a generator has no file size");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    items: AtomicU64,
    bytes: AtomicU64,
    /// Sum of the file sizes plus 1; 0 while unknown.
    total_plus_one: AtomicU64,
}

impl Progress {
    /// Items delivered so far.
    pub fn items(&self) -> u64 {
        self.items.load(Ordering::Relaxed)
    }

    /// Bytes consumed so far, as stored (compressed input counts compressed).
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Size of all inputs as stored; `None` if one of them is a pipe or a generator.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_plus_one.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(crate) fn start(&self, total: Option<u64>) {
        self.items.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.total_plus_one.store(total.map_or(0, |t| t.saturating_add(1)), Ordering::Relaxed);
    }

    pub(crate) fn add_items(&self, n: u64) {
        self.items.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, n: u64) {
        self.bytes.fetch_add(n, Ordering::Relaxed);
    }
}

/// Why reading ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// All inputs were read to their end.
    #[default]
    Input,
    /// [`ReadOptions::limit`] was reached.
    Limit,
    /// The consumer answered `Break`.
    Consumer,
    /// [`ReadOptions::interrupt`] was set.
    Interrupt,
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadSummary {
    /// Items delivered.
    pub items: u64,
    /// Sum of their weights.
    pub weight: u128,
    /// Bytes read, as stored (compressed input counts compressed).
    pub bytes_read: u64,
    /// Bytes after decompression.
    pub bytes_decoded: u64,
    /// Bad records left out ([`OnError::Skip`]).
    pub skipped: u64,
    /// The first of them.
    pub first_skip: Option<BadRecord>,
    /// Packets of a capture that carry no IP (ARP and the like) and so have no key. Not an error.
    pub no_ip: u64,
    /// Records of weight 0, which count for nothing and are no items. Not an error.
    pub zero_weight: u64,
    /// The first row that was taken for a header without being told so.
    pub assumed_header: Option<AssumedHeader>,
    /// The first input that was cut off or damaged ([`OnError::Skip`]; otherwise it is an error).
    pub truncated: Option<String>,
    /// Why reading ended.
    pub ended: Ended,
}

/// A first row that was taken for a header ([`ReadOptions::header`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedHeader {
    /// The file's name, or `standard input`.
    pub input: String,
    /// What it has in the key's column.
    pub key: String,
}
