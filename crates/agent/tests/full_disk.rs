//! A disk that is too small for the spool: the agent goes on counting, does not write without end,
//! and delivers everything as soon as anybody takes it.

mod common;

use common::{drain, settings, take};
use ucl_agent::{Agent, AgentError, AgentSettings};
use ucl_link::{Envelope, Now};
use ucl_storage::SimDisk;

/// Counts epochs that end at once, so that the disk is full before the first checkpoint that has
/// them is due.
fn fill(agent: &mut Agent<SimDisk>, now: &mut Now, items: u32) {
    for item in 0..items {
        agent.insert(&item.to_le_bytes(), 1).unwrap();
        if item.is_multiple_of(1_000) {
            agent.advance(*now, b"").unwrap();
        }
    }
    now.mono_ms += 10_000;
    agent.advance(*now, b"").unwrap();
}

#[test]
fn a_spool_that_fills_the_disk_can_still_be_sent() {
    for room in [200_000, 300_000, 500_000] {
        let disk = SimDisk::new(1);
        disk.set_room(Some(room));
        let mut now = Now::default();
        let (mut agent, _) = Agent::open(disk.clone(), settings(), now, 1).unwrap();
        fill(&mut agent, &mut now, 200_000);
        assert!(agent.status().trouble.is_some(), "the disk is full");
        let first = take(&mut agent, &mut now);
        assert!(first > 0, "of a disk of {room} bytes nothing comes back");
        assert_eq!(first.max(drain(&mut agent, &mut now)), 200_000);
        // And again, from the disk as it is.
        drop(agent);
        let (mut agent, _) = Agent::open(disk, settings(), now, 2).unwrap();
        assert_eq!(agent.status().items, 200_000);
        fill(&mut agent, &mut now, 200_000);
        assert_eq!(drain(&mut agent, &mut now), 400_000);
    }
}

#[test]
fn a_full_disk_is_not_tried_for_every_batch() {
    let disk = SimDisk::new(1);
    let mut now = Now::default();
    let (mut agent, _) = Agent::open(disk.clone(), settings(), now, 1).unwrap();
    disk.set_room(Some(disk.used()));
    fill(&mut agent, &mut now, 10_000);
    let before = disk.writes();
    for _ in 0..1_000 {
        now.mono_ms += 1;
        agent.advance(now, b"").unwrap();
        assert!(agent.status().trouble.is_some());
    }
    assert!(disk.writes() - before < 20, "{} writes in a second", disk.writes() - before);
    disk.set_room(None);
    now.mono_ms += 1_000;
    agent.advance(now, b"").unwrap();
    assert_eq!(agent.status().trouble, None);
}

#[test]
fn the_keys_of_a_stream_stay_of_one_kind() {
    let disk = SimDisk::new(1);
    let now = Now::default();
    drop(Agent::open(disk.clone(), settings(), now, 1).unwrap());
    let other = AgentSettings { format: "field:7".into(), ..settings() };
    let error = Agent::open(disk, other, now, 1).err().expect("it counted lines");
    assert!(matches!(error, AgentError::OtherFormat { .. }), "{error}");
}

/// A link that is too slow for a large request gets smaller ones, down to a single epoch, and
/// larger ones again once they arrive.
#[test]
fn requests_shrink_until_they_arrive() {
    let mut now = Now::default();
    let (mut agent, _) = Agent::open(SimDisk::new(1), settings(), now, 1).unwrap();
    fill(&mut agent, &mut now, 40_000);
    let mut sizes = Vec::new();
    for _ in 0..12 {
        now.mono_ms += 100_000;
        let request = agent.request(now).unwrap().expect("nothing arrived");
        sizes.push(Envelope::split_all(&request.body).unwrap().len());
        agent.on_reply(now, request.id, Err("timed out".into()), 1).unwrap();
    }
    assert!(sizes[0] > 10 && sizes.last() == Some(&1), "{sizes:?}");
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    assert_eq!(drain(&mut agent, &mut now), 40_000);
}
