//! Everything around the counts: tables, deleting, metrics, rates, TLS.

mod common;

use std::collections::BTreeSet;

use common::{Running, Sender, config, wall_ms};
use ucl_server::{Config, NewToken, Scope, Tokens};
use ucl_sketch::Mode;

fn token(folder: &std::path::Path, scopes: &[Scope], prefix: &str) -> String {
    let new = NewToken {
        name: None,
        tenant: "default".parse().unwrap(),
        scopes: BTreeSet::from_iter(scopes.iter().copied()),
        stream_prefix: prefix.to_owned(),
    };
    Tokens::open(&folder.join("data")).unwrap().add(new, 0).unwrap()
}

#[test]
fn all_keys_come_as_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let now = wall_ms();
    let mut sender = Sender::with_mode("web-1", now - 20_000, Mode::Exact);
    sender.send(&running, &[("a\",b", 2), ("tea", 3)]);
    // Short enough to be their own codes: none is lost.
    let many: Vec<String> = (0..6_000).map(|number| format!("k{number:05}")).collect();
    sender.send(&running, &many.iter().map(|key| (key.as_str(), 1)).collect::<Vec<_>>());
    let table = running.get("/v1/default/export");
    assert!(table.head.contains("content-type: text/csv"), "{}", table.head);
    let text = table.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6_003);
    assert_eq!(lines[..2], ["key,estimate,lower,upper", "\"a\"\",b\",2,2,2"]);
    assert_eq!((lines[6_001], lines[6_002]), ("k05999,1,1,1", "tea,3,3,3"));
    // The last epoch alone.
    let text = running.get(&format!("/v1/default/export?from={}", now - 5_000)).text();
    assert_eq!((text.lines().count(), text.contains("tea")), (6_001, false));
}

#[test]
fn streams_are_deleted_by_those_who_may() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let first = running.token.clone();
    for stream in ["web-1", "web-2", "db"] {
        Sender::new(stream, 0).send(&running, &[("tea", 1)]);
    }
    let delete = |running: &Running, token: &str, query: &str| {
        running.request("DELETE", &format!("/v1/default/streams{query}"), Some(token), b"")
    };
    let reader = token(folder.path(), &[Scope::Read, Scope::Write], "");
    assert_eq!(delete(&running, &reader, "?stream=db").status, 403);
    assert_eq!(delete(&running, &first, "").status, 400);
    // A token for some streams deletes no others.
    let web = token(folder.path(), &[Scope::Admin], "web-");
    let deleted = delete(&running, &web, "?stream=*").json();
    assert_eq!(deleted["deleted"].as_array().unwrap().len(), 2, "{deleted}");
    let streams = |running: &Running| {
        let streams = running.get("/v1/default/streams").json();
        let names = streams["streams"].as_array().unwrap().iter().map(|stream| stream["stream"].to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(streams(&running), ["\"db\""]);
    assert_eq!(delete(&running, &first, "?stream=nobody").json()["deleted"].as_array().unwrap().len(), 0);
    running.stop();
    let running = Running::start(config(folder.path()), Some(&first));
    assert_eq!(streams(&running), ["\"db\""]);
    // Who sends it once more hears of it.
    let (path, body, _) = Sender::new("web-1", 0).epoch(&[("tea", 1)]);
    assert_eq!(running.post(&path, &body).json()["refusal"]["kind"], "ended");
}

#[test]
fn idle_streams_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let first = running.token.clone();
    Sender::new("web-1", 0).send(&running, &[("tea", 1)]);
    running.stop();
    std::thread::sleep(std::time::Duration::from_millis(5));
    let running = Running::start(Config { forget_after_ms: Some(1), ..config(folder.path()) }, Some(&first));
    let gone = || running.get("/v1/default/streams").json()["streams"].as_array().unwrap().is_empty();
    assert!((0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        gone()
    }));
}

