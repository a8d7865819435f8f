//! Where an input goes on after a restart.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes at the start of a file that tell it from another with the same number.
const HEAD: usize = 256;

/// A place between two items of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The input as it was named.
    pub input: String,
    /// The file itself, whatever its name is by now.
    pub file: Option<FileId>,
    /// A byte of the file from which reading can start.
    pub mark: u64,
    /// Items from there on that are counted.
    pub items: u64,
    /// True if the input was read to its end.
    pub done: bool,
}

impl Position {
    /// The start of an input.
    pub fn start(input: impl Into<String>, file: Option<FileId>) -> Self {
        Self { input: input.into(), file, ..Self::default() }
    }

    /// Returns the position after this many more items.
    pub fn after(&self, items: u64) -> Self {
        Self { items: self.items + items, ..self.clone() }
    }

    /// Encodes the position for a checkpoint.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Reads what [`Position::to_bytes`] wrote. An empty one is the start of everything.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() { Some(Self::default()) } else { postcard::from_bytes(bytes).ok() }
    }
}

/// A file, whatever its name is: its number, and a checksum of its first bytes, since numbers are
/// used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    device: u64,
    number: u64,
    head_bytes: u16,
    head: u64,
}

impl FileId {
    /// Returns the identity of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let head = head(file, HEAD)?;
        let (device, number) = numbers(&file.metadata()?);
        Ok(Self { device, number, head_bytes: head.len() as u16, head: xxh3_64(&head) })
    }

    /// Returns true if knowing more of the first bytes would make it safer.
    pub fn is_short(&self) -> bool {
        usize::from(self.head_bytes) < HEAD
    }

    /// Returns true if the position is one in this file. It may have grown since.
    pub fn is(&self, file: &File) -> io::Result<bool> {
        let head = head(file, self.head_bytes.into())?;
        Ok((self.device, self.number) == numbers(&file.metadata()?) && self.head == xxh3_64(&head))
    }

    /// Returns true if the file of this name has the same number.
    pub fn has_number_of(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|about| numbers(&about) == (self.device, self.number))
    }

    /// Finds the file in the folder of `path`, where a rotation may have left it under another
    /// name.
    pub fn find_beside(&self, path: &Path) -> Option<File> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let names = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut same = names.filter(|name| self.has_number_of(name));
        let file = File::open(same.next()?).ok()?;
        self.is(&file).ok()?.then_some(file)
    }
}

/// Files in the folder of `path` that a rotation may have made of it since `old` was written to
/// last: their names begin with its name. They may also be copies that somebody made, so nothing is
/// read of them.
pub fn rotated_since(path: &Path, old: &File) -> Vec<PathBuf> {
    let since = old.metadata().and_then(|about| about.modified()).ok();
    let (Some(since), Some(name)) = (since, path.file_name()) else { return Vec::new() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let old = FileId::of(old).ok();
    let is_one = |beside: &PathBuf| {
        let named_so = beside.file_name().is_some_and(|other| {
            other.as_encoded_bytes().starts_with(name.as_encoded_bytes()) && other.len() > name.len()
        });
        let later = || std::fs::metadata(beside).and_then(|about| about.modified()).is_ok_and(|at| at >= since);
        named_so && later() && !old.is_some_and(|old| old.has_number_of(beside))
    };
    let names = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    names.filter(is_one).collect()
}

#[cfg(unix)]
fn head(file: &File, most: usize) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; most];
    let mut filled = 0;
    while filled < most {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(unix)]
fn numbers(about: &std::fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (about.dev(), about.ino())
}

/// Elsewhere files have no numbers that the standard library knows: names have to do.
#[cfg(not(unix))]
fn head(_: &File, _: usize) -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}

#[cfg(not(unix))]
fn numbers(_: &std::fs::Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive() {
        let position = Position { input: "a.log".into(), file: None, mark: 7, items: 3, done: true };
        assert_eq!(Position::from_bytes(&position.to_bytes()), Some(position.clone()));
        assert_eq!(Position::from_bytes(b""), Some(Position::default()));
        assert_eq!(Position::from_bytes(b"\xff"), None);
        assert_eq!(position.after(2).items, 5);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_known_under_another_name_and_when_it_grew() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let [log, old] = ["a.log", "a.log.1"].map(|name| folder.path().join(name));
        std::fs::write(&log, "one\n").unwrap();
        let id = FileId::of(&File::open(&log).unwrap()).unwrap();
        std::fs::rename(&log, &old).unwrap();
        std::fs::write(&log, "new\n").unwrap();
        std::fs::OpenOptions::new().append(true).open(&old).unwrap().write_all(b"two\n").unwrap();
        assert!(id.is(&File::open(&old).unwrap()).unwrap() && id.find_beside(&log).is_some());
        assert!(!id.is(&File::open(&log).unwrap()).unwrap() && !id.has_number_of(&log));
        // The number is used again, by a file that starts in another way.
        std::fs::write(&old, "other\n").unwrap();
        assert!(id.has_number_of(&old) && !id.is(&File::open(&old).unwrap()).unwrap());
        assert!(id.find_beside(&log).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn files_in_between_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let [log, between, old, other] = ["a.log", "a.log.1", "a.log.2", "b.log"].map(|name| folder.path().join(name));
        for path in [&old, &log, &other] {
            std::fs::write(path, "one\n").unwrap();
        }
        assert!(rotated_since(&log, &File::open(&old).unwrap()).is_empty());
        std::fs::write(&between, "two\n").unwrap();
        assert_eq!(rotated_since(&log, &File::open(&old).unwrap()), [between]);
    }
}
