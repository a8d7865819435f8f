//! What can go wrong, one type a phase: writing down a stream ([`SpecError`]), and reading it ([`ReadError`]).

use std::{fmt, io};

use crate::{Content, MAX_COLUMNS, MAX_KEY_BYTES, MAX_RECORD_BYTES, MAX_WEIGHT, ReadSummary};

/// Every format, for messages.
pub(crate) const FORMATS: &str = "lines, field:N, csv:COLUMN, tsv:COLUMN, jsonl:POINTER, fimi, records:BYTES, pcap, \
                                  pcap:5tuple, pcap:src, pcap:dst, pcap:srcport, pcap:dstport";

/// Every generator, for messages.
pub(crate) const GENERATORS: &str = "zipf:SKEW[:ITEMS[:KEYS]], caida-like[:PACKETS]";

/// A format, weight, generator or key that is written wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No format has this name, or its argument is missing.
    #[error("`{given}` is not a format; formats are: {FORMATS}")]
    Format {
        /// What was given.
        given: String,
    },
    /// The format exists, its argument is unusable.
    #[error("format `{given}`: {problem}; formats are: {FORMATS}")]
    FormatArgument {
        /// What was given.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The weight does not suit the format.
    #[error("weight `{given}` does not fit format `{format}`: {expected}")]
    Weight {
        /// What was given.
        given: String,
        /// The format it was given for.
        format: String,
        /// What that format takes.
        expected: &'static str,
    },
    /// A table without a header row has no column names.
    #[error("column `{column}` is asked for by name, and without a header row there are only numbers")]
    NoHeader {
        /// The column asked for.
        column: String,
    },
    /// A generator's arguments are unusable.
    #[error("generator `{given}`: {problem}; generators are: {GENERATORS} (a file of this name: ./{given})")]
    Generator {
        /// What was given.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The text is no key of this format.
    #[error("`{given}` is not a key of format `{format}`: {expected}")]
    Key {
        /// What was given.
        given: String,
        /// The format it was given for.
        format: String,
        /// What such a key looks like.
        expected: String,
    },
}

/// Where in an input: text counts lines, binary data counts bytes (after decompression).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte offset, from 0.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Byte(offset) => write!(f, "byte offset {offset}"),
        }
    }
}

/// Why one record is not an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadReason {
    /// A key may have 65,535 bytes.
    #[error("the key has {bytes} bytes, the limit is {MAX_KEY_BYTES}")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A line, row or packet is longer than the reader is willing to hold.
    #[error("the record is longer than {MAX_RECORD_BYTES} bytes")]
    RecordTooLong,
    /// The key has another size than all keys must have.
    #[error("the key has {bytes} bytes, and every key must have {wanted}")]
    KeySize {
        /// Its length.
        bytes: usize,
        /// The length that was promised.
        wanted: usize,
    },
    /// A row has more columns than the reader is willing to hold.
    #[error("the row has more than {MAX_COLUMNS} columns")]
    TooManyColumns,
    /// The line or row ends before the wanted column.
    #[error("column {wanted} is wanted, but there are only {found}")]
    MissingColumn {
        /// The column's number, from 1.
        wanted: usize,
        /// How many columns there are.
        found: usize,
    },
    /// A quote is opened and the input ends before it is closed.
    #[error("a quote is opened and never closed")]
    UnclosedQuote,
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// The JSON pointer leads nowhere.
    #[error("nothing at JSON pointer `{pointer}`")]
    NothingAtPointer {
        /// The pointer.
        pointer: String,
    },
    /// The JSON pointer leads to something that is not a string or a number.
    #[error("JSON pointer `{pointer}` leads to {found}, not to a string or a number")]
    NotAKey {
        /// The pointer.
        pointer: String,
        /// What is there.
        found: &'static str,
    },
    /// A weight must be written in digits, with or without a decimal point.
    #[error("weight `{text}` is not a number from 0 to {MAX_WEIGHT}")]
    Weight {
        /// The text found.
        text: String,
    },
    /// A weight must be whole, after scaling.
    #[error("weight `{text}` is not a whole number{}", at_scale(*scale))]
    Fraction {
        /// The text found.
        text: String,
        /// What it was multiplied by.
        scale: u64,
        /// The next scale that makes it whole, if there is one.
        needed: Option<u64>,
    },
    /// A single weight passes the limit.
    #[error("weight `{text}`{} is over the limit of {MAX_WEIGHT}", at_scale(*scale))]
    WeightTooLarge {
        /// The text found.
        text: String,
        /// What it was multiplied by.
        scale: u64,
    },
    /// All weights together pass the limit.
    #[error("with its weight of {weight}, all weights together are over the limit of {MAX_WEIGHT}")]
    TotalWeight {
        /// The weight that is too much.
        weight: u64,
    },
    /// This reader does not know the link layer of the capture's interface.
    #[error(
        "link type {0} is not supported (supported: Ethernet 1, raw IP 12/14/101/228/229, Linux cooked 113/276, \
         null/loopback 0/108)"
    )]
    LinkType(i32),
    /// The capture's snap length cut off what the key needs.
    #[error("only {captured} bytes of the packet were captured, which cuts off {missing}")]
    PacketCut {
        /// Captured bytes.
        captured: usize,
        /// What is missing.
        missing: &'static str,
    },
    /// The packet contradicts its own headers.
    #[error("malformed packet: {0}")]
    Packet(String),
    /// A block of a capture contradicts its own headers.
    #[error("malformed capture block: {0}")]
    Block(String),
}

