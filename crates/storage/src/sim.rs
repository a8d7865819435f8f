//! Simulated disk for tests: it crashes, tears writes and fills up, as a seed decides.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Storage, check_name};

/// Simulated disk. All clones share one state.
///
/// Every write (append, sync, truncate, replace, remove) is a place where it can crash: see
/// [`SimDisk::crash_after`]. From a crash to [`SimDisk::reboot`] every call fails. What was
/// appended but not synced survives in part, and that part may be garbled; a file that was removed
/// may be there again.
#[derive(Clone, Debug)]
pub struct SimDisk(Arc<Mutex<Disk>>);

#[derive(Debug)]
struct Disk {
    files: BTreeMap<String, SimFile>,
    /// Removed, but not yet for good.
    removed: BTreeMap<String, SimFile>,
    random: u64,
    writes: u64,
    crash_at: Option<u64>,
    crashed: bool,
    room: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct SimFile {
    bytes: Vec<u8>,
    /// So many bytes are on the disk for good; `None` if even the name is not.
    synced: Option<usize>,
}

impl Disk {
    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.random() % end.max(1) as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.random() & 1 == 1
    }

    fn check(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        if self.crashed { Err(crash()) } else { Ok(()) }
    }

    /// Counts a write. Returns whether the disk crashes in the middle of it.
    fn crashes(&mut self) -> bool {
        self.writes += 1;
        self.crashed = self.crash_at.is_some_and(|at| self.writes > at);
        self.crashed
    }

    fn used(&self) -> usize {
        self.files.values().map(|file| file.bytes.len()).sum()
    }

    fn full(&self, more: usize) -> Option<usize> {
        let room = self.room?.saturating_sub(self.used());
        (more > room).then_some(room)
    }
}

fn crash() -> io::Error {
    io::Error::other("the simulated disk has crashed")
}

fn no_room() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full")
}

impl SimDisk {
    /// Creates an empty disk. The seed decides what survives a crash.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            files: BTreeMap::new(),
            removed: BTreeMap::new(),
            random: seed,
            writes: 0,
            crash_at: None,
            crashed: false,
            room: None,
        })))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Crashes in the middle of a write, after this number of further writes.
    pub fn crash_after(&self, writes: u64) {
        let mut disk = self.disk();
        disk.crash_at = Some(disk.writes + writes);
    }

    /// Crashes the disk now.
    pub fn crash(&self) {
        self.disk().crashed = true;
    }

    /// Returns true if the disk has crashed and was not started again.
    pub fn is_crashed(&self) -> bool {
        self.disk().crashed
    }

    /// Number of writes so far.
    pub fn writes(&self) -> u64 {
        self.disk().writes
    }

    /// Starts the disk again after a crash, with the data that survived.
    pub fn reboot(&self) {
        let mut disk = self.disk();
        disk.crashed = false;
        disk.crash_at = None;
        for (name, file) in std::mem::take(&mut disk.removed) {
            if disk.coin() && !disk.files.contains_key(&name) {
                disk.files.insert(name, file);
            }
        }
        for (name, mut file) in std::mem::take(&mut disk.files) {
            let synced = file.synced.unwrap_or(0);
            let loose = file.bytes.len() - synced.min(file.bytes.len());
            if file.synced.is_none() && disk.coin() {
                continue;
            }
            let kept = synced + disk.below(loose + 1);
            file.bytes.truncate(kept);
            if kept > synced && disk.coin() {
                let at = synced + disk.below(kept - synced);
                file.bytes[at] ^= 1 + disk.below(255) as u8;
            }
            file.synced = Some(file.bytes.len());
            disk.files.insert(name, file);
        }
    }

    /// Removes every file, as if the disk had been replaced.
    pub fn wipe(&self) {
        let mut disk = self.disk();
        disk.files.clear();
        disk.removed.clear();
    }

    /// Sets the capacity in bytes; `None` for no limit.
    pub fn set_room(&self, bytes: Option<usize>) {
        self.disk().room = bytes;
    }

    /// Total size of all files in bytes.
    pub fn used(&self) -> usize {
        self.disk().used()
    }

    /// Changes the bytes of a file without its writer's knowledge, if the file exists.
    pub fn damage(&self, name: &str, damage: impl FnOnce(&mut Vec<u8>)) {
        if let Some(file) = self.disk().files.get_mut(name) {
            damage(&mut file.bytes);
            file.synced = Some(file.bytes.len());
        }
    }

    /// Returns a copy of the disk in its present state, like a backup or a cloned machine.
    pub fn copied(&self, seed: u64) -> Self {
        let copy = Self::new(seed);
        copy.disk().files = self.disk().files.clone();
        copy
    }
}

impl Storage for SimDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let disk = self.disk();
        if disk.crashed { Err(crash()) } else { Ok(disk.files.keys().cloned().collect()) }
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let disk = self.disk();
        disk.check(name)?;
        Ok(disk.files.get(name).map(|file| file.bytes.clone()))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let disk = self.disk();
        disk.check(name)?;
        let file = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let range = usize::try_from(offset).ok().and_then(|offset| file.bytes.get(offset..)?.get(..length));
        Ok(range.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check(name)?;
        let crashes = disk.crashes();
        let full = disk.full(bytes.len());
        let written = match (crashes, full) {
            (true, _) => disk.below(bytes.len() + 1).min(full.unwrap_or(usize::MAX)),
            (false, Some(room)) => room,
            (false, None) => bytes.len(),
        };
        disk.files.entry(name.to_owned()).or_default().bytes.extend_from_slice(&bytes[..written]);
        match (crashes, full) {
            (true, _) => Err(crash()),
            (false, Some(_)) => Err(no_room()),
            (false, None) => Ok(()),
        }
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check(name)?;
        if disk.crashes() {
            return Err(crash());
        }
        let file = disk.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        file.synced = Some(file.bytes.len());
        disk.removed.clear();
        Ok(())
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check(name)?;
        let crashes = disk.crashes();
        if crashes && disk.coin() {
            return Err(crash());
        }
        let file = disk.files.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        file.bytes.resize(length as usize, 0);
        file.synced = Some(file.bytes.len());
        if crashes { Err(crash()) } else { Ok(()) }
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check(name)?;
        let crashes = disk.crashes();
        if crashes && disk.coin() {
            return Err(crash());
        }
        if !crashes && disk.full(bytes.len()).is_some() {
            return Err(no_room());
        }
        let file = SimFile { bytes: bytes.to_vec(), synced: Some(bytes.len()) };
        disk.files.insert(name.to_owned(), file);
        disk.removed.clear();
        if crashes { Err(crash()) } else { Ok(()) }
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.check(name)?;
        let crashes = disk.crashes();
        if let Some(file) = disk.files.remove(name) {
            disk.removed.insert(name.to_owned(), file);
        }
        if crashes { Err(crash()) } else { Ok(()) }
    }
}
