//! The thread of an embedded agent: items in, epochs out.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use ucl_agent::{Agent, AgentError, Request};
use ucl_link::{Clock, Incarnation, Unseen};
use ucl_storage::Folder;
use ucl_streams::BatchBuf;

use super::queue::{Shared, Work};
use crate::log::{Log, counted};
use crate::worker::{Answered, insert_range, random};

/// The position in the input while the agent runs. There is no input to go back to.
pub const OPEN: &[u8] = b"open";
/// The position once it was closed: nothing came after it.
pub const CLOSED: &[u8] = b"closed";
/// Why items are left out, mostly.
const FULL: &str = "the queue is full";
/// The least time between two lines about items left out.
const QUIET: Duration = Duration::from_secs(60);

pub struct Counting {
    agent: Agent<Folder>,
    clock: Clock,
    shared: Arc<Shared>,
    requests: SyncSender<Request>,
    replies: Receiver<Answered>,
    log: Log,
    /// Number of the flush that is under way or was the last.
    flush: u64,
    /// Epochs that the collector must have for it, of which incarnation; `None` before the end of
    /// the epoch.
    until: Option<(Incarnation, u64)>,
    /// Whether the flush is done.
    flushed: bool,
    /// When leaving out items was last told, and how many were since.
    told: Option<Instant>,
    untold: u64,
    last_look_ms: i64,
}

/// Says how the thread ended, also if it panicked.
struct End(Arc<Shared>, Option<Option<String>>);

impl Drop for End {
    fn drop(&mut self) {
        let panicked = || Some("internal: the thread panicked; what was counted before is on disk".to_owned());
        self.0.end(self.1.take().unwrap_or_else(panicked));
    }
}

impl Counting {
    pub fn new(
        agent: Agent<Folder>,
        clock: Clock,
        shared: Arc<Shared>,
        requests: SyncSender<Request>,
        replies: Receiver<Answered>,
        log: Log,
    ) -> Self {
        let last_look_ms = Clock::wall_ms();
        Self {
            agent,
            clock,
            shared,
            requests,
            replies,
            log,
            flush: 0,
            until: None,
            flushed: true,
            told: None,
            untold: 0,
            last_look_ms,
        }
    }

    /// Runs until the agent is closed, or its disk fails.
    pub fn run(mut self) {
        let mut end = End(Arc::clone(&self.shared), None);
        let ended = self.until_closed();
        if let Err(error) = &ended {
            self.log.warn(&format!("{error}; nothing is counted any more"));
        }
        // The folder is free before anybody learns of the end.
        drop(self);
        end.1 = Some(ended.err().map(|error| error.to_string()));
    }

    fn until_closed(&mut self) -> Result<(), AgentError> {
        loop {
            self.exchange()?;
            let stalled = self.agent.is_stalled();
            let work = self.shared.take(stalled);
            let late = work.closing.is_some_and(|until| Instant::now() >= until);
            self.left_out(work.dropped, FULL);
            self.insert(&work.items)?;
            // One at a time: with new ones coming, the last would never be done.
            if self.flushed && work.covered > self.flush {
                (self.flush, self.until, self.flushed) = (work.covered, None, false);
            }
            self.end_epochs()?;
            let status = self.agent.status();
            self.log.status(&status);
            self.shared.publish(status, if self.flushed { self.flush } else { 0 });
            let all_done = self.flushed && self.flush == work.asked;
            if work.closing.is_some() && (all_done || late) {
                return self.close();
            }
            if !all_done {
                self.shared.pause();
            }
        }
    }

    /// Talks to the collector.
    fn exchange(&mut self) -> Result<(), AgentError> {
        while let Ok((id, reply)) = self.replies.try_recv() {
            self.agent.on_reply(self.clock.now(), id, reply, random())?;
        }
        if let Some(request) = self.agent.request(self.clock.now())? {
            // One is under way at a time, so that there is always room. If the thread is gone, no
            // answer comes, and the folder has everything.
            let _ = self.requests.send(request);
        }
        Ok(())
    }

    /// Ends the epoch if it is due or a flush needs it, and sees whether the flush is done.
    fn end_epochs(&mut self) -> Result<(), AgentError> {
        let now = self.clock.now();
        if self.flushed || self.until.is_some() {
            self.agent.advance(now, OPEN)?;
        } else {
            self.agent.finish(now, OPEN)?;
            let status = self.agent.status();
            // Without room in the spool the epoch goes on.
            self.until = (status.open_items == 0).then_some((status.incarnation, status.epochs));
        }
        let status = self.agent.status();
        match self.until {
            // What was not delivered is given up, and reported with the next epoch.
            Some((incarnation, _)) if incarnation != status.incarnation => self.until = None,
            Some((_, epochs)) if status.epochs - status.waiting as u64 >= epochs => self.flushed = true,
            _ => {}
        }
        Ok(())
    }

    /// Inserts items, and ends epochs where they are full.
    fn insert(&mut self, items: &BatchBuf) -> Result<(), AgentError> {
        let batch = items.as_batch();
        let mut done = 0;
        while done < batch.len() {
            let room = usize::try_from(self.agent.items_until_cut()).unwrap_or(usize::MAX);
            let end = batch.len().min(done.saturating_add(room));
            let (inserted, result) = insert_range(&mut self.agent, &batch, done, end);
            if let Err(error) = result {
                let lost = (batch.len() - done - inserted) as u64;
                self.shared.count_dropped(lost);
                self.left_out(lost, &error.to_string());
                return Ok(());
            }
            done = end;
            self.agent.advance(self.clock.now(), OPEN)?;
        }
        Ok(())
    }

    /// Reports items that are not counted.
    fn left_out(&mut self, items: u64, why: &str) {
        let from_ms = std::mem::replace(&mut self.last_look_ms, Clock::wall_ms());
        if items == 0 {
            return;
        }
        self.agent.report_unseen(Unseen { from_ms, to_ms: self.last_look_ms, items: Some(items) });
        self.untold += items;
        if self.told.is_none_or(|told| told.elapsed() >= QUIET) {
            self.log.warn(&format!("{why}: {} left out", counted(self.untold, "item")));
            (self.told, self.untold) = (Some(Instant::now()), 0);
        }
    }

    /// Writes everything down, and that nothing came after it.
    fn close(&mut self) -> Result<(), AgentError> {
        let Work { items, dropped, .. } = self.shared.take(false);
        self.left_out(dropped, FULL);
        self.insert(&items)?;
        self.agent.finish(self.clock.now(), CLOSED)?;
        self.shared.publish(self.agent.status(), 0);
        Ok(())
    }
}
