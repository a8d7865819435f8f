//! The types of keys, and how their values become bytes.
//!
//! Every sketch counts keys of one type, so that different values have different bytes. The bytes
//! are those of [`ucl_sketch::Key`]: a sketch of `int64` is one of `i64` in Rust.

use std::fmt;
use std::str::FromStr;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};
use ucl_sketch::KeyFormat;
use ucl_streams::Format;

use crate::error::Error;

/// A type of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyType {
    Int(IntType),
    Str,
    Bytes,
    /// Bytes of one length.
    Fixed(usize),
    Ipv4,
    Ipv6,
    /// Either.
    Ip,
    Tuple(Vec<KeyType>),
    /// Records that our readers have cut, shown as the command line shows them.
    Records(Format),
}

/// A type of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntType {
    pub signed: bool,
    pub bytes: usize,
}

impl IntType {
    pub const I64: Self = Self { signed: true, bytes: 8 };
    pub const U64: Self = Self { signed: false, bytes: 8 };

    /// Returns true if the number is one of this type.
    pub fn holds(self, number: i128) -> bool {
        let bits = 8 * self.bytes as u32 - u32::from(self.signed);
        let least = if self.signed { -(1i128 << bits) } else { 0 };
        (least..1 << bits).contains(&number)
    }

    /// Returns true if every number of the other type is one of this type.
    pub fn holds_all_of(self, other: Self) -> bool {
        match (self.signed, other.signed) {
            (true, false) => self.bytes > other.bytes,
            (false, true) => false,
            _ => self.bytes >= other.bytes,
        }
    }

    /// The type that a column of this one is counted as, unless told: at least 4 bytes, which is
    /// counted as fast and leaves room.
    pub fn roomy(self) -> Self {
        Self { bytes: self.bytes.max(4), ..self }
    }

    /// Reads a number from exactly as many bytes as it takes.
    pub fn decode(self, bytes: &[u8]) -> i128 {
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        if self.signed && bytes.last().is_some_and(|&last| last >= 128) {
            wide[bytes.len()..].fill(255);
        }
        i128::from_le_bytes(wide)
    }
}

impl KeyType {
    /// Bytes of every key, if all have the same number.
    pub fn size(&self) -> Option<usize> {
        match self {
            Self::Int(int) => Some(int.bytes),
            Self::Fixed(bytes) => Some(*bytes),
            Self::Ipv4 => Some(4),
            Self::Ipv6 => Some(16),
            Self::Tuple(parts) => parts.iter().map(Self::size).sum(),
            Self::Records(Format::Records(bytes)) => Some(*bytes),
            Self::Str | Self::Bytes | Self::Ip | Self::Records(_) => None,
        }
    }

    /// Returns the format of such keys in slots.
    pub fn format(&self) -> Result<KeyFormat, Error> {
        let format = self.size().map_or(Ok(KeyFormat::Digest), KeyFormat::for_key_bytes);
        format.map_err(|error| Error::Build(error.into()))
    }

    /// The type of the keys of a file, by its format.
    pub fn of_format(format: &Format) -> Self {
        match format {
            Format::Lines | Format::Field(_) | Format::Csv(_) | Format::Tsv(_) | Format::Jsonl(_) => Self::Str,
            other => Self::Records(other.clone()),
        }
    }

    /// Reads the argument `keys`: a name, a Python type, or a tuple of those.
    pub fn from_python(keys: &Bound<'_, PyAny>) -> Result<Self, Error> {
        if let Ok(name) = keys.cast::<PyString>() {
            return name.to_str()?.parse();
        }
        if let Ok(parts) = keys.cast::<PyTuple>() {
            let parts = parts.iter().map(|part| Self::from_python(&part)).collect::<Result<Vec<_>, _>>()?;
            return Self::tuple(parts);
        }
        if let Ok(class) = keys.cast::<PyType>() {
            let name = class.name()?;
            match name.to_str()? {
                "int" => return Ok(Self::Int(IntType::I64)),
                "str" => return Ok(Self::Str),
                "bytes" => return Ok(Self::Bytes),
                "IPv4Address" => return Ok(Self::Ipv4),
                "IPv6Address" => return Ok(Self::Ipv6),
                // NumPy's scalar types have the names that ours have.
                other => return other.parse(),
            }
        }
        Err(Error::Type(format!("keys is {NAMES}, not {}", keys.get_type().name()?)))
    }

    fn tuple(parts: Vec<Self>) -> Result<Self, Error> {
        if parts.is_empty() {
            return Err(Error::Value("a tuple of no types is no type of keys".into()));
        }
        if parts.iter().any(|part| matches!(part, Self::Records(_))) {
            return Err(Error::Value("records of a file are no part of a tuple".into()));
        }
        Ok(Self::Tuple(parts))
    }
}

/// What `keys` may be, for messages.
const NAMES: &str = "'int64' (or int8 to int32, uint8 to uint64), 'str', 'bytes', 'bytes13' (any fixed length), \
                     'ipv4', 'ipv6', 'ip', or a tuple of those";

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => write!(f, "{}int{}", if int.signed { "" } else { "u" }, 8 * int.bytes),
            Self::Str => f.write_str("str"),
            Self::Bytes => f.write_str("bytes"),
            Self::Fixed(bytes) => write!(f, "bytes{bytes}"),
            Self::Ipv4 => f.write_str("ipv4"),
            Self::Ipv6 => f.write_str("ipv6"),
            Self::Ip => f.write_str("ip"),
            Self::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "({})", parts.join(", "))
            }
            Self::Records(format) => write!(f, "format:{format}"),
        }
    }
}

impl FromStr for KeyType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Value(format!("'{text}' is no type of keys: it is {NAMES}"));
        if let Some(format) = text.strip_prefix("format:") {
            return Ok(Self::Records(format.parse()?));
        }
        if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            let parts = parts(inner).into_iter().map(str::parse).collect::<Result<Vec<Self>, Error>>()?;
            return Self::tuple(parts);
        }
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| number.to_string() == text);
        let int = |signed, bits: &str| match number(bits) {
            Some(bits @ (8 | 16 | 32 | 64)) => Ok(Self::Int(IntType { signed, bytes: bits / 8 })),
            _ => Err(unknown()),
        };
        match text {
            "str" => Ok(Self::Str),
            "bytes" => Ok(Self::Bytes),
            "int" => Ok(Self::Int(IntType::I64)),
            "ipv4" => Ok(Self::Ipv4),
            "ipv6" => Ok(Self::Ipv6),
            "ip" => Ok(Self::Ip),
            _ => match (text.strip_prefix("int"), text.strip_prefix("uint"), text.strip_prefix("bytes")) {
                (Some(bits), ..) => int(true, bits),
                (_, Some(bits), _) => int(false, bits),
                (.., Some(bytes)) => number(bytes).filter(|&bytes| bytes > 0).map(Self::Fixed).ok_or_else(unknown),
                _ => Err(unknown()),
            },
        }
    }
}

/// Splits at the commas that are in no parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0, vec![]);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    // As Python writes a tuple of one.
    if !last.is_empty() || parts.is_empty() {
        parts.push(last);
    }
    parts
}
