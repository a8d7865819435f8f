//! A collector with two sample streams, for looking at its page and for `cargo xtask browser`.
//!
//! Prints the address and a token as JSON, and runs until its standard input ends:
//! `cargo run -p ucl-server --example sample_service`.

use std::error::Error;
use std::io::Read;

use ucl_agent::{Agent, AgentSettings};
use ucl_link::Now;
use ucl_server::{Config, Server};
use ucl_sketch::{DecoderKind, Mode, UclSketch};
use ucl_storage::SimDisk;

/// Epochs of each stream, of 10 seconds each.
const EPOCHS: i64 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let listen = "127.0.0.1:0".parse()?;
    let server = Server::start(Config { listen, data: folder.path().to_owned(), ..Config::default() })?;
    let token = server.first_token().ok_or("the folder is new")?.to_owned();
    let url = server.url();
    let stopper = server.stopper();
    let running = std::thread::spawn(move || server.run());
    let agent = agent_of("web-1", Mode::Exact)?;
    let sent = send(agent, &url, &token).and_then(|()| {
        let agent = agent_of("api-gateway", Mode::Sketch(DecoderKind::Delta))?;
        send(agent, &url, &token)
    });
    if sent.is_ok() {
        println!("{}", serde_json::json!({ "url": url, "token": token }));
        std::io::stdin().read_to_end(&mut Vec::new())?;
    }
    stopper.stop();
    let _ = running.join();
    sent
}

fn wall_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

fn agent_of(stream: &str, mode: Mode) -> Result<(Agent<SimDisk>, Now), Box<dyn Error>> {
    let (config, _) = UclSketch::builder().mode(mode).memory("16KB").seed(7).plan()?;
    let settings = AgentSettings::new("default".parse()?, stream.parse()?, config);
    let now = Now { wall_ms: wall_ms() - EPOCHS * 10_000, mono_ms: 0 };
    Ok((Agent::open(SimDisk::new(1), settings, now, 7)?.0, now))
}

/// Counts made-up requests, and sends each epoch.
fn send((mut agent, mut now): (Agent<SimDisk>, Now), url: &str, token: &str) -> Result<(), Box<dyn Error>> {
    let paths = ["/", "/index.html", "/api/v1/orders", "/api/v1/users", "/login", "/cart", "<b>not markup</b>"];
    let mut random: u64 = 1;
    for epoch in 0..EPOCHS as u64 {
        for (at, path) in (0u64..).zip(paths) {
            for _ in 0..(40 >> at) * (3 + (epoch + 7 * at) % 11) / 3 + u64::from(at == 6) {
                agent.insert(path.as_bytes(), 1)?;
            }
        }
        for _ in 0..30 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            agent.insert(format!("/item/{}", (random >> 33) % 900).as_bytes(), 1)?;
        }
        now = Now { wall_ms: now.wall_ms + 10_000, mono_ms: now.mono_ms + 10_000 };
        agent.advance(now, b"")?;
        let request = agent.request(now)?.ok_or("an epoch has ended")?;
        let identity = &request.identity;
        let path = format!("/v1/{}/{}/{}", identity.tenant, identity.stream, identity.incarnation);
        let reply = serde_json::from_slice(&post(url, &path, token, &request.body)?)?;
        agent.on_reply(now, request.id, Ok(reply), 7)?;
    }
    Ok(())
}

fn post(url: &str, path: &str, token: &str, body: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(url.trim_start_matches("http://"))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("an answer has a head")?;
    Ok(answer.split_off(end + 4))
}