#[test]
fn figures_for_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(config(folder.path()), None);
    let mut sender = Sender::with_mode("web-1", wall_ms(), Mode::Exact);
    sender.send(&running, &[("tea", 3)]);
    sender.send(&running, &[("tea", 4)]);
    Sender::new("db", wall_ms()).send(&running, &[("tea", 1)]);
    assert_eq!(running.request("GET", "/metrics", None, b"").status, 401);
    assert_eq!(running.request("GET", "/metrics", Some(&token(folder.path(), &[Scope::Write], "")), b"").status, 403);
    let answer = running.get("/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let text = answer.text();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(value("ucl_stream_items{stream=\"web-1\"}"), 7.0);
    assert_eq!(value("ucl_stream_epochs{stream=\"web-1\"}"), 2.0);
    assert_eq!(value("ucl_stream_up{stream=\"db\"}"), 1.0);
    assert!(value("ucl_stream_uplink_bytes{stream=\"web-1\"}") > 200.0);
    assert!(value("ucl_stream_lag_seconds{stream=\"web-1\"}") < 60.0);
    assert_eq!((value("ucl_ingest_requests_total"), value("ucl_ready")), (3.0, 1.0));
    assert_eq!(value("ucl_http_responses_total{class=\"4xx\"}"), 2.0);
    assert!(value("ucl_log_bytes") > 500.0 && value("ucl_ingest_bytes_total") > 500.0);
    // Every family is described once, before its samples; names are as Prometheus wants them.
    let mut described = BTreeSet::new();
    for line in text.lines() {
        let name = line.trim_start_matches("# HELP ").trim_start_matches("# TYPE ").split([' ', '{']).next().unwrap();
        assert!(name.starts_with("ucl_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        if line.starts_with("# HELP") {
            assert!(described.insert(name), "{name} twice");
        }
        assert!(described.contains(name), "{line}");
    }
    // A token sees its own streams.
    let db = running.request("GET", "/metrics", Some(&token(folder.path(), &[Scope::Read], "db")), b"").text();
    assert!(db.contains("stream=\"db\"") && !db.contains("web-1"));
}

#[test]
fn a_tenant_may_ask_so_often() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(Config { max_requests: 5, ..config(folder.path()) }, None);
    let answers: Vec<_> = (0..30).map(|_| running.get("/v1/default/streams")).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("30 in a moment are too many");
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert!(refused.json()["detail"].as_str().unwrap().contains("5 requests a second"));
    assert!(answers.iter().filter(|answer| answer.status == 200).count() >= 5);
    assert_eq!(running.request("GET", "/healthz", None, b"").status, 200);
}

#[cfg(feature = "tls")]
mod tls {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    use super::*;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use ucl_server::{Server, Tls};

    fn get(running: &Running, trusted: &[CertificateDer<'static>], path: &str) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(client), ServerName::try_from("localhost").unwrap())
            .map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, TcpStream::connect(running.address)?);
        let token = &running.token;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        // The service closes the connection once it has answered.
        if answer.is_empty() { read.map(|_| String::new()) } else { Ok(String::from_utf8(answer).unwrap()) }
    }

    #[test]
    fn connections_are_encrypted() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { tls: Tls::SelfSigned, ..config(folder.path()) };
        let running = Running::start(config.clone(), None);
        let (certificate, key) = (config.data.join("tls-cert.pem"), config.data.join("tls-key.pem"));
        let trusted = [CertificateDer::from_pem_file(&certificate).unwrap()];
        let answer = get(&running, &trusted, "/v1/default/streams").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"streams\":[]"), "{answer}");
        assert!(get(&running, &[], "/healthz").is_err(), "nobody is trusted without a reason");
        // Without encryption nothing is said.
        let mut plain = TcpStream::connect(running.address).unwrap();
        plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.windows(4).any(|four| four == b"HTTP"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o077, 0);
        }
        // The certificate stays, and can be given as files.
        let token = running.token.clone();
        running.stop();
        let files = Tls::Files { cert: certificate.clone(), key };
        let running = Running::start(Config { tls: files, ..config.clone() }, Some(&token));
        assert!(get(&running, &trusted, "/healthz").unwrap().ends_with("ok\n"));
        running.stop();
        // What is no certificate is refused at the start.
        let wrong = Tls::Files { cert: certificate.clone(), key: certificate };
        let error = Server::start(Config { tls: wrong, ..config.clone() }).err().expect("no key").to_string();
        assert!(error.contains("tls-cert.pem"), "{error}");
        let listen = "127.0.0.1:0".parse().unwrap();
        let again = Server::start(Config { tls: Tls::SelfSigned, listen, ..config });
        assert!(again.is_ok(), "the folder is free again");
    }
}
