//! One sender's state in a file.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use ucl_link::{Identity, Sequence, Times, Unseen};
use xxhash_rust::xxh3::xxh3_64;

use crate::answers::EpochInfo;

const MAGIC: [u8; 8] = *b"UCLSTATE";
const VERSION: u8 = 2;
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
    pub uplink_bytes: u64,
}

/// What version 1 had of it.
#[derive(Serialize, Deserialize)]
struct CheckpointV1 {
    identity: Identity,
    format: String,
    sequence: Sequence,
    epochs: VecDeque<EpochV1>,
    unseen: Option<Unseen>,
    station: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct EpochV1 {
    seq: u64,
    items: u64,
    times: Times,
    received_ms: Option<i64>,
}

impl From<CheckpointV1> for Checkpoint {
    fn from(old: CheckpointV1) -> Self {
        let CheckpointV1 { identity, format, sequence, epochs, unseen, station } = old;
        let epoch = |EpochV1 { seq, items, times, received_ms }: EpochV1| EpochInfo {
            seq,
            items,
            weight: None,
            times,
            received_ms,
        };
        let epochs = epochs.into_iter().map(epoch).collect();
        Self { identity, format, sequence, epochs, unseen, station, uplink_bytes: 0 }
    }
}

/// A newer version of this program wrote the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewerState;

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
    ///
    /// # Errors
    /// If a newer version wrote it: it is whole, and must not be given up.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, NewerState> {
        let parts = || {
            let (content, checksum) = bytes.split_last_chunk::<8>()?;
            (xxh3_64(content) == u64::from_le_bytes(*checksum)).then_some(())?;
            content.strip_prefix(&MAGIC)?.split_first()
        };
        match parts() {
            Some((1, content)) => Ok(whole::<CheckpointV1>(content).map(Self::from)),
            Some((&VERSION, content)) => Ok(whole(content)),
            Some((&newer, _)) if newer > VERSION => Err(NewerState),
            _ => Ok(None),
        }
    }
}

fn whole<'a, T: Deserialize<'a>>(content: &'a [u8]) -> Option<T> {
    match postcard::take_from_bytes(content) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States that the first version wrote are read.
    #[test]
    fn version_1_is_read() {
        let identity = Identity::new("t", "s", "1-00000000000000ab".parse().unwrap()).unwrap();
        let times = Times { started_ms: 1, ended_ms: 2, duration_ms: 3 };
        let epochs = VecDeque::from([EpochV1 { seq: 0, items: 7, times, received_ms: Some(9) }]);
        let format = "lines".to_owned();
        let sequence = Sequence::default();
        let old = CheckpointV1 { identity, format, sequence, epochs, unseen: None, station: vec![1, 2, 3] };
        let mut bytes = [&MAGIC[..], &[1], &postcard::to_stdvec(&old).unwrap()].concat();
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        let read = Checkpoint::from_bytes(&bytes).unwrap().unwrap();
        assert_eq!(read.station, [1, 2, 3]);
        let epoch = EpochInfo { seq: 0, items: 7, weight: None, times, received_ms: Some(9) };
        assert_eq!(read.epochs, [epoch]);
        let again = Checkpoint::from_bytes(&read.to_bytes()).unwrap().unwrap();
        assert_eq!((again.epochs, again.uplink_bytes), (read.epochs, 0));
        // What a later one may write is told from damage.
        let last = bytes.len() - 8;
        bytes.truncate(last);
        bytes[8] = VERSION + 1;
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap_err(), NewerState);
        bytes[20] ^= 1;
        assert!(Checkpoint::from_bytes(&bytes).unwrap().is_none());
    }
}
