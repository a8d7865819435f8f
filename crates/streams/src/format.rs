//! Where the key of a record is: the format, and the place of the weight beside it.

use std::fmt;
use std::str::FromStr;

use crate::{MAX_KEY_BYTES, SpecError};

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Column number, from 1.
    Number(usize),
    /// Column name in the header row. A name that consists of digits is taken for a number.
    Name(String),
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<usize>() {
            Ok(0) => Err("columns count from 1".to_owned()),
            Ok(number) => Ok(Column::Number(number)),
            Err(_) if text.is_empty() => Err("the column is missing".to_owned()),
            Err(_) => Ok(Column::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Number(number) => write!(f, "{number}"),
            Column::Name(name) => f.write_str(name),
        }
    }
}

/// A JSON pointer (RFC 6901): `/user/id`, `/tags/0`; the empty pointer is the whole document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPointer {
    text: String,
    pub(crate) steps: Vec<String>,
}

impl FromStr for JsonPointer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return if text.is_empty() {
                Ok(Self { text: String::new(), steps: Vec::new() })
            } else {
                Err(format!("a JSON pointer starts with `/`: try `/{text}`"))
            };
        };
        let steps = rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
        Ok(Self { text: text.to_owned(), steps })
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Part of a packet that is used as the key.
///
/// All keys are in network byte order. A five-tuple is source, destination, source port,
/// destination port, protocol: 13 bytes for IPv4, 37 for IPv6. Ports are 0 for protocols without
/// ports and for fragments other than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketKey {
    /// `5tuple`: 13 or 37 bytes.
    #[default]
    FiveTuple,
    /// `src`: the source address, 4 or 16 bytes.
    Source,
    /// `dst`: the destination address, 4 or 16 bytes.
    Destination,
    /// `srcport`: 2 bytes.
    SourcePort,
    /// `dstport`: 2 bytes.
    DestinationPort,
}

impl PacketKey {
    const NAMES: [(&'static str, PacketKey); 5] = [
        ("5tuple", PacketKey::FiveTuple),
        ("src", PacketKey::Source),
        ("dst", PacketKey::Destination),
        ("srcport", PacketKey::SourcePort),
        ("dstport", PacketKey::DestinationPort),
    ];

    fn name(self) -> &'static str {
        match self {
            PacketKey::FiveTuple => "5tuple",
            PacketKey::Source => "src",
            PacketKey::Destination => "dst",
            PacketKey::SourcePort => "srcport",
            PacketKey::DestinationPort => "dstport",
        }
    }
}

/// How an input is split into keys.
///
/// | format | key | records without a key |
/// |---|---|---|
/// | `lines` | the whole line, without `\n` or `\r\n` | none: an empty line is an item with the empty key |
/// | `field:N` | the N-th column by runs of blanks and tabs, as awk counts | blank lines |
/// | `csv:COLUMN`, `tsv:COLUMN` | a column by name or number, unquoted (RFC 4180) | empty lines, the header row |
/// | `jsonl:POINTER` | a string's text or a number as written | blank lines |
/// | `fimi` | every blank-separated token | |
/// | `records:BYTES` | fixed-size binary | |
/// | `pcap[:5tuple\|src\|dst\|srcport\|dstport]` | see [`PacketKey`]; pcap and pcapng alike | packets without IP |
///
/// The first row of a table is a header if the key or the weight is asked for by *name*. With
/// numbers only it is taken for one, unless there is a number in the weight's column;
/// [`ReadOptions::header`](crate::ReadOptions::header) settles it.
///
/// In `fimi` a token that is a number from 0 to 4294967295, written without sign or leading zeros,
/// is a 4-byte little-endian key; any other token is its text. So that the two cannot be mixed up,
/// a text of exactly 4 bytes gets a zero byte at its end (and so does, to stay unique, a longer one
/// that already ends in a zero byte).
///
/// ```
/// use ucl_streams::Format;
///
/// let format: Format = "fimi".parse()?;
/// assert_eq!(format.parse_key("39")?, [39, 0, 0, 0]);
/// assert_eq!(format.key_display(&[39, 0, 0, 0]), "39");
/// assert_eq!(format.key_display(&format.parse_key("beer")?), "beer");
///
/// let flows: Format = "pcap".parse()?;
/// let key = flows.parse_key("10.0.0.1:443 > 10.0.0.2:51234 tcp")?;
/// assert_eq!(key.len(), 13);
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Format {
    /// `lines`.
    #[default]
    Lines,
    /// `field:N`, from 1.
    Field(usize),
    /// `csv:COLUMN`.
    Csv(Column),
    /// `tsv:COLUMN`.
    Tsv(Column),
    /// `jsonl:POINTER`.
    Jsonl(JsonPointer),
    /// `fimi`.
    Fimi,
    /// `records:BYTES`, from 1 to 65,535.
    Records(usize),
    /// `pcap` and pcapng.
    Pcap(PacketKey),
}

