//! Replaces folders and patterns by the files in them, in an order that does not depend on the
//! system.

use std::io;
use std::path::{Path, PathBuf};

use crate::content::content_of;
use crate::{Format, Source};

/// Files found for the inputs that a user named.
#[derive(Debug, Default)]
pub struct Expanded {
    /// Inputs to read, in order: those named as they were named, the files of a folder or pattern
    /// sorted by name.
    pub sources: Vec<Source>,
    /// Files of folders and patterns that were left out, each with the reason.
    pub skipped: Vec<(PathBuf, String)>,
}

/// Files of a folder or pattern that are wanted.
#[derive(Debug, Clone, Copy)]
pub enum Wanted<'f> {
    /// All files.
    All,
    /// The files that can be read in this format.
    For(&'f Format),
    /// The files that can be read as text; or captures, if there is nothing else.
    Text,
}

/// Folders deeper than this are not entered.
const MOST_LEVELS: usize = 64;

/// Replaces folders and patterns by their files.
///
/// A folder stands for all files in it and in the folders below. A path with `*`, `?` or `[…]` that
/// does not exist stands for the files that it matches; `**` matches folders to any depth. Hidden
/// files and folders (with a leading dot) are passed over, and links to folders are not followed.
/// Other files that are not wanted are in [`Expanded::skipped`].
///
/// # Errors
/// When a folder cannot be read, when there is no file in it, or when nothing matches a pattern.
///
/// ```
/// use ucl_streams::{Source, Wanted, expand};
///
/// let folder = tempfile::tempdir()?;
/// for name in ["b.log", "a.log", ".hidden"] {
///     std::fs::write(folder.path().join(name), "text\n")?;
/// }
/// let found = expand(&[Source::Path(folder.path().to_owned())], Wanted::Text)?;
/// let files = ["a.log", "b.log"].map(|name| Source::Path(folder.path().join(name)));
/// assert_eq!(found.sources, files);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn expand(sources: &[Source], wanted: Wanted<'_>) -> io::Result<Expanded> {
    let mut found = Expanded::default();
    for source in sources {
        match source {
            Source::Path(path) if path.is_dir() => found.group(path, vec![path.clone()], wanted)?,
            Source::Path(path) if !path.exists() => match matches(path)? {
                None => found.sources.push(source.clone()),
                Some(paths) => found.group(path, paths, wanted)?,
            },
            other => found.sources.push(other.clone()),
        }
    }
    Ok(found)
}

impl Expanded {
    /// Takes the files of one folder or pattern.
    fn group(&mut self, named: &Path, paths: Vec<PathBuf>, wanted: Wanted<'_>) -> io::Result<()> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() { walk(&path, MOST_LEVELS, &mut files)? } else { files.push(path) }
        }
        let captures = Format::Pcap(Vec::new());
        let is_text = |file: &PathBuf| unfit(file, Wanted::Text).is_none();
        let wanted = match wanted {
            Wanted::Text if !files.iter().any(is_text) => Wanted::For(&captures),
            wanted => wanted,
        };
        let before = self.sources.len();
        for file in files {
            match unfit(&file, wanted) {
                None => self.sources.push(Source::Path(file)),
                Some(why) => self.skipped.push((file, why)),
            }
        }
        if self.sources.len() > before {
            return Ok(());
        }
        let why = self.skipped.first().map_or(String::new(), |(file, why)| format!(": {} {why}", file.display()));
        Err(io::Error::new(io::ErrorKind::NotFound, format!("{} has no file to read{why}", named.display())))
    }
}

/// The paths that a pattern matches; `None` if it is not a pattern.
fn matches(path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let Some(text) = path.to_str().filter(|text| text.contains(['*', '?', '['])) else { return Ok(None) };
    let options =
        glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let invalid = |error: glob::PatternError| io::Error::new(io::ErrorKind::InvalidInput, format!("{text}: {error}"));
    let found: Result<Vec<PathBuf>, glob::GlobError> = glob::glob_with(text, options).map_err(invalid)?.collect();
    let mut found = found.map_err(io::Error::from)?;
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no file matches {text}")));
    }
    found.sort();
    Ok(Some(found))
}

