//! The control plane in threads of its own, some epochs behind at most: the same answers as in the
//! caller's thread, sooner.
//!
//! The data plane's reports are *noted* as they arise, and a batch of notes, an epoch as a rule,
//! goes over to the other thread, which takes it in and decodes. Reports arrive in their order, and
//! none is left out or added to another, so that nothing depends on how fast which thread is; where
//! the control plane cannot keep up, inserting waits. (In
//! [`Background`](crate::background::Background) it never does, and epochs are added together
//! instead.)
//!
//! Whoever asks has all notes taken in first, and the control plane back; the next batch takes it
//! over there again.
//!
//! The control plane decodes in parallel, and does so in a pool of its own. In the global one it
//! would wait for threads that may all be waiting for control planes.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use ucl_control_plane::ControlPlane;
use ucl_data_plane::mirrored::Pieces;
use ucl_data_plane::{Config, CounterIndex, Counters, Cut, CutTotals, KeyFlags, KeyRef, Opening, Report, ReportSink};

/// So many batches may wait. `ucl count` of 2M raw records took 76, 72 and 75 ms on two cores with
/// 4, 8 and 16 (median of 40 runs each, turn by turn), and longer with 64: whoever inserts ran
/// ahead, and its core had nothing to do in the end.
const WAITING: usize = 8;

/// A batch without a cut has so many notes at most.
const LONGEST: usize = 1 << 14;

pub(crate) struct Pipeline {
    notes: Notes,
    /// One of its threads takes in what comes, all of them decode.
    pool: ThreadPool,
    // Gone only while one becomes the other.
    stage: Option<Stage>,
}

enum Stage {
    /// The control plane is here and has taken in everything but the open notes.
    Here(Box<ControlPlane>),
    Away(Away),
}

struct Away {
    batches: SyncSender<Notes>,
    /// Batches that were taken in: their memory is used again.
    spent: Receiver<Notes>,
    /// The control plane when there are no more batches, or its panic.
    end: Receiver<thread::Result<Box<ControlPlane>>>,
}

impl Pipeline {
    /// Starts the threads; returns the control plane if the system cannot start them.
    pub fn new(control: Box<ControlPlane>) -> Result<Self, Box<ControlPlane>> {
        let threads = ThreadPoolBuilder::new().thread_name(|at| format!("ucl-control-{at}"));
        match threads.num_threads(rayon::current_num_threads()).build() {
            Ok(pool) => Ok(Self { notes: Notes::default(), pool, stage: Some(Stage::Here(control)) }),
            Err(_) => Err(control),
        }
    }

    /// The control plane, with everything taken in.
    pub fn control(&mut self) -> &mut ControlPlane {
        let mut control = match self.stage.take().expect("a stage") {
            Stage::Here(control) => control,
            Stage::Away(away) => away.back(),
        };
        self.notes.replay(&mut *control);
        let Stage::Here(control) = self.stage.insert(Stage::Here(control)) else { unreachable!("just put there") };
        control
    }

    /// The open notes go over.
    fn send(&mut self) {
        let away = match self.stage.take().expect("a stage") {
            Stage::Here(control) => Away::start(&self.pool, control),
            Stage::Away(away) => away,
        };
        let next = away.spent.try_recv().unwrap_or_default();
        if away.batches.send(std::mem::replace(&mut self.notes, next)).is_err() {
            // Only a panic ends it while there may be more.
            away.back();
            unreachable!("the control plane took in no more, but not by a panic");
        }
        self.stage = Some(Stage::Away(away));
    }
}

impl Away {
    fn start(pool: &ThreadPool, mut control: Box<ControlPlane>) -> Self {
        let (batches, incoming) = sync_channel::<Notes>(WAITING);
        let (done, spent) = channel();
        let (ended, end) = sync_channel(1);
        let work = move || {
            for mut notes in incoming {
                notes.replay(&mut *control);
                // Nobody may be waiting for the memory any more.
                let _ = done.send(notes);
            }
            control
        };
        // Nobody may be waiting for the control plane either.
        pool.spawn(move || drop(ended.send(catch_unwind(AssertUnwindSafe(work)))));
        Self { batches, spent, end }
    }

