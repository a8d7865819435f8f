//! Every known key into a file.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use ucl_sketch::QueryView;
use ucl_streams::table::{Column, Kind as Values, Table, Value};
use ucl_streams::{Format, Source};

use crate::fail::Usage;
use crate::key::{Key, KeyData};
use crate::replace;

/// A file, in the format that its name asks for; or standard output.
#[derive(Clone, Debug)]
pub struct Target {
    /// `None` for standard output.
    path: Option<PathBuf>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Csv,
    Jsonl,
    Parquet,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        if text == "-" {
            return Ok(Self { path: None, kind: Kind::Csv });
        }
        let to_stdout = path.file_stem().is_some_and(|stem| stem == "-") && path.components().count() == 1;
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        let kind = match extension.as_deref() {
            Some("csv") => Kind::Csv,
            Some("jsonl") => Kind::Jsonl,
            Some("parquet") => Kind::Parquet,
            _ => return Err("the name must end in .csv, .jsonl or .parquet; `-` prints CSV".to_owned()),
        };
        Ok(Self { path: (!to_stdout).then_some(path), kind })
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
    /// Every known key as CSV to standard output.
    pub const STDOUT: Self = Self { path: None, kind: Kind::Csv };

    /// The file; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Fails now if the file cannot be written, rather than after all has been counted.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            if self.kind == Kind::Parquet && std::io::stdout().is_terminal() {
                anyhow::bail!("Parquet is not for a terminal: redirect the output to a file");
            }
            return Ok(());
        };
        replace::check_folder(path)?;
        replace::check(path).map_err(|error| self.cannot_write(error))
    }

    fn cannot_write(&self, error: impl std::fmt::Display) -> anyhow::Error {
        let path = self.path.as_deref().unwrap_or(Path::new("standard output"));
        anyhow::anyhow!("cannot write {}: {error}", path.display())
    }

    /// Writes all known keys, largest estimate first. On a terminal they are escaped, since it
    /// might obey a key.
    pub fn write(&self, view: &QueryView, format: &Format) -> anyhow::Result<()> {
        let Some(path) = &self.path else {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            let escaped = std::io::stdout().is_terminal();
            let write = if escaped { |key: Key| KeyData(key.shown.into_bytes()) } else { Key::into_data };
            self.fill(records(view, format, write), &mut out)?;
            return Ok(out.flush()?);
        };
        let records = records(view, format, Key::into_data);
        replace::write(path, |out| self.fill(records, out)).map_err(|error| self.cannot_write(error))
    }

    fn fill(&self, records: impl Iterator<Item = Record>, out: &mut dyn Write) -> anyhow::Result<()> {
        match self.kind {
            Kind::Csv => csv(records, out),
            Kind::Jsonl => jsonl(records, out),
            Kind::Parquet => parquet(&records.collect::<Vec<_>>(), out),
        }
    }
}

/// Fails now if a file cannot be written, rather than after all has been counted; or if it would
/// replace what is read, or the other one.
pub fn check_outputs(target: Option<&Target>, save: Option<&Path>, sources: &[Source]) -> anyhow::Result<()> {
    let out = target.and_then(Target::path);
    let read: Vec<&Path> = sources
        .iter()
        .filter_map(|source| if let Source::Path(path) = source { Some(&**path) } else { None })
        .collect();
    for output in out.into_iter().chain(save) {
        if read.iter().any(|input| is_same_file(input, output)) {
            let output = output.display();
            return Err(Usage(format!("{output} is an input and would be overwritten: choose another name")).into());
        }
    }
    if let (Some(out), Some(save)) = (out, save)
        && (out == save || is_same_file(out, save))
    {
        return Err(Usage(format!("--out and --save are both {}", out.display())).into());
    }
    target.map_or(Ok(()), Target::check)?;
    save.map_or(Ok(()), replace::check_state)
}

/// Returns true if both paths exist and are one file. (Terminals, pipes and the like can be read
/// and written.)
fn is_same_file(a: &Path, b: &Path) -> bool {
    a.is_file() && std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
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

/// The keys are a column of text only if all of them are: readers refuse text that is not valid
/// UTF-8.
fn parquet(records: &[Record], out: &mut dyn Write) -> anyhow::Result<()> {
    let is_text = records.iter().all(|record| std::str::from_utf8(&record.key.0).is_ok());
    let count = |name| Column { name, kind: Values::Count };
    let key = Column { name: "key", kind: if is_text { Values::Text } else { Values::Bytes } };
    let source = Column { name: "source", kind: Values::Text };
    let mut table = Table::new(out, &[key, count("estimate"), count("lower"), count("upper"), source])?;
    for Record { key, estimate, lower, upper, source } in records {
        let [estimate, lower, upper] = [*estimate, *lower, *upper].map(Value::Number);
        table.row(&[Value::Bytes(&key.0), estimate, lower, upper, Value::Bytes(source.as_bytes())])?;
    }
    table.finish()?;
    Ok(())
}
