//! The log: every epoch that was taken since the states were written.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use ucl_link::{Envelope, Identity, Received};
use ucl_storage::Storage;

const PREFIX: &str = "log-";

fn name(number: u64) -> String {
    format!("{PREFIX}{number:016}")
}

/// Files of envelopes laid end to end. The last one is appended to.
#[derive(Debug)]
pub(crate) struct Log {
    files: VecDeque<LogFile>,
    next_file: u64,
    file_bytes: u64,
    /// Envelopes that are not in a file yet.
    buffer: Vec<u8>,
    buffered: Vec<(Identity, u64)>,
}

#[derive(Debug, Default)]
struct LogFile {
    number: u64,
    bytes: u64,
    /// The number after the last envelope of each sender.
    ends: BTreeMap<Identity, u64>,
}

impl LogFile {
    fn note(&mut self, identity: &Identity, seq: u64) {
        let end = self.ends.entry(identity.clone()).or_default();
        *end = (*end).max(seq + 1);
    }
}

impl Log {
    /// Reads the log from its beginning, and hands every envelope to `each`. What was torn is cut
    /// off.
    pub fn open(storage: &mut impl Storage, file_bytes: u64, mut each: impl FnMut(&Received<'_>)) -> io::Result<Self> {
        let mut log =
            Self { files: VecDeque::new(), next_file: 0, file_bytes, buffer: Vec::new(), buffered: Vec::new() };
        for number in numbers(storage)? {
            let bytes = storage.read(&name(number))?.unwrap_or_default();
            let (envelopes, whole) = split(number, &bytes)?;
            let mut file = LogFile { number, bytes: whole as u64, ..LogFile::default() };
            for received in &envelopes {
                file.note(&received.envelope.identity, received.envelope.seq);
                each(received);
            }
            if whole < bytes.len() {
                storage.truncate(&name(number), whole as u64)?;
            }
            log.next_file = number + 1;
            log.files.push_back(file);
        }
        Ok(log)
    }

    /// Hands every envelope of one sender that is on the disk to `each`, oldest first.
    pub fn replay(storage: &impl Storage, identity: &Identity, mut each: impl FnMut(&Received<'_>)) -> io::Result<()> {
        for number in numbers(storage)? {
            let bytes = storage.read(&name(number))?.unwrap_or_default();
            let (envelopes, _) = split(number, &bytes)?;
            envelopes.iter().filter(|received| received.envelope.identity == *identity).for_each(&mut each);
        }
        Ok(())
    }

    /// Adds an envelope to what the next [`Log::commit`] writes.
    pub fn add(&mut self, received: &Received<'_>) {
        self.buffer.extend(received.bytes);
        self.buffered.push((received.envelope.identity.clone(), received.envelope.seq));
    }

    /// Writes what was added, and returns once it is on the disk. After an error none of it counts.
    pub fn commit(&mut self, storage: &mut impl Storage) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let buffered = std::mem::take(&mut self.buffered);
        if buffer.is_empty() {
            return Ok(());
        }
        if self.files.back().is_none_or(|last| last.bytes >= self.file_bytes) {
            self.files.push_back(LogFile { number: self.next_file, ..LogFile::default() });
            self.next_file += 1;
        }
        let Some(last) = self.files.back_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        if let Err(error) = storage.append(&name(last.number), &buffer) {
            // Whole envelopes may be in the part that was written, and count for nothing.
            storage.truncate(&name(last.number), last.bytes).map_err(fatal)?;
            return Err(error);
        }
        storage.sync(&name(last.number)).map_err(fatal)?;
        last.bytes += buffer.len() as u64;
        for (identity, seq) in &buffered {
            last.note(identity, *seq);
        }
        Ok(())
    }

    /// Removes the files from the beginning that no sender needs any more. `covered` tells which
    /// envelopes of a sender are in both of its states.
    pub fn trim(&mut self, storage: &mut impl Storage, covered: impl Fn(&Identity) -> u64) -> io::Result<usize> {
        let mut removed = 0;
        // The last one is being written to.
        while self.files.len() > 1 && self.files[0].ends.iter().all(|(identity, &end)| covered(identity) >= end) {
            if let Some(file) = self.files.pop_front() {
                storage.remove(&name(file.number))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Senders that keep the oldest file from being removed.
    pub fn holders(&self, covered: impl Fn(&Identity) -> u64) -> Vec<Identity> {
        let Some(first) = self.files.front() else { return Vec::new() };
        first.ends.iter().filter(|&(identity, &end)| covered(identity) < end).map(|(id, _)| id.clone()).collect()
    }

    /// Returns true if a file has envelopes of a sender.
    pub fn has(&self, identity: &Identity) -> bool {
        self.files.iter().any(|file| file.ends.contains_key(identity))
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The envelopes of a file, and the length of what they take.
fn split(number: u64, bytes: &[u8]) -> io::Result<(Vec<Received<'_>>, usize)> {
    Envelope::split_log(bytes).map_err(|newer| io::Error::other(format!("{}: {newer}", name(number))))
}

/// Not an error after which one may go on, whatever the system calls it.
fn fatal(error: io::Error) -> io::Error {
    io::Error::other(error)
}

fn numbers(storage: &impl Storage) -> io::Result<Vec<u64>> {
    let names = storage.list()?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
