//! `ucl merge`: several saved states become one.

use std::path::{Path, PathBuf};

use ucl_sketch::MergeError;

use crate::count::resume::check_target;
use crate::fail::Usage;
use crate::show::{counted, print};
use crate::stored::{Difference, Stored};

/// Merge saved states into one that has counted what they all have.
///
/// For streams that were counted apart, on several machines or days, with the same options:
/// --format, --weight and --seed included (without --seed, every run has another one). Answers and
/// bounds are then those of all streams together. The states stay as they are, unless OUT is one of
/// them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What `ucl count --save` wrote, twice or more.
    #[arg(value_name = "STATE", num_args = 2.., required = true)]
    states: Vec<PathBuf>,

    /// Where the merged state goes: the old file or the new one, whole, whatever happens on the
    /// way.
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  ucl count monday.log --seed 7 --save monday.ucl; ucl count tuesday.log --seed 7 --save tuesday.ucl
  ucl merge monday.ucl tuesday.ucl -o both.ucl; ucl top both.ucl";

pub fn run(args: &Args) -> anyhow::Result<()> {
    check_target(&args.out)?;
    let (first, others) = args.states.split_first().expect("two or more");
    let mut sum = Stored::load(first)?;
    for path in others {
        let other = Stored::load(path)?;
        let refused = |why: String| refused(first, path, &why);
        if let Some(Difference { option, ours, theirs }) = sum.reading.difference(&other.reading) {
            let [ours, theirs] = [ours, theirs].map(|value| value.unwrap_or_else(|| "none".to_owned()));
            return Err(
                refused(format!("states with different --{option} cannot be merged: {ours} and {theirs}")).into()
            );
        }
        sum.sketch.merge(other.sketch).map_err(|error| match error {
            MergeError::Refused(difference) => refused(difference.to_string()).into(),
            other => anyhow::Error::from(other),
        })?;
    }
    let sketch = &mut sum.sketch;
    sketch.save(&args.out)?;
    let (states, items) = (counted(args.states.len() as u64, "state"), counted(sketch.items(), "item"));
    let keys = counted(sketch.query_view()?.keys() as u64, "known key");
    print(format!("merged {states} into {}: {items}, {keys}\n", args.out.display()))
}

fn refused(first: &Path, other: &Path, why: &str) -> Usage {
    Usage(format!("{} and {}: {why}", first.display(), other.display()))
}
