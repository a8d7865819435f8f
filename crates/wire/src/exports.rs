//! Messages of a mirrored table ([`ucl_data_plane::mirrored`]), framed piece by piece.
//!
//! ```text
//! "UC" version 05   header   (length u8, bytes)*  00   00 | 01 digest u64   crc32
//! ```
//! A device hands its bytes on as they arise, so that it needs no room for a whole message: lengths
//! stand before each piece, not before the message. The end says whether the message has the counts
//! of all slots, and then the digest of the table.

use alloc::vec::Vec;

use ucl_data_plane::mirrored::{CHUNK, Pieces};
use ucl_data_plane::{Report, ReportSink};

use crate::bytes::Reader;
use crate::message::{Header, Kind, MAGIC, put_header};
use crate::{VERSION, WireError};

const BATCH: u8 = 0;
const COUNTS: u8 = 1;

/// Frames what a [`MirroredPart`](ucl_data_plane::mirrored::MirroredPart) sends, without a buffer.
///
/// An [`Encoder`](crate::Encoder) does the same and hands out whole messages.
///
/// ```
/// use ucl_data_plane::KeyFormat;
/// use ucl_data_plane::mirrored::{MirroredPart, MirroredShape};
/// use ucl_wire::{ExportFrames, Header, split_message};
///
/// let keys = KeyFormat::Fixed(4);
/// let shape = MirroredShape::within(8_192, keys).expect("8KB are enough");
/// let mut device = MirroredPart::<4>::new(shape, keys, 7.into());
/// let mut link = Vec::new(); // a socket, a file
/// let mut frames = ExportFrames::new(Header::default());
/// for i in 0..20_000u32 {
///     let key = (i * i % 5_003).to_le_bytes();
///     device.insert(&key, 1, &mut |piece| frames.write(piece, &mut |bytes| link.extend_from_slice(bytes)));
/// }
/// let (mut messages, mut rest) = (0, &link[..]);
/// while !rest.is_empty() {
///     (_, rest) = split_message(rest)?;
///     messages += 1;
/// }
/// assert_eq!(frames.next().seq, messages);
/// # Ok::<(), ucl_wire::WireError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExportFrames {
    next: Header,
    /// The checksum so far of the message that is open.
    open: Option<crc32fast::Hasher>,
}

impl ExportFrames {
    /// Frames messages from this header on.
    pub fn new(next: Header) -> Self {
        Self { next, open: None }
    }

    /// Returns the header of the next message.
    pub fn next(&self) -> Header {
        self.next
    }

    /// Frames a piece, and hands on the bytes at once.
    pub fn write(&mut self, piece: Pieces<'_>, out: &mut impl FnMut(&[u8])) {
        let new = self.open.is_none();
        let checksum = self.open.get_or_insert_default();
        let mut put = |bytes: &[u8]| {
            checksum.update(bytes);
            out(bytes);
        };
        if new {
            // The frame's start and four varints: at most 44 bytes.
            let mut head = Vec::with_capacity(44);
            head.extend_from_slice(&MAGIC);
            head.extend_from_slice(&[VERSION, Kind::Export as u8]);
            put_header(&self.next, &mut head);
            put(&head);
            self.next.seq += 1;
        }
        match piece {
            Pieces::Bytes(bytes) => {
                debug_assert!((1..=CHUNK).contains(&bytes.len()));
                put(&[bytes.len() as u8]);
                put(bytes);
            }
            Pieces::End { cut } => {
                match cut {
                    None => put(&[0, BATCH]),
                    Some(digest) => {
                        put(&[0, COUNTS]);
                        put(&digest.to_le_bytes());
                    }
                }
                let checksum = self.open.take().map_or(0, crc32fast::Hasher::finalize);
                out(&checksum.to_le_bytes());
            }
        }
    }
}

/// A message of a mirrored table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Bytes for [`Mirror::read`](ucl_data_plane::mirrored::Mirror::read).
    pub bytes: Vec<u8>,
    /// The digest of the table, if the message has the counts of all slots.
    pub cut: Option<u64>,
}

impl Export {
    /// Hands the message to `sink` as the data plane did.
    pub fn replay(&self, sink: &mut impl ReportSink) {
        for piece in self.bytes.chunks(CHUNK) {
            sink.report(Report::Export(Pieces::Bytes(piece)));
        }
        sink.report(Report::Export(Pieces::End { cut: self.cut }));
    }

    /// Reads the payload.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut bytes = Vec::new();
        loop {
            match usize::from(reader.byte("piece")?) {
                0 => break,
                length => bytes.extend_from_slice(reader.take(length, "piece")?),
            }
        }
        let cut = match reader.byte("end of an export")? {
            BATCH => None,
            COUNTS => Some(u64::from_le_bytes(reader.array("digest")?)),
            _ => return Err(WireError::Corrupt { what: "end of an export" }),
        };
        Ok(Self { bytes, cut })
    }

    /// The length of header and payload, which no number before them tells.
    pub(crate) fn length(reader: &Reader<'_>) -> Result<usize, WireError> {
        let mut ahead = reader.clone();
        for what in ["stream", "segment", "epoch", "seq"] {
            ahead.varint(what)?;
        }
        loop {
            match usize::from(ahead.byte("piece")?) {
                0 => break,
                length => drop(ahead.take(length, "piece")?),
            }
        }
        if ahead.byte("end of an export")? == COUNTS {
            ahead.take(8, "digest")?;
        }
        Ok(reader.rest().len() - ahead.rest().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Opened, split_message};
    use std::vec;

    fn message() -> Vec<u8> {
        let mut frames = ExportFrames::new(Header { stream: 1, segment: 2, epoch: 300, seq: 4 });
        let mut message = Vec::new();
        for piece in [Pieces::Bytes(&[7; 255]), Pieces::Bytes(&[8; 3]), Pieces::End { cut: Some(9) }] {
            frames.write(piece, &mut |bytes| message.extend_from_slice(bytes));
        }
        assert_eq!(frames.next().seq, 5);
        message
    }

    #[test]
    fn what_was_framed_is_read() {
        let message = message();
        assert_eq!(message.len(), 4 + 5 + 256 + 4 + 1 + 9 + 4);
        let both = [&message[..], b"UC"].concat();
        assert_eq!(split_message(&both), Ok((&message[..], &b"UC"[..])));
        let opened = Opened::new(&message).unwrap();
        assert_eq!(opened.header, Header { stream: 1, segment: 2, epoch: 300, seq: 4 });
    }

    #[test]
    fn damage_is_noticed() {
        let message = message();
        for at in 0..message.len() {
            let mut damaged = message.clone();
            damaged[at] ^= 1;
            assert!(Opened::new(&damaged).is_err(), "byte {at}");
            assert!(matches!(split_message(&message[..at]), Err(WireError::Truncated { .. })), "{at}");
        }
    }

    #[test]
    fn a_replayed_export_is_the_one_that_was_sent() {
        let export = Export { bytes: vec![5; 600], cut: Some(3) };
        let mut again = Export::default();
        export.replay(&mut |report: Report<'_>| match report {
            Report::Export(Pieces::Bytes(bytes)) => again.bytes.extend_from_slice(bytes),
            Report::Export(Pieces::End { cut }) => again.cut = cut,
            other => panic!("{other:?}"),
        });
        assert_eq!(again, export);
    }
}
