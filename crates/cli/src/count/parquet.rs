//! The smallest Parquet file that every reader understands: one row group, plain encoding, no
//! compression.
//!
//! By hand, because five required columns need none of what a Parquet library is for, and the
//! official crate adds more than a dozen packages and 40 seconds of compilation. The layout
//! (parquet-format 2.10):
//!
//! ```text
//! PAR1 | per column: (page header, values)… | footer | length of the footer | PAR1
//! ```
//!
//! Headers and footer are Thrift structs in the compact protocol: a field is a byte
//! `(id - last id) << 4 | type` and its value; numbers are zigzag varints; a struct ends with a
//! zero byte.

use std::io::{self, Write};

use super::export::Record;

/// A page is closed once it has this many bytes.
const PAGE_BYTES: usize = 1 << 20;

const MAGIC: &[u8] = b"PAR1";
const CREATED_BY: &str = "ucl";

// The format's numbers.
const DATA_PAGE: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const UNCOMPRESSED: i64 = 0;
const REQUIRED: i64 = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Physical {
    Int64 = 2,
    ByteArray = 6,
}

/// Meaning of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Count,
    Text,
    /// Bytes without a logical type, for keys that are not all valid UTF-8.
    Bytes,
}

impl Meaning {
    fn physical(self) -> Physical {
        match self {
            Meaning::Count => Physical::Int64,
            Meaning::Text | Meaning::Bytes => Physical::ByteArray,
        }
    }
}

/// One column: its name, type, and how a record's value is written.
struct Column {
    name: &'static str,
    meaning: Meaning,
    write: fn(&Record, &mut Vec<u8>),
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    // Keys have at most 65,535 bytes.
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// The columns. The keys are a column of text only if all of them are: readers refuse text that is
/// not valid UTF-8.
fn columns(records: &[Record]) -> [Column; 5] {
    let text = records.iter().all(|record| std::str::from_utf8(&record.key.0).is_ok());
    let key = if text { Meaning::Text } else { Meaning::Bytes };
    [
        Column { name: "key", meaning: key, write: |r, out| put_bytes(&r.key.0, out) },
        Column { name: "estimate", meaning: Meaning::Count, write: |r, out| out.extend(r.estimate.to_le_bytes()) },
        Column { name: "lower", meaning: Meaning::Count, write: |r, out| out.extend(r.lower.to_le_bytes()) },
        Column { name: "upper", meaning: Meaning::Count, write: |r, out| out.extend(r.upper.to_le_bytes()) },
        Column { name: "source", meaning: Meaning::Text, write: |r, out| put_bytes(r.source.as_bytes(), out) },
    ]
}

/// Place of a column in the file.
struct Chunk {
    offset: usize,
    bytes: usize,
}

/// Writes the records as one Parquet file.
pub fn write(records: Vec<Record>, out: &mut dyn Write) -> io::Result<()> {
    let columns = columns(&records);
    out.write_all(MAGIC)?;
    let mut offset = MAGIC.len();
    let mut chunks = Vec::new();
    for column in &columns {
        let bytes = write_pages(column, &records, out)?;
        chunks.push(Chunk { offset, bytes });
        offset += bytes;
    }
    let footer = footer(records.len(), &columns, &chunks);
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)
}

fn write_pages(column: &Column, records: &[Record], out: &mut dyn Write) -> io::Result<usize> {
    let mut written = 0;
    let mut page = Vec::new();
    let mut values = 0;
    for (i, record) in records.iter().enumerate() {
        (column.write)(record, &mut page);
        values += 1;
        if page.len() >= PAGE_BYTES || i + 1 == records.len() {
            let header = page_header(values, page.len());
            out.write_all(&header)?;
            out.write_all(&page)?;
            written += header.len() + page.len();
            page.clear();
            values = 0;
        }
    }
    Ok(written)
}

fn page_header(values: usize, bytes: usize) -> Vec<u8> {
    let mut header = Thrift::default();
    header.i32(1, DATA_PAGE);
    header.i32(2, bytes as i64);
    header.i32(3, bytes as i64);
    header.structure(5, |page| {
        page.i32(1, values as i64);
        page.i32(2, PLAIN);
        page.i32(3, RLE);
        page.i32(4, RLE);
    });
    header.end()
}

fn footer(rows: usize, columns: &[Column], chunks: &[Chunk]) -> Vec<u8> {
    let mut file = Thrift::default();
    file.i32(1, 1);
    file.structures(2, columns.len() + 1, |i, element| match i.checked_sub(1) {
        None => {
            element.text(4, "counts");
            element.i32(5, columns.len() as i64);
        }
        Some(i) => schema_element(&columns[i], element),
    });
    file.i64(3, rows as i64);
    // Readers are told to expect no row group without rows.
    file.structures(4, usize::from(rows > 0), |_, group| {
        group.structures(1, chunks.len(), |i, chunk| {
            chunk.i64(2, chunks[i].offset as i64);
            chunk.structure(3, |meta| {
                meta.i32(1, columns[i].meaning.physical() as i64);
                meta.i32_list(2, &[PLAIN, RLE]);
                meta.text_list(3, &[columns[i].name]);
                meta.i32(4, UNCOMPRESSED);
                meta.i64(5, rows as i64);
                meta.i64(6, chunks[i].bytes as i64);
                meta.i64(7, chunks[i].bytes as i64);
                meta.i64(9, chunks[i].offset as i64);
            });
        });
        group.i64(2, chunks.iter().map(|chunk| chunk.bytes as i64).sum());
        group.i64(3, rows as i64);
    });
    file.text(6, CREATED_BY);
    file.end()
}

