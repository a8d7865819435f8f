//! `ucl demo --distributed`: a collector and three agents as processes of their own, each killed in
//! mid-stream, and their answers against exact counts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use ucl_link::{About, Client, KeyRow, MOST_KEYS, Name, Range};
use ucl_streams::{SplitMix64, ZipfKeys};

use crate::show::{bytes, count, counted};
use crate::spinner::Spinner;

const AGENTS: usize = 3;
/// Number of different keys each log may have.
const KEYS: u64 = 5_000;
/// The logs grow in at least so many steps, and so long lies between two.
const LEAST_STEPS: u64 = 40;
const PAUSE: Duration = Duration::from_millis(100);
/// Time that the agents may take to deliver everything after the last step.
const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that runs. Whatever is left of it is killed when it is dropped.
struct Fleet {
    folder: PathBuf,
    url: String,
    token: String,
    collector: Child,
    agents: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.agents.iter_mut().chain([&mut self.collector]) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ucl(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdin(Stdio::null());
    Ok(command)
}

/// Starts a collector, and returns it with its address and the token it prints at its first start.
fn start_collector(folder: &Path, listen: &str) -> anyhow::Result<(Child, String, Option<String>)> {
    let data = folder.join("collector");
    let log = File::options().create(true).append(true).open(folder.join("collector.log"))?;
    let mut command = ucl(&["serve", "--listen", listen, "--data"])?;
    let mut child = command.arg(data).stdout(Stdio::piped()).stderr(log).spawn()?;
    let out = child.stdout.take().context("the collector has no output")?;
    let mut address = None;
    let mut token = None;
    for line in BufReader::new(out).lines() {
        let line = line?;
        if let Some(rest) = line.strip_prefix("Listening on ") {
            address = rest.split(',').next().map(str::to_owned);
        }
        if let Some((_, text)) = line.split_once("shown this once: ") {
            token = Some(text.to_owned());
        }
        if token.is_some() || (address.is_some() && listen != "127.0.0.1:0") {
            break;
        }
    }
    match address {
        Some(address) => Ok((child, address, token)),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the collector did not start: see {}", folder.join("collector.log").display())
        }
    }
}

fn log_path(folder: &Path, agent: usize) -> PathBuf {
    folder.join(format!("access-{}.log", agent + 1))
}

impl Fleet {
    fn start(folder: PathBuf) -> anyhow::Result<Self> {
        let (collector, url, token) = start_collector(&folder, "127.0.0.1:0")?;
        let token = token.context("the collector printed no token")?;
        let mut fleet = Self { folder, url, token, collector, agents: Vec::new() };
        for agent in 0..AGENTS {
            File::create(log_path(&fleet.folder, agent))?;
            let child = fleet.start_agent(agent)?;
            fleet.agents.push(child);
        }
        Ok(fleet)
    }

    fn start_agent(&self, agent: usize) -> anyhow::Result<Child> {
        let log = File::options().create(true).append(true).open(self.folder.join("agents.log"))?;
        let stream = format!("web-{}", agent + 1);
        let mut command = ucl(&["agent", "--to", &self.url, "--stream", &stream, "--follow"])?;
        command.args(["--cut-every", "300ms", "--cut-items", "20000", "--state"]).arg(self.folder.join("agents"));
        Ok(command.arg(log_path(&self.folder, agent)).env("UCL_TOKEN", &self.token).stderr(log).spawn()?)
    }

    /// Kills a process as the system does when memory runs out, and starts it again.
    fn kill(&mut self, process: usize) -> anyhow::Result<()> {
        match self.agents.get_mut(process) {
            Some(agent) => {
                agent.kill()?;
                agent.wait()?;
                self.agents[process] = self.start_agent(process)?;
            }
            None => {
                self.collector.kill()?;
                self.collector.wait()?;
                let listen = self.url.trim_start_matches("http://").to_owned();
                self.collector = start_collector(&self.folder, &listen)?.0;
            }
        }
        Ok(())
    }

    fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.url, &self.token)?)
    }
}

/// One look at everything: a row of the picture.
struct Moment {
    written: u64,
    collected: u64,
    killed: Vec<usize>,
}

