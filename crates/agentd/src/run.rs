//! Starts the threads of all streams, and waits for them.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use ucl_agent::{Agent, AgentError, AgentSettings, Request, Status, stored_config};
use ucl_link::{ClientError, Clock};
use ucl_sketch::Epochs;
use ucl_streams::{ReadOptions, Source};

use crate::args::{Args, Stream};
use crate::carrier::Carrier;
use crate::feed::{Feed, Input};
use crate::log::{Log, counted};
use crate::packets::drop_privileges;
use crate::place::Place;
use crate::position::Position;
use crate::worker::{Answered, Outcome, Worker, random};

/// Batches of items that wait.
const BATCHES: usize = 4;

/// Error of an agent that does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentdError {
    /// The options contradict each other.
    #[error("{0}")]
    Usage(String),
    /// The address of the collector cannot be one.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// A stream cannot be counted.
    #[error("{stream}: {error}")]
    Stream {
        /// The stream.
        stream: String,
        /// Error of the stream.
        error: AgentError,
    },
    /// An input could not be read to its end. What came before is counted.
    #[error("{0}")]
    Input(String),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A thread panicked: a defect.
    #[error("internal: the thread of a stream panicked; its state is on disk")]
    Panicked,
}

impl AgentdError {
    pub(crate) fn usage(why: impl ToString) -> Self {
        Self::Usage(why.to_string())
    }
}

/// Counts all streams until their inputs end and everything is delivered, or until `stop` is set.
/// Then writes everything down.
///
/// # Errors
/// If the options cannot be used, or a stream's disk fails. Other streams are counted to their end.
pub fn run(args: &Args, stop: &Arc<AtomicBool>) -> Result<Vec<Outcome>, AgentdError> {
    let carrier = Carrier::open(args)?;
    count(args, &carrier, open(args)?, stop)
}

/// Opens what needs privileges, and gives them up if any input did. Call it before threads are
/// started: each has privileges of its own.
fn open(args: &Args) -> Result<Vec<Stream>, AgentdError> {
    let streams = args.streams()?;
    let inputs = || streams.iter().flat_map(|stream| &stream.inputs);
    if inputs().any(|input| matches!(input, Input::Packets(_))) {
        let files = inputs().any(|input| matches!(input, Input::Source(Source::Path(_))));
        let ports = inputs().any(|input| matches!(input, Input::Net(_)));
        drop_privileges(files, ports)
            .map_err(|error| AgentdError::Input(format!("cannot give up privileges: {error}")))?;
    }
    Ok(streams)
}

