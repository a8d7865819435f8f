//! The collector's page in a real browser: Debian's chromium, driven by playwright-core.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::python::{install, succeeds};
use crate::{cargo, root};

/// Starts a service with sample streams, and uses its page as a person would. Pictures of it are
/// left in `target/browser`.
pub fn test() -> Result<()> {
    if !Path::new("/usr/bin/chromium").exists() && std::env::var_os("CHROMIUM").is_none() {
        install("chromium", "the page is tested in chromium (or set CHROMIUM to its path)")?;
    }
    if !succeeds(Command::new("npm").arg("--version")) {
        install("npm", "playwright-core comes from npm")?;
    }
    let folder = root().join("target").join("browser");
    fs::create_dir_all(&folder)?;
    if !folder.join("node_modules/playwright-core").exists() {
        let installed =
            Command::new("npm").args(["install", "--no-save", "playwright-core"]).current_dir(&folder).status()?;
        if !installed.success() {
            bail!("npm could not install playwright-core");
        }
    }
    cargo("build --package ucl-server --example sample_service")?;
    let mut service = Command::new(root().join("target/debug/examples/sample_service"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the sample service does not start")?;
    let mut line = String::new();
    let output = service.stdout.take().context("it has an output")?;
    BufReader::new(output).read_line(&mut line)?;
    let value = |name: &str| {
        let rest = line.split(&format!("\"{name}\":\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    let (url, token) = value("url").zip(value("token")).context("the sample service has not started")?;
    // The script finds its package beside it.
    let script = folder.join("page.mjs");
    fs::copy(root().join("crates/server/browser/page.mjs"), &script)?;
    let tested = Command::new("node").arg(&script).args([&url, &token]).arg(&folder).status();
    // It ends with its input.
    drop(service.stdin.take());
    service.wait()?;
    if !tested.context("node does not start")?.success() {
        bail!("the page failed in the browser: pictures are in {}", folder.display());
    }
    Ok(())
}
