//! Reads a file, and goes on when it grows.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::position::FileId;

/// How often a file that does not grow is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long a file that was moved away is read on: whoever writes it has to open the new one first.
const GRACE: Duration = Duration::from_secs(1);

/// Reason why a file came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There is no more, and nobody waits for it.
    Reached = 0,
    /// Another file has its name: it was rotated.
    Rotated = 1,
    /// It became shorter than what was read of it.
    Truncated = 2,
}

/// Reason why a [`Tail`] ended, known once it was read to its end.
#[derive(Clone, Debug, Default)]
pub struct Ending(Arc<AtomicU8>);

impl Ending {
    pub fn get(&self) -> End {
        match self.0.load(Relaxed) {
            1 => End::Rotated,
            2 => End::Truncated,
            _ => End::Reached,
        }
    }
}

/// A file from some byte on. If it is followed, reading waits at its end until it grows, and ends
/// when another file takes its name or it is cut.
pub struct Tail {
    file: File,
    read: u64,
    followed: Option<(PathBuf, FileId)>,
    /// When another file was first seen under its name.
    rotated: Option<Instant>,
    stop: Arc<AtomicBool>,
    ending: Ending,
}

impl Tail {
    /// Starts at byte `from`, where the file is. `followed` has the name that is watched.
    pub fn new(file: File, from: u64, followed: Option<(PathBuf, FileId)>, stop: Arc<AtomicBool>) -> Self {
        Self { file, read: from, followed, rotated: None, stop, ending: Ending::default() }
    }

    pub fn ending(&self) -> Ending {
        self.ending.clone()
    }

    fn end(&self, end: End) -> io::Result<usize> {
        self.ending.0.store(end as u8, Relaxed);
        Ok(0)
    }
}

impl Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut waited = false;
        loop {
            let n = self.file.read(buffer)?;
            let Some((path, id)) = &mut self.followed else { return Ok(n) };
            if n > 0 {
                // A file that was cut may have grown past this place since the last look.
                if waited && !id.is(&self.file)? {
                    return self.end(End::Truncated);
                }
                if id.is_short() {
                    *id = FileId::of(&self.file)?;
                }
                self.read += n as u64;
                return Ok(n);
            }
            if self.stop.load(Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if self.file.metadata()?.len() < self.read {
                return self.end(End::Truncated);
            }
            // While there is no new file, the old one may still be written to.
            if path.exists() && !id.has_number_of(path) {
                let since = *self.rotated.get_or_insert_with(Instant::now);
                if since.elapsed() >= GRACE {
                    return self.end(End::Rotated);
                }
            }
            std::thread::sleep(LOOK);
            waited = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut and written again, longer than before, between two looks: its bytes are others, from
    /// the beginning on.
    #[cfg(unix)]
    #[test]
    fn a_file_that_was_cut_and_grew_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let file = File::open(&path).unwrap();
        let id = FileId::of(&file).unwrap();
        let mut tail = Tail::new(file, 0, Some((path.clone(), id)), Arc::default());
        let ending = tail.ending();
        let mut buffer = [0; 64];
        assert_eq!(tail.read(&mut buffer).unwrap(), 8);
        let rewriting = std::thread::spawn(move || {
            std::thread::sleep(LOOK / 2);
            std::fs::write(&path, "another line\nand one more\n").unwrap();
        });
        assert_eq!(tail.read(&mut buffer).unwrap(), 0);
        assert_eq!(ending.get(), End::Truncated);
        rewriting.join().unwrap();
    }
}
