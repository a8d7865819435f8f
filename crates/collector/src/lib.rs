//! The collector: takes the epochs of many agents, loses none, and answers.
//!
//! A request holds epochs of one sender ([`Identity`](ucl_link::Identity)). [`Collector::submit`]
//! judges every epoch, applies those that come next, writes them to a log, and acknowledges them
//! once the log is on the disk: one wait for the disk for all requests of a call. Now and then the
//! state of each sender is written down ([`Collector::maintain`]), and the log before it is
//! removed. After a crash the states and the rest of the log give the same answers, bit for bit.
//!
//! The answer for a key is the sum over streams and incarnations, and so are its bounds. What is
//! known to be missing stands beside it ([`StreamInfo::unseen`]). A [`Snapshot`] answers without
//! the collector, in any thread.
//!
//! There is no network, clock or thread in here. Files are behind
//! [`Storage`](ucl_storage::Storage).
//!
//! ```
//! use ucl_agent::{Agent, AgentSettings};
//! use ucl_collector::{Collector, CollectorSettings, Selection};
//! use ucl_link::Now;
//! use ucl_sketch::{DecoderKind, Mode, UclSketch};
//! use ucl_storage::SimDisk;
//!
//! let (config, _) = UclSketch::builder().mode(Mode::Sketch(DecoderKind::Delta)).memory("16KB").plan()?;
//! let mut now = Now::default();
//! let settings = AgentSettings::new("shop".parse()?, "web-1".parse()?, config);
//! let (mut agent, _) = Agent::open(SimDisk::new(1), settings, now, 42)?;
//! let mut collector = Collector::open(SimDisk::new(2), CollectorSettings::default())?;
//!
//! agent.insert(b"tea", 3)?;
//! now.mono_ms += 20_000;
//! agent.advance(now, b"")?;
//! let request = agent.request(now)?.expect("an epoch");
//! let reply = collector.submit(&[(&request.identity, &request.body)], now)?.remove(0)?;
//! agent.on_reply(now, request.id, Ok(reply), 7)?;
//!
//! let tea = collector.snapshot(&Selection::tenant("shop".parse()?))?.estimate(b"tea");
//! assert_eq!((tea.count, tea.lower, tea.upper), (3, 3, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod checkpoint;
mod collector;
mod deleted;
mod forget;
mod life;
mod log;
mod range;
mod selection;
mod settings;
mod slice;
mod snapshot;

pub use answers::{EpochInfo, StreamInfo};
pub use collector::{Collector, Maintained};
pub use range::{Coverage, TimeRange};
pub use selection::{Selection, Streams};
pub use settings::{CollectorError, CollectorSettings, Limits, Rejected};
pub use slice::{KeyChange, KeySeries, Point, Slice};
pub use snapshot::{Answer, Part, Snapshot, Sum, Totals};
