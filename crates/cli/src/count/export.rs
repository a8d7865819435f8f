//! Every known key into a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use ucl_sketch::QueryView;
use ucl_streams::Format;

use super::answer::shown_key;
use super::parquet;

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
    pub key: String,
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
    pub source: &'static str,
}

fn records(view: &QueryView, format: &Format) -> impl Iterator<Item = Record> {
    view.top(usize::MAX).into_iter().map(move |(id, answer)| Record {
        key: shown_key(view, format, id),
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
        let opened = File::options().append(true).create(true).open(&self.path);
        opened.map(drop).map_err(|error| self.cannot_write(error))
    }

    fn cannot_write(&self, error: impl std::fmt::Display) -> anyhow::Error {
        anyhow::anyhow!("cannot write {}: {error}", self.path.display())
    }

    /// Writes all known keys, largest estimate first.
    pub fn write(&self, view: &QueryView, format: &Format) -> anyhow::Result<()> {
        let written = || -> anyhow::Result<()> {
            let mut file = BufWriter::new(File::create(&self.path)?);
            match self.kind {
                Kind::Csv => csv(view, format, &mut file)?,
                Kind::Jsonl => {
                    for record in records(view, format) {
                        serde_json::to_writer(&mut file, &record)?;
                        file.write_all(b"\n")?;
                    }
                }
                Kind::Parquet => parquet::write(records(view, format), &mut file)?,
            }
            Ok(file.flush()?)
        };
        written().map_err(|error| self.cannot_write(error))
    }
}

/// All known keys as CSV with a header row, largest estimate first.
pub fn csv(view: &QueryView, format: &Format, out: impl Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    if view.keys() == 0 {
        // The writer takes the header from the first record.
        writer.write_record(["key", "estimate", "lower", "upper", "source"])?;
    }
    for record in records(view, format) {
        writer.serialize(record)?;
    }
    Ok(writer.flush()?)
}
