//! Every known key into a file.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use ucl_sketch::QueryView;
use ucl_streams::Format;

use super::parquet;
use super::resume::check_target;
use crate::key::{Key, KeyData};
use crate::replace;

/// A file, in the format that its name asks for.
#[derive(Clone, Debug)]
pub struct Target {
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Csv,
    Jsonl,
    Parquet,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        let kind = match extension.as_deref() {
            Some("csv") => Kind::Csv,
            Some("jsonl") => Kind::Jsonl,
            Some("parquet") => Kind::Parquet,
            _ => return Err("the name must end in .csv, .jsonl or .parquet".to_owned()),
        };
        Ok(Self { path, kind })
    }
}

/// One key, in all formats.
#[derive(Serialize)]
pub struct Record {
    #[serde(flatten)]
    pub key: KeyData,
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
    pub source: &'static str,
}

/// All known keys, largest estimate first; `write` says how a key is written.
fn records<'v>(
    view: &'v QueryView,
    format: &'v Format,
    write: fn(Key) -> KeyData,
) -> impl Iterator<Item = Record> + 'v {
    view.top(usize::MAX).into_iter().map(move |(id, answer)| Record {
        key: write(Key::known(view, format, id)),
        estimate: answer.estimate,
        lower: answer.lower,
        upper: answer.upper,
        source: answer.source.name(),
    })
}

impl Target {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails now if the file cannot be written, rather than after all has been counted.
    pub fn check(&self) -> anyhow::Result<()> {
        check_target(&self.path)?;
        replace::check(&self.path).map_err(|error| self.cannot_write(error))
    }

    fn cannot_write(&self, error: impl std::fmt::Display) -> anyhow::Error {
        anyhow::anyhow!("cannot write {}: {error}", self.path.display())
    }

    /// Writes all known keys, largest estimate first.
    pub fn write(&self, view: &QueryView, format: &Format) -> anyhow::Result<()> {
        let records = records(view, format, Key::into_data);
        let written = replace::write(&self.path, |out| match self.kind {
            Kind::Csv => csv(records, out),
            Kind::Jsonl => jsonl(records, out),
            Kind::Parquet => Ok(parquet::write(records.collect(), out)?),
        });
        written.map_err(|error| self.cannot_write(error))
    }
}

/// Prints all known keys as CSV, largest estimate first; escaped if this is for a terminal, which
/// might obey a key.
pub fn print(view: &QueryView, format: &Format) -> anyhow::Result<()> {
    let out = std::io::stdout().lock();
    let write = if out.is_terminal() { |key: Key| KeyData(key.shown.into_bytes()) } else { Key::into_data };
    csv(records(view, format, write), out)
}

/// Quotes as RFC 4180 has it, and leaves bytes as they are.
fn csv(records: impl Iterator<Item = Record>, out: impl Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(["key", "estimate", "lower", "upper", "source"])?;
    for Record { key, estimate, lower, upper, source } in records {
        let [estimate, lower, upper] = [estimate, lower, upper].map(|count| count.to_string());
        writer.write_record([
            &key.0[..],
            estimate.as_bytes(),
            lower.as_bytes(),
            upper.as_bytes(),
            source.as_bytes(),
        ])?;
    }
    Ok(writer.flush()?)
}

fn jsonl(records: impl Iterator<Item = Record>, out: &mut dyn Write) -> anyhow::Result<()> {
    for record in records {
        serde_json::to_writer(&mut *out, &record)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
