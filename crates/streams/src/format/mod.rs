//! Formats of an input: the place of the key, and of the weight, in each record.

mod column;
mod log_field;
mod packet_key;
mod pattern;

use std::fmt;
use std::str::FromStr;

pub use column::{Column, JsonPointer};
pub use log_field::LogField;
pub use packet_key::{PacketKey, Prefix};
pub use pattern::Pattern;

use crate::{MAX_KEY_BYTES, MAX_PARTS, SpecError, composite};

/// Format of an input: how it is split into records, and which part of a record is the key.
///
/// | format | key | records without a key |
/// |---|---|---|
/// | `lines` | the whole line, without `\n` or `\r\n` | none: an empty line is an item with the empty key |
/// | `field:N` | the N-th column by runs of blanks and tabs, as awk counts | blank lines |
/// | `csv:COLUMN`, `tsv:COLUMN` | a column by name or number, unquoted (RFC 4180) | empty lines, the header row |
/// | `jsonl:PATH` | a string's text or a number as written ([`JsonPointer`]) | blank lines |
/// | `regex:PATTERN` | a group of the first match in the line ([`Pattern`]) | lines that do not match |
/// | `combined:FIELD` | a field of a web server's log ([`LogField`]) | blank lines |
/// | `fimi` | every blank-separated token | |
/// | `records:BYTES` | fixed-size binary | |
/// | `pcap[:PART]` | a part of a packet ([`PacketKey`]); pcap and pcapng alike | packets without IP |
/// | `parquet:COLUMN` | a column by name or number, in builds with the feature `parquet` | nulls |
///
/// `field`, `csv`, `tsv`, `jsonl`, `combined`, `pcap` and `parquet` take several places, separated
/// by commas: `csv:user,country`. The key is then made of all of them: a record of CSV with the
/// parts in this order (for `pcap`, the bytes of the parts). A column whose name has a comma in it
/// is quoted: `csv:"last, first",age`.
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
    /// `lines`: the whole line.
    #[default]
    Lines,
    /// `field:N`: columns between blanks, by number from 1. There is at least one.
    Field(Vec<usize>),
    /// `csv:COLUMN`: columns of a table with commas. There is at least one.
    Csv(Vec<Column>),
    /// `tsv:COLUMN`: columns of a table with tabs. There is at least one.
    Tsv(Vec<Column>),
    /// `jsonl:PATH`: values of a JSON document in each line. There is at least one path.
    Jsonl(Vec<JsonPointer>),
    /// `regex:PATTERN`: a group of the first match in a line.
    Regex(Pattern),
    /// `combined:FIELD`: fields of a web server's log. There is at least one.
    Combined(Vec<LogField>),
    /// `fimi`: every blank-separated token.
    Fimi,
    /// `records:BYTES`: binary records of one size, from 1 to 65,535 bytes.
    Records(usize),
    /// `pcap[:PART]`: parts of the packets of a capture. There is at least one.
    Pcap(Vec<PacketKey>),
    /// `parquet:COLUMN`: columns of a Parquet file. There is at least one.
    Parquet(Vec<Column>),
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
    /// A group of a regular expression, by name or number.
    Group(String),
    /// Bytes: the original length of a packet, or the size of a web server's answer.
    Bytes,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weight::Column(column) => column.fmt(f),
            Weight::Field(number) => number.fmt(f),
            Weight::Pointer(pointer) => pointer.fmt(f),
            Weight::Group(group) => f.write_str(group),
            Weight::Bytes => f.write_str("bytes"),
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
            ("pcap", None) => Format::Pcap(vec![PacketKey::default()]),
            ("field", Some(fields)) => Format::Field(places(fields, field_number).map_err(bad)?),
            ("csv", Some(columns)) => Format::Csv(places(columns, str::parse).map_err(bad)?),
            ("tsv", Some(columns)) => Format::Tsv(places(columns, str::parse).map_err(bad)?),
            ("jsonl", Some(paths)) => Format::Jsonl(places(paths, str::parse).map_err(bad)?),
            ("regex", Some(pattern)) => Format::Regex(pattern.parse().map_err(bad)?),
            ("combined", Some(fields)) => Format::Combined(places(fields, str::parse).map_err(bad)?),
            ("records", Some(n)) => match n.parse() {
                Ok(n) if (1..=MAX_KEY_BYTES).contains(&n) => Format::Records(n),
                _ => return Err(bad(format!("`{n}` is not a size from 1 to {MAX_KEY_BYTES} bytes"))),
            },
            ("pcap", Some(parts)) => Format::Pcap(places(parts, str::parse).map_err(bad)?),
            ("parquet", Some(columns)) => Format::Parquet(places(columns, str::parse).map_err(bad)?),
            _ => return Err(unknown()),
        })
    }
}

