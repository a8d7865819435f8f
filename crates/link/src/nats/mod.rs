//! The link over NATS JetStream, where one collector is not enough.
//!
//! Streams are spread over a fixed number of *partitions*, by a hash of their names. Each partition
//! is a JetStream stream of its own, and belongs to one collector at a time:
//!
//! ```text
//! agent:     publish ucl.v1.<tenant>.<partition>.<stream>       one envelope; the broker stores it
//!            request ucl.ask.v1.<tenant>.<partition>.<stream>   Ask -> Standing
//! collector: reads the partition in order from its own position, writes epochs to its log, answers
//! ```
//!
//! The broker's acknowledgement frees nothing: a broker says that it has a message before it is on
//! its disk. What frees an agent's spool is the collector's [`Reply`](crate::Reply), as over HTTP.
//! The agent asks for it ([`Ask`]), so that no acknowledgement can be lost, and the collector holds
//! its answer ([`Standing`]) until the epochs are durable.
//!
//! A message has an id, so that the broker drops what an agent sends twice. When the collector has
//! passed a message without having its epoch, the agent sends it with another id.

mod broker;
mod carrier;
mod standing;
mod subject;

pub use broker::{Broker, BrokerError};
pub use carrier::Carrier;
pub use standing::{Ask, Standing};
pub use subject::{MAX_PARTITIONS, Partitions, Place};
