//! What an agent is told, and what can go wrong.

use std::io;

use ucl_link::{LinkError, MAX_ENVELOPE, Name};
use ucl_sketch::mirrored::Allowance;
use ucl_sketch::{BuildError, Config, Device, Epochs, LoadError, ReportRule};

/// Bytes of an open epoch's messages at which the agent ends it early, or, if the spool is full,
/// asks its input to wait. A quarter of the spool where that is less.
pub const MOST_OPEN: usize = 4 << 20;

/// Bytes that a request takes beside its epochs, about: the head of an HTTP request and of its
/// reply, the reply, and the frames of an encrypted connection.
pub const REQUEST_OVERHEAD: u64 = 512;

/// Bytes of a spool that are enough for any sketch. With less, an outage may cost resolution in
/// time before it has begun.
const ENOUGH_SPOOL: u64 = 1 << 20;

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Tenant that owns the stream.
    pub tenant: Name,
    /// The stream.
    pub stream: Name,
    /// Format that keys are read in, for whoever shows them.
    pub format: String,
    /// Configuration of the data plane.
    pub config: Config,
    /// Rule for when an epoch ends, apart from time: by load, or after a number of items. A state
    /// that was written without watching the load keeps to epochs of 16,000 items.
    pub epochs: Epochs,
    /// Milliseconds after which an epoch with items ends.
    pub cut_ms: u64,
    /// Milliseconds after which the state is written again while an epoch lasts, so that less of a
    /// pipe is lost, and less of a file read again, when the process is killed.
    pub checkpoint_ms: u64,
    /// Milliseconds between two writes of the state, at least, when epochs end: those that end
    /// sooner are written together, and sent after that. A disk takes some 30 ms for each write.
    pub commit_ms: u64,
    /// Bytes of epochs that wait for the collector, at most, or one epoch, if that has more.
    pub spool_bytes: u64,
    /// True if the state is kept, for an agent that goes on where it stopped. On a device without a
    /// disk it is not: then every start begins a new incarnation, and what was not delivered before
    /// it is lost.
    pub keeps_state: bool,
    /// Bytes of reports that are collected before a message is written in mid-epoch.
    pub buffer_bytes: usize,
    /// Bytes a second that may go up the link, if the data plane can keep to that (mode budget).
    /// What each request takes beside its epochs is counted ([`REQUEST_OVERHEAD`]).
    pub uplink_per_second: Option<u64>,
    /// Bytes of a request, at most; an epoch that is larger goes alone.
    pub request_bytes: u64,
}

impl AgentSettings {
    /// Creates settings with every default: epochs by load, of at most 10 seconds, and a spool of
    /// 64 MB.
    pub fn new(tenant: Name, stream: Name, config: Config) -> Self {
        Self {
            tenant,
            stream,
            format: "lines".into(),
            config,
            epochs: Epochs::ByLoad,
            cut_ms: 10_000,
            checkpoint_ms: 10_000,
            commit_ms: 500,
            spool_bytes: 64 << 20,
            keeps_state: true,
            buffer_bytes: 64 << 10,
            uplink_per_second: None,
            request_bytes: 1 << 20,
        }
    }

    /// Applies the limit of the uplink to a device, and keeps what it has spent if it had one.
    pub(crate) fn limit(&self, device: &mut Device) -> Result<(), AgentError> {
        let Some(allowance) = device.allowance() else {
            return if self.uplink_per_second.is_none() { Ok(()) } else { Err(AgentError::Uplink) };
        };
        if allowance.is_unlimited() != self.uplink_per_second.is_none() {
            let anew = self.uplink_per_second.map_or(Allowance::UNLIMITED, |_| Allowance::per_item(0.0));
            device.set_allowance(anew);
        }
        Ok(())
    }

    /// A device that has counted nothing.
    pub(crate) fn device(&self) -> Result<Device, BuildError> {
        let mut device = Device::new(self.config)?.with_buffer(self.buffer_bytes);
        if self.epochs == Epochs::ByLoad {
            device.watch_load()?;
        }
        Ok(device)
    }

    /// Bytes of an open epoch's messages at which it ends early, or the input waits.
    pub(crate) fn most_open(&self) -> usize {
        MOST_OPEN.min(self.spool_bytes as usize / 4)
    }

    /// Returns an error if an epoch could not be stored or sent.
    pub(crate) fn check(&self, fresh: &Device) -> Result<(), AgentError> {
        if self.epochs == Epochs::Every(0) || self.cut_ms == 0 {
            return Err(AgentError::EmptyEpochs);
        }
        if self.config.rule == ReportRule::Paper {
            return Err(AgentError::PaperRule);
        }
        let cut = fresh.largest_cut() as u64;
        let epoch = cut + MOST_OPEN as u64;
        // Up to twice what is open may wait when the agent looks.
        if epoch + MOST_OPEN as u64 > MAX_ENVELOPE as u64 {
            return Err(AgentError::LargeEpochs { epoch });
        }
        let least = (2 * cut).min(ENOUGH_SPOOL);
        if self.keeps_state && self.spool_bytes < least {
            return Err(AgentError::SmallSpool { spool: self.spool_bytes, least });
        }
        Ok(())
    }
}

/// Error of an agent that cannot start or go on. What was acknowledged is safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The disk failed: start the agent again, and it goes on from its checkpoint.
    #[error("the agent's folder: {0}")]
    Storage(#[from] io::Error),
    /// The device could not be built with these sizes.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The state is of another version or configuration.
    #[error("the agent's state: {0}")]
    Load(#[from] LoadError),
    /// A newer version of the program wrote the state, which must not be written over.
    #[error("a newer version of this program wrote the agent's state (version {found}): update this program")]
    NewerState {
        /// Version of the state.
        found: u8,
    },
    /// The folder belongs to another stream, or to other settings.
    #[error("the folder holds the state of {found}, but this is {wanted}: use another folder")]
    OtherStream {
        /// Stream of the folder.
        found: String,
        /// Stream of this agent.
        wanted: String,
    },
    /// The stream has keys of another format.
    #[error("the stream has counted {found} until now, and this is {wanted}: choose another stream, or another folder")]
    OtherFormat {
        /// Format of the stream.
        found: String,
        /// Format of this agent.
        wanted: String,
    },
    /// The folder belongs to a sketch with other sizes, seed or report rule.
    #[error(
        "the folder holds the state of a sketch with other sizes, seed or rule: use another folder, or the same settings"
    )]
    OtherConfig,
    /// The spool is too small for the epochs of this sketch.
    #[error("a spool of {spool} bytes is too small: this sketch needs at least {least}")]
    SmallSpool {
        /// Size of the spool as set.
        spool: u64,
        /// The least for this sketch.
        least: u64,
    },
    /// An epoch of this sketch is larger than a request may be.
    #[error("an epoch of this sketch may take {epoch} bytes, but at most {MAX_ENVELOPE} can be sent")]
    LargeEpochs {
        /// The most an epoch may take.
        epoch: u64,
    },
    /// The data plane has no sketch that could take what the link does not.
    #[error("a limit of the uplink needs mode budget: other modes send what they have to")]
    Uplink,
    /// The limits of an epoch are 0: it needs at least one item and one millisecond.
    #[error("epochs need at least 1 item and 1 ms")]
    EmptyEpochs,
    /// The report rule of the paper does not work with a spool.
    #[error(
        "the report rule 'paper' sends keys again without end, which an outage has no room for: choose new, refresh or rotate"
    )]
    PaperRule,
    /// An epoch does not fit an envelope: a defect, as epochs end before that.
    #[error("internal: {0}")]
    Link(#[from] LinkError),
}
