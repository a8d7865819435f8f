//! Repository chores: `cargo xtask test` is what CI runs, `cargo xtask bench` what the figures in the docs come from.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test             everything CI checks: formatting, lints, links, all tests (one of them checks the generated files)
  explore FROM TO  all tests once for each seed in this range: other random cases for the property tests
  explore checks N random programs against exact counts until N keys are checked, with overflow checks
  bench            all benchmarks, as ratios within one run
  docs             write the generated files (docs/cli.md, man pages under target/man)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["explore", "checks", number] => checks(number),
        ["explore", from, to] => explore(from, to),
        ["bench"] => bench(),
        ["docs"] => docs(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Where property tests read the seed of their random cases.
const CASES: &str = "PROPTEST_RNG_SEED";

/// Runs cargo in the workspace and says how long it took. Property tests draw the same cases every time, so that what passes
/// once passes everywhere; [`explore`] draws others.
fn cargo(arguments: &str) -> Result<()> {
    cargo_with(arguments, &[(CASES, &cases())])
}

fn cases() -> String {
    env::var(CASES).unwrap_or_else(|_| "0".into())
}

fn cargo_with(arguments: &str, variables: &[(&str, &str)]) -> Result<()> {
    eprintln!("\n--- cargo {arguments}");
    let start = Instant::now();
    let status = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()))
        .args(arguments.split_whitespace())
        .current_dir(root())
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("cannot run cargo {arguments}"))?;
    eprintln!("--- {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { bail!("cargo {arguments} failed") }
}

fn test() -> Result<()> {
    let start = Instant::now();
    links()?;
    cargo("fmt --all --check")?;
    cargo("clippy --workspace --all-targets --locked -- -D warnings")?;
    cargo("test --workspace --locked --no-fail-fast")?;
    eprintln!("\nall green in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn explore(from: &str, to: &str) -> Result<()> {
    let seed = |text: &str| text.parse::<u64>().with_context(|| format!("{text} is not a seed"));
    let failed: Vec<String> = (seed(from)?..=seed(to)?)
        .map(|seed| seed.to_string())
        .filter(|seed| cargo_with("test --workspace --locked --no-fail-fast --tests", &[(CASES, seed)]).is_err())
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("cases found with {CASES}={}", failed.join(", ")) }
}

/// The differential test with so many checks, each of one key in one view of one program. The seed of the first program comes
/// from [`CASES`].
fn checks(number: &str) -> Result<()> {
    number.parse::<u64>().with_context(|| format!("{number} is not a number of checks"))?;
    let test = "test --locked --config profile.test.overflow-checks=true -p ucl-sketch --test differential";
    cargo_with(&format!("{test} -- --nocapture"), &[(CASES, &cases()), ("UCL_CHECKS", number)])
}

fn bench() -> Result<()> {
    cargo("bench --workspace")
}

fn docs() -> Result<()> {
    cargo("run --quiet -p ucl-cli -- generate-docs docs --man target/man")
}

/// Every relative link in the Markdown files points at something that exists.
fn links() -> Result<()> {
    let mut files: Vec<PathBuf> = vec![];
    for folder in [root(), root().join("docs")] {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    let mut broken = vec![];
    for file in &files {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let local = !path.is_empty() && !path.contains("://");
            if local && !file.parent().expect("a file lies in a folder").join(path).exists() {
                broken.push(format!("{}: {target}", file.strip_prefix(root()).unwrap_or(file).display()));
            }
        }
    }
    if broken.is_empty() { Ok(()) } else { bail!("broken links:\n{}", broken.join("\n")) }
}