fn field_number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n >= 1).ok_or_else(|| format!("`{text}` is not a field number from 1 on"))
}

/// Reads the places of a key, separated by commas.
fn places<P>(text: &str, parse: impl Fn(&str) -> Result<P, String>) -> Result<Vec<P>, String> {
    let parts = composite::split(text.as_bytes()).ok_or("a quote is not closed, or something follows a closed one")?;
    if parts.len() > MAX_PARTS {
        return Err(format!("a key has up to {MAX_PARTS} parts, not {}", parts.len()));
    }
    let place = |part: &Vec<u8>| parse(&String::from_utf8_lossy(part));
    parts.iter().map(place).collect()
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Lines => f.write_str("lines"),
            Format::Field(fields) => write!(f, "field:{}", composite::list(fields)),
            Format::Csv(columns) => write!(f, "csv:{}", composite::list(columns)),
            Format::Tsv(columns) => write!(f, "tsv:{}", composite::list(columns)),
            Format::Jsonl(paths) => write!(f, "jsonl:{}", composite::list(paths)),
            Format::Regex(pattern) => write!(f, "regex:{pattern}"),
            Format::Combined(fields) => write!(f, "combined:{}", composite::list(fields)),
            Format::Fimi => f.write_str("fimi"),
            Format::Records(bytes) => write!(f, "records:{bytes}"),
            Format::Pcap(parts) => write!(f, "pcap:{}", composite::list(parts)),
            Format::Parquet(columns) => write!(f, "parquet:{}", composite::list(columns)),
        }
    }
}

impl Format {
    /// Parses a weight of this format: a column, a field number, a JSON path, a group, or `bytes`
    /// for captures and web logs.
    ///
    /// # Errors
    /// When the format has no weights, or the text is none of the above.
    pub fn parse_weight(&self, text: &str) -> Result<Weight, SpecError> {
        let weight = match self {
            Format::Field(_) => field_number(text).ok().map(Weight::Field),
            Format::Csv(_) | Format::Tsv(_) | Format::Parquet(_) => text.parse().ok().map(Weight::Column),
            Format::Jsonl(_) => text.parse().ok().map(Weight::Pointer),
            Format::Regex(_) => Some(Weight::Group(text.to_owned())),
            Format::Pcap(_) | Format::Combined(_) => (text == "bytes").then_some(Weight::Bytes),
            Format::Lines | Format::Fimi | Format::Records(_) => None,
        };
        let weight = weight.ok_or_else(|| self.weight_error(text))?;
        self.check_weight(&weight).map(|()| weight)
    }

    /// Checks that `weight` was made for this kind of format.
    pub(crate) fn check_weight(&self, weight: &Weight) -> Result<(), SpecError> {
        match (self, weight) {
            (Format::Field(_), Weight::Field(1..))
            | (Format::Csv(_) | Format::Tsv(_) | Format::Parquet(_), Weight::Column(_))
            | (Format::Jsonl(_), Weight::Pointer(_))
            | (Format::Pcap(_) | Format::Combined(_), Weight::Bytes) => Ok(()),
            (Format::Regex(pattern), Weight::Group(group)) if pattern.group(group).is_some() => Ok(()),
            _ => Err(self.weight_error(&weight.to_string())),
        }
    }

