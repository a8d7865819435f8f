//! One partition: its collector, and the task that reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::{Subject, Subscriber};
use axum::body::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::ReadyChunks;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use ucl_collector::CollectorSettings;
use ucl_link::nats::{Ask, Partitions, Standing};
use ucl_link::{Backoff, Envelope, Identity, Refusal, Reply};

use super::lease::{Lease, LeaseError};
use super::place::{BROKER, COLLECTOR};
use super::position::{Noted, Position};
use super::source::{Reading, Source, SourceError};
use super::told;
use crate::core::{Core, CoreError};
use crate::cores::Cores;
use crate::serve::StartError;

/// Messages that are submitted together, at most.
const BATCH: usize = 256;
/// How long an agent waits for its answer before it learns how far its epochs are.
const HOLD: Duration = Duration::from_secs(4);
/// How often it is seen to that.
const TICK: Duration = Duration::from_millis(500);
/// How often the position is noted, and the broker's messages before it are removed.
const NOTE: Duration = Duration::from_secs(5);
/// Agents that wait for an answer, at most; others ask again.
const MOST_WAITING: usize = 1 << 16;
/// Refusals that are remembered, at most: an agent whose refusal is forgotten sends once more.
const MOST_REFUSALS: usize = 1 << 14;
/// How long a sender waits before it sends again what was passed over.
const AGAIN_MS: u64 = 500;

/// Partition that this collector has.
pub struct Partition {
    source: Source,
    /// What says that it is ours; `None` if that is configured.
    lease: Option<Arc<Lease>>,
    core: Core,
    thread: JoinHandle<()>,
    cores: Cores,
    noted: Noted,
    noted_at: Instant,
    /// How far the log goes.
    position: Position,
    waiting: BTreeMap<Identity, Waiting>,
    /// Why the last epochs of these were not taken.
    refusals: BTreeMap<Identity, Reply>,
}

/// An agent that waits for an answer.
struct Waiting {
    ask: Ask,
    reply_to: Subject,
    until: Instant,
}

impl Waiting {
    fn is_answered_by(&self, reply: &Reply) -> bool {
        reply.durable_seq >= self.ask.next || reply.refusal.is_some()
    }
}

