//! Checks that the published crates can be packaged as they are. Uploads nothing.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{cargo, cargo_program, root};

/// Checks the metadata of every published crate and packages all of them. `more` is passed on to
/// cargo.
pub fn check(more: &str) -> Result<()> {
    let packages = packages()?;
    let (published, private): (Vec<&Value>, Vec<&Value>) = packages.iter().partition(|package| is_published(package));
    let missing: Vec<String> = published.iter().flat_map(|package| missing(package)).collect();
    if !missing.is_empty() {
        bail!("not ready to publish:\n{}", missing.join("\n"));
    }
    let excluded: String = private.iter().map(|package| format!(" --exclude {}", text(package, "name"))).collect();
    // Packaging resolves the crates against each other as the registry would. To build the packages
    // too takes minutes; the workspace's own build covers nearly all of it.
    cargo(&format!("package --workspace{excluded} --no-verify --allow-dirty --locked {more}"))
}

/// The members of the workspace, as `cargo metadata` describes them.
fn packages() -> Result<Vec<Value>> {
    let output = Command::new(cargo_program())
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    Ok(metadata["packages"].as_array().context("cargo metadata lists no packages")?.clone())
}

/// `publish = false` is an empty list of registries.
fn is_published(package: &Value) -> bool {
    package["publish"].as_array().is_none_or(|registries| !registries.is_empty())
}

/// Returns a line for everything that a published crate should have and this one has not.
fn missing(package: &Value) -> Vec<String> {
    let folder = Path::new(text(package, "manifest_path")).parent().unwrap_or(Path::new(""));
    let filled = |field: &str| match &package[field] {
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        _ => false,
    };
    let has_file = |path: &str| folder.join(path).is_file();
    let mut wanted: Vec<(&str, bool)> =
        ["description", "license", "rust_version", "documentation", "keywords", "categories"]
            .map(|field| (field, filled(field)))
            .to_vec();
    wanted.push(("readme", filled("readme") && has_file(text(package, "readme"))));
    wanted.push(("LICENSE file", has_file("LICENSE")));
    wanted.push(("package.metadata.docs.rs", package["metadata"]["docs"]["rs"].is_object()));
    let name = text(package, "name");
    wanted.iter().filter(|(_, there)| !there).map(|(what, _)| format!("{name}: no {what}")).collect()
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complete() -> Value {
        json!({
            "name": "xtask", "manifest_path": root().join("crates/wire/Cargo.toml"), "publish": null,
            "description": "d", "license": "l", "rust_version": "1", "documentation": "u",
            "keywords": ["k"], "categories": ["c"], "readme": "README.md",
            "metadata": { "docs": { "rs": { "all-features": true } } },
        })
    }

    #[test]
    fn what_a_published_crate_lacks_is_named() {
        assert_eq!(missing(&complete()), Vec::<String>::new());
        let mut package = complete();
        package["description"] = Value::Null;
        package["keywords"] = json!([]);
        package["readme"] = json!("NO-SUCH-FILE.md");
        package["metadata"] = Value::Null;
        let lines = ["no description", "no keywords", "no readme", "no package.metadata.docs.rs"];
        assert_eq!(missing(&package), lines.map(|line| format!("xtask: {line}")));
        package = complete();
        package["manifest_path"] = json!(root().join("docs/Cargo.toml"));
        assert_eq!(missing(&package), ["xtask: no readme", "xtask: no LICENSE file"]);
    }

    #[test]
    fn what_is_only_for_this_repository_is_not_published() {
        let mut names: Vec<String> = packages()
            .unwrap()
            .iter()
            .filter(|package| !is_published(package))
            .map(|package| text(package, "name").to_string())
            .collect();
        names.sort();
        let only_here = [
            "ucl-agent",
            "ucl-agentd",
            "ucl-cli",
            "ucl-collector",
            "ucl-lab",
            "ucl-link",
            "ucl-python",
            "ucl-server",
            "ucl-storage",
            "ucl-yardsticks",
            "ucl-zoo",
            "xtask",
        ];
        assert_eq!(names, only_here);
    }
}
