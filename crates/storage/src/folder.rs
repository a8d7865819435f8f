//! Storage in a folder on disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{Storage, check_name};

/// Held while the folder is in use.
const LOCK: &str = ".lock";

/// Folder on disk, used by one process at a time.
///
/// ```
/// use ucl_storage::{Folder, Storage};
///
/// let place = tempfile::tempdir()?;
/// let mut folder = Folder::open(place.path().join("data"))?;
/// folder.replace("state", b"one")?;
/// assert_eq!(folder.read("state")?.as_deref(), Some(&b"one"[..]));
/// assert!(Folder::open(place.path().join("data")).is_err(), "it is in use");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The file that was appended to last.
    open: Option<(String, File)>,
    _lock: File,
}

impl Folder {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created, or another process uses it.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let new = !path.is_dir();
        fs::create_dir_all(&path).map_err(|error| at(&path, &error))?;
        if new && let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = lock.map_err(|error| at(&path, &error))?;
        take_lock(&lock).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::new(error.kind(), format!("{} is in use", path.display())),
            _ => at(&path, &error),
        })?;
        // What a killed process was replacing a file with.
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(".new-") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self { path, open: None, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            check_name(name)?;
            let file = OpenOptions::new().create(true).append(true).open(self.path.join(name))?;
            self.open = Some((name.to_owned(), file));
        }
        self.open.as_mut().map(|(_, file)| file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Storage for Folder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_file() && check_name(&name).is_ok() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        check_name(name)?;
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        check_name(name)?;
        let mut file = File::open(self.path.join(name))?;
        file.seek(io::SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.file(name)?.sync_all()?;
        sync_folder(&self.path)
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        let file = self.file(name)?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        self.open.take_if(|(open, _)| open == name);
        // Removed again on every error.
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.path)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(self.path.join(name)).map_err(|error| error.error)?;
        sync_folder(&self.path)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.open.take_if(|(open, _)| open == name);
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Says where it went wrong.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A name is on the disk only when its folder is.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Ends with the process, however it ends.
#[cfg(unix)]
fn take_lock(file: &File) -> io::Result<()> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(())
}

#[cfg(not(unix))]
fn take_lock(_: &File) -> io::Result<()> {
    Ok(())
}
