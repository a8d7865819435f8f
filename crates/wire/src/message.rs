//! One message: frame, header and payload.
//!
//! ```text
//! 55 43   version 04   kind   varint length   stream segment epoch seq (varints)   payload   CRC-32 of all before
//!                                             '----------- length bytes ------------------'
//! ```
//! All fixed-width numbers are little-endian. Kinds: 0 opens a segment, 1 has reports without a
//! cut, 2 with a cut that starts the counters again, 3 with one that does not (a peek), 4 starts a
//! new cycle, 5 has what a mirrored table sends, without a length ([`exports`](crate::exports)).

use alloc::vec::Vec;

use ucl_data_plane::{Config, CounterIndex, Counters, Cut, HeavyKind, OutOfMemory, Report, ReportSink};

use crate::bytes::{Reader, put_varint};
use crate::exports::Export;
use crate::sections::cut::{self, CutReport};
use crate::sections::keys::Keys;
use crate::sections::slots::Slots;
use crate::sections::{carries, segment};
use crate::{MAX_COUNTERS, VERSION, WireError};

/// First bytes of every message.
pub(crate) const MAGIC: [u8; 2] = *b"UC";
const CHECKSUM_BYTES: usize = 4;

/// Position of a message: its stream, segment, epoch and number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Header {
    /// Number of the stream, one for each data plane. Small numbers take fewer bytes.
    pub stream: u64,
    /// Number of the segment in the stream. A segment has one configuration.
    pub segment: u32,
    /// Number of the epoch in the stream: cuts before this message.
    pub epoch: u64,
    /// Number of the message in the stream: messages before this one.
    pub seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    SegmentOpen,
    Partial,
    Cut,
    Peek,
    Reset,
    Export,
}

/// Content of a message.
#[allow(clippy::large_enum_variant, reason = "all messages but the first are the large one")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Start of a segment with this configuration.
    SegmentOpen(Config),
    /// Start of a new cycle: all counts restart from zero, with this configuration.
    Reset {
        /// Configuration of the segment.
        config: Config,
        /// True if a trained network keeps its weights.
        keep_weights: bool,
    },
    /// Reports of one epoch.
    Reports(EpochReports),
    /// Piece of the exports of a mirrored table.
    Export(Export),
}

/// Reports of one epoch. The last message of an epoch holds the cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochReports {
    /// Keys in the order of their reports.
    pub keys: Keys,
    /// Carries by counter. Carries of the same counter are added up.
    pub carries: Vec<(CounterIndex, i64)>,
    /// Changed slots of the heavy part.
    pub slots: Slots,
    /// The cut that ends the epoch, in its last message.
    pub cut: Option<CutReport>,
}

impl EpochReports {
    /// Hands every report to `sink`, in the order of the data plane: keys, carries, slots, cut.
    /// (Keys and carries alternate there; what they add up to is the same.)
    ///
    /// # Errors
    /// If there is no memory for the counters of a cut. Then the cut was not handed on.
    pub fn replay(&self, segment: &Config, sink: &mut impl ReportSink) -> Result<(), OutOfMemory> {
        for (key, flags) in self.keys.iter() {
            sink.report(Report::Key { key, flags });
        }
        for &(at, times) in &self.carries {
            sink.report(Report::Carry { at, times });
        }
        for change in self.slots.iter() {
            sink.report(Report::Slot { slot: change.slot, holder: change.holder, count: change.count });
        }
        if let Some(cut) = &self.cut {
            let shape = &segment.shape;
            let counters = Counters::from_remainders(&cut.counters, shape.counter_bits, shape.signed())?;
            sink.report(Report::Cut(Cut { totals: cut.totals, counters: &counters, reset: cut.reset }));
        }
        Ok(())
    }
}

