//! One epoch on its way.
//!
//! ```text
//! "UCLE"  version u8  length u32                        of everything, checksum included
//! tenant u8 + bytes   stream u8 + bytes   incarnation: number u32, nonce u64   format u8 + bytes
//! seq u64   previous u64   started_ms i64   ended_ms i64   duration_ms u64   items u64
//! unseen u8 (0: none, 1: an interval, 2: with a number of items)   [from_ms i64   to_ms i64   [items u64]]
//! messages u32, each: length u32, bytes
//! XXH3-64 of everything before
//! ```
//! Numbers are little-endian. Envelopes laid end to end are a log, a spool and the body of a
//! request. Magic, version, length and checksum are where they are in every version: so an older
//! program can tell an envelope of a newer one from damage, and leaves it alone.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::identity::{Identity, Incarnation, Name, NameError};

/// The version of the format.
pub const VERSION: u8 = 1;

/// Bytes of the largest envelope.
pub const MAX_ENVELOPE: usize = 16 << 20;

/// The most messages in an envelope.
pub const MAX_MESSAGES: usize = 1 << 14;

const MAGIC: [u8; 4] = *b"UCLE";
const HEAD: usize = 9;
const CHECKSUM: usize = 8;

/// A moment by both clocks. Time comes in as a parameter: nothing here asks a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since 1970, by a clock that may jump.
    pub wall_ms: i64,
    /// Milliseconds since some moment, by a clock that does not.
    pub mono_ms: u64,
}

/// Times of an epoch, by the sender's clocks. Nothing is decided by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Time when the epoch began, in milliseconds since 1970, by a clock that may jump.
    pub started_ms: i64,
    /// Time when the epoch ended, by the same clock.
    pub ended_ms: i64,
    /// Duration of the epoch, by a clock that does not jump.
    pub duration_ms: u64,
}

/// Items that nobody counted: the sender was down, or its disk was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Start of the gap, in milliseconds since 1970.
    pub from_ms: i64,
    /// End of the gap.
    pub to_ms: i64,
    /// Number of missing items, if known.
    pub items: Option<u64>,
}

