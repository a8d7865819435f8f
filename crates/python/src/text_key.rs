//! Keys as text, which is how they travel: agents of different programs count the same keys, and
//! whoever asks the collector can read them.
//!
//! Numbers are written in decimals, addresses as usual, and tuples as a record of CSV, as the
//! readers of `ucl agent` do for keys of several parts. Text and bytes are as they are.

use std::io::Write as _;
use std::net::IpAddr;

use pyo3::prelude::*;
use ucl_streams::{MAX_KEY_BYTES, join_parts, split_parts};

use crate::answers::split;
use crate::column::Column;
use crate::error::Error;
use crate::key_type::KeyType;
use crate::rows::{Reading, Rows, address};

/// Appends the text of a key to `out`. The key is one of this type.
pub fn write(keys: &KeyType, key: &[u8], out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = match keys {
        KeyType::Int(int) => write!(out, "{}", int.decode(key)),
        KeyType::Ipv4 | KeyType::Ipv6 | KeyType::Ip => address(key).map_or(Ok(()), |address| write!(out, "{address}")),
        KeyType::Str | KeyType::Bytes | KeyType::Fixed(_) | KeyType::Records(_) => out.write_all(key),
        KeyType::Tuple(parts) => {
            let text = |(part, bytes): (&KeyType, &[u8])| {
                let mut text = vec![];
                write(part, bytes, &mut text);
                text
            };
            let texts = parts.iter().zip(split(parts, key).unwrap_or_default()).map(text);
            out.write_all(&join_parts(texts))
        }
    };
}

/// Reads the text of a key: the reverse of [`write`]. `None` if it is no key of this type.
pub fn read(keys: &KeyType, text: &[u8]) -> Option<Vec<u8>> {
    let plain = || std::str::from_utf8(text).ok();
    match keys {
        KeyType::Int(int) => {
            let number: i128 = plain()?.parse().ok()?;
            // `007` is another key than `7`.
            let is_ours = int.holds(number) && number.to_string().as_bytes() == text;
            is_ours.then_some(())?;
            Some(number.to_le_bytes()[..int.bytes].to_vec())
        }
        KeyType::Ipv4 | KeyType::Ipv6 | KeyType::Ip => match (plain()?.parse::<IpAddr>().ok()?, keys) {
            (IpAddr::V4(address), KeyType::Ipv4 | KeyType::Ip) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), KeyType::Ipv6 | KeyType::Ip) => Some(address.octets().to_vec()),
            _ => None,
        },
        KeyType::Str | KeyType::Bytes | KeyType::Records(_) => Some(text.to_vec()),
        KeyType::Fixed(size) => (text.len() == *size).then(|| text.to_vec()),
        KeyType::Tuple(parts) => {
            let texts = split_parts(text).filter(|texts| texts.len() == parts.len())?;
            let mut key = vec![];
            for (at, (part, text)) in parts.iter().zip(texts).enumerate() {
                let bytes = read(part, &text)?;
                if part.size().is_none() && at + 1 < parts.len() {
                    key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                }
                key.extend(bytes);
            }
            Some(key)
        }
    }
}

/// A key that is too long.
pub fn too_long(row: usize, bytes: usize) -> Error {
    Error::Value(format!("row {row}: a key of {bytes} bytes is longer than {MAX_KEY_BYTES}"))
}

/// One key as text.
pub fn text_of(key: &Bound<'_, PyAny>) -> Result<Vec<u8>, Error> {
    let column = Column::of_key(key)?;
    let (Some(keys), Some(chunk)) = (&column.keys, column.chunks.first()) else {
        return Err(Error::Type("None is no key here".into()));
    };
    let rows = Rows::new(chunk, Reading { from: keys, to: keys, padded: false, first: 0 })?;
    if rows.is_null(0) {
        return Err(Error::Type("a tuple with None in it is no key here".into()));
    }
    let mut text = vec![];
    write(keys, rows.key(0, &mut vec![]), &mut text);
    Ok(text)
}

/// The rows of a column, ready to be written as text.
pub struct TextRows<'a> {
    column: &'a Column,
    parts: Vec<Rows<'a>>,
}

impl<'a> TextRows<'a> {
    /// Checks a column as a whole.
    pub fn new(column: &'a Column) -> Result<Self, Error> {
        let mut parts = vec![];
        let mut first = 0;
        for chunk in column.chunks.iter() {
            if let Some(keys) = &column.keys {
                parts.push(Rows::new(chunk, Reading { from: keys, to: keys, padded: column.padded, first })?);
            }
            first += chunk.len();
        }
        Ok(Self { column, parts })
    }

    /// Writes the text of each row in turn, as long as `each` wants more; `None` for nulls.
    pub fn try_each<E>(&self, mut each: impl FnMut(usize, Option<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        let Some(keys) = &self.column.keys else {
            return (0..self.column.rows()).try_for_each(|row| each(row, None));
        };
        let (mut made, mut text, mut first) = (vec![], vec![], 0);
        for rows in &self.parts {
            for row in 0..rows.len() {
                if rows.is_null(row) {
                    each(first + row, None)?;
                    continue;
                }
                text.clear();
                write(keys, rows.key(row, &mut made), &mut text);
                each(first + row, Some(&text))?;
            }
            first += rows.len();
        }
        Ok(())
    }
}
