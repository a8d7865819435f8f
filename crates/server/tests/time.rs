//! Questions about time, over a real socket.

mod common;

use common::{Running, Sender, config, wall_ms};
use serde_json::Value;
use ucl_sketch::Mode;

/// Two streams with epochs of 10 seconds, the last of which ends now.
fn running(folder: &std::path::Path) -> (Running, i64) {
    let running = Running::start(config(folder), None);
    let now = wall_ms();
    let mut one = Sender::with_mode("web-1", now - 30_000, Mode::Exact);
    let mut two = Sender::with_mode("web-2", now - 20_000, Mode::Exact);
    for (tea, milk) in [(5, 1), (3, 1), (9, 0)] {
        assert_eq!(one.send(&running, &[("tea", tea), ("milk", milk)]).refusal, None);
    }
    for salt in [2, 4] {
        assert_eq!(two.send(&running, &[("salt", salt), ("tea", 1)]).refusal, None);
    }
    (running, now)
}

fn counts(answer: &Value) -> Vec<(String, u64, u64, u64)> {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let row = |row: &Value| {
        let key = row["key"].as_str().unwrap().to_owned();
        (key, number(row, "estimate"), number(row, "lower"), number(row, "upper"))
    };
    answer["keys"].as_array().unwrap().iter().map(row).collect()
}

fn row(key: &str, count: u64) -> (String, u64, u64, u64) {
    (key.to_owned(), count, count, count)
}

