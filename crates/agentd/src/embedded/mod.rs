//! An agent inside another program: the program hands items over, a thread counts and sends them.
//!
//! Handing over waits for no disk and no network. Items wait in memory, in a queue of so many
//! bytes; those that find it full are left out, counted, and reported to the collector as unseen.
//! What was counted is as safe as with `ucl agent`: the folder has it when the process is killed,
//! but for what came since the state was last written, and that is reported as an unseen interval.

mod counting;
mod queue;

use std::path::{self, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use ucl_agent::{Agent, AgentError, AgentSettings, Status, stored_config};
use ucl_link::{Client, Clock, Name, Unseen};
use ucl_sketch::{Bytes, Epochs, Mode, UclSketch};
use ucl_storage::Folder;
use ucl_streams::Batch;

use self::counting::{CLOSED, Counting, OPEN};
use self::queue::Shared;
use crate::log::Log;
use crate::worker::random;

/// Settings of an embedded agent.
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// The collector.
    pub client: Client,
    /// Whose stream it is.
    pub tenant: Name,
    /// The stream. Only one agent at a time may send it.
    pub stream: Name,
    /// How keys are read, for whoever shows them: a format as in `ucl count --format`.
    pub format: String,
    /// Memory of the sketch.
    pub memory: Bytes,
    /// How to count.
    pub mode: Mode,
    /// An epoch ends after so many items; `None` to end it by load.
    pub interval: Option<u64>,
    /// An epoch with items ends after this time.
    pub cut_every: Duration,
    /// Folder for the states and spools; each stream has a folder in it.
    pub state: PathBuf,
    /// Bytes on disk for epochs that wait for the collector.
    pub spool_bytes: u64,
    /// Bytes in memory for items that wait to be counted.
    pub queue_bytes: usize,
}

/// Why an embedded agent cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The sketch cannot be built.
    #[error(transparent)]
    Build(#[from] ucl_sketch::BuildError),
    /// The folder cannot be used.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Leave the mode out.
    #[error("an agent cannot count in mode exact: it has no room for counts while the collector cannot be reached")]
    ExactMode,
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The process was forked: threads stay behind.
    #[error("the agent belongs to the process that made it: make one in each process, with a stream of its own")]
    OtherProcess,
    /// It was closed.
    #[error("the agent is closed")]
    Closed,
    /// The thread has ended. What was counted before is on disk.
    #[error("the agent has stopped: {0}")]
    Stopped(String),
}

/// How an embedded agent is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedStatus {
    /// What is counted and sent.
    pub agent: Status,
    /// Items that wait to be counted.
    pub queued: u64,
    /// Items left out since the start.
    pub dropped: u64,
    /// Why nothing is counted any more, if so.
    pub stopped: Option<String>,
}

/// An agent inside another program. Any number of threads may use it at once.
#[derive(Debug)]
pub struct Embedded {
    shared: Arc<Shared>,
    stream: Name,
    address: String,
    /// The process that the thread is in.
    home: u32,
}

