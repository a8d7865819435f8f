//! Reported keys, in the order of the reports.
//!
//! On the wire: their number; a block of flags; keys of one size as byte columns; keys of any
//! length as lengths and one [`text`]. A long key's digest follows from the key and the
//! segment's seed: it travels only where it does not.

use alloc::vec::Vec;

use ucl_data_plane::{Config, HashSeed, KeyFlags, KeyFormat, KeyRef, MAX_KEY_BYTES};

use super::{MAX_COLLECTED, read_count, read_rows, write_rows};
use crate::WireError;
use crate::bytes::{Reader, put_varint};
use crate::entropy::values::{self, Scratch};
use crate::entropy::{block, text};

const HOT: u8 = 1;
const STALE: u8 = 2;
const KIND: u8 = 12;
const WHOLE: u8 = 0;
const DIGESTED: u8 = 4;
const DIGEST: u8 = 8;
/// On the wire only: the digest is not the one that the segment's seed gives.
const FOREIGN: u8 = 12;

fn bits(flags: KeyFlags) -> u8 {
    (HOT * u8::from(flags.hot)) | (STALE * u8::from(!flags.fresh))
}

fn key_flags(bits: u8) -> KeyFlags {
    KeyFlags { hot: bits & HOT != 0, fresh: bits & STALE == 0 }
}

/// Reported keys with their flags, in the order of the reports.
///
/// ```
/// use ucl_data_plane::{KeyFlags, KeyFormat, KeyRef};
/// use ucl_wire::Keys;
///
/// let mut keys = Keys::new(KeyFormat::Fixed(4));
/// let flags = KeyFlags { hot: true, fresh: true };
/// keys.push(KeyRef::Whole(&7u32.to_le_bytes()), flags);
/// assert_eq!(keys.len(), 1);
/// assert_eq!(keys.iter().next(), Some((KeyRef::Whole(&[7, 0, 0, 0]), flags)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Keys {
    format: KeyFormat,
    flags: Vec<u8>,
    /// Keys of one size, back to back; or digests of long ones, 16 bytes each.
    rows: Vec<u8>,
    /// Of each key sent in full: its length.
    lengths: Vec<u16>,
    text: Vec<u8>,
}

