//! The control plane in threads of its own: inserting never waits for decoding or training.
//!
//! The link is the wire format over an unbounded channel, exactly as between machines. The *drain*
//! thread takes messages off the channel and never trains, so that the queue of reports stays
//! short; when delta decoding lags behind, adjacent epochs are added together (they are linear) and
//! nothing is dropped. The *trainer* thread works on a copy of the window and hands the trained
//! network back.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver as Channel, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rayon::ThreadPoolBuilder;
use ucl_control_plane::{ControlPlane, Settings};
use ucl_data_plane::{Config, Opening, Report, ReportSink};
#[cfg(feature = "state")]
use ucl_wire::EncoderState;
use ucl_wire::{Encoder, Message, Receiver};

use crate::builder::BuildError;
use crate::sketch::Out;
#[cfg(feature = "state")]
use crate::state::LoadError;

/// More waiting messages than this, and delta adds epochs together.
const LAG: u64 = 64;

/// Error of a system that cannot start a thread.
///
/// ```
/// let error = ucl_sketch::NoThread::from(std::io::Error::other("too many"));
/// assert_eq!(error.to_string(), "cannot start a thread: too many");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start a thread: {why}")]
pub struct NoThread {
    /// Message of the system.
    pub why: String,
}

impl From<io::Error> for NoThread {
    fn from(error: io::Error) -> Self {
        Self { why: error.to_string() }
    }
}

pub(crate) struct Background {
    // Dropped first: the channel closes and the drain thread ends.
    encoder: Option<Box<Encoder<Out>>>,
    shared: Arc<Shared>,
    drain: Option<JoinHandle<()>>,
    train_every: Option<u64>,
}

struct Shared {
    control: Mutex<ControlPlane>,
    /// Messages sent and messages taken in.
    sent: AtomicU64,
    taken: Mutex<u64>,
    progress: Condvar,
    /// Nothing will be taken in any more.
    ended: AtomicBool,
    stop: Arc<AtomicBool>,
}

/// Tells whoever waits that the drain thread is no more, also if it panicked.
struct DrainEnd(Arc<Shared>);

impl Drop for DrainEnd {
    fn drop(&mut self) {
        // Under the lock: nobody is between looking and waiting.
        let _taken = lock(&self.0.taken);
        self.0.ended.store(true, Ordering::Release);
        self.0.progress.notify_all();
    }
}

impl Background {
    pub fn start(config: Config, settings: Settings) -> Result<Self, BuildError> {
        // The drain thread decides when to train, and never does it itself.
        let train_every = settings.train_every;
        let control = ControlPlane::new(config, Settings { train_every: None, ..settings })?;
        Self::run(control, train_every, Receiver::new(0), |out| Ok(Encoder::new(0, config, out)?))
    }

    /// Restarts from a control plane and an encoder that were stopped. It was made for
    /// [`Background::settings`].
    #[cfg(feature = "state")]
    pub fn resume(mut control: ControlPlane, state: EncoderState) -> Result<Self, LoadError> {
        let config = *control.segment().config();
        let train_every = control.take_training();
        let receiver = Receiver::resume(state.next(), config);
        Self::run(control, train_every, receiver, |out| Ok(Encoder::restore(config, state, out)?))
    }

    /// The settings of the whole: those of the control plane, and when the trainer trains.
    pub fn settings(&mut self) -> Settings {
        let train_every = self.train_every;
        self.with_control(|control| Settings { train_every, ..control.settings().clone() })
    }

