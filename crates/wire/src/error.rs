//! What can be wrong with a message.

use ucl_data_plane::ConfigError;

use crate::VERSION;

/// A message that cannot be read, or that does not belong here. The receiver's state is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Read the rest of the message first; if there is none, have it sent again.
    #[error("{what} needs {needed} bytes, but {left} are left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// These bytes were written by something else.
    #[error("a message starts with the bytes 55 43, not {got:02x?}")]
    NotAMessage {
        /// How they start.
        got: [u8; 2],
    },
    /// Update the receiver.
    #[error("the message has version {got}, but this reader knows versions up to {VERSION}: update it")]
    NewerVersion {
        /// The message's version.
        got: u8,
    },
    /// The bytes changed on the way: have the message sent again.
    #[error("the message's checksum is {stored:08x}, but its bytes give {computed:08x}")]
    Checksum {
        /// In the message.
        stored: u32,
        /// Of the message.
        computed: u32,
    },
    /// The message breaks the format although its checksum holds: the sender is at fault.
    #[error("the message's {what} cannot be")]
    Corrupt {
        /// Which part.
        what: &'static str,
    },
    /// The sender does not keep to the limits, or is hostile.
    #[error("{what} is {value}, but at most {most} are allowed")]
    TooLarge {
        /// Which count.
        what: &'static str,
        /// As declared.
        value: u64,
        /// The limit.
        most: u64,
    },
    /// Split the bytes into messages first ([`split_message`](crate::split_message)).
    #[error("{bytes} bytes follow where the message should end")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// The segment's configuration is none.
    #[error("the segment's configuration: {0}")]
    Config(#[from] ConfigError),
    /// Reports can only be read by the configuration that opened their segment.
    #[error("segment {segment} was not opened")]
    UnknownSegment {
        /// The message's segment.
        segment: u32,
    },
    /// Messages are missing: hand them in first, then this one again.
    #[error("messages {expected} to {} are missing before message {got}", got - 1)]
    Lost {
        /// The message that should have come.
        expected: u64,
        /// The message that came.
        got: u64,
    },
    /// The message was received before: drop it.
    #[error("message {got} was received before; {expected} comes next")]
    Repeated {
        /// The message that should have come.
        expected: u64,
        /// The message that came.
        got: u64,
    },
    /// The message belongs to another receiver.
    #[error("the message is of stream {got}, not {expected}")]
    WrongStream {
        /// The receiver's stream.
        expected: u64,
        /// The message's stream.
        got: u64,
    },
    /// The sender's count of segments is at fault.
    #[error("the message is of segment {got}, not {expected}")]
    WrongSegment {
        /// The segment that should have come.
        expected: u32,
        /// The segment that came.
        got: u32,
    },
    /// The sender's count of epochs is at fault.
    #[error("the message is of epoch {got}, not {expected}")]
    WrongEpoch {
        /// The epoch that should have come.
        expected: u64,
        /// The epoch that came.
        got: u64,
    },
}
