//! Writes `docs/results.md` from stored results, and checks that it is up to date.
//!
//! A run with `--docs DIR` keeps what it measured in `DIR/results/SPEC.json`, and writes
//! `DIR/results.md`, `DIR/claims.md` and `DIR/figures` from all that is kept there. [`check`] does
//! the same in memory and compares: a page that was not written from the kept data, or data that
//! was measured by another definition of the experiment than the present one, is an error that
//! names the command to run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::data::{Identity, hex};
use super::environment::{Environment, now};
use super::job::{Extent, Outcome, Scope};
use super::page::labels;
use super::run::SpecResult;
use super::{ReproduceError, write};
use crate::specs::{self, Spec};

/// What is kept of one spec.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    spec: String,
    /// Digest of the plan: which jobs there are.
    definition: String,
    date: String,
    environment: Environment,
    scope: Scope,
    data: Vec<Identity>,
    missing: Vec<String>,
    outcomes: Vec<Outcome>,
}

/// Tables beyond so many rows stay out of the page; they are in the report.
const MOST_ROWS: usize = 40;

/// A digest of a spec's plan: it changes when jobs come, go or are named otherwise, whoever is
/// registered.
fn definition(spec: &Spec, scope: &Scope) -> String {
    let mut hasher = Sha256::new();
    hasher.update(spec.name);
    for job in (spec.jobs)(scope) {
        hasher.update(job.id());
        hasher.update("\n");
    }
    hex(&hasher.finalize())[..16].to_owned()
}

/// Stores these results in a documentation folder, and writes its page and figures.
pub fn update(dir: &Path, results: &[SpecResult]) -> Result<(), ReproduceError> {
    for result in results {
        let kept = Kept {
            spec: result.spec.name.to_owned(),
            definition: definition(result.spec, &result.scope),
            date: now(),
            environment: Environment::here(),
            scope: result.scope.clone(),
            data: result.data.clone(),
            missing: result.missing.clone(),
            outcomes: result.outcomes.clone(),
        };
        write(&kept_path(dir, result.spec), to_text(&kept))?;
    }
    for (path, content) in render(dir)? {
        write(&path, content)?;
    }
    Ok(())
}

/// Compares the page and the figures with what the stored results and the present specs give.
/// Returns the differences.
pub fn check(dir: &Path) -> Result<Vec<String>, ReproduceError> {
    let mut wrong = Vec::new();
    for spec in specs::ALL {
        if let Some(kept) = read(dir, spec)?
            && kept.definition != definition(spec, &kept.scope)
        {
            wrong.push(format!("{} was measured by another definition: run `{}`", spec.name, command(&kept)));
        }
    }
    for (path, content) in render(dir)? {
        if std::fs::read(&path).ok().as_deref() != Some(content.as_slice()) {
            wrong.push(format!("{} is stale: run `ucl reproduce --docs {}`", path.display(), dir.display()));
        }
    }
    Ok(wrong)
}

fn kept_path(dir: &Path, spec: &Spec) -> PathBuf {
    dir.join("results").join(format!("{}.json", spec.name))
}

/// One outcome a line, for differences that can be read.
fn to_text(kept: &Kept) -> String {
    let head = Kept { outcomes: Vec::new(), ..kept.clone() };
    let head = serde_json::to_string(&head).expect("names and finite numbers only");
    let lines: Vec<String> = kept
        .outcomes
        .iter()
        .map(|outcome| serde_json::to_string(outcome).expect("names and finite numbers only"))
        .collect();
    let head = head.strip_suffix("[]}").unwrap_or(&head);
    format!("{head}[\n{}\n]}}\n", lines.join(",\n"))
}

fn read(dir: &Path, spec: &Spec) -> Result<Option<Kept>, ReproduceError> {
    let path = kept_path(dir, spec);
    let failed = |why: String| ReproduceError::Store { path: path.clone(), why };
    match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The command that measures a spec again.
fn command(kept: &Kept) -> String {
    let quick = match kept.scope.extent {
        Extent::Full => "",
        Extent::Quick => " --quick",
        Extent::Slice => " --slice",
    };
    format!("ucl reproduce {}{quick} --seeds {} --data-dir DATA --docs docs", kept.spec, kept.scope.seeds.len())
}

/// All files, with their content.
fn render(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, ReproduceError> {
    let mut page = "# Results\n\n\
        <!-- Written by `ucl reproduce … --docs docs` from docs/results; edit the specs in crates/lab/src/specs instead. -->\n\n\
        The paper's evaluation, rerun, and what goes past it. Every section names the command that measured it and the data it was measured on; what the paper \
        prints stands beside ours. [The frontier](frontier.md) explains the last one in plain words, and [the paper's claims](claims.md) are held against these figures one by one.\n"
        .to_owned();
    let mut files = Vec::new();
    for spec in specs::ALL {
        let Some(kept) = read(dir, spec)? else { continue };
        let shown = (spec.present)(&kept.outcomes);
        page += &format!("\n## {}\n\n{}", spec.title, spec.about);
        if !spec.labels.is_empty() {
            page += &format!(" In the paper: {}.", labels(spec.labels));
        }
        let Environment { cpu, cores, os, version } = &kept.environment;
        let day = kept.date.split('T').next().unwrap_or_default();
        page += &format!(
            "\n\n```console\n$ {}\n```\n\nMeasured {day} on {cpu}, {cores} threads, {os}; {version}.\n\n",
            command(&kept)
        );
        let mut points: Vec<String> =
            kept.data.iter().map(|data| format!("{}: {}.", data.dataset, data.about)).collect();
        if !kept.missing.is_empty() {
            points.push(format!("Left out, for nobody had registered them: {}.", kept.missing.join(", ")));
        }
        let failed: Vec<&Outcome> = kept.outcomes.iter().filter(|outcome| outcome.error.is_some()).collect();
        points.extend(
            failed
                .iter()
                .map(|outcome| format!("Failed: {}: {}.", outcome.job, outcome.error.as_deref().unwrap_or_default())),
        );
        points.extend(shown.remarks.iter().cloned());
        page += &points.iter().map(|point| format!("- {point}\n")).collect::<String>();
        for (name, caption, figure) in &shown.figures {
            let Ok(svg) = figure.svg() else { continue };
            let file = format!("figures/{}-{name}.svg", spec.name);
            page += &format!("\n![{caption}]({file})\n");
            files.push((dir.join(&file), svg.into_bytes()));
        }
        for table in shown.tables.iter().filter(|table| (1..=MOST_ROWS).contains(&table.rows.len())) {
            page += &format!("\n{}:\n\n{}", table.title, table.markdown());
        }
    }
    files.insert(0, (dir.join("results.md"), page.into_bytes()));
    // Unreadable results have failed above.
    let stored = |name: &str| {
        let kept = specs::find(name).ok().and_then(|spec| read(dir, spec).ok().flatten());
        kept.map(|kept| kept.outcomes).unwrap_or_default()
    };
    files.insert(1, (dir.join("claims.md"), specs::claims::page(&stored).into_bytes()));
    Ok(files)
}