fn schema_element(column: &Column, element: &mut Thrift) {
    const UTF8: i64 = 0;
    const UINT_64: i64 = 14;
    element.i32(1, column.meaning.physical() as i64);
    element.i32(3, REQUIRED);
    element.text(4, column.name);
    // The old annotation for old readers, then the new one.
    match column.meaning {
        Meaning::Bytes => (),
        Meaning::Text => {
            element.i32(6, UTF8);
            element.structure(10, |logical| logical.structure(1, |_string| ()));
        }
        Meaning::Count => {
            element.i32(6, UINT_64);
            element.structure(10, |logical| {
                logical.structure(10, |integer| {
                    integer.i8(1, 64);
                    integer.falsehood(2);
                });
            });
        }
    }
}

/// A Thrift struct in the making, in the compact protocol.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last_id: u8,
}

impl Thrift {
    const FALSE: u8 = 2;
    const I8: u8 = 3;
    const I32: u8 = 5;
    const I64: u8 = 6;
    const BINARY: u8 = 8;
    const LIST: u8 = 9;
    const STRUCT: u8 = 12;

    /// All our ids rise by less than 16, so the short form always does.
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last_id) << 4 | kind);
        self.last_id = id;
    }

    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn zigzag(&mut self, n: i64) {
        self.varint((n << 1 ^ n >> 63) as u64);
    }

    fn i8(&mut self, id: u8, n: u8) {
        self.field(id, Self::I8);
        self.bytes.push(n);
    }

    fn falsehood(&mut self, id: u8) {
        self.field(id, Self::FALSE);
    }

    fn i32(&mut self, id: u8, n: i64) {
        self.field(id, Self::I32);
        self.zigzag(n);
    }

    fn i64(&mut self, id: u8, n: i64) {
        self.field(id, Self::I64);
        self.zigzag(n);
    }

    fn binary(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn text(&mut self, id: u8, text: &str) {
        self.field(id, Self::BINARY);
        self.binary(text);
    }

    /// All our lists are shorter than 15, so the short form always does.
    fn list(&mut self, id: u8, kind: u8, len: usize) {
        debug_assert!(len < 15);
        self.field(id, Self::LIST);
        self.bytes.push((len as u8) << 4 | kind);
    }

    fn i32_list(&mut self, id: u8, numbers: &[i64]) {
        self.list(id, Self::I32, numbers.len());
        numbers.iter().for_each(|&n| self.zigzag(n));
    }

    fn text_list(&mut self, id: u8, texts: &[&str]) {
        self.list(id, Self::BINARY, texts.len());
        texts.iter().for_each(|text| self.binary(text));
    }

    fn structure(&mut self, id: u8, fill: impl FnOnce(&mut Thrift)) {
        self.field(id, Self::STRUCT);
        self.nested(fill);
    }

    fn structures(&mut self, id: u8, len: usize, fill: impl Fn(usize, &mut Thrift)) {
        self.list(id, Self::STRUCT, len);
        (0..len).for_each(|i| self.nested(|inner| fill(i, inner)));
    }

    fn nested(&mut self, fill: impl FnOnce(&mut Thrift)) {
        let mut inner = Thrift::default();
        fill(&mut inner);
        self.bytes.extend(inner.end());
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyData;

    fn record(key: impl AsRef<[u8]>, estimate: u64) -> Record {
        let key = KeyData(key.as_ref().to_vec());
        Record { key, estimate, lower: estimate / 2, upper: u64::MAX - estimate, source: "decoded" }
    }

    fn written(records: Vec<Record>) -> Vec<u8> {
        let mut out = Vec::new();
        write(records, &mut out).unwrap();
        out
    }

    /// What the bytes mean was checked with another reader: see the script beside the golden file.
    #[test]
    fn the_file_is_the_one_that_other_readers_understood() {
        let golden = include_bytes!("../../tests/golden/two_rows.parquet");
        assert_eq!(written(vec![record("grün", 1 << 63), record("", 0)]), golden);
        let golden = include_bytes!("../../tests/golden/two_rows_of_bytes.parquet");
        assert_eq!(written(vec![record("grün", 1 << 63), record(b"\xff\0", 0)]), golden);
    }

    #[test]
    fn long_columns_have_several_pages() {
        let key = "x".repeat(60_000);
        let records: Vec<Record> = (0..40).map(|i| record(&key, i)).collect();
        let file = written(records);
        let header = page_header(18, 18 * 60_004);
        assert_eq!(file.windows(header.len()).filter(|bytes| *bytes == header).count(), 2, "1 MB holds 18 keys");
    }

    #[test]
    fn numbers_are_zigzag_varints() {
        let mut thrift = Thrift::default();
        [0, -1, 1, 64, -300].into_iter().for_each(|n| thrift.zigzag(n));
        assert_eq!(thrift.bytes, [0, 1, 2, 0x80, 1, 0xd7, 4]);
    }
}
