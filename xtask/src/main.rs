//! Repository chores: `cargo xtask test` is what CI runs, `cargo xtask bench` what the figures in
//! the docs come from.

mod browser;
mod nats;
mod publish;
mod python;
mod text;
mod width;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test             all checks: text and links, formatting, lints, rustdoc, all tests, packages, Python
  text             the text checks alone: line lengths, links, pages of the book
  explore FROM TO  all tests once for each seed in this range: other random cases for the property tests
  explore checks N random programs against exact counts until N keys are checked, with overflow checks
  explore simulation N
                   agents and a collector on disks and networks that fail, N runs against exact counts
  explore epochs   the load of epochs on long streams, up to 5M keys and 16MB
  python           the tests of the Python package alone
  nats             the collector on NATS, with brokers, collectors and agents that are killed
  browser          the collector's page in a real browser (chromium)
  explore python   1,000 random programs for the Python package, and its examples for Spark
  bench            all benchmarks, as ratios within one run
  docs             write the generated files (docs/cli.md, man pages under target/man)
  publish-check    package the published crates as for a release; uploads nothing
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["text"] => text::check(),
        ["explore", "checks", number] => checks(number),
        ["explore", "simulation", number] => simulation(number),
        ["explore", "epochs"] => cargo("test --release --locked -p ucl-sketch --test epochs -- --ignored --nocapture"),
        ["explore", "python"] => python::explore(),
        ["python"] => python::test(),
        ["nats"] => nats::test(),
        ["browser"] => browser::test(),
        ["explore", from, to] => explore(from, to),
        ["bench"] => bench(),
        ["docs"] => docs(),
        ["publish-check"] => publish::check(""),
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

/// Runs cargo in the workspace and says how long it took. Property tests draw the same cases every
/// time, so that what passes once passes everywhere; [`explore`] draws others.
fn cargo(arguments: &str) -> Result<()> {
    cargo_with(arguments, &[(CASES, &cases())])
}

fn cases() -> String {
    env::var(CASES).unwrap_or_else(|_| "0".into())
}

/// The cargo that runs this program, so that both are of one toolchain.
fn cargo_program() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

fn cargo_with(arguments: &str, variables: &[(&str, &str)]) -> Result<()> {
    eprintln!("\n--- cargo {arguments}");
    let start = Instant::now();
    let status = Command::new(cargo_program())
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
    text::check()?;
    cargo("fmt --all --check")?;
    cargo("clippy --workspace --all-targets --locked -- -D warnings")?;
    // The library and the tool, without what is optional; the workspace has it all.
    cargo("clippy -p ucl-sketch --no-default-features --all-targets --locked -- -D warnings")?;
    cargo("clippy -p ucl-cli --no-default-features --locked -- -D warnings")?;
    cargo_with("doc --workspace --no-deps --locked", &[("RUSTDOCFLAGS", "-D warnings")])?;
    cargo("test --workspace --locked --no-fail-fast")?;
    // By now everything has been downloaded, so that a machine without a network passes too.
    publish::check("--offline")?;
    python::test()?;
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

/// The differential test with so many checks, each of one key in one view of one program. The seed
/// of the first program comes from [`CASES`].
fn checks(number: &str) -> Result<()> {
    number.parse::<u64>().with_context(|| format!("{number} is not a number of checks"))?;
    let test =
        "test --locked --config profile.test.overflow-checks=true -p ucl-sketch --all-features --test differential";
    cargo_with(&format!("{test} -- --nocapture"), &[(CASES, &cases()), ("UCL_CHECKS", number)])
}

/// The simulation of agents and a collector, so many runs. The seed of the first comes from
/// [`CASES`].
fn simulation(number: &str) -> Result<()> {
    number.parse::<u64>().with_context(|| format!("{number} is not a number of runs"))?;
    let test = "test --locked --config profile.test.overflow-checks=true -p ucl-collector --test simulation";
    cargo_with(&format!("{test} -- --nocapture"), &[("UCL_SEED", &cases()), ("UCL_RUNS", number)])
}

fn bench() -> Result<()> {
    cargo("bench --workspace")
}

fn docs() -> Result<()> {
    cargo("run --quiet -p ucl-cli -- generate-docs docs --man target/man")
}
