//! Storage in memory, for devices without a disk.

use std::collections::BTreeMap;
use std::io;

use crate::{Storage, check_name};

/// Files in memory: they end with the process.
#[derive(Clone, Debug, Default)]
pub struct Memory(BTreeMap<String, Vec<u8>>);

impl Memory {
    /// Creates storage without files.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Storage for Memory {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        check_name(name)?;
        Ok(self.0.get(name).cloned())
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        check_name(name)?;
        let file = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        let range = usize::try_from(offset).ok().and_then(|offset| file.get(offset..)?.get(..length));
        Ok(range.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        self.0.entry(name.to_owned()).or_default().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        check_name(name)
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        check_name(name)?;
        let file = self.0.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        file.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        self.0.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        check_name(name)?;
        self.0.remove(name);
        Ok(())
    }
}
