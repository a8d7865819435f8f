//! An agent's side of the link over NATS.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use tokio::runtime::Runtime;

use super::{Ask, Broker, BrokerError, Partitions, Standing};
use crate::{Envelope, Identity, Reply};

/// How long to wait for the collector to have read what was sent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends the epochs of one stream to the collector of its partition, by way of the broker. Clones
/// share the connection.
#[derive(Clone)]
pub struct Carrier {
    runtime: Arc<Runtime>,
    broker: Context,
    /// As the broker told.
    partitions: Option<Partitions>,
    /// Part of the ids of messages: another one, when what was sent has to be sent again.
    attempt: u64,
}

impl Carrier {
    /// Starts to connect, and does not wait for the broker.
    ///
    /// # Errors
    /// If the address or the certificates cannot be used, or the system gives no thread.
    pub fn start(broker: &Broker) -> Result<Self, BrokerError> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| BrokerError::Unreachable(error.to_string()))?;
        let broker = runtime.block_on(broker.connect("ucl agent", true))?;
        Ok(Self { runtime: Arc::new(runtime), broker, partitions: None, attempt: 0 })
    }

    /// Sends envelopes of one incarnation, laid end to end, and waits until they are durable.
    /// `random` tells apart what is sent again from what was sent.
    ///
    /// # Errors
    /// If the broker or the collector does not answer.
    pub fn send(&mut self, identity: &Identity, body: &[u8], random: u64) -> Result<Reply, String> {
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(self.deliver(identity, body, random))
    }

    async fn deliver(&mut self, identity: &Identity, body: &[u8], random: u64) -> Result<Reply, String> {
        let place = self.partitions(identity).await?.place(identity);
        let envelopes = Envelope::split_all(body).map_err(|error| error.to_string())?;
        let next = envelopes.last().map_or(0, |received| received.envelope.seq + 1);
        let mut acks = Vec::with_capacity(envelopes.len());
        for received in &envelopes {
            let seq = received.envelope.seq;
            let checksum = received.checksum;
            let message = PublishMessage::build()
                .payload(received.bytes.to_vec().into())
                .message_id(format!("{identity}/{seq}/{checksum:016x}/{:x}", self.attempt));
            acks.push(self.broker.send_publish(place.subject.clone(), message).await);
        }
        let mut sequence = 0;
        for ack in acks {
            let stored = match ack {
                Ok(ack) => ack.await,
                Err(error) => Err(error),
            };
            let stored = stored.map_err(|error| {
                // The streams may have been made anew.
                self.partitions = None;
                match error.kind() {
                    PublishErrorKind::MaxPayloadExceeded => {
                        format!("an epoch is larger than the broker takes: raise its max_payload ({error})")
                    }
                    _ => format!("the broker did not store an epoch: {error}"),
                }
            })?;
            sequence = sequence.max(stored.sequence);
        }
        let standing = self.ask(&place.ask, &Ask { incarnation: identity.incarnation, next, sequence }).await?;
        if standing.passed && standing.reply.durable_seq < next {
            self.attempt = random;
        }
        Ok(standing.reply)
    }

    /// Asks until the collector has read as far as was sent, or for as long as we have patience.
    async fn ask(&self, subject: &str, ask: &Ask) -> Result<Standing, String> {
        let question = serde_json::to_vec(ask).map_err(|error| error.to_string())?;
        let began = Instant::now();
        loop {
            let answer = self.broker.client().request(subject.to_owned(), question.clone().into()).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(error) if error.kind() == RequestErrorKind::TimedOut && began.elapsed() < PATIENCE => continue,
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                    return Err("no collector reads the stream's partition at the moment".into());
                }
                Err(error) => return Err(format!("the collector does not answer: {error}")),
            };
            let standing: Standing = serde_json::from_slice(&answer.payload)
                .map_err(|error| format!("something else than a collector answers: {error}"))?;
            let Standing { reply, passed } = &standing;
            let is_done = reply.durable_seq >= ask.next || reply.refusal.is_some() || *passed;
            if is_done || began.elapsed() >= PATIENCE {
                return Ok(standing);
            }
        }
    }

    /// The number of partitions, which is in the names of the broker's streams.
    async fn partitions(&mut self, identity: &Identity) -> Result<Partitions, String> {
        if let Some(partitions) = self.partitions {
            return Ok(partitions);
        }
        // There is a partition 0, however many there are.
        let Some(one) = Partitions::new(1) else { return Err("internal: no partitions".into()) };
        let name =
            self.broker.stream_by_subject(one.place(identity).subject).await.map_err(|error| {
                format!("the broker has no streams for epochs yet; the collector makes them ({error})")
            })?;
        let partitions = Partitions::from_stream_name(&name)
            .ok_or_else(|| format!("the broker's stream {name:?} takes our subjects, and is not ours"))?;
        self.partitions = Some(partitions);
        Ok(partitions)
    }
}
