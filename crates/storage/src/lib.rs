//! Files that survive crashes, behind a small trait.
//!
//! An agent and a collector must not lose acknowledged data. They write through [`Storage`]: files
//! that grow ([`Storage::append`], durable after [`Storage::sync`]) and files that change as a
//! whole ([`Storage::replace`], atomic and durable). [`Folder`] is a folder on disk. [`Memory`] is
//! for devices that have none. [`SimDisk`] simulates a disk for tests: it crashes at any write,
//! tears unsynced data, and fills up.
//!
//! ```
//! use ucl_storage::{SimDisk, Storage};
//!
//! let mut disk = SimDisk::new(1);
//! disk.append("log", b"synced")?;
//! disk.sync("log")?;
//! disk.append("log", b", not synced")?;
//! disk.crash(); // as if the power had failed
//! assert!(disk.read("log").is_err());
//! disk.reboot();
//! assert!(disk.read("log")?.unwrap().starts_with(b"synced"));
//! # Ok::<(), std::io::Error>(())
//! ```

mod folder;
mod memory;
mod sim;

use std::io;

pub use folder::Folder;
pub use memory::Memory;
pub use sim::SimDisk;

/// Largest length of a file name in bytes.
pub const MAX_NAME: usize = 200;

/// Flat folder of files.
///
/// After an error of [`Storage::append`] the file may end with a part of the bytes: truncate it
/// before the next append. After an error of [`Storage::sync`] nothing is known of the bytes since
/// the last one: stop, and read the files again.
pub trait Storage {
    /// Returns the names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Returns the content of a file, or `None` if it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Returns `length` bytes of a file from `offset` on.
    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;

    /// Appends bytes to a file, and creates it if it does not exist.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything appended to the file is on the disk, its name included.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Shortens a file to this length, and returns once that is on the disk.
    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()>;

    /// Replaces a file by these bytes, on the disk too. After a crash it is the old one or the new
    /// one, whole.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file, if it exists. After a crash it may exist again.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}

/// Returns true if a write failed because the disk has no room, or the user has none left on it: it
/// can work another time, and nothing else is wrong.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// assert!(ucl_storage::is_full(&Error::from(ErrorKind::StorageFull)));
/// assert!(!ucl_storage::is_full(&Error::from(ErrorKind::PermissionDenied)));
/// ```
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns an error unless the name is that of a file in the folder itself.
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-%".contains(&byte);
    let valid = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('.');
    if valid {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for a file in this folder")))
}
