//! The agent itself.

use std::io;

use ucl_link::{Backoff, Envelope, Identity, Incarnation, Now, Refusal, Reply, Times, Unseen};
use ucl_sketch::Device;
use ucl_storage::Storage;

use crate::checkpoint::{self, Checkpoint};
use crate::settings::{AgentError, AgentSettings};
use crate::spool::Spool;

/// The number of the last incarnation, should the checkpoint be lost.
const INCARNATION: &str = "incarnation";

/// Counts a stream and keeps its epochs until the collector has them.
pub struct Agent<S> {
    storage: S,
    settings: AgentSettings,
    incarnation: Incarnation,
    device: Device,
    /// Messages of the open epoch.
    messages: Vec<Vec<u8>>,
    message_bytes: usize,
    next_seq: u64,
    previous: u64,
    items_at_cut: u64,
    started_ms: i64,
    /// How long the open epoch had lasted when this process began to count it, and since when.
    lasted_before_ms: u64,
    counting_since: u64,
    unseen: Option<Unseen>,
    position: Vec<u8>,
    spool: Spool,
    /// An envelope that did not fit the disk yet.
    unspooled: Option<Finished>,
    /// Envelopes below this are in the checkpoint, and may be sent.
    committed: u64,
    /// Whether a checkpoint has to be written.
    dirty: bool,
    /// Whether it has to be written at once.
    finishing: bool,
    checkpoint_at: u64,
    items_at_checkpoint: u64,
    link: Link,
    trouble: Option<String>,
    gaps: u64,
}

/// An epoch as it goes into the spool.
struct Finished {
    seq: u64,
    items: u64,
    ended_ms: i64,
    checksum: u64,
    bytes: Vec<u8>,
}

/// What is known of the collector.
#[derive(Debug, Default)]
struct Link {
    requests: u64,
    outstanding: Option<u64>,
    not_before: u64,
    window: Option<u64>,
    backoff: Backoff,
    /// Items, and when, at the last acknowledgement.
    acknowledged: (u64, i64),
    refused: Option<String>,
}

/// What an agent found in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Where the input was when the state was written; empty if there was none.
    pub position: Vec<u8>,
    /// When that was, in milliseconds since 1970; `None` for a new stream.
    pub written_ms: Option<i64>,
}

/// Bytes for the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which one, for [`Agent::on_reply`].
    pub id: u64,
    /// Who sends it.
    pub identity: Identity,
    /// Envelopes laid end to end.
    pub body: Vec<u8>,
}

/// How an agent is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// Items counted in it.
    pub items: u64,
    /// Items of the open epoch.
    pub open_items: u64,
    /// Epochs ended in it.
    pub epochs: u64,
    /// Epochs that the collector has not acknowledged.
    pub waiting: usize,
    /// Bytes of the spool.
    pub spool_bytes: u64,
    /// Whether epochs are not ended any more because the spool is full.
    pub holding: bool,
    /// Times that counts were given up, since the process began.
    pub gaps: u64,
    /// What is wrong with the disk, if anything is.
    pub trouble: Option<String>,
    /// Why the collector refused the last request, if it did.
    pub refused: Option<String>,
}

