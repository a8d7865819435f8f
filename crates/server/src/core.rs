//! The one thread that owns the collector.
//!
//! Requests wait in a queue with a bound. The thread takes what is there, answers questions first,
//! and submits all epochs together: one wait for the disk for all of them (group commit). If the
//! disk fails, or decoding panics, the collector is opened again from what is on the disk.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use tokio::sync::oneshot;
use ucl_collector::{Collector, CollectorError, CollectorSettings, Rejected};
use ucl_link::{Clock, Identity, Now, Reply};
use ucl_storage::Folder;

/// Requests that wait, at most.
const QUEUE: usize = 1_024;
/// Requests that are submitted together, at most.
const BATCH: usize = 256;
/// Bytes that are submitted together, at most: questions wait no longer than these take.
const BATCH_BYTES: usize = 4 << 20;
/// States written between two batches, at most.
const STATES: usize = 4;
/// Time that the thread sleeps when nothing happens.
const IDLE: Duration = Duration::from_millis(500);
/// Interval between two searches for idle streams.
const LOOK_FOR_IDLE: Duration = Duration::from_secs(60);
/// Time before a collector that could not be opened is tried again.
const REOPEN: Duration = Duration::from_secs(1);

/// Reason why the collector did not answer.
#[derive(Debug, thiserror::Error)]
pub enum CoreError {
    /// Too many requests wait.
    #[error("too many requests are waiting")]
    Busy,
    /// The sender has a request under way.
    #[error("a request of this sender is under way")]
    UnderWay,
    /// The collector is not there: its disk failed, or it is stopping.
    #[error("{0}")]
    Unavailable(String),
    /// Epochs come over another link.
    #[error("this collector takes epochs from NATS: give the agent the address of the NATS server")]
    OnNats,
    /// The request is none.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The collector failed to answer.
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

type Question = Box<dyn FnOnce(Result<&mut Collector<Folder>, &str>) + Send>;

enum Order {
    Submit(Submission),
    Ask(Question),
    Stop,
}

struct Submission {
    identity: Identity,
    body: Bytes,
    reply: oneshot::Sender<Result<Reply, CoreError>>,
    /// The sender may go on when this is dropped.
    _turn: Turn,
}

/// Counters of the thread's work, for `/metrics`.
#[derive(Debug, Default)]
pub struct CoreMetrics {
    /// Requests with epochs that were answered.
    pub requests: AtomicU64,
    /// Bytes of their bodies.
    pub bytes: AtomicU64,
    /// Batches that were committed.
    pub batches: AtomicU64,
    /// Microseconds spent in batches.
    pub batch_micros: AtomicU64,
    /// Requests turned away because the queue was full.
    pub busy: AtomicU64,
    /// Requests waiting.
    pub waiting: AtomicU64,
    /// Times that the collector was opened again.
    pub reopened: AtomicU64,
}

/// A way to the collector, for any thread.
#[derive(Clone)]
pub struct Core {
    orders: SyncSender<Order>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    metrics: Arc<CoreMetrics>,
    ready: AtomicBool,
    under_way: Mutex<HashSet<Identity>>,
}

/// One request of a sender.
struct Turn {
    shared: Arc<Shared>,
    identity: Identity,
}

impl Turn {
    fn take(shared: &Arc<Shared>, identity: &Identity) -> Option<Self> {
        let mut under_way = shared.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let free = under_way.insert(identity.clone());
        free.then(|| Self { shared: Arc::clone(shared), identity: identity.clone() })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.identity);
    }
}

