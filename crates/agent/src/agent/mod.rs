//! The agent itself.

mod exchange;

use std::io;

use ucl_link::{Envelope, Identity, Incarnation, Now, Times, Unseen};
use ucl_sketch::{Device, Epochs};
use ucl_storage::{Storage, is_full};

use crate::checkpoint::{self, Checkpoint};
use crate::reserve::Reserve;
use crate::settings::{AgentError, AgentSettings};
use crate::spool::Spool;

use self::exchange::Link;
pub use self::exchange::Request;

/// The number of the last incarnation, should the checkpoint be lost.
const INCARNATION: &str = "incarnation";
/// Items of an epoch where the load is not known: the state is of a version that did not watch it.
const UNWATCHED: u64 = 16_000;
/// Milliseconds until a full disk is written to again: each try costs what a write costs.
const FULL_DISK_WAIT_MS: u64 = 1_000;
/// Items after which an epoch that is full, but has no room in the spool, is looked at again.
const HELD: u64 = 1_000;

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
    /// Items at which to see whether the epoch is full.
    look_at: u64,
    started_ms: i64,
    /// How long the open epoch had lasted when this process began to count it, and since when.
    lasted_before_ms: u64,
    counting_since: u64,
    unseen: Option<Unseen>,
    position: Vec<u8>,
    spool: Spool,
    reserve: Reserve,
    /// An envelope that did not fit the disk yet.
    unspooled: Option<Finished>,
    /// Envelopes below this are in the checkpoint, and may be sent.
    committed: u64,
    /// Whether a checkpoint has to be written.
    dirty: bool,
    /// Whether it has to be written at once.
    finishing: bool,
    checkpoint_at: u64,
    checkpoint_bytes: u64,
    items_at_checkpoint: u64,
    link: Link,
    trouble: Option<String>,
    /// When to write again, by the clock that does not jump, after the disk was full.
    write_at: u64,
    gaps: u64,
    /// Up to when the link has been granted, by the clock that does not jump.
    granted_ms: u64,
    /// What is left of that, in thousandths of a byte.
    granted_rest: u16,
}

/// An epoch as it goes into the spool.
struct Finished {
    seq: u64,
    items: u64,
    ended_ms: i64,
    checksum: u64,
    bytes: Vec<u8>,
}

impl Finished {
    /// An envelope from a checkpoint.
    fn from_bytes(bytes: Vec<u8>) -> Result<Self, AgentError> {
        let (seq, items, ended_ms, checksum) = {
            let received = Envelope::split(&bytes)?.0;
            let Envelope { seq, items, times, .. } = received.envelope;
            (seq, items, times.ended_ms, received.checksum)
        };
        Ok(Self { seq, items, ended_ms, checksum, bytes })
    }
}

/// State of an agent's folder when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Position of the input when the state was written; empty if there was none.
    pub position: Vec<u8>,
    /// Time when the state was written, in milliseconds since 1970; `None` for a new stream.
    pub written_ms: Option<i64>,
}

/// Progress and health of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// Items counted in it.
    pub items: u64,
    /// Weight of all items counted in it.
    pub weight: u64,
    /// Weight that a sketch absorbed because the link had no room for it.
    pub absorbed: u64,
    /// Items of the open epoch.
    pub open_items: u64,
    /// Epochs ended in it.
    pub epochs: u64,
    /// Epochs that the collector has not acknowledged.
    pub waiting: usize,
    /// Bytes of the spool.
    pub spool_bytes: u64,
    /// True if epochs are no longer ended because the spool is full.
    pub holding: bool,
    /// Times that counts were given up, since the process began.
    pub gaps: u64,
    /// Error of the disk, if there is one.
    pub trouble: Option<String>,
    /// Reason why the collector refused the last request, if it did.
    pub refused: Option<String>,
}

