//! Agents, brokers and collectors as processes, killed in the middle; their answers against exact
//! counts. `cargo xtask nats` installs the brokers and runs this.

#![cfg(unix)]

#[path = "../common/mod.rs"]
mod common;

mod broker;
mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{Broker, programs};
use common::Folder;
use process::{Collector, Process, Written, ask, ask_at, check, items, wait};

/// A folder with a token for everything, in the data that all collectors share.
fn folder() -> Folder {
    let folder = Folder::new();
    let token = folder.run("token add --data data --name test --scope read,admin").fine();
    let token = token.split_whitespace().find(|word| word.starts_with("ucl_")).expect("a token");
    folder.write("token", token);
    folder
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Everything is killed once while lines come, with every broker there is.
#[test]
fn killed_processes_lose_nothing_and_count_nothing_twice() {
    for program in programs() {
        let folder = folder();
        let mut broker = Broker::start(&program, &folder.path().join("broker"));
        let url = broker.url();
        let serve = format!("--nats {url} --partitions 4 --own 0-3");
        let mut collector = Collector::start(&folder, "collector", &serve);
        let mut streams: Vec<Written> = ["a", "b.x", "c"].iter().map(|name| Written::new(&folder, name)).collect();
        let mut agents: Vec<Process> = streams.iter().map(|stream| stream.agent(&folder, &url)).collect();
        for round in 0..9 {
            streams.iter_mut().for_each(|stream| stream.write(3_000));
            pause(400);
            match round % 3 {
                0 => {
                    broker.kill();
                    streams.iter_mut().for_each(|stream| stream.write(500));
                    pause(200);
                    broker.run();
                }
                1 => {
                    drop(collector);
                    streams.iter_mut().for_each(|stream| stream.write(500));
                    pause(200);
                    collector = Collector::start(&folder, "collector", &serve);
                }
                _ => {
                    let which = round / 3;
                    drop(agents.remove(which));
                    agents.insert(which, streams[which].agent(&folder, &url));
                }
            }
        }
        check(&folder, &[&collector], &streams);
        // What is durable was removed from the broker: a new collector on the same data needs none
        // of it.
        pause(6_000);
        collector.process.end();
        let collector = Collector::start(&folder, "collector", &serve);
        check(&folder, &[&collector], &streams);
    }
}

/// Waits until collectors have taken these numbers of partitions, by their logs.
fn wait_for_share(folder: &Folder, names: &[&str], wanted: &[usize]) {
    let held = |name: &str| {
        let log = folder.text(&format!("{name}.log"));
        let count = |what: &str| log.matches(what).count();
        count("this collector has taken a partition") - count("this collector has given a partition up")
    };
    let all = || names.iter().map(|name| held(name)).collect::<Vec<_>>();
    wait(|| all() == wanted, || format!("{:?}, not {wanted:?}\n{}", all(), process::logs(folder.path())));
}

/// Writes to all streams again and again.
fn write(streams: &mut [Written], rounds: u64) {
    for _ in 0..rounds {
        streams.iter_mut().for_each(|stream| stream.write(400));
        pause(200);
    }
}

#[test]
fn partitions_move_between_collectors_without_loss_or_doubling() {
    let folder = folder();
    let broker = Broker::start(&programs()[0], &folder.path().join("broker"));
    let url = broker.url();
    let serve = format!("--nats {url} --partitions 6");
    let mut streams: Vec<Written> = (0..8).map(|number| Written::new(&folder, &format!("s{number}"))).collect();
    let agents: Vec<Process> = streams.iter().map(|stream| stream.agent(&folder, &url)).collect();
    let one = Collector::start(&folder, "one", &serve);
    wait_for_share(&folder, &["one"], &[6]);
    write(&mut streams, 5);
    // A second collector takes its half, while lines come.
    let two = Collector::start(&folder, "two", &serve);
    write(&mut streams, 10);
    wait_for_share(&folder, &["one", "two"], &[3, 3]);
    write(&mut streams, 5);
    // A question to one of them is about its part, one to both about everything.
    let part = ask(&folder, &[&one], "top");
    assert!(part.err.contains("the streams of 3 partitions are not in this answer"), "{}", part.err);
    let whole = ask(&folder, &[&one, &two], "top");
    assert_eq!((whole.code, whole.err.as_str()), (0, ""));
    // One is killed: its leases expire.
    let both = format!("{},{}", one.url, two.url);
    let killed = one.url.clone();
    drop(one);
    let part = ask_at(&folder, &both, "top");
    assert_eq!(part.code, 0);
    assert!(part.err.contains(&format!("not in this answer: cannot reach {killed}")), "{}", part.err);
    assert!(part.err.contains("the streams of 3 partitions are not in this answer"), "{}", part.err);
    write(&mut streams, 5);
    wait_for_share(&folder, &["two"], &[6]);
    write(&mut streams, 5);
    // A third one joins, and the second leaves in order.
    let three = Collector::start(&folder, "three", &serve);
    wait_for_share(&folder, &["two", "three"], &[3, 3]);
    write(&mut streams, 5);
    check(&folder, &[&two, &three], &streams);
    two.process.end();
    wait_for_share(&folder, &["three"], &[6]);
    write(&mut streams, 5);
    check(&folder, &[&three], &streams);
    drop(agents);
}

/// A collector that was held up for longer than its leases does no harm once it goes on.
#[test]
fn a_collector_that_was_held_up_says_nothing_that_does_not_hold() {
    let folder = folder();
    let broker = Broker::start(&programs()[0], &folder.path().join("broker"));
    let url = broker.url();
    let serve = format!("--nats {url} --partitions 2");
    let mut streams: Vec<Written> = ["a", "b", "c"].iter().map(|name| Written::new(&folder, name)).collect();
    let agents: Vec<Process> = streams.iter().map(|stream| stream.agent(&folder, &url)).collect();
    let old = Collector::start(&folder, "old", &serve);
    wait_for_share(&folder, &["old"], &[2]);
    streams.iter_mut().for_each(|stream| stream.write(2_000));
    let lines: BTreeMap<String, u64> = streams.iter().map(|stream| (stream.name.clone(), stream.lines())).collect();
    wait(|| items(&folder, &[&old]) == lines, || process::logs(folder.path()));
    old.process.signal("-STOP");
    let new = Collector::start(&folder, "new", &serve);
    streams.iter_mut().for_each(|stream| stream.write(2_000));
    wait_for_share(&folder, &["new"], &[2]);
    streams.iter_mut().for_each(|stream| stream.write(2_000));
    pause(1_000);
    old.process.signal("-CONT");
    streams.iter_mut().for_each(|stream| stream.write(2_000));
    // It is due one of them again, and takes that in order.
    let lines: BTreeMap<String, u64> = streams.iter().map(|stream| (stream.name.clone(), stream.lines())).collect();
    wait(|| items(&folder, &[&old, &new]) == lines, || process::logs(folder.path()));
    old.process.end();
    streams.iter_mut().for_each(|stream| stream.write(500));
    check(&folder, &[&new], &streams);
    drop(agents);
}

/// Three brokers, each message in all of them; one after the other is killed.
#[test]
fn three_brokers_go_on_as_two() {
    let folder = folder();
    let mut brokers = Broker::start_three(&programs()[0], &folder.path().join("brokers"));
    let urls: Vec<String> = brokers.iter().map(Broker::url).collect();
    let url = urls.join(",");
    let serve = format!("--nats {url} --nats-replicas 3 --partitions 2");
    let mut streams: Vec<Written> = ["a", "b", "c"].iter().map(|name| Written::new(&folder, name)).collect();
    let agents: Vec<Process> = streams.iter().map(|stream| stream.agent(&folder, &url)).collect();
    let collector = Collector::start(&folder, "collector", &serve);
    for broker in &mut brokers {
        streams.iter_mut().for_each(|stream| stream.write(2_000));
        pause(1_500);
        broker.kill();
        streams.iter_mut().for_each(|stream| stream.write(2_000));
        pause(1_500);
        broker.run();
        pause(1_500);
    }
    check(&folder, &[&collector], &streams);
    drop(agents);
}

/// The broker decides who sends for which tenant.
#[test]
fn an_agent_needs_no_more_than_its_own_subjects() {
    for program in programs() {
        let folder = folder();
        let broker = Broker::start_guarded(&program, &folder.path().join("broker"));
        let serve = format!("--nats {} --partitions 2 --own 0,1", broker.url_of("collector", "c"));
        let collector = Collector::start(&folder, "collector", &serve);
        let url = broker.url_of("agent", "a");
        let mut streams = vec![Written::new(&folder, "a")];
        let agent = streams[0].agent(&folder, &url);
        write(&mut streams, 3);
        check(&folder, &[&collector], &streams);
        drop(agent);
        let other = format!("agent --to {url} --tenant other --stream b --state other --follow a.txt");
        let mut other = folder.command(&other);
        let other = other.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn();
        let other = Process(other.unwrap());
        pause(3_000);
        assert!(other.end().contains("not delivered yet"));
        check(&folder, &[&collector], &streams);
    }
}
