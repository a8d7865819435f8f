//! Recognition of a file's content by its first bytes, so that a capture, an archive or a saved
//! state is never counted as lines of text.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::format::Format;
use crate::open;

/// Kind of content that is neither text nor a table, recognised by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Compressed with xz, inside another compression.
    Xz,
    /// Compressed with bzip2, inside another compression.
    Bzip2,
    /// Compressed with LZ4, as a frame or in the legacy format.
    Lz4,
    /// Compressed with lzip.
    Lzip,
    /// A zip archive. Spreadsheets are zip archives too.
    Zip,
    /// A 7z archive.
    SevenZip,
    /// A Parquet file.
    Parquet,
    /// An Avro file.
    Avro,
    /// An Arrow IPC file.
    Arrow,
    /// A SQLite database.
    Sqlite,
    /// A packet capture, pcap or pcapng.
    Capture,
    /// A saved sketch.
    State,
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Content::Xz => "compressed with xz",
            Content::Bzip2 => "compressed with bzip2",
            Content::Lz4 => "compressed with lz4",
            Content::Lzip => "compressed with lzip",
            Content::Zip => "a zip archive",
            Content::SevenZip => "a 7z archive",
            Content::Parquet => "a Parquet file",
            Content::Avro => "an Avro file",
            Content::Arrow => "an Arrow file",
            Content::Sqlite => "a SQLite database",
            Content::Capture => "a packet capture",
            Content::State => "a saved sketch state",
        })
    }
}

impl Content {
    /// Returns true if a reader of this format can read this content.
    pub fn suits(self, format: &Format) -> bool {
        match self {
            Content::Capture => matches!(format, Format::Pcap(_)),
            Content::Parquet => cfg!(feature = "parquet") && matches!(format, Format::Parquet(_)),
            _ => false,
        }
    }
}

/// Bytes that must be found at these offsets.
pub(crate) type Signature = &'static [(usize, &'static [u8])];

/// None is longer than [`LONGEST`], and each has a byte that no text has, or is as long as no text
/// would have it by chance.
const SIGNATURES: &[(Content, Signature)] = &[
    (Content::Xz, &[(0, b"\xfd7zXZ\0")]),
    // A block, or the end of a stream without one.
    (Content::Bzip2, &[(0, b"BZh"), (4, b"1AY&SY")]),
    (Content::Bzip2, &[(0, b"BZh"), (4, b"\x17\x72\x45\x38\x50\x90")]),
    (Content::Lz4, &[(0, b"\x04\x22\x4d\x18")]),
    (Content::Lz4, &[(0, b"\x02\x21\x4c\x18")]),
    (Content::Lzip, &[(0, b"LZIP\x01")]),
    (Content::Zip, &[(0, b"PK\x03\x04")]),
    (Content::Zip, &[(0, b"PK\x05\x06")]),
    (Content::SevenZip, &[(0, b"7z\xbc\xaf\x27\x1c")]),
    // The mark alone could be text. The first field of what follows, a page header or the metadata,
    // is always a 32-bit number.
    (Content::Parquet, &[(0, b"PAR1\x15")]),
    (Content::Avro, &[(0, b"Obj\x01")]),
    (Content::Arrow, &[(0, b"ARROW1\0\0")]),
    (Content::Sqlite, &[(0, b"SQLite format 3\0")]),
    (Content::Capture, &[(0, b"\xa1\xb2\xc3\xd4")]),
    (Content::Capture, &[(0, b"\xd4\xc3\xb2\xa1")]),
    (Content::Capture, &[(0, b"\xa1\xb2\x3c\x4d")]),
    (Content::Capture, &[(0, b"\x4d\x3c\xb2\xa1")]),
    (Content::Capture, &[(0, b"\xa1\xb2\xcd\x34")]),
    (Content::Capture, &[(0, b"\x34\xcd\xb2\xa1")]),
    (Content::Capture, &[(0, b"\n\r\r\n"), (8, b"\x1a\x2b\x3c\x4d")]),
    (Content::Capture, &[(0, b"\n\r\r\n"), (8, b"\x4d\x3c\x2b\x1a")]),
    (Content::State, &[(0, b"\x89UCL\r\n\x1a\n")]),
];

