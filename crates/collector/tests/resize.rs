//! A device that grows beyond its tenant's limit, before and after the collector was started again.

use std::cell::RefCell;

use ucl_collector::{Collector, CollectorSettings, Limits, Selection};
use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
use ucl_link::{Envelope, Identity, Incarnation, Now, Refusal, Times};
use ucl_sketch::{Settings, Station};
use ucl_storage::SimDisk;
use ucl_wire::Encoder;

fn config(width: u32) -> Config {
    let shape = Shape { slots: 8, width, bloom_bits: 1_024, ..Shape::PAPER_64KB };
    Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() }
}

/// The messages of a device that grows, by epoch.
fn epochs() -> Vec<Vec<Vec<u8>>> {
    let messages = RefCell::new(Vec::new());
    let mut plane = DataPlane::<4>::new(config(64)).unwrap();
    let mut encoder = Encoder::new(0, config(64), |bytes: &[u8]| messages.borrow_mut().push(bytes.to_vec())).unwrap();
    for width in [64, 100, 5_000] {
        if width > 64 {
            plane.change(config(width), &mut encoder).unwrap();
        }
        plane.insert(b"key1", 1, &mut encoder).unwrap();
        plane.cut(&mut encoder);
    }
    drop(encoder);
    let mut station = Station::new(Settings::default());
    let mut epochs = vec![Vec::new()];
    for message in messages.into_inner() {
        let ended = station.receive(&message).unwrap();
        epochs.last_mut().unwrap().push(message);
        if ended {
            epochs.push(Vec::new());
        }
    }
    assert_eq!(epochs.pop(), Some(Vec::new()));
    epochs
}

#[test]
fn a_limit_of_counters_holds_after_a_restart() {
    let epochs = epochs();
    let limits = Limits { counters: 1_000, ..Limits::default() };
    let settings = CollectorSettings { limits, ..CollectorSettings::default() };
    let identity = Identity::new("t", "s", Incarnation { number: 1, nonce: 1 }).unwrap();
    for (restarts, flush) in [(false, false), (true, false), (true, true)] {
        let mut collector = Collector::open(SimDisk::new(1), settings.clone()).unwrap();
        let mut previous = 0;
        let mut taken = 0;
        let mut refusal = None;
        for (seq, messages) in (0..).zip(&epochs) {
            if restarts {
                if flush {
                    collector.flush().unwrap();
                }
                collector = Collector::open(collector.into_storage(), settings.clone()).unwrap();
            }
            let messages = messages.iter().map(Vec::as_slice).collect();
            let identity = identity.clone();
            let times = Times::default();
            let envelope =
                Envelope { identity, format: "lines", seq, previous, times, items: seq + 1, unseen: None, messages };
            let bytes = envelope.to_bytes().unwrap();
            let requests = [(&envelope.identity, &bytes[..])];
            let reply = collector.submit(&requests, Now::default()).unwrap().remove(0).unwrap();
            previous = reply.checksum;
            taken = reply.durable_seq;
            if reply.refusal.is_some() {
                refusal = reply.refusal;
                break;
            }
        }
        let why = match refusal {
            Some(Refusal::Ended { why } | Refusal::Limit { why }) => why,
            other => panic!("20,000 counters were taken: {other:?}"),
        };
        assert!(why.contains("20000") && why.contains("1000"), "{why}");
        // What came before stays, the smaller change included.
        assert!(taken >= 3);
        let snapshot = collector.snapshot(&Selection::tenant("t".parse().unwrap())).unwrap();
        assert_eq!(snapshot.estimate(b"key1").lower, 2);
    }
}