impl<S: Storage> Agent<S> {
    /// Opens the agent's folder and goes on where it stopped, or starts a new stream. `nonce` is a
    /// random number, for the case that a new incarnation begins.
    ///
    /// # Errors
    /// If the folder cannot be used, or belongs to another stream or configuration.
    pub fn open(mut storage: S, settings: AgentSettings, now: Now, nonce: u64) -> Result<(Self, Resumed), AgentError> {
        let fresh = Device::new(settings.config)?.with_buffer(settings.buffer_bytes);
        settings.check(&fresh)?;
        let bytes = storage.read(checkpoint::FILE)?;
        let stored = bytes.as_deref().and_then(Checkpoint::from_bytes);
        let number = storage.read(INCARNATION)?.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
        let Some(checkpoint) = stored else {
            let lost = bytes.is_some() || number.is_some();
            let number = number.unwrap_or(0).saturating_add(1);
            storage.replace(INCARNATION, &number.to_le_bytes())?;
            let spool = Spool::open(&mut storage, settings.spool_bytes, None, 0)?;
            let mut agent = Self::assemble(storage, settings, Incarnation { number, nonce }, fresh, spool, now);
            if lost {
                agent.unseen = Some(Unseen { from_ms: now.wall_ms, to_ms: now.wall_ms, items: None });
                agent.gaps = 1;
            }
            agent.commit(now)?;
            return Ok((agent, Resumed { position: Vec::new(), written_ms: None }));
        };
        let found = format!("{}/{}", checkpoint.tenant, checkpoint.stream);
        let wanted = format!("{}/{}", settings.tenant, settings.stream);
        if found != wanted {
            return Err(AgentError::OtherStream { found, wanted });
        }
        let device = Device::from_bytes(&checkpoint.device)?;
        if *device.config() != settings.config {
            return Err(AgentError::OtherConfig);
        }
        let incarnation = checkpoint.incarnation;
        let spool = Spool::open(&mut storage, settings.spool_bytes, Some(incarnation), checkpoint.next_seq)?;
        let mut agent = Self::assemble(storage, settings, incarnation, device, spool, now);
        agent.message_bytes = checkpoint.messages.iter().map(Vec::len).sum();
        agent.messages = checkpoint.messages;
        agent.next_seq = checkpoint.next_seq;
        agent.committed = checkpoint.next_seq;
        agent.previous = checkpoint.previous;
        agent.items_at_cut = checkpoint.items_at_cut;
        agent.started_ms = checkpoint.started_ms;
        agent.lasted_before_ms = checkpoint.lasted_ms;
        agent.unseen = checkpoint.unseen;
        agent.position.clone_from(&checkpoint.position);
        agent.items_at_checkpoint = agent.device.items();
        let resumed = Resumed { position: checkpoint.position, written_ms: Some(checkpoint.written_ms) };
        Ok((agent, resumed))
    }

    fn assemble(
        storage: S,
        settings: AgentSettings,
        incarnation: Incarnation,
        device: Device,
        spool: Spool,
        now: Now,
    ) -> Self {
        Self {
            storage,
            settings,
            incarnation,
            device,
            messages: Vec::new(),
            message_bytes: 0,
            next_seq: 0,
            previous: 0,
            items_at_cut: 0,
            started_ms: now.wall_ms,
            lasted_before_ms: 0,
            counting_since: now.mono_ms,
            unseen: None,
            position: Vec::new(),
            spool,
            unspooled: None,
            committed: 0,
            dirty: false,
            finishing: false,
            checkpoint_at: now.mono_ms,
            items_at_checkpoint: 0,
            link: Link { acknowledged: (0, now.wall_ms), ..Link::default() },
            trouble: None,
            gaps: 0,
        }
    }

    /// Inserts one item.
    ///
    /// # Errors
    /// If the key does not fit the sketch, the weight is 0 or above 2^63 - 1, or the total weight
    /// would pass 2^63. The agent is then as it was.
    #[inline]
    pub fn insert(&mut self, key: &[u8], weight: u64) -> Result<(), ucl_sketch::InsertError> {
        self.device.insert(key, weight)
    }

    /// Inserts many keys of one size laid end to end, with their weights if not all are 1.
    ///
    /// # Errors
    /// As [`Device::insert_batch`]. Then none of the items counts.
    pub fn insert_batch(
        &mut self,
        key_bytes: usize,
        keys: &[u8],
        weights: Option<&[u64]>,
    ) -> Result<(), ucl_sketch::InsertError> {
        self.device.insert_batch(key_bytes, keys, weights)
    }

    /// Items until the epoch is full: call [`Agent::advance`] after so many, or more often.
    pub fn items_until_cut(&self) -> u64 {
        let inserted = self.device.items() - self.items_at_cut;
        self.settings.cut_items.saturating_sub(inserted).max(1)
    }

    /// Whether the input has to wait: the spool is full, and the names of new keys in the open
    /// epoch take more than [`MOST_OPEN`](crate::MOST_OPEN) bytes. Acknowledgements end it.
    pub fn is_stalled(&mut self) -> bool {
        self.collect();
        self.message_bytes >= self.settings.most_open()
    }

