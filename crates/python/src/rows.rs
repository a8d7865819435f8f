//! The rows of an Arrow array as keys: one place where values become bytes.
//!
//! [`Rows::new`] checks a whole array before anything is counted, so that a column with a wrong
//! value changes nothing. After it, [`Rows::key`] cannot fail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use ucl_streams::MAX_KEY_BYTES;

use crate::error::Error;
use crate::key_type::{IntType, KeyType};

/// The keys of one array.
pub struct Rows<'a> {
    part: Part<'a>,
    nulls: Option<NullBuffer>,
    len: usize,
}

/// Something whose bytes at a row are the key, or part of one.
enum Part<'a> {
    /// All keys end to end.
    Flat { size: usize, bytes: &'a [u8] },
    /// Numbers of another type than the keys.
    Ints { number: Numbers<'a>, bytes: usize },
    /// Text or bytes.
    Spans(Box<dyn Fn(usize) -> &'a [u8] + Send + Sync + 'a>),
    /// Made from text.
    Made { ends: Vec<usize>, bytes: Vec<u8> },
    /// A row of a dictionary.
    Coded { codes: Vec<usize>, values: Box<Part<'a>> },
    /// Parts, and whether each has its length before it.
    Tuple(Vec<(Part<'a>, bool)>),
}

/// The number at a row.
type Numbers<'a> = Box<dyn Fn(usize) -> i128 + Send + Sync + 'a>;

/// What a column is counted as.
#[derive(Clone, Copy)]
pub struct Reading<'k> {
    /// The type of the column.
    pub from: &'k KeyType,
    /// The type of the sketch's keys.
    pub to: &'k KeyType,
    /// Whether zeros at the end are padding.
    pub padded: bool,
    /// Number of the array's first row, for messages.
    pub first: usize,
}

impl<'a> Rows<'a> {
    /// Reads an array as keys.
    ///
    /// # Errors
    /// If the types do not go together, or a value is no key of the type.
    pub fn new(array: &'a ArrayRef, reading: Reading<'_>) -> Result<Self, Error> {
        let (part, nulls) = part(array, reading)?;
        let rows = Self { part, nulls, len: array.len() };
        rows.check_lengths(reading)?;
        Ok(rows)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// The first row that is null.
    pub fn first_null(&self) -> Option<usize> {
        let nulls = self.nulls.as_ref().filter(|nulls| nulls.null_count() > 0)?;
        (0..nulls.len()).find(|&row| nulls.is_null(row))
    }

    /// The size of the keys and all of them end to end, if they lie like that and none is null.
    pub fn flat(&self) -> Option<(usize, &[u8])> {
        match self.part {
            Part::Flat { size, bytes } if self.first_null().is_none() => Some((size, bytes)),
            _ => None,
        }
    }

    /// The key of a row that is not null. `made` is where it is put together, if it must be.
    #[inline]
    pub fn key<'k>(&'k self, row: usize, made: &'k mut Vec<u8>) -> &'k [u8] {
        if let Some(key) = self.part.whole(row) {
            return key;
        }
        made.clear();
        self.part.put(row, made);
        made
    }

    fn check_lengths(&self, reading: Reading<'_>) -> Result<(), Error> {
        if reading.to.size().is_some_and(|size| size <= MAX_KEY_BYTES) {
            return Ok(());
        }
        let mut made = vec![];
        for row in (0..self.len).filter(|&row| !self.is_null(row)) {
            let bytes = self.key(row, &mut made).len();
            if bytes > MAX_KEY_BYTES {
                let row = reading.first + row;
                return Err(Error::Value(format!("row {row}: a key of {bytes} bytes is longer than {MAX_KEY_BYTES}")));
            }
        }
        Ok(())
    }
}

impl<'a> Part<'a> {
    /// The bytes at a row, where they lie somewhere as they are.
    #[inline]
    fn whole(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::Flat { size, bytes } => Some(&bytes[row * size..(row + 1) * size]),
            Self::Spans(span) => Some(span(row)),
            Self::Made { ends, bytes } => Some(&bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]]),
            Self::Coded { codes, values } => values.whole(codes[row]),
            Self::Ints { .. } | Self::Tuple(_) => None,
        }
    }

    fn put(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Ints { number, bytes } => out.extend_from_slice(&number(row).to_le_bytes()[..*bytes]),
            Self::Coded { codes, values } => values.put(codes[row], out),
            Self::Tuple(parts) => {
                for (part, with_length) in parts {
                    let start = out.len();
                    if *with_length {
                        out.extend_from_slice(&[0; 4]);
                    }
                    let from = out.len();
                    part.put(row, out);
                    if *with_length {
                        let length = (out.len() - from) as u32;
                        out[start..from].copy_from_slice(&length.to_le_bytes());
                    }
                }
            }
            other => out.extend_from_slice(other.whole(row).unwrap_or_default()),
        }
    }
}

