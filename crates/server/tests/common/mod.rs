//! A service on a free port, and a client of few words.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod openapi;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;

use serde_json::Value;
use ucl_agent::{Agent, AgentSettings};
use ucl_link::{Now, Reply};
use ucl_server::{Config, Server, Stopper};
use ucl_sketch::{Config as SketchConfig, DecoderKind, Mode, UclSketch, random_seed};
use ucl_storage::SimDisk;

pub struct Running {
    pub address: SocketAddr,
    pub token: String,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

/// An answer: status, head, body.
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Running {
    /// Starts a service on this folder. A folder that has tokens already needs one of them.
    pub fn start(config: Config, token: Option<&str>) -> Self {
        let config = Config { listen: "127.0.0.1:0".parse().unwrap(), ..config };
        let server = Server::start(config).unwrap();
        let token = server.first_token().or(token).expect("a token").to_owned();
        let (address, stopper) = (server.address(), server.stopper());
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { address, token, stopper, thread }
    }

    pub fn get(&self, path: &str) -> Response {
        self.request("GET", path, Some(&self.token), b"")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Response {
        self.request("POST", path, Some(&self.token), body)
    }

    pub fn request(&self, method: &str, path: &str, token: Option<&str>, body: &[u8]) -> Response {
        let authorization = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let response = self.raw(&[head.as_bytes(), body].concat());
        openapi::check(method, path, &response);
        response
    }

    /// Sends bytes as they are, and reads until the end.
    pub fn raw(&self, bytes: &[u8]) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // The service may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, body) = (head.to_ascii_lowercase(), answer[end + 4..].to_vec());
        let body = if head.contains("transfer-encoding: chunked") { unchunked(&body) } else { body };
        Response { status, head, body }
    }

    pub fn stop(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The pieces of a body, put together.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").expect("the length of a piece");
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
}

/// An agent on a simulated disk.
pub struct Sender {
    pub agent: Agent<SimDisk>,
    pub now: Now,
}

impl Sender {
    /// An agent that counts by decoding epochs.
    pub fn new(stream: &str, wall_ms: i64) -> Self {
        Self::with_mode(stream, wall_ms, Mode::Sketch(DecoderKind::Delta))
    }

    pub fn with_mode(stream: &str, wall_ms: i64, mode: Mode) -> Self {
        let (config, _) = UclSketch::builder().mode(mode).memory("16KB").seed(random_seed()).plan().unwrap();
        Self::with_config(stream, wall_ms, config)
    }

    pub fn with_config(stream: &str, wall_ms: i64, config: SketchConfig) -> Self {
        let settings = AgentSettings::new("default".parse().unwrap(), stream.parse().unwrap(), config);
        let now = Now { wall_ms, mono_ms: 0 };
        let (agent, _) = Agent::open(SimDisk::new(1), settings, now, 7).unwrap();
        Self { agent, now }
    }

    /// Counts keys, ends an epoch of 10 seconds and returns its request: path and body.
    pub fn epoch(&mut self, keys: &[(&str, u64)]) -> (String, Vec<u8>, u64) {
        for (key, count) in keys {
            for _ in 0..*count {
                self.agent.insert(key.as_bytes(), 1).unwrap();
            }
        }
        self.now.mono_ms += 10_000;
        self.now.wall_ms += 10_000;
        self.agent.advance(self.now, b"").unwrap();
        let request = self.agent.request(self.now).unwrap().expect("an epoch");
        let identity = &request.identity;
        let path = format!("/v1/{}/{}/{}", identity.tenant, identity.stream, identity.incarnation);
        (path, request.body, request.id)
    }

    /// Counts keys, and sends them as an epoch of 10 seconds.
    pub fn send(&mut self, running: &Running, keys: &[(&str, u64)]) -> Reply {
        let (path, body, id) = self.epoch(keys);
        let response = running.post(&path, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        let reply: Reply = serde_json::from_slice(&response.body).unwrap();
        self.agent.on_reply(self.now, id, Ok(reply.clone()), 3).unwrap();
        reply
    }
}

pub fn config(folder: &std::path::Path) -> Config {
    Config { data: folder.join("data"), ..Config::default() }
}

/// Milliseconds since 1970.
pub fn wall_ms() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64
}
