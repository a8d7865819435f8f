//! Agents and a collector as processes, killed and cut off; their answers against exact counts.

#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;

/// A process that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

/// A collector in a folder.
struct Collector {
    process: Process,
    url: String,
    token: String,
}

impl Collector {
    fn start(folder: &Folder, listen: &str, token: Option<&str>) -> Self {
        let mut command = folder.command(&format!("serve --listen {listen} --data data"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().expect("it says where it listens");
        let url = first.strip_prefix("Listening on ").unwrap().split(',').next().unwrap().to_owned();
        let token = match token {
            Some(token) => token.to_owned(),
            None => lines.next().unwrap().rsplit(' ').next().unwrap().to_owned(),
        };
        Self { process: Process(child), url, token }
    }

    /// Kills it, and starts it again at the same address.
    fn restart(self, folder: &Folder) -> Self {
        let Self { process, url, token } = self;
        drop(process);
        Self::start(folder, url.trim_start_matches("http://"), Some(&token))
    }

    fn ask(&self, folder: &Folder, question: &str) -> common::Run {
        let mut words = question.split_whitespace();
        let command = words.next().unwrap();
        let words: Vec<&str> = [command, &self.url].into_iter().chain(words).collect();
        folder.command_of(&words).env("UCL_TOKEN", &self.token).output().unwrap().into()
    }

    fn agent(&self, folder: &Folder, arguments: &str) -> Command {
        let mut command = folder.command(&format!("agent --to {} --cut-every 100ms {arguments}", self.url));
        command.env("UCL_TOKEN", &self.token);
        command
    }

    /// How often a key was counted.
    fn count(&self, folder: &Folder, key: &str) -> u64 {
        let run = self.ask(folder, &format!("query {key} --json"));
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<serde_json::Value>(&run.out).unwrap()["estimate"].as_u64().unwrap()
    }

    /// Waits until a key was counted so often.
    #[track_caller]
    fn wait_for(&self, folder: &Folder, key: &str, count: u64) {
        wait(|| self.count(folder, key) >= count, || format!("{key}: {}", self.count(folder, key)));
        assert_eq!(self.count(folder, key), count);
    }
}

#[track_caller]
fn wait(mut done: impl FnMut() -> bool, state: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "{}", state());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn killed_processes_lose_nothing_and_count_nothing_twice() {
    let out = Folder::new().run("demo --distributed --items 120000 --kills 3 --seed 5").fine();
    assert!(out.contains("After 12 kills every line is counted once, and "), "{out}");
}

#[test]
fn a_followed_file_is_rotated_cut_and_read_on() {
    let folder = Folder::new();
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let log = folder.path().join("a.log");
    append(&log, "x\nx\n");
    let start = || {
        Process(
            collector
                .agent(&folder, "--stream a --follow a.log")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        )
    };
    let agent = start();
    collector.wait_for(&folder, "x", 2);
    // Half a line is no item before its end came.
    append(&log, "x\nx");
    collector.wait_for(&folder, "x", 3);
    append(&log, "\n");
    collector.wait_for(&folder, "x", 4);
    // The old file is read to its end, then the one that took its name.
    std::fs::rename(&log, folder.path().join("a.log.1")).unwrap();
    append(&folder.path().join("a.log.1"), "x\n");
    append(&log, "x\n");
    collector.wait_for(&folder, "x", 6);
    // Rotated while the agent is down.
    drop(agent);
    append(&log, "x\n");
    std::fs::rename(&log, folder.path().join("a.log.2")).unwrap();
    append(&log, "x\nx\n");
    let agent = start();
    collector.wait_for(&folder, "x", 9);
    let clean = collector.ask(&folder, "streams").fine();
    assert!(!clean.contains("unknown"), "nothing was missed so far: {clean}");
    std::fs::write(&log, "").unwrap();
    wait(|| collector.ask(&folder, "streams").fine().contains("some, unknown"), || "the cut is not reported".into());
    append(&log, "x\n");
    collector.wait_for(&folder, "x", 10);
    // The collector starts again: it has everything.
    drop(agent);
    let collector = collector.restart(&folder);
    assert_eq!(collector.count(&folder, "x"), 10);
}

#[test]
fn what_cannot_be_delivered_waits_on_the_disk() {
    let folder = Folder::with("a.log", "x\ny\nx\n");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let url = collector.url.clone();
    let token = collector.token.clone();
    drop(collector.process);
    let at = |listen: &str, token: &str| Collector::start(&folder, listen, Some(token));
    let mut command = folder.command(&format!("agent --to {url} --stream a a.log"));
    command.env("UCL_TOKEN", &token).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut agent = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(agent.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let trouble = lines.next().unwrap();
    assert!(trouble.starts_with(&format!("ucl agent: a: warning: cannot reach {url}: ")), "{trouble}");
    agent.signal("-TERM");
    assert!(agent.0.wait().unwrap().success());
    let end = std::io::read_to_string(agent.0.stdout.take().unwrap()).unwrap();
    assert_eq!(end, "a: 3 items in 1 epoch, 1 not delivered yet: they wait in ucl-agent-data/a\n");
    // The file has more by now, and the collector is back.
    append(&folder.path().join("a.log"), "x\n");
    let collector = at(url.trim_start_matches("http://"), &token);
    let run: common::Run = collector.agent(&folder, "--stream a a.log").output().unwrap().into();
    assert_eq!((run.code, run.err.as_str()), (0, "ucl agent: a: goes on at 3 items\n"));
    assert_eq!(run.out, "a: 4 items in 2 epochs, all delivered\n");
    assert_eq!((collector.count(&folder, "x"), collector.count(&folder, "y")), (3, 1));
    let top = collector.ask(&folder, "top --last 1h --stream a*");
    assert!(top.out.contains(" 1  x           3") && top.err.is_empty(), "{}{}", top.out, top.err);
}

/// The defect: an agent whose link had no room for most keys said "all delivered", and no more.
#[test]
fn what_the_link_had_no_room_for_is_told() {
    let lines: String = (0..40_000u64).map(|i| format!("/page/{}\n", i * i % 30_011)).collect();
    let folder = Folder::with("a.log", lines);
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let run: common::Run = collector.agent(&folder, "--stream a --uplink 100/s a.log").output().unwrap().into();
    let mut told = run.out.lines();
    assert!(told.next().unwrap().starts_with("a: 40000 items in "), "{}{}", run.out, run.err);
    let absorbed = told.next().unwrap();
    assert!(
        absorbed.ends_with("% of the weight went into the sketch, for the link had no room: those counts have ranges"),
        "{absorbed}"
    );
}

#[test]
fn the_link_can_be_encrypted() {
    let folder = Folder::with("a.log", "x\nx\n");
    let collector = Collector::start(&folder, "127.0.0.1:0 --tls-self-signed", None);
    assert!(collector.url.starts_with("https://"), "{}", collector.url);
    let run: common::Run = collector.agent(&folder, "--ca data/tls-cert.pem --stream a a.log").output().unwrap().into();
    assert_eq!((run.code, run.out.as_str()), (0, "a: 2 items in 1 epoch, all delivered\n"), "{}", run.err);
    let top = collector.ask(&folder, "top --ca data/tls-cert.pem").fine();
    assert!(top.contains(" 1  x           2"), "{top}");
    // A certificate that nobody vouches for is not trusted by itself.
    let stranger = collector.ask(&folder, "top");
    assert!(stranger.code == 1 && stranger.err.contains("cannot reach"), "{}", stranger.err);
    let wrong = collector.ask(&folder, "top --ca a.log").failed(2);
    insta::assert_snapshot!(wrong, @"ucl: there is no certificate to trust: give a file in PEM format");
}

#[test]
fn a_pipe_tells_what_nobody_saw() {
    let folder = Folder::with("lines", "x\nx\n");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let pipe = || std::fs::File::open(folder.path().join("lines")).unwrap();
    // Read to its end twice: nothing is missing in between.
    for _ in 0..2 {
        let status = collector
            .agent(&folder, "--stream p")
            .stdin(pipe())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    }
    assert_eq!(collector.count(&folder, "x"), 4);
    assert!(!collector.ask(&folder, "streams").fine().contains("unknown"));
    // Killed in between.
    let mut command = collector.agent(&folder, "--stream p");
    let mut agent = Process(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    agent.0.stdin.as_mut().unwrap().write_all(b"x\n").unwrap();
    collector.wait_for(&folder, "x", 5);
    drop(agent);
    let status = collector
        .agent(&folder, "--stream p")
        .stdin(pipe())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    collector.wait_for(&folder, "x", 7);
    assert!(collector.ask(&folder, "streams").fine().contains("some, unknown"));
}

#[test]
fn lines_come_over_the_network() {
    let folder = Folder::new();
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let free = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (udp, tcp) = (free(), free());
    let streams = format!("--stream u=udp:{udp} --stream t=tcp:{tcp} --format field:2");
    let agent =
        Process(collector.agent(&folder, &streams).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut connection = None;
    wait(
        || {
            connection = std::net::TcpStream::connect(tcp).ok();
            connection.is_some()
        },
        || "nobody listens".into(),
    );
    connection.unwrap().write_all(b"7 <1> x 17 <2> x 2").unwrap();
    collector.wait_for(&folder, "x", 2);
    // A datagram to a socket that is not there yet is lost, so that they are sent until one is
    // counted.
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = || sender.send_to(b"1 y\n2 y", udp).map_or(0, |_| 2u64);
    let mut sent = 0;
    wait(
        || {
            sent += send();
            collector.count(&folder, "y") > 0
        },
        || "no datagram was counted".into(),
    );
    agent.signal("-TERM");
    let counted = collector.count(&folder, "y");
    assert!(counted <= sent && counted.is_multiple_of(2), "{counted} of {sent}");
}

/// Runs a test in a network of its own, where nobody else sends. Returns true inside. The system
/// may not permit it: then the test says so, and checks nothing.
#[cfg(target_os = "linux")]
fn in_a_network_of_its_own(test: &str) -> bool {
    const INSIDE: &str = "UCL_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rn", "sh", "-c", command]).arg(std::env::current_exe().unwrap());
        unshare.args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
        unshare.status().is_ok_and(|status| status.success())
    };
    if unshare("ip link set lo up") {
        assert!(unshare("ip link set lo up && exec \"$0\" \"$@\""), "{test} failed inside");
    } else {
        eprintln!("{test}: not checked, because a network namespace is not permitted here");
    }
    false
}

#[cfg(target_os = "linux")]
#[test]
fn packets_are_counted_where_they_pass_and_privileges_are_given_up() {
    if !in_a_network_of_its_own("packets_are_counted_where_they_pass_and_privileges_are_given_up") {
        return;
    }
    const SENT: u64 = 5_000;
    let folder = Folder::with("a.log", "x\n");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let streams = "--stream n=packets:lo --format pcap:dstport";
    let agent = Process(collector.agent(&folder, streams).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let socket = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (sink, sender) = (socket(), socket());
    let [first, port] = [socket(), sink].map(|socket| socket.local_addr().unwrap());
    // What passes before the agent listens is not seen: so it is sent until some of it was counted.
    let mut sent = 0;
    wait(
        || {
            sender.send_to(b"hello", first).unwrap();
            sent += 1;
            collector.count(&folder, &first.port().to_string()) > 0
        },
        || "no packet was counted".into(),
    );
    for _ in 0..SENT {
        sender.send_to(b"hello", port).unwrap();
    }
    collector.wait_for(&folder, &port.port().to_string(), SENT);
    assert!(collector.count(&folder, &first.port().to_string()) <= sent);
    let threads = std::fs::read_dir(format!("/proc/{}/task", agent.0.id())).unwrap();
    let statuses: Vec<String> =
        threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap()).collect();
    assert!(statuses.len() >= 3, "it has threads");
    for status in statuses {
        assert!(status.contains("CapEff:\t0000000000000000\nCapBnd"), "{status}");
        assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    }
    agent.signal("-TERM");
    // Not the packets of an interface.
    let wrong = |arguments: &str| {
        folder.run(&format!("agent --to http://127.0.0.1:1 --token t --state other {arguments}")).failed(2)
    };
    insta::assert_snapshot!(wrong("--stream a packets:lo --format field:2"), @"ucl: packets have no field:2: use --format pcap:src or the like");
    insta::assert_snapshot!(wrong("--stream a packets:lo a.log"), @"ucl: packets never end: give each interface a stream, as --stream NAME=INPUT");
    let missing = folder.run("agent --to http://127.0.0.1:1 --token t --stream a packets:nosuch0").failed(1);
    insta::assert_snapshot!(missing, @"ucl: cannot open packets:nosuch0: No such device (os error 19)");
}

#[test]
fn a_bad_record_is_skipped_or_ends_the_input() {
    let folder = Folder::with("a.log", "1 x\n2 x\n3\n4 x\n");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let strict: common::Run =
        collector.agent(&folder, "--stream a --format field:2 --strict a.log").output().unwrap().into();
    assert_eq!((strict.code, strict.out.as_str()), (1, "a: 2 items in 1 epoch, all delivered\n"));
    assert!(strict.err.contains("a.log, line 3: ") && strict.err.contains("(without --strict it is skipped)"));
    let run: common::Run = collector.agent(&folder, "--stream b --format field:2 a.log").output().unwrap().into();
    assert_eq!((run.code, run.out.as_str()), (0, "b: 3 items in 1 epoch, all delivered\n"));
    assert!(run.err.contains("skipped 1 bad record, the first: "), "{}", run.err);
    assert_eq!(collector.count(&folder, "x"), 5);
}

/// A log that could not be written, as on a full disk or without a reader, ended the thread.
#[test]
fn notes_that_nobody_reads_stop_no_agent() {
    let folder = Folder::with("a.log", "1 x\n2 x\n3\n4 x\n");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let mut agent = collector.agent(&folder, "--stream a --format field:2 --verbose a.log");
    let run: common::Run = agent.stderr(std::io::pipe().unwrap().1).output().unwrap().into();
    assert_eq!((run.code, run.out.as_str()), (0, "a: 3 items in 1 epoch, all delivered\n"));
    assert_eq!(collector.count(&folder, "x"), 3);
}

#[test]
fn wrong_usage_is_explained() {
    let folder = Folder::with("a.log", "x\n");
    let run = |arguments: &str| folder.run(&format!("agent --to http://127.0.0.1:1 --token t {arguments}")).failed(2);
    insta::assert_snapshot!(run("--stream a --mode exact a.log"), @"ucl: an agent cannot count in mode exact: it has no room for counts while the collector cannot be reached; leave --mode out, which is exact while it can be");
    insta::assert_snapshot!(run("--stream a --stream b a.log"), @"ucl: with several streams, each needs an input: --stream a=INPUT");
    insta::assert_snapshot!(run("--stream a udp:5"), @r#"ucl: "udp:5": write udp:ADDRESS:PORT or tcp:ADDRESS:PORT, as udp:127.0.0.1:5140"#);
    insta::assert_snapshot!(run("--stream a a.log --format csv:x --weight 0"), @"ucl: weight `0` does not fit format `csv:x`: give a column name, or a column number from 1 on");
    insta::assert_snapshot!(folder.run("agent --to localhost:1 --token t --stream a a.log").failed(2), @r#"ucl: "localhost:1" is not the address of a collector: write http://HOST:PORT or https://HOST:PORT"#);
    insta::assert_snapshot!(folder.run("top http://127.0.0.1:1").failed(2), @"ucl: a collector needs a token: give --token, or set UCL_TOKEN (`ucl serve` prints the first one)");
    insta::assert_snapshot!(folder.run("top a.ucl --last 5m").failed(2), @"ucl: --last is for collectors: a state file does not have times");
    let collector = Collector::start(&folder, "127.0.0.1:0", None);
    let refused = folder.run(&format!("top {} --token nonsense", collector.url)).failed(1);
    insta::assert_snapshot!(refused.replace(&collector.url, "URL"), @"ucl: URL: the token is not known (status 401)");
}
