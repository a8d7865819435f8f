//! The one file from which an agent goes on.

use serde::{Deserialize, Serialize};
use ucl_link::{Incarnation, Name, Unseen};
use ucl_sketch::{Config, Device};
use ucl_storage::Storage;
use xxhash_rust::xxh3::xxh3_64;

use crate::settings::AgentError;

/// The name of the file.
pub(crate) const FILE: &str = "checkpoint";
const MAGIC: [u8; 8] = *b"UCLAGENT";
const VERSION: u8 = 2;

/// Everything but the spool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub tenant: Name,
    pub stream: Name,
    pub incarnation: Incarnation,
    /// The number of the next envelope, and the checksum of the one before.
    pub next_seq: u64,
    pub previous: u64,
    /// Items at the last cut.
    pub items_at_cut: u64,
    /// Time when the open epoch began; the next field is its duration so far.
    pub started_ms: i64,
    pub lasted_ms: u64,
    /// Time when this was written.
    pub written_ms: i64,
    pub unseen: Option<Unseen>,
    /// Position of the input.
    pub position: Vec<u8>,
    /// Messages of the open epoch.
    pub messages: Vec<Vec<u8>>,
    pub device: Vec<u8>,
    /// How keys are read; version 1 did not say.
    pub format: Option<String>,
    /// The last epoch that ended, if the spool had no room for it; nor did version 1 have this.
    pub unspooled: Option<Vec<u8>>,
}

impl Checkpoint {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(postcard::to_stdvec(self).expect("internal: every part of a checkpoint can be written"));
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// What [`Checkpoint::to_bytes`] wrote; `None` if it was damaged.
    ///
    /// # Errors
    /// If a newer version wrote it: it is whole, and must not be given up.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, AgentError> {
        let whole = || {
            let (content, checksum) = bytes.split_last_chunk::<8>()?;
            (xxh3_64(content) == u64::from_le_bytes(*checksum)).then_some(())?;
            content.strip_prefix(&MAGIC)?.split_first()
        };
        let Some((&found, content)) = whole() else { return Ok(None) };
        if found > VERSION {
            return Err(AgentError::NewerState { found });
        }
        // Version 1 is the same without the last two.
        let content = if found == 1 { &[content, &[0, 0]].concat() } else { content };
        match postcard::take_from_bytes(content) {
            Ok((checkpoint, [])) if found > 0 => Ok(Some(checkpoint)),
            _ => Ok(None),
        }
    }
}

/// The configuration of the stream in a folder, if there is one: its seed was random, and an agent
/// that goes on needs the same.
///
/// # Errors
/// If the folder cannot be read, or a newer version wrote what is in it.
pub fn stored_config(storage: &impl Storage) -> Result<Option<Config>, AgentError> {
    let Some(checkpoint) = read(storage)? else { return Ok(None) };
    Ok(Device::from_bytes(&checkpoint.device).ok().map(|device| *device.config()))
}

/// The checkpoint in a folder, if it can be read.
pub(crate) fn read(storage: &impl Storage) -> Result<Option<Checkpoint>, AgentError> {
    storage.read(FILE)?.map_or(Ok(None), |bytes| Checkpoint::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(format: Option<&str>) -> Checkpoint {
        let [tenant, stream] = ["t", "s"].map(|name| name.parse().unwrap());
        Checkpoint {
            tenant,
            stream,
            incarnation: Incarnation { number: 1, nonce: 2 },
            next_seq: 3,
            previous: 4,
            items_at_cut: 5,
            started_ms: -6,
            lasted_ms: 7,
            written_ms: 8,
            unseen: None,
            position: vec![9],
            messages: vec![vec![10]],
            device: vec![11],
            format: format.map(str::to_owned),
            unspooled: None,
        }
    }

    fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn older_versions_are_read_and_newer_ones_are_told_from_damage() {
        let written = checkpoint(Some("lines"));
        let bytes = written.to_bytes();
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), Some(written));
        let older = postcard::to_stdvec(&checkpoint(None)).unwrap();
        let older = older.strip_suffix(&[0, 0]).expect("neither is there");
        let older = summed([&MAGIC[..], &[1], older].concat());
        assert_eq!(Checkpoint::from_bytes(&older).unwrap(), Some(checkpoint(None)));
        let mut newer = bytes[..bytes.len() - 8].to_vec();
        newer[MAGIC.len()] = VERSION + 1;
        let newer = summed(newer);
        assert!(
            matches!(Checkpoint::from_bytes(&newer), Err(AgentError::NewerState { found }) if found == VERSION + 1)
        );
        let mut damaged = newer;
        damaged[20] ^= 1;
        assert_eq!(Checkpoint::from_bytes(&damaged).unwrap(), None);
    }
}
