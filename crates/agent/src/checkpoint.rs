//! The one file from which an agent goes on.

use std::io;

use serde::{Deserialize, Serialize};
use ucl_link::{Incarnation, Name, Unseen};
use ucl_sketch::{Config, Device};
use ucl_storage::Storage;
use xxhash_rust::xxh3::xxh3_64;

/// The name of the file.
pub(crate) const FILE: &str = "checkpoint";
const MAGIC: [u8; 8] = *b"UCLAGENT";
const VERSION: u8 = 1;

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

    /// Reads what [`Checkpoint::to_bytes`] wrote; `None` if it was damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let (version, content) = content.strip_prefix(&MAGIC)?.split_first()?;
        if *version != VERSION {
            return None;
        }
        match postcard::take_from_bytes(content) {
            Ok((checkpoint, [])) => Some(checkpoint),
            _ => None,
        }
    }
}

/// The configuration of the stream in a folder, if there is one: its seed was random, and an agent
/// that goes on needs the same.
///
/// # Errors
/// If the folder cannot be read.
pub fn stored_config(storage: &impl Storage) -> io::Result<Option<Config>> {
    let bytes = storage.read(FILE)?;
    let checkpoint = bytes.as_deref().and_then(Checkpoint::from_bytes);
    Ok(checkpoint.and_then(|checkpoint| Some(*Device::from_bytes(&checkpoint.device).ok()?.config())))
}