    fn weight_error(&self, given: &str) -> SpecError {
        let expected = match self {
            Format::Field(_) => "give a field number, from 1 on",
            Format::Csv(_) | Format::Tsv(_) | Format::Parquet(_) => "give a column name, or a column number from 1 on",
            Format::Jsonl(_) => "give a path such as `bytes` or `/response/bytes`",
            Format::Regex(_) => "give the name or number of a group in the regular expression",
            Format::Pcap(_) => "give `bytes`, the original length of the packet; there is no other weight",
            Format::Combined(_) => "give `bytes`, the size of the answer; there is no other weight",
            Format::Lines | Format::Fimi | Format::Records(_) => "this format has no weights",
        };
        SpecError::Weight { given: given.to_owned(), format: self.to_string(), expected }
    }

    /// Returns the number of parts that a key of this format is made of.
    pub fn parts(&self) -> usize {
        match self {
            Format::Lines | Format::Regex(_) | Format::Fimi | Format::Records(_) => 1,
            Format::Field(fields) => fields.len(),
            Format::Csv(columns) | Format::Tsv(columns) | Format::Parquet(columns) => columns.len(),
            Format::Jsonl(paths) => paths.len(),
            Format::Combined(fields) => fields.len(),
            Format::Pcap(parts) => parts.len(),
        }
    }

    /// Returns the usual size of keys of this format, for planning memory; `None` if it is unknown.
    ///
    /// For captures it is the size that IPv4 gives (IPv6 keys are longer); for `fimi` that of
    /// numbers.
    pub fn key_bytes_hint(&self) -> Option<usize> {
        match self {
            Format::Fimi => Some(4),
            Format::Records(bytes) => Some(*bytes),
            Format::Pcap(parts) => Some(parts.iter().map(|part| part.bytes(4)).sum()),
            _ => None,
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
            "jsonl:/user/id,/status",
            "field:1,9",
            "csv:a,\"last, first\",3",
            "regex:^(\\S+), x",
            "combined:ip,status",
            "parquet:user",
            "fimi",
            "records:13",
            "pcap:flow",
            "pcap:src/24/48,dstport",
            "pcap:proto",
            "pcap:5tuple",
            "pcap:src",
            "pcap:dst",
            "pcap:srcport",
            "pcap:dstport",
        ] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), text);
        }
        for (text, shown) in [
            ("pcap", "pcap:5tuple"),
            ("pcap:dst/16", "pcap:dst/16/48"),
            ("jsonl:user.id", "jsonl:/user/id"),
            ("csv:\"user\"", "csv:user"),
        ] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), shown);
        }
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
            "csv:a,",
            "csv:a,0",
            "csv:\"a",
            "csv:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
            "field:1,x",
            "jsonl:a..b",
            "regex:",
            "regex:(",
            "combined:cookie",
            "combined:",
            "records:0",
            "records:65536",
            "pcap:mac",
            "pcap:src/33",
            "parquet:",
        ] {
            let message = text.parse::<Format>().unwrap_err().to_string();
            assert!(message.contains("records:BYTES, pcap"), "{message}");
        }
        let said = |text: &str| text.parse::<Format>().unwrap_err().to_string().split(';').next().unwrap().to_owned();
        assert_eq!(said("regex:a("), "format `regex:a(`: the regular expression is wrong: unclosed group");
    }

    #[test]
    fn weights_fit_their_format() {
        let weight = |format: &str, text: &str| format.parse::<Format>().unwrap().parse_weight(text);
        assert_eq!(weight("field:1", "2"), Ok(Weight::Field(2)));
        assert_eq!(weight("csv:a", "b"), Ok(Weight::Column(Column::Name("b".into()))));
        assert_eq!(weight("pcap", "bytes"), Ok(Weight::Bytes));
        assert_eq!(weight("combined:ip", "bytes"), Ok(Weight::Bytes));
        assert_eq!(weight("regex:(?<key>a)(?<n>b)", "n"), Ok(Weight::Group("n".into())));
        assert_eq!(weight("jsonl:/a", "/b"), Ok(Weight::Pointer("/b".parse().unwrap())));
        for (format, text) in [
            ("lines", "2"),
            ("field:1", "0"),
            ("pcap", "2"),
            ("jsonl:/a", "b."),
            ("fimi", "1"),
            ("csv:a", "0"),
            ("regex:(a)", "n"),
            ("regex:(a)", "2"),
            ("combined:ip", "status"),
        ] {
            assert!(weight(format, text).is_err(), "{format} {text}");
        }
    }
}
