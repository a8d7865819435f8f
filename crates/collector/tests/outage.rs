//! An hour without a collector: the agent stays within its spool, and no count is lost.

use std::collections::BTreeMap;

use ucl_agent::{Agent, AgentSettings};
use ucl_collector::{Collector, CollectorSettings, Selection};
use ucl_link::Now;
use ucl_sketch::{DecoderKind, Mode, UclSketch};
use ucl_storage::SimDisk;
use ucl_streams::{SplitMix64, ZipfKeys};

const SPOOL: u64 = 4 << 20;
const HOUR_MS: u64 = 3_600_000;
/// Items are made by the thousand: the hour has 1.2 million of them, which weigh as much as a
/// million items a second.
const ITEMS_A_STEP: usize = 1_000;
const STEPS: u64 = 1_200;
const MEAN_WEIGHT: u64 = 3_000;

#[test]
fn an_hour_of_outage_costs_resolution_only() {
    let mode = Mode::Sketch(DecoderKind::Delta);
    let (config, _) = UclSketch::builder().mode(mode).key_bytes(4).memory("64KB").seed(7).plan().unwrap();
    let settings =
        AgentSettings { spool_bytes: SPOOL, ..AgentSettings::new("t".parse().unwrap(), "s".parse().unwrap(), config) };
    let mut now = Now { wall_ms: 1_700_000_000_000, mono_ms: 0 };
    let disk = SimDisk::new(1);
    let (mut agent, _) = Agent::open(disk.clone(), settings.clone(), now, 1).unwrap();
    let mut keys = ZipfKeys::new(1.0, 50_000, 3);
    let mut rng = SplitMix64::new(5);
    let mut truth: BTreeMap<[u8; 4], u64> = BTreeMap::new();
    let mut held = 0;
    for step in 0..STEPS {
        for _ in 0..ITEMS_A_STEP {
            let key = keys.next().unwrap();
            let weight = 1 + rng.below(2 * MEAN_WEIGHT - 1);
            agent.insert(&key, weight).unwrap();
            *truth.entry(key).or_default() += weight;
        }
        now.mono_ms += HOUR_MS / STEPS;
        now.wall_ms += (HOUR_MS / STEPS) as i64;
        agent.advance(now, b"").unwrap();
        assert!(!agent.is_stalled(), "the names of 50,000 keys fit");
        if let Some(request) = agent.request(now).unwrap() {
            agent.on_reply(now, request.id, Err("nobody answers".into()), rng.next_u64()).unwrap();
        }
        let status = agent.status();
        assert!(status.spool_bytes <= SPOOL, "{status:?}");
        held += u64::from(status.holding);
        // A crash in mid-outage: it goes on from its checkpoint, and the input from there.
        if step == STEPS / 2 {
            agent.finish(now, b"").unwrap();
            drop(agent);
            agent = Agent::open(disk.clone(), settings.clone(), now, 2).unwrap().0;
        }
    }
    assert!(held > STEPS / 4, "the spool was full for long: {held} of {STEPS} steps");
    // Everything that the agent needs is on its disk: the spool, the state and its successor.
    assert!(disk.used() < 2 * SPOOL as usize, "{} bytes", disk.used());

    let mut collector = Collector::open(SimDisk::new(2), CollectorSettings::default()).unwrap();
    while agent.status().waiting > 0 || agent.status().open_items > 0 {
        now.mono_ms += 60_000;
        now.wall_ms += 60_000;
        agent.finish(now, b"").unwrap();
        while let Some(request) = agent.request(now).unwrap() {
            let reply = collector.submit(&[(&request.identity, &request.body)], now).unwrap().remove(0).unwrap();
            agent.on_reply(now, request.id, Ok(reply), 1).unwrap();
        }
    }
    let snapshot = collector.snapshot(&Selection::tenant("t".parse().unwrap())).unwrap();
    let totals = snapshot.totals();
    assert_eq!((totals.items, totals.unseen_items), (STEPS * ITEMS_A_STEP as u64, 0));
    assert_eq!(totals.weight, truth.values().sum::<u64>());
    for (key, &exact) in &truth {
        let sum = snapshot.estimate(key);
        assert!(sum.lower <= exact && exact <= sum.upper, "{key:?}: {sum:?}, exactly {exact}");
    }
}
