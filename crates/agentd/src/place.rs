//! Where an agent keeps what the collector does not have yet.

use std::io;
use std::path::PathBuf;

use ucl_storage::{Folder, Memory, Storage};

/// A folder, or on a device without a disk, memory.
pub enum Place {
    Folder(Folder),
    Memory(Memory),
}

impl Place {
    /// Opens a folder, or memory if there is none.
    pub fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        Ok(match folder {
            Some(folder) => Self::Folder(Folder::open(folder)?),
            None => Self::Memory(Memory::new()),
        })
    }
}

/// Calls the same of either.
macro_rules! either {
    ($self:ident, $place:ident => $call:expr) => {
        match $self {
            Self::Folder($place) => $call,
            Self::Memory($place) => $call,
        }
    };
}

impl Storage for Place {
    fn list(&self) -> io::Result<Vec<String>> {
        either!(self, place => place.list())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        either!(self, place => place.read(name))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        either!(self, place => place.read_at(name, offset, length))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        either!(self, place => place.append(name, bytes))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        either!(self, place => place.sync(name))
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        either!(self, place => place.truncate(name, length))
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        either!(self, place => place.replace(name, bytes))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        either!(self, place => place.remove(name))
    }
}
