//! `ucl top`: the most frequent keys of a saved state or a collector.

use std::ffi::OsString;

use crate::key::Key;
use crate::present::{self, Row};
use crate::remote::{self, Place};
use crate::stored::{Stored, train_if_not_ready};

/// Show the most frequent keys of a saved state or a collector.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// State file, written by `ucl count --save`, or address of a collector (http://HOST:PORT).
    #[arg(value_name = "STATE|URL")]
    place: OsString,

    /// Number of keys to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    top: usize,

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
  ucl top log.ucl
  ucl top http://127.0.0.1:7070 --stream 'web-*' --last 5m";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let path = match Place::from(&args.place) {
        Place::Collector(address) => return args.at.top(&address, args.top, &args.range, args.json),
        Place::File(path) => path,
    };
    args.range.refuse_for_file()?;
    let Stored { mut sketch, reading, .. } = Stored::load(&path)?;
    train_if_not_ready(&mut sketch)?;
    let view = sketch.query_view()?;
    let row = |(id, answer)| Row::new(Key::known(&view, &reading.format, id), answer);
    let rows: Vec<Row> = view.top(args.top).into_iter().map(row).collect();
    if !args.json {
        return crate::show::print(present::top(&rows, view.weight(), false));
    }
    crate::show::print(present::json_lines(&rows)?)
}