impl<S: Storage> Agent<S> {
    /// Opens the agent's folder and goes on where it stopped, or starts a new stream. `nonce` is a
    /// random number, for the case that a new incarnation begins.
    ///
    /// # Errors
    /// If the folder cannot be used, or belongs to another stream or configuration.
    pub fn open(mut storage: S, settings: AgentSettings, now: Now, nonce: u64) -> Result<(Self, Resumed), AgentError> {
        let fresh = settings.device()?;
        settings.check(&fresh)?;
        let bytes = storage.read(checkpoint::FILE)?;
        let stored = bytes.as_deref().map_or(Ok(None), Checkpoint::from_bytes)?;
        let number = storage.read(INCARNATION)?.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
        let Some(checkpoint) = stored else {
            let lost = bytes.is_some() || number.is_some() || !settings.keeps_state;
            // Without a state, the clock says which incarnation is the newest.
            let number = if settings.keeps_state {
                number.unwrap_or(0).saturating_add(1)
            } else {
                u32::try_from(now.wall_ms / 1_000).unwrap_or(1)
            };
            storage.replace(INCARNATION, &number.to_le_bytes())?;
            let spool = Spool::open(&mut storage, settings.spool_bytes, None, 0)?;
            let mut agent = Self::assemble(storage, settings, Incarnation { number, nonce }, fresh, spool, now)?;
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
        if let Some(found) = checkpoint.format.filter(|found| *found != settings.format) {
            return Err(AgentError::OtherFormat { found, wanted: settings.format });
        }
        let device = Device::from_bytes(&checkpoint.device)?.with_buffer(settings.buffer_bytes);
        if *device.config() != settings.config {
            return Err(AgentError::OtherConfig);
        }
        let incarnation = checkpoint.incarnation;
        let unspooled = checkpoint.unspooled.map(Finished::from_bytes).transpose()?;
        let spooled = checkpoint.next_seq - u64::from(unspooled.is_some());
        let spool = Spool::open(&mut storage, settings.spool_bytes, Some(incarnation), spooled)?;
        let mut agent = Self::assemble(storage, settings, incarnation, device, spool, now)?;
        agent.message_bytes = checkpoint.messages.iter().map(Vec::len).sum();
        agent.messages = checkpoint.messages;
        agent.unspooled = unspooled;
        agent.checkpoint_bytes = bytes.map_or(0, |bytes| bytes.len() as u64);
        agent.next_seq = checkpoint.next_seq;
        agent.committed = checkpoint.next_seq;
        agent.previous = checkpoint.previous;
        agent.items_at_cut = checkpoint.items_at_cut;
        agent.started_ms = checkpoint.started_ms;
        agent.lasted_before_ms = checkpoint.lasted_ms;
        agent.look();
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
    ) -> Result<Self, AgentError> {
        let reserve = Reserve::open(&storage)?;
        let mut agent = Self {
            storage,
            settings,
            incarnation,
            device,
            messages: Vec::new(),
            message_bytes: 0,
            next_seq: 0,
            previous: 0,
            items_at_cut: 0,
            look_at: 0,
            started_ms: now.wall_ms,
            lasted_before_ms: 0,
            counting_since: now.mono_ms,
            unseen: None,
            position: Vec::new(),
            spool,
            reserve,
            unspooled: None,
            committed: 0,
            dirty: false,
            finishing: false,
            checkpoint_at: now.mono_ms,
            checkpoint_bytes: 0,
            items_at_checkpoint: 0,
            link: Link::new(now),
            trouble: None,
            write_at: 0,
            gaps: 0,
            granted_ms: now.mono_ms,
            granted_rest: 0,
        };
        agent.settings.limit(&mut agent.device)?;
        agent.look();
        Ok(agent)
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

    /// Returns the number of items until the epoch is full: call [`Agent::advance`] after so many,
    /// or more often.
    pub fn items_until_cut(&self) -> u64 {
        self.look_at.saturating_sub(self.device.items()).max(1)
    }

    /// Items that the open epoch takes before it needs to be looked at again; 0 if it is full.
    fn room(&self) -> u64 {
        let up_to = |most: u64| most.saturating_sub(self.device.items() - self.items_at_cut);
        match self.settings.epochs {
            Epochs::ByLoad => self.device.room().unwrap_or_else(|| up_to(UNWATCHED)),
            Epochs::Every(items) => match up_to(items) {
                0 if !self.device.affords_cut() => HELD,
                room => room,
            },
            Epochs::Open => u64::MAX,
        }
    }

    /// Looks at the open epoch. Returns the room that it has left.
    fn look(&mut self) -> u64 {
        let room = self.room();
        self.look_at = self.device.items().saturating_add(room);
        room
    }

    /// Whether the open epoch is full. It is looked at after the same items whether they came one
    /// by one or in batches.
    fn is_full(&mut self) -> bool {
        self.device.items() >= self.look_at && self.look() == 0
    }

    /// Returns true if the input has to wait: the spool is full, and the names of new keys in the
    /// open epoch take more than [`MOST_OPEN`](crate::MOST_OPEN) bytes. Acknowledgements end it.
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
        self.grant(now);
        let late = self.has_news() && self.lasted_ms(now) >= self.settings.cut_ms;
        let affords_cut = self.device.affords_cut();
        if late && !affords_cut {
            // Carries would take what is saved for the cut, time and again.
            self.device.hold(true);
        }
        let due = self.is_full() || (late && affords_cut) || self.message_bytes >= self.settings.most_open();
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

    /// Grants the data plane what the link could take since the last time. What was not used adds
    /// up, until a minute or the largest cut is there.
    fn grant(&mut self, now: Now) {
        let Some(rate) = self.settings.uplink_per_second else { return };
        let elapsed = now.mono_ms.saturating_sub(self.granted_ms);
        self.granted_ms = now.mono_ms;
        let earned = u128::from(rate) * u128::from(elapsed) + u128::from(self.granted_rest);
        let bytes = earned / 1_000;
        self.granted_rest = (earned % 1_000) as u16;
        let most = rate.saturating_mul(60).max(self.device.largest_cut() as u64);
        let items = self.device.items();
        let left = self.device.allowance().map_or(0, |allowance| allowance.left(items));
        let room = i128::from(most) - i128::from(left);
        self.device.grant(bytes.min(room.max(0) as u128) as u64);
    }

    /// Whether the collector would learn anything from the open epoch.
    fn has_news(&self) -> bool {
        self.device.items() > self.items_at_cut || self.unseen.is_some()
    }

    fn advance_if(&mut self, due: bool, now: Now) -> Result<(), AgentError> {
        let may_write = self.finishing || now.mono_ms >= self.write_at;
        if may_write {
            self.trouble = None;
            self.settle(now, Self::spool_finished)?;
        }
        if due {
            let bound = self.message_bytes + self.device.cut_bound() + 1_024;
            if self.unspooled.is_none() && self.spool.has_room(bound as u64) {
                self.cut(now)?;
                if may_write {
                    self.settle(now, Self::spool_finished)?;
                }
            } else {
                self.device.hold(true);
                self.look_at = self.device.items() + HELD;
            }
        }
        if !may_write {
            return Ok(());
        }
        let changed = self.device.items() != self.items_at_checkpoint;
        let since = now.mono_ms.saturating_sub(self.checkpoint_at);
        let wanted = self.dirty && (self.finishing || since >= self.settings.commit_ms);
        if wanted || (changed && since >= self.settings.checkpoint_ms) {
            self.settle(now, |agent| agent.commit(now))?;
        }
        Ok(())
    }

    /// A full disk is not the end.
    fn settle(&mut self, now: Now, write: impl FnOnce(&mut Self) -> io::Result<()>) -> Result<(), AgentError> {
        match write(self) {
            Err(error) if is_full(&error) => {
                self.trouble = Some(error.to_string());
                self.write_at = now.mono_ms + FULL_DISK_WAIT_MS;
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
        let seq = self.next_seq;
        let items = self.device.items();
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
        self.look();
        self.started_ms = now.wall_ms;
        self.lasted_before_ms = 0;
        self.counting_since = now.mono_ms;
        let checksum = self.previous;
        self.unspooled = Some(Finished { seq, items, ended_ms: now.wall_ms, checksum, bytes });
        Ok(())
    }

    fn spool_finished(&mut self) -> io::Result<()> {
        let Some(finished) = &self.unspooled else { return Ok(()) };
        if self.settings.keeps_state {
            // Without another checkpoint it could never be sent: that goes first.
            let length = finished.bytes.len() as u64;
            self.reserve.keep(&mut self.storage, self.checkpoint_bytes + 2 * length)?;
            if self.reserve.bytes() < self.checkpoint_bytes {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let about = (finished.seq, finished.items, finished.ended_ms, finished.checksum);
        self.spool.push(&mut self.storage, about, &finished.bytes)?;
        self.unspooled = None;
        self.dirty = true;
        Ok(())
    }

    /// Writes the checkpoint: what is in the spool by now may be sent from then on. An epoch that
    /// did not fit the spool is a part of the checkpoint.
    fn commit(&mut self, now: Now) -> io::Result<()> {
        if !self.settings.keeps_state {
            self.committed = self.next_seq;
            self.dirty = false;
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
            format: Some(self.settings.format.clone()),
            unspooled: self.unspooled.as_ref().map(|finished| finished.bytes.clone()),
        };
        let bytes = checkpoint.to_bytes();
        self.spool.sync(&mut self.storage)?;
        match self.storage.replace(checkpoint::FILE, &bytes) {
            Err(error) if is_full(&error) && self.reserve.free(&mut self.storage)? => {
                self.storage.replace(checkpoint::FILE, &bytes)?;
            }
            written => written?,
        }
        self.checkpoint_bytes = bytes.len() as u64;
        self.reserve.keep(&mut self.storage, self.checkpoint_bytes)?;
        self.committed = self.next_seq;
        self.dirty = false;
        self.checkpoint_at = now.mono_ms;
        self.items_at_checkpoint = self.device.items();
        Ok(())
    }

    /// Returns progress and health of the agent.
    pub fn status(&self) -> Status {
        Status {
            incarnation: self.incarnation,
            items: self.device.items(),
            weight: self.device.weight(),
            absorbed: self.device.absorbed(),
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

    /// Returns the configuration of the data plane.
    pub fn config(&self) -> &ucl_sketch::Config {
        self.device.config()
    }

    /// Returns the position where the input continues.
    pub fn position(&self) -> &[u8] {
        &self.position
    }

    /// Returns the storage that holds the agent's files.
    pub fn storage(&self) -> &S {
        &self.storage
    }
}