impl Core {
    /// Opens the collector in a folder, and starts its thread, which notes what it does in
    /// `metrics`.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn start(
        folder: PathBuf,
        settings: CollectorSettings,
        metrics: &Arc<CoreMetrics>,
    ) -> Result<(Self, JoinHandle<()>), CollectorError> {
        let collector = Collector::open(Folder::open(&folder)?, settings.clone())?;
        let (orders, queue) = sync_channel(QUEUE);
        let shared = Arc::new(Shared { metrics: Arc::clone(metrics), ..Shared::default() });
        shared.ready.store(true, Relaxed);
        let owner = Owner {
            queue,
            folder,
            settings,
            state: Ok(collector),
            shared: Arc::clone(&shared),
            clock: Clock::start(),
            looked_for_idle: None,
        };
        let thread = std::thread::Builder::new().name("collector".into()).spawn(move || owner.run())?;
        Ok((Self { orders, shared }, thread))
    }

    /// Returns true if requests are taken.
    pub fn is_ready(&self) -> bool {
        self.shared.ready.load(Relaxed)
    }

    fn send(&self, order: Order) -> Result<(), CoreError> {
        // First, since the thread takes it back as soon as it has the order.
        self.shared.metrics.waiting.fetch_add(1, Relaxed);
        self.orders.try_send(order).map_err(|error| {
            self.shared.metrics.waiting.fetch_sub(1, Relaxed);
            match error {
                TrySendError::Full(_) => {
                    self.shared.metrics.busy.fetch_add(1, Relaxed);
                    CoreError::Busy
                }
                TrySendError::Disconnected(_) => stopping(),
            }
        })
    }

    /// Submits the body of a request.
    ///
    /// # Errors
    /// If the queue is full, the body is no list of envelopes, or the collector is not there.
    pub async fn submit(&self, identity: Identity, body: Bytes) -> Result<Reply, CoreError> {
        let turn = Turn::take(&self.shared, &identity).ok_or(CoreError::UnderWay)?;
        let (reply, answer) = oneshot::channel();
        self.send(Order::Submit(Submission { identity, body, reply, _turn: turn }))?;
        answer.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Asks the collector in its thread. Keep it short: epochs wait meanwhile.
    ///
    /// # Errors
    /// If the queue is full, or the collector is not there.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Collector<Folder>) -> T + Send + 'static,
    ) -> Result<T, CoreError> {
        let (reply, answer) = oneshot::channel();
        let order = Order::Ask(Box::new(move |collector| {
            let outcome = match collector {
                Ok(collector) => Ok(question(collector)),
                Err(why) => Err(CoreError::Unavailable(why.to_owned())),
            };
            // Whoever asked may have gone.
            let _ = reply.send(outcome);
        }));
        self.send(order)?;
        answer.await.unwrap_or_else(|_| Err(CoreError::Unavailable("the question could not be answered".into())))
    }

    /// Asks the thread to write everything down and end, after what waits. Blocks while the queue
    /// is full.
    pub fn stop(&self) {
        // If the thread has ended already, there is nothing to stop.
        let _ = self.orders.send(Order::Stop);
    }
}

fn stopping() -> CoreError {
    CoreError::Unavailable("the collector is stopping".into())
}

/// State of the thread.
struct Owner {
    queue: Receiver<Order>,
    folder: PathBuf,
    settings: CollectorSettings,
    /// The collector, or why there is none.
    state: Result<Collector<Folder>, String>,
    shared: Arc<Shared>,
    clock: Clock,
    looked_for_idle: Option<Instant>,
}

