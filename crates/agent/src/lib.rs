//! The agent: counts a stream where it is seen, and sends every epoch to a collector.
//!
//! Nothing that the collector acknowledged is lost, and nothing counts twice, whenever the process
//! is killed or the power fails. At the end of an epoch the agent writes its messages to a *spool*,
//! then one *checkpoint* with the data plane, the encoder and the position in the input; only then
//! is the epoch sent. The spool is freed when the collector says that it has the epoch on disk.
//!
//! When the spool is full, the agent stops ending epochs and goes on counting: an outage costs
//! resolution in time, never counts. What it must hold then has a bound: carries are added up by
//! counter, and a key's name is held once. Only when names alone pass [`MOST_OPEN`] bytes does the
//! agent ask its input to wait ([`Agent::is_stalled`]).
//!
//! A disk that is full costs no more than a full spool: room for the next checkpoint is kept free,
//! and an epoch that does not fit the spool is a part of it. A device without a disk keeps no
//! checkpoint (`AgentSettings::keeps_state`): then every start is a new incarnation.
//!
//! There is no network, no clock and no randomness in here: [`Agent::request`] hands out bytes,
//! [`Agent::on_reply`] takes the answer, and time and random numbers are parameters. Files are
//! behind [`Storage`](ucl_storage::Storage).
//!
//! ```
//! use ucl_agent::{Agent, AgentSettings};
//! use ucl_link::{Now, Reply};
//! use ucl_sketch::{DecoderKind, Mode, UclSketch};
//! use ucl_storage::SimDisk;
//!
//! let (config, _) = UclSketch::builder().mode(Mode::Sketch(DecoderKind::Delta)).memory("16KB").plan()?;
//! let settings = AgentSettings::new("shop".parse()?, "web-1".parse()?, config);
//! let mut now = Now { wall_ms: 1_700_000_000_000, mono_ms: 0 };
//! let (mut agent, _resumed) = Agent::open(SimDisk::new(1), settings, now, 42)?;
//! agent.insert(b"tea", 1)?;
//! now.mono_ms += 20_000;
//! agent.advance(now, b"a position in the input")?; // ten seconds have passed: the epoch ends
//! let request = agent.request(now)?.expect("an epoch to send");
//! // ... POST request.body, and read the reply ...
//! # let checksum = ucl_link::Envelope::split(&request.body)?.0.checksum;
//! let reply = Reply { durable_seq: 1, checksum, window: 1 << 20, retry_after_ms: 0, refusal: None };
//! agent.on_reply(now, request.id, Ok(reply), 7)?;
//! assert!(agent.request(now)?.is_none(), "all is acknowledged");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod checkpoint;
mod reserve;
mod settings;
mod spool;

pub use agent::{Agent, Request, Resumed, Status};
pub use checkpoint::stored_config;
pub use settings::{AgentError, AgentSettings, MOST_OPEN, REQUEST_OVERHEAD};
