//! Collectors and agents as processes, and what they have counted.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Folder, Run};

/// A process that does not outlive its test. Dropping it kills it.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Asks it to end, waits until it did, and returns what it printed.
    pub fn end(mut self) -> String {
        self.signal("-TERM");
        let mut text = String::new();
        if let Some(mut out) = self.0.stdout.take() {
            out.read_to_string(&mut text).unwrap();
        }
        self.0.wait().unwrap();
        text
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

#[track_caller]
pub fn wait(mut done: impl FnMut() -> bool, state: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(150), "{}", state());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn log(folder: &Folder, name: &str) -> std::fs::File {
    std::fs::OpenOptions::new().create(true).append(true).open(folder.path().join(name)).unwrap()
}

/// A collector that reads from brokers.
pub struct Collector {
    pub process: Process,
    pub url: String,
}

impl Collector {
    /// Starts one on the data folder that all share.
    pub fn start(folder: &Folder, name: &str, arguments: &str) -> Self {
        let mut command = folder.command(&format!("serve --listen 127.0.0.1:0 --data data {arguments}"));
        let log = log(folder, &format!("{name}.log"));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().unwrap_or_else(|| panic!("{}", folder.text(&format!("{name}.log"))));
        let url = first.strip_prefix("Listening on ").unwrap().split(',').next().unwrap().to_owned();
        Self { process: Process(child), url }
    }

    /// Items of each stream, over all its incarnations; `None` if it does not answer.
    pub fn items(&self, folder: &Folder) -> Option<BTreeMap<String, u64>> {
        let run = ask(folder, &[self], "streams --json");
        if run.code != 0 {
            return None;
        }
        let answer: Value = serde_json::from_str(&run.out).unwrap();
        let mut items = BTreeMap::new();
        for stream in answer["streams"].as_array()? {
            *items.entry(stream["stream"].as_str()?.to_owned()).or_default() += stream["items"].as_u64()?;
        }
        Some(items)
    }
}

/// A stream that a test writes, with its exact counts.
pub struct Written {
    pub name: String,
    file: std::fs::File,
    next: u64,
    pub counts: BTreeMap<String, u64>,
}

impl Written {
    pub fn new(folder: &Folder, name: &str) -> Self {
        Self { name: name.into(), file: log(folder, &format!("{name}.txt")), next: 0, counts: BTreeMap::new() }
    }

    /// Appends lines: some keys of all streams, and some of this one.
    pub fn write(&mut self, lines: u64) {
        let mut text = String::new();
        for _ in 0..lines {
            // Squares are unevenly spread.
            let key = match self.next % 3 {
                0 => format!("{}-{}", self.name, (self.next * self.next) % 41),
                _ => format!("all-{}", (self.next * self.next) % 67),
            };
            text += &format!("{key}\n");
            *self.counts.entry(key).or_default() += 1;
            self.next += 1;
        }
        self.file.write_all(text.as_bytes()).unwrap();
    }

    pub fn lines(&self) -> u64 {
        self.next
    }

    /// Starts an agent that follows it.
    pub fn agent(&self, folder: &Folder, broker: &str) -> Process {
        let name = &self.name;
        let mut command = folder.command(&format!(
            "agent --to {broker} --cut-every 100ms --stream {name} --state agent-{name} --follow {name}.txt --verbose"
        ));
        let log = log(folder, &format!("agent-{name}.log"));
        Process(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

/// What several streams come to.
pub fn exact(streams: &[Written]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (key, count) in streams.iter().flat_map(|stream| &stream.counts) {
        *all.entry(key.clone()).or_default() += count;
    }
    all
}

/// Items of each stream in several collectors, which share out the streams.
pub fn items(folder: &Folder, collectors: &[&Collector]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (stream, items) in collectors.iter().filter_map(|collector| collector.items(folder)).flatten() {
        *all.entry(stream).or_default() += items;
    }
    all
}

/// Waits until collectors have every line, and holds their counts against the exact ones.
#[track_caller]
pub fn check(folder: &Folder, collectors: &[&Collector], streams: &[Written]) {
    let wanted: BTreeMap<String, u64> = streams.iter().map(|stream| (stream.name.clone(), stream.lines())).collect();
    wait(
        || items(folder, collectors) == wanted,
        || format!("{:?}, not {wanted:?}\n{}", items(folder, collectors), logs(folder.path())),
    );
    // Nothing more comes of what is under way.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(items(folder, collectors), wanted);
    let exact = exact(streams);
    let counts = counts(folder, collectors, exact.len() + 10);
    for (key, count) in &exact {
        let (estimate, lower, upper) = counts.get(key).copied().unwrap_or_default();
        assert!((lower..=upper).contains(count), "{key}: {count} is not in [{lower}, {upper}]");
        assert_eq!(estimate, *count, "{key}");
    }
    assert_eq!(counts.len(), exact.len(), "keys that nobody counted");
}

/// How often keys were counted, with bounds.
fn counts(folder: &Folder, collectors: &[&Collector], n: usize) -> BTreeMap<String, (u64, u64, u64)> {
    let run = ask(folder, collectors, &format!("top --json -n {n}"));
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| row[name].as_u64().unwrap();
        (row["key"].as_str().unwrap().to_owned(), (number("estimate"), number("lower"), number("upper")))
    };
    run.out.lines().map(row).collect()
}

/// Asks several collectors as one.
pub fn ask(folder: &Folder, collectors: &[&Collector], question: &str) -> Run {
    let urls: Vec<&str> = collectors.iter().map(|collector| collector.url.as_str()).collect();
    ask_at(folder, &urls.join(","), question)
}

pub fn ask_at(folder: &Folder, addresses: &str, question: &str) -> Run {
    let mut words = question.split_whitespace();
    let words: Vec<&str> = words.next().into_iter().chain([addresses]).chain(words).collect();
    folder.command_of(&words).env("UCL_TOKEN", folder.text("token").trim()).output().unwrap().into()
}

/// The ends of all logs, for a test that failed.
pub fn logs(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut text = String::new();
    for path in entries.filter(|path| path.extension().is_some_and(|end| end == "log")) {
        let log = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        text += &format!("\n{}\n{}\n", path.display(), lines[lines.len().saturating_sub(15)..].join("\n"));
    }
    text
}
