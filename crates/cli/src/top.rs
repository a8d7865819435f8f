//! `ucl top`: the most frequent keys of a saved state.

use std::fmt::Write;
use std::path::PathBuf;

use crate::key::Key;
use crate::present::{self, Row};
use crate::stored::{Stored, train_if_not_ready};

/// Show the most frequent keys of a saved state.
#[derive(clap::Args)]
pub struct Args {
    /// State file, written by `ucl count --save`.
    #[arg(value_name = "STATE")]
    state: PathBuf,

    /// Number of keys to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Print one JSON object per key: key, estimate, lower, upper, source.
    ///
    /// For a key that is not valid UTF-8, key is null and key_hex has its bytes in hexadecimal.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let Stored { mut sketch, reading, .. } = Stored::load(&args.state)?;
    train_if_not_ready(&mut sketch)?;
    let view = sketch.query_view()?;
    let row = |(id, answer)| Row::new(Key::known(&view, &reading.format, id), answer);
    let rows: Vec<Row> = view.top(args.top).into_iter().map(row).collect();
    if !args.json {
        return crate::show::print(present::top(&rows, view.weight(), false));
    }
    let mut text = String::new();
    for row in &rows {
        writeln!(text, "{}", serde_json::to_string(row)?)?;
    }
    crate::show::print(text)
}