impl Unseen {
    /// Both, as one.
    pub fn and(self, other: Self) -> Self {
        Self {
            from_ms: self.from_ms.min(other.from_ms),
            to_ms: self.to_ms.max(other.to_ms),
            items: self.items.zip(other.items).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// The messages of one epoch, with who sends them and where they belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Sender of the envelope.
    pub identity: Identity,
    /// Format that keys are read and shown in, as `ucl count --format` has it: at most 255 bytes.
    pub format: &'a str,
    /// Envelopes of this incarnation before it.
    pub seq: u64,
    /// The checksum of the one before it; 0 for the first. As it is part of what is summed, equal
    /// checksums mean equal histories.
    pub previous: u64,
    /// Times of the epoch.
    pub times: Times,
    /// Items of this incarnation up to the end of the epoch.
    pub items: u64,
    /// Items that were not counted since the envelope before, if anything is known to be missing.
    pub unseen: Option<Unseen>,
    /// The messages, the last of which ends the epoch.
    pub messages: Vec<&'a [u8]>,
}

/// An envelope that was read, with its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The envelope.
    pub envelope: Envelope<'a>,
    /// Checksum of the envelope.
    pub checksum: u64,
    /// All its bytes.
    pub bytes: &'a [u8],
}

/// Bytes that are no envelope, or content that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// More bytes are needed.
    #[error("the envelope is cut short")]
    Truncated,
    /// The bytes are something else.
    #[error("not an envelope")]
    NotAnEnvelope,
    /// Update the reader.
    #[error("the envelope has version {0}, but this program reads up to {VERSION}: update it")]
    NewerVersion(u8),
    /// The bytes changed on the way.
    #[error("the envelope's checksum is wrong")]
    Checksum,
    /// The checksum is right, but the content is invalid.
    #[error("the envelope's {0} is not possible")]
    Corrupt(&'static str),
    /// Cut more often.
    #[error(
        "an envelope of {bytes} bytes and {messages} messages is too large: the most are {MAX_ENVELOPE} and {MAX_MESSAGES}"
    )]
    TooLarge {
        /// Bytes of the envelope.
        bytes: usize,
        /// Messages of the envelope.
        messages: usize,
    },
    /// Choose another name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl<'a> Envelope<'a> {
    /// Returns the envelope as bytes.
    ///
    /// # Errors
    /// If it is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LinkError> {
        let Self { identity, format, seq, previous, times, items, unseen, messages } = self;
        let content: usize = messages.iter().map(|message| message.len().saturating_add(4)).sum();
        let too_large = |bytes| LinkError::TooLarge { bytes, messages: messages.len() };
        if content > MAX_ENVELOPE || messages.len() > MAX_MESSAGES {
            return Err(too_large(content));
        }
        let Ok(format_bytes) = u8::try_from(format.len()) else { return Err(LinkError::Corrupt("format")) };
        let mut out = Vec::with_capacity(content + 512);
        out.extend(MAGIC);
        out.push(VERSION);
        out.extend([0; 4]);
        for name in [&identity.tenant, &identity.stream] {
            out.push(name.as_str().len() as u8);
            out.extend(name.as_str().as_bytes());
        }
        out.extend(identity.incarnation.number.to_le_bytes());
        out.extend(identity.incarnation.nonce.to_le_bytes());
        out.push(format_bytes);
        out.extend(format.as_bytes());
        out.extend(seq.to_le_bytes());
        out.extend(previous.to_le_bytes());
        out.extend(times.started_ms.to_le_bytes());
        out.extend(times.ended_ms.to_le_bytes());
        out.extend(times.duration_ms.to_le_bytes());
        out.extend(items.to_le_bytes());
        match unseen {
            None => out.push(0),
            Some(Unseen { from_ms, to_ms, items }) => {
                out.push(1 + u8::from(items.is_some()));
                out.extend(from_ms.to_le_bytes());
                out.extend(to_ms.to_le_bytes());
                out.extend(items.iter().flat_map(|items| items.to_le_bytes()));
            }
        }
        out.extend((messages.len() as u32).to_le_bytes());
        for message in messages {
            out.extend((message.len() as u32).to_le_bytes());
            out.extend(*message);
        }
        let length = out.len() + CHECKSUM;
        if length > MAX_ENVELOPE {
            return Err(too_large(length));
        }
        out[5..HEAD].copy_from_slice(&(length as u32).to_le_bytes());
        let checksum = xxh3_64(&out);
        out.extend(checksum.to_le_bytes());
        Ok(out)
    }

    /// Reads the first of several envelopes laid end to end, and returns it with the rest.
    ///
    /// Any bytes give an envelope or an error. Nothing is allocated but one slice per message.
    ///
    /// # Errors
    /// If the bytes do not start with a whole envelope.
    pub fn split(bytes: &'a [u8]) -> Result<(Received<'a>, &'a [u8]), LinkError> {
        let begun = bytes.len().min(MAGIC.len());
        if bytes[..begun] != MAGIC[..begun] {
            return Err(LinkError::NotAnEnvelope);
        }
        let head: &[u8; HEAD] = bytes.first_chunk().ok_or(LinkError::Truncated)?;
        let length = u32::from_le_bytes([head[5], head[6], head[7], head[8]]) as usize;
        if length > MAX_ENVELOPE {
            return Err(LinkError::TooLarge { bytes: length, messages: 0 });
        }
        let (all, rest) = bytes.split_at_checked(length).ok_or(LinkError::Truncated)?;
        let (content, checksum) = all.split_last_chunk::<CHECKSUM>().ok_or(LinkError::Corrupt("length"))?;
        let checksum = u64::from_le_bytes(*checksum);
        if xxh3_64(content) != checksum {
            return Err(LinkError::Checksum);
        }
        match head[4] {
            VERSION => {}
            0 => return Err(LinkError::Corrupt("version")),
            newer => return Err(LinkError::NewerVersion(newer)),
        }
        let mut reader = Reader(content.get(HEAD..).ok_or(LinkError::Corrupt("length"))?);
        let envelope = reader.envelope()?;
        if !reader.0.is_empty() {
            return Err(LinkError::Corrupt("length"));
        }
        Ok((Received { envelope, checksum, bytes: all }, rest))
    }

    /// Reads all envelopes of a request's body.
    ///
    /// # Errors
    /// If the bytes are anything else than whole envelopes.
    pub fn split_all(mut bytes: &'a [u8]) -> Result<Vec<Received<'a>>, LinkError> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (received, rest) = Self::split(bytes)?;
            all.push(received);
            bytes = rest;
        }
        Ok(all)
    }

    /// Reads the whole envelopes at the start of a log, and returns them with the length of what
    /// they take: what follows is torn or damaged.
    ///
    /// # Errors
    /// If a newer version wrote what follows: it is whole, and must not be cut off.
    pub fn split_log(bytes: &'a [u8]) -> Result<(Vec<Received<'a>>, usize), LinkError> {
        let mut all = Vec::new();
        let mut rest = bytes;
        loop {
            match Self::split(rest) {
                Ok((received, later)) => {
                    all.push(received);
                    rest = later;
                }
                Err(newer @ LinkError::NewerVersion(_)) => return Err(newer),
                Err(_) => return Ok((all, bytes.len() - rest.len())),
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], LinkError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(LinkError::Corrupt("length"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], LinkError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(LinkError::Corrupt("length"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, LinkError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, LinkError> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Result<i64, LinkError> {
        self.array().map(i64::from_le_bytes)
    }

    fn byte(&mut self) -> Result<u8, LinkError> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn text(&mut self) -> Result<&'a str, LinkError> {
        let length = self.byte()?;
        std::str::from_utf8(self.take(length.into())?).map_err(|_| LinkError::Corrupt("text"))
    }

    fn envelope(&mut self) -> Result<Envelope<'a>, LinkError> {
        let (tenant, stream): (Name, Name) = (self.text()?.parse()?, self.text()?.parse()?);
        let incarnation = Incarnation { number: self.u32()?, nonce: self.u64()? };
        let identity = Identity { tenant, stream, incarnation };
        let format = self.text()?;
        let (seq, previous) = (self.u64()?, self.u64()?);
        let times = Times { started_ms: self.i64()?, ended_ms: self.i64()?, duration_ms: self.u64()? };
        let items = self.u64()?;
        let unseen = match self.byte()? {
            0 => None,
            kind @ (1 | 2) => {
                let (from_ms, to_ms) = (self.i64()?, self.i64()?);
                let items = if kind == 2 { Some(self.u64()?) } else { None };
                Some(Unseen { from_ms, to_ms, items })
            }
            _ => return Err(LinkError::Corrupt("unseen interval")),
        };
        let count = self.u32()? as usize;
        // Each takes at least the bytes of its length.
        if count > MAX_MESSAGES || count > self.0.len() / 4 {
            return Err(LinkError::Corrupt("number of messages"));
        }
        let mut messages = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.u32()? as usize;
            messages.push(self.take(length)?);
        }
        Ok(Envelope { identity, format, seq, previous, times, items, unseen, messages })
    }
}
