//! `parquet:COLUMN`: tables of the Parquet format, in builds with the feature `parquet`.
//!
//! Only the wanted columns are read. A file is opened by its name, since its table of contents is
//! at the end: a pipe cannot be read. A page is held in memory whole, and a hostile file may have
//! pages of up to 2GB.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use crate::collect::{Collector, Halt};
use crate::composite::push_part;
use crate::decode::{column, weight};
use crate::error::{Place, ReadErrorKind};
use crate::format::{Column, Weight};

/// Returns the names of the columns of a Parquet file that can be a key: those without parts.
///
/// # Errors
/// When the file cannot be opened, or is not a Parquet file.
pub fn parquet_columns(path: &Path) -> io::Result<Vec<String>> {
    let file = File::open(path)?;
    let open = || SerializedFileReader::new(file).map(|reader| names(&reader));
    match catch_unwind(AssertUnwindSafe(open)) {
        Ok(names) => names.map_err(io::Error::other),
        Err(_) => Err(io::Error::other("the Parquet file is damaged")),
    }
}

fn names(reader: &SerializedFileReader<File>) -> Vec<String> {
    let columns = reader.metadata().file_metadata().schema().get_fields();
    columns.iter().filter(|column| is_plain(column)).map(|column| column.name().to_owned()).collect()
}

/// Returns true if a column has one value in each row.
fn is_plain(column: &Type) -> bool {
    let info = column.get_basic_info();
    column.is_primitive() && !(info.has_repetition() && info.repetition() == parquet::basic::Repetition::REPEATED)
}

/// Reads a file from disk.
pub(crate) fn read_file(
    path: &Path,
    keys: &[Column],
    weight: Option<&Weight>,
    out: &mut Collector<'_>,
) -> Result<(), Halt> {
    let input = out.input.clone();
    let file = File::open(path).map_err(|error| Halt::Failed(ReadErrorKind::Open { input: input.clone(), error }))?;
    out.summary.bytes_read += file.metadata().map_or(0, |meta| meta.len());
    let weight = column(weight);
    // The crate has asserts where a file is not as it should be.
    match catch_unwind(AssertUnwindSafe(|| read_rows(file, keys, weight.as_ref(), out))) {
        Ok(result) => result,
        Err(_) => {
            Err(Halt::Damaged(format!("{input}: the Parquet file is damaged, or has a type that is not supported")))
        }
    }
}

fn read_rows(file: File, keys: &[Column], weight: Option<&Column>, out: &mut Collector<'_>) -> Result<(), Halt> {
    let input = out.input.clone();
    let damaged = |error: ParquetError| Halt::Damaged(format!("{input}: the Parquet file is damaged: {error}"));
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema().clone();
    let places = Places::find(&schema, &names(&reader), keys, weight, &input)?;
    let projection = Type::group_type_builder(schema.name())
        .with_fields(places.columns.iter().map(|index| schema.get_fields()[*index].clone()).collect())
        .build()
        .map_err(damaged)?;
    let mut key = Vec::new();
    let mut number = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(damaged)?;
        for row in RowIter::from_row_group(Some(projection.clone()), &*group).map_err(damaged)? {
            number += 1;
            places.item(&row.map_err(damaged)?, number, &mut key, out)?;
        }
    }
    Ok(())
}

/// Places of key and weight in the rows that are read.
struct Places {
    /// The columns read, by their place in the file.
    columns: Vec<usize>,
    /// Places in `columns`.
    keys: Vec<usize>,
    weight: Option<usize>,
}

impl Places {
    fn find(
        schema: &Type,
        names: &[String],
        keys: &[Column],
        weight: Option<&Column>,
        input: &str,
    ) -> Result<Self, Halt> {
        let find = |column: &Column| {
            let name = match column {
                Column::Number(number) => names.get(number - 1),
                Column::Name(wanted) => names.iter().find(|name| *name == wanted),
            };
            let at = name.and_then(|name| schema.get_fields().iter().position(|field| field.name() == name));
            at.ok_or_else(|| {
                let input = input.to_owned();
                let column = column.to_string();
                Halt::Failed(ReadErrorKind::NoColumn { input, column, available: names.join(", ") })
            })
        };
        let key_columns = keys.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let weight_column = weight.map(find).transpose()?;
        let mut columns: Vec<usize> = key_columns.iter().copied().chain(weight_column).collect();
        columns.sort_unstable();
        columns.dedup();
        let place = |column: &usize| columns.iter().position(|other| other == column).unwrap_or(0);
        let keys = key_columns.iter().map(place).collect();
        Ok(Self { keys, weight: weight_column.as_ref().map(place), columns })
    }

    fn item(&self, row: &Row, number: u64, key: &mut Vec<u8>, out: &mut Collector<'_>) -> Result<(), Halt> {
        let place = Place::Row(number);
        let field = |at: usize| row.get_column_iter().nth(at).map_or(&Field::Null, |(_, field)| field);
        key.clear();
        for (index, at) in self.keys.iter().enumerate() {
            let written;
            let part = match field(*at) {
                Field::Null => {
                    out.summary.no_key += 1;
                    return Ok(());
                }
                Field::Str(text) => text.as_bytes(),
                Field::Bytes(bytes) => bytes.data(),
                other => {
                    written = other.to_string();
                    written.as_bytes()
                }
            };
            if self.keys.len() == 1 { key.extend_from_slice(part) } else { push_part(key, part, index == 0) }
        }
        let weight = match self.weight.map(field) {
            None => 1,
            Some(Field::Str(text)) => match weight(text.as_bytes(), place, out)? {
                Some(weight) => weight,
                None => return Ok(()),
            },
            Some(value) => match weight(value.to_string().as_bytes(), place, out)? {
                Some(weight) => weight,
                None => return Ok(()),
            },
        };
        out.key(key, weight, place)
    }
}
