//! `ucl merge`: several saved states become one.

use std::path::{Path, PathBuf};

use ucl_sketch::MergeError;
use ucl_streams::{Format, PacketKey};

use crate::count::resume::check_target;
use crate::fail::Usage;
use crate::show::{counted, print};
use crate::stored::Stored;

/// Merge saved states into one that has counted what they all have.
///
/// For streams that were counted apart, on several machines or days, and alike: with the same options, the same --seed
/// included (a random one is another one every time). Answers and bounds are then those of all streams together. The states
/// stay as they are, unless OUT is one of them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What `ucl count --save` wrote, twice or more.
    #[arg(value_name = "STATE", num_args = 2.., required = true)]
    states: Vec<PathBuf>,

    /// Where the merged state goes: the old file or the new one, whole, whatever happens on the way.
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
        same_texts(&sum, &other).map_err(refused)?;
        sum.sketch.merge(other.sketch).map_err(|error| match error {
            MergeError::Refused(difference) => refused(difference.to_string()).into(),
            MergeError::Fault(fault) => anyhow::Error::from(fault),
        })?;
    }
    let sketch = &mut sum.sketch;
    sketch.save(&args.out)?;
    let (states, items) = (counted(args.states.len() as u64, "state"), counted(sketch.items(), "item"));
    let keys = counted(sketch.with_control(|control| control.registry().len()) as u64, "known key");
    print(format!("merged {states} into {}: {items}, {keys}\n", args.out.display()))
}

fn refused(first: &Path, other: &Path, why: &str) -> Usage {
    Usage(format!("{} and {}: {why}", first.display(), other.display()))
}

/// How keys are written, whatever they were read from.
fn key_style(format: &Format) -> String {
    match format {
        Format::Lines | Format::Field(_) | Format::Csv(_) | Format::Tsv(_) | Format::Jsonl(_) => "text".to_owned(),
        Format::Pcap(PacketKey::Source | PacketKey::Destination) => "addresses".to_owned(),
        Format::Pcap(PacketKey::SourcePort | PacketKey::DestinationPort) => "ports".to_owned(),
        Format::Fimi | Format::Records(_) | Format::Pcap(PacketKey::FiveTuple) => format.to_string(),
    }
}

/// Keys of one style only can be shown, and weights of one kind only add up.
fn same_texts(ours: &Stored, theirs: &Stored) -> Result<(), String> {
    let (a, b) = (&ours.format, &theirs.format);
    if key_style(a) != key_style(b) {
        return Err(format!("states whose keys are written differently cannot be merged: --format {a} and {b}"));
    }
    let weight = |stored: &Stored| stored.weight.as_ref().map_or("none".to_owned(), |weight| format!("'{weight}'"));
    if ours.weight.is_some() != theirs.weight.is_some() {
        let (a, b) = (weight(ours), weight(theirs));
        return Err(format!("states that count weights and items cannot be merged: --weight {a} and {b}"));
    }
    Ok(())
}
