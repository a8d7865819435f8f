//! What the tests share: running `ucl` in a folder of its own, and masking what differs from run to
//! run.

#![allow(dead_code, reason = "not every test file needs all of it")]

use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::CommandCargoExt;
use tempfile::TempDir;

/// A folder to run `ucl` in, so that no path of this machine shows up in messages.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with one file.
    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.write(name, content);
        folder
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }

    /// A file as text; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn command(&self, args: &str) -> Command {
        self.command_of(&args.split_whitespace().collect::<Vec<_>>())
    }

    pub fn command_of(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("ucl").unwrap();
        command.current_dir(self.path()).args(args).stdin(std::process::Stdio::null());
        for variable in ["UCL_TOKEN", "UCL_COLLECTOR", "UCL_DATA", "UCL_STATE", "UCL_CONFIG", "UCL_NATS"] {
            command.env_remove(variable);
        }
        command
    }

    pub fn run(&self, args: &str) -> Run {
        self.command(args).output().unwrap().into()
    }

    pub fn run_of(&self, args: &[&str]) -> Run {
        self.command_of(args).output().unwrap().into()
    }

    /// Runs with something on standard input.
    pub fn pipe(&self, input: impl AsRef<[u8]>, args: &str) -> Run {
        self.write(".input", input);
        let file = std::fs::File::open(self.path().join(".input")).unwrap();
        self.command(args).stdin(file).output().unwrap().into()
    }
}

/// What came of a run.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    /// Output of a run that went well: nothing on standard error, since that is no terminal here.
    #[track_caller]
    pub fn fine(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        mask(&self.out)
    }

    /// The message of a run that failed and printed nothing else.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        self.err
    }

    /// JSON output of a run that went well.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""));
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Times and rates are not the same twice, and what the process took is not told by every system.
pub fn mask(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with(" speed ") {
            " speed     [masked]\n".to_owned()
        } else if let Some((what, _)) = line.rsplit_once("; ").filter(|_| line.starts_with(" counted ")) {
            format!("{what}; [masked]\n")
        } else if line.starts_with(" process ") {
            String::new()
        } else if let Some((_, rest)) = line.strip_prefix("after ").and_then(|rest| rest.split_once(" s: ")) {
            format!("after [masked] s: {rest}\n")
        } else {
            line.to_owned() + "\n"
        }
    };
    text.lines().map(line).collect()
}

/// A capture of Ethernet frames, each an IPv4 TCP packet between two hosts, or something else given
/// as raw bytes.
pub fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65_535u32.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    for frame in frames {
        file.extend([0; 8]);
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend((frame.len() as u32).to_le_bytes());
        file.extend(frame);
    }
    file
}

/// An Ethernet frame with an IPv4 TCP packet.
pub fn tcp4(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = (40 + payload) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 6, 0, 0]);
    frame.extend(from.0);
    frame.extend(to.0);
    tcp_header(&mut frame, from.1, to.1, payload);
    frame
}

/// An Ethernet frame with an IPv6 TCP packet from `::a` to `::b`.
pub fn tcp6(from: u16, to: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 20, 6, 64]);
    for last in [0xa, 0xb] {
        frame.extend([0; 15]);
        frame.push(last);
    }
    tcp_header(&mut frame, from, to, 0);
    frame
}

fn tcp_header(frame: &mut Vec<u8>, from: u16, to: u16, payload: usize) {
    frame.extend(from.to_be_bytes());
    frame.extend(to.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    frame.extend(vec![0; payload]);
}
