//! Which incarnations were deleted: those of which the log still has epochs, and for many more of
//! them those of which an epoch may still be under way. One that comes late, or again, must not
//! bring back what was deleted.

use std::collections::BTreeSet;
use std::io;

use ucl_link::Identity;
use ucl_storage::Storage;
use xxhash_rust::xxh3::xxh3_64;

const FILE: &str = "deleted";
const MAGIC: [u8; 8] = *b"UCLGONE\x01";

/// Incarnations in the list that the log does not need, at most.
const KEPT: usize = 10_000;

/// The list, as it is on the disk.
#[derive(Debug, Default)]
pub(crate) struct Deleted(BTreeSet<Identity>);

impl Deleted {
    pub fn open(storage: &impl Storage) -> io::Result<Self> {
        let Some(bytes) = storage.read(FILE)? else { return Ok(Self::default()) };
        let read = || {
            let (content, checksum) = bytes.split_last_chunk::<8>()?;
            (xxh3_64(content) == u64::from_le_bytes(*checksum)).then_some(())?;
            postcard::from_bytes(content.strip_prefix(&MAGIC)?).ok()
        };
        // Without it, what was deleted would be there again.
        let damaged = || io::Error::other("the list of deleted streams is damaged: restore or remove `deleted`");
        read().map(Self).ok_or_else(damaged)
    }

    pub fn has(&self, identity: &Identity) -> bool {
        self.0.contains(identity)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Identity> {
        self.0.iter()
    }

    /// Adds incarnations, on the disk first.
    pub fn add(&mut self, storage: &mut impl Storage, more: &[Identity]) -> io::Result<()> {
        let all: BTreeSet<Identity> = self.0.iter().chain(more).cloned().collect();
        self.write(storage, all)
    }

    /// Forgets some of those that the log does not need, if they are too many.
    pub fn retain(&mut self, storage: &mut impl Storage, is_needed: impl Fn(&Identity) -> bool) -> io::Result<()> {
        if self.0.len() <= KEPT {
            return Ok(());
        }
        let mut spare = KEPT;
        let kept = self.0.iter().filter(|identity| {
            let keep = is_needed(identity) || spare > 0;
            spare -= usize::from(keep && !is_needed(identity));
            keep
        });
        let kept: BTreeSet<Identity> = kept.cloned().collect();
        if kept.len() < self.0.len() { self.write(storage, kept) } else { Ok(()) }
    }

    fn write(&mut self, storage: &mut impl Storage, all: BTreeSet<Identity>) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(postcard::to_stdvec(&all).map_err(io::Error::other)?);
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        storage.replace(FILE, &bytes)?;
        self.0 = all;
        Ok(())
    }
}