    /// Says that items were not counted: the process was down, or the source lost them.
    pub fn report_unseen(&mut self, unseen: Unseen) {
        self.unseen = Some(self.unseen.map_or(unseen, |before| before.and(unseen)));
        self.dirty = true;
    }

    /// Ends the epoch if it is due and there is room for it, and writes what has to be written.
    /// `position` is where the input goes on after the last item that was inserted.
    ///
    /// # Errors
    /// If the disk fails. A full disk is no error: the agent goes on and tries again
    /// ([`Status::trouble`]).
    pub fn advance(&mut self, now: Now, position: &[u8]) -> Result<(), AgentError> {
        if self.position != position {
            self.position = position.to_vec();
        }
        self.collect();
        let items = self.device.items() - self.items_at_cut;
        let due = items >= self.settings.cut_items
            || (self.has_news() && self.lasted_ms(now) >= self.settings.cut_ms)
            || self.message_bytes >= self.settings.most_open();
        self.advance_if(due, now)
    }

    /// Ends the epoch now if it has anything to tell and there is room for it, and writes
    /// everything: before the process ends.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn finish(&mut self, now: Now, position: &[u8]) -> Result<(), AgentError> {
        self.position = position.to_vec();
        self.collect();
        self.dirty = true;
        self.finishing = true;
        let written = self.advance_if(self.has_news(), now);
        self.finishing = false;
        written
    }

    /// Whether the collector would learn anything from the open epoch.
    fn has_news(&self) -> bool {
        self.device.items() > self.items_at_cut || self.unseen.is_some()
    }

    fn advance_if(&mut self, due: bool, now: Now) -> Result<(), AgentError> {
        self.trouble = None;
        self.settle(|agent| agent.spool_finished())?;
        if due {
            let bound = self.message_bytes + self.device.cut_bound() + 1_024;
            if self.unspooled.is_none() && self.spool.has_room(bound as u64) {
                self.cut(now)?;
                self.settle(|agent| agent.spool_finished())?;
            } else {
                self.device.hold(true);
            }
        }
        let changed = self.device.items() != self.items_at_checkpoint;
        let since = now.mono_ms.saturating_sub(self.checkpoint_at);
        let wanted = self.dirty && (self.finishing || since >= self.settings.commit_ms);
        if wanted || (changed && since >= self.settings.checkpoint_ms) {
            self.settle(|agent| agent.commit(now))?;
        }
        Ok(())
    }

    /// A full disk is not the end.
    fn settle(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<(), AgentError> {
        match write(self) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.trouble = Some(error.to_string());
                Ok(())
            }
            other => Ok(other?),
        }
    }

    fn lasted_ms(&self, now: Now) -> u64 {
        self.lasted_before_ms.saturating_add(now.mono_ms.saturating_sub(self.counting_since))
    }

    fn collect(&mut self) {
        while let Some(message) = self.device.next_message() {
            self.message_bytes += message.bytes.len();
            self.messages.push(message.bytes);
        }
    }

    fn identity(&self) -> Identity {
        let AgentSettings { tenant, stream, .. } = &self.settings;
        Identity { tenant: tenant.clone(), stream: stream.clone(), incarnation: self.incarnation }
    }

    fn cut(&mut self, now: Now) -> Result<(), AgentError> {
        self.device.cut();
        self.collect();
        let messages = std::mem::take(&mut self.messages);
        self.message_bytes = 0;
        let (seq, items) = (self.next_seq, self.device.items());
        let times = Times { started_ms: self.started_ms, ended_ms: now.wall_ms, duration_ms: self.lasted_ms(now) };
        let envelope = Envelope {
            identity: self.identity(),
            format: &self.settings.format,
            seq,
            previous: self.previous,
            times,
            items,
            unseen: self.unseen.take(),
            messages: messages.iter().map(Vec::as_slice).collect(),
        };
        let bytes = envelope.to_bytes()?;
        self.previous = Envelope::split(&bytes)?.0.checksum;
        self.next_seq += 1;
        self.items_at_cut = items;
        self.started_ms = now.wall_ms;
        self.lasted_before_ms = 0;
        self.counting_since = now.mono_ms;
        let checksum = self.previous;
        self.unspooled = Some(Finished { seq, items, ended_ms: now.wall_ms, checksum, bytes });
        Ok(())
    }

    fn spool_finished(&mut self) -> io::Result<()> {
        let Some(finished) = &self.unspooled else { return Ok(()) };
        let about = (finished.seq, finished.items, finished.ended_ms, finished.checksum);
        self.spool.push(&mut self.storage, about, &finished.bytes)?;
        self.unspooled = None;
        self.dirty = true;
        Ok(())
    }

    /// Writes the checkpoint: what is in the spool by now may be sent from then on.
    fn commit(&mut self, now: Now) -> io::Result<()> {
        // The epoch that is not in the spool yet is in no checkpoint either.
        if self.unspooled.is_some() {
            return Ok(());
        }
        self.collect();
        let checkpoint = Checkpoint {
            tenant: self.settings.tenant.clone(),
            stream: self.settings.stream.clone(),
            incarnation: self.incarnation,
            next_seq: self.next_seq,
            previous: self.previous,
            items_at_cut: self.items_at_cut,
            started_ms: self.started_ms,
            lasted_ms: self.lasted_ms(now),
            written_ms: now.wall_ms,
            unseen: self.unseen,
            position: self.position.clone(),
            messages: self.messages.clone(),
            device: self.device.to_bytes(),
        };
        self.spool.sync(&mut self.storage)?;
        self.storage.replace(checkpoint::FILE, &checkpoint.to_bytes())?;
        self.committed = self.next_seq;
        self.dirty = false;
        self.checkpoint_at = now.mono_ms;
        self.items_at_checkpoint = self.device.items();
        Ok(())
    }

    /// Returns the next request, unless one is under way, the collector asked for a pause, or there
    /// is nothing to send.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn request(&mut self, now: Now) -> Result<Option<Request>, AgentError> {
        if self.link.outstanding.is_some() || now.mono_ms < self.link.not_before {
            return Ok(None);
        }
        let most = self.link.window.unwrap_or(u64::MAX).min(self.settings.request_bytes);
        let mut body = Vec::new();
        for entry in self.spool.entries().take_while(|entry| entry.seq < self.committed) {
            if !body.is_empty() && body.len() as u64 + entry.length > most {
                break;
            }
            body.extend(self.spool.read(&self.storage, entry)?);
        }
        if body.is_empty() {
            return Ok(None);
        }
        self.link.requests += 1;
        self.link.outstanding = Some(self.link.requests);
        Ok(Some(Request { id: self.link.requests, identity: self.identity(), body }))
    }

    /// When the next request may be made, by the clock that does not jump.
    pub fn retry_at(&self) -> u64 {
        self.link.not_before
    }

    /// Takes the reply to a request, or why there was none. `random` decides how long to wait after
    /// a failure, and marks a new incarnation where one begins.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn on_reply(&mut self, now: Now, id: u64, reply: Result<Reply, String>, random: u64) -> Result<(), AgentError> {
        if self.link.outstanding != Some(id) {
            return Ok(());
        }
        self.link.outstanding = None;
        let reply = match reply {
            Ok(reply) => reply,
            Err(why) => {
                self.link.refused = Some(why);
                self.link.not_before = now.mono_ms + self.link.backoff.failed(random);
                return Ok(());
            }
        };
        // A collector that is ahead of us has what another sender of this name sent: we were set
        // back, or copied.
        let ahead = reply.durable_seq > self.committed;
        let gone = self.spool.entries().next().map_or(self.committed, |entry| entry.seq);
        let last = self.spool.entries().find(|entry| entry.seq + 1 == reply.durable_seq);
        let another = last.is_some_and(|entry| entry.checksum != reply.checksum);
        let refused = match &reply.refusal {
            _ if another => Some("another agent sends as this incarnation".to_owned()),
            _ if ahead => Some("the collector has more epochs of this incarnation than were sent".to_owned()),
            Some(Refusal::Forked) => Some("another agent sends as this incarnation".to_owned()),
            Some(Refusal::Ended { why }) => Some(why.clone()),
            Some(Refusal::Missing) if reply.durable_seq < gone => {
                Some("the collector has lost epochs that it had acknowledged".to_owned())
            }
            _ => None,
        };
        if let Some(why) = refused {
            // What the collector still has of this incarnation stays; what it lost, or never took,
            // is gone.
            let lost_its_disk = matches!(reply.refusal, Some(Refusal::Missing)) && !ahead;
            let items = match (lost_its_disk, reply.durable_seq) {
                (true, 0) => Some(self.device.items()),
                (true, _) => None,
                (false, _) => Some(self.device.items() - self.link.acknowledged.0),
            };
            let unseen = Unseen { from_ms: self.link.acknowledged.1, to_ms: now.wall_ms, items };
            self.link.refused = Some(why);
            return self.begin_again(now, random, unseen);
        }
        self.acknowledge(reply.durable_seq)?;
        self.link.window = Some(reply.window);
        let wait = match &reply.refusal {
            None => {
                self.link.backoff.succeeded();
                self.link.refused = None;
                reply.retry_after_ms
            }
            Some(refusal) => {
                self.link.refused = Some(match refusal {
                    Refusal::Limit { why } | Refusal::Unavailable { why } | Refusal::Ended { why } => why.clone(),
                    Refusal::Missing => "epochs are missing".to_owned(),
                    Refusal::Forked => "forked".to_owned(),
                });
                reply.retry_after_ms.max(self.link.backoff.failed(random))
            }
        };
        self.link.not_before = now.mono_ms.saturating_add(wait);
        Ok(())
    }

    fn acknowledge(&mut self, durable: u64) -> Result<(), AgentError> {
        if let Some(entry) = self.spool.entries().take_while(|entry| entry.seq < durable).last() {
            self.link.acknowledged = (entry.items, entry.ended_ms);
        }
        Ok(self.spool.free_below(&mut self.storage, durable)?)
    }

    /// Goes on as a new incarnation, from nothing.
    fn begin_again(&mut self, now: Now, nonce: u64, unseen: Unseen) -> Result<(), AgentError> {
        let number = self.incarnation.number.saturating_add(1);
        self.incarnation = Incarnation { number, nonce };
        self.device = Device::new(self.settings.config)?.with_buffer(self.settings.buffer_bytes);
        (self.messages, self.message_bytes) = (Vec::new(), 0);
        (self.next_seq, self.previous, self.committed) = (0, 0, 0);
        (self.items_at_cut, self.items_at_checkpoint) = (0, 0);
        (self.started_ms, self.lasted_before_ms, self.counting_since) = (now.wall_ms, 0, now.mono_ms);
        self.unspooled = None;
        // What was reported as unseen with an epoch that was never taken is lost with it, and is
        // within the interval.
        self.unseen = Some(self.unseen.map_or(unseen, |before| before.and(unseen)));
        self.link.acknowledged = (0, now.wall_ms);
        // A collector that refuses every incarnation is not asked without a pause.
        self.link.not_before = now.mono_ms + self.link.backoff.failed(nonce);
        self.gaps += 1;
        self.dirty = true;
        self.settle(|agent| agent.storage.replace(INCARNATION, &number.to_le_bytes()))?;
        // The old epochs go first: they would stand in the way of the new ones' numbers.
        self.spool.clear(&mut self.storage)?;
        self.settle(|agent| agent.commit(now))
    }

    /// How the agent is doing.
    pub fn status(&self) -> Status {
        Status {
            incarnation: self.incarnation,
            items: self.device.items(),
            open_items: self.device.items() - self.items_at_cut,
            epochs: self.next_seq,
            waiting: self.spool.len() + usize::from(self.unspooled.is_some()),
            spool_bytes: self.spool.bytes(),
            holding: self.device.is_holding(),
            gaps: self.gaps,
            trouble: self.trouble.clone(),
            refused: self.link.refused.clone(),
        }
    }

    /// The data plane's configuration.
    pub fn config(&self) -> &ucl_sketch::Config {
        self.device.config()
    }

    /// Where the input goes on.
    pub fn position(&self) -> &[u8] {
        &self.position
    }

    /// The files, for whoever looks at them.
    pub fn storage(&self) -> &S {
        &self.storage
    }
}
