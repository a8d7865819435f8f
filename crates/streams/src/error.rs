//! Errors of describing a stream ([`SpecError`]) and of reading it ([`ReadError`]).

use std::{fmt, io};

use crate::{Content, MAX_COLUMNS, MAX_KEY_BYTES, MAX_RECORD_BYTES, MAX_WEIGHT, ReadSummary};

/// Every format, for messages.
pub(crate) const FORMATS: &str = "lines, field:N, csv:COLUMN, tsv:COLUMN, jsonl:PATH, regex:PATTERN, combined:FIELD, \
                                  parquet:COLUMN, fimi, records:BYTES, pcap, pcap:PART";

/// Every generator, for messages.
pub(crate) const GENERATORS: &str = "zipf:SKEW[:ITEMS[:KEYS]], caida-like[:PACKETS]";

/// Invalid text for a format, weight, generator or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The format has no known name, or its argument is missing.
    #[error("`{given}` is not a format; formats are: {FORMATS}")]
    Format {
        /// Text that was given.
        given: String,
    },
    /// The format is known, but its argument is invalid.
    #[error("format `{given}`: {problem}; formats are: {FORMATS}")]
    FormatArgument {
        /// Text that was given.
        given: String,
        /// Description of the problem.
        problem: String,
    },
    /// The weight does not fit the format.
    #[error("weight `{given}` does not fit format `{format}`: {expected}")]
    Weight {
        /// Text that was given.
        given: String,
        /// Format in use.
        format: String,
        /// Description of the weights that the format accepts.
        expected: &'static str,
    },
    /// A column was given by name, but the table has no header row.
    #[error("column `{column}` is given by name, but a table without a header row has only column numbers")]
    NoHeader {
        /// Column that was asked for.
        column: String,
    },
    /// The arguments of a generator are invalid.
    #[error("generator `{given}`: {problem}; generators are: {GENERATORS} (a file of this name: ./{given})")]
    Generator {
        /// Text that was given.
        given: String,
        /// Description of the problem.
        problem: String,
    },
    /// The delimiter is not a single character of ASCII.
    #[error("delimiter `{given}`: give one ASCII character, or `tab`; not a quote or the end of a line")]
    Delimiter {
        /// Text that was given.
        given: String,
    },
    /// The format has no delimiter.
    #[error("format `{format}` has no delimiter; csv, tsv and field have one")]
    NoDelimiter {
        /// Format in use.
        format: String,
    },
    /// The format needs a part that this build was made without.
    #[error("format `{format}`: this build cannot read Parquet files; build it with `--features parquet`")]
    NotBuiltIn {
        /// Format that was asked for.
        format: String,
    },
    /// The text is not a key of this format.
    #[error("`{given}` is not a key of format `{format}`: {expected}")]
    Key {
        /// Text that was given.
        given: String,
        /// Format in use.
        format: String,
        /// Example of a key of this format.
        expected: String,
    },
}

