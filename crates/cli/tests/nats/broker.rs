//! Brokers as processes: `nats-server`, with JetStream on disk.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Process, wait};

/// The programs to test with, newest first: `cargo xtask nats` installs them.
pub fn programs() -> Vec<PathBuf> {
    let paths = std::env::var_os("UCL_NATS_SERVERS").expect("run `cargo xtask nats`, which installs brokers");
    std::env::split_paths(&paths).collect()
}

/// A port that nobody listens on: it was given back.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A broker that can be killed and started again, with the same port and folder.
pub struct Broker {
    program: PathBuf,
    folder: PathBuf,
    pub port: u16,
    process: Option<Process>,
}

impl Broker {
    /// Starts a broker alone.
    pub fn start(program: &Path, folder: &Path) -> Self {
        Self::with(program, folder, free_port(), "")
    }

    /// Starts a broker that lets in a collector, and an agent of the default tenant.
    pub fn start_guarded(program: &Path, folder: &Path) -> Self {
        let agent =
            r#"publish: ["ucl.v1.default.>", "ucl.ask.v1.default.>", "$JS.API.STREAM.NAMES"], subscribe: "_INBOX.>""#;
        let users = format!(
            "authorization {{ users: [\n  {{ user: collector, password: c }}\n  {{ user: agent, password: a, permissions: {{ \
             {agent} }} }}\n] }}\n"
        );
        Self::with(program, folder, free_port(), &users)
    }

    /// The address for a user.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!("nats://{user}:{password}@127.0.0.1:{}", self.port)
    }

    /// Starts three brokers that know each other.
    pub fn start_three(program: &Path, folder: &Path) -> Vec<Self> {
        let routes: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let one = |(number, route): (usize, &u16)| {
            let name = format!("n{number}");
            let settings = format!(
                "server_name: {name}\ncluster {{\n  name: ucl\n  listen: \"127.0.0.1:{route}\"\n  routes: [{}]\n}}\n",
                all.iter().map(|url| format!("{url:?}")).collect::<Vec<_>>().join(", ")
            );
            Self::with(program, &folder.join(name), free_port(), &settings)
        };
        routes.iter().enumerate().map(one).collect()
    }

    fn with(program: &Path, folder: &Path, port: u16, settings: &str) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let store = folder.join("store");
        let settings = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?} }}\npid_file: {:?}\n{settings}",
            folder.join("pid")
        );
        std::fs::write(folder.join("nats.conf"), settings).unwrap();
        let mut broker = Self { program: program.to_owned(), folder: folder.to_owned(), port, process: None };
        broker.run();
        broker
    }

    /// Starts it, if it does not run.
    pub fn run(&mut self) {
        if self.process.is_some() {
            return;
        }
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.join("nats.conf")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.process = Some(Process(command.spawn().expect("nats-server starts")));
        wait(|| std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok(), || "no broker listens".into());
    }

    /// Kills it: nothing is flushed.
    pub fn kill(&mut self) {
        self.process = None;
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}