    /// Waits until all batches are taken in. A panic over there goes on here.
    fn back(self) -> Box<ControlPlane> {
        drop(self.batches);
        let end = self.end.recv().expect("an end is always told");
        end.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl ReportSink for Pipeline {
    #[inline]
    fn report(&mut self, report: Report<'_>) {
        self.notes.report(report);
        let message_ends = matches!(report, Report::Export(Pieces::End { cut: None }));
        if matches!(report, Report::Cut(_)) || message_ends || self.notes.list.len() >= LONGEST {
            self.send();
        }
    }
}

/// Reports that are to be taken in later, elsewhere.
#[derive(Default)]
struct Notes {
    list: Vec<Note>,
    /// The keys of the notes, one after the other.
    bytes: Vec<u8>,
}

/// A report; the key it may have is the next `len` bytes.
enum Note {
    Whole {
        len: u32,
        flags: KeyFlags,
    },
    Digest {
        flags: KeyFlags,
    },
    /// The digest comes first.
    Digested {
        len: u32,
        flags: KeyFlags,
    },
    Name {
        len: u32,
    },
    Carry {
        at: CounterIndex,
        times: i64,
    },
    /// The next bytes of what a mirrored table sends.
    Piece {
        len: u32,
    },
    /// The end of its message.
    PiecesEnd {
        cut: Option<u64>,
    },
    Slot {
        slot: u32,
        count: u64,
    },
    SlotTaken {
        len: u32,
        slot: u32,
        count: u64,
    },
    Cut(Box<OwnedCut>),
    Open(Box<Config>, Opening),
}

/// A cut with counters of its own.
struct OwnedCut {
    totals: CutTotals,
    counters: Counters,
    reset: bool,
}

impl ReportSink for Notes {
    #[inline]
    fn report(&mut self, report: Report<'_>) {
        let note = match report {
            Report::Key { key: KeyRef::Whole(key), flags } => {
                self.bytes.extend_from_slice(key);
                Note::Whole { len: key.len() as u32, flags }
            }
            Report::Key { key: KeyRef::Digest(digest), flags } => {
                self.bytes.extend_from_slice(&digest);
                Note::Digest { flags }
            }
            Report::Key { key: KeyRef::Digested { digest, bytes }, flags } => {
                self.bytes.extend_from_slice(&digest);
                self.bytes.extend_from_slice(bytes);
                Note::Digested { len: bytes.len() as u32, flags }
            }
            Report::Key { key: KeyRef::Name(name), .. } => {
                self.bytes.extend_from_slice(name);
                Note::Name { len: name.len() as u32 }
            }
            Report::Carry { at, times } => Note::Carry { at, times },
            Report::Export(Pieces::Bytes(bytes)) => {
                self.bytes.extend_from_slice(bytes);
                Note::Piece { len: bytes.len() as u32 }
            }
            Report::Export(Pieces::End { cut }) => Note::PiecesEnd { cut },
            Report::Slot { slot, holder: None, count } => Note::Slot { slot, count },
            Report::Slot { slot, holder: Some(holder), count } => {
                self.bytes.extend_from_slice(holder);
                Note::SlotTaken { len: holder.len() as u32, slot, count }
            }
            Report::Cut(Cut { totals, counters, reset }) => {
                Note::Cut(Box::new(OwnedCut { totals, counters: counters.clone(), reset }))
            }
            Report::Open { config, opening } => Note::Open(Box::new(*config), opening),
        };
        self.list.push(note);
    }
}

impl Notes {
    /// Hands everything on, and is empty then.
    fn replay(&mut self, sink: &mut impl ReportSink) {
        let mut left = &self.bytes[..];
        let mut take = |len: u32| {
            let (now, later) = left.split_at(len as usize);
            left = later;
            now
        };
        let digest = |bytes: &[u8]| -> [u8; 16] { bytes.try_into().expect("16 bytes were noted") };
        for note in self.list.drain(..) {
            match note {
                Note::Whole { len, flags } => sink.report(Report::Key { key: KeyRef::Whole(take(len)), flags }),
                Note::Digest { flags } => {
                    sink.report(Report::Key { key: KeyRef::Digest(digest(take(16))), flags });
                }
                Note::Digested { len, flags } => {
                    let key = KeyRef::Digested { digest: digest(take(16)), bytes: take(len) };
                    sink.report(Report::Key { key, flags });
                }
                Note::Name { len } => {
                    sink.report(Report::Key { key: KeyRef::Name(take(len)), flags: KeyFlags::default() });
                }
                Note::Piece { len } => sink.report(Report::Export(Pieces::Bytes(take(len)))),
                Note::PiecesEnd { cut } => sink.report(Report::Export(Pieces::End { cut })),
                Note::Carry { at, times } => sink.report(Report::Carry { at, times }),
                Note::Slot { slot, count } => sink.report(Report::Slot { slot, holder: None, count }),
                Note::SlotTaken { len, slot, count } => {
                    sink.report(Report::Slot { slot, holder: Some(take(len)), count });
                }
                Note::Cut(cut) => {
                    let OwnedCut { totals, ref counters, reset } = *cut;
                    sink.report(Report::Cut(Cut { totals, counters, reset }));
                }
                Note::Open(config, opening) => sink.report(Report::Open { config: &config, opening }),
            }
        }
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use ucl_control_plane::Settings;
    use ucl_data_plane::{KeyFormat, ReportRule, Shape};

    use super::*;

    /// Makes a pipeline with a fault that only a defect of ours could cause: a key whose bytes are
    /// not there.
    fn with_a_broken_batch_away() -> Pipeline {
        let shape = Shape::PAPER_64KB;
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
        let control = ControlPlane::new(config, Settings::default()).expect("settings that go together");
        let Ok(mut pipeline) = Pipeline::new(Box::new(control)) else { panic!("no threads") };
        pipeline.notes.list.push(Note::Whole { len: 4, flags: KeyFlags::default() });
        pipeline.send();
        pipeline
    }

    #[test]
    fn a_panic_over_there_goes_on_for_whoever_asks() {
        let mut pipeline = with_a_broken_batch_away();
        let asked = catch_unwind(AssertUnwindSafe(|| pipeline.control().cuts()));
        assert!(asked.is_err(), "an answer without the batch that was lost: {asked:?}");
    }

    #[test]
    fn a_panic_over_there_goes_on_for_whoever_inserts_and_never_leaves_them_waiting() {
        let mut pipeline = with_a_broken_batch_away();
        let sent = catch_unwind(AssertUnwindSafe(|| (0..=WAITING + 1).for_each(|_| pipeline.send())));
        assert!(sent.is_err(), "batches went to a control plane that is no more");
    }
}