impl Keys {
    /// Creates an empty list of keys of this format.
    pub fn new(format: KeyFormat) -> Self {
        Self { format, flags: Vec::new(), rows: Vec::new(), lengths: Vec::new(), text: Vec::new() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.flags.len()
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// Returns the format of the keys.
    pub fn format(&self) -> KeyFormat {
        self.format
    }

    /// Appends a key.
    ///
    /// # Panics
    /// If the key is not of this format: the sender was given another configuration than the data
    /// plane.
    #[inline]
    pub fn push(&mut self, key: KeyRef<'_>, flags: KeyFlags) {
        let kind = match (self.format, key) {
            (KeyFormat::Fixed(_), KeyRef::Whole(key)) if self.format.admits(key.len()) => {
                self.rows.extend_from_slice(key);
                WHOLE
            }
            (KeyFormat::Digest, KeyRef::Digested { digest, bytes }) if self.format.admits(bytes.len()) => {
                self.rows.extend_from_slice(&digest);
                self.lengths.push(bytes.len() as u16);
                self.text.extend_from_slice(bytes);
                DIGESTED
            }
            (KeyFormat::Digest, KeyRef::Digest(digest)) => {
                self.rows.extend_from_slice(&digest);
                DIGEST
            }
            (KeyFormat::Code(_), KeyRef::Name(bytes)) if self.format.admits(bytes.len()) => {
                self.lengths.push(bytes.len() as u16);
                self.text.extend_from_slice(bytes);
                DIGESTED
            }
            (format, key) => panic!("{key:?} among {format}"),
        };
        self.flags.push(kind | bits(flags));
    }

    /// Returns all keys with their flags, in order.
    pub fn iter(&self) -> impl Iterator<Item = (KeyRef<'_>, KeyFlags)> + '_ {
        let mut lengths = self.lengths.iter();
        let mut text = self.text.as_slice();
        let mut rows = self.rows.chunks_exact(self.format.slot_bytes());
        let named = matches!(self.format, KeyFormat::Code(_));
        self.flags.iter().map(move |&flags| {
            let mut in_full = || {
                let length = *lengths.next().expect("one length a key in full");
                let (bytes, rest) = text.split_at(length.into());
                text = rest;
                bytes
            };
            let mut row = || rows.next().expect("one row a key");
            let key = match flags & KIND {
                WHOLE => KeyRef::Whole(row()),
                _ if named => KeyRef::Name(in_full()),
                kind => {
                    let digest = row().try_into().expect("digests have 16 bytes");
                    if kind == DIGEST { KeyRef::Digest(digest) } else { KeyRef::Digested { digest, bytes: in_full() } }
                }
            };
            (key, key_flags(flags))
        })
    }

    pub(crate) fn clear(&mut self) {
        self.flags.clear();
        self.rows.clear();
        self.lengths.clear();
        self.text.clear();
    }

    /// Fails for keys that were just read and that [`Keys::push`] cannot have collected.
    #[cfg(feature = "serde")]
    pub(crate) fn check(&self, config: &Config) -> Result<(), ucl_data_plane::Inconsistent> {
        let kinds = match self.format {
            KeyFormat::Fixed(_) => [WHOLE, WHOLE],
            KeyFormat::Digest => [DIGESTED, DIGEST],
            KeyFormat::Code(_) => [DIGESTED, DIGESTED],
        };
        let row_bytes = if matches!(self.format, KeyFormat::Code(_)) { 0 } else { self.format.slot_bytes() };
        let known = |&flags: &u8| flags < 16 && kinds.contains(&(flags & KIND));
        let in_full = self.flags.iter().filter(|&flags| flags & KIND == DIGESTED).count();
        let text: usize = self.lengths.iter().map(|&length| usize::from(length)).sum();
        let sound = self.format == config.keys
            && self.flags.iter().all(known)
            && Some(self.rows.len()) == self.flags.len().checked_mul(row_bytes)
            && self.lengths.len() == in_full
            && self.text.len() == text;
        ucl_data_plane::ensure(sound, || "the keys that wait to be sent are not of this format".into())
    }

    /// Bytes collected.
    pub(crate) fn bytes(&self) -> usize {
        self.flags.len() + self.rows.len() + 2 * self.lengths.len() + self.text.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.flags.capacity() + self.rows.capacity() + 2 * self.lengths.capacity() + self.text.capacity()
    }

    pub(crate) fn write(&self, config: &Config, scratch: &mut Scratch, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        if self.is_empty() {
            return;
        }
        if let KeyFormat::Fixed(bytes) = self.format {
            block::write(&self.flags, 2, &mut scratch.words, out);
            write_rows(&self.rows, bytes.into(), scratch, out);
            return;
        }
        let digest_key = HashSeed::new(config.seed).digest_key();
        let mut digests = Vec::new();
        let mut flags = Vec::with_capacity(self.len());
        for (key, key_flags) in self.iter() {
            let (kind, sent) = match key {
                KeyRef::Digested { digest: d, bytes } if d == digest_key.digest(bytes) => (DIGESTED, None),
                KeyRef::Digested { digest, .. } => (FOREIGN, Some(digest)),
                KeyRef::Digest(digest) => (DIGEST, Some(digest)),
                KeyRef::Name(_) => (DIGESTED, None),
                KeyRef::Whole(_) => unreachable!("push lets none in"),
            };
            flags.push(kind | bits(key_flags));
            digests.extend(sent.into_iter().flatten());
        }
        block::write(&flags, 4, &mut scratch.words, out);
        values::write(self.lengths.iter().map(|&length| length.into()), scratch, out);
        text::write(&self.text, scratch, out);
        // Digests are as random as bytes get: as they are.
        out.extend_from_slice(&digests);
    }

    pub(crate) fn read(reader: &mut Reader<'_>, config: &Config, version: u8) -> Result<Self, WireError> {
        let mut keys = Self::new(config.keys);
        let n = read_count(reader, "keys", config.keys.slot_bytes())?;
        if n == 0 {
            return Ok(keys);
        }
        if let KeyFormat::Fixed(bytes) = config.keys {
            keys.flags = block::read(reader, n, 2, "key flags")?;
            keys.rows = read_rows(reader, n, bytes.into(), "keys")?;
            return Ok(keys);
        }
        let flags = block::read(reader, n, 4, "key flags")?;
        let in_full = flags.iter().filter(|&&f| matches!(f & KIND, DIGESTED | FOREIGN)).count();
        let lengths = values::read(reader, in_full, "key lengths")?;
        let mut total = 0;
        for &length in &lengths {
            if length > MAX_KEY_BYTES as u64 {
                return Err(WireError::TooLarge { what: "key length", value: length, most: MAX_KEY_BYTES as u64 });
            }
            total += length as usize;
        }
        if total > MAX_COLLECTED {
            let value = total as u64;
            let most = MAX_COLLECTED as u64;
            return Err(WireError::TooLarge { what: "bytes of long keys", value, most });
        }
        let text = match version {
            ..=4 => block::read(reader, total, 8, "long keys")?,
            _ => text::read(reader, total, "long keys")?,
        };

        let digest_key = HashSeed::new(config.seed).digest_key();
        let mut lengths = lengths.into_iter();
        let mut text = text.as_slice();
        for flags in flags {
            let key_flags = key_flags(flags);
            let mut next = || {
                // As many lengths as keys in full, and as much text as the lengths say: both were
                // counted above.
                let (bytes, rest) = text.split_at(lengths.next().unwrap_or_default() as usize);
                text = rest;
                bytes
            };
            match flags & KIND {
                DIGESTED if matches!(config.keys, KeyFormat::Code(_)) => keys.push(KeyRef::Name(next()), key_flags),
                _ if matches!(config.keys, KeyFormat::Code(_)) => {
                    return Err(WireError::Corrupt { what: "key flags" });
                }
                DIGESTED => {
                    let bytes = next();
                    keys.push(KeyRef::Digested { digest: digest_key.digest(bytes), bytes }, key_flags);
                }
                FOREIGN => {
                    let digest = reader.array("digest")?;
                    keys.push(KeyRef::Digested { digest, bytes: next() }, key_flags);
                }
                DIGEST => keys.push(KeyRef::Digest(reader.array("digest")?), key_flags),
                _ => return Err(WireError::Corrupt { what: "key flags" }),
            }
        }
        Ok(keys)
    }
}
