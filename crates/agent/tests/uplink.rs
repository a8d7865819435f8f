//! A limit of the uplink: kept over time, and used, whatever the rate, the clock's steps and the
//! way in which epochs end.

use ucl_agent::{Agent, AgentSettings, REQUEST_OVERHEAD};
use ucl_link::{Envelope, Now, Reply};
use ucl_sketch::{Epochs, Mode, UclSketch};
use ucl_storage::Memory;

/// What a collector saw.
#[derive(Debug, Default)]
struct Seen {
    bytes: u64,
    requests: u64,
    epochs: u64,
    /// When the first epoch came, in milliseconds.
    first: Option<u64>,
}

struct Case {
    rate: u64,
    step_ms: u64,
    epochs: Epochs,
    /// One request in so many has no answer; 0 for none.
    lost: u64,
}

/// Counts a stream that has more to say than the link takes, for ten minutes or longer.
fn run(case: &Case) -> (Seen, u64) {
    let builder = UclSketch::builder().memory("16KB").key_bytes(4).seed(1).mode(Mode::Budget);
    let [tenant, stream] = ["t", "s"].map(|name| name.parse().unwrap());
    let config = builder.plan().unwrap().0;
    let settings = AgentSettings {
        epochs: case.epochs,
        uplink_per_second: Some(case.rate),
        buffer_bytes: 2_048,
        ..AgentSettings::new(tenant, stream, config)
    };
    let mut now = Now { wall_ms: 1_700_000_000_000, mono_ms: 0 };
    let (mut agent, _) = Agent::open(Memory::new(), settings, now, 1).unwrap();
    let mut seen = Seen::default();
    let mut key = 0u32;
    let seconds = (20_000 / case.rate).max(600);
    while now.mono_ms < seconds * 1_000 {
        // Two thousand items a second, of which each brings a new key.
        for _ in 0..2 * case.step_ms {
            key = key.wrapping_add(0x9e37_79b9);
            agent.insert(&key.to_le_bytes(), 1).unwrap();
        }
        now.mono_ms += case.step_ms;
        now.wall_ms += case.step_ms as i64;
        agent.advance(now, b"").unwrap();
        let Some(request) = agent.request(now).unwrap() else { continue };
        seen.bytes += request.body.len() as u64 + REQUEST_OVERHEAD;
        seen.requests += 1;
        if case.lost > 0 && seen.requests.is_multiple_of(case.lost) {
            agent.on_reply(now, request.id, Err("no answer".into()), 0).unwrap();
            continue;
        }
        let envelopes = Envelope::split_all(&request.body).unwrap();
        let last = envelopes.last().unwrap();
        seen.epochs = last.envelope.seq + 1;
        seen.first.get_or_insert(now.mono_ms);
        let reply = Reply {
            durable_seq: seen.epochs,
            checksum: last.checksum,
            window: 1 << 20,
            retry_after_ms: 0,
            refusal: None,
        };
        agent.on_reply(now, request.id, Ok(reply), 1).unwrap();
    }
    let ahead = 2 * 16_384 / 10;
    (seen, (case.rate * seconds).max(ahead))
}

#[test]
fn what_is_sent_keeps_to_the_rate_and_uses_it() {
    for (rate, step_ms) in [(5, 100), (20, 100), (150, 7), (600, 1), (1_999, 1), (1_999, 50), (4_000, 3)] {
        let (seen, allowed) = run(&Case { rate, step_ms, epochs: Epochs::ByLoad, lost: 0 });
        let what = format!("{rate} B/s, every {step_ms} ms: {seen:?}, {allowed} allowed");
        assert!(seen.epochs > 0, "{what}");
        assert!(seen.bytes <= allowed, "{what}");
        assert!(rate < 100 || seen.bytes > allowed * 3 / 4, "{what}");
    }
}

/// The defect: epochs of a number of items ended whatever that cost.
#[test]
fn epochs_by_items_wait_for_it_too() {
    let (seen, allowed) = run(&Case { rate: 100, step_ms: 20, epochs: Epochs::Every(1_000), lost: 0 });
    assert!(seen.epochs > 10 && seen.bytes <= allowed, "{seen:?}, {allowed} allowed");
}

/// The defect: what was sent again was sent for nothing.
#[test]
fn what_is_sent_again_is_paid_again() {
    let (seen, allowed) = run(&Case { rate: 400, step_ms: 50, epochs: Epochs::ByLoad, lost: 2 });
    assert!(seen.epochs > 10 && seen.bytes <= allowed, "{seen:?}, {allowed} allowed");
}
