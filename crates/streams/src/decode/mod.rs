//! Decoders from bytes to keys, one for each format, all with the same interface.
//!
//! Decoders are *pushed* bytes and keep whatever state they need between two windows. None of them
//! reads by itself, so none can block, and how the input was cut into windows cannot be seen in the
//! items (a property test holds them to it).

mod capture;
mod combined;
mod fimi;
mod jsonl;
mod lines;
mod matches;
mod packet;
mod records;
mod table;
mod weight;

use csv_core::ReaderBuilder;
#[cfg(feature = "parquet")]
pub(crate) use weight::weight;

use crate::collect::{Collector, Halt};
use crate::error::SpecError;
use crate::format::{Column, Format, Weight};
use crate::options::{Delimiter, ReadOptions};

/// Bytes not yet used up by the decoder.
#[derive(Clone, Copy)]
pub(crate) struct ReadWindow<'w> {
    pub bytes: &'w [u8],
    /// Offset of the bytes in the (decompressed) input.
    pub offset: u64,
    /// True if no bytes follow.
    pub end: bool,
}

/// Turns windows into items.
pub(crate) trait Decode {
    /// Finds the items in the window and returns how many of its bytes are used up. What is left
    /// comes again, with more behind it. At the end of input everything counts as used up. A window
    /// of at least `MAX_RECORD_BYTES` must be used up in part.
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt>;

    /// Returns true if a new decoder would find the same items in what comes after the bytes used
    /// up.
    fn can_start_here(&self) -> bool {
        false
    }
}

/// The decoder of a format.
pub(crate) fn for_options(options: &ReadOptions) -> Result<Box<dyn Decode>, SpecError> {
    let format = &options.format;
    let weight = options.weight.as_ref();
    if let Some(weight) = weight {
        format.check_weight(weight)?;
    }
    if options.delimiter.is_some() && !matches!(format, Format::Csv(_) | Format::Tsv(_) | Format::Field(_)) {
        return Err(SpecError::NoDelimiter { format: format.to_string() });
    }
    Ok(match format {
        Format::Lines => Box::new(lines::Lines::default()),
        Format::Field(keys) => {
            let weight = if let Some(Weight::Field(n)) = weight { Some(*n) } else { None };
            Box::new(lines::Fields::new(keys.clone(), weight, options.delimiter))
        }
        Format::Csv(keys) | Format::Tsv(keys) => {
            let usual = if matches!(format, Format::Csv(_)) { b',' } else { b'\t' };
            let delimiter = options.delimiter.map_or(usual, Delimiter::byte);
            let reader = ReaderBuilder::new().delimiter(delimiter).quoting(!options.literal_quotes).build();
            Box::new(table::Table::new(reader, keys.clone(), column(weight), options.header)?)
        }
        Format::Jsonl(keys) => {
            let weight = if let Some(Weight::Pointer(pointer)) = weight { Some(pointer.clone()) } else { None };
            Box::new(jsonl::Jsonl::new(keys.clone(), weight))
        }
        Format::Regex(pattern) => {
            let weight = if let Some(Weight::Group(group)) = weight { Some(group.clone()) } else { None };
            Box::new(matches::Matches::new(pattern.clone(), weight))
        }
        Format::Combined(fields) => Box::new(combined::Combined::new(fields.clone(), weight.is_some())),
        Format::Fimi => Box::new(fimi::Fimi::default()),
        Format::Records(width) => Box::new(records::Records::new(*width)),
        Format::Pcap(parts) => Box::new(capture::Capture::new(parts.clone(), weight.is_some())),
        Format::Parquet(_) if cfg!(feature = "parquet") => Box::new(NotAFile),
        Format::Parquet(_) => return Err(SpecError::NotBuiltIn { format: format.to_string() }),
    })
}

/// The column of a weight, if that is what it is.
pub(crate) fn column(weight: Option<&Weight>) -> Option<Column> {
    if let Some(Weight::Column(column)) = weight { Some(column.clone()) } else { None }
}

/// `parquet` in an input that is not a Parquet file on disk. Those are read elsewhere, since their
/// table of contents is at the end.
struct NotAFile;

impl Decode for NotAFile {
    fn decode(&mut self, _: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        Err(Halt::Damaged(format!("{} is not a Parquet file on disk", out.input)))
    }
}
