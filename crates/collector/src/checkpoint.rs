//! One sender's state in a file.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use ucl_link::{Identity, Sequence, Unseen};
use xxhash_rust::xxh3::xxh3_64;

use crate::answers::EpochInfo;

const MAGIC: [u8; 8] = *b"UCLSTATE";
const VERSION: u8 = 1;
const PREFIX: &str = "state%";

/// Everything that is known of one incarnation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub identity: Identity,
    pub format: String,
    pub sequence: Sequence,
    pub epochs: VecDeque<EpochInfo>,
    pub unseen: Option<Unseen>,
    pub station: Vec<u8>,
}

/// Two files take turns, so that the older one is there when the newer cannot be read. `%` is in no
/// name.
pub(crate) fn file_name(identity: &Identity, slot: usize) -> String {
    let Identity { tenant, stream, incarnation } = identity;
    format!("{PREFIX}{tenant}%{stream}%{incarnation}%{slot}")
}

/// The sender and slot of a file, if it is a state.
pub(crate) fn parse_name(name: &str) -> Option<(Identity, usize)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('%');
    let identity = Identity {
        tenant: parts.next()?.parse().ok()?,
        stream: parts.next()?.parse().ok()?,
        incarnation: parts.next()?.parse().ok()?,
    };
    let slot = parts.next()?.parse().ok().filter(|&slot| slot < 2)?;
    parts.next().is_none().then_some((identity, slot))
}

impl Checkpoint {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(postcard::to_stdvec(self).expect("internal: every part of a state can be written"));
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    /// What [`Checkpoint::to_bytes`] wrote; `None` if it was damaged.
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
