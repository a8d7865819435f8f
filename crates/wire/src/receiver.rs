//! The receiving side: one stream's messages, in order and complete.

use ucl_data_plane::Config;

use crate::message::{Header, Kind, Message, Opened};
use crate::{MAX_COUNTERS, WireError};

/// Reads the messages of one stream and detects missing, repeated and reordered ones.
///
/// A message that is refused changes nothing: hand in the missing ones and then the refused one
/// again.
///
/// ```
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
/// use ucl_wire::{Encoder, Message, Receiver, WireError};
///
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let mut plane = DataPlane::<4>::new(config)?;
/// let mut link = Vec::new();
/// let mut encoder = Encoder::new(7, config, |message: &[u8]| link.push(message.to_vec()))?;
/// plane.cut(&mut encoder);
/// plane.cut(&mut encoder);
///
/// let mut receiver = Receiver::new(7);
/// assert_eq!(receiver.receive(&link[0])?, Message::SegmentOpen(config));
/// assert_eq!(receiver.receive(&link[2]), Err(WireError::Lost { expected: 1, got: 2 }));
/// assert!(receiver.receive(&link[1]).is_ok() && receiver.receive(&link[2]).is_ok());
/// assert_eq!(receiver.receive(&link[1]), Err(WireError::Repeated { expected: 3, got: 1 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Receiver {
    next: Header,
    segment: Option<Config>,
    most_counters: usize,
}

impl Receiver {
    /// Creates a receiver that expects the first message of a stream.
    pub fn new(stream: u64) -> Self {
        Self { next: Header { stream, ..Header::default() }, segment: None, most_counters: MAX_COUNTERS }
    }

    /// Creates a receiver that continues a stream in the same segment, from [`Receiver::expects`]
    /// of an earlier receiver.
    pub fn resume(next: Header, segment: Config) -> Self {
        Self { next, segment: Some(segment), most_counters: MAX_COUNTERS }
    }

    /// Sets the largest number of counters of a segment; the default is [`MAX_COUNTERS`]. The
    /// memory for a cut grows with it. Raise it only for trusted senders.
    pub fn with_counter_limit(mut self, counters: usize) -> Self {
        self.most_counters = counters;
        self
    }

    /// Returns the header of the next message. If that message opens a segment, its segment number
    /// is one higher.
    pub fn expects(&self) -> Header {
        self.next
    }

    /// Returns the configuration of the current segment.
    pub fn segment(&self) -> Option<&Config> {
        self.segment.as_ref()
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// If the message is damaged, of another stream, or not the next one. The receiver then still
    /// expects the same message.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Message, WireError> {
        let opened = Opened::new(bytes)?;
        let kind = opened.kind;
        let header = opened.header;
        let next = self.next;
        if header.stream != next.stream {
            return Err(WireError::WrongStream { expected: next.stream, got: header.stream });
        }
        if header.seq > next.seq {
            return Err(WireError::Lost { expected: next.seq, got: header.seq });
        }
        if header.seq < next.seq {
            return Err(WireError::Repeated { expected: next.seq, got: header.seq });
        }
        let opens_another = matches!(kind, Kind::SegmentOpen | Kind::Reset) && self.segment.is_some();
        let segment = next.segment.saturating_add(opens_another.into());
        if header.segment != segment {
            return Err(WireError::WrongSegment { expected: segment, got: header.segment });
        }
        if header.epoch != next.epoch {
            return Err(WireError::WrongEpoch { expected: next.epoch, got: header.epoch });
        }
        let message = opened.message(self.segment.as_ref(), self.most_counters)?;
        if let Some(config) = message.opens() {
            self.segment = Some(*config);
        }
        self.next.segment = segment;
        self.next.seq = next.seq.saturating_add(1);
        self.next.epoch = next.epoch.saturating_add((kind == Kind::Cut).into());
        Ok(message)
    }
}
