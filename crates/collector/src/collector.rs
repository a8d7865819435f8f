//! The collector itself.

use std::collections::{BTreeMap, BTreeSet};

use ucl_link::{Envelope, Identity, Judgement, Name, Now, Received, Refusal, Reply};
use ucl_storage::{Storage, is_full};

use crate::checkpoint::{Checkpoint, file_name, parse_name};
use crate::deleted::Deleted;
use crate::forget::remove_states;
use crate::life::{Life, is_for_good};
use crate::log::Log;
use crate::settings::{CollectorError, CollectorSettings, Rejected};

/// How long a sender waits that has reached a limit.
const LIMIT_WAIT_MS: u64 = 60_000;
/// Why nothing is taken of an incarnation that was deleted.
const DELETED: &str = "the stream was deleted";
/// How long a sender waits for a disk.
const DISK_WAIT_MS: u64 = 5_000;

/// Receives epochs, keeps them, and answers.
pub struct Collector<S> {
    pub(crate) storage: S,
    pub(crate) settings: CollectorSettings,
    pub(crate) lives: BTreeMap<Identity, Life>,
    log: Log,
    /// Senders of which something was applied that is not in the log yet.
    uncommitted: BTreeSet<Identity>,
    pub(crate) failed: bool,
    trouble: Option<String>,
    pub(crate) deleted: Deleted,
    /// When it was first asked to delete what is idle.
    pub(crate) first_asked_ms: Option<i64>,
}

/// Result of [`Collector::maintain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// States written.
    pub states: usize,
    /// Files of the log removed.
    pub log_files: usize,
}

impl<S: Storage> Collector<S> {
    /// Opens the collector's folder: the states, and the log after them.
    ///
    /// # Errors
    /// If the folder cannot be read or mended.
    pub fn open(mut storage: S, settings: CollectorSettings) -> Result<Self, CollectorError> {
        let mut lives = BTreeMap::new();
        let names = storage.list()?;
        let identities: BTreeSet<Identity> =
            names.iter().filter_map(|name| parse_name(name)).map(|(identity, _)| identity).collect();
        let deleted = Deleted::open(&storage)?;
        for identity in deleted.iter() {
            remove_states(&mut storage, identity)?;
        }
        for identity in identities.into_iter().filter(|identity| !deleted.has(identity)) {
            lives.extend(restore(&storage, &settings, &identity)?.map(|life| (identity, life)));
        }
        let log = Log::open(&mut storage, settings.log_file_bytes, |received| {
            let identity = &received.envelope.identity;
            if deleted.has(identity) {
                return;
            }
            let life = lives.entry(identity.clone()).or_insert_with(|| Life::new(identity.clone(), &settings.decoding));
            life.replay(received, settings.kept_epochs);
        })?;
        // Whose states are lost, and the beginning of whose log is gone, cannot go on.
        lives.retain(|_, life| life.sequence.next() > 0);
        // What was taken stays, whatever the limits are now; they are for what comes.
        let limited = |(identity, life): (Identity, Life)| {
            let limits = settings.limits(&identity.tenant);
            (identity, life.with_counter_limit(limits.counters))
        };
        let lives = lives.into_iter().map(limited).collect();
        Ok(Self {
            storage,
            settings,
            lives,
            log,
            uncommitted: BTreeSet::new(),
            failed: false,
            trouble: None,
            deleted,
            first_asked_ms: None,
        })
    }

    /// Accepts the bodies of requests, each with its sender. Returns a reply for each one, once
    /// everything that it acknowledges is on the disk.
    ///
    /// # Errors
    /// If the disk fails: then nothing of the call is acknowledged, and the collector has to be
    /// opened again. A full disk is no error but a [`Refusal::Unavailable`].
    pub fn submit(
        &mut self,
        requests: &[(&Identity, &[u8])],
        now: Now,
    ) -> Result<Vec<Result<Reply, Rejected>>, CollectorError> {
        self.check()?;
        let mut outcomes: Vec<Result<Option<Refusal>, Rejected>> = Vec::with_capacity(requests.len());
        for &(identity, body) in requests {
            let outcome = match read(identity, body) {
                Ok(envelopes) => Ok(self.take_all(&envelopes, now)?),
                Err(rejected) => Err(rejected),
            };
            outcomes.push(outcome);
        }
        let unavailable = self.commit()?;
        let replies = requests.iter().zip(outcomes).map(|(&(identity, _), outcome)| {
            let refusal = outcome?;
            let refusal = unavailable.clone().map(|why| Refusal::Unavailable { why }).or(refusal);
            let retry_after_ms = match &refusal {
                Some(Refusal::Limit { .. }) => LIMIT_WAIT_MS,
                Some(Refusal::Unavailable { .. }) => DISK_WAIT_MS,
                _ => 0,
            };
            Ok(self.reply(identity, retry_after_ms, refusal))
        });
        Ok(replies.collect())
    }

