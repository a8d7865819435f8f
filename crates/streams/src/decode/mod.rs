//! From bytes to keys: one decoder a format, all of the same shape.
//!
//! Decoders are *pushed* bytes and keep whatever state they need between two windows. None of them
//! reads by itself, so none can block, and how the input was cut into windows cannot be seen in the
//! items (a property test holds them to it).

mod capture;
mod fimi;
mod jsonl;
mod lines;
mod packet;
mod records;
mod table;
mod weight;

use crate::collect::{Collector, Halt};
use crate::error::SpecError;
use crate::format::{Format, Weight};
use crate::options::ReadOptions;

/// Bytes not yet used up by the decoder.
#[derive(Clone, Copy)]
pub(crate) struct Window<'w> {
    pub bytes: &'w [u8],
    /// Where in the (decompressed) input they start.
    pub offset: u64,
    /// Whether nothing follows them.
    pub end: bool,
}

/// Turns windows into items.
pub(crate) trait Decode {
    /// Finds the items in the window and returns how many of its bytes are used up. What is left
    /// comes again, with more behind it. At the end of input everything counts as used up. A window
    /// of at least `MAX_RECORD_BYTES` must be used up in part.
    fn decode(&mut self, window: Window<'_>, out: &mut Collector<'_>) -> Result<usize, Halt>;
}

/// The decoder of a format.
pub(crate) fn for_options(options: &ReadOptions) -> Result<Box<dyn Decode>, SpecError> {
    let (format, weight) = (&options.format, options.weight.as_ref());
    if let Some(weight) = weight {
        format.check_weight(weight)?;
    }
    Ok(match format {
        Format::Lines => Box::new(lines::Lines::default()),
        Format::Field(key) => {
            let weight = if let Some(Weight::Field(n)) = weight { Some(*n) } else { None };
            Box::new(lines::Fields::new(*key, weight))
        }
        Format::Csv(key) | Format::Tsv(key) => {
            let delimiter = if matches!(format, Format::Csv(_)) { b',' } else { b'\t' };
            let weight = if let Some(Weight::Column(column)) = weight { Some(column.clone()) } else { None };
            Box::new(table::Table::new(delimiter, key.clone(), weight, options.header)?)
        }
        Format::Jsonl(key) => {
            let weight = if let Some(Weight::Pointer(pointer)) = weight { Some(pointer.clone()) } else { None };
            Box::new(jsonl::Jsonl::new(key.clone(), weight))
        }
        Format::Fimi => Box::new(fimi::Fimi::default()),
        Format::Records(width) => Box::new(records::Records::new(*width)),
        Format::Pcap(key) => Box::new(capture::Capture::new(*key, weight.is_some())),
    })
}
