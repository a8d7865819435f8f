//! Options of a read, its progress and its summary.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{BadRecord, Format, SpecError, Weight};

/// Behaviour at a bad record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Deliver the items before the record, then return an error.
    #[default]
    Stop,
    /// Skip the record, count it, and continue.
    Skip,
}

/// Options for reading.
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
    /// Place of the key. Generators ignore it.
    pub format: Format,
    /// Place of the weight. If `None`, every weight is 1; generated items always have weight 1.
    pub weight: Option<Weight>,
    /// True if the first row of a table is a header. If `None`, it is a header when a column is
    /// given by name. With column numbers only, it is taken for a header unless the weight's column
    /// holds a number; [`ReadSummary::assumed_header`] reports this.
    pub header: Option<bool>,
    /// Character between two columns of `csv`, `tsv` or `field`. If `None`: a comma, a tab, or any
    /// run of blanks and tabs. `field` with a delimiter splits at each one, as `cut` does.
    pub delimiter: Option<Delimiter>,
    /// True if quotes in `csv` and `tsv` are ordinary characters. By default, a field in double
    /// quotes may hold delimiters and newlines, and a quote inside of it is doubled (RFC 4180).
    pub literal_quotes: bool,
    /// Factor for every weight, which makes decimals whole: at a scale of 100, `12.34` is 1234.
    pub scale: Option<NonZeroU64>,
    /// Required size of every key. A key of another size is a bad record.
    pub key_bytes: Option<usize>,
    /// Total weight of items counted before this read. It counts towards
    /// [`MAX_WEIGHT`](crate::MAX_WEIGHT).
    pub weight_before: u64,
    /// True if inputs are read as they are: nothing is unpacked, and [`Content`](crate::Content) is
    /// not checked.
    pub raw: bool,
    /// Behaviour at bad records.
    pub on_error: OnError,
    /// Largest number of items to read, over all inputs.
    pub limit: Option<u64>,
    /// Seed of the generators.
    pub seed: u64,
    /// Progress, updated while reading, for other threads.
    pub progress: Option<Arc<Progress>>,
    /// Flag that ends the input after the current batch, even if a pipe has nothing to read. A
    /// Ctrl-C handler can set it.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// A character that separates columns.
///
/// ```
/// use ucl_streams::Delimiter;
///
/// let semicolon: Delimiter = ";".parse()?;
/// assert_eq!(semicolon.byte(), b';');
/// assert_eq!("tab".parse::<Delimiter>()?.to_string(), "tab");
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter(u8);

impl Delimiter {
    /// Returns the character.
    pub fn byte(self) -> u8 {
        self.0
    }
}

impl FromStr for Delimiter {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            &[byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0) => Ok(Self(byte)),
            _ => Err(SpecError::Delimiter { given: text.to_owned() }),
        }
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == b'\t' { f.write_str("tab") } else { write!(f, "{}", char::from(self.0)) }
    }
}

impl ReadOptions {
    /// Checks that the options do not contradict each other.
    ///
    /// # Errors
    /// A weight that belongs to another format, a delimiter for a format without one, or a column
    /// given by name in a table without header row.
    pub fn check(&self) -> Result<(), SpecError> {
        crate::decode::for_options(self).map(drop)
    }
}

/// Progress of a [`read`](crate::read), shared with other threads in an `Arc`.
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

    /// Bytes consumed so far, before decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Total size of all inputs before decompression; `None` if one of them is a pipe or a
    /// generator.
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

/// Reason why reading ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// All inputs were read to their end.
    #[default]
    Input,
    /// [`ReadOptions::limit`] was reached.
    Limit,
    /// The consumer returned `Break`.
    Consumer,
    /// [`ReadOptions::interrupt`] was set.
    Interrupt,
}

/// Summary of a read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadSummary {
    /// Number of items delivered.
    pub items: u64,
    /// Total weight of all items delivered.
    pub weight: u128,
    /// Bytes read, before decompression.
    pub bytes_read: u64,
    /// Bytes after decompression.
    pub bytes_decoded: u64,
    /// Number of bad records skipped ([`OnError::Skip`]).
    pub skipped: u64,
    /// First bad record that was skipped.
    pub first_skip: Option<BadRecord>,
    /// Number of packets without IP, such as ARP. They have no key, and are not errors.
    pub no_ip: u64,
    /// Number of records without a key: lines in which a [`Pattern`](crate::Pattern) was not found,
    /// and nulls in a column of a Parquet file. They are not errors.
    pub no_key: u64,
    /// Number of records of weight 0. They are not items, and not errors.
    pub zero_weight: u64,
    /// First row that was taken for a header although the options do not say so.
    pub assumed_header: Option<AssumedHeader>,
    /// First input that was cut off or damaged. Without [`OnError::Skip`] it is an error instead.
    pub truncated: Option<String>,
    /// Reason why reading ended.
    pub ended: Ended,
}

/// First row that was taken for a header ([`ReadOptions::header`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedHeader {
    /// Name of the file, or `standard input`.
    pub input: String,
    /// Text of the row in the key's column.
    pub key: String,
}
