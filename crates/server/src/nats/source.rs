//! A partition as the broker has it: a JetStream stream.

use std::time::Duration;

use async_nats::jetstream::consumer::pull::{Config as Pull, Stream as Messages};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{Context, Message};
use ucl_link::MAX_ENVELOPE;
use ucl_link::nats::Partitions;

use super::position::Position;

/// Messages that the broker sends ahead, at most.
const AHEAD: usize = 256;
/// Bytes of them, at most: room for the largest.
const AHEAD_BYTES: usize = MAX_ENVELOPE + (64 << 10);
/// How often the broker says that there is nothing new.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// How long it holds a request for more.
const EXPIRES: Duration = Duration::from_secs(10);
/// How long the broker remembers that somebody reads.
const FORGET: Duration = Duration::from_secs(30);

/// Why there are no messages.
pub type SourceError = async_nats::Error;

/// Stream of one partition at the broker.
pub struct Source {
    pub context: Context,
    pub partitions: Partitions,
    pub number: u32,
    pub replicas: usize,
}

/// A stream that is being read.
pub struct Reading {
    stream: Stream,
    /// Position where reading began.
    pub from: Position,
    pub messages: Messages,
    /// Messages so far: a consumer numbers what it delivers.
    delivered: u64,
}

impl Source {
    /// Makes the stream unless it is there, and reads it after a position.
    ///
    /// Nothing is acknowledged to the broker: what it notes of acknowledgements did not survive its
    /// being killed, and delivery went on behind them. Its messages come from where we say.
    pub async fn read(&self, after: Position) -> Result<Reading, SourceError> {
        let config = Config {
            name: self.partitions.stream_name(self.number),
            subjects: vec![Partitions::subjects(self.number)],
            description: Some("epochs of UCL-sketch".into()),
            retention: RetentionPolicy::Limits,
            // A broker that is full refuses, so that agents keep what it has no room for.
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await?;
        let info = stream.cached_info();
        let from = after.within(info.created.unix_timestamp_nanos(), info.state.last_sequence);
        let consumer = stream.create_consumer(Pull {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from.sequence + 1 },
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGET,
            memory_storage: true,
            num_replicas: 1,
            ..Pull::default()
        });
        let consumer = consumer.await?;
        let messages = consumer
            .stream()
            .max_messages_per_batch(AHEAD)
            .max_bytes_per_batch(AHEAD_BYTES)
            .heartbeat(HEARTBEAT)
            .expires(EXPIRES)
            .messages();
        Ok(Reading { messages: messages.await?, stream, from, delivered: 0 })
    }
}

impl Reading {
    /// Returns the number of a message, which must be the next that was delivered.
    pub fn number(&mut self, message: &Message) -> Result<u64, SourceError> {
        let info = message.info()?;
        self.delivered += 1;
        if info.consumer_sequence != self.delivered {
            return Err("a message was lost between the broker and us".into());
        }
        Ok(info.stream_sequence)
    }

    /// Removes messages up to a position from the broker.
    pub async fn trim(&self, to: Position) -> Result<(), SourceError> {
        self.stream.purge().sequence(to.sequence + 1).await?;
        Ok(())
    }
}
