//! The options by which every command that counts says what to read.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::NonZeroU64;

use clap::builder::{OsStringValueParser, TypedValueParser};
use ucl_streams::{
    BadReason, Content, Delimiter, Format, OnError, ReadErrorKind, ReadOptions, ReadSummary, Source, SpecError, Wanted,
    content_of, expand,
};

use crate::fail::{Usage, harmless, tell};
use crate::infer::{Inferred, infer};
use crate::show::counted;

/// Options of all commands that read inputs.
#[derive(Clone, clap::Args)]
pub struct InputArgs {
    /// Files, folders, patterns such as 'logs/*.gz', `-` for standard input (the default), or
    /// generators.
    ///
    /// Inputs are read in the given order. gzip, zstd, xz and bzip2 are unpacked; the content
    /// decides, not the name. A folder stands for all files in it and below, in order of their
    /// names. Hidden files are left out, and so are files that the format cannot read, with a note.
    /// Generators need no format: `zipf:SKEW[:ITEMS[:KEYS]]` makes numbers, `caida-like[:PACKETS]`
    /// makes five-tuples.
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new().try_map(source))]
    pub inputs: Vec<Source>,

    /// Key of each record: lines, field:N, csv:COLUMN, tsv:COLUMN, jsonl:PATH, regex:PATTERN,
    /// combined:FIELD, pcap:PART, parquet:COLUMN, fimi, records:BYTES.
    ///
    /// lines: the whole line (the default). An empty line is an item with the empty key, printed as
    /// "". field:N: the N-th column, as awk counts: columns are separated by blanks and tabs.
    /// csv:COLUMN, tsv:COLUMN: a column by its header name or number. A field in double quotes may
    /// hold delimiters and newlines; a quote inside of it is doubled. jsonl:PATH: a string or
    /// number in one JSON document per line, as in jsonl:user.id or jsonl:/user/id. regex:PATTERN:
    /// the group named `key`, or the first group, or the whole match; lines without a match are not
    /// counted. combined:FIELD: the logs of Apache and nginx, with the fields ip, user, time, day,
    /// hour, minute, request, method, url, path, status, bytes, referer and agent. pcap:PART:
    /// packet captures (pcap, pcapng), with the parts 5tuple, flow (both directions as one), src,
    /// dst, src/24 or src/24/64 (networks, with the bits of IPv4 and IPv6 addresses), dst/24,
    /// srcport, dstport and proto. parquet:COLUMN: Parquet files, in builds with the feature
    /// `parquet`. fimi: every token between blanks. records:BYTES: binary records of this size.
    ///
    /// Several places, separated by commas, make one key: csv:user,country, field:1,9,
    /// pcap:src,dstport. It is printed with commas between its parts, quoted as in CSV.
    ///
    /// Without --format, captures are counted by pcap:5tuple, and tables with one column by it. Of
    /// other files that are named .csv, .tsv or .jsonl, the columns are listed.
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// Add up a weight instead of counting items: a column, a field number, a JSON path, a group of
    /// the regex, or `bytes` for captures and web logs.
    #[arg(short, long, value_name = "WHERE")]
    pub weight: Option<String>,

    /// Multiply every weight by N: with --scale 100, a weight of 12.34 counts as 1234.
    ///
    /// The result is exact. A weight that is not whole after scaling is a bad record. A record of
    /// weight 0 is not counted. The sum of all weights is at most 9223372036854775807 (2^63 - 1).
    #[arg(long, value_name = "N", value_parser = scale)]
    pub scale: Option<NonZeroU64>,

    /// Treat the first row of a csv or tsv input as a header.
    ///
    /// Without --header and --no-header: if a column is given by name, the first row is a header.
    /// If all columns are given by number, the first row is taken for a header as well, and a note
    /// says so, unless it has a number in the weight's column.
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,

    /// Treat the first row of a csv or tsv input as data.
    #[arg(long)]
    pub no_header: bool,

    /// Character between columns [default: a comma for csv, a tab for tsv, blanks for field].
    ///
    /// One ASCII character, or `tab`. With it, field:N splits at every single one, as cut does.
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<Delimiter>,

    /// Treat quotes in csv and tsv inputs as ordinary characters.
    #[arg(long)]
    pub no_quotes: bool,

    /// Read files as they are: unpack nothing, and accept any content.
    #[arg(long)]
    pub raw: bool,

    /// Action on a bad record.
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    pub on_error: Action,

    /// Stop reading after N items.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Stop reading, answer for the records before it, and fail.
    Stop,
    /// Skip it, and report how many were skipped.
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
    /// The inputs, standard input if none is named. Folders and patterns become files.
    pub fn sources(&self) -> anyhow::Result<Vec<Source>> {
        if self.inputs.is_empty() {
            if std::io::stdin().is_terminal() {
                let what =
                    "nothing to read: name a file or a folder, pipe something in, or type `-` to enter it by hand";
                return Err(Usage(what.to_owned()).into());
            }
            return Ok(vec![Source::Stdin]);
        }
        let wanted = match &self.format {
            _ if self.raw => Wanted::All,
            Some(format) => Wanted::For(format),
            None => Wanted::Text,
        };
        let found = expand(&self.inputs, wanted)?;
        if let [(first, why), others @ ..] = &found.skipped[..] {
            let first = harmless(&first.display().to_string());
            let more = if others.is_empty() { String::new() } else { format!("; and {} more", others.len()) };
            let read = counted(found.sources.len() as u64, "file");
            tell(format_args!("note: {read} to read, {} skipped: {first} {why}{more}", found.skipped.len()));
        }
        Ok(found.sources)
    }

    /// Returns the options for reading these sources. Generators bring their own format; all keys
    /// must be of one.
    pub fn read_options(&self, sources: &[Source], seed: u64) -> Result<ReadOptions, Usage> {
        let format = self.common_format(sources)?;
        let weight = self.weight.as_deref().map(|text| format.parse_weight(text)).transpose();
        let weight = weight.map_err(Usage::because)?;
        if self.scale.is_some() && (weight.is_none() || matches!(format, Format::Pcap(_))) {
            return Err(Usage("--scale multiplies weights from the input: add --weight WHERE".to_owned()));
        }
        let header = self.header_row();
        if header.is_some() && !matches!(format, Format::Csv(_) | Format::Tsv(_)) {
            return Err(Usage(format!("--header and --no-header are for csv and tsv, not for {format}")));
        }
        if self.no_quotes && !matches!(format, Format::Csv(_) | Format::Tsv(_)) {
            return Err(Usage(format!("--no-quotes is for csv and tsv, not for {format}")));
        }
        let options = ReadOptions {
            weight,
            header,
            delimiter: self.delimiter,
            literal_quotes: self.no_quotes,
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

    /// Returns true if the first row of a table is a header, and `None` if that was not said.
    pub fn header_row(&self) -> Option<bool> {
        (self.header || self.no_header).then_some(self.header)
    }

    fn common_format(&self, sources: &[Source]) -> Result<Format, Usage> {
        let own = |source: &Source| source.own_format();
        let first = sources.iter().find_map(own);
        let format = match (&self.format, &first) {
            (Some(given), _) => given.clone(),
            (None, Some(own)) if sources.iter().all(|source| source.own_format().is_some()) => own.clone(),
            (None, None) if !self.raw => match infer(sources)? {
                Some(Inferred { format, note }) => {
                    tell(format_args!("note: {note}"));
                    format
                }
                None => Format::default(),
            },
            (None, _) => Format::default(),
        };
        match sources.iter().find(|source| own(source).is_some_and(|own| own != format)) {
            None => Ok(format),
            Some(generator) => Err(Usage(format!(
                "{generator} makes keys of format {}, which cannot be counted together with keys of format {format}",
                own(generator).unwrap_or_default()
            ))),
        }
    }
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

/// Returns the advice that is printed behind an error.
pub fn remedy(error: &ReadErrorKind) -> String {
    match error {
        ReadErrorKind::Bad(record) => match record.reason {
            BadReason::Fraction { needed: Some(scale), .. } => {
                format!(" (--scale {scale} makes it whole, --on-error skip skips it)")
            }
            BadReason::UnclosedQuote => {
                " (--no-quotes reads quotes as ordinary characters, --on-error skip skips it)".to_owned()
            }
            _ => " (--on-error skip skips it)".to_owned(),
        },
        ReadErrorKind::Content { input, content } => {
            format!(": {} (--raw reads its bytes as they are)", what_to_type(*content, input))
        }
        _ => String::new(),
    }
}

/// Returns the command that counts a file which cannot be read as it is.
fn what_to_type(content: Content, input: &str) -> String {
    let file = if input == Source::Stdin.to_string() { "FILE".to_owned() } else { quoted(input) };
    match content {
        Content::Xz | Content::Bzip2 => "it is compressed twice: unpack it once, and count the result".to_owned(),
        Content::Lz4 => format!("type `lz4 -dc {file} | ucl count ...`"),
        Content::Lzip => format!("type `lzip -dc {file} | ucl count ...`"),
        Content::Zip => format!("type `unzip -p {file} | ucl count ...`"),
        Content::SevenZip => format!("type `7z x -so {file} | ucl count ...`"),
        Content::Parquet if cfg!(feature = "parquet") => {
            format!(
                "type `ucl count {file} --format parquet:COLUMN` (it must be a file, and not compressed as a whole)"
            )
        }
        Content::Parquet => format!(
            "this build cannot read it; type `cargo install --path crates/cli --features parquet`, then \
             `ucl count {file} --format parquet:COLUMN`; or convert it to CSV"
        ),
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

/// Prints the notes about reading that belong beside its result.
pub fn notes(summary: &ReadSummary) {
    if let Some(header) = &summary.assumed_header {
        let input = harmless(&header.input);
        let key = harmless(&header.key);
        tell(format_args!(
            "note: the first row of {input} is taken for a header, with `{key}` in the key's column; add --no-header if \
             it is data, --header to confirm"
        ));
    }
}
