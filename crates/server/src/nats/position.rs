//! How far a partition was read.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use ucl_storage::{Folder, Storage};

const FILE: &str = "position";

/// The last message that is in the collector's log, with everything before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number that the broker gave it.
    pub sequence: u64,
    /// Time when the broker's stream was made: another stream has other numbers.
    pub made_ns: i128,
}

impl Position {
    /// The position in a stream that was made then, and whose last message has this number.
    ///
    /// What was noted counts for nothing in another stream, and not beyond the end of a stream: a
    /// broker that lost its last messages gives their numbers to others.
    pub fn within(self, made_ns: i128, last: u64) -> Self {
        let sequence = if self.made_ns == made_ns { self.sequence.min(last) } else { 0 };
        Self { sequence, made_ns }
    }
}

/// The position on disk.
pub struct Noted {
    folder: Folder,
    noted: Position,
}

impl Noted {
    /// Reads it. One that is missing or damaged is the beginning.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let folder = Folder::open(path)?;
        let noted = folder.read(FILE)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Ok(Self { folder, noted })
    }

    /// Returns the position that is on disk.
    pub fn get(&self) -> Position {
        self.noted
    }

    /// Writes it down.
    ///
    /// # Errors
    /// If the disk fails or is full.
    pub fn set(&mut self, position: Position) -> io::Result<()> {
        self.folder.replace(FILE, &serde_json::to_vec(&position)?)?;
        self.noted = position;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_holds_in_its_own_stream_and_not_beyond_its_end() {
        let position = Position { sequence: 5_000, made_ns: 1 };
        assert_eq!(position.within(1, 6_000).sequence, 5_000);
        assert_eq!(position.within(1, 4_990).sequence, 4_990, "the broker lost its last messages");
        assert_eq!(position.within(2, 6_000), Position { sequence: 0, made_ns: 2 }, "the stream was made anew");
    }

    #[test]
    fn a_damaged_note_is_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let position = Position { sequence: 7, made_ns: i128::from(u64::MAX) };
        Noted::open(folder.path()).unwrap().set(position).unwrap();
        assert_eq!(Noted::open(folder.path()).unwrap().get(), position);
        std::fs::write(folder.path().join(FILE), b"{").unwrap();
        assert_eq!(Noted::open(folder.path()).unwrap().get(), Position::default());
    }
}
