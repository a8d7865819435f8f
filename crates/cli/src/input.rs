//! The options by which every command that counts says what to read.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::NonZeroU64;

use clap::builder::{OsStringValueParser, TypedValueParser};
use ucl_streams::{
    BadReason, Content, Format, OnError, PacketKey, ReadErrorKind, ReadOptions, ReadSummary, Source, SpecError,
    content_of,
};

use crate::fail::{Usage, harmless};

/// What to read, and how.
#[derive(Clone, clap::Args)]
pub struct InputArgs {
    /// Files in order, `-` for standard input (the default), or generators.
    ///
    /// Files may be plain, gzip or zstd; the content decides. Content that the format cannot read,
    /// such as an archive or a saved state, is an error. Generators need no format:
    /// `zipf:SKEW[:ITEMS[:KEYS]]` makes numbers, `caida-like[:PACKETS]` five-tuples.
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new().try_map(source))]
    pub inputs: Vec<Source>,

    /// Where the key of a record is: lines, field:N, csv:COLUMN, tsv:COLUMN, jsonl:POINTER, fimi,
    /// records:BYTES, pcap.
    ///
    /// lines: the whole line (the default); an empty line is an item with the empty key, printed as
    /// "". field:N: the N-th blank-separated column, as awk counts. csv:COLUMN and tsv:COLUMN: a
    /// column by header name or number. jsonl:POINTER: as in jsonl:/user/id. fimi: every
    /// blank-separated token. records:BYTES: fixed-size binary. pcap and
    /// pcap:5tuple|src|dst|srcport|dstport: captures, pcapng too. If all inputs are capture files,
    /// pcap:5tuple is the default. All formats but lines and records pass over blank lines.
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// Sum a weight instead of counting 1: a column, a field number, a JSON pointer, or `bytes` for
    /// captures.
    #[arg(short, long, value_name = "WHERE")]
    pub weight: Option<String>,

    /// Multiply every weight by N: with --scale 100, a weight of 12.34 counts as 1234.
    ///
    /// The result is exact. A weight that is not whole after scaling is a bad record. A record of
    /// weight 0 is not counted. All weights together may come to 9223372036854775807 (2^63 - 1).
    #[arg(long, value_name = "N", value_parser = scale)]
    pub scale: Option<NonZeroU64>,

    /// The first row of a csv or tsv input is a header.
    ///
    /// Without --header and --no-header: if a column is given by name, the first row is a header.
    /// If all columns are given by number, the first row is taken for a header as well, and a note
    /// says so, unless it has a number in the weight's column.
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,

    /// The first row of a csv or tsv input is data.
    #[arg(long)]
    pub no_header: bool,

    /// Read files as they are: unpack nothing, and accept any content.
    #[arg(long)]
    pub raw: bool,

    /// What to do about bad records.
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    pub on_error: Action,

    /// Stop reading after N items.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Stop at the first one: answer for the records before it, and fail.
    Stop,
    /// Leave them out, and tell how many.
    Skip,
}

impl From<Action> for OnError {
    fn from(action: Action) -> Self {
        match action {
            Action::Stop => OnError::Stop,
            Action::Skip => OnError::Skip,
        }
    }
}

fn scale(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "give a whole number, at least 1".to_owned())
}

fn source(text: OsString) -> Result<Source, SpecError> {
    match text.to_str() {
        Some(text) => text.parse(),
        // No generator has such a name, and any file may.
        None => Ok(Source::Path(text.into())),
    }
}

impl InputArgs {
    /// The inputs, standard input if none is named.
    pub fn sources(&self) -> Result<Vec<Source>, Usage> {
        if !self.inputs.is_empty() {
            return Ok(self.inputs.clone());
        }
        if std::io::stdin().is_terminal() {
            return Err(Usage("nothing to read: name a file, pipe something in, or say `-` to type it".to_owned()));
        }
        Ok(vec![Source::Stdin])
    }

    /// How to read. Generators bring their own format; all keys must be of one.
    pub fn read_options(&self, sources: &[Source], seed: u64) -> Result<ReadOptions, Usage> {
        let format = self.common_format(sources)?;
        let weight = self.weight.as_deref().map(|text| format.parse_weight(text)).transpose();
        let weight = weight.map_err(Usage::because)?;
        if self.scale.is_some() && (weight.is_none() || matches!(format, Format::Pcap(_))) {
            return Err(Usage("--scale is for weights that are read from a column: give --weight".to_owned()));
        }
        let header = self.header_row();
        if header.is_some() && !matches!(format, Format::Csv(_) | Format::Tsv(_)) {
            return Err(Usage(format!("--header and --no-header are for csv and tsv, not for {format}")));
        }
        let options = ReadOptions {
            weight,
            header,
            scale: self.scale,
            raw: self.raw,
            format,
            on_error: self.on_error.into(),
            limit: self.limit,
            seed,
            ..ReadOptions::default()
        };
        options.check().map_err(Usage::because)?;
        Ok(options)
    }