impl Owner {
    fn run(mut self) {
        loop {
            let first = match self.queue.recv_timeout(IDLE) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut batch = Vec::new();
            let mut bytes = 0;
            let mut stop = false;
            let mut next = first;
            while let Some(order) = next {
                self.shared.metrics.waiting.fetch_sub(u64::from(!matches!(order, Order::Stop)), Relaxed);
                match order {
                    Order::Submit(submission) => {
                        bytes += submission.body.len();
                        batch.push(submission);
                    }
                    Order::Ask(question) => self.answer(question),
                    Order::Stop => stop = true,
                }
                let more = !stop && batch.len() < BATCH && bytes < BATCH_BYTES;
                next = if more { self.queue.try_recv().ok() } else { None };
            }
            if !batch.is_empty() {
                self.submit(batch, bytes);
            }
            self.maintain();
            self.forget();
            if stop {
                break;
            }
        }
        self.shared.ready.store(false, Relaxed);
        if let Ok(collector) = &mut self.state
            && let Err(error) = collector.flush()
        {
            tracing::error!(%error, "the states could not be written; the log has everything");
        }
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn answer(&mut self, question: Question) {
        let state = self.state.as_mut().map_err(|why| why.as_str());
        if catch_unwind(AssertUnwindSafe(|| question(state))).is_err() {
            self.fail("answering a question panicked".into());
        }
    }

    fn submit(&mut self, batch: Vec<Submission>, bytes: usize) {
        let now = self.now();
        let began = Instant::now();
        let metrics = &self.shared.metrics;
        metrics.batches.fetch_add(1, Relaxed);
        metrics.requests.fetch_add(batch.len() as u64, Relaxed);
        metrics.bytes.fetch_add(bytes as u64, Relaxed);
        let outcome = match &mut self.state {
            Ok(collector) => {
                let requests: Vec<(&Identity, &[u8])> =
                    batch.iter().map(|submission| (&submission.identity, &*submission.body)).collect();
                match catch_unwind(AssertUnwindSafe(|| collector.submit(&requests, now))) {
                    Ok(Ok(replies)) => Ok(replies),
                    Ok(Err(error)) => Err((error.to_string(), true)),
                    Err(_) => Err(("decoding panicked".to_owned(), true)),
                }
            }
            Err(why) => Err((why.clone(), false)),
        };
        metrics.batch_micros.fetch_add(began.elapsed().as_micros() as u64, Relaxed);
        match outcome {
            Ok(replies) => {
                for (submission, reply) in batch.into_iter().zip(replies) {
                    let Submission { reply: to, _turn: turn, .. } = submission;
                    drop(turn);
                    let _ = to.send(reply.map_err(CoreError::from));
                }
            }
            Err((why, failed)) => {
                for submission in batch {
                    let _ = submission.reply.send(Err(CoreError::Unavailable(why.clone())));
                }
                if failed {
                    self.fail(why);
                }
            }
        }
    }

    fn fail(&mut self, why: String) {
        tracing::error!(why, "the collector failed and is opened again from its folder");
        self.shared.ready.store(false, Relaxed);
        // The folder is locked until the collector that has it is gone.
        self.state = Err(why);
        self.reopen();
    }

    fn reopen(&mut self) {
        self.shared.metrics.reopened.fetch_add(1, Relaxed);
        let opened = Folder::open(&self.folder)
            .map_err(CollectorError::from)
            .and_then(|folder| Collector::open(folder, self.settings.clone()));
        match opened {
            Ok(collector) => {
                self.state = Ok(collector);
                self.shared.ready.store(true, Relaxed);
                tracing::info!("the collector is open again");
            }
            Err(error) => {
                tracing::error!(%error, "the collector cannot be opened; trying again");
                self.state = Err(error.to_string());
                std::thread::sleep(REOPEN);
            }
        }
    }

    fn forget(&mut self) {
        if self.looked_for_idle.is_some_and(|last| last.elapsed() < LOOK_FOR_IDLE) {
            return;
        }
        self.looked_for_idle = Some(Instant::now());
        let now = self.now();
        let Ok(collector) = &mut self.state else { return };
        match collector.delete_idle(now) {
            Ok(gone) => gone.iter().for_each(|identity| tracing::info!(%identity, "deleted: nothing came for long")),
            Err(error) if collector.has_failed() => self.fail(error.to_string()),
            // A full disk: another time.
            Err(error) => tracing::warn!(%error, "idle streams could not be deleted"),
        }
    }

    fn maintain(&mut self) {
        match &mut self.state {
            Ok(collector) => match collector.maintain(STATES) {
                Ok(done) if done.log_files > 0 => {
                    tracing::debug!(states = done.states, log_files = done.log_files, "the log was shortened");
                }
                Ok(_) => {}
                Err(error) => self.fail(error.to_string()),
            },
            Err(_) => self.reopen(),
        }
    }
}
