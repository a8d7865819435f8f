//! Agents, a service on a real socket, and questions.

mod common;

use common::{Running, Sender, config};

#[test]
fn epochs_go_in_and_answers_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let mut one = Sender::new("web-1", 1_000_000);
    let mut two = Sender::new("web-2", 1_000_000);
    for _ in 0..3 {
        assert_eq!(one.send(&running, &[("tea", 5), ("milk", 2)]).refusal, None);
    }
    assert_eq!(two.send(&running, &[("tea", 7), ("salt", 1)]).durable_seq, 1);

    let tea = running.get("/v1/default/estimate?key=tea&key=nothing").json();
    assert_eq!((&tea["keys"][0]["estimate"], &tea["keys"][0]["lower"]), (&22.into(), &22.into()));
    assert_eq!((&tea["keys"][1]["key"], &tea["keys"][1]["estimate"]), (&"nothing".into(), &0.into()));
    assert_eq!((&tea["items"], &tea["incarnations"], &tea["format"]), (&29.into(), &2.into(), &"lines".into()));
    let top = running.get("/v1/default/top?n=2&stream=web-1").json();
    let keys: Vec<&str> = top["keys"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["tea", "milk"]);
    assert_eq!(top["keys"][0]["estimate"], 15);
    assert_eq!(running.get("/v1/default/estimate?key=tea&stream=web-*").json()["keys"][0]["estimate"], 22);
    let streams = running.get("/v1/default/streams").json();
    assert_eq!(streams["streams"][0]["stream"], "web-1");
    assert_eq!((&streams["streams"][0]["epochs"], &streams["streams"][1]["items"]), (&3.into(), &8.into()));
    assert_eq!(running.request("GET", "/healthz", None, b"").status, 200);
    assert_eq!(running.request("GET", "/readyz", None, b"").status, 200);
}

#[test]
fn a_restart_loses_nothing_and_the_token_stays() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let token = running.token.clone();
    let mut sender = Sender::new("web-1", 0);
    sender.send(&running, &[("tea", 5)]);
    let before = running.get("/v1/default/top").text();
    running.stop();
    let running = Running::start(config(folder.path()), Some(&token));
    assert_eq!(running.token, token);
    assert_eq!(running.get("/v1/default/top").text(), before);
    assert_eq!(sender.send(&running, &[("tea", 1)]).durable_seq, 2);
    assert_eq!(running.get("/v1/default/estimate?key=tea").json()["keys"][0]["estimate"], 6);
}

#[test]
fn who_has_no_token_for_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let (path, body, _) = Sender::new("web-1", 0).epoch(&[("tea", 5)]);
    for (token, status) in [(None, 401), (Some("ucl_0"), 401), (Some("other"), 401)] {
        let response = running.request("POST", &path, token, &body);
        assert_eq!(response.status, status);
        assert!(response.head.contains("content-type: application/problem+json"), "{}", response.head);
        assert_eq!(response.json()["status"], status);
    }
    // The token is of another tenant.
    assert_eq!(running.get("/v1/other/top").status, 403);
    assert_eq!(running.post(&path.replace("default", "other"), &body).status, 403);
    // Nothing was taken.
    assert_eq!(running.get("/v1/default/streams").json()["streams"].as_array().unwrap().len(), 0);
}

#[test]
fn bad_requests_are_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let (path, body, _) = Sender::new("web-1", 0).epoch(&[("tea", 5)]);
    let told = |path: &str, body: &[u8], status: u16, why: &str| {
        let response = running.post(path, body);
        assert_eq!(response.status, status, "{}", response.text());
        let detail = response.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(why), "{detail}");
    };
    told(&path, b"no envelope", 400, "not an envelope");
    told(&path, b"", 400, "no envelope");
    told(&path, &body[..body.len() - 1], 400, "cut short");
    told(&path.replace("web-1", "web-2"), &body, 400, "in a request of default/web-2");
    told("/v1/default/web-1/7", &body, 400, "NUMBER-NONCE");
    told("/v1/default/..%2f/1-0000000000000000", &body, 400, "not a name");
    let long = format!(
        "POST {path} HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Length: 99999999999\r\n\r\n",
        running.token
    );
    assert_eq!(running.raw(long.as_bytes()).status, 413);
    assert_eq!(running.get("/v1/default/top?m=3").status, 400);
    assert_eq!(running.get("/nowhere").status, 404);
    assert_eq!(running.request("DELETE", "/v1/default/top", None, b"").status, 405);
    assert_eq!(running.post(&path, &body).json()["durable_seq"], 1);
}