    fn run<E: From<NoThread>>(
        control: ControlPlane,
        train_every: Option<u64>,
        receiver: Receiver,
        encoder: impl FnOnce(Out) -> Result<Encoder<Out>, E>,
    ) -> Result<Self, E> {
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            control: Mutex::new(control),
            sent: AtomicU64::new(0),
            taken: Mutex::new(0),
            progress: Condvar::new(),
            ended: AtomicBool::new(false),
            stop,
        });
        let (sender, channel): (Sender<Vec<u8>>, _) = channel();
        let counting = Arc::clone(&shared);
        let out: Out = Box::new(move |message: &[u8]| {
            counting.sent.fetch_add(1, Ordering::Release);
            // The drain thread outlives the encoder unless it panicked, and then `with_control`
            // panics too.
            let _ = sender.send(message.to_vec());
        });
        let draining = Arc::clone(&shared);
        // Both sides are in this process: the sketch may be as large as its own memory allows.
        let receiver = receiver.with_counter_limit(usize::MAX);
        let drain = std::thread::Builder::new().name("ucl-drain".into()).spawn(move || {
            let _end = DrainEnd(Arc::clone(&draining));
            drain(&channel, &draining, receiver, train_every);
        });
        let drain = drain.map_err(NoThread::from)?;
        // Should it fail, `out` goes with it, and the drain thread ends.
        let encoder = Some(Box::new(encoder(out)?));
        Ok(Self { encoder, shared, drain: Some(drain), train_every })
    }

    pub fn encoder(&mut self) -> &mut Encoder<Out> {
        self.encoder.as_mut().expect("there until dropped")
    }

    /// Runs `f` once all that was sent has been taken in. A panic of the drain thread goes on here.
    pub fn with_control<T>(&mut self, f: impl FnOnce(&mut ControlPlane) -> T) -> T {
        self.encoder().flush();
        let sent = self.shared.sent.load(Ordering::Acquire);
        let mut taken = lock(&self.shared.taken);
        while *taken < sent && !self.shared.ended.load(Ordering::Acquire) {
            taken = self.shared.progress.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        let all = *taken == sent;
        drop(taken);
        if !all {
            let panic = self.drain.take().and_then(|drain| drain.join().err());
            resume_unwind(panic.unwrap_or_else(|| Box::new("the control plane ended before all was taken in")));
        }
        f(&mut lock(&self.shared.control))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.encoder = None;
        if let Some(drain) = self.drain.take() {
            let _ = drain.join();
        }
    }
}

/// A panic elsewhere must not become a second one here; the control plane's own checks tell whether
/// it is sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn drain(channel: &Channel<Vec<u8>>, shared: &Arc<Shared>, mut receiver: Receiver, train_every: Option<u64>) {
    let cuts = lock(&shared.control).cuts();
    let mut trained_at = train_every.and_then(|every| cuts.checked_rem(every)).map_or(cuts, |since| cuts - since);
    let mut trainer: Option<JoinHandle<()>> = None;
    for message in channel {
        {
            let mut control = lock(&shared.control);
            let waiting = shared.sent.load(Ordering::Acquire) - *lock(&shared.taken);
            control.set_lagging(waiting > LAG);
            let first = receiver.segment().is_none();
            let mut open = |config, opening| control.report(Report::Open { config, opening });
            match receiver.receive(&message) {
                // The control plane was built for the first segment.
                Ok(Message::SegmentOpen(_)) if first => {}
                Ok(Message::SegmentOpen(config)) => open(&config, Opening::Change),
                Ok(Message::Reset { config, keep_weights }) => open(&config, Opening::Reset { keep_weights }),
                Ok(Message::Reports(reports)) => {
                    let segment = *control.segment().config();
                    if let Err(error) = reports.replay(&segment, &mut *control) {
                        control.fail(error.to_string());
                    }
                }
                Ok(Message::Export(export)) => export.replay(&mut *control),
                Err(error) => control.fail(error.to_string()),
            }
            let due = train_every.is_some_and(|every| control.cuts() >= trained_at + every);
            let idle = trainer.as_ref().is_none_or(JoinHandle::is_finished);
            if due && idle {
                trained_at = control.cuts();
                trainer = control.training_job(Arc::clone(&shared.stop)).and_then(|job| {
                    let shared = Arc::clone(shared);
                    let train = move || {
                        // The results are the same on any number of threads, and whoever inserts
                        // needs one, too.
                        let cores = std::thread::available_parallelism().map_or(1, usize::from);
                        let pool = ThreadPoolBuilder::new().num_threads(cores.saturating_sub(1).max(1)).build();
                        let trained = match pool {
                            Ok(pool) => pool.install(|| job.run()),
                            Err(_) => job.run(),
                        };
                        lock(&shared.control).install(trained);
                    };
                    // Without a thread this training is left out: the classic decoder answers, and
                    // another one is due.
                    std::thread::Builder::new().spawn(train).ok()
                });
            }
        }
        *lock(&shared.taken) += 1;
        shared.progress.notify_all();
    }
    if let Some(trainer) = trainer {
        let _ = trainer.join();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use ucl_data_plane::{KeyFormat, ReportRule, Shape};

    use super::*;

    #[test]
    fn a_panic_of_the_drain_thread_never_leaves_anyone_waiting() {
        let shape = Shape::PAPER_64KB;
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
        let mut background = Background::start(config, Settings::default()).expect("settings that go together");
        background.with_control(|_| ());
        // What only a defect of ours could bring about: more messages taken in than were sent.
        *lock(&background.shared.taken) += 2;
        background.encoder().report(Report::Carry { at: ucl_data_plane::CounterIndex(0), times: 1 });
        let asked = catch_unwind(AssertUnwindSafe(|| background.with_control(|control| control.cuts())));
        assert!(asked.is_err(), "an answer without what was lost: {asked:?}");
    }
}
