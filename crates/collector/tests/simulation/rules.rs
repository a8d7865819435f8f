//! Rules that need a case of their own.

use ucl_agent::{Agent, AgentSettings};
use ucl_collector::{Collector, CollectorSettings, Limits};
use ucl_link::{Envelope, Now, Reply};
use ucl_storage::SimDisk;

use crate::setup::{KEYS, collector_settings, config, key};
use crate::truth::all_answers;

/// A tenant at its limits cannot go on, and no other tenant notices.
#[test]
fn limits_are_per_tenant() {
    let limits = Limits { streams: 2, incarnations: 3, keys: 60, counters: 100, memory: 1 << 30 };
    let settings = CollectorSettings { limits, ..collector_settings() };
    let mut collector = Collector::open(SimDisk::new(1), settings).unwrap();
    let mut now = Now::default();
    let mut send = |collector: &mut Collector<SimDisk>, tenant: &str, stream: &str, keys: std::ops::Range<u32>| {
        let settings = AgentSettings::new(tenant.parse().unwrap(), stream.parse().unwrap(), config(2));
        now.mono_ms += 1;
        let (mut agent, _) = Agent::open(SimDisk::new(1), settings, now, now.mono_ms).unwrap();
        for number in keys {
            agent.insert(format!("{number}").as_bytes(), 1).unwrap();
        }
        agent.finish(now, b"").unwrap();
        let request = agent.request(now).unwrap().unwrap();
        collector.submit(&[(&request.identity, &request.body)], now).unwrap().remove(0).unwrap()
    };
    let why = |reply: &Reply| format!("{:?}", reply.refusal);
    assert_eq!(send(&mut collector, "a", "one", 0..30).refusal, None);
    let reply = send(&mut collector, "a", "two", 0..40);
    assert!(why(&reply).contains("may have 60 keys") && reply.retry_after_ms > 0, "{reply:?}");
    assert_eq!(send(&mut collector, "b", "two", 0..40).refusal, None);
    assert_eq!(send(&mut collector, "a", "two", 0..3).refusal, None);
    assert!(why(&send(&mut collector, "a", "three", 0..1)).contains("may have 2 streams"));
    assert_eq!(send(&mut collector, "a", "one", 0..1).refusal, None);
    assert!(why(&send(&mut collector, "a", "one", 0..1)).contains("may have 3 incarnations"));
    let settings = CollectorSettings { limits: Limits { counters: 10, ..limits }, ..collector_settings() };
    let mut small = Collector::open(SimDisk::new(1), settings).unwrap();
    assert!(why(&send(&mut small, "a", "one", 0..1)).contains("at most 10 are allowed"));
    assert_eq!(small.tenants().len() + collector.tenants().len(), 2);
}

/// Messages that contradict each other end an incarnation; what came before stays, and a restart
/// changes nothing.
#[test]
fn an_incarnation_that_contradicts_itself_ends() {
    let disk = SimDisk::new(1);
    let mut collector = Collector::open(disk.clone(), collector_settings()).unwrap();
    let now = Now::default();
    let settings = AgentSettings::new("t".parse().unwrap(), "s".parse().unwrap(), config(2));
    let (mut agent, _) = Agent::open(SimDisk::new(1), settings, now, 1).unwrap();
    let mut bodies = Vec::new();
    for epoch in 0..3u32 {
        for number in 0..100 {
            agent.insert(&key((number * epoch) % KEYS), 1).unwrap();
        }
        agent.finish(now, b"").unwrap();
        let request = agent.request(now).unwrap().unwrap();
        let checksum = Envelope::split(&request.body).unwrap().0.checksum;
        let reply = Reply { durable_seq: u64::from(epoch) + 1, checksum, window: 1, retry_after_ms: 0, refusal: None };
        agent.on_reply(now, request.id, Ok(reply), 1).unwrap();
        bodies.push(request);
    }
    let submit = |collector: &mut Collector<SimDisk>, body: &[u8]| {
        collector.submit(&[(&bodies[0].identity, body)], now).unwrap().remove(0).unwrap()
    };
    assert_eq!(submit(&mut collector, &bodies[0].body).durable_seq, 1);
    let answers = all_answers(&mut collector, true);
    // The third epoch's messages in the second's envelope, its number and checksum mended.
    let second = Envelope::split(&bodies[1].body).unwrap().0;
    let third = Envelope::split(&bodies[2].body).unwrap().0;
    let forged = Envelope { messages: third.envelope.messages.clone(), ..second.envelope.clone() };
    let reply = submit(&mut collector, &forged.to_bytes().unwrap());
    assert!(matches!(reply.refusal, Some(ucl_link::Refusal::Ended { .. })), "{reply:?}");
    let reply = submit(&mut collector, &bodies[1].body);
    assert!(matches!(reply.refusal, Some(ucl_link::Refusal::Ended { .. })), "{reply:?}");
    let shown = |answers: &[String]| answers[..answers.len() - 1].to_vec();
    assert_eq!(shown(&all_answers(&mut collector, true)), shown(&answers));
    drop(collector);
    let mut again = Collector::open(disk, collector_settings()).unwrap();
    assert_eq!(all_answers(&mut again, true), answers);
}
