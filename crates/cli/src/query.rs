//! `ucl query`: single keys of a saved state.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use crate::count::answer::Row;
use crate::count::text;
use crate::fail::Usage;
use crate::stored::{Stored, train_if_not_ready};

/// Ask a saved state for single keys.
///
/// Keys are written as `ucl count` prints them. A learned decoder whose window had not filled up is trained on what there
/// is before it answers, as `ucl count` does; the state stays as it is.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What `ucl count --save` wrote.
    #[arg(value_name = "STATE")]
    state: PathBuf,

    /// The keys; `-` for one a line from standard input.
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,

    /// Print one JSON object per key: key, estimate, lower, upper, source.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ucl query log.ucl 10.0.0.1 10.0.0.2
  cut -f1 suspects.tsv | ucl query log.ucl - --json";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let Stored { mut sketch, format, .. } = Stored::load(&args.state)?;
    train_if_not_ready(&mut sketch)?;
    let view = sketch.view()?;
    let row = |text: &str| -> Result<Row, Usage> {
        let key = format.parse_key(text).map_err(Usage::because)?;
        Ok(Row::new(format.key_display(&key), view.estimate(&key)))
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut rows = Vec::new();
    let mut answer = |row: Row| -> anyhow::Result<()> {
        if args.json {
            serde_json::to_writer(&mut out, &row)?;
            out.write_all(b"\n")?;
        } else {
            rows.push(row);
        }
        Ok(())
    };
    for key in &args.keys {
        if key != "-" {
            answer(row(key)?)?;
            continue;
        }
        for (line, text) in std::io::stdin().lock().lines().enumerate() {
            let text = text.map_err(|error| anyhow::anyhow!("standard input, line {}: {error}", line + 1))?;
            let text = text.strip_suffix('\r').unwrap_or(&text);
            if !text.is_empty() {
                let row = row(text).map_err(|error| Usage(format!("standard input, line {}: {error}", line + 1)))?;
                answer(row)?;
            }
        }
    }
    if !args.json {
        out.write_all(text::queries(&rows).as_bytes())?;
    }
    Ok(out.flush()?)
}
