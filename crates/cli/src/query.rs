//! `ucl query`: single keys of a saved state or a collector.

use std::ffi::OsString;
use std::io::Write;

use crate::fail::Usage;
use crate::key::{Key, each_line};
use crate::present::{Row, queries};
use crate::remote::{self, Place};
use crate::stored::{Reading, Stored, train_if_not_ready};

/// Show the counts of single keys in a saved state or a collector.
///
/// Keys are written as `ucl count` prints them. A learned decoder that has not been trained yet is
/// trained before it answers. The state file does not change.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// State file, written by `ucl count --save`, or address of a collector (http://HOST:PORT).
    #[arg(value_name = "STATE|URL")]
    place: OsString,

    /// Keys to look up; `-` reads them from standard input, one per line.
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,

    /// Print one JSON object per key: key, estimate, lower, upper, source.
    ///
    /// For a key that is not valid UTF-8, key is null and key_hex has its bytes in hexadecimal.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    at: remote::At,

    #[command(flatten)]
    range: remote::Range,
}

const EXAMPLES: &str = "\
Examples:
  ucl query log.ucl 10.0.0.1 10.0.0.2
  ucl query http://127.0.0.1:7070 /index.html --last 1h
  cut -f1 suspects.tsv | ucl query log.ucl - --json";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let path = match Place::from(&args.place) {
        Place::Collector(address) => return args.at.query(&address, &args.keys, &args.range, args.json),
        Place::File(path) => path,
    };
    args.range.refuse_for_file()?;
    let Stored { mut sketch, reading: Reading { format, .. }, .. } = Stored::load(&path)?;
    train_if_not_ready(&mut sketch)?;
    let view = sketch.query_view()?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut rows = Vec::new();
    let mut answer = |key: Vec<u8>| -> anyhow::Result<()> {
        let row = Row::new(Key::new(&format, &key), view.estimate(&key));
        if args.json {
            serde_json::to_writer(&mut out, &row)?;
            out.write_all(b"\n")?;
        } else {
            rows.push(row);
        }
        Ok(())
    };
    for key in &args.keys {
        if key == "-" {
            each_line(std::io::stdin().lock(), "standard input", &format, &mut answer)?;
        } else {
            answer(format.parse_key_bytes(key.as_encoded_bytes()).map_err(Usage::because)?)?;
        }
    }
    if !args.json {
        out.write_all(queries(&rows).as_bytes())?;
    }
    Ok(out.flush()?)
}