/// Position in an input: a line of text, a byte of binary data (after decompression), or a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Line number, from 1.
    Line(u64),
    /// Byte offset, from 0.
    Byte(u64),
    /// Row number, from 1.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(offset) => write!(f, "byte offset {offset}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// Reason why a record is not an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReason {
    /// The key is longer than 65,535 bytes.
    #[error("the key has {bytes} bytes, the limit is {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Length of the key in bytes.
        bytes: usize,
    },
    /// The line, row or packet is longer than [`MAX_RECORD_BYTES`](crate::MAX_RECORD_BYTES).
    #[error("the record is longer than {MAX_RECORD_BYTES} bytes")]
    RecordTooLong,
    /// The key does not have the size that all keys must have.
    #[error("every key must have {wanted} bytes, but this one has {bytes}")]
    KeySize {
        /// Length of the key in bytes.
        bytes: usize,
        /// Required length in bytes.
        wanted: usize,
    },
    /// The row has more than [`MAX_COLUMNS`](crate::MAX_COLUMNS) columns.
    #[error("the row has more than {MAX_COLUMNS} columns")]
    TooManyColumns,
    /// The line or row ends before the wanted column.
    #[error("column {wanted} is needed, but the record has only {found}")]
    MissingColumn {
        /// Number of the column that was asked for, from 1.
        wanted: usize,
        /// Number of columns in the row.
        found: usize,
    },
    /// The input ends inside a quoted field.
    #[error("a quote is opened and never closed")]
    UnclosedQuote,
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// The JSON document has nothing at the path.
    #[error("the JSON document has nothing at `{pointer}`")]
    NothingAtPointer {
        /// Path that was asked for.
        pointer: String,
    },
    /// The JSON document has a value there that is neither a string nor a number.
    #[error("the JSON document has {found} at `{pointer}`, not a string or a number")]
    NotAKey {
        /// Path that was asked for.
        pointer: String,
        /// Type of the value found.
        found: &'static str,
    },
    /// The line is not in the combined log format.
    #[error("not a line of the combined log format: {0}")]
    LogLine(&'static str),
    /// The group of the weight did not take part in the match.
    #[error("the line matches, but its weight, the group `{0}`, is missing")]
    NoGroup(String),
    /// The weight is not a decimal number.
    #[error("weight `{text}` is not a number from 0 to {MAX_WEIGHT}")]
    Weight {
        /// Text of the weight.
        text: String,
    },
    /// The weight is not a whole number after scaling.
    #[error("weight `{text}` is not a whole number{}", at_scale(*scale))]
    Fraction {
        /// Text of the weight.
        text: String,
        /// Scale in use.
        scale: u64,
        /// Smallest scale that makes the weight whole, if there is one.
        needed: Option<u64>,
    },
    /// The weight is over the limit.
    #[error("weight `{text}`{} is over the limit of {MAX_WEIGHT}", at_scale(*scale))]
    WeightTooLarge {
        /// Text of the weight.
        text: String,
        /// Scale in use.
        scale: u64,
    },
    /// All weights together are over the limit.
    #[error("with its weight of {weight}, all weights together are over the limit of {MAX_WEIGHT}")]
    TotalWeight {
        /// Weight of the item that exceeded the limit.
        weight: u64,
    },
    /// The link layer of the capture is not supported.
    #[error(
        "link type {0} is not supported (supported: Ethernet 1, raw IP 12/14/101/228/229, Linux cooked 113/276, \
         null/loopback 0/108)"
    )]
    LinkType(i32),
    /// The packet was captured only in part, and the part that holds the key is missing.
    #[error("only {captured} bytes of the packet were captured, which cuts off {missing}")]
    PacketCut {
        /// Number of bytes captured.
        captured: usize,
        /// Name of the part that is missing.
        missing: &'static str,
    },
    /// The packet's headers are malformed.
    #[error("malformed packet: {0}")]
    Packet(String),
    /// The headers of a capture block are malformed.
    #[error("malformed capture block: {0}")]
    Block(String),
}

fn at_scale(scale: u64) -> String {
    if scale == 1 { String::new() } else { format!(" at scale {scale}") }
}

/// A record that is not an item, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{input}, {place}: {reason}")]
pub struct BadRecord {
    /// Name of the file, or `standard input`.
    pub input: String,
    /// Place of the record in the input.
    pub place: Place,
    /// Reason why the record is not an item.
    pub reason: BadReason,
}

/// Reason why reading stopped. Items before the failure were delivered.
#[derive(Debug, thiserror::Error)]
pub enum ReadErrorKind {
    /// The file could not be opened.
    #[error("cannot open {input}: {error}")]
    Open {
        /// Name of the file.
        input: String,
        /// Error reported by the operating system.
        #[source]
        error: io::Error,
    },
    /// The system reported an error while reading.
    #[error("cannot read {input} after {offset} bytes: {error}")]
    Io {
        /// Name of the file.
        input: String,
        /// Number of bytes read before the error.
        offset: u64,
        /// Error reported by the operating system.
        #[source]
        error: io::Error,
    },
    /// A record is bad and [`OnError::Stop`](crate::OnError::Stop) is set.
    #[error(transparent)]
    Bad(BadRecord),
    /// The input is cut off or damaged, and the rest of it cannot be read. With
    /// [`OnError::Skip`](crate::OnError::Skip), reading goes on with the next input and reports
    /// this in [`ReadSummary::truncated`].
    #[error("{0}")]
    Truncated(String),
    /// The header row has no such column.
    #[error("{input} has no column `{column}`; its columns are: {available}")]
    NoColumn {
        /// Name of the file.
        input: String,
        /// Column that was asked for.
        column: String,
        /// Columns of the header row.
        available: String,
    },
    /// The input has content that this format cannot read, unless
    /// [`ReadOptions::raw`](crate::ReadOptions::raw) is set.
    #[error("{input} is {content}")]
    Content {
        /// Name of the file.
        input: String,
        /// Kind of content found.
        content: Content,
    },
    /// The options contradict each other: the weight is for another format than the one in use (see
    /// [`Format::parse_weight`](crate::Format::parse_weight)), or a column is given by name for a
    /// table without a header.
    #[error(transparent)]
    Spec(SpecError),
}

/// Error of a read, with a summary of what was delivered before it.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct ReadError {
    /// Reason of the failure.
    #[source]
    pub kind: ReadErrorKind,
    /// Summary of what was delivered before the failure.
    pub summary: Box<ReadSummary>,
}
