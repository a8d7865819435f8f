//! Requests to the collector, and what follows from its replies.

use ucl_link::{Backoff, Identity, Incarnation, Now, Refusal, Reply, Unseen};
use ucl_storage::Storage;

use super::{Agent, INCARNATION};
use crate::settings::{AgentError, REQUEST_OVERHEAD};

/// Times that the largest request is halved, at most: an epoch is sent whole, however small that
/// is.
const MOST_HALVINGS: u32 = 20;

/// What is known of the collector.
#[derive(Debug, Default)]
pub(super) struct Link {
    requests: u64,
    outstanding: Option<u64>,
    not_before: u64,
    window: Option<u64>,
    /// Epochs with smaller numbers were sent at least once.
    sent: u64,
    backoff: Backoff,
    /// Times that the largest request is halved: one more when no answer came, one less when one
    /// did. A link that is too slow for a large request may be fast enough for a smaller one.
    halvings: u32,
    /// Items, and when, at the last acknowledgement.
    acknowledged: (u64, i64),
    pub refused: Option<String>,
}

impl Link {
    pub fn new(now: Now) -> Self {
        Self { acknowledged: (0, now.wall_ms), ..Self::default() }
    }
}

/// Request to the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number of the request, for [`Agent::on_reply`].
    pub id: u64,
    /// Sender of the request.
    pub identity: Identity,
    /// Body of the request: envelopes laid end to end.
    pub body: Vec<u8>,
}

impl<S: Storage> Agent<S> {
    /// Returns the next request, unless one is under way, the collector asked for a pause, or there
    /// is nothing to send.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn request(&mut self, now: Now) -> Result<Option<Request>, AgentError> {
        if self.link.outstanding.is_some() || now.mono_ms < self.link.not_before {
            return Ok(None);
        }
        let most = self.link.window.unwrap_or(u64::MAX).min(self.settings.request_bytes >> self.link.halvings);
        let mut body = Vec::new();
        let (mut sent, mut again) = (self.link.sent, 0);
        for entry in self.spool.entries().take_while(|entry| entry.seq < self.committed) {
            if !body.is_empty() && body.len() as u64 + entry.length > most {
                break;
            }
            body.extend(self.spool.read(&self.storage, entry)?);
            again += if entry.seq < self.link.sent { entry.length } else { 0 };
            sent = sent.max(entry.seq + 1);
        }
        if body.is_empty() {
            return Ok(None);
        }
        self.link.requests += 1;
        self.link.sent = sent;
        // An epoch is paid where it is counted: once.
        self.device.spend(REQUEST_OVERHEAD + again);
        self.link.outstanding = Some(self.link.requests);
        Ok(Some(Request { id: self.link.requests, identity: self.identity(), body }))
    }

    /// Returns the earliest time of the next request, by the clock that does not jump.
    pub fn retry_at(&self) -> u64 {
        self.link.not_before
    }

    /// Accepts the reply to a request, or the reason why there was none. `random` decides how long
    /// to wait after a failure, and marks a new incarnation where one begins.
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
                self.link.halvings = (self.link.halvings + 1).min(MOST_HALVINGS);
                self.link.not_before = now.mono_ms + self.link.backoff.failed(random);
                return Ok(());
            }
        };
        self.link.halvings = self.link.halvings.saturating_sub(1);
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
        let spent = self.device.allowance().copied();
        self.device = self.settings.device()?;
        // What was sent remains spent.
        if let Some(allowance) = spent {
            self.device.set_allowance(allowance);
        }
        self.link.sent = 0;
        (self.messages, self.message_bytes) = (Vec::new(), 0);
        (self.next_seq, self.previous, self.committed) = (0, 0, 0);
        (self.items_at_cut, self.items_at_checkpoint) = (0, 0);
        self.look();
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
        self.settle(now, |agent| agent.storage.replace(INCARNATION, &number.to_le_bytes()))?;
        // The old epochs go first: they would stand in the way of the new ones' numbers.
        self.spool.clear(&mut self.storage)?;
        self.settle(now, |agent| agent.commit(now))
    }
}
