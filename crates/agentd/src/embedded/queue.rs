//! What the threads of an embedded agent share: items that wait, and how it is doing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ucl_agent::Status;
use ucl_streams::{Batch, BatchBuf};

use super::{EmbeddedError, EmbeddedStatus};

/// Bytes of an item beside its key: where it ends, and its weight.
const ITEM_BYTES: usize = 16;
/// Bytes that wait before the thread is woken up for them.
const MANY: usize = 1 << 20;
/// How long the thread waits for something to do before it looks at everything.
const WAIT: Duration = Duration::from_millis(50);
/// How long the thread may take to end beyond the time that it was given.
const GRACE: Duration = Duration::from_secs(5);
/// Lines that wait for somebody to read them.
const NOTES: usize = 100;

/// Everything that more than one thread looks at.
#[derive(Debug)]
pub struct Shared {
    most_bytes: usize,
    state: Mutex<State>,
    /// Something for the thread to do.
    work: Condvar,
    /// Something was delivered, or the thread has ended.
    progress: Condvar,
    has_notes: AtomicBool,
}

#[derive(Debug)]
struct State {
    items: BatchBuf,
    dropped: u64,
    /// Of those, how many the thread knows about.
    dropped_told: u64,
    /// Flushes asked for, and done.
    asked: u64,
    done: u64,
    /// Until when to try, if the agent is being closed.
    closing: Option<Instant>,
    ended: bool,
    stopped: Option<String>,
    agent: Status,
    notes: VecDeque<String>,
    /// Something came up since the thread looked.
    awake: bool,
}

/// What the thread has to do.
#[derive(Debug)]
pub struct Work {
    pub items: BatchBuf,
    /// Items left out since the last look.
    pub dropped: u64,
    /// Number of the last flush that was asked for.
    pub asked: u64,
    /// Number of the last one whose items are among these, or were before.
    pub covered: u64,
    pub closing: Option<Instant>,
}

impl State {
    fn bytes(&self) -> usize {
        self.items.key_bytes() + ITEM_BYTES * self.items.len()
    }

    fn drop_items(&mut self, items: u64) {
        self.dropped = self.dropped.saturating_add(items);
    }

    fn check_open(&self) -> Result<(), EmbeddedError> {
        if self.closing.is_some() { Err(EmbeddedError::Closed) } else { Ok(()) }
    }
}

impl Shared {
    pub fn new(most_bytes: usize, agent: Status) -> Self {
        let state = State {
            items: BatchBuf::new(),
            dropped: 0,
            dropped_told: 0,
            asked: 0,
            done: 0,
            closing: None,
            ended: false,
            stopped: None,
            agent,
            notes: VecDeque::new(),
            awake: false,
        };
        Self {
            most_bytes,
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            has_notes: AtomicBool::new(false),
        }
    }