fn count(
    args: &Args,
    carrier: &Carrier,
    streams: Vec<Stream>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Outcome>, AgentdError> {
    // Everything that can be wrong is found before anything is counted.
    let opened = streams.into_iter().map(|stream| Opened::new(args, stream)).collect::<Result<Vec<_>, _>>()?;
    let threads = opened.into_iter().map(|opened| opened.start(args, carrier, stop));
    let threads = threads.collect::<Result<Vec<JoinHandle<_>>, _>>()?;
    let outcomes: Vec<_> =
        threads.into_iter().map(|thread| thread.join().unwrap_or(Err(AgentdError::Panicked))).collect();
    outcomes.into_iter().collect()
}

/// Runs the command `ucl agent`: calls [`run`] until the inputs end or a signal comes, and then
/// prints a summary.
///
/// # Errors
/// As [`run`], and if an input could not be read to its end.
pub fn run_and_tell(args: &Args) -> Result<(), AgentdError> {
    let carrier = Carrier::open(args)?;
    let streams = open(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        // The second signal does not wait for anything: the state is on disk.
        if flag.swap(true, Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(std::io::Error::other)?;
    let mut failures = Vec::new();
    for Outcome { stream, status, failed } in count(args, &carrier, streams, &stop)? {
        let Status { items, epochs, waiting, weight, absorbed, .. } = status;
        let delivered = match waiting {
            0 => "all delivered".to_owned(),
            _ if !args.has_disk() => format!("{waiting} not delivered, and lost"),
            _ => format!("{waiting} not delivered yet: they wait in {}", args.state.join(stream.as_str()).display()),
        };
        // Whoever started it may not look any more.
        let (items, epochs) = (counted(items, "item"), counted(epochs, "epoch"));
        let _ = writeln!(std::io::stdout(), "{stream}: {items} in {epochs}, {delivered}");
        if absorbed > 0 {
            let share = 100.0 * absorbed as f64 / weight as f64;
            let _ = writeln!(
                std::io::stdout(),
                "{stream}: {share:.1}% of the weight went into the sketch, for the link had no room: those counts have ranges"
            );
        }
        failures.extend(failed.map(|why| format!("{stream}: {why}")));
    }
    if failures.is_empty() { Ok(()) } else { Err(AgentdError::Input(failures.join("; "))) }
}

/// A stream whose folder is open.
struct Opened {
    stream: Stream,
    agent: Agent<Place>,
    resume: Position,
    written_ms: Option<i64>,
    clock: Clock,
}

impl Opened {
    fn new(args: &Args, stream: Stream) -> Result<Self, AgentdError> {
        let name = stream.name.clone();
        let fail = |error: AgentError| AgentdError::Stream { stream: name.to_string(), error };
        let folder = args.has_disk().then(|| args.state.join(name.as_str()));
        let place = Place::open(folder).map_err(|error| fail(error.into()))?;
        let stored = stored_config(&place).map_err(&fail)?;
        let planned = args.builder(stream.keys, stored.as_ref()).plan();
        let (mut config, epochs) = planned.map_err(AgentdError::usage)?;
        // The seed was random, and is the same as long as the stream lives.
        if let Some(stored) = stored {
            config.seed = stored.seed;
        }
        let settings = AgentSettings {
            format: stream.options.format.to_string(),
            epochs: args.cut_items.map_or(epochs, |items| Epochs::Every(items.get())),
            cut_ms: args.cut_every.as_millis() as u64,
            // Without a disk, what waits is in memory, and takes no more than the sketch.
            spool_bytes: if args.has_disk() { args.spool.0 } else { args.memory.0 } as u64,
            keeps_state: args.has_disk(),
            uplink_per_second: args.uplink.map(|rate| (rate / args.stream.len() as u64).max(1)),
            buffer_bytes: (args.memory.0 / 8).clamp(1 << 10, 64 << 10),
            ..AgentSettings::new(args.tenant.clone(), name.clone(), config)
        };
        let clock = Clock::start();
        let (agent, resumed) = Agent::open(place, settings, clock.now(), random()).map_err(fail)?;
        // From the beginning, everything would count twice.
        let resume = Position::from_bytes(&resumed.position).ok_or_else(|| {
            AgentdError::Input(format!("{name}: the state's position in the input is of another version"))
        })?;
        Ok(Self { stream, agent, resume, written_ms: resumed.written_ms, clock })
    }

    fn start(
        self,
        args: &Args,
        carrier: &Carrier,
        stop: &Arc<AtomicBool>,
    ) -> Result<JoinHandle<Result<Outcome, AgentdError>>, AgentdError> {
        let Self { stream, agent, resume, written_ms, clock } = self;
        let Stream { name, inputs, options, keys: _ } = stream;
        let mut log = Log::new(name.clone(), args.verbose);
        if written_ms.is_some() {
            log.note(&format!("goes on at {} items", agent.status().items));
        }
        let key_bytes = match agent.config().keys {
            ucl_sketch::KeyFormat::Fixed(bytes) => Some(bytes.into()),
            _ => None,
        };
        let options = ReadOptions { key_bytes, interrupt: Some(Arc::clone(stop)), ..options };
        let (to, input) = sync_channel(BATCHES);
        let feed = Feed {
            inputs,
            options,
            follow: args.follow,
            resume: resume.clone(),
            written_ms,
            to,
            stop: Arc::clone(stop),
        };
        let (requests, wanted) = sync_channel(1);
        let (answers, replies) = sync_channel(1);
        let carrier = carrier.clone();
        let worker = Worker {
            stream: name.clone(),
            agent,
            position: resume,
            input,
            requests,
            replies,
            clock,
            stop: Arc::clone(stop),
            log,
        };
        let thread = |role: &str| std::thread::Builder::new().name(format!("{role} {name}"));
        thread("read").spawn(move || feed.run())?;
        thread("send").spawn(move || send(carrier, &wanted, &answers))?;
        let stream = name.to_string();
        let fail = move |error| AgentdError::Stream { stream: stream.clone(), error };
        Ok(thread("count").spawn(move || worker.run().map_err(fail))?)
    }
}

/// Sends one request after the other, until nobody has any more.
fn send(mut carrier: Carrier, wanted: &Receiver<Request>, answers: &SyncSender<Answered>) {
    for Request { id, identity, body } in wanted {
        let reply = carrier.send(&identity, &body);
        if answers.send((id, reply)).is_err() {
            return;
        }
    }
}
