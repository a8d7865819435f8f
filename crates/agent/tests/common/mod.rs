//! An agent small enough to try things, and a collector that takes everything.

use ucl_agent::{Agent, AgentSettings};
use ucl_link::{Envelope, Now, Reply};
use ucl_sketch::{DecoderKind, Epochs, Mode, UclSketch};
use ucl_storage::Storage;

pub fn settings() -> AgentSettings {
    let builder = UclSketch::builder().memory("16KB").seed(1).mode(Mode::Sketch(DecoderKind::Delta));
    let [tenant, stream] = ["t", "s"].map(|name| name.parse().unwrap());
    AgentSettings { epochs: Epochs::Every(1_000), ..AgentSettings::new(tenant, stream, builder.plan().unwrap().0) }
}

/// Takes what the agent sends, as a collector would. Returns how many items it knows of.
pub fn take(agent: &mut Agent<impl Storage>, now: &mut Now) -> u64 {
    let mut items = 0;
    loop {
        now.mono_ms += 100_000;
        agent.advance(*now, b"").unwrap();
        let Some(request) = agent.request(*now).unwrap() else { return items };
        let envelopes = Envelope::split_all(&request.body).unwrap();
        let last = envelopes.last().unwrap();
        items = last.envelope.items;
        let durable_seq = last.envelope.seq + 1;
        let checksum = last.checksum;
        let reply = Reply { durable_seq, checksum, window: 1 << 20, retry_after_ms: 0, refusal: None };
        agent.on_reply(*now, request.id, Ok(reply), 1).unwrap();
    }
}

/// Lets the agent deliver everything. Returns how many items the collector knows of.
pub fn drain(agent: &mut Agent<impl Storage>, now: &mut Now) -> u64 {
    let taken = take(agent, now);
    agent.finish(*now, b"").unwrap();
    let items = taken.max(take(agent, now));
    assert_eq!(agent.status().waiting, 0);
    items
}