/// Appends the files below a folder, sorted.
fn walk(folder: &Path, levels: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    let entries: io::Result<Vec<_>> = std::fs::read_dir(folder).map_err(named)?.collect();
    let mut entries = entries.map_err(named)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(named)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") || kind.is_symlink() && path.is_dir() {
            continue;
        }
        match kind.is_dir() {
            true if levels > 0 => walk(&path, levels - 1, files)?,
            true => {}
            false => files.push(path),
        }
    }
    Ok(())
}

/// Why a file that nobody named is not read.
fn unfit(path: &Path, wanted: Wanted<'_>) -> Option<String> {
    if !path.is_file() {
        return Some("is not a regular file".to_owned());
    }
    let content = match content_of(path) {
        Ok(content) => content?,
        Err(error) => return Some(format!("cannot be opened: {error}")),
    };
    let fits = match wanted {
        Wanted::All => true,
        Wanted::For(format) => content.suits(format),
        Wanted::Text => false,
    };
    (!fits).then(|| format!("is {content}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn found(named: &Path, format: Option<&str>) -> io::Result<(Vec<String>, Vec<String>)> {
        let format: Option<Format> = format.map(|format| format.parse().unwrap());
        let wanted = format.as_ref().map_or(Wanted::Text, Wanted::For);
        let expanded = expand(&[Source::Path(named.to_owned())], wanted)?;
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let sources = expanded.sources.iter().map(|source| match source {
            Source::Path(path) => name(path),
            other => other.to_string(),
        });
        let skipped = expanded.skipped.iter().map(|(path, why)| format!("{} {why}", name(path)));
        Ok((sources.collect(), skipped.collect()))
    }

    #[test]
    fn folders_and_patterns() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("logs/old/.git")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir(at("states")).unwrap();
        fs::write(at("states/a.ucl"), b"\x89UCL\r\n\x1a\n and more").unwrap();
        for name in ["logs/b.log", "logs/a.log", "logs/.hidden", "logs/old/c.log", "logs/old/.git/config", "x[1]"] {
            fs::write(at(name), "text\n").unwrap();
        }
        fs::write(at("logs/z.pcap"), b"\xd4\xc3\xb2\xa1 and more").unwrap();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let skipped = names(&["z.pcap is a packet capture"]);
        let (files, left_out) = found(&at("logs"), None).unwrap();
        assert_eq!((files, left_out), (names(&["a.log", "b.log", "c.log"]), skipped.clone()));
        let (files, _) = found(&at("logs"), Some("pcap")).unwrap();
        assert_eq!(files, ["a.log", "b.log", "c.log", "z.pcap"], "text may be anything");
        assert_eq!(found(&at("logs/*.log"), None).unwrap().0, ["a.log", "b.log"]);
        assert_eq!(found(&at("logs/*"), None).unwrap(), (names(&["a.log", "b.log", "c.log"]), skipped));
        assert_eq!(found(&at("logs/*.pcap"), None).unwrap().0, ["z.pcap"], "all of them are captures");
        assert_eq!(found(&at("**/[cx].log"), None).unwrap().0, ["c.log"]);
        assert_eq!(found(&at("x[1]"), None).unwrap().0, ["x[1]"], "a file of this name goes first");
        for (name, message) in [
            ("empty", "has no file to read"),
            ("states/*", "has no file to read: "),
            ("logs/*.txt", "no file matches "),
            ("logs/[", "Pattern syntax error"),
        ] {
            let error = found(&at(name), None).unwrap_err().to_string();
            assert!(error.contains(message), "{name}: {error}");
        }
        assert_eq!(found(&at("none"), None).unwrap().0, ["none"], "opening it will tell");
    }

    #[cfg(unix)]
    #[test]
    fn circles_and_pipes_end() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "text\n").unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("circle")).unwrap();
        std::os::unix::fs::symlink("a", root.path().join("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
        let (files, skipped) = found(root.path(), None).unwrap();
        assert_eq!(files, ["a", "link"]);
        assert_eq!(skipped, ["socket is not a regular file"]);
    }
}
