//! Epochs of an agent end before they hold more keys than the collector can tell apart.

use std::collections::BTreeMap;

use ucl_agent::{Agent, AgentSettings};
use ucl_collector::{Collector, CollectorSettings, Selection};
use ucl_link::Now;
use ucl_sketch::{Config, DecoderKind, Epochs, Mode, UclSketch};
use ucl_storage::SimDisk;
use ucl_streams::ZipfKeys;

const NOW: Now = Now { wall_ms: 1_700_000_000_000, mono_ms: 0 };

fn config() -> Config {
    let mode = Mode::Sketch(DecoderKind::Delta);
    UclSketch::builder().mode(mode).key_bytes(4).memory("16KB").seed(7).plan().unwrap().0
}

fn settings(epochs: Epochs) -> AgentSettings {
    AgentSettings { epochs, ..AgentSettings::new("t".parse().unwrap(), "s".parse().unwrap(), config()) }
}

fn open(disk: &SimDisk, epochs: Epochs) -> Agent<SimDisk> {
    Agent::open(disk.clone(), settings(epochs), NOW, 1).unwrap().0
}

fn keys(items: usize) -> Vec<u8> {
    ZipfKeys::new(0.8, 40_000, 3).take(items).flatten().collect()
}

/// Inserts keys, at most `most` at once, and looks at the agent whenever it asks for it.
fn feed(agent: &mut Agent<SimDisk>, mut keys: &[u8], most: usize) {
    while !keys.is_empty() {
        let items = (agent.items_until_cut() as usize).min(most).min(keys.len() / 4);
        let (batch, rest) = keys.split_at(4 * items);
        agent.insert_batch(4, batch, None).unwrap();
        agent.advance(NOW, b"").unwrap();
        keys = rest;
    }
}

/// Delivers everything. Returns the items at the end of each epoch.
fn deliver(agent: &mut Agent<SimDisk>, collector: &mut Collector<SimDisk>) -> Vec<u64> {
    agent.finish(NOW, b"").unwrap();
    let mut ends = Vec::new();
    while let Some(request) = agent.request(NOW).unwrap() {
        let mut body = &request.body[..];
        while !body.is_empty() {
            let (envelope, rest) = ucl_link::Envelope::split(body).unwrap();
            ends.push(envelope.envelope.items);
            body = rest;
        }
        let reply = collector.submit(&[(&request.identity, &request.body)], NOW).unwrap().remove(0).unwrap();
        agent.on_reply(NOW, request.id, Ok(reply), 1).unwrap();
    }
    assert_eq!(agent.status().waiting, 0);
    ends
}

fn collector() -> Collector<SimDisk> {
    Collector::open(SimDisk::new(2), CollectorSettings::default()).unwrap()
}

/// The mean error over all keys. Every range holds.
fn error(collector: &mut Collector<SimDisk>, keys: &[u8]) -> f64 {
    let mut truth: BTreeMap<&[u8], u64> = BTreeMap::new();
    keys.chunks(4).for_each(|key| *truth.entry(key).or_default() += 1);
    let snapshot = collector.snapshot(&Selection::tenant("t".parse().unwrap())).unwrap();
    let off = |(key, &exact): (&&[u8], &u64)| {
        let sum = snapshot.estimate(key);
        assert!(sum.lower <= exact && exact <= sum.upper, "{key:?}: {sum:?}, exactly {exact}");
        sum.count.abs_diff(exact) as f64
    };
    truth.iter().map(off).sum::<f64>() / truth.len() as f64
}

#[test]
fn epochs_end_at_the_same_items_one_by_one_and_in_batches() {
    let keys = keys(60_000);
    let ends = [1, 7, 5_000, usize::MAX].map(|most| {
        let mut agent = open(&SimDisk::new(1), Epochs::ByLoad);
        feed(&mut agent, &keys, most);
        deliver(&mut agent, &mut collector())
    });
    assert!(ends.iter().all(|others| *others == ends[0]), "{ends:?}");
    let epochs = ends[0].len();
    assert!((5..2_000).contains(&epochs), "{epochs} epochs");
}

/// Keys that are spread wide overfill an epoch of 16,000 items in 16KB, and none that ends by load.
#[test]
fn the_collector_tells_keys_apart_if_epochs_end_by_load() {
    let keys = keys(200_000);
    let [by_load, fixed] = [Epochs::ByLoad, Epochs::Every(16_000)].map(|epochs| {
        let mut agent = open(&SimDisk::new(1), epochs);
        let mut collector = collector();
        feed(&mut agent, &keys, 1_000);
        deliver(&mut agent, &mut collector);
        error(&mut collector, &keys)
    });
    assert!(by_load < 0.05, "a mean error of {by_load}");
    assert!(fixed > 10.0 * by_load && fixed > 0.5, "{fixed} with fixed epochs, {by_load} by load");
}

/// The load is part of the state.
#[test]
fn an_agent_that_starts_again_goes_on_watching() {
    let keys = keys(100_000);
    let disk = SimDisk::new(1);
    let mut collector = collector();
    for part in keys.chunks(4 * 9_001) {
        let mut agent = open(&disk, Epochs::ByLoad);
        feed(&mut agent, part, 1_000);
        agent.finish(NOW, b"").unwrap();
    }
    let mut agent = open(&disk, Epochs::ByLoad);
    deliver(&mut agent, &mut collector);
    let mean = error(&mut collector, &keys);
    assert!(mean < 0.05, "a mean error of {mean}");
}

/// A state of an agent that did not watch the load goes on, with epochs of 16,000 items.
#[test]
fn a_state_without_a_load_goes_on_with_fixed_epochs() {
    let disk = SimDisk::new(1);
    let mut collector = collector();
    let mut agent = open(&disk, Epochs::Every(4_000));
    feed(&mut agent, &keys(8_000), 1_000);
    agent.finish(NOW, b"").unwrap();
    let mut agent = open(&disk, Epochs::ByLoad);
    feed(&mut agent, &keys(40_000), 1_000);
    let ends = deliver(&mut agent, &mut collector);
    assert_eq!(ends, [4_000, 8_000, 24_000, 40_000, 48_000]);
}

/// While the spool has no room, the agent looks again now and then, not after every item.
#[test]
fn a_full_spool_does_not_make_every_item_a_look() {
    let settings = AgentSettings { spool_bytes: 2 << 20, ..settings(Epochs::ByLoad) };
    let (mut agent, _) = Agent::open(SimDisk::new(1), settings, NOW, 1).unwrap();
    let keys: Vec<u8> = (0..1_000_000u32).flat_map(|key| (key % 20_000).to_le_bytes()).collect();
    let mut rest = &keys[..];
    while !agent.status().holding {
        assert!(!rest.is_empty(), "the spool never fills");
        let (batch, after) = rest.split_at((4 * agent.items_until_cut() as usize).min(rest.len()));
        agent.insert_batch(4, batch, None).unwrap();
        agent.advance(NOW, b"").unwrap();
        rest = after;
    }
    assert!(agent.items_until_cut() >= 100, "{} items", agent.items_until_cut());
}