fn at_scale(scale: u64) -> String {
    if scale == 1 { String::new() } else { format!(" at scale {scale}") }
}

/// One record that is not an item, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{input}, {place}: {reason}")]
pub struct BadRecord {
    /// The file's name, or `standard input`.
    pub input: String,
    /// Where in the input.
    pub place: Place,
    /// What is wrong.
    pub reason: BadReason,
}

/// Why reading stopped. Items before the failure were delivered.
#[derive(Debug, thiserror::Error)]
pub enum ReadErrorKind {
    /// The file cannot be opened.
    #[error("cannot open {input}: {error}")]
    Open {
        /// The file.
        input: String,
        /// The system's answer.
        #[source]
        error: io::Error,
    },
    /// The system failed to read on.
    #[error("cannot read {input} after {offset} bytes: {error}")]
    Io {
        /// The file.
        input: String,
        /// Bytes of the file read so far.
        offset: u64,
        /// The system's answer.
        #[source]
        error: io::Error,
    },
    /// A record is bad and [`OnError::Stop`](crate::OnError::Stop) is set.
    #[error(transparent)]
    Bad(BadRecord),
    /// The input is cut off or damaged, and nothing after that point can be read. With
    /// [`OnError::Skip`](crate::OnError::Skip) this ends only the one input, and [`ReadSummary::truncated`] tells.
    #[error("{0}")]
    Truncated(String),
    /// The header row has no such column.
    #[error("{input} has no column `{column}`; its columns are: {available}")]
    NoColumn {
        /// The file.
        input: String,
        /// The column asked for.
        column: String,
        /// The header row.
        available: String,
    },
    /// The input holds something that this format cannot read.
    /// [`ReadOptions::raw`](crate::ReadOptions::raw) reads it all the same.
    #[error("{input} is {content}")]
    Content {
        /// The file.
        input: String,
        /// What it is.
        content: Content,
    },
    /// The options contradict each other: the weight belongs to another format (make it with
    /// [`Format::parse_weight`](crate::Format::parse_weight)), or a table without header is asked
    /// for a column by name.
    #[error(transparent)]
    Spec(SpecError),
}

/// Reading failed: why, and what was read before.
#[derive(Debug, thiserror::Error)]
#[error("{kind}")]
pub struct ReadError {
    /// Why.
    #[source]
    pub kind: ReadErrorKind,
    /// What was delivered up to there.
    pub summary: Box<ReadSummary>,
}
