//! `ucl merge`: several saved states become one.

use std::path::{Path, PathBuf};

use ucl_sketch::MergeError;

use crate::fail::Usage;
use crate::replace::check_folder;
use crate::show::{counted, print};
use crate::stored::{Difference, Stored};

/// Merge saved states: the result has the counts of all of them.
///
/// For streams that were counted on several machines or days. All states must have been made with
/// the same options, including --format, --weight and --seed (without --seed, every run draws
/// another one). The input files do not change, unless OUT is one of them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// State files, written by `ucl count --save`; at least two.
    #[arg(value_name = "STATE", num_args = 2.., required = true)]
    states: Vec<PathBuf>,

    /// File for the merged state. An old file is replaced only when the new one is complete.
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  ucl count monday.log --seed 7 --save monday.ucl; ucl count tuesday.log --seed 7 --save tuesday.ucl
  ucl merge monday.ucl tuesday.ucl -o both.ucl; ucl top both.ucl";

pub fn run(args: &Args) -> anyhow::Result<()> {
    check_folder(&args.out)?;
    let (first, others) = args.states.split_first().expect("two or more");
    let mut sum = Stored::load(first)?;
    for path in others {
        let other = Stored::load(path)?;
        let refused = |why: String| refused(first, path, &why);
        if let Some(Difference { option, ours, theirs }) = sum.reading.difference(&other.reading) {
            let [ours, theirs] = [ours, theirs].map(|value| value.unwrap_or_else(|| "none".to_owned()));
            return Err(refused(format!(
                "the states were made with different --{option}: {ours} and {theirs}; count again with one of them"
            ))
            .into());
        }
        sum.sketch.merge(other.sketch).map_err(|error| match error {
            MergeError::Refused(difference) => refused(difference.to_string()).into(),
            other => anyhow::Error::from(other),
        })?;
    }
    let sketch = &mut sum.sketch;
    sketch.save(&args.out)?;
    let states = counted(args.states.len() as u64, "state");
    let items = counted(sketch.items(), "item");
    let keys = counted(sketch.query_view()?.keys() as u64, "known key");
    print(format!("merged {states} into {}: {items}, {keys}\n", args.out.display()))
}

fn refused(first: &Path, other: &Path, why: &str) -> Usage {
    Usage(format!("{} and {}: {why}", first.display(), other.display()))
}
