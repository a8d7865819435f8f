//! Senders and askers that mean harm: each is refused or contained, and others notice nothing.

mod common;

use common::{Running, Sender, config};
use serde_json::Value;
use ucl_collector::Limits;
use ucl_link::{Envelope, Identity, Incarnation, Times};
use ucl_server::Config;
use ucl_sketch::{DecoderKind, Mode, ReportRule, Shape, UclSketch};
use xxhash_rust::xxh3::xxh3_64;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

fn limited(folder: &std::path::Path, limits: Limits) -> Running {
    Running::start(Config { limits, ..config(folder) }, None)
}

fn tea(running: &Running) -> Value {
    running.get("/v1/default/estimate?key=tea&stream=good").json()["keys"][0]["estimate"].clone()
}

fn refusal(answer: &Value) -> (&str, &str) {
    let text = |name: &str| answer["refusal"][name].as_str().unwrap_or("");
    (text("kind"), text("why"))
}

#[test]
fn changed_bytes_harm_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    Sender::with_mode("good", 0, Mode::Exact).send(&running, &[("tea", 9)]);
    let mut rng = Rng(1);
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for number in 0..80 {
        let mode = if number % 2 == 0 { Mode::Exact } else { Mode::Sketch(DecoderKind::Delta) };
        let mut sender = Sender::with_mode(&format!("bad-{number}"), 0, mode);
        let keys: Vec<String> = (0..50).map(|key| format!("key-{key}")).collect();
        let rows: Vec<(&str, u64)> = keys.iter().map(|key| (key.as_str(), 1 + key.len() as u64 % 3)).collect();
        if number % 3 == 0 {
            sender.send(&running, &rows);
        }
        let (path, body, _) = sender.epoch(&rows);
        for _ in 0..3 {
            let mut changed = body.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(changed.len());
                changed[at] ^= 1 << rng.below(8);
            }
            if rng.below(3) == 0 {
                changed.truncate(rng.below(changed.len()));
            } else {
                // As one who can compute a checksum would send it.
                let end = changed.len() - 8;
                let checksum = xxh3_64(&changed[..end]);
                changed[end..].copy_from_slice(&checksum.to_le_bytes());
            }
            let answer = running.post(&path, &changed);
            *statuses.entry(answer.status).or_default() += 1;
            assert!([200, 400].contains(&answer.status), "{}", answer.text());
        }
    }
    assert!(statuses[&200] > 20 && statuses[&400] > 20, "{statuses:?}");
    assert_eq!(tea(&running), 9);
    // Nothing was opened again behind the scenes.
    let metrics = running.get("/metrics").text();
    assert!(metrics.contains("\nucl_reopened_total 0\n"), "{metrics}");
    assert_eq!(running.get("/v1/default/top?stream=bad-*&n=5&format=lines").status, 200);
}

#[test]
fn a_token_is_for_its_streams() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let new = ucl_server::NewToken {
        name: None,
        tenant: "default".parse().unwrap(),
        scopes: std::collections::BTreeSet::from([ucl_server::Scope::Write]),
        stream_prefix: "web-".into(),
    };
    let token = ucl_server::Tokens::open(&folder.path().join("data")).unwrap().add(new, 0).unwrap();
    let post = |stream: &str| {
        let (path, body, _) = Sender::new(stream, 0).epoch(&[("tea", 1)]);
        running.request("POST", &path, Some(&token), &body).status
    };
    assert_eq!((post("web-1"), post("db"), post("web")), (200, 403, 403));
    // An envelope of one stream in a request of another is none.
    let (path, body, _) = Sender::new("db", 0).epoch(&[("tea", 1)]);
    assert_eq!(running.request("POST", &path.replace("db", "web-2"), Some(&token), &body).status, 400);
    // Who has no token learns nothing, not even whether the request is valid.
    assert_eq!(running.request("POST", "/v1/a%20b/x/y", None, b"").status, 401);
    assert_eq!(running.request("GET", "/v1/a%20b/top?x=y", None, b"").status, 401);
    for path in ["top", "streams", "export", "estimate?key=tea"] {
        assert_eq!(running.request("GET", &format!("/v1/default/{path}"), Some(&token), b"").status, 403);
    }
}

