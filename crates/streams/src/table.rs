//! Tables as Parquet files of the smallest kind that every reader understands: required columns,
//! plain encoding, no compression. Rows come one by one, so that a table of any length takes the
//! memory of one row group.
//!
//! By hand, because this needs none of what a Parquet library is for, and the official crate adds
//! more than a dozen packages and 40 seconds of compilation. The layout (parquet-format 2.10):
//!
//! ```text
//! PAR1 | per row group, per column: (page header, values)… | footer | length of the footer | PAR1
//! ```
//!
//! Headers and footer are Thrift structs in the compact protocol: a field is a byte
//! `(id - last id) << 4 | type` and its value; numbers are zigzag varints; a struct ends with a
//! zero byte.
//!
//! ```
//! use ucl_streams::table::{Column, Kind, Table, Value};
//!
//! let columns = [Column { name: "key", kind: Kind::Text }, Column { name: "count", kind: Kind::Count }];
//! let mut table = Table::new(Vec::new(), &columns)?;
//! table.row(&[Value::Bytes(b"tea"), Value::Number(7)])?;
//! let file = table.finish()?;
//! assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, Write};

/// A page is closed once it has this many bytes.
const PAGE_BYTES: usize = 1 << 20;
/// A row group is closed once it has this many bytes.
const GROUP_BYTES: usize = 16 << 20;

const MAGIC: &[u8] = b"PAR1";
const CREATED_BY: &str = "ucl";

// The format's numbers.
const DATA_PAGE: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const UNCOMPRESSED: i64 = 0;
const REQUIRED: i64 = 0;

/// Meaning of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Numbers without a sign.
    Count,
    /// Text in UTF-8. Readers refuse what is not: such a column has [`Kind::Bytes`].
    Text,
    /// Bytes without a meaning.
    Bytes,
    /// Moments in milliseconds since 1970, UTC; [`Value::Number`] has the bits of an `i64`.
    Moment,
}

/// Name and kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Meaning of the values of the column.
    pub kind: Kind,
}

/// The value of a row in one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// For [`Kind::Count`] and [`Kind::Moment`].
    Number(u64),
    /// For [`Kind::Text`] and [`Kind::Bytes`].
    Bytes(&'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Physical {
    Int64 = 2,
    ByteArray = 6,
}

impl Kind {
    fn physical(self) -> Physical {
        match self {
            Self::Count | Self::Moment => Physical::Int64,
            Self::Text | Self::Bytes => Physical::ByteArray,
        }
    }
}

/// A table that is being written.
#[derive(Debug)]
pub struct Table<W> {
    out: W,
    columns: Vec<Column>,
    offset: usize,
    /// The rows that are not written yet, by column.
    open: Vec<Pages>,
    open_rows: usize,
    groups: Vec<Group>,
}

/// Values of a column: closed pages with their headers, and one that is open.
#[derive(Debug, Default)]
struct Pages {
    closed: Vec<u8>,
    open: Vec<u8>,
    values: usize,
}

impl Pages {
    fn put(&mut self, value: Value<'_>) {
        match value {
            Value::Number(number) => self.open.extend(number.to_le_bytes()),
            Value::Bytes(bytes) => {
                self.open.extend((bytes.len() as u32).to_le_bytes());
                self.open.extend(bytes);
            }
        }
        self.values += 1;
        if self.open.len() >= PAGE_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.values > 0 {
            self.closed.extend(page_header(self.values, self.open.len()));
            self.closed.append(&mut self.open);
            self.values = 0;
        }
    }

    fn bytes(&self) -> usize {
        self.closed.len() + self.open.len()
    }
}

#[derive(Debug)]
struct Group {
    rows: usize,
    chunks: Vec<Chunk>,
}

/// Place of a column of a row group in the file.
#[derive(Debug)]
struct Chunk {
    offset: usize,
    bytes: usize,
}

impl<W: Write> Table<W> {
    /// Starts a table of up to fourteen columns.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(mut out: W, columns: &[Column]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let open = columns.iter().map(|_| Pages::default()).collect();
        Ok(Self { out, columns: columns.to_vec(), offset: MAGIC.len(), open, open_rows: 0, groups: Vec::new() })
    }

    /// Adds a row, with a value for each column.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If the values are not those of the columns: a defect of the caller.
    pub fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        assert_eq!(values.len(), self.columns.len(), "a value for each column");
        for ((value, column), pages) in values.iter().zip(&self.columns).zip(&mut self.open) {
            let fits = matches!(value, Value::Number(_)) == (column.kind.physical() == Physical::Int64);
            assert!(fits, "the value of column {} is of another kind", column.name);
            pages.put(*value);
        }
        self.open_rows += 1;
        if self.open.iter().map(Pages::bytes).sum::<usize>() >= GROUP_BYTES {
            self.close_group()?;
        }
        Ok(())
    }

    fn close_group(&mut self) -> io::Result<()> {
        // Readers are told to expect no row group without rows.
        if self.open_rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        for pages in &mut self.open {
            pages.close();
            let Pages { closed, .. } = std::mem::take(pages);
            self.out.write_all(&closed)?;
            chunks.push(Chunk { offset: self.offset, bytes: closed.len() });
            self.offset += closed.len();
        }
        self.groups.push(Group { rows: std::mem::take(&mut self.open_rows), chunks });
        Ok(())
    }

    /// Writes what is left, and returns the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.close_group()?;
        let footer = footer(&self.columns, &self.groups);
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        Ok(self.out)
    }

    /// Returns the output, for a caller that takes from it what is written so far.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }
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

