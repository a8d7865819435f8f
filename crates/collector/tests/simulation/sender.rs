//! Agents with their disks and sources, and what they counted.

use std::collections::{BTreeMap, HashMap};

use ucl_agent::{Agent, AgentError, AgentSettings, Request};
use ucl_link::{Envelope, Unseen};
use ucl_storage::SimDisk;

use crate::network::Parcel;
use crate::setup::key;
use crate::world::{World, is_crash};

/// The items of an incarnation, and where its epochs end.
#[derive(Clone, Default)]
pub struct History {
    pub inserted: Vec<u32>,
    /// Items at the end of each epoch that was sent.
    pub cuts: BTreeMap<u64, u64>,
}

impl History {
    /// Notes where the last epoch ended. It may have reached the disk in the moment of a crash.
    pub fn note_cut(&mut self, status: &ucl_agent::Status) {
        if status.epochs > self.cuts.len() as u64 {
            self.cuts.insert(status.epochs - 1, status.items - status.open_items);
        }
        assert_eq!(status.epochs, self.cuts.len() as u64);
    }
}

/// One agent with its disk and its source.
pub struct Sender {
    pub disk: SimDisk,
    pub settings: AgentSettings,
    pub agent: Option<Agent<SimDisk>>,
    /// The source: a file that can be read again, or a pipe.
    pub items: Vec<u32>,
    pub is_file: bool,
    pub read: usize,
    /// What the agent has inserted in its present incarnation.
    pub history: History,
    pub incarnation: Option<ucl_link::Incarnation>,
    pub past: HashMap<ucl_link::Incarnation, History>,
    /// Items inserted in earlier incarnations.
    pub earlier: u64,
    pub process: u64,
    pub outstanding: Option<(u64, u64)>,
}

fn is_full(error: &AgentError) -> bool {
    matches!(error, AgentError::Storage(error) if error.kind() == std::io::ErrorKind::StorageFull)
}

impl World<'_> {
    pub fn open_agent(&mut self, at: usize) {
        loop {
            let now = self.now;
            let nonce = self.rng.next();
            let sender = &mut self.senders[at];
            let opened = Agent::open(sender.disk.clone(), sender.settings.clone(), now, nonce);
            match opened {
                Ok((mut agent, resumed)) => {
                    sender.process += 1;
                    sender.outstanding = None;
                    let status = agent.status();
                    // A new incarnation that did not reach the disk is forgotten.
                    if let Some(history) = sender.past.remove(&status.incarnation) {
                        sender.earlier -= history.inserted.len() as u64;
                        sender.history = history;
                        sender.incarnation = Some(status.incarnation);
                    }
                    if sender.incarnation == Some(status.incarnation) {
                        assert!(status.items as usize <= sender.history.inserted.len());
                        sender.history.inserted.truncate(status.items as usize);
                        sender.history.cuts.retain(|&seq, _| seq < status.epochs);
                        sender.history.note_cut(&status);
                    } else {
                        // Nothing of it was sent, or the folder is new.
                        assert_eq!(status.items, 0);
                        sender.history = History::default();
                    }
                    sender.incarnation = Some(status.incarnation);
                    let position = resumed.position.try_into().map_or(0, u64::from_le_bytes) as usize;
                    if sender.is_file {
                        sender.read = position;
                    } else if let Some(written_ms) = resumed.written_ms {
                        // What the pipe brought since is gone.
                        let gone = (sender.read - position) as u64;
                        if gone > 0 {
                            let unseen = Unseen { from_ms: written_ms, to_ms: now.wall_ms, items: None };
                            agent.report_unseen(unseen);
                        }
                    } else {
                        assert_eq!(sender.read, 0);
                    }
                    sender.agent = Some(agent);
                    return;
                }
                Err(error) => {
                    assert!(is_crash(&error) || sender.disk.used() > 0 && is_full(&error), "{error}");
                    sender.disk.set_room(None);
                    sender.disk.reboot();
                }
            }
        }
    }

    pub fn agent_died(&mut self, at: usize, error: &AgentError) {
        assert!(self.senders[at].disk.is_crashed(), "an agent gave up: {error}");
        self.tally.agent_crashes += 1;
        self.senders[at].agent = None;
        self.senders[at].disk.reboot();
        if self.rng.chance(3) {
            self.senders[at].disk.crash_after(self.rng.below(3));
        }
        self.open_agent(at);
    }

    /// The agent reads some items and does what is due.
    pub fn step_agent(&mut self, at: usize) {
        let count = self.rng.below(30);
        let sender = &mut self.senders[at];
        let Some(agent) = &mut sender.agent else { return };
        if !agent.is_stalled() {
            for _ in 0..count {
                let Some(&item) = sender.items.get(sender.read) else { break };
                agent.insert(&key(item), 1).unwrap();
                sender.history.inserted.push(item);
                sender.read += 1;
            }
        }
        let result = agent.advance(self.now, &(sender.read as u64).to_le_bytes());
        self.settle(at, result);
    }

    /// Sees whether the agent still runs, and as whom.
    pub fn settle(&mut self, at: usize, result: Result<(), AgentError>) {
        if let Err(error) = result {
            self.agent_died(at, &error);
            return;
        }
        let sender = &mut self.senders[at];
        let Some(agent) = &sender.agent else { return };
        let status = agent.status();
        if sender.incarnation != Some(status.incarnation) {
            sender.earlier += sender.history.inserted.len() as u64;
            let history = std::mem::take(&mut sender.history);
            sender.past.extend(sender.incarnation.map(|before| (before, history)));
            sender.incarnation = Some(status.incarnation);
        }
        assert_eq!(status.items as usize, sender.history.inserted.len());
        sender.history.note_cut(&status);
    }

    pub fn request(&mut self, at: usize) {
        let sender = &mut self.senders[at];
        let Some(agent) = &mut sender.agent else { return };
        match agent.request(self.now) {
            Ok(None) => {}
            Ok(Some(Request { id, identity, body })) => {
                for received in Envelope::split_all(&body).unwrap() {
                    let envelope = &received.envelope;
                    let mut history = sender.history.clone();
                    history.inserted.truncate(envelope.items as usize);
                    history.cuts.retain(|&seq, _| seq <= envelope.seq);
                    let known = self.truth.entry(received.checksum).or_insert(history);
                    assert_eq!(known.inserted.len() as u64, envelope.items);
                }
                sender.outstanding = Some((sender.process, id));
                self.network.push(Parcel { sender: at, process: sender.process, id, identity, body });
            }
            Err(error) => self.agent_died(at, &error),
        }
    }
}