/// Why a reading ended that was not told to.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the broker: {0}")]
    Broker(#[from] SourceError),
    #[error(transparent)]
    Core(#[from] CoreError),
    #[error("the disk is full: {0}")]
    Full(String),
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

impl Partition {
    /// Opens a partition's folder: its states and its log.
    ///
    /// # Errors
    /// If the folder cannot be used, or another process has it.
    pub fn open(
        source: Source,
        place: &Path,
        lease: Option<Arc<Lease>>,
        settings: &CollectorSettings,
        cores: &Cores,
    ) -> Result<Self, StartError> {
        let folder = |error: io::Error| StartError::Nats(format!("partition {}: {error}", source.number));
        let noted = Noted::open(&place.join(BROKER)).map_err(folder)?;
        let (core, thread) = Core::start(place.join(COLLECTOR), settings.clone(), cores.metrics())?;
        cores.insert(source.number, core.clone());
        Ok(Self {
            lease,
            core,
            thread,
            cores: cores.clone(),
            position: noted.get(),
            noted,
            noted_at: Instant::now(),
            waiting: BTreeMap::new(),
            refusals: BTreeMap::new(),
            source,
        })
    }

    /// Reads until it is told to stop; then writes everything down.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut backoff = Backoff::default();
        let number = self.source.number;
        while !*stop.borrow() {
            let began = Instant::now();
            let Err(error) = self.read(&mut stop).await else { break };
            if matches!(error, ReadError::Lease(LeaseError::Lost)) {
                tracing::warn!(partition = number, %error, "reading ends");
                break;
            }
            // What was delivered and not taken is delivered again.
            if began.elapsed() > HOLD {
                backoff.succeeded();
            }
            tracing::warn!(partition = number, %error, "reading starts again");
            let wait = Duration::from_millis(backoff.failed(began.elapsed().as_micros() as u64).min(5_000));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = told(&mut stop) => {}
            }
        }
        self.close().await;
    }

    async fn close(mut self) {
        self.note(None).await;
        self.cores.remove(self.source.number);
        let Self { core, thread, .. } = self;
        let ended = tokio::task::spawn_blocking(move || {
            core.stop();
            thread.join()
        });
        if !matches!(ended.await, Ok(Ok(()))) {
            tracing::error!("the thread of a partition's collector panicked");
        }
    }

    /// Reads and answers. Returns once it is told to stop.
    async fn read(&mut self, stop: &mut watch::Receiver<bool>) -> Result<(), ReadError> {
        let mut reading = self.source.read(self.position).await?;
        self.position = reading.from;
        let asks = self.source.context.client().subscribe(Partitions::asks(self.source.number)).await;
        let mut asks: ReadyChunks<Subscriber> = asks.map_err(SourceError::from)?.ready_chunks(BATCH);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Only waiting is given up when something else happens first.
            tokio::select! {
                messages = next_chunk(&mut reading) => self.take(&mut reading, messages?).await?,
                questions = asks.next() => match questions {
                    Some(questions) => self.asked(questions).await?,
                    None => return Err(SourceError::from("the connection is gone").into()),
                },
                _ = tick.tick() => {
                    self.answer(&BTreeMap::new()).await?;
                    if self.noted_at.elapsed() >= NOTE {
                        self.note(Some(&reading)).await;
                    }
                }
                () = told(stop) => return Ok(()),
            }
        }
    }

    /// Takes messages into the log, and tells their agents.
    async fn take(&mut self, reading: &mut Reading, messages: Vec<Message>) -> Result<(), ReadError> {
        let mut bodies: BTreeMap<Identity, Vec<u8>> = BTreeMap::new();
        let mut sequence = self.position.sequence;
        for message in &messages {
            sequence = reading.number(message)?;
            match self.sender(message) {
                Ok(identity) => bodies.entry(identity).or_default().extend(&message.payload),
                Err(why) => {
                    let subject = message.subject.as_str();
                    tracing::warn!(partition = self.source.number, subject, why, "a message was passed over");
                }
            }
        }
        let submitted = bodies.into_iter().map(|(identity, body)| {
            let core = &self.core;
            async move {
                let reply = core.submit(identity.clone(), Bytes::from(body)).await;
                (identity, reply)
            }
        });
        let mut replies = BTreeMap::new();
        for (identity, reply) in join_all(submitted).await {
            match reply {
                Ok(Reply { refusal: Some(Refusal::Unavailable { why }), .. }) => return Err(ReadError::Full(why)),
                Ok(reply) => {
                    replies.insert(identity, reply);
                }
                Err(CoreError::Rejected(why)) => tracing::warn!(%identity, %why, "a message was passed over"),
                Err(error) => return Err(error.into()),
            }
        }
        self.position.sequence = sequence;
        for (identity, reply) in &replies {
            if reply.refusal.is_none() {
                self.refusals.remove(identity);
            } else if self.refusals.len() < MOST_REFUSALS {
                self.refusals.insert(identity.clone(), reply.clone());
            }
        }
        self.answer(&replies).await
    }

    /// Whose epoch a message has. Whom the broker lets publish is told by the subject, so that it
    /// must be the sender's own.
    fn sender(&self, message: &Message) -> Result<Identity, String> {
        let (received, _) = Envelope::split(&message.payload).map_err(|error| error.to_string())?;
        let identity = received.envelope.identity;
        let place = self.source.partitions.place(&identity);
        if place.subject == message.subject.as_str() { Ok(identity) } else { Err(format!("it is of {identity}")) }
    }

    /// Notes questions, and answers those that can be.
    async fn asked(&mut self, questions: Vec<async_nats::Message>) -> Result<(), ReadError> {
        let until = Instant::now() + HOLD;
        let mut asked = BTreeSet::new();
        for question in questions {
            let Some(reply_to) = question.reply else { continue };
            let Some((tenant, stream)) = Partitions::from_ask(&question.subject) else { continue };
            let Ok(ask) = serde_json::from_slice::<Ask>(&question.payload) else { continue };
            let identity = Identity { tenant, stream, incarnation: ask.incarnation };
            if self.waiting.len() < MOST_WAITING {
                asked.insert(identity.clone());
                self.waiting.insert(identity, Waiting { ask, reply_to, until });
            }
        }
        let replies = self.standing(asked.into_iter().collect()).await?;
        self.answer(&replies).await
    }

    /// What is durable of these senders.
    async fn standing(&self, senders: Vec<Identity>) -> Result<BTreeMap<Identity, Reply>, CoreError> {
        if senders.is_empty() {
            return Ok(BTreeMap::new());
        }
        let all = self.core.ask(move |collector| {
            let reply = |identity: Identity| {
                let reply = collector.standing(&identity);
                (identity, reply)
            };
            senders.into_iter().map(reply).collect::<BTreeMap<_, _>>()
        });
        all.await
    }

    /// Answers the agents that need not wait any longer. `known` is how some of them stand.
    async fn answer(&mut self, known: &BTreeMap<Identity, Reply>) -> Result<(), ReadError> {
        let now = Instant::now();
        let reached = self.position.sequence;
        let is_due = |identity: &Identity, waiting: &Waiting| {
            let answered = known.get(identity).is_some_and(|reply| waiting.is_answered_by(reply));
            answered || waiting.ask.sequence <= reached || waiting.until <= now
        };
        let due = self.waiting.iter().filter(|entry| is_due(entry.0, entry.1));
        let due: Vec<Identity> = due.map(|(identity, _)| identity.clone()).collect();
        let unknown = due.iter().filter(|identity| !known.contains_key(identity)).cloned().collect();
        let mut others = self.standing(unknown).await?;
        if due.is_empty() {
            return Ok(());
        }
        // What agents are told is durable must be there for the next owner too.
        self.confirm().await?;
        let client = self.source.context.client();
        for identity in due {
            let Some(waiting) = self.waiting.remove(&identity) else { continue };
            let Some(reply) = known.get(&identity).cloned().or_else(|| others.remove(&identity)) else { continue };
            let passed = waiting.ask.sequence <= reached;
            let short = passed && !waiting.is_answered_by(&reply);
            let reply = match self.refusals.get(&identity) {
                Some(refused) if short => {
                    Reply { durable_seq: reply.durable_seq, checksum: reply.checksum, ..refused.clone() }
                }
                None if short => Reply { retry_after_ms: AGAIN_MS, ..reply },
                _ => reply,
            };
            let standing = serde_json::to_vec(&Standing { reply, passed }).map_err(SourceError::from)?;
            client.publish(waiting.reply_to, standing.into()).await.map_err(SourceError::from)?;
        }
        Ok(())
    }

    /// Returns an error unless the partition is ours.
    async fn confirm(&self) -> Result<(), LeaseError> {
        match &self.lease {
            Some(lease) => lease.confirm().await,
            None => Ok(()),
        }
    }

    /// Notes the position, and removes what is before it from the broker.
    async fn note(&mut self, reading: Option<&Reading>) {
        self.noted_at = Instant::now();
        if self.noted.get() == self.position {
            return;
        }
        let noted = &mut self.noted;
        let position = self.position;
        if let Err(error) = tokio::task::block_in_place(|| noted.set(position)) {
            tracing::warn!(partition = self.source.number, %error, "how far was read could not be noted");
            return;
        }
        let Some(reading) = reading else { return };
        if self.confirm().await.is_err() {
            return;
        }
        // Another time.
        if let Err(error) = reading.trim(position).await {
            tracing::warn!(partition = self.source.number, %error, "the broker's messages could not be removed");
        }
    }
}

/// The messages that are there, at least one.
async fn next_chunk(reading: &mut Reading) -> Result<Vec<Message>, SourceError> {
    let first = reading.messages.next().await.ok_or("the broker ended the delivery")??;
    let mut messages = vec![first];
    while messages.len() < BATCH {
        match futures_util::FutureExt::now_or_never(reading.messages.next()) {
            Some(Some(Ok(message))) => messages.push(message),
            // It comes again with the next chunk.
            Some(Some(Err(error))) => return Err(error.into()),
            Some(None) | None => break,
        }
    }
    Ok(messages)
}
