//! The messages of a mirrored table ([`ucl_data_plane::mirrored`]): framed piece by piece.
//!
//! ```text
//! message = varint seq  (length u8, bytes)*  00  kind  [varint items, weight]  crc32      little-endian
//! kind    = e0 a batch of changes | e1 a cut, which has the totals of the stream
//! ```
//! A device hands its bytes on as they arise, so that it needs no room for a whole message: lengths
//! stand before each piece, not before the message.

use alloc::vec::Vec;

use ucl_data_plane::mirrored::{CHUNK, Pieces};

use crate::WireError;
use crate::bytes::{Reader, put_varint};

const BATCH: u8 = 0xe0;
const CUT: u8 = 0xe1;

/// Frames what a [`MirroredPart`](ucl_data_plane::mirrored::MirroredPart) sends.
///
/// ```
/// use ucl_data_plane::mirrored::{Mirror, MirroredPart, MirroredShape};
/// use ucl_wire::{ExportReader, ExportWriter};
///
/// let shape = MirroredShape::within(8_192, 4).expect("8KB are enough");
/// let mut device = MirroredPart::<4>::new(shape, 7.into());
/// let mut link = Vec::new(); // a socket, a file
/// let mut writer = ExportWriter::default();
/// let mut send = |bytes: &[u8]| link.extend_from_slice(bytes);
/// for i in 0..20_000u32 {
///     device.insert(&(i * i % 5_003).to_le_bytes(), 1, &mut |piece| writer.write(piece, &mut send));
/// }
/// writer.set_totals(20_000, 20_000);
/// device.cut(&mut |piece| writer.write(piece, &mut send));
///
/// let (mut server, mut reader, mut sum) = (Mirror::new(shape, 4, 7.into()), ExportReader::default(), 0);
/// let mut rest = &link[..];
/// while !rest.is_empty() {
///     let export;
///     (export, rest) = reader.read(rest)?;
///     server.read(&export.bytes, export.totals.is_some(), |_, count| sum += count);
/// }
/// assert_eq!(sum, 20_000);
/// # Ok::<(), ucl_wire::WireError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExportWriter {
    seq: u64,
    totals: (u64, u64),
    /// The checksum so far of the message that is open.
    open: Option<crc32fast::Hasher>,
    sent: u64,
}

impl ExportWriter {
    /// Sets the items and the weight of the stream so far, which the next cut tells.
    pub fn set_totals(&mut self, items: u64, weight: u64) {
        self.totals = (items, weight);
    }

    /// Bytes handed on so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Frames a piece, and hands on the bytes at once.
    pub fn write(&mut self, piece: Pieces<'_>, out: &mut impl FnMut(&[u8])) {
        let new = self.open.is_none();
        let checksum = self.open.get_or_insert_default();
        let sent = &mut self.sent;
        let mut put = |bytes: &[u8]| {
            checksum.update(bytes);
            *sent += bytes.len() as u64;
            out(bytes);
        };
        if new {
            let mut seq = Vec::with_capacity(10);
            put_varint(&mut seq, self.seq);
            put(&seq);
            self.seq += 1;
        }
        match piece {
            Pieces::Bytes(bytes) => {
                debug_assert!((1..=CHUNK).contains(&bytes.len()));
                put(&[bytes.len() as u8]);
                put(bytes);
            }
            Pieces::End { cut } => {
                put(&[0, if cut { CUT } else { BATCH }]);
                if cut {
                    let mut totals = Vec::with_capacity(20);
                    put_varint(&mut totals, self.totals.0);
                    put_varint(&mut totals, self.totals.1);
                    put(&totals);
                }
                let checksum = self.open.take().map_or(0, crc32fast::Hasher::finalize);
                self.sent += 4;
                out(&checksum.to_le_bytes());
            }
        }
    }
}

/// A message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What [`Mirror::read`](ucl_data_plane::mirrored::Mirror::read) takes.
    pub bytes: Vec<u8>,
    /// Items and weight of the stream, if the message is a cut.
    pub totals: Option<(u64, u64)>,
}

