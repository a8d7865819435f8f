//! `ucl query`: single keys of a saved state.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use crate::count::answer::Row;
use crate::count::text;
use crate::fail::Usage;
use crate::key::{Key, each_line};
use crate::stored::{Reading, Stored, train_if_not_ready};

/// Ask a saved state for single keys.
///
/// Keys are written as `ucl count` prints them. A learned decoder whose window had not filled up is
/// trained on what there is before it answers, as `ucl count` does; the state stays as it is.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What `ucl count --save` wrote.
    #[arg(value_name = "STATE")]
    state: PathBuf,

    /// The keys; `-` for one a line from standard input.
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,

    /// Print one JSON object per key: key, estimate, lower, upper, source.
    ///
    /// For a key that is not valid UTF-8, key is null and key_hex has its bytes in hexadecimal.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ucl query log.ucl 10.0.0.1 10.0.0.2
  cut -f1 suspects.tsv | ucl query log.ucl - --json";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let Stored { mut sketch, reading: Reading { format, .. }, .. } = Stored::load(&args.state)?;
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
        out.write_all(text::queries(&rows).as_bytes())?;
    }
    Ok(out.flush()?)
}
