//! `ucl reproduce`: reruns the paper's experiments.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use ucl_lab::MethodRegistry;
use ucl_lab::reproduce::{Event, Extent, Reproduction, Scope, SpecResult, docs};
use ucl_lab::specs::{self, Spec};

use crate::fail::{Usage, tell};
use crate::show;
use crate::spinner::Spinner;

/// Rerun the paper's experiments and write tables, figures and a report.
///
/// The result of each job is stored as soon as the job is done. A run that was stopped continues
/// where it was, and a complete one only writes the report again. The folder of --out gets
/// report.html, a folder of tables (.md, .csv) and figures (.svg) for each experiment, and a dated
/// file of all results in runs.
#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// Experiments to run, by name.
    #[arg(value_name = "NAME", value_parser = spec)]
    names: Vec<&'static Spec>,

    /// Run all experiments.
    #[arg(long, conflicts_with = "names")]
    all: bool,

    /// Use fewer budgets, seeds and epochs: all experiments take ten minutes on two cores.
    #[arg(long)]
    quick: bool,

    /// Use a few thousand generated items, only to test that everything runs.
    #[arg(long, hide = true, conflicts_with = "quick")]
    slice: bool,

    /// Folder with retail.dat, kosarak.dat and caida.pcap, or `.gz` of them [default: generated
    /// streams, which are labelled as such].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Folder for the results.
    #[arg(long, value_name = "DIR", default_value = "ucl-results")]
    out: PathBuf,

    /// Number of seeds to repeat each job with [default: 3, or 1 with --quick].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,

    /// Run all jobs again, including those with stored results.
    #[arg(long)]
    fresh: bool,

    /// Number of jobs to run at once; jobs that measure time run alone [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    workers: Option<u16>,

    /// Also store the results in this documentation folder, and write its results.md and figures.
    /// Without a NAME, only write results.md and the figures from the stored results.
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
            None => {
                Err(Usage("name an experiment or give --all; `ucl reproduce --help` lists the experiments".to_owned())
                    .into())
            }
        };
    }
    let extent = match (args.quick, args.slice) {
        (true, _) => Extent::Quick,
        (_, true) => Extent::Slice,
        _ => Extent::Full,
    };
    let workers = args.workers.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let registry = MethodRegistry::standard();
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
                let stored = if stored > 0 { format!(", {stored} already stored") } else { String::new() };
                tell(format_args!("{}: {} to run{stored}", spec.name, show::counted(jobs as u64, "job")));
                if !missing.is_empty() {
                    tell(format_args!(
                        "{}: these methods are not registered and were left out: {}",
                        spec.name,
                        missing.join(", ")
                    ));
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
                spinner.aside(|| tell(format_args!("failed: {}: {error}", outcome.job)));
            }
        }
    };
    let results = reproduction.run(&watch);
    spinner.clear();
    let results = results?;
    if let Some(dir) = &args.docs {
        docs::update(dir, &results).with_context(|| format!("cannot store the results in {}", dir.display()))?;
    }
    show::print(summary(&results, &args.out))?;
    let failed = results.iter().flat_map(|result| &result.outcomes).filter(|outcome| outcome.error.is_some()).count();
    if results.iter().all(|result| result.outcomes.iter().all(|outcome| outcome.error.is_some())) && failed > 0 {
        anyhow::bail!("every job failed");
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
    text + &format!("Report: {}\n", out.join("report.html").display())
}
