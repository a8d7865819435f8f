//! The options by which every command that counts says what to read.

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal;

use clap::builder::{OsStringValueParser, TypedValueParser};
use ucl_streams::{Format, OnError, ReadOptions, Source, SpecError};

use crate::fail::Usage;

/// What to read, and how.
#[derive(Clone, clap::Args)]
pub struct InputArgs {
    /// Files in order, `-` for standard input (the default), or generators.
    ///
    /// Files may be plain, gzip or zstd; the content tells. Generators need no format:
    /// zipf:SKEW[:ITEMS[:KEYS]] makes numbers, caida-like[:PACKETS] five-tuples.
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new().try_map(source))]
    pub inputs: Vec<Source>,

    /// Where the key of a record is: lines, field:N, csv:COLUMN, tsv:COLUMN, jsonl:POINTER, fimi, records:BYTES, pcap.
    ///
    /// lines: the whole line (the default). field:N: the N-th blank-separated column, as awk counts.
    /// csv:COLUMN and tsv:COLUMN: a column by header name or number. jsonl:POINTER: as in jsonl:/user/id.
    /// fimi: every blank-separated token. records:BYTES: fixed-size binary. pcap and
    /// pcap:5tuple|src|dst|srcport|dstport: captures, pcapng too.
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// Sum a weight instead of counting 1: a column, a field number, a JSON pointer, or `bytes` for captures.
    #[arg(short, long, value_name = "WHERE")]
    pub weight: Option<String>,

    /// What to do about bad records.
    #[arg(long, value_name = "ACTION", default_value = "stop")]
    pub on_error: Action,

    /// Stop reading after N items.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Fail at the first one.
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
        Ok(ReadOptions {
            weight: weight.map_err(Usage::because)?,
            format,
            on_error: self.on_error.into(),
            limit: self.limit,
            seed,
            ..ReadOptions::default()
        })
    }

    fn common_format(&self, sources: &[Source]) -> Result<Format, Usage> {
        let own = |source: &Source| source.own_format();
        let first = sources.iter().find_map(own);
        let format = match (&self.format, &first) {
            (Some(given), _) => given.clone(),
            (None, Some(own)) if sources.iter().all(|source| source.own_format().is_some()) => own.clone(),
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

/// Fails now for a file that cannot be opened, rather than after an hour spent on the files before it.
pub fn check_files(sources: &[Source]) -> anyhow::Result<()> {
    for source in sources {
        let Source::Path(path) = source else { continue };
        let opened = match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
            // Opening a pipe may block, or take away what a writer has for it.
            Ok(meta) if !meta.is_file() => Ok(()),
            Ok(_) => File::open(path).map(drop),
            Err(error) => Err(error),
        };
        opened.map_err(|error| anyhow::anyhow!("cannot open {source}: {error}"))?;
    }
    Ok(())
}
