//! Room on the disk that is kept free for the next checkpoint.
//!
//! Epochs are sent only once a checkpoint has them, and their room is freed only once they were
//! sent. So an agent whose spool fills the disk before the next checkpoint could never send again.
//! A file that holds the room, and is removed when the disk is full, prevents that.

use std::io;

use ucl_storage::{Storage, is_full};

/// The name of the file.
const FILE: &str = "reserve";
/// The file grows by so much at once, so that it is not written again for every few bytes.
const STEP: u64 = 64 << 10;

/// The file, as long as it is there.
#[derive(Debug)]
pub(crate) struct Reserve {
    bytes: u64,
}

impl Reserve {
    /// What there is of it.
    pub fn open(storage: &impl Storage) -> io::Result<Self> {
        Ok(Self { bytes: storage.read(FILE)?.map_or(0, |file| file.len() as u64) })
    }

    /// Bytes that are kept free.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps so many bytes free, or if the disk has no room for that, as many as before.
    pub fn keep(&mut self, storage: &mut impl Storage, bytes: u64) -> io::Result<()> {
        if self.bytes >= bytes {
            return Ok(());
        }
        let more = bytes.next_multiple_of(STEP) - self.bytes;
        match storage.append(FILE, &vec![0; more as usize]) {
            Ok(()) => {
                self.bytes += more;
                storage.sync(FILE).map_err(io::Error::other)
            }
            Err(error) if !is_full(&error) => Err(error),
            Err(_) if self.bytes > 0 => storage.truncate(FILE, self.bytes),
            Err(_) => storage.remove(FILE),
        }
    }

    /// Frees the room. Returns whether there was any.
    pub fn free(&mut self, storage: &mut impl Storage) -> io::Result<bool> {
        storage.remove(FILE)?;
        Ok(std::mem::take(&mut self.bytes) > 0)
    }
}