fn footer(columns: &[Column], groups: &[Group]) -> Vec<u8> {
    let mut file = Thrift::default();
    file.i32(1, 1);
    file.structures(2, columns.len() + 1, |i, element| match i.checked_sub(1) {
        None => {
            element.text(4, "counts");
            element.i32(5, columns.len() as i64);
        }
        Some(i) => schema_element(&columns[i], element),
    });
    file.i64(3, groups.iter().map(|group| group.rows as i64).sum());
    file.structures(4, groups.len(), |i, out| {
        let Group { rows, chunks } = &groups[i];
        out.structures(1, chunks.len(), |i, chunk| {
            chunk.i64(2, chunks[i].offset as i64);
            chunk.structure(3, |meta| {
                meta.i32(1, columns[i].kind.physical() as i64);
                meta.i32_list(2, &[PLAIN, RLE]);
                meta.text_list(3, &[columns[i].name]);
                meta.i32(4, UNCOMPRESSED);
                meta.i64(5, *rows as i64);
                meta.i64(6, chunks[i].bytes as i64);
                meta.i64(7, chunks[i].bytes as i64);
                meta.i64(9, chunks[i].offset as i64);
            });
        });
        out.i64(2, chunks.iter().map(|chunk| chunk.bytes as i64).sum());
        out.i64(3, *rows as i64);
    });
    file.text(6, CREATED_BY);
    file.end()
}

fn schema_element(column: &Column, element: &mut Thrift) {
    const UTF8: i64 = 0;
    const TIMESTAMP_MILLIS: i64 = 9;
    const UINT_64: i64 = 14;
    element.i32(1, column.kind.physical() as i64);
    element.i32(3, REQUIRED);
    element.text(4, column.name);
    // The old annotation for old readers, then the new one.
    match column.kind {
        Kind::Bytes => (),
        Kind::Text => {
            element.i32(6, UTF8);
            element.structure(10, |logical| logical.structure(1, |_string| ()));
        }
        Kind::Count => {
            element.i32(6, UINT_64);
            element.structure(10, |logical| {
                logical.structure(10, |integer| {
                    integer.i8(1, 64);
                    integer.boolean(2, false);
                });
            });
        }
        Kind::Moment => {
            element.i32(6, TIMESTAMP_MILLIS);
            element.structure(10, |logical| {
                logical.structure(8, |timestamp| {
                    timestamp.boolean(1, true);
                    timestamp.structure(2, |unit| unit.structure(1, |_milliseconds| ()));
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
    const TRUE: u8 = 1;
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

    fn boolean(&mut self, id: u8, value: bool) {
        self.field(id, if value { Self::TRUE } else { Self::FALSE });
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

    fn list(&mut self, id: u8, kind: u8, len: usize) {
        const LONG: usize = 15;
        self.field(id, Self::LIST);
        self.bytes.push((len.min(LONG) as u8) << 4 | kind);
        if len >= LONG {
            self.varint(len as u64);
        }
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

    fn table(kind: Kind) -> Table<Vec<u8>> {
        let column = |name, kind| Column { name, kind };
        let [estimate, lower, upper] = ["estimate", "lower", "upper"].map(|name| column(name, Kind::Count));
        let columns = [column("key", kind), estimate, lower, upper, column("source", Kind::Text)];
        Table::new(Vec::new(), &columns).unwrap()
    }

    fn written(kind: Kind, rows: &[(&[u8], u64)]) -> Vec<u8> {
        let mut table = table(kind);
        for &(key, estimate) in rows {
            let [estimate, lower, upper] = [estimate, estimate / 2, u64::MAX - estimate].map(Value::Number);
            table.row(&[Value::Bytes(key), estimate, lower, upper, Value::Bytes(b"decoded")]).unwrap();
        }
        table.finish().unwrap()
    }

    /// What the bytes mean was checked with another reader: see the script beside the golden file.
    #[test]
    fn the_file_is_the_one_that_other_readers_understood() {
        let golden = include_bytes!("../tests/golden/two_rows.parquet");
        assert_eq!(written(Kind::Text, &[("grün".as_bytes(), 1 << 63), (b"", 0)]), golden);
        let golden = include_bytes!("../tests/golden/two_rows_of_bytes.parquet");
        assert_eq!(written(Kind::Bytes, &[("grün".as_bytes(), 1 << 63), (b"\xff\0", 0)]), golden);
    }

    #[test]
    fn long_columns_have_several_pages_and_long_tables_several_groups() {
        let key = "x".repeat(60_000);
        let rows: Vec<(&[u8], u64)> = (0..40).map(|i| (key.as_bytes(), i)).collect();
        let file = written(Kind::Text, &rows);
        let header = page_header(18, 18 * 60_004);
        assert_eq!(file.windows(header.len()).filter(|bytes| *bytes == header).count(), 2, "1 MB holds 18 keys");
        let mut long = table(Kind::Text);
        let mut held = 0;
        for i in 0..1_000u64 {
            let number = Value::Number(i);
            long.row(&[Value::Bytes(key.as_bytes()), number, number, number, Value::Bytes(b"")]).unwrap();
            held = held.max(long.open.iter().map(Pages::bytes).sum());
        }
        assert!(held < GROUP_BYTES && long.groups.len() == 3, "{held} bytes were held, {} groups", long.groups.len());
    }

    #[test]
    fn numbers_are_zigzag_varints_and_lists_may_be_long() {
        let mut thrift = Thrift::default();
        [0, -1, 1, 64, -300].into_iter().for_each(|n| thrift.zigzag(n));
        assert_eq!(thrift.bytes, [0, 1, 2, 0x80, 1, 0xd7, 4]);
        let mut list = Thrift::default();
        list.structures(1, 15, |_, _| ());
        assert_eq!(list.bytes[..3], [0x19, 0xfc, 15]);
    }
}