/// Reads the messages of an [`ExportWriter`], and notices when one is missing, repeated or damaged.
#[derive(Clone, Debug, Default)]
pub struct ExportReader {
    next: u64,
}

/// More than any device sends between two ends: a batch is a part of its memory, a cut some bytes a
/// slot.
const MOST_BYTES: usize = 1 << 28;

impl ExportReader {
    /// Reads the first message of `bytes`; returns it and what follows.
    ///
    /// # Errors
    /// If the message is not whole, was damaged, or is not the next one. Then nothing has changed,
    /// and [`WireError::Truncated`] asks for more bytes.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<(Export, &'a [u8]), WireError> {
        let mut reader = Reader::new(bytes);
        let seq = reader.varint("seq")?;
        let mut content = Vec::new();
        loop {
            match usize::from(reader.byte("piece")?) {
                0 => break,
                length => content.extend_from_slice(reader.take(length, "piece")?),
            }
            if content.len() > MOST_BYTES {
                let (value, most) = (content.len() as u64, MOST_BYTES as u64);
                return Err(WireError::TooLarge { what: "message", value, most });
            }
        }
        let totals = match reader.byte("kind")? {
            BATCH => None,
            CUT => Some((reader.varint("items")?, reader.varint("weight")?)),
            _ => return Err(WireError::Corrupt { what: "kind" }),
        };
        let length = bytes.len() - reader.rest().len();
        let stored = u32::from_le_bytes(reader.array("checksum")?);
        let computed = crc32fast::hash(&bytes[..length]);
        if stored != computed {
            return Err(WireError::Checksum { stored, computed });
        }
        match seq.cmp(&self.next) {
            core::cmp::Ordering::Less => return Err(WireError::Repeated { expected: self.next, got: seq }),
            core::cmp::Ordering::Greater => return Err(WireError::Lost { expected: self.next, got: seq }),
            core::cmp::Ordering::Equal => {}
        }
        self.next += 1;
        Ok((Export { bytes: content, totals }, reader.rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn messages() -> [Vec<u8>; 2] {
        let mut writer = ExportWriter::default();
        writer.set_totals(1_000_000, 5_000_000_000);
        [
            vec![Pieces::Bytes(&[7; 255]), Pieces::Bytes(&[8; 3]), Pieces::End { cut: false }],
            vec![Pieces::End { cut: true }],
        ]
        .map(|pieces| {
            let mut message = Vec::new();
            for piece in pieces {
                writer.write(piece, &mut |bytes| message.extend_from_slice(bytes));
            }
            message
        })
    }

    #[test]
    fn what_was_framed_is_read() {
        let [first, second] = messages();
        assert_eq!((first.len(), second.len()), (1 + 256 + 4 + 2 + 4, 1 + 2 + 3 + 5 + 4));
        let mut reader = ExportReader::default();
        let both = [first.clone(), second.clone()].concat();
        let (export, rest) = reader.read(&both).unwrap();
        assert_eq!((export.bytes, export.totals, rest), ([vec![7; 255], vec![8; 3]].concat(), None, &second[..]));
        assert_eq!(reader.read(rest).unwrap().0, Export { bytes: vec![], totals: Some((1_000_000, 5_000_000_000)) });
        assert_eq!(reader.read(&first), Err(WireError::Repeated { expected: 2, got: 0 }));
        assert_eq!(ExportReader::default().read(&second), Err(WireError::Lost { expected: 0, got: 1 }));
    }

    #[test]
    fn damage_is_noticed() {
        let [first, _] = messages();
        for at in 0..first.len() {
            let mut damaged = first.clone();
            damaged[at] ^= 1;
            assert!(ExportReader::default().read(&damaged).is_err(), "byte {at}");
            assert!(matches!(ExportReader::default().read(&first[..at]), Err(WireError::Truncated { .. })), "{at}");
        }
    }
}