/// Replaces `out` by the message whose payload `body` holds after the header.
pub(crate) fn frame(kind: Kind, body: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION, kind as u8]);
    put_varint(out, body.len() as u64);
    out.extend_from_slice(body);
    let checksum = crc32fast::hash(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

pub(crate) fn put_header(header: &Header, body: &mut Vec<u8>) {
    put_varint(body, header.stream);
    put_varint(body, header.segment.into());
    put_varint(body, header.epoch);
    put_varint(body, header.seq);
}

/// Splits off the first of several concatenated messages and returns it with the rest.
/// [`WireError::Truncated`] means that more bytes are needed. Only the frame is checked.
///
/// ```
/// use ucl_wire::{WireError, split_message};
///
/// assert!(matches!(split_message(b"UC\x01\x00"), Err(WireError::Truncated { .. })));
/// assert!(matches!(split_message(b"GET / HTTP/1.1"), Err(WireError::NotAMessage { .. })));
/// ```
///
/// # Errors
/// If the bytes do not start with a message, or end before it does.
pub fn split_message(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let mut reader = Reader::new(bytes);
    let frame = open_frame(&mut reader)?;
    reader.take(frame.length.saturating_add(CHECKSUM_BYTES), "message")?;
    Ok(bytes.split_at(bytes.len() - reader.rest().len()))
}

/// First fields of a message, and the length of what follows.
struct Frame {
    version: u8,
    kind: u8,
    length: usize,
}

fn open_frame(reader: &mut Reader<'_>) -> Result<Frame, WireError> {
    let got = reader.array("message")?;
    if got != MAGIC {
        return Err(WireError::NotAMessage { got });
    }
    let version = match reader.byte("version")? {
        0 => return Err(WireError::Corrupt { what: "version" }),
        version @ 1..=VERSION => version,
        got => return Err(WireError::NewerVersion { got }),
    };
    let kind = reader.byte("kind")?;
    let length = if kind == Kind::Export as u8 && version >= 4 {
        Export::length(reader)?
    } else {
        usize::try_from(reader.bounded("message length", u32::MAX.into())?).unwrap_or(usize::MAX)
    };
    Ok(Frame { version, kind, length })
}

/// A message whose frame and checksum hold, read up to its header.
pub(crate) struct Opened<'a> {
    pub(crate) kind: Kind,
    pub(crate) header: Header,
    version: u8,
    payload: Reader<'a>,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let Frame { version, kind, length } = open_frame(&mut reader)?;
        let mut body = Reader::new(reader.take(length, "message")?);
        let stored = u32::from_le_bytes(reader.array("checksum")?);
        reader.end()?;
        let computed = crc32fast::hash(&bytes[..bytes.len() - CHECKSUM_BYTES]);
        if stored != computed {
            return Err(WireError::Checksum { stored, computed });
        }
        let kind = match kind {
            0 => Kind::SegmentOpen,
            1 => Kind::Partial,
            2 => Kind::Cut,
            3 => Kind::Peek,
            4 => Kind::Reset,
            5 if version >= 4 => Kind::Export,
            _ => return Err(WireError::Corrupt { what: "kind" }),
        };
        let header = Header {
            stream: body.varint("stream")?,
            segment: body.bounded("segment", u32::MAX.into())? as u32,
            epoch: body.varint("epoch")?,
            seq: body.varint("seq")?,
        };
        Ok(Self { kind, header, version, payload: body })
    }

    /// Reads the payload, reports by the configuration that opened their segment. No segment may
    /// have more than `most_counters`.
    pub(crate) fn message(mut self, segment: Option<&Config>, most_counters: usize) -> Result<Message, WireError> {
        let reader = &mut self.payload;
        let message = match (self.kind, segment) {
            (Kind::SegmentOpen, _) => Message::SegmentOpen(segment::read(reader, self.version)?),
            (Kind::Reset, _) => {
                let keep_weights = match reader.byte("kept weights")? {
                    0 => false,
                    1 => true,
                    _ => return Err(WireError::Corrupt { what: "kept weights" }),
                };
                Message::Reset { config: segment::read(reader, self.version)?, keep_weights }
            }
            (_, None) => return Err(WireError::UnknownSegment { segment: self.header.segment }),
            (Kind::Export, Some(config)) => {
                if !matches!(config.shape.heavy, HeavyKind::Mirrored(_)) {
                    return Err(WireError::Corrupt { what: "export of a table that there is not" });
                }
                Message::Export(Export::read(reader)?)
            }
            (kind, Some(config)) => {
                segment::check(config)?;
                segment::check_counters(config, most_counters)?;
                Message::Reports(EpochReports {
                    keys: Keys::read(reader, config, self.version)?,
                    carries: carries::read(reader, config)?,
                    slots: Slots::read(reader, config)?,
                    cut: match kind {
                        Kind::Cut => Some(cut::read(reader, config, true)?),
                        Kind::Peek => Some(cut::read(reader, config, false)?),
                        Kind::SegmentOpen | Kind::Reset | Kind::Partial | Kind::Export => None,
                    },
                })
            }
        };
        reader.end()?;
        if let Some(config) = message.opens() {
            segment::check_counters(config, most_counters)?;
        }
        Ok(message)
    }
}

impl Message {
    /// Returns the configuration of the segment that the message opens, if any.
    pub fn opens(&self) -> Option<&Config> {
        match self {
            Self::SegmentOpen(config) | Self::Reset { config, .. } => Some(config),
            Self::Reports(_) | Self::Export(_) => None,
        }
    }
}

/// Returns the header of a message with a valid checksum, which tells the
/// [`Receiver`](crate::Receiver) it is for.
///
/// # Errors
/// If the bytes are not one whole message of a known version, or the checksum is wrong.
pub fn decode_header(bytes: &[u8]) -> Result<Header, WireError> {
    Ok(Opened::new(bytes)?.header)
}

/// Decodes one message. `segment` is the configuration that opened the segment of the reports; a
/// message that opens a segment needs none.
///
/// Any bytes give a message or an error, never a panic. What is allocated is bounded by
/// [`MAX_BUFFER`](crate::MAX_BUFFER) and the number of counters in `segment` (at most
/// [`MAX_COUNTERS`]), never by a number in the bytes alone.
///
/// ```
/// use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// use ucl_wire::{Encoder, Message, decode_message};
///
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let mut sent = Vec::new();
/// Encoder::new(7, config, |message: &[u8]| sent.push(message.to_vec()))?;
/// let (header, message) = decode_message(&sent[0], None)?;
/// assert_eq!((header.stream, message), (7, Message::SegmentOpen(config)));
/// # Ok::<(), ucl_wire::WireError>(())
/// ```
///
/// # Errors
/// If the bytes are not one whole message of a known version, the checksum is wrong, or the content
/// is not possible for the segment.
pub fn decode_message(bytes: &[u8], segment: Option<&Config>) -> Result<(Header, Message), WireError> {
    let opened = Opened::new(bytes)?;
    Ok((opened.header, opened.message(segment, MAX_COUNTERS)?))
}
