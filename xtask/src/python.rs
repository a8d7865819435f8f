//! The Python package: a virtual environment under target/, the wheel, and its tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::root;

/// What the tests need. By name: the newest versions for the Python at hand.
const PACKAGES: [&str; 13] = [
    "maturin",
    "numpy",
    "pyarrow",
    "pandas",
    "polars",
    "duckdb",
    "hypothesis",
    "pytest",
    "pytest-timeout",
    "mypy",
    "nbclient",
    "ipykernel",
    "matplotlib",
];

/// The feature of the package that turns on what the rest of the workspace does.
const AS_WORKSPACE: &str = "as-workspace";

/// Builds the wheel, installs it into a virtual environment, and runs mypy and pytest there.
pub fn test() -> Result<()> {
    let environment = Environment::prepare(&PACKAGES)?;
    environment.install_wheel()?;
    environment.python("-m mypy tests python")?;
    environment.python("-m mypy.stubtest ucl_sketch")?;
    environment.python("-m pytest")
}

/// The same with 1,000 random programs, and with Spark.
pub fn explore() -> Result<()> {
    if !succeeds(Command::new("java").arg("-version")) {
        install("default-jre-headless", "Spark needs Java")?;
    }
    let packages = [&PACKAGES[..], &["pyspark"]].concat();
    let environment = Environment::prepare(&packages)?;
    environment.install_wheel()?;
    environment.python("-m pytest --programs 1000 --spark")
}

/// The path of a program that a package brings, once that is installed.
pub(crate) fn program(package: &str, name: &str) -> Result<PathBuf> {
    Ok(Environment::prepare(&[package])?.program(name))
}

/// A virtual environment of Python.
struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment, or takes the one that is there. Packages that it has are not looked
    /// for again, so that a machine without a network passes too.
    fn prepare(packages: &[&str]) -> Result<Self> {
        let environment = Self { folder: root().join("target").join("python") };
        if !succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
            install("python3-venv", "the tests of the Python package need python3 with venv")?;
        }
        if !succeeds(Command::new(environment.program("python")).arg("--version")) {
            let folder = environment.folder.to_string_lossy().into_owned();
            run(Command::new("python3").args(["-m", "venv", "--clear", &folder]))?;
        }
        let done = environment.folder.join("installed.txt");
        let had = fs::read_to_string(&done).unwrap_or_default();
        let mut installed: BTreeSet<&str> = had.lines().collect();
        if packages.iter().all(|name| installed.contains(name)) {
            return Ok(environment);
        }
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "10"];
        run(Command::new(environment.program("python")).args(pip).args(packages))?;
        installed.extend(packages);
        let installed: Vec<&str> = installed.into_iter().collect();
        fs::write(&done, installed.join("\n")).with_context(|| format!("cannot write {}", done.display()))?;
        Ok(environment)
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Builds the wheel, and quickly rather than for speed: with what the tests of the workspace
    /// have compiled, which are these features and the optimisation of their profile.
    fn install_wheel(&self) -> Result<()> {
        let wheels = self.folder.join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels).with_context(|| format!("cannot empty {}", wheels.display()))?;
        }
        run(Command::new(self.program("maturin"))
            .args(["build", "--quiet", "--profile", "dev", "--locked", "--manifest-path", "crates/python/Cargo.toml"])
            .args(["--features", AS_WORKSPACE])
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
            .arg("--interpreter")
            .arg(self.program("python"))
            .arg("--out")
            .arg(&wheels)
            .current_dir(root()))?;
        let wheel = fs::read_dir(&wheels)?.next().context("maturin has built no wheel")??.path();
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall"];
        run(Command::new(self.program("python")).args(pip).arg(wheel))
    }

    fn python(&self, arguments: &str) -> Result<()> {
        run(Command::new(self.program("python"))
            .args(arguments.split_whitespace())
            .current_dir(root().join("crates").join("python")))
    }
}

/// Runs a command and says how long it took.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<String> = command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let shown = format!("{program} {}", arguments.join(" "));
    eprintln!("\n--- {shown}");
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    eprintln!("--- {:.0} s", start.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { bail!("{shown} failed") }
}

/// Runs a command and returns true if it succeeds. What it prints is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Installs a package of Debian or Ubuntu, where that is possible.
pub(crate) fn install(package: &str, why: &str) -> Result<()> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if !root || !succeeds(Command::new("apt-get").arg("--version")) {
        bail!("{why}: install the package {package} of your system, for example `sudo apt-get install {package}`");
    }
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get").args(["install", "-qq", "--yes", package]).env("DEBIAN_FRONTEND", "noninteractive"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packages of a build, each with its features.
    fn packages(selection: &[&str]) -> BTreeSet<String> {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} with {f}"])
            .args(selection)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        String::from_utf8(tree.stdout).unwrap().lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    }

    /// One that differs has to be compiled again for the wheel, and with it all that need it. Then
    /// the feature `as-workspace` in crates/python/Cargo.toml has to turn on what is missing.
    #[test]
    fn the_wheel_is_made_of_what_the_workspace_compiles() {
        let compiled = packages(&["--workspace", "--edges", "normal,build,dev"]);
        let wheel = packages(&["-p", "ucl-python", "--features", AS_WORKSPACE, "--edges", "normal,build"]);
        let again: Vec<&String> =
            wheel.difference(&compiled).filter(|package| !package.starts_with("ucl-python ")).collect();
        assert!(again.is_empty(), "compiled again: {again:#?}");
    }
}