/// The numbers of an array of whole numbers.
pub fn numbers(array: &ArrayRef) -> Result<Numbers<'_>, Error> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef) -> Numbers<'_>
    where
        i128: From<T::Native>,
    {
        let values: &[T::Native] = array.as_primitive::<T>().values();
        Box::new(|row| values[row].into())
    }
    Ok(match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array),
        DataType::Int16 => of::<Int16Type>(array),
        DataType::Int32 => of::<Int32Type>(array),
        DataType::Int64 => of::<Int64Type>(array),
        DataType::UInt8 => of::<UInt8Type>(array),
        DataType::UInt16 => of::<UInt16Type>(array),
        DataType::UInt32 => of::<UInt32Type>(array),
        DataType::UInt64 => of::<UInt64Type>(array),
        DataType::Boolean => {
            let values = array.as_boolean();
            Box::new(|row| values.value(row).into())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(Box::new(|_| 0));
            }
            let (codes, number) = (dictionary.normalized_keys(), numbers(dictionary.values())?);
            Box::new(move |row| number(codes[row]))
        }
        other => return Err(Error::Type(format!("whole numbers are needed, not {other}"))),
    })
}

/// The numbers as they lie in memory, if that is how keys of this type are encoded.
fn flat_numbers(array: &ArrayRef, to: IntType) -> Option<&[u8]> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef) -> &[u8] {
        array.as_primitive::<T>().values().inner().as_slice()
    }
    if cfg!(target_endian = "big") {
        return None;
    }
    Some(match (array.data_type(), to.signed, to.bytes) {
        (DataType::Int8, true, 1) => of::<Int8Type>(array),
        (DataType::Int16, true, 2) => of::<Int16Type>(array),
        (DataType::Int32, true, 4) => of::<Int32Type>(array),
        (DataType::Int64, true, 8) => of::<Int64Type>(array),
        (DataType::UInt8, false, 1) => of::<UInt8Type>(array),
        (DataType::UInt16, false, 2) => of::<UInt16Type>(array),
        (DataType::UInt32, false, 4) => of::<UInt32Type>(array),
        (DataType::UInt64, false, 8) => of::<UInt64Type>(array),
        _ => return None,
    })
}

/// Text and bytes of any Arrow type that has them.
fn spans<'a>(array: &'a ArrayRef, padded: bool) -> Option<Box<dyn Fn(usize) -> &'a [u8] + Send + Sync + 'a>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            Box::new(|row| values.value(row).as_bytes())
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            Box::new(|row| values.value(row).as_bytes())
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            Box::new(|row| values.value(row).as_bytes())
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            Box::new(|row| values.value(row))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            Box::new(|row| values.value(row))
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            Box::new(|row| values.value(row))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            if padded { Box::new(|row| unpadded(values.value(row))) } else { Box::new(|row| values.value(row)) }
        }
        _ => return None,
    })
}

/// The value without the zeros at its end, which NumPy takes for padding.
fn unpadded(value: &[u8]) -> &[u8] {
    let used = value.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &value[..used]
}