#[test]
fn what_was_heard_on_the_line_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let mut sender = Sender::with_mode("good", 0, Mode::Exact);
    let (path, body, id) = sender.epoch(&[("tea", 5)]);
    for _ in 0..3 {
        let reply = running.post(&path, &body).json();
        assert_eq!((&reply["durable_seq"], &reply["refusal"]), (&1.into(), &Value::Null));
    }
    let reply = serde_json::from_value(running.post(&path, &body).json()).unwrap();
    sender.agent.on_reply(sender.now, id, Ok(reply), 3).unwrap();
    assert_eq!(tea(&running), 5);
    // A second sender of the same name: its history is another one.
    let mut twin = Sender::with_mode("good", 0, Mode::Exact);
    let (same, other, _) = twin.epoch(&[("tea", 1_000)]);
    assert_eq!(same, path);
    assert_eq!(refusal(&running.post(&path, &other).json()).0, "forked");
    assert_eq!(tea(&running), 5);
    // Nor is anything taken out of its order.
    sender.send(&running, &[("tea", 1)]);
    let (_, third, _) = sender.epoch(&[("tea", 1)]);
    let (envelopes, _) = Envelope::split_log(&third).unwrap();
    assert_eq!(envelopes[0].envelope.seq, 2);
    let mut stranger = Sender::with_mode("stranger", 0, Mode::Exact);
    let (elsewhere, _, _) = stranger.epoch(&[("tea", 1)]);
    assert_eq!(running.post(&elsewhere, &third).status, 400);
    assert_eq!(tea(&running), 6);
}

#[test]
fn a_device_too_large_is_refused_before_anything_is_allocated() {
    let folder = tempfile::tempdir().unwrap();
    let running = limited(folder.path(), Limits { counters: 10_000, ..Limits::default() });
    let shape = Shape { slots: 8, rows: 4, width: 1 << 22, bloom_bits: 1_024, ..Shape::PAPER_64KB };
    let mut device = UclSketch::builder()
        .mode(Mode::Sketch(DecoderKind::Delta))
        .shape(shape)
        .report_rule(ReportRule::New)
        .seed(1)
        .device()
        .unwrap();
    device.insert(b"tea", 1).unwrap();
    device.cut();
    let messages: Vec<Vec<u8>> = std::iter::from_fn(|| device.next_message()).map(|message| message.bytes).collect();
    let identity = Identity::new("default", "huge", Incarnation { number: 1, nonce: 1 }).unwrap();
    let path = format!("/v1/default/huge/{}", identity.incarnation);
    let messages = messages.iter().map(Vec::as_slice).collect();
    let times = Times::default();
    let envelope = Envelope { identity, format: "lines", seq: 0, previous: 0, times, items: 1, unseen: None, messages };
    let answer = running.post(&path, &envelope.to_bytes().unwrap()).json();
    let (kind, why) = refusal(&answer);
    assert_eq!(kind, "limit", "{answer}");
    assert!(why.contains("16777216") && why.contains("10000"), "{why}");
    assert_eq!(running.get("/v1/default/streams").json()["streams"].as_array().unwrap().len(), 0);
}

#[test]
fn a_flood_of_keys_stops_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let running = limited(folder.path(), Limits { keys: 5_000, ..Limits::default() });
    let mut good = Sender::with_mode("good", 0, Mode::Exact);
    good.send(&running, &[("tea", 2)]);
    let mut flood = Sender::with_mode("flood", 0, Mode::Exact);
    let mut refused = String::new();
    for round in 0..40 {
        let keys: Vec<String> = (0..2_000).map(|key| format!("{round}-{key}-with-a-long-name")).collect();
        let rows: Vec<(&str, u64)> = keys.iter().map(|key| (key.as_str(), 1)).collect();
        let reply = flood.send(&running, &rows);
        if let Some(why) = reply.refusal {
            assert!(reply.retry_after_ms >= 1_000);
            refused = format!("{why:?}");
            break;
        }
    }
    assert!(refused.contains("Limit") && refused.contains("5000 keys"), "{refused}");
    let streams = running.get("/v1/default/streams").json();
    let keys: u64 = streams["streams"].as_array().unwrap().iter().map(|stream| stream["keys"].as_u64().unwrap()).sum();
    assert!(keys <= 5_000, "{keys}");
    assert_eq!(tea(&running), 2);
}

#[test]
fn each_limit_is_told() {
    let cases: [(Limits, &str); 3] = [
        (Limits { streams: 1, ..Limits::default() }, "1 streams"),
        (Limits { incarnations: 1, ..Limits::default() }, "1 incarnations"),
        (Limits { memory: 1_000, ..Limits::default() }, "1000 bytes of memory"),
    ];
    for (limits, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let running = limited(folder.path(), limits);
        assert_eq!(Sender::new("good", 0).send(&running, &[("tea", 1)]).refusal, None);
        let (path, body, _) = Sender::new("more", 0).epoch(&[("tea", 1)]);
        let answer = running.post(&path, &body).json();
        let (kind, why) = refusal(&answer);
        assert!(kind == "limit" && why.contains(expected), "{answer}");
        assert_eq!(tea(&running), 1);
    }
}