/// Place of the weight in a record. [`Format::parse_weight`] creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weight {
    /// A column of a table.
    Column(Column),
    /// A field of a line, from 1.
    Field(usize),
    /// A number in a JSON document.
    Pointer(JsonPointer),
    /// Original length of the packet in bytes.
    PacketBytes,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weight::Column(column) => column.fmt(f),
            Weight::Field(number) => number.fmt(f),
            Weight::Pointer(pointer) => pointer.fmt(f),
            Weight::PacketBytes => f.write_str("bytes"),
        }
    }
}

impl FromStr for Format {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let unknown = || SpecError::Format { given: text.to_owned() };
        let bad = |problem: String| SpecError::FormatArgument { given: text.to_owned(), problem };
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        Ok(match (name, argument) {
            ("lines", None) => Format::Lines,
            ("fimi", None) => Format::Fimi,
            ("pcap", None) => Format::Pcap(PacketKey::default()),
            ("field", Some(n)) => match n.parse() {
                Ok(n) if n >= 1 => Format::Field(n),
                _ => return Err(bad(format!("`{n}` is not a field number from 1 on"))),
            },
            ("csv", Some(column)) => Format::Csv(column.parse().map_err(bad)?),
            ("tsv", Some(column)) => Format::Tsv(column.parse().map_err(bad)?),
            ("jsonl", Some(pointer)) => Format::Jsonl(pointer.parse().map_err(bad)?),
            ("records", Some(n)) => match n.parse() {
                Ok(n) if (1..=MAX_KEY_BYTES).contains(&n) => Format::Records(n),
                _ => return Err(bad(format!("`{n}` is not a size from 1 to {MAX_KEY_BYTES} bytes"))),
            },
            ("pcap", Some(part)) => match PacketKey::NAMES.iter().find(|(name, _)| *name == part) {
                Some((_, key)) => Format::Pcap(*key),
                None => return Err(bad(format!("a packet has no `{part}`"))),
            },
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Lines => f.write_str("lines"),
            Format::Field(n) => write!(f, "field:{n}"),
            Format::Csv(column) => write!(f, "csv:{column}"),
            Format::Tsv(column) => write!(f, "tsv:{column}"),
            Format::Jsonl(pointer) => write!(f, "jsonl:{pointer}"),
            Format::Fimi => f.write_str("fimi"),
            Format::Records(bytes) => write!(f, "records:{bytes}"),
            Format::Pcap(key) => write!(f, "pcap:{}", key.name()),
        }
    }
}

impl Format {
    /// Parses a weight of this format: a column, a field number, a JSON pointer, or `bytes` for
    /// captures.
    ///
    /// # Errors
    /// When the format has no weights, or the text is none of the above.
    pub fn parse_weight(&self, text: &str) -> Result<Weight, SpecError> {
        let weight = match self {
            Format::Field(_) => text.parse().ok().filter(|&n| n >= 1).map(Weight::Field),
            Format::Csv(_) | Format::Tsv(_) => text.parse().ok().map(Weight::Column),
            Format::Jsonl(_) => text.parse().ok().map(Weight::Pointer),
            Format::Pcap(_) => (text == "bytes").then_some(Weight::PacketBytes),
            Format::Lines | Format::Fimi | Format::Records(_) => None,
        };
        weight.ok_or_else(|| self.weight_error(text))
    }