#[test]
fn ranges_of_time_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (running, now) = running(folder.path());
    // Both last epochs, of either stream.
    let query = format!("from={}&to={}", now - 5_000, now);
    let top = running.get(&format!("/v1/default/top?{query}")).json();
    assert_eq!(counts(&top), [row("tea", 10), row("salt", 4)]);
    assert_eq!((&top["items"], &top["weight"]), (&14.into(), &14.into()));
    let range = &top["range"];
    assert_eq!((&range["epochs"], &range["complete"]), (&2.into(), &true.into()));
    assert_eq!(range["covered_from_ms"], now - 10_000);
    assert_eq!(range["covered_to_ms"], now);
    // By duration: at most a minute has passed since.
    let top = running.get("/v1/default/top?last=10m").json();
    assert_eq!(counts(&top), [row("tea", 19), row("salt", 6), row("milk", 2)]);
    assert_eq!(counts(&running.get("/v1/default/top?last=10m&stream=web-2").json()), [row("salt", 6), row("tea", 2)]);
    // Nothing yet.
    let top = running.get("/v1/default/top?from=0&to=1000").json();
    assert_eq!((counts(&top).len(), &top["items"], &top["range"]["complete"]), (0, &0.into(), &true.into()));
    // Some keys, by address and by body.
    let expected = [row("tea", 10), row("nothing", 0)];
    let path = format!("/v1/default/estimate?{query}");
    assert_eq!(counts(&running.get(&format!("{path}&key=tea&key=nothing")).json()), expected);
    assert_eq!(counts(&running.post(&path, br#"{"keys":["tea","nothing"]}"#).json()), expected);
    assert_eq!(running.post(&path, br#"{"key":"tea"}"#).status, 400);
    // Without a range it is everything.
    assert_eq!(running.get("/v1/default/top").json()["range"], Value::Null);
}

#[test]
fn pages_follow_on_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (running, _) = running(folder.path());
    let first = running.get("/v1/default/top?n=2").json();
    assert_eq!((counts(&first), &first["next"]), (vec![row("tea", 19), row("salt", 6)], &2.into()));
    let second = running.get("/v1/default/top?n=2&offset=2").json();
    assert_eq!((counts(&second), &second["next"]), (vec![row("milk", 2)], &Value::Null));
    let first = running.get("/v1/default/streams?n=1").json();
    assert_eq!(first["streams"][0]["stream"], "web-1");
    let second = running.get(&format!("/v1/default/streams?n=1&after={}", first["next"].as_str().unwrap())).json();
    assert_eq!((&second["streams"][0]["stream"], &second["next"]), (&"web-2".into(), &Value::Null));
    // Either of two selections.
    let streams = running.get("/v1/default/streams?stream=web-1&stream=*2").status;
    assert_eq!(streams, 400, "a star stands at the end only");
    let streams = running.get("/v1/default/streams?stream=web-1&stream=web-2*").json();
    assert_eq!(streams["streams"].as_array().unwrap().len(), 2);
}

#[test]
fn changes_compare_a_range_with_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (running, now) = running(folder.path());
    let answer = running.get(&format!("/v1/default/changes?from={}&to={}&n=2", now - 10_000, now)).json();
    let keys = answer["keys"].as_array().unwrap();
    let brief = |row: &Value| (row["key"].clone(), row["before"]["estimate"].clone(), row["change"].clone());
    // Before: tea 3 + 1, milk 1, salt 2; then: tea 9 + 1, salt 4.
    assert_eq!(brief(&keys[0]), ("tea".into(), 4.into(), 6.into()));
    assert_eq!(brief(&keys[1]), ("salt".into(), 2.into(), 2.into()));
    assert_eq!((keys.len(), &keys[1]["after"]["upper"]), (2, &4.into()));
    assert_eq!((&answer["range"]["epochs"], &answer["before"]["epochs"]), (&2.into(), &2.into()));
    assert_eq!(answer["before"]["to_ms"], now - 10_000);
    let all = running.get(&format!("/v1/default/changes?from={}&to={now}", now - 10_000)).json();
    assert_eq!(brief(&all["keys"][2]), ("milk".into(), 1.into(), (-1).into()));
    assert_eq!(running.get("/v1/default/changes").status, 400);
}

#[test]
fn a_key_over_time() {
    let folder = tempfile::tempdir().unwrap();
    let (running, now) = running(folder.path());
    let path = format!("/v1/default/series?key=tea&from={}&to={now}", now - 25_000);
    let answer = running.get(&format!("{path}&step=10s")).json();
    assert_eq!((&answer["key"], &answer["shown"]), (&"tea".into(), &"tea".into()));
    let [one, two] = [0, 1].map(|at| answer["series"][at].clone());
    assert_eq!((&one["stream"], &two["stream"]), (&"web-1".into(), &"web-2".into()));
    let epochs = |series: &Value| {
        let epochs = series["epochs"].as_array().unwrap().iter();
        epochs.map(|epoch| (epoch["seq"].as_u64().unwrap(), epoch["estimate"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!((epochs(&one), epochs(&two)), (vec![(0, 5), (1, 3), (2, 9)], vec![(0, 1), (1, 1)]));
    assert_eq!((&one["epochs"][1]["ended_ms"], &one["epochs"][1]["items"]), (&(now - 10_000).into(), &4.into()));
    let steps: Vec<(i64, u64)> = answer["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["to_ms"].as_i64().unwrap(), step["estimate"].as_u64().unwrap()))
        .collect();
    assert_eq!(steps, [(now - 15_000, 5), (now - 5_000, 4), (now, 10)]);
    assert!(running.get("/v1/default/series?key=tea").json().get("steps").is_none());
    assert_eq!(running.get(&format!("{path}&step=1ms")).status, 400);
    assert_eq!(running.get("/v1/default/series").status, 400);
    assert_eq!(running.get("/v1/default/series?key=nobody").json()["series"].as_array().unwrap().len(), 0);
}

#[test]
fn prefixes_are_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let (running, now) = running(folder.path());
    let answer = running.get(&format!("/v1/default/prefix?prefix=t&prefix=&prefix=x&from={}", now - 5_000)).json();
    let sums: Vec<(u64, u64, u64)> = answer["prefixes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sum| {
            assert_eq!(sum["lower"], sum["upper"]);
            (sum["keys"].as_u64().unwrap(), sum["estimate"].as_u64().unwrap(), sum["upper"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(sums, [(1, 10, 10), (2, 14, 14), (0, 0, 0)]);
    assert_eq!(running.get("/v1/default/prefix").status, 400);
}

/// Only the last epochs are kept one by one; an answer says so.
#[test]
fn what_is_too_old_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(ucl_server::Config { keep_epochs: 2, ..config(folder.path()) }, None);
    let now = wall_ms();
    let mut sender = Sender::with_mode("web-1", now - 40_000, Mode::Exact);
    for _ in 0..4 {
        sender.send(&running, &[("tea", 1)]);
    }
    let top = running.get("/v1/default/top?last=1h").json();
    assert_eq!((counts(&top), &top["range"]["complete"]), (vec![row("tea", 2)], &false.into()));
    assert_eq!(top["range"]["covered_from_ms"], now - 20_000);
    let top = running.get(&format!("/v1/default/top?from={}", now - 20_000)).json();
    assert_eq!((counts(&top), &top["range"]["complete"]), (vec![row("tea", 2)], &true.into()));
    assert_eq!(counts(&running.get("/v1/default/top").json()), [row("tea", 4)]);
}

#[test]
fn streams_tell_how_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let (running, now) = running(folder.path());
    let streams = running.get("/v1/default/streams?self_check=true").json();
    let one = &streams["streams"][0];
    assert_eq!((&one["health"], &one["epochs"], &one["items"]), (&"ok".into(), &3.into(), &19.into()));
    assert_eq!(one["last"]["ended_ms"], now);
    assert!(one["uplink_bytes"].as_u64().unwrap() > 300, "{one}");
    assert!((0..60_000).contains(&one["lag_ms"].as_i64().unwrap()), "{one}");
    assert!((0..60_000).contains(&one["clock_offset_ms"].as_i64().unwrap()), "{one}");
    // A stream that stopped long ago; after a restart only its own clock tells.
    let token = running.token.clone();
    Sender::new("old", 1_000).send(&running, &[("tea", 1)]);
    assert_eq!(running.get("/v1/default/streams?stream=old").json()["streams"][0]["health"], "ok");
    running.stop();
    let data = folder.path().join("data/collector");
    let states: Vec<_> = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    for state in states.iter().filter(|path| path.to_string_lossy().contains("state%")) {
        std::fs::remove_file(state).unwrap();
    }
    let running = Running::start(config(folder.path()), Some(&token));
    let old = running.get("/v1/default/streams?stream=old").json()["streams"][0].clone();
    assert_eq!((&old["health"], &old["last"]["received_ms"]), (&"late".into(), &Value::Null));
}
