//! A device without a disk: what waits is in memory, within a bound, and an outage costs resolution
//! alone; a restart begins anew, and says so.

mod common;

use common::{drain, settings};
use ucl_agent::{Agent, AgentSettings};
use ucl_link::{Envelope, Now};
use ucl_storage::{Memory, Storage};

#[test]
fn what_waits_is_in_memory_within_its_bound() {
    let settings = AgentSettings { keeps_state: false, spool_bytes: 16 << 10, ..settings() };
    let mut now = Now { wall_ms: 1_700_000_000_000, mono_ms: 0 };
    let (mut agent, resumed) = Agent::open(Memory::new(), settings.clone(), now, 1).unwrap();
    assert_eq!(resumed.written_ms, None);
    let mut most = 0;
    for item in 0..300_000u32 {
        // The same keys again and again: an outage takes no more names.
        agent.insert(&(item % 3_000).to_le_bytes(), 1).unwrap();
        if item.is_multiple_of(500) {
            now.mono_ms += 10;
            agent.advance(now, b"").unwrap();
            assert!(!agent.is_stalled());
            most = most.max(agent.status().spool_bytes);
        }
    }
    assert!(agent.status().holding && most <= 2 * settings.spool_bytes, "{most} bytes: {:?}", agent.status());
    let files = agent.storage().list().unwrap();
    assert!(files.iter().all(|name| name.starts_with("spool-") || name == "incarnation"), "{files:?}");
    // Once the collector is there, everything arrives.
    assert_eq!(drain(&mut agent, &mut now), 300_000);
    let before = agent.status().incarnation;
    // After a restart, nobody knows what was lost.
    now.wall_ms += 60_000;
    let (mut agent, _) = Agent::open(Memory::new(), settings, now, 2).unwrap();
    assert!(agent.status().incarnation > before);
    agent.insert(b"tea", 1).unwrap();
    agent.finish(now, b"").unwrap();
    let request = agent.request(now).unwrap().unwrap();
    let unseen = Envelope::split(&request.body).unwrap().0.envelope.unseen.expect("what was before is not known");
    assert_eq!(unseen.items, None);
}