/// Whatever is asked, the answer is JSON that says what is wrong.
#[test]
fn questions_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    Sender::new("good", 0).send(&running, &[("tea", 1)]);
    let asked = [
        "/v1/default/top?n=-1",
        "/v1/default/top?n=99999999999999999999",
        "/v1/default/top?offset=x",
        "/v1/default/top?from=-99999999999999999999",
        "/v1/default/top?last=99999999999999d",
        "/v1/default/estimate",
        "/v1/%ff/top",
        "/v1/a%20b/top",
        "/v1/default/series?key=tea&step=0s",
        "/v1/default/streams?after=x",
        "/v1/default/streams?self_check=perhaps",
        "/v1/default/prefix",
        "/v1/default/top?stream=.*",
        "/v1/default/top?stream=%C3%A9*",
        "/v2/default/top",
    ];
    for path in asked {
        let answer = running.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.text());
        assert!(answer.head.contains("application/problem+json"), "{path}: {}", answer.head);
        assert!(answer.json()["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
    let many = "key=a&".repeat(1_001);
    assert_eq!(running.get(&format!("/v1/default/estimate?{many}")).status, 400);
    assert_eq!(running.get(&format!("/v1/default/estimate?{}", &many[6..])).status, 200);
    for (number, status) in [(0, 400), (10_000, 200), (10_001, 400)] {
        let body = serde_json::json!({ "keys": vec!["a"; number] }).to_string();
        assert_eq!(running.post("/v1/default/estimate", body.as_bytes()).status, status, "{number} keys");
    }
    let large = vec![b' '; 3 << 20];
    let answer = running.post("/v1/default/estimate", &large);
    assert_eq!((answer.status, answer.json()["status"].clone()), (413, 413.into()));
    for path in [
        "/v1/default/top?from=-9223372036854775808&to=9223372036854775807",
        "/v1/default/top?offset=18446744073709551615",
    ] {
        assert_eq!(running.get(path).status, 200, "{path}");
    }
    let steps = "/v1/default/series?key=tea&from=-9223372036854775808&to=9223372036854775807&step=1d";
    assert_eq!(running.get(steps).status, 400);
}

/// Who announces much and sends little, or sends much and never ends, keeps nobody out.
#[test]
fn bodies_that_never_end_keep_nobody_out() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let hostile = ucl_server::NewToken {
        name: None,
        tenant: "hostile".parse().unwrap(),
        scopes: std::collections::BTreeSet::from([ucl_server::Scope::Write]),
        stream_prefix: String::new(),
    };
    let token = ucl_server::Tokens::open(&folder.path().join("data")).unwrap().add(hostile, 0).unwrap();
    let open = |number: usize, sent: usize| {
        let mut stream = std::net::TcpStream::connect(running.address).unwrap();
        let length = ucl_link::MAX_ENVELOPE;
        let head = format!(
            "POST /v1/hostile/s/{number}-0000000000000001 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The service may refuse it before it has everything.
        let _ = stream.write_all(&vec![0; sent]);
        stream
    };
    let announced: Vec<_> = (0..20).map(|number| open(number, 1)).collect();
    assert_eq!(Sender::new("good", 0).send(&running, &[("tea", 1)]).refusal, None);
    // More than there is room for.
    let full: Vec<_> = (20..26).map(|number| open(number, ucl_link::MAX_ENVELOPE - 1)).collect();
    assert_eq!(Sender::new("good-2", 0).send(&running, &[("tea", 1)]).refusal, None);
    drop((announced, full));
    assert_eq!(running.get("/v1/default/estimate?key=tea").json()["keys"][0]["estimate"], 2);
}

/// A body is read for those only who have a token, and the head has a bound.
#[test]
fn strangers_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    // Nothing of the body is waited for.
    let head = "POST /v1/default/estimate HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\nConnection: close\r\n\r\n";
    assert_eq!(running.raw(head.as_bytes()).status, 401);
    let long =
        format!("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Long: {}\r\n\r\n", "x".repeat(300_000));
    assert_eq!(running.raw(long.as_bytes()).status, 431);
}

/// What kind of body it is said to be changes nothing; a body that was packed is none.
#[test]
fn content_types_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let send = |sender: &mut Sender, more: &str| {
        let (path, body, _) = sender.epoch(&[("tea", 1)]);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{more}\
             Content-Length: {}\r\n\r\n",
            running.token,
            body.len()
        );
        running.raw(&[head.as_bytes(), &body].concat()).status
    };
    for (number, kind) in ["text/html", "application/json; charset=\"", "", "multipart/form-data"].iter().enumerate() {
        let mut sender = Sender::new(&format!("s{number}"), 0);
        assert_eq!(send(&mut sender, &format!("Content-Type: {kind}\r\n")), 200, "{kind}");
    }
    assert_eq!(send(&mut Sender::new("packed", 0), "Content-Encoding: gzip\r\n"), 415);
    assert_eq!(running.get("/v1/default/estimate?key=tea").json()["keys"][0]["estimate"], 4);
}
