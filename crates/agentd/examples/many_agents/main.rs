//! What a thousand agents cost their collector: CPU, memory, and how long a question waits.
//!
//! ```console
//! $ cargo build --release
//! $ cargo run --release -p ucl-agentd --example many_agents -- target/release/ucl 1000 60 10
//! ```
//!
//! Starts `ucl serve` as a process of its own, and this many identities over real connections. Each
//! has a sketch of 16KB, sees keys of Zipf(1.1) over 8,641, and ends an epoch of 4,096 items every
//! ten seconds, for this many seconds. Beside them run this many agents as processes (none if the
//! number is left out), of which one is killed every second. Then asks again while nothing comes
//! in, kills the collector and times how fast its log is read again.

mod killed;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ucl_agent::{Agent, AgentSettings};
use ucl_link::{Client, Clock};
use ucl_sketch::{DecoderKind, Mode, UclSketch};
use ucl_storage::SimDisk;
use ucl_streams::ZipfKeys;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PERIOD: Duration = Duration::from_secs(10);
const ITEMS: usize = 4_096;
const KEYS: u64 = 8_641;
const THREADS: usize = 8;

struct Collector(Child);

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `ucl serve`, and returns it with its address and, at the first start, its token.
fn start(ucl: &str, data: &Path, listen: &str) -> Result<(Collector, String, String)> {
    let mut command = Command::new(ucl);
    command.args(["serve", "--max-streams", "100000", "--listen", listen, "--data"]).arg(data);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let first = lines.next().ok_or("it did not start")??;
    let url = first.strip_prefix("Listening on ").and_then(|rest| rest.split(',').next()).ok_or("no address")?;
    let token = if listen.ends_with(":0") { lines.next().ok_or("no token")?? } else { String::new() };
    let token = token.rsplit(' ').next().unwrap_or_default().to_owned();
    Ok((Collector(child), url.to_owned(), token))
}

/// CPU seconds and resident bytes of a process, as Linux tells.
fn usage(process: u32) -> Result<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().collect();
    let ticks = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok((ticks / 100.0, resident.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1_024))
}

/// The 50th and 99th of a hundred answers to a point question, in milliseconds.
fn waits(client: &Client, until: impl Fn(usize) -> bool) -> Result<(f64, f64)> {
    let mut times = Vec::new();
    while until(times.len()) {
        let start = Instant::now();
        client.get("/v1/default/estimate", [("key", "1".to_owned()), ("stream", "s-7".to_owned())])?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        std::thread::sleep(Duration::from_millis(20));
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[times.len() * 99 / 100]))
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (ucl, agents, seconds, processes) = match &arguments[..] {
        [ucl, agents, seconds] => (ucl, agents, seconds, 0),
        [ucl, agents, seconds, processes] => (ucl, agents, seconds, processes.parse()?),
        _ => return Err("usage: many_agents UCL AGENTS SECONDS [PROCESSES]".into()),
    };
    let agents: usize = agents.parse()?;
    let seconds: f64 = seconds.parse()?;
    let data = tempfile::tempdir()?;
    let (collector, url, token) = start(ucl, data.path(), "127.0.0.1:0")?;
    let client = Client::new(&url, &token)?;
    let clock = Clock::start();
    let mut senders = Vec::new();
    for number in 0..agents {
        let mode = Mode::Sketch(DecoderKind::Delta);
        let (config, _) = UclSketch::builder().mode(mode).key_bytes(4).memory("16KB").plan()?;
        let name = format!("s-{number}").parse()?;
        let settings = AgentSettings {
            commit_ms: 0,
            format: "fimi".into(),
            ..AgentSettings::new("default".parse()?, name, config)
        };
        let (agent, _) = Agent::open(SimDisk::new(number as u64), settings, clock.now(), number as u64)?;
        senders.push(Mutex::new((agent, ZipfKeys::new(1.1, KEYS, number as u64))));
    }
    let (before, _) = usage(collector.0.id())?;
    let began = Instant::now();
    let [sent, epochs, refused] = [const { AtomicU64::new(0) }; 3];
    let ended = AtomicBool::new(false);
    let turn = |number: usize| -> Result<()> {
        let mut sender = senders[number].lock().map_err(|_| "poisoned")?;
        let (agent, keys) = &mut *sender;
        let batch: Vec<u8> = keys.take(ITEMS).flatten().collect();
        agent.insert_batch(4, &batch, None)?;
        agent.finish(clock.now(), b"")?;
        if let Some(request) = agent.request(clock.now())? {
            let reply = client.send(&request.identity, &request.body).map_err(|error| error.to_string());
            let refusal = reply.as_ref().map_or(true, |reply| reply.refusal.is_some());
            refused.fetch_add(u64::from(refusal), Relaxed);
            sent.fetch_add(request.body.len() as u64, Relaxed);
            epochs.fetch_add(1, Relaxed);
            agent.on_reply(clock.now(), request.id, reply, 1)?;
        }
        Ok(())
    };
    let next = AtomicU64::new(0);
    let program = killed::Program { ucl, url: &url, token: &token };
    let mut real = None;
    let busy = std::thread::scope(|scope| -> Result<(f64, f64)> {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    // Agents are spread over the period, and each comes back after it.
                    let turns = next.fetch_add(1, Relaxed);
                    let due = PERIOD.mul_f64(turns as f64 / agents as f64);
                    if due.as_secs_f64() > seconds {
                        break;
                    }
                    std::thread::sleep(due.saturating_sub(began.elapsed()));
                    if let Err(error) = turn(turns as usize % agents) {
                        eprintln!("{error}");
                        break;
                    }
                }
                ended.store(true, Relaxed);
            });
        }
        let real_ones = scope.spawn(|| {
            let run = || killed::run(&program, processes, seconds);
            (processes > 0).then(|| run().map_err(|error| error.to_string())).transpose()
        });
        std::thread::sleep(PERIOD.mul_f64(1.0).min(Duration::from_secs_f64(seconds / 2.0)));
        let busy = waits(&client, |_| !ended.load(Relaxed))?;
        real = real_ones.join().map_err(|_| "the processes panicked")??;
        Ok(busy)
    })?;
    let lasted = began.elapsed().as_secs_f64();
    let (cpu, resident) = usage(collector.0.id())?;
    let epochs = epochs.into_inner();
    let sent = sent.into_inner();
    println!(
        "{agents} agents, {epochs} epochs in {lasted:.0} s, {:.2} bytes an item",
        sent as f64 / (epochs as f64 * ITEMS as f64)
    );
    println!("refused or failed: {}", refused.into_inner());
    if let Some((kills, lines, items)) = real {
        println!("{processes} processes, {kills} kills: {lines} lines written, {items} items counted");
        if lines != items {
            return Err("not every line counts once".into());
        }
    }
    println!("collector: {:.2} of a core, {:.0} MB resident", (cpu - before) / lasted, resident as f64 / 1e6);
    std::thread::sleep(Duration::from_secs(5));
    let idle = waits(&client, |asked| asked < 200)?;
    println!(
        "a point question: 50th {:.2} ms, 99th {:.2} ms while they send; {:.2} and {:.2} after it",
        busy.0, busy.1, idle.0, idle.1
    );
    drop(collector);
    let again = Instant::now();
    let (_collector, _, _) = start(ucl, data.path(), url.trim_start_matches("http://"))?;
    let seconds = again.elapsed().as_secs_f64();
    println!("killed and started again in {seconds:.2} s: {:.0} times as fast as the epochs came", lasted / seconds);
    Ok(())
}
