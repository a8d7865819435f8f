//! `ucl reproduce`: the paper's experiments, rerun.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use ucl_lab::Registry;
use ucl_lab::reproduce::{Event, Extent, Reproduction, Scope, SpecResult, docs};
use ucl_lab::specs::{self, Spec};

use crate::fail::Usage;
use crate::progress::Spinner;
use crate::show;

/// Rerun the paper's experiments: tables, figures and a report.
///
/// What a job finds is stored as soon as it is done: a run that was stopped goes on where it was,
/// and a second one only draws. Results go to OUT: report.html, a folder of tables (.md, .csv) and
/// figures (.svg) for each experiment, and one dated file of everything under runs.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The experiments by name.
    #[arg(value_name = "NAME", value_parser = spec)]
    names: Vec<&'static Spec>,

    /// All of them.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// Fewer budgets, seeds and epochs: all experiments in ten minutes on two cores.
    #[arg(long)]
    quick: bool,

    /// A few generated thousand items: only whether it runs.
    #[arg(long, hide = true, conflicts_with = "quick")]
    slice: bool,

    /// Where retail.dat, kosarak.dat and caida.pcap are; `.gz` too [default: generated stand-ins,
    /// labelled so].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Where results go.
    #[arg(long, value_name = "DIR", default_value = "ucl-results")]
    out: PathBuf,

    /// Repeat with so many seeds [default: 3, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,

    /// Measure everything again, also what is stored already.
    #[arg(long)]
    fresh: bool,

    /// Jobs side by side; those that measure time run alone [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: Option<u16>,

    /// Keep the results in this documentation folder too, and write its results.md and figures;
    /// without a NAME only the latter.
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
}

fn after_help() -> String {
    let longest = specs::ALL.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
    let lines = specs::ALL.map(|spec| format!("  {:longest$}  {}", spec.name, spec.title));
    format!(
        "Experiments:\n{}\n\nExamples:\n  ucl reproduce --all --quick\n  ucl reproduce frontier accuracy-real --data-dir data --seeds 3",
        lines.join("\n")
    )
}

fn spec(name: &str) -> Result<&'static Spec, String> {
    specs::find(name).map_err(|error| error.to_string())
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let specs = if args.all { specs::ALL.to_vec() } else { args.names.clone() };
    if specs.is_empty() {
        return match &args.docs {
            Some(dir) => Ok(docs::update(dir, &[])?),
            None => Err(Usage("name an experiment, or say --all; `ucl reproduce --help` lists them".to_owned()).into()),
        };
    }
    let extent = match (args.quick, args.slice) {
        (true, _) => Extent::Quick,
        (_, true) => Extent::Slice,
        _ => Extent::Full,
    };
    let workers = args.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let registry = Registry::standard();
    let reproduction = Reproduction {
        registry: &registry,
        specs,
        scope: Scope::new(extent, args.seeds),
        data_dir: args.data_dir.clone(),
        out: args.out.clone(),
        resume: !args.fresh,
        workers,
    };
    let spinner = Spinner::new();
    let (total, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let watch = |event: Event<'_>| match event {
        Event::Begin { spec, jobs, done: stored, missing } => {
            total.store(jobs, Ordering::Relaxed);
            done.store(0, Ordering::Relaxed);
            spinner.aside(|| {
                let stored = if stored > 0 { format!(", {stored} stored already") } else { String::new() };
                eprintln!("ucl: {}: {} to do{stored}", spec.name, show::counted(jobs as u64, "job"));
                if !missing.is_empty() {
                    eprintln!("ucl: {}: left out, not registered: {}", spec.name, missing.join(", "));
                }
            });
        }
        Event::Start { spec, job } => {
            let (done, total) = (done.load(Ordering::Relaxed) + 1, total.load(Ordering::Relaxed));
            spinner.say(format!("{} {done} of {total}: {job}", spec.name));
        }
        Event::Done { outcome } => {
            done.fetch_add(1, Ordering::Relaxed);
            if let Some(error) = &outcome.error {
                spinner.aside(|| eprintln!("ucl: failed: {}: {error}", outcome.job));
            }
        }
    };
    let results = reproduction.run(&watch);
    spinner.clear();
    let results = results?;
    if let Some(dir) = &args.docs {
        docs::update(dir, &results).with_context(|| format!("cannot keep the results in {}", dir.display()))?;
    }
    show::print(summary(&results, &args.out))?;
    let failed = results.iter().flat_map(|result| &result.outcomes).filter(|outcome| outcome.error.is_some()).count();
    if results.iter().all(|result| result.outcomes.iter().all(|outcome| outcome.error.is_some())) && failed > 0 {
        anyhow::bail!("no job could be done");
    }
    Ok(())
}

fn summary(results: &[SpecResult], out: &std::path::Path) -> String {
    let mut text = String::new();
    for result in results {
        let (jobs, seconds) =
            (result.outcomes.len(), result.outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>());
        text += &format!("{}: {}, {seconds:.0} s\n", result.spec.name, show::counted(jobs as u64, "job"));
        for data in result.data.iter().filter(|data| !data.genuine) {
            text += &format!("  {}: {}\n", data.dataset, data.about);
        }
    }
    text + &format!("The report: {}\n", out.join("report.html").display())
}