    /// Returns what is durable of a sender, as the reply to a request in which all was taken.
    pub fn standing(&self, identity: &Identity) -> Reply {
        let ended = self.lives.get(identity).and_then(|life| life.ended.clone());
        let deleted = || self.deleted.has(identity).then(|| DELETED.to_owned());
        self.reply(identity, 0, ended.or_else(deleted).map(|why| Refusal::Ended { why }))
    }

    fn reply(&self, identity: &Identity, retry_after_ms: u64, refusal: Option<Refusal>) -> Reply {
        let sequence = self.lives.get(identity).map(|life| &life.sequence);
        let (durable_seq, checksum) = sequence.map_or((0, 0), |sequence| (sequence.next(), sequence.last()));
        Reply { durable_seq, checksum, window: self.settings.window, retry_after_ms, refusal }
    }

    pub(crate) fn check(&self) -> Result<(), CollectorError> {
        if self.failed { Err(CollectorError::Failed) } else { Ok(()) }
    }

    fn take_all(&mut self, envelopes: &[Received<'_>], now: Now) -> Result<Option<Refusal>, CollectorError> {
        for received in envelopes {
            if let Some(refusal) = self.take(received, now)? {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    /// Takes one envelope: it is applied here, and in the log once that is committed.
    fn take(&mut self, received: &Received<'_>, now: Now) -> Result<Option<Refusal>, CollectorError> {
        let identity = &received.envelope.identity;
        if self.deleted.has(identity) {
            return Ok(Some(Refusal::Ended { why: DELETED.into() }));
        }
        let limits = self.settings.limits(&identity.tenant);
        let new = match self.lives.get(identity) {
            Some(Life { ended: Some(why), .. }) => return Ok(Some(Refusal::Ended { why: why.clone() })),
            Some(life) => match life.sequence.judge(received) {
                Judgement::Next => None,
                Judgement::Repeated => return Ok(None),
                Judgement::Missing => return Ok(Some(Refusal::Missing)),
                Judgement::Forked => return Ok(Some(Refusal::Forked)),
            },
            None if received.envelope.seq > 0 => return Ok(Some(Refusal::Missing)),
            None if received.envelope.previous != 0 => return Ok(Some(Refusal::Forked)),
            None => {
                if let Some(why) = self.no_room_for(identity) {
                    return Ok(Some(Refusal::Limit { why }));
                }
                let life = Life::new(identity.clone(), &self.settings.decoding);
                Some(life.with_counter_limit(limits.counters))
            }
        };
        let used = self.usage(&identity.tenant);
        let first = new.is_some();
        let station = match (&new, self.lives.get(identity)) {
            (Some(life), _) | (None, Some(life)) => &life.station,
            (None, None) => return Ok(Some(Refusal::Missing)),
        };
        let prepared = match station.prepare(received.envelope.messages.iter().copied()) {
            Ok(prepared) => prepared,
            Err(refused) if is_for_good(&refused, first) => return self.end(received, refused.to_string()),
            Err(refused) => return Ok(Some(Refusal::Limit { why: refused.to_string() })),
        };
        if prepared.epochs() != 1 || !prepared.ends_epoch() {
            return self.end(received, "an envelope must hold one epoch, and nothing after it".into());
        }
        if used.keys + prepared.most_new_keys() > limits.keys {
            let why = format!("the tenant may have {} keys, and has {}", limits.keys, used.keys);
            return Ok(Some(Refusal::Limit { why }));
        }
        if used.memory > limits.memory {
            let why = format!("the tenant may use {} bytes of memory, and uses {}", limits.memory, used.memory);
            return Ok(Some(Refusal::Limit { why }));
        }
        let life = match new {
            Some(life) => self.lives.entry(identity.clone()).or_insert(life),
            None => self.lives.get_mut(identity).ok_or(CollectorError::Failed)?,
        };
        if let Err(refused) = life.station.apply(prepared) {
            return self.end(received, refused.to_string());
        }
        life.took(received, Some(now.wall_ms), self.settings.kept_epochs);
        self.log.add(received);
        self.uncommitted.insert(identity.clone());
        Ok(None)
    }

    /// Takes nothing more of an incarnation whose messages cannot be. What came before stays.
    fn end(&mut self, received: &Received<'_>, why: String) -> Result<Option<Refusal>, CollectorError> {
        let identity = &received.envelope.identity;
        // A station that has failed gives no more answers; what is on the disk gives it again.
        if let Some(why) = self.commit()? {
            return Ok(Some(Refusal::Unavailable { why }));
        }
        self.reload(identity)?;
        if let Some(life) = self.lives.get_mut(identity) {
            life.ended = Some(why.clone());
        }
        Ok(Some(Refusal::Ended { why }))
    }

    /// Writes the log. If the disk is full, what was applied is taken back, and the reason is
    /// returned.
    fn commit(&mut self) -> Result<Option<String>, CollectorError> {
        let touched = std::mem::take(&mut self.uncommitted);
        match self.log.commit(&mut self.storage) {
            Ok(()) => {
                self.trouble = None;
                Ok(None)
            }
            Err(error) if is_full(&error) => {
                self.trouble = Some(error.to_string());
                for identity in &touched {
                    self.reload(identity)?;
                }
                Ok(Some(error.to_string()))
            }
            Err(error) => {
                self.failed = true;
                Err(error.into())
            }
        }
    }

    /// Brings one sender back to what is on the disk.
    fn reload(&mut self, identity: &Identity) -> Result<(), CollectorError> {
        self.failed = true;
        let ended = self.lives.remove(identity).and_then(|life| life.ended);
        let restored = restore(&self.storage, &self.settings, identity)?;
        let mut life = restored.unwrap_or_else(|| Life::new(identity.clone(), &self.settings.decoding));
        let kept_epochs = self.settings.kept_epochs;
        Log::replay(&self.storage, identity, |received| life.replay(received, kept_epochs))?;
        life.ended = ended;
        if life.sequence.next() > 0 {
            let limits = self.settings.limits(&identity.tenant);
            self.lives.insert(identity.clone(), life.with_counter_limit(limits.counters));
        }
        self.failed = false;
        Ok(())
    }

    /// Writes the states of up to `most` senders that have had many epochs since, or that keep a
    /// log that is too long, and removes the log before them.
    ///
    /// # Errors
    /// If the disk fails. A full disk is no error.
    pub fn maintain(&mut self, most: usize) -> Result<Maintained, CollectorError> {
        self.check()?;
        let every = self.settings.checkpoint_epochs;
        let newest = |life: &Life| life.covered[0].max(life.covered[1]);
        let due = |life: &&Life| life.sequence.next() - newest(life) >= every;
        let mut due: Vec<Identity> = self.lives.values().filter(due).map(|life| life.identity.clone()).collect();
        if self.log.bytes() > self.settings.log_bytes {
            due.extend(self.log.holders(|identity| covered(&self.lives, identity)));
        }
        self.write_states(due.into_iter().take(most))
    }

    /// Writes the state of every sender: before the process ends.
    ///
    /// # Errors
    /// If the disk fails. A full disk is no error.
    pub fn flush(&mut self) -> Result<Maintained, CollectorError> {
        self.check()?;
        let due = self.lives.values().filter(|life| !life.is_covered());
        let due: Vec<Identity> = due.map(|life| life.identity.clone()).collect();
        self.write_states(due.into_iter())
    }

    fn write_states(&mut self, due: impl Iterator<Item = Identity>) -> Result<Maintained, CollectorError> {
        let mut done = Maintained::default();
        for identity in due {
            let Some(life) = self.lives.get_mut(&identity) else { continue };
            let Ok(state) = life.checkpoint() else { continue };
            let slot = usize::from(life.covered[1] < life.covered[0]);
            match self.storage.replace(&file_name(&identity, slot), &state.to_bytes()) {
                Ok(()) => {
                    life.covered[slot] = life.sequence.next();
                    done.states += 1;
                }
                Err(error) if is_full(&error) => self.trouble = Some(error.to_string()),
                Err(error) => {
                    self.failed = true;
                    return Err(error.into());
                }
            }
        }
        let Self { log, storage, lives, deleted, .. } = self;
        let trimmed = log.trim(storage, |identity| covered(lives, identity));
        let trimmed = trimmed.and_then(|files| {
            // A list that is too long does no harm.
            let shorter = deleted.retain(storage, |identity| log.has(identity));
            shorter.or_else(|error| if is_full(&error) { Ok(()) } else { Err(error) }).map(|()| files)
        });
        done.log_files = trimmed.inspect_err(|_| self.failed = true)?;
        Ok(done)
    }

    fn no_room_for(&self, identity: &Identity) -> Option<String> {
        let limits = self.settings.limits(&identity.tenant);
        let tenant = || self.lives.keys().filter(|other| other.tenant == identity.tenant);
        let incarnations = tenant().count();
        if incarnations >= limits.incarnations {
            return Some(format!("the tenant may have {} incarnations of streams", limits.incarnations));
        }
        let streams: BTreeSet<&Name> = tenant().map(|other| &other.stream).collect();
        let full = streams.len() >= limits.streams && !streams.contains(&identity.stream);
        full.then(|| format!("the tenant may have {} streams", limits.streams))
    }

    fn usage(&self, tenant: &Name) -> Usage {
        let mut usage = Usage::default();
        for life in self.lives.values().filter(|life| life.identity.tenant == *tenant) {
            usage.keys += life.station.keys();
            usage.memory += life.memory;
        }
        usage
    }

    /// Returns the error of the disk, if there is one.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Returns true if the collector has failed and has to be opened again.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Bytes of the log.
    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// The files, for whoever looks at them.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Closes the collector and returns its files.
    pub fn into_storage(self) -> S {
        self.storage
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    keys: usize,
    memory: usize,
}

/// Envelopes of a sender that are in both of its states.
fn covered(lives: &BTreeMap<Identity, Life>, identity: &Identity) -> u64 {
    // Nobody needs the log of one that could not be restored.
    lives.get(identity).map_or(u64::MAX, |life| life.covered[0].min(life.covered[1]))
}

/// The newer state of a sender that can be read.
fn restore(
    storage: &impl Storage,
    settings: &CollectorSettings,
    identity: &Identity,
) -> Result<Option<Life>, CollectorError> {
    let mut covered = [0; 2];
    let mut best: Option<Life> = None;
    for (slot, covered) in covered.iter_mut().enumerate() {
        let name = file_name(identity, slot);
        let Some(bytes) = storage.read(&name)? else { continue };
        let newer = |_| CollectorError::NewerState { file: name.clone() };
        let state = Checkpoint::from_bytes(&bytes).map_err(newer)?;
        let Some(state) = state.filter(|state| state.identity == *identity) else { continue };
        let Some(life) = Life::restore(state, &settings.decoding).map_err(newer)? else { continue };
        *covered = life.sequence.next();
        if best.as_ref().is_none_or(|best| best.sequence.next() < life.sequence.next()) {
            best = Some(life);
        }
    }
    if let Some(life) = &mut best {
        life.covered = covered;
    }
    Ok(best)
}

fn read<'a>(identity: &Identity, body: &'a [u8]) -> Result<Vec<Received<'a>>, Rejected> {
    let envelopes = Envelope::split_all(body)?;
    if envelopes.is_empty() {
        return Err(Rejected::Empty);
    }
    match envelopes.iter().find(|received| received.envelope.identity != *identity) {
        Some(other) => {
            Err(Rejected::Identity { found: other.envelope.identity.to_string(), wanted: identity.to_string() })
        }
        None => Ok(envelopes),
    }
}
