//! Folders of partitions.
//!
//! ```text
//! <data>/partitions/<number>-of-<partitions>/<fence>/collector/    as without NATS: states and log
//!                                                    broker/       how far the broker was read
//! ```
//! Each owner of a partition writes to a folder of its own, named by its *fence*: a number that is
//! larger for every later owner.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ucl_link::nats::Partitions;

/// In a partition's folder: states and log.
pub const COLLECTOR: &str = "collector";
/// How far the broker was read.
pub const BROKER: &str = "broker";
/// Ends the name of a folder that is being made.
const NEW: &str = ".new";

/// The folders of all partitions.
#[derive(Clone, Debug)]
pub struct Places {
    folder: PathBuf,
    partitions: Partitions,
}

impl Places {
    /// Takes the data folder.
    ///
    /// # Errors
    /// If it has another number of partitions, or cannot be read.
    pub fn open(data: &Path, partitions: Partitions) -> io::Result<Self> {
        let folder = data.join("partitions");
        fs::create_dir_all(&folder)?;
        for name in names(&folder)? {
            let number = name.split_once("-of-").and_then(|(_, number)| number.parse::<u32>().ok());
            if let Some(other) = number.filter(|&number| number != partitions.number()) {
                let wanted = partitions.number();
                let why =
                    format!("{} is for {other} partitions, not {wanted}: their number never changes", data.display());
                return Err(io::Error::other(why));
            }
        }
        Ok(Self { folder, partitions })
    }

    /// The folder of a partition.
    fn partition(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:04}-of-{}", self.partitions.number()))
    }

    /// Makes the folder of a new owner, with everything that the last one wrote.
    ///
    /// The last owner may still be writing to its own folder. What it told agents is durable was
    /// there before its lease was taken, and so is found here.
    ///
    /// # Errors
    /// If there is a later owner, or the disk fails.
    pub fn take_over(&self, number: u32, fence: u64) -> io::Result<PathBuf> {
        let partition = self.partition(number);
        fs::create_dir_all(&partition)?;
        let last = names(&partition)?.iter().filter_map(|name| self::fence(name)).max();
        if let Some(later) = last.filter(|&last| last >= fence) {
            let why =
                format!("{} has an owner {later}, later than {fence}: is this another broker?", partition.display());
            return Err(io::Error::other(why));
        }
        let new = partition.join(format!("{}{NEW}", folder_name(fence)));
        match last.map(|last| partition.join(folder_name(last))) {
            Some(last) => copy(&last, &new)?,
            None => fs::create_dir(&new)?,
        }
        let place = partition.join(folder_name(fence));
        fs::rename(&new, &place)?;
        sync(&partition)?;
        Ok(place)
    }

    /// Removes the folders of all owners before this one, who must be the owner still.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn remove_before(&self, number: u32, fence: u64) -> io::Result<()> {
        let partition = self.partition(number);
        for name in names(&partition)? {
            if self::fence(name.strip_suffix(NEW).unwrap_or(&name)).is_some_and(|other| other < fence) {
                fs::remove_dir_all(partition.join(name))?;
            }
        }
        Ok(())
    }

    /// The folder of a partition's last owner; a new one if there was none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last(&self, number: u32) -> io::Result<PathBuf> {
        let partition = self.partition(number);
        fs::create_dir_all(&partition)?;
        let last = names(&partition)?.iter().filter_map(|name| fence(name)).max();
        Ok(partition.join(folder_name(last.unwrap_or(0))))
    }
}

/// Copies an owner's folder.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for part in [COLLECTOR, BROKER] {
        let (from, to) = (from.join(part), to.join(part));
        fs::create_dir_all(&to)?;
        if !from.exists() {
            continue;
        }
        // The log first: what its owner removes from it meanwhile is in states by then.
        let is_log = |name: &String| name.starts_with("log-");
        for name in names(&from)?.into_iter().filter(is_log) {
            there(fs::copy(from.join(&name), to.join(&name)))?;
            there(File::open(to.join(&name)).and_then(|file| file.sync_all()))?;
        }
        // These are replaced as a whole, never changed, so that another name for them will do.
        for name in names(&from)?.into_iter().filter(|name| !is_log(name) && !name.starts_with('.')) {
            let (from, to) = (from.join(&name), to.join(&name));
            there(fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)))?;
        }
        sync(&to)?;
    }
    sync(to)
}

/// A file that was removed meanwhile is not needed.
fn there<T>(done: io::Result<T>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn folder_name(fence: u64) -> String {
    format!("{fence:020}")
}

fn fence(name: &str) -> Option<u64> {
    name.parse().ok().filter(|&fence| folder_name(fence) == name)
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_partitions_stays() {
        let data = tempfile::tempdir().unwrap();
        let partitions = |number| Partitions::new(number).unwrap();
        let places = Places::open(data.path(), partitions(8)).unwrap();
        let first = places.last(3).unwrap();
        assert!(first.ends_with("partitions/0003-of-8/00000000000000000000"), "{first:?}");
        let error = Places::open(data.path(), partitions(16)).unwrap_err().to_string();
        assert!(error.contains("is for 8 partitions, not 16"), "{error}");
        fs::create_dir(first.with_file_name(folder_name(7))).unwrap();
        fs::create_dir(first.with_file_name("9.new")).unwrap();
        assert_eq!(places.last(3).unwrap(), first.with_file_name(folder_name(7)));
    }

    #[test]
    fn a_new_owner_has_what_the_last_one_wrote_and_is_not_disturbed_by_it() {
        let data = tempfile::tempdir().unwrap();
        let places = Places::open(data.path(), Partitions::new(1).unwrap()).unwrap();
        let old = places.take_over(0, 5).unwrap();
        let write = |place: &Path, name: &str, text: &str| {
            fs::create_dir_all(place.join(COLLECTOR)).unwrap();
            let new = place.join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, place.join(COLLECTOR).join(name)).unwrap();
        };
        let read = |place: &Path, name: &str| fs::read_to_string(place.join(COLLECTOR).join(name)).unwrap();
        write(&old, "state%a", "one");
        write(&old, "log-0", "epochs");
        // An owner that did not come far.
        fs::create_dir(old.with_file_name(format!("{}{NEW}", folder_name(7)))).unwrap();
        let new = places.take_over(0, 9).unwrap();
        write(&old, "state%a", "two");
        let mut log = fs::OpenOptions::new().append(true).open(old.join(COLLECTOR).join("log-0")).unwrap();
        io::Write::write_all(&mut log, b"more").unwrap();
        assert_eq!((read(&new, "state%a"), read(&new, "log-0")), ("one".into(), "epochs".into()));
        let error = places.take_over(0, 9).unwrap_err().to_string();
        assert!(error.contains("has an owner 9, later than 9"), "{error}");
        assert!(places.take_over(0, 8).is_err());
        places.remove_before(0, 9).unwrap();
        assert_eq!(names(new.parent().unwrap()).unwrap(), [folder_name(9)]);
    }
}
