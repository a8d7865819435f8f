//! The thread that owns an agent: items in, epochs out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use ucl_agent::{Agent, AgentError, Request, Status};
use ucl_link::{Clock, Name, Reply};
use ucl_sketch::InsertError;
use ucl_storage::Storage;
use ucl_streams::{Batch, BatchBuf};

use crate::feed::Fed;
use crate::log::Log;
use crate::place::Place;
use crate::position::Position;

/// How long the thread waits for items before it looks at everything else.
const WAIT: Duration = Duration::from_millis(50);
/// How long a stopped agent tries to deliver what it has.
const DRAIN_MS: u64 = 5_000;

/// Reply of the collector to a request, with the request's number.
pub type Answered = (u64, Result<Reply, String>);

/// Result of a stream that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The stream.
    pub stream: Name,
    /// Last progress and health of the agent.
    pub status: Status,
    /// Error that ended the input too early, if there was one.
    pub failed: Option<String>,
}

pub struct Worker {
    pub stream: Name,
    pub agent: Agent<Place>,
    pub position: Position,
    pub input: Receiver<Fed>,
    pub requests: SyncSender<Request>,
    pub replies: Receiver<Answered>,
    pub clock: Clock,
    pub stop: Arc<AtomicBool>,
    pub log: Log,
}

impl Worker {
    /// Runs until the input ends and everything is delivered, or until it is told to stop.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn run(mut self) -> Result<Outcome, AgentError> {
        let mut failed = None;
        let mut open = true;
        let mut finished = false;
        let mut stopped_at = None;
        loop {
            self.answers()?;
            self.send()?;
            self.log.status(&self.agent.status());
            let stopping = self.stop.load(Relaxed);
            if open && !self.agent.is_stalled() {
                match self.input.recv_timeout(WAIT) {
                    Ok(fed) => {
                        if let Some(why) = self.take(fed)? {
                            self.log.warn(&why);
                            failed = Some(why);
                            open = false;
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => open = false,
                }
            } else if !open && self.is_delivered() {
                break;
            } else {
                // Only the collector can change anything.
                match self.replies.recv_timeout(WAIT) {
                    Ok(answered) => self.answered(answered)?,
                    Err(_) => std::thread::sleep(Duration::from_millis(5)),
                }
            }
            let now = self.clock.now();
            let position = self.position.to_bytes();
            let status = self.agent.status();
            if !open && (!finished || (status.open_items > 0 && status.waiting == 0)) {
                self.agent.finish(now, &position)?;
                finished = true;
            } else {
                self.agent.advance(now, &position)?;
            }
            if stopping {
                let since = *stopped_at.get_or_insert(now.mono_ms);
                if now.mono_ms.saturating_sub(since) >= DRAIN_MS {
                    self.agent.finish(now, &position)?;
                    break;
                }
            }
        }
        Ok(Outcome { stream: self.stream, status: self.agent.status(), failed })
    }

    /// Whether the collector has everything.
    fn is_delivered(&self) -> bool {
        let status = self.agent.status();
        status.waiting == 0 && status.open_items == 0
    }

    fn send(&mut self) -> Result<(), AgentError> {
        if let Some(request) = self.agent.request(self.clock.now())? {
            // One is under way at a time, so that there is always room. If the thread is gone, no
            // answer comes, and the state on the disk has everything.
            let _ = self.requests.send(request);
        }
        Ok(())
    }

    fn answers(&mut self) -> Result<(), AgentError> {
        while let Ok(answered) = self.replies.try_recv() {
            self.answered(answered)?;
        }
        Ok(())
    }

    fn answered(&mut self, (id, reply): Answered) -> Result<(), AgentError> {
        self.agent.on_reply(self.clock.now(), id, reply, random())
    }

    /// Takes what came from the input. Returns why no more of it can be counted, if so.
    fn take(&mut self, fed: Fed) -> Result<Option<String>, AgentError> {
        match fed {
            Fed::Items { items, before, mark } => {
                self.position = before;
                if let Err(error) = self.insert(&items)? {
                    return Ok(Some(error.to_string()));
                }
                if let Some(mark) = mark {
                    self.position = Position { mark, items: 0, ..self.position.clone() };
                }
            }
            Fed::At(position) => self.position = position,
            Fed::Unseen(unseen) => self.agent.report_unseen(unseen),
            Fed::Note(note) => self.log.note(&note),
            Fed::Failed(why) => return Ok(Some(why)),
        }
        Ok(None)
    }

    /// Inserts items, and ends epochs where they are full.
    fn insert(&mut self, items: &BatchBuf) -> Result<Result<(), InsertError>, AgentError> {
        let batch = items.as_batch();
        let mut done = 0;
        while done < batch.len() {
            let room = usize::try_from(self.agent.items_until_cut()).unwrap_or(usize::MAX);
            let end = batch.len().min(done.saturating_add(room));
            let (inserted, result) = insert_range(&mut self.agent, &batch, done, end);
            self.position.items += inserted as u64;
            if let Err(error) = result {
                return Ok(Err(error));
            }
            done = end;
            if done < batch.len() {
                self.agent.advance(self.clock.now(), &self.position.to_bytes())?;
            }
        }
        Ok(Ok(()))
    }
}

/// Inserts items of a batch. Returns how many, also when one cannot be inserted: those before it
/// count, and must not be read again.
pub fn insert_range<S: Storage>(
    agent: &mut Agent<S>,
    batch: &Batch<'_>,
    from: usize,
    to: usize,
) -> (usize, Result<(), InsertError>) {
    if let Some((width, keys)) = batch.fixed() {
        let weights = batch.weights().map(|weights| &weights[from..to]);
        let result = agent.insert_batch(width, &keys[from * width..to * width], weights);
        return (if result.is_ok() { to - from } else { 0 }, result);
    }
    for (inserted, (key, weight)) in batch.items().skip(from).take(to - from).enumerate() {
        if let Err(error) = agent.insert(key, weight) {
            return (inserted, Err(error));
        }
    }
    (to - from, Ok(()))
}

/// A random number, for nonces and for waiting times that differ between agents.
pub fn random() -> u64 {
    // A system without randomness has a clock.
    getrandom::u64().unwrap_or_else(|_| Clock::wall_ms() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ucl_agent::AgentSettings;
    use ucl_link::Now;
    use ucl_sketch::{DecoderKind, Mode, UclSketch};
    use ucl_storage::SimDisk;

    /// What was inserted before an item that cannot be is not inserted again after a restart.
    #[test]
    fn items_before_one_that_cannot_be_are_told() {
        let builder = UclSketch::builder().memory("16KB").seed(1).mode(Mode::Sketch(DecoderKind::Delta));
        let settings = AgentSettings::new("t".parse().unwrap(), "s".parse().unwrap(), builder.plan().unwrap().0);
        let (mut agent, _) = Agent::open(SimDisk::new(1), settings, Now::default(), 1).unwrap();
        let mut items = BatchBuf::new();
        for (key, weight) in [("a", 1), ("bb", u64::MAX >> 1), ("c", 1)] {
            items.push(key.as_bytes(), weight);
        }
        let batch = items.as_batch();
        let (inserted, result) = insert_range(&mut agent, &batch, 0, 3);
        assert!(result.is_err());
        assert_eq!((inserted as u64, agent.status().items), (1, 1));
    }
}
