//! Epochs that wait for the collector: files of envelopes laid end to end.

use std::collections::VecDeque;
use std::io;

use ucl_link::{Envelope, Incarnation};
use ucl_storage::Storage;

const PREFIX: &str = "spool-";

/// Envelopes on disk, by number.
#[derive(Debug)]
pub(crate) struct Spool {
    /// Files that hold something, oldest first; the last is appended to.
    files: VecDeque<File>,
    entries: VecDeque<Entry>,
    /// The number of the next file.
    next_file: u64,
    /// A file is not appended to beyond this.
    file_bytes: u64,
    capacity: u64,
    /// Whether the last file has envelopes that may not be on the disk.
    unsynced: bool,
}

#[derive(Debug)]
struct File {
    number: u64,
    bytes: u64,
    /// Bytes after the last whole envelope: an append failed in the middle.
    torn: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub seq: u64,
    /// Items of the incarnation up to its end.
    pub items: u64,
    /// Time when the epoch ended.
    pub ended_ms: i64,
    pub checksum: u64,
    file: u64,
    offset: u64,
    pub length: u64,
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number:016}")
}

impl Spool {
    /// Opens the spool with the envelopes below `end`, which the checkpoint has. Later ones were
    /// never sent and are cut off, as is whatever was torn.
    pub fn open(
        storage: &mut impl Storage,
        capacity: u64,
        incarnation: Option<Incarnation>,
        end: u64,
    ) -> io::Result<Self> {
        let mut found: Vec<(File, Vec<Entry>)> = Vec::new();
        let mut next_file = 0;
        for file_name in storage.list()? {
            let Some(number) = file_name.strip_prefix(PREFIX).and_then(|number| number.parse().ok()) else { continue };
            next_file = next_file.max(number + 1);
            let bytes = storage.read(&file_name)?.unwrap_or_default();
            let split = Envelope::split_log(&bytes);
            let (envelopes, whole) = split.map_err(|newer| io::Error::other(format!("{file_name}: {newer}")))?;
            let mut offset = 0;
            let mut entries = Vec::new();
            for received in &envelopes {
                let length = received.bytes.len() as u64;
                let envelope = &received.envelope;
                if Some(envelope.identity.incarnation) != incarnation || envelope.seq >= end {
                    break;
                }
                let (seq, items, ended_ms) = (envelope.seq, envelope.items, envelope.times.ended_ms);
                let checksum = received.checksum;
                entries.push(Entry { seq, items, ended_ms, checksum, file: number, offset, length });
                offset += length;
            }
            let file = File { number, bytes: offset, torn: offset < bytes.len() as u64 || whole < bytes.len() };
            found.push((file, entries));
        }
        found.sort_by_key(|(file, _)| file.number);
        // The envelopes that end where the checkpoint does, without a gap. A file that was removed
        // may have come back.
        let mut spool = Self {
            files: VecDeque::new(),
            entries: VecDeque::new(),
            next_file,
            file_bytes: (capacity / 8).max(1 << 16),
            capacity,
            unsynced: false,
        };
        let mut wanted = end;
        for (file, entries) in found.into_iter().rev() {
            let mut kept = false;
            for entry in entries.into_iter().rev() {
                if wanted > 0 && entry.seq + 1 == wanted {
                    wanted -= 1;
                    spool.entries.push_front(entry);
                    kept = true;
                }
            }
            if !kept {
                storage.remove(&name(file.number))?;
                continue;
            }
            if file.torn {
                storage.truncate(&name(file.number), file.bytes)?;
            }
            spool.files.push_front(File { torn: false, ..file });
        }
        Ok(spool)
    }

    /// Appends an envelope. It is on the disk after [`Spool::sync`].
    pub fn push(
        &mut self,
        storage: &mut impl Storage,
        (seq, items, ended_ms, checksum): (u64, u64, i64, u64),
        bytes: &[u8],
    ) -> io::Result<()> {
        let length = bytes.len() as u64;
        if let Some(last) = self.files.back_mut().filter(|last| last.torn) {
            storage.truncate(&name(last.number), last.bytes)?;
            last.torn = false;
        }
        if self.files.back().is_none_or(|last| last.bytes + length > self.file_bytes) {
            self.sync(storage)?;
            self.files.push_back(File { number: self.next_file, bytes: 0, torn: false });
            self.next_file += 1;
        }
        let Some(last) = self.files.back_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        last.torn = true;
        storage.append(&name(last.number), bytes)?;
        last.torn = false;
        self.unsynced = true;
        self.entries.push_back(Entry { seq, items, ended_ms, checksum, file: last.number, offset: last.bytes, length });
        last.bytes += length;
        Ok(())
    }

    /// Returns once every envelope is on the disk.
    pub fn sync(&mut self, storage: &mut impl Storage) -> io::Result<()> {
        if self.unsynced
            && let Some(last) = self.files.back()
        {
            // Nothing is known of the file after a failure, also not if the disk was full.
            storage.sync(&name(last.number)).map_err(io::Error::other)?;
        }
        self.unsynced = false;
        Ok(())
    }

    /// Frees the envelopes below this number.
    pub fn free_below(&mut self, storage: &mut impl Storage, seq: u64) -> io::Result<()> {
        while self.entries.front().is_some_and(|entry| entry.seq < seq) {
            self.entries.pop_front();
        }
        let first = self.entries.front().map_or(u64::MAX, |entry| entry.file);
        while self.files.front().is_some_and(|file| file.number < first) {
            if let Some(file) = self.files.pop_front() {
                storage.remove(&name(file.number))?;
            }
        }
        Ok(())
    }

    /// Removes every file.
    pub fn clear(&mut self, storage: &mut impl Storage) -> io::Result<()> {
        self.entries.clear();
        self.unsynced = false;
        for file in self.files.drain(..) {
            storage.remove(&name(file.number))?;
        }
        Ok(())
    }

    pub fn read(&self, storage: &impl Storage, entry: &Entry) -> io::Result<Vec<u8>> {
        storage.read_at(&name(entry.file), entry.offset, entry.length as usize)
    }

    /// Envelopes that wait, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns true if this many more bytes fit the capacity. One epoch always does: the carries of
    /// a long outage may take more than a small spool has, and would be stuck for ever.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.bytes() + bytes <= self.capacity || self.entries.is_empty()
    }
}
