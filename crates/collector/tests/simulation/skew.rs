//! Programs of other versions: what they send, what they write, and what they find.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use ucl_collector::{Collector, CollectorError, EpochInfo};
use ucl_link::{Envelope, Identity, LinkError, Sequence, Times, Unseen};
use ucl_storage::{SimDisk, Storage};
use xxhash_rust::xxh3::xxh3_64;

use crate::setup::collector_settings;

/// Where the version of an envelope is, and that of a state.
const ENVELOPE: usize = 4;
const STATE: usize = 8;

fn sum_again(bytes: &mut [u8]) {
    let end = bytes.len() - 8;
    let checksum = xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
}

/// Makes the first envelope of a body one of a newer version, if it is whole.
pub fn make_newer(body: &mut [u8]) -> bool {
    let Ok((received, _)) = Envelope::split(body) else { return false };
    let length = received.bytes.len();
    body[ENVELOPE] += 1;
    sum_again(&mut body[..length]);
    assert!(matches!(Envelope::split(body), Err(LinkError::NewerVersion(_))));
    true
}

/// A state of version 2, as far as version 1 goes.
#[derive(Deserialize)]
struct State {
    identity: Identity,
    format: String,
    sequence: Sequence,
    epochs: VecDeque<EpochInfo>,
    unseen: Option<Unseen>,
    station: Vec<u8>,
}

#[derive(Serialize)]
struct OlderState {
    identity: Identity,
    format: String,
    sequence: Sequence,
    epochs: Vec<(u64, u64, Times, Option<i64>)>,
    unseen: Option<Unseen>,
    station: Vec<u8>,
}

fn states(disk: &SimDisk) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.starts_with("state")).collect()
}

/// Writes all states as version 1 wrote them. Returns how many.
pub fn write_older_states(disk: &SimDisk) -> u64 {
    let mut written = 0;
    for name in states(disk) {
        let bytes = disk.read(&name).unwrap().unwrap();
        if bytes[STATE] != 2 {
            continue;
        }
        let content = &bytes[STATE + 1..bytes.len() - 8];
        let (state, _): (State, _) = postcard::take_from_bytes(content).unwrap();
        let State { identity, format, sequence, epochs, unseen, station } = state;
        let epoch = |epoch: &EpochInfo| (epoch.seq, epoch.items, epoch.times, epoch.received_ms);
        let epochs = epochs.iter().map(epoch).collect();
        let older = OlderState { identity, format, sequence, epochs, unseen, station };
        let mut older = [&bytes[..STATE], &[1], &postcard::to_stdvec(&older).unwrap(), &[0; 8]].concat();
        sum_again(&mut older);
        disk.damage(&name, |bytes| *bytes = older);
        written += 1;
    }
    written
}

/// A collector that finds a state or a log of a newer version says so, and changes nothing.
pub fn check_that_newer_is_refused(disk: &SimDisk, state: &str) {
    let log = disk.list().unwrap().into_iter().rfind(|name| name.starts_with("log-"));
    for (name, at) in [(Some(state.to_owned()), STATE), (log, ENVELOPE)] {
        let Some(name) = name.filter(|name| !disk.read(name).unwrap().unwrap().is_empty()) else { continue };
        let newer = disk.copied(1);
        newer.damage(&name, |bytes| match at {
            STATE => {
                bytes[at] = u8::MAX;
                sum_again(bytes);
            }
            _ => assert!(make_newer(bytes)),
        });
        let all = |disk: &SimDisk| disk.list().unwrap().iter().map(|name| disk.read(name).unwrap()).collect::<Vec<_>>();
        let before = all(&newer);
        let refused = Collector::open(newer.clone(), collector_settings()).err().expect("it is newer");
        assert!(matches!(refused, CollectorError::NewerState { .. } | CollectorError::Storage(_)), "{refused}");
        assert!(refused.to_string().contains("update"), "{refused}");
        assert!(all(&newer) == before, "{name}");
    }
}