/// Reads an array as keys or as a part of them, with the rows that are null.
fn part<'a>(array: &'a ArrayRef, reading: Reading<'_>) -> Result<(Part<'a>, Option<NullBuffer>), Error> {
    let nulls = array.logical_nulls();
    if let DataType::Dictionary(..) = array.data_type() {
        let dictionary = array.as_any_dictionary();
        if dictionary.values().is_empty() {
            // Nothing but nulls.
            return Ok((Part::Flat { size: 0, bytes: &[] }, nulls));
        }
        let (values, _) = part(dictionary.values(), reading)?;
        return Ok((Part::Coded { codes: dictionary.normalized_keys(), values: Box::new(values) }, nulls));
    }
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let rows = || (0..array.len()).filter(|&row| !is_null(row));
    let place = |row: usize| reading.first + row;
    let mixed = || {
        let Reading { from, to, .. } = reading;
        Error::Type(format!("the sketch counts {to} keys, and the column has {from}: keys are of one type"))
    };
    let part = match (reading.from, reading.to) {
        (KeyType::Int(_), &KeyType::Int(to)) => match flat_numbers(array, to) {
            Some(bytes) => Part::Flat { size: to.bytes, bytes },
            None => {
                let number = numbers(array)?;
                let all_fit = exact_type(array.data_type()).is_some_and(|from| to.holds_all_of(from));
                if !all_fit && let Some(row) = rows().find(|&row| !to.holds(number(row))) {
                    let (value, row) = (number(row), place(row));
                    return Err(Error::Value(format!(
                        "row {row}: the sketch counts {}, which {value} is not",
                        reading.to
                    )));
                }
                Part::Ints { number, bytes: to.bytes }
            }
        },
        (KeyType::Fixed(from), KeyType::Fixed(to)) if from == to => {
            Part::Flat { size: *to, bytes: array.as_fixed_size_binary().value_data() }
        }
        (KeyType::Bytes | KeyType::Fixed(_), KeyType::Fixed(to)) => {
            // NumPy's own length counts, for padding may be part of a key.
            if let DataType::FixedSizeBinary(size) = array.data_type()
                && *size as usize == *to
            {
                return Ok((Part::Flat { size: *to, bytes: array.as_fixed_size_binary().value_data() }, nulls));
            }
            let span = spans(array, reading.padded).ok_or_else(mixed)?;
            if let Some(row) = rows().find(|&row| span(row).len() != *to) {
                let (got, row) = (span(row).len(), place(row));
                return Err(Error::Value(format!("row {row}: a key of {got} bytes is none of {}", reading.to)));
            }
            Part::Spans(span)
        }
        (KeyType::Str, KeyType::Str) | (KeyType::Bytes | KeyType::Fixed(_), KeyType::Bytes) => {
            Part::Spans(spans(array, reading.padded).ok_or_else(mixed)?)
        }
        (KeyType::Ipv4, KeyType::Ipv4 | KeyType::Ip)
        | (KeyType::Ipv6, KeyType::Ipv6 | KeyType::Ip)
        | (KeyType::Ip, KeyType::Ip) => Part::Spans(spans(array, false).ok_or_else(mixed)?),
        (KeyType::Str, KeyType::Ipv4 | KeyType::Ipv6 | KeyType::Ip) => {
            let text = spans(array, false).ok_or_else(mixed)?;
            made(array.len(), is_null, |row, out| {
                let text = std::str::from_utf8(text(row)).unwrap_or_default();
                match (text.parse(), reading.to) {
                    (Ok(IpAddr::V4(address)), KeyType::Ipv4 | KeyType::Ip) => out.extend(address.octets()),
                    (Ok(IpAddr::V6(address)), KeyType::Ipv6 | KeyType::Ip) => out.extend(address.octets()),
                    _ => {
                        let row = place(row);
                        return Err(Error::Value(format!("row {row}: '{text}' is no address of type {}", reading.to)));
                    }
                }
                Ok(())
            })?
        }
        (KeyType::Str, KeyType::Records(format)) => {
            let text = spans(array, false).ok_or_else(mixed)?;
            made(array.len(), is_null, |row, out| {
                let text = String::from_utf8_lossy(text(row));
                let key =
                    format.parse_key(&text).map_err(|error| Error::Value(format!("row {}: {error}", place(row))))?;
                out.extend(key);
                Ok(())
            })?
        }
        (KeyType::Tuple(from), KeyType::Tuple(to)) if from.len() == to.len() => {
            let table = array.as_struct_opt().ok_or_else(mixed)?;
            let mut all_nulls = nulls;
            let mut parts = vec![];
            for (at, (from, to)) in from.iter().zip(to).enumerate() {
                let reading = Reading { from, to, padded: false, first: reading.first };
                let (part, nulls) = self::part(table.column(at), reading)?;
                all_nulls = NullBuffer::union(all_nulls.as_ref(), nulls.as_ref());
                parts.push((part, to.size().is_none() && at + 1 < table.num_columns()));
            }
            return Ok((Part::Tuple(parts), all_nulls));
        }
        _ => return Err(mixed()),
    };
    Ok((part, nulls))
}

/// Makes the bytes of every row that is not null.
fn made<'a>(
    len: usize,
    is_null: impl Fn(usize) -> bool,
    mut make: impl FnMut(usize, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<Part<'a>, Error> {
    let (mut bytes, mut ends) = (vec![], Vec::with_capacity(len));
    for row in 0..len {
        if !is_null(row) {
            make(row, &mut bytes)?;
        }
        ends.push(bytes.len());
    }
    Ok(Part::Made { ends, bytes })
}

/// The type of whole numbers that an array has.
fn exact_type(data: &DataType) -> Option<IntType> {
    let int = |signed, bytes| Some(IntType { signed, bytes });
    match data {
        DataType::Int8 => int(true, 1),
        DataType::Int16 => int(true, 2),
        DataType::Int32 => int(true, 4),
        DataType::Int64 => int(true, 8),
        DataType::Boolean | DataType::UInt8 => int(false, 1),
        DataType::UInt16 => int(false, 2),
        DataType::UInt32 => int(false, 4),
        DataType::UInt64 => int(false, 8),
        _ => None,
    }
}

/// An address from its 4 or 16 bytes.
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|octets| Ipv4Addr::from(octets).into()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}
