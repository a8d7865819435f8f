//! Checks of the repository's text: links, the book's list of pages, and how wide lines are.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::root;
use crate::width::{wide_comments, wide_prose};

/// Pages that a command writes. Their lines are as wide as what they show.
const GENERATED: [&str; 2] = ["docs/cli.md", "docs/results.md"];

/// Checks all text files of the repository and names every place that is wrong.
pub fn check() -> Result<()> {
    let pages = files_under(&root(), "md")?;
    let mut wrong = vec![];
    for (path, text) in &pages {
        wrong.extend(broken_links(path, text));
        if !GENERATED.contains(&path.as_str()) {
            wrong.extend(wide_prose(path, text));
        }
    }
    for (path, text) in &files_under(&root(), "rs")? {
        wrong.extend(wide_comments(path, text));
    }
    wrong.extend(not_in_book(&pages));
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("\n")) }
}

/// Reads all files with this extension, with their paths from the root. Hidden folders are left
/// out, and so is what builds leave behind.
fn files_under(folder: &Path, extension: &str) -> Result<Vec<(String, String)>> {
    let mut files = vec![];
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hidden = name.starts_with('.') && name != ".github";
        if path.is_dir() && !hidden && name != "target" {
            files.extend(files_under(&path, extension)?);
        } else if path.is_file() && path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let from_root = path.strip_prefix(root()).unwrap_or(&path);
            files.push((from_root.to_string_lossy().replace('\\', "/"), text));
        }
    }
    Ok(files)
}

/// The targets of all links to files, without their anchors.
fn linked_files(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let paths = targets.map(|target| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains("://"))
}

/// Links to files that do not exist, and links of the book's pages to files outside the book.
fn broken_links(path: &str, text: &str) -> Vec<String> {
    let file = root().join(path);
    let folder = file.parent().expect("a file lies in a folder");
    let book = root().join("docs");
    let mut broken = vec![];
    for target in linked_files(text) {
        match folder.join(target).canonicalize() {
            Err(_) => broken.push(format!("{path}: the link to {target} is broken")),
            Ok(found) if file.starts_with(&book) && !book.canonicalize().is_ok_and(|book| found.starts_with(book)) => {
                broken.push(format!("{path}: the link to {target} leaves the book"));
            }
            Ok(_) => {}
        }
    }
    broken
}

/// Pages under docs/ that docs/SUMMARY.md does not list.
fn not_in_book(pages: &[(String, String)]) -> Vec<String> {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let summary = pages.iter().find(|(path, _)| path == SUMMARY).map_or("", |(_, text)| text);
    let listed: Vec<&str> = linked_files(summary).collect();
    let chapters = pages.iter().filter(|(path, _)| path != SUMMARY).filter_map(|(path, _)| path.strip_prefix("docs/"));
    chapters.filter(|page| !listed.contains(page)).map(|page| format!("{SUMMARY}: docs/{page} is not listed")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_outside_the_book_is_named() {
        let page = |path: &str, text: &str| (path.to_string(), text.to_string());
        let pages = [
            page("README.md", ""),
            page("docs/SUMMARY.md", "- [One](one.md)\n- [Deep](deep/README.md)\n"),
            page("docs/deep/README.md", ""),
            page("docs/one.md", ""),
            page("docs/two.md", ""),
        ];
        assert_eq!(not_in_book(&pages), ["docs/SUMMARY.md: docs/two.md is not listed"]);
    }

    #[test]
    fn links_to_nothing_and_out_of_the_book_are_named() {
        let links = "[a](planner.md#x) [b](https://example.org) [c](#here) [d](none.md) [e](../README.md)";
        assert_eq!(
            broken_links("docs/frontier.md", links),
            [
                "docs/frontier.md: the link to none.md is broken",
                "docs/frontier.md: the link to ../README.md leaves the book",
            ]
        );
        assert_eq!(broken_links("README.md", "[a](docs/planner.md)"), Vec::<String>::new());
    }
}