pub fn run(items: u64, seed: u64, kills: u64) -> anyhow::Result<()> {
    let start = Instant::now();
    let spinner = Spinner::new();
    spinner.say("starting a collector and three agents");
    let folder = tempfile::tempdir()?;
    let mut fleet = Fleet::start(folder.path().to_owned())?;
    let client = fleet.client()?;
    let about = About::all("default".parse::<Name>()?);
    // A process is killed again only after it had time to do something.
    let steps = LEAST_STEPS.max(2 * kills);
    let mut rng = SplitMix64::new(seed);
    let mut schedule: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for process in 0..=AGENTS {
        for _ in 0..kills {
            schedule.entry(1 + rng.below(steps - 1)).or_default().push(process);
        }
    }
    let mut truth: BTreeMap<String, u64> = BTreeMap::new();
    let mut logs: Vec<ZipfKeys> = (0..AGENTS as u64).map(|agent| ZipfKeys::new(1.1, KEYS, seed + agent)).collect();
    let mut moments = Vec::new();
    let mut written = 0;
    for step in 0..steps {
        let lines = items * (step + 1) / steps - items * step / steps;
        for (agent, keys) in logs.iter_mut().enumerate() {
            let mut text = String::new();
            for key in keys.take(lines as usize) {
                let line = format!("/page/{}", u32::from_le_bytes(key));
                writeln!(text, "{line}")?;
                *truth.entry(line).or_default() += 1;
            }
            OpenOptions::new().append(true).open(log_path(&fleet.folder, agent))?.write_all(text.as_bytes())?;
            written += lines;
        }
        let killed = schedule.remove(&step).unwrap_or_default();
        for process in &killed {
            fleet.kill(*process)?;
        }
        std::thread::sleep(PAUSE);
        // While the collector starts it does not answer: what it has is on its disk.
        let collected = collected(&client, &about).unwrap_or(0);
        spinner.say(format!("{} lines written, {} counted by the collector", count(written), count(collected)));
        moments.push(Moment { written, collected, killed });
    }
    let waiting = Instant::now();
    while collected(&client, &about).unwrap_or(0) < written {
        if waiting.elapsed() > PATIENCE {
            bail!(
                "{} lines were written, but the collector has counted {}",
                written,
                collected(&client, &about).unwrap_or(0)
            );
        }
        std::thread::sleep(PAUSE);
    }
    spinner.clear();
    let streams = client.streams(&about)?;
    let Compared { exact, wrong } = compare(&client, &about, &truth)?;
    drop(fleet);
    let total: u64 = streams.iter().map(|stream| stream.items).sum();
    let gaps = streams.iter().filter(|stream| stream.unseen.is_some()).count();
    let mut text = picture(&moments, kills);
    let uplink: u64 = streams.iter().map(|stream| stream.uplink_bytes).sum();
    let epochs: u64 = streams.iter().map(|stream| stream.epochs).sum();
    writeln!(
        text,
        "\n{} lines in 3 logs, {} distinct keys; {} epochs, {} sent.",
        count(written),
        count(truth.len() as u64),
        count(epochs),
        bytes(uplink as usize)
    )?;
    let killed = kills * (AGENTS as u64 + 1);
    if total != written || gaps > 0 || !wrong.is_empty() || streams.len() != AGENTS {
        crate::show::print(text)?;
        let some: Vec<&str> = wrong.iter().take(3).map(String::as_str).collect();
        bail!(
            "after {} the collector has {total} of {written} lines, {} whose range is wrong ({}), {gaps} gaps, {} incarnations",
            counted(killed, "kill"),
            counted(wrong.len() as u64, "key"),
            some.join("; "),
            streams.len()
        );
    }
    // A sketch forgets a name now and then; its range holds all the same.
    let counts = match truth.len() as u64 - exact {
        0 => "every count is exact".to_owned(),
        others => format!("all but {} are exact, and their ranges hold the exact counts", counted(others, "count")),
    };
    writeln!(
        text,
        "After {} every line is counted once, and {counts} ({:.0} s).",
        counted(killed, "kill"),
        start.elapsed().as_secs_f64()
    )?;
    text += "\nTo try it yourself:\n  ucl serve\n  ucl agent --to http://127.0.0.1:7070 --token TOKEN --stream web-1 --follow access.log\n  \
             ucl top http://127.0.0.1:7070 --token TOKEN\n";
    crate::show::print(text)
}

fn collected(client: &Client, about: &About) -> Option<u64> {
    Some(client.streams(about).ok()?.iter().map(|stream| stream.items).sum())
}

/// The collector's answers beside the exact counts.
struct Compared {
    /// Number of keys whose count is the exact one.
    exact: u64,
    /// All keys whose range does not hold the exact count.
    wrong: Vec<String>,
}

fn compare(client: &Client, about: &About, truth: &BTreeMap<String, u64>) -> anyhow::Result<Compared> {
    let keys: Vec<String> = truth.keys().cloned().collect();
    let mut compared = Compared { exact: 0, wrong: Vec::new() };
    let mut check = |row: KeyRow, exact: u64| {
        let Range { estimate, lower, upper } = row.count;
        compared.exact += u64::from(estimate == exact);
        if !(lower..=upper).contains(&exact) {
            compared.wrong.push(format!("{}: {estimate} in {lower}..={upper}, exactly {exact}", row.key.shown));
        }
    };
    for (row, exact) in client.estimate(about, &keys)?.keys.into_iter().zip(truth.values()) {
        check(row, *exact);
    }
    // Nothing that no log has is among the largest.
    let top = client.top(about, MOST_KEYS)?.keys;
    let invented = top.into_iter().filter(|row| row.key.bytes().is_some() && !truth.contains_key(&row.key.shown));
    invented.for_each(|row| check(row, 0));
    Ok(compared)
}

/// Draws the events from top to bottom: the progress of the logs, and of the collector.
fn picture(moments: &[Moment], kills: u64) -> String {
    let mut text = "\n access-1.log -> agent web-1 --\\\n access-2.log -> agent web-2 ---> collector: one answer for all of them\n \
                    access-3.log -> agent web-3 --/\n\n"
        .to_owned();
    let most = moments.last().map_or(1, |moment| moment.written.max(1));
    let width = 40;
    text += "   time  lines written (-) and counted by the collector (#)\n";
    let rows = moments.len() / 10;
    for (step, moment) in moments.iter().enumerate() {
        let quiet = kills > 4 || moment.killed.is_empty();
        if quiet && (step + 1) % rows.max(1) != 0 {
            continue;
        }
        let place = |items: u64| (items * width / most) as usize;
        let done = place(moment.collected);
        let known = place(moment.written);
        let bar = "#".repeat(done.min(known)) + &"-".repeat(known.saturating_sub(done));
        let name =
            |process: &usize| if *process < AGENTS { format!("agent web-{}", process + 1) } else { "collector".into() };
        let killed: Vec<String> = moment.killed.iter().map(name).collect();
        let note = if killed.is_empty() { String::new() } else { format!("  killed: {}", killed.join(", ")) };
        let seconds = (step as f64 + 1.0) * PAUSE.as_secs_f64();
        let _ = writeln!(text, " {seconds:>4.1} s  {bar:<40}{note}");
    }
    text
}
