//! Agents as processes, each of which is killed again and again while it follows a file that grows.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use ucl_link::Client;
use ucl_streams::ZipfKeys;

use crate::{ITEMS, KEYS, PERIOD, Result};

/// How often one of them is killed.
const KILL: Duration = Duration::from_secs(1);
/// How often the files grow.
const STEP: Duration = Duration::from_millis(100);

/// The program, and where its collector is.
pub struct Program<'a> {
    pub ucl: &'a str,
    pub url: &'a str,
    pub token: &'a str,
}

/// One agent with its file.
struct Agent<'a> {
    program: &'a Program<'a>,
    name: String,
    path: PathBuf,
    state: PathBuf,
    file: File,
    keys: ZipfKeys,
    lines: u64,
    process: Option<Child>,
}

impl<'a> Agent<'a> {
    fn new(program: &'a Program<'a>, folder: &Path, number: usize) -> Result<Self> {
        let name = format!("real-{number}");
        let path = folder.join(format!("{name}.log"));
        let file = File::create(&path)?;
        let state = folder.join("state");
        let keys = ZipfKeys::new(1.1, KEYS, number as u64);
        Ok(Self { program, name, path, state, file, keys, lines: 0, process: None })
    }

    fn command(&self) -> Command {
        let Program { ucl, url, token } = *self.program;
        let mut command = Command::new(ucl);
        command.args(["agent", "--to", url, "--token", token, "--memory", "16KB", "--stream", &self.name, "--state"]);
        command.arg(&self.state).arg(&self.path).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn start(&mut self) -> Result<()> {
        self.process = Some(self.command().arg("--follow").spawn()?);
        Ok(())
    }

    /// As the power would.
    fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    fn grow(&mut self, lines: usize) -> Result<()> {
        let text: String = self.keys.by_ref().take(lines).map(|key| format!("{}\n", u32::from_le_bytes(key))).collect();
        self.file.write_all(text.as_bytes())?;
        self.lines += lines as u64;
        Ok(())
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Runs so many for so long, at the pace of the others. Then lets each read to its end, and returns
/// the kills, the lines written and the items that the collector has of them.
pub fn run(program: &Program<'_>, processes: usize, seconds: f64) -> Result<(usize, u64, u64)> {
    let folder = tempfile::tempdir()?;
    let agents = (0..processes).map(|number| Agent::new(program, folder.path(), number));
    let mut agents = agents.collect::<Result<Vec<_>>>()?;
    agents.iter_mut().try_for_each(Agent::start)?;
    let began = Instant::now();
    let mut kills = 0;
    let mut steps = 0;
    while began.elapsed().as_secs_f64() < seconds {
        let lines = ITEMS as f64 * STEP.as_secs_f64() / PERIOD.as_secs_f64();
        for agent in &mut agents {
            agent.grow(lines as usize)?;
        }
        steps += 1;
        std::thread::sleep(STEP.mul_f64(f64::from(steps)).saturating_sub(began.elapsed()));
        if began.elapsed() >= KILL.mul_f64((kills + 1) as f64) {
            let agent = &mut agents[kills % processes];
            agent.kill()?;
            agent.start()?;
            kills += 1;
        }
    }
    for agent in &mut agents {
        agent.kill()?;
        if !agent.command().status()?.success() {
            return Err(format!("{} did not end well", agent.name).into());
        }
    }
    let client = Client::new(program.url, program.token)?;
    let streams: Value = client.get_json("/v1/default/streams", [("stream", "real-*".to_owned())])?;
    let items = streams["streams"].as_array().ok_or("no streams")?.iter().filter_map(|stream| stream["items"].as_u64());
    Ok((kills, agents.iter().map(|agent| agent.lines).sum(), items.sum()))
}