    /// The state. It is held for moments only, and is whole after a panic too.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State, key: &[u8]) -> bool {
        !state.ended && state.bytes() + key.len() + ITEM_BYTES <= self.most_bytes
    }

    pub fn push(&self, key: &[u8], weight: u64) -> Result<bool, EmbeddedError> {
        let mut state = self.lock();
        state.check_open()?;
        let room = self.has_room(&state, key);
        if room {
            state.items.push(key, weight);
            self.wake_for_many(&mut state);
        } else {
            state.drop_items(1);
        }
        Ok(room)
    }

    pub fn push_all(&self, items: &Batch<'_>) -> Result<usize, EmbeddedError> {
        let mut state = self.lock();
        state.check_open()?;
        let mut taken = 0;
        for (key, weight) in items.items() {
            if !self.has_room(&state, key) {
                break;
            }
            state.items.push(key, weight);
            taken += 1;
        }
        state.drop_items((items.len() - taken) as u64);
        self.wake_for_many(&mut state);
        Ok(taken)
    }

    pub fn has_room_for(&self, items: &Batch<'_>) -> Result<bool, EmbeddedError> {
        let bytes: usize = items.keys().map(|key| key.len() + ITEM_BYTES).sum();
        let state = self.lock();
        state.check_open()?;
        match &state.stopped {
            Some(why) => Err(EmbeddedError::Stopped(why.clone())),
            None => Ok(state.items.is_empty() || state.bytes() + bytes <= self.most_bytes),
        }
    }

    fn has_many(&self, state: &State) -> bool {
        state.bytes() >= MANY.min(self.most_bytes / 2)
    }

    fn wake_for_many(&self, state: &mut State) {
        if self.has_many(state) {
            self.rouse(state);
        }
    }

    fn rouse(&self, state: &mut State) {
        state.awake = true;
        self.work.notify_one();
    }

    /// There is something for the thread to see.
    pub fn wake(&self) {
        self.rouse(&mut self.lock());
    }

    fn doze<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !state.awake {
            state = self.work.wait_timeout(state, WAIT).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.awake = false;
        state
    }

    /// Waits a moment for something to do. While the agent is stalled, items stay in the queue.
    pub fn take(&self, stalled: bool) -> Work {
        let mut state = self.lock();
        let idle = state.asked == state.done && state.closing.is_none();
        if idle && (stalled || !self.has_many(&state)) {
            state = self.doze(state);
        }
        let dropped = state.dropped - state.dropped_told;
        state.dropped_told = state.dropped;
        let items = if stalled { BatchBuf::new() } else { std::mem::take(&mut state.items) };
        let covered = if state.items.is_empty() { state.asked } else { state.done };
        Work { items, dropped, asked: state.asked, covered, closing: state.closing }
    }

    /// Waits a moment for an answer of the collector, or anything else.
    pub fn pause(&self) {
        drop(self.doze(self.lock()));
    }

    pub fn publish(&self, agent: Status, done: u64) {
        let mut state = self.lock();
        state.agent = agent;
        if done > state.done {
            state.done = done;
            self.progress.notify_all();
        }
    }

    pub fn flush(&self, until: Instant) -> Result<bool, EmbeddedError> {
        let mut state = self.lock();
        state.check_open()?;
        state.asked += 1;
        let wanted = state.asked;
        self.rouse(&mut state);
        while state.done < wanted && !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        match &state.stopped {
            Some(why) => Err(EmbeddedError::Stopped(why.clone())),
            None => Ok(state.done >= wanted),
        }
    }

    /// Takes no more items.
    pub fn close(&self, until: Instant) {
        let mut state = self.lock();
        if state.closing.is_none() {
            state.closing = Some(until);
            state.asked += 1;
        }
        self.rouse(&mut state);
    }

    /// Waits for the end of the thread. Returns whether everything is delivered.
    pub fn ended(&self) -> Result<bool, EmbeddedError> {
        let mut state = self.lock();
        let until = state.closing.unwrap_or_else(Instant::now) + GRACE;
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            state = self.progress.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        match &state.stopped {
            Some(why) => Err(EmbeddedError::Stopped(why.clone())),
            None => Ok(state.done == state.asked),
        }
    }

    /// The thread has ended. Items that still wait are lost.
    pub fn end(&self, stopped: Option<String>) {
        let mut state = self.lock();
        let lost = state.items.len() as u64;
        state.items.clear();
        state.drop_items(lost);
        state.ended = true;
        state.stopped = stopped;
        self.progress.notify_all();
    }

    /// Items that the thread could not count. It reports them itself.
    pub fn count_dropped(&self, items: u64) {
        let mut state = self.lock();
        state.drop_items(items);
        state.dropped_told = state.dropped_told.saturating_add(items);
    }

    pub fn status(&self) -> EmbeddedStatus {
        let state = self.lock();
        EmbeddedStatus {
            agent: state.agent.clone(),
            queued: state.items.len() as u64,
            dropped: state.dropped,
            stopped: state.stopped.clone(),
        }
    }

    pub fn note(&self, line: &str) {
        let mut state = self.lock();
        if state.notes.len() == NOTES {
            state.notes.pop_front();
        }
        state.notes.push_back(line.to_owned());
        self.has_notes.store(true, Relaxed);
    }

    pub fn take_notes(&self) -> Vec<String> {
        if !self.has_notes.load(Relaxed) {
            return Vec::new();
        }
        let mut state = self.lock();
        self.has_notes.store(false, Relaxed);
        state.notes.drain(..).collect()
    }
}
