//! The program against a collector of few words: what is counted after a restart, and what is
//! refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use ucl_agentd::{AgentdError, Args, Outcome, run};
use ucl_link::{Envelope, Reply};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// Takes every epoch, for as long as the test lasts.
fn collector() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(|stream| converse(stream.unwrap())));
    address
}

fn converse(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let last = Envelope::split_all(&body).unwrap().pop().expect("an epoch");
        let durable_seq = last.envelope.seq + 1;
        let checksum = last.checksum;
        let reply = Reply { durable_seq, checksum, window: 1 << 20, retry_after_ms: 0, refusal: None };
        let reply = serde_json::to_string(&reply).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", reply.len());
        reader.get_mut().write_all([head, reply].concat().as_bytes()).unwrap();
    }
}

fn agent(folder: &Path, arguments: &[&str]) -> Result<Outcome, AgentdError> {
    let state = folder.join("state");
    let fixed = ["agent", "--to", &collector(), "--state", state.to_str().unwrap()].map(str::to_owned);
    let token = ["--token", "t"].map(str::to_owned);
    let token = token.into_iter().filter(|_| !arguments.contains(&"--token"));
    let arguments = fixed.into_iter().chain(token).chain(arguments.iter().map(|&argument| argument.to_owned()));
    let args = Command::parse_from(arguments).args;
    run(&args, &Arc::default()).map(|mut outcomes| outcomes.remove(0))
}

/// Not even if it is named in another way: from another folder, by a link, by a longer path.
#[test]
fn a_file_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.log");
    std::fs::write(&log, "one\ntwo\n").unwrap();
    let other = folder.path().join(".").join("a.log");
    for name in [&log, &log, &other] {
        let outcome = agent(folder.path(), &["--stream", "s", name.to_str().unwrap()]).unwrap();
        assert_eq!((outcome.status.items, outcome.status.waiting, outcome.failed), (2, 0, None));
    }
    let mut more = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
    more.write_all(b"three\n").unwrap();
    let outcome = agent(folder.path(), &["--stream", "s", log.to_str().unwrap()]).unwrap();
    assert_eq!(outcome.status.items, 3);
}

#[test]
fn a_stream_keeps_its_kind_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.log");
    std::fs::write(&log, "one two\n").unwrap();
    let log = log.to_str().unwrap();
    agent(folder.path(), &["--stream", "s", "--format", "field:1", log]).unwrap();
    let refused = agent(folder.path(), &["--stream", "s", "--format", "field:2", log]).unwrap_err().to_string();
    assert!(refused.contains("field:1") && refused.contains("field:2"), "{refused}");
    assert_eq!(agent(folder.path(), &["--stream", "s", "--format", "field:1", log]).unwrap().status.items, 1);
}

#[test]
fn a_device_without_a_disk_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = agent(folder.path(), &["--stream", "s", "--spool", "none", "zipf:1.1:100000"]).unwrap();
    assert_eq!((outcome.status.items, outcome.status.waiting), (100_000, 0));
    assert!(!folder.path().join("state").exists());
    let file = folder.path().join("a.log");
    std::fs::write(&file, "one\n").unwrap();
    let refused = agent(folder.path(), &["--stream", "s", "--spool", "none", file.to_str().unwrap()]).unwrap_err();
    assert!(matches!(&refused, AgentdError::Usage(why) if why.contains("counted again")), "{refused}");
}

#[test]
fn a_token_that_cannot_be_one_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let refused = agent(folder.path(), &["--stream", "s", "--token", "two words", "zipf:1.1:10"]);
    assert!(matches!(refused, Err(AgentdError::Address(_))), "{refused:?}");
}
