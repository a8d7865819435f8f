//! How many packets of an interface an agent counts in a second before the first is dropped.
//!
//! ```console
//! $ cargo build --release
//! $ cargo run --release -p ucl-agentd --example veth -- target/release/ucl 100000 200000 400000
//! ```
//!
//! Needs Linux, root and `ip`. Makes a network namespace with one end of a veth pair in it, sends
//! packets of UDP to many ports from there, so many in a second for five seconds, and counts them
//! at the other end with `ucl agent packets:…`. Tells for each rate what was sent, counted and
//! dropped, and the CPU time of the agent.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use ucl_link::Client;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SPACE: &str = "ucl-veth";
const HERE: &str = "uclveth0";
const THERE: &str = "uclveth1";
const ADDRESS: &str = "10.231.77.1";
const SECONDS: u64 = 5;
/// Ports that packets are sent to: as many flows.
const PORTS: u16 = 20_000;
/// Packets that are sent before the clock is looked at again.
const BURST: u64 = 32;

/// Ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The pair, which goes with its namespace.
struct Pair;

impl Pair {
    fn new() -> Result<Self> {
        ip(&["netns", "add", SPACE])?;
        let pair = Self;
        ip(&["link", "add", HERE, "type", "veth", "peer", "name", THERE, "netns", SPACE])?;
        ip(&["addr", "add", &format!("{ADDRESS}/24"), "dev", HERE])?;
        ip(&["link", "set", HERE, "up"])?;
        ip(&["-n", SPACE, "addr", "add", "10.231.77.2/24", "dev", THERE])?;
        ip(&["-n", SPACE, "link", "set", THERE, "up"])?;
        Ok(pair)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", SPACE]);
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let done = Command::new("ip").args(arguments).status()?;
    if done.success() { Ok(()) } else { Err(format!("ip {} failed", arguments.join(" ")).into()) }
}

/// Sends so many packets in a second. Returns how many it could send.
fn flood(rate: u64) -> Result<u64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < Duration::from_secs(SECONDS) {
        for _ in 0..BURST {
            let port = 10_000 + (sent % u64::from(PORTS)) as u16;
            // Nobody listens, and some answers say so.
            sent += u64::from(socket.send_to(b"packet", (ADDRESS, port)).is_ok());
        }
        let due = Duration::from_secs_f64(sent as f64 / rate as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    Ok(sent)
}

fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

fn measure(ucl: &str, url: &str, token: &str, state: &Path, rate: &str) -> Result<()> {
    let stream = format!("rate-{rate}");
    let mut agent = Command::new(ucl);
    agent.args(["agent", "--to", url, "--token", token, "--format", "pcap:flow", "--stream", &stream, "--state"]);
    let mut agent = Process(agent.arg(state).arg(format!("packets:{HERE}")).stdout(Stdio::null()).spawn()?);
    std::thread::sleep(Duration::from_secs(1));
    let itself = std::env::current_exe()?;
    let sender = Command::new("ip").args(["netns", "exec", SPACE]).arg(itself).args(["flood", rate]).output()?;
    let sent: u64 = String::from_utf8(sender.stdout)?.trim().parse()?;
    std::thread::sleep(Duration::from_secs(1));
    let cpu = cpu_seconds(agent.0.id())?;
    Command::new("kill").args(["-INT", &agent.0.id().to_string()]).status()?;
    agent.0.wait()?;
    let client = Client::new(url, token)?;
    let streams: Value = client.get_json("/v1/default/streams", [("stream", stream)])?;
    let stream = &streams["streams"][0];
    let items = stream["items"].as_u64().ok_or("the agent delivered nothing")?;
    let dropped = stream["unseen"]["items"].as_u64().unwrap_or(0);
    let per_second = sent / SECONDS;
    println!("{per_second} packets/s sent: {items} counted of {sent}, {dropped} dropped, {cpu:.2} s of CPU");
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [word, rate] if word == "flood" => println!("{}", flood(rate.parse()?)?),
        [ucl, rates @ ..] if !rates.is_empty() => {
            let folder = tempfile::tempdir()?;
            let _pair = Pair::new()?;
            let mut serve = Command::new(ucl);
            serve.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
            let mut serve = Process(serve.stdout(Stdio::piped()).spawn()?);
            let mut lines = BufReader::new(serve.0.stdout.take().ok_or("no output")?).lines();
            let first = lines.next().ok_or("it did not start")??;
            let url = first.split([' ', ',']).find(|word| word.starts_with("http")).ok_or("no address")?.to_owned();
            let token = lines.next().ok_or("no token")??;
            let token = token.rsplit(' ').next().unwrap_or_default();
            for rate in rates {
                measure(ucl, &url, token, &folder.path().join("state"), rate)?;
            }
        }
        _ => return Err("usage: veth UCL RATE…".into()),
    }
    Ok(())
}
