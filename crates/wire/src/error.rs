//! What can be wrong with a message.

use ucl_data_plane::ConfigError;

use crate::VERSION;

/// Error of a message that cannot be read or is not the expected one. The receiver's state is
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The message is incomplete.
    #[error("{what} needs {needed} bytes, but {left} are left")]
    Truncated {
        /// Part that was being read.
        what: &'static str,
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// The bytes are not a message.
    #[error("a message starts with the bytes 55 43, not {got:02x?}")]
    NotAMessage {
        /// First two bytes.
        got: [u8; 2],
    },
    /// The message has a newer version than this reader knows.
    #[error("the message has version {got}, but this reader knows versions up to {VERSION}: update it")]
    NewerVersion {
        /// The message's version.
        got: u8,
    },
    /// The checksum is wrong: the bytes changed on the way.
    #[error("the message's checksum is {stored:08x}, but its bytes give {computed:08x}")]
    Checksum {
        /// Checksum in the message.
        stored: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// The checksum is right, but the content is invalid: the sender is faulty or hostile.
    #[error("the message's {what} is not possible")]
    Corrupt {
        /// Name of the invalid part.
        what: &'static str,
    },
    /// A number in the message is over its limit.
    #[error("{what} is {value}, but at most {most} are allowed")]
    TooLarge {
        /// Name of the number.
        what: &'static str,
        /// Declared value.
        value: u64,
        /// Largest allowed value.
        most: u64,
    },
    /// More bytes follow the message. [`split_message`](crate::split_message) separates messages.
    #[error("{bytes} bytes follow where the message should end")]
    TrailingBytes {
        /// Number of bytes.
        bytes: usize,
    },
    /// The configuration of the segment is invalid.
    #[error("the segment's configuration: {0}")]
    Config(#[from] ConfigError),
    /// The reports belong to a segment that was not opened.
    #[error("segment {segment} was not opened")]
    UnknownSegment {
        /// The message's segment.
        segment: u32,
    },
    /// Messages before this one are missing.
    #[error("messages {expected} to {} are missing before message {got}", got - 1)]
    Lost {
        /// The message that should have come.
        expected: u64,
        /// The message that came.
        got: u64,
    },
    /// The message was received before.
    #[error("message {got} was received before; {expected} comes next")]
    Repeated {
        /// The message that should have come.
        expected: u64,
        /// The message that came.
        got: u64,
    },
    /// The message belongs to another stream.
    #[error("the message is of stream {got}, not {expected}")]
    WrongStream {
        /// The receiver's stream.
        expected: u64,
        /// The message's stream.
        got: u64,
    },
    /// The message has an unexpected segment number.
    #[error("the message is of segment {got}, not {expected}")]
    WrongSegment {
        /// The segment that should have come.
        expected: u32,
        /// The segment that came.
        got: u32,
    },
    /// The message has an unexpected epoch number.
    #[error("the message is of epoch {got}, not {expected}")]
    WrongEpoch {
        /// The epoch that should have come.
        expected: u64,
        /// The epoch that came.
        got: u64,
    },
}