    /// Whether `weight` was made for this kind of format.
    pub(crate) fn check_weight(&self, weight: &Weight) -> Result<(), SpecError> {
        match (self, weight) {
            (Format::Field(_), Weight::Field(1..))
            | (Format::Csv(_) | Format::Tsv(_), Weight::Column(_))
            | (Format::Jsonl(_), Weight::Pointer(_))
            | (Format::Pcap(_), Weight::PacketBytes) => Ok(()),
            _ => Err(self.weight_error(&weight.to_string())),
        }
    }

    fn weight_error(&self, given: &str) -> SpecError {
        let expected = match self {
            Format::Field(_) => "a field number from 1 on is wanted",
            Format::Csv(_) | Format::Tsv(_) => "a column name, or a column number from 1 on, is wanted",
            Format::Jsonl(_) => "a JSON pointer such as `/bytes` is wanted",
            Format::Pcap(_) => "only `bytes`, the packet's original length, is known",
            Format::Lines | Format::Fimi | Format::Records(_) => "this format has no weights",
        };
        SpecError::Weight { given: given.to_owned(), format: self.to_string(), expected }
    }

    /// Returns the usual size of keys of this format, for planning memory; `None` if it is unknown.
    ///
    /// For captures it is the size that IPv4 gives (IPv6 keys are longer); for `fimi` that of
    /// numbers.
    pub fn key_bytes_hint(&self) -> Option<usize> {
        match self {
            Format::Lines | Format::Field(_) | Format::Csv(_) | Format::Tsv(_) | Format::Jsonl(_) => None,
            Format::Fimi => Some(4),
            Format::Records(bytes) => Some(*bytes),
            Format::Pcap(PacketKey::FiveTuple) => Some(13),
            Format::Pcap(PacketKey::Source | PacketKey::Destination) => Some(4),
            Format::Pcap(PacketKey::SourcePort | PacketKey::DestinationPort) => Some(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_prints_as_it_is_written() {
        for text in [
            "lines",
            "field:3",
            "csv:user",
            "csv:2",
            "tsv:a b",
            "jsonl:/a/0/b~1c",
            "jsonl:",
            "fimi",
            "records:13",
            "pcap:5tuple",
            "pcap:src",
            "pcap:dst",
            "pcap:srcport",
            "pcap:dstport",
        ] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), text);
        }
        assert_eq!("pcap".parse::<Format>().unwrap().to_string(), "pcap:5tuple");
    }

    #[test]
    fn a_wrong_format_lists_the_valid_ones() {
        for text in [
            "",
            "line",
            "lines:1",
            "field",
            "field:0",
            "field:x",
            "csv:",
            "csv:0",
            "jsonl:a",
            "records:0",
            "records:65536",
            "pcap:mac",
        ] {
            let message = text.parse::<Format>().unwrap_err().to_string();
            assert!(message.contains("records:BYTES, pcap"), "{message}");
        }
        assert_eq!(
            "jsonl:user".parse::<Format>().unwrap_err().to_string().split(';').next().unwrap(),
            "format `jsonl:user`: a JSON pointer starts with `/`: try `/user`"
        );
    }

    #[test]
    fn weights_fit_their_format() {
        let weight = |format: &str, text: &str| format.parse::<Format>().unwrap().parse_weight(text);
        assert_eq!(weight("field:1", "2"), Ok(Weight::Field(2)));
        assert_eq!(weight("csv:a", "b"), Ok(Weight::Column(Column::Name("b".into()))));
        assert_eq!(weight("pcap", "bytes"), Ok(Weight::PacketBytes));
        assert_eq!(weight("jsonl:/a", "/b"), Ok(Weight::Pointer("/b".parse().unwrap())));
        for (format, text) in
            [("lines", "2"), ("field:1", "0"), ("pcap", "2"), ("jsonl:/a", "b"), ("fimi", "1"), ("csv:a", "0")]
        {
            assert!(weight(format, text).is_err(), "{format} {text}");
        }
    }

    #[test]
    fn pointers_unescape() {
        let pointer: JsonPointer = "/a~1b/~01".parse().unwrap();
        assert_eq!(pointer.steps, ["a/b", "~1"]);
    }
}