/// Bytes that decide about every signature.
const LONGEST: usize = 16;

/// Result of looking at the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look<T> {
    /// The content is of this kind.
    Is(T),
    /// The content has none of the signatures.
    Other,
    /// More bytes could still make one of them.
    NeedMore,
}

/// Compares the first bytes with signatures.
pub(crate) fn look<T: Copy>(signatures: &[(T, Signature)], start: &[u8]) -> Look<T> {
    let mut result = Look::Other;
    for &(what, pieces) in signatures {
        let known = |&(at, bytes): &(usize, &[u8])| {
            let there = start.get(at..).unwrap_or_default();
            (there.starts_with(bytes), bytes.starts_with(&there[..there.len().min(bytes.len())]))
        };
        if pieces.iter().all(|piece| known(piece).0) {
            return Look::Is(what);
        }
        if pieces.iter().all(|piece| known(piece).0 || known(piece).1) {
            result = Look::NeedMore;
        }
    }
    result
}

/// Returns the kind of content of plain bytes.
pub(crate) fn look_at(start: &[u8]) -> Look<Content> {
    look(SIGNATURES, start)
}

/// Recognises the content of a file by its first bytes, after unpacking gzip, zstd, xz or bzip2.
/// Returns `None` for text and for anything unknown.
///
/// # Errors
/// When the file cannot be opened or read. Damaged compressed data is no error here: reading it
/// will tell more.
///
/// ```
/// use ucl_streams::{Content, content_of};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.zip");
/// std::fs::write(&path, b"PK\x03\x04 and so on")?;
/// assert_eq!(content_of(&path)?, Some(Content::Zip));
/// std::fs::write(&path, "just text\n")?;
/// assert_eq!(content_of(&path)?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn content_of(path: &Path) -> io::Result<Option<Content>> {
    let mut opened = open::unpack(File::open(path)?, None, false)?;
    let mut head = [0; LONGEST];
    let mut filled = 0;
    loop {
        match look_at(&head[..filled]) {
            Look::Is(content) => return Ok(Some(content)),
            Look::Other => return Ok(None),
            Look::NeedMore => {}
        }
        match opened.plain.read(&mut head[filled..]) {
            Ok(0) | Err(_) => return Ok(None),
            Ok(n) => filled += n,
        }
    }
}

/// Reads the first bytes of a file, up to `most` of them, after unpacking gzip, zstd, xz or bzip2.
///
/// # Errors
/// When the file cannot be opened or read. Of damaged compressed data, there is what came before.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("table.csv");
/// std::fs::write(&path, "name,amount\na,1\n")?;
/// assert_eq!(ucl_streams::head_of(&path, 11)?, b"name,amount");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn head_of(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let opened = open::unpack(File::open(path)?, None, false)?;
    let mut head = Vec::new();
    match opened.plain.take(most).read_to_end(&mut head) {
        Err(error) if opened.stored.failed.get() => Err(error),
        _ => Ok(head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_recognised_and_only_when_it_is_whole() {
        for &(content, pieces) in SIGNATURES {
            let mut bytes = [b'.'; LONGEST];
            let end = pieces.iter().map(|(at, piece)| at + piece.len()).max().unwrap();
            for (at, piece) in pieces {
                bytes[*at..at + piece.len()].copy_from_slice(piece);
            }
            assert_eq!(look_at(&bytes), Look::Is(content));
            for short in 0..end {
                assert_eq!(look_at(&bytes[..short]), Look::NeedMore, "{content} in {short} bytes");
            }
            bytes[end - 1] ^= 0x80;
            assert_eq!(look_at(&bytes), Look::Other, "{content}");
        }
    }
}