    /// Whether the first row of a table is a header, if that was said.
    pub fn header_row(&self) -> Option<bool> {
        (self.header || self.no_header).then_some(self.header)
    }

    fn common_format(&self, sources: &[Source]) -> Result<Format, Usage> {
        let own = |source: &Source| source.own_format();
        let first = sources.iter().find_map(own);
        let format = match (&self.format, &first) {
            (Some(given), _) => given.clone(),
            (None, Some(own)) if sources.iter().all(|source| source.own_format().is_some()) => own.clone(),
            (None, None) if !self.raw && all_captures(sources) => {
                let format = Format::Pcap(PacketKey::FiveTuple);
                let is = if sources.len() == 1 { "is a packet capture" } else { "and the others are packet captures" };
                eprintln!("ucl: note: {} {is}: --format {format} is used", harmless(&sources[0].to_string()));
                format
            }
            (None, _) => Format::default(),
        };
        match sources.iter().find(|source| own(source).is_some_and(|own| own != format)) {
            None => Ok(format),
            Some(generator) => Err(Usage(format!(
                "{generator} makes keys of format {}, which cannot be counted together with {format}",
                own(generator).unwrap_or_default()
            ))),
        }
    }
}

/// Whether all inputs are files with packets in them. Pipes cannot be looked at without taking
/// something away.
fn all_captures(sources: &[Source]) -> bool {
    sources.iter().all(|source| match source {
        Source::Path(path) => path.is_file() && content_of(path).is_ok_and(|content| content == Some(Content::Capture)),
        Source::Stdin | Source::Generator(_) => false,
    })
}

/// Fails now for a file that cannot be opened or read in this format, rather than after an hour
/// spent on the files before it.
pub fn check_files(sources: &[Source], options: &ReadOptions) -> anyhow::Result<()> {
    for source in sources {
        let Source::Path(path) = source else { continue };
        let content = match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
            // Opening a pipe may block, or take away what a writer has for it.
            Ok(meta) if !meta.is_file() => Ok(None),
            Ok(_) => content_of(path),
            Err(error) => Err(error),
        };
        let content = content.map_err(|error| anyhow::anyhow!("cannot open {source}: {error}"))?;
        if let Some(content) = content.filter(|content| !options.raw && !content.suits(&options.format)) {
            let error = ReadErrorKind::Content { input: source.to_string(), content };
            anyhow::bail!("{error}{}", remedy(&error));
        }
    }
    Ok(())
}

/// What to do about an error, to be said behind it.
pub fn remedy(error: &ReadErrorKind) -> String {
    match error {
        ReadErrorKind::Bad(record) => match record.reason {
            BadReason::Fraction { needed: Some(scale), .. } => {
                format!(" (--scale {scale} makes it whole; --on-error skip leaves it out)")
            }
            _ => " (--on-error skip leaves it out)".to_owned(),
        },
        ReadErrorKind::Content { input, content } => {
            format!(": {} (--raw counts its bytes as they are)", what_to_type(*content, input))
        }
        _ => String::new(),
    }
}

/// How to count what is in a file that cannot be read as it is.
fn what_to_type(content: Content, input: &str) -> String {
    let file = if input == Source::Stdin.to_string() { "FILE".to_owned() } else { quoted(input) };
    match content {
        Content::Xz => format!("type `xz -dc {file} | ucl count ...`"),
        Content::Bzip2 => format!("type `bzip2 -dc {file} | ucl count ...`"),
        Content::Lz4 => format!("type `lz4 -dc {file} | ucl count ...`"),
        Content::Lzip => format!("type `lzip -dc {file} | ucl count ...`"),
        Content::Zip => format!("type `unzip -p {file} | ucl count ...`"),
        Content::SevenZip => format!("type `7z x -so {file} | ucl count ...`"),
        Content::Parquet => "convert it to CSV; with DuckDB, type \
             `duckdb -csv -c \"FROM read_parquet('FILE')\" | ucl count --format csv:COLUMN ...`"
            .to_owned(),
        Content::Avro | Content::Arrow | Content::Sqlite => {
            "convert it to CSV, and count that with --format csv:COLUMN".to_owned()
        }
        Content::Capture => "count its packets with --format pcap:5tuple".to_owned(),
        Content::State => {
            format!("show its counts with `ucl top {file}`, or continue it with `ucl count --resume {file} INPUT`")
        }
    }
}

/// A file's name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-/+,:@%".contains(char);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// What has to be said about the reading beside its result.
pub fn notes(summary: &ReadSummary) {
    if let Some(header) = &summary.assumed_header {
        let (input, key) = (harmless(&header.input), harmless(&header.key));
        eprintln!(
            "ucl: note: the first row of {input} is taken for a header, with `{key}` in the key's column; --no-header counts \
             it, --header confirms it"
        );
    }
}