impl Embedded {
    /// Opens the stream's folder, goes on where it stopped, and starts the thread. The collector
    /// need not be there yet.
    ///
    /// # Errors
    /// If the sketch cannot be built, or the folder cannot be used or is in use.
    pub fn start(settings: EmbeddedSettings) -> Result<Self, EmbeddedError> {
        let EmbeddedSettings { client, tenant, stream, format, memory, mode, cut_every, .. } = settings;
        if mode == Mode::Exact {
            return Err(EmbeddedError::ExactMode);
        }
        let (mut config, epochs) = UclSketch::builder().memory_bytes(memory.0).mode(mode).plan()?;
        // The program may change its own folder later.
        let state = path::absolute(settings.state).map_err(AgentError::Storage)?;
        let folder = Folder::open(state.join(stream.as_str())).map_err(AgentError::from)?;
        // The seed was random, and is the same as long as the stream lives.
        if let Some(stored) = stored_config(&folder)? {
            config.seed = stored.seed;
        }
        let defaults = AgentSettings::new(tenant, stream.clone(), config);
        let agent_settings = AgentSettings {
            format,
            epochs: settings.interval.map_or(epochs, Epochs::Every),
            cut_ms: cut_every.as_millis() as u64,
            spool_bytes: settings.spool_bytes,
            buffer_bytes: (memory.0 / 8).clamp(1 << 10, 64 << 10),
            ..defaults
        };
        let clock = Clock::start();
        let (mut agent, resumed) = Agent::open(folder, agent_settings, clock.now(), random())?;
        if let Some(from_ms) = resumed.written_ms.filter(|_| resumed.position != CLOSED) {
            agent.report_unseen(Unseen { from_ms, to_ms: Clock::wall_ms(), items: None });
        }
        // From now on it is not closed, whenever the process ends.
        agent.finish(clock.now(), OPEN)?;

        let shared = Arc::new(Shared::new(settings.queue_bytes, agent.status()));
        let notes = Arc::clone(&shared);
        let log = Log::to(stream.clone(), false, Box::new(move |line: &str| notes.note(line)));
        let (requests, wanted) = sync_channel::<ucl_agent::Request>(1);
        let (answers, replies) = sync_channel(1);
        let address = client.address().to_owned();
        let named = |role: &str| thread::Builder::new().name(format!("{role} {stream}"));
        let wake = Arc::clone(&shared);
        let send = move || {
            for ucl_agent::Request { id, identity, body } in wanted {
                let reply = client.send(&identity, &body).map_err(|error| error.to_string());
                if answers.send((id, reply)).is_err() {
                    return;
                }
                wake.wake();
            }
        };
        named("send").spawn(send).map_err(EmbeddedError::Thread)?;
        let counting = Counting::new(agent, clock, Arc::clone(&shared), requests, replies, log);
        named("count").spawn(move || counting.run()).map_err(EmbeddedError::Thread)?;
        Ok(Self { shared, stream, address, home: process::id() })
    }

    /// Hands one item over. Returns false if there is no room: then it is left out.
    ///
    /// # Errors
    /// If the agent is closed, or belongs to another process.
    pub fn add(&self, key: &[u8], weight: u64) -> Result<bool, EmbeddedError> {
        self.check_process()?;
        self.shared.push(key, weight)
    }

    /// Hands items over. Returns how many found room: those after them are left out.
    ///
    /// # Errors
    /// As [`Embedded::add`].
    pub fn add_all(&self, items: &Batch<'_>) -> Result<usize, EmbeddedError> {
        self.check_process()?;
        self.shared.push_all(items)
    }

    /// Whether all of these items would find room now, or as many as ever will.
    ///
    /// # Errors
    /// If the agent is closed, has stopped, or belongs to another process.
    pub fn has_room(&self, items: &Batch<'_>) -> Result<bool, EmbeddedError> {
        self.check_process()?;
        self.shared.has_room_for(items)
    }

    /// Ends the epoch, and waits until the collector has everything that was handed over before, or
    /// until the time is up. Returns whether the collector has it.
    ///
    /// # Errors
    /// If the agent is closed, has stopped, or belongs to another process.
    pub fn flush(&self, patience: Duration) -> Result<bool, EmbeddedError> {
        self.check_process()?;
        self.shared.flush(Instant::now() + patience)
    }

    /// Takes no more items, and tries to deliver what it has until the time is up. What is not
    /// delivered then waits in the folder. Returns whether everything is delivered. Closing again
    /// changes nothing.
    ///
    /// # Errors
    /// If the agent has stopped, or belongs to another process.
    pub fn close(&self, patience: Duration) -> Result<bool, EmbeddedError> {
        self.check_process()?;
        self.shared.close(Instant::now() + patience);
        self.shared.ended()
    }

    /// Returns how the agent is doing.
    ///
    /// # Errors
    /// If it belongs to another process.
    pub fn status(&self) -> Result<EmbeddedStatus, EmbeddedError> {
        self.check_process()?;
        Ok(self.shared.status())
    }

    /// Returns what an operator should know, since the last call: one line each. Never waits, and
    /// is quick if there is nothing.
    pub fn notes(&self) -> Vec<String> {
        if self.check_process().is_ok() { self.shared.take_notes() } else { Vec::new() }
    }

    /// Returns the stream's name.
    pub fn stream(&self) -> &Name {
        &self.stream
    }

    /// Returns the collector's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A forked process has no threads but one, and its locks may be held by those it lacks.
    fn check_process(&self) -> Result<(), EmbeddedError> {
        if self.home == process::id() { Ok(()) } else { Err(EmbeddedError::OtherProcess) }
    }
}

impl Drop for Embedded {
    /// Has everything written down, without waiting for it.
    fn drop(&mut self) {
        if self.check_process().is_ok() {
            self.shared.close(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests;
