//! Every command of the README works as written, in order, in the folder of the repository.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::Folder;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The commands: what follows `$ ` in blocks of `console`, with lines that go on joined.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let lines = joined.iter().flat_map(|block| block.lines());
    lines.map(|line| line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}")).to_owned()).collect()
}

/// A copy of what a command names in the repository.
fn copy_named_files(command: &str, folder: &Folder) {
    for word in command.split_whitespace().filter(|word| repository().join(word).is_file()) {
        let copy = folder.path().join(word);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(repository().join(word), copy).unwrap();
    }
}

/// Building takes too long for a test: what a cargo command would build and run is checked instead.
fn check_cargo(command: &str, folder: &Folder) {
    let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "#").collect();
    match words[1..] {
        ["run", "--release", "--", ref args @ ..] => {
            assert!(file("Cargo.toml").contains("default-members = [\"crates/cli\"]"), "{command}");
            folder.run_of(&[args, &["--help"]].concat()).fine();
        }
        ["install", "--path", path] => assert!(file(&format!("{path}/Cargo.toml")).contains("name = \"ucl\"")),
        ["xtask", chore] => {
            assert!(file(".cargo/config.toml").contains("xtask ="), "{command}");
            assert!(file("xtask/src/main.rs").contains(&format!("[\"{chore}\"] =>")), "{command}");
        }
        _ => panic!("say how to check: {command}"),
    }
}

/// A collector that `ucl serve` of the page starts, on a free port.
struct Collector {
    process: std::process::Child,
    url: String,
    token: String,
}

impl Collector {
    fn start(folder: &Folder) -> Self {
        let mut command = folder.command("serve --listen 127.0.0.1:0");
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = || lines.next().expect("it says where it listens, and a token");
        let url = next().strip_prefix("Listening on ").unwrap().split(',').next().unwrap().to_owned();
        let token = next().rsplit(' ').next().unwrap().to_owned();
        Self { process, url, token }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn every_command_of_the_readme_works() {
    let page = file("README.md");
    let folder = Folder::new();
    // The page says where to get this one; here a few lines of its kind do.
    assert!(page.contains("`retail.dat` of the [FIMI repository]"));
    let basket = |i: u32| format!("{} {} {}\n", i % 7, i * i % 41, i * i % 301);
    folder.write("retail.dat", (0..700).map(basket).collect::<String>());

    let bin = assert_cmd::cargo::cargo_bin("ucl");
    let path = format!("{}:{}", bin.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let commands = commands(&page);
    assert!(commands.len() > 15, "{commands:?}");
    let mut collector = None;
    for command in commands {
        if command.starts_with("ucl serve ") {
            collector = Some(Collector::start(&folder));
            continue;
        }
        if command.starts_with("export UCL_TOKEN=TOKEN ") {
            continue;
        }
        let (url, token) = collector.as_ref().map_or(("", ""), |collector| (&collector.url, &collector.token));
        let command = command.replace("http://127.0.0.1:7070", url);
        if command.starts_with("cargo ") {
            check_cargo(&command, &folder);
            continue;
        }
        copy_named_files(&command, &folder);
        let mut shell = Command::new("sh");
        let run = shell
            .args(["-ec", &command])
            .env("PATH", &path)
            .env("UCL_TOKEN", token)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && said.is_empty(), "$ {command}\n{said}");
        assert!(!run.stdout.is_empty(), "$ {command}");
    }
}
