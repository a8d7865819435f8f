//! The thread that reads an input and hands its items on.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ucl_link::{Clock, Unseen};
use ucl_streams::{Batch, BatchBuf, Ended, OnError, ReadError, ReadOptions, ReadSummary, Source, read, read_from};

use crate::log::counted;
use crate::net::Listener;
use crate::packets::Capture;
use crate::position::{FileId, Position, rotated_since};
use crate::tail::{End, Tail};

/// How often a followed file that is not there is looked for.
const LOOK: Duration = Duration::from_millis(200);

/// Message of the thread that reads an input.
pub enum Fed {
    /// Items, and where the input was before them.
    Items {
        /// The items.
        items: BatchBuf,
        /// Position of the first item.
        before: Position,
        /// A byte after the last one from which reading can start.
        mark: Option<u64>,
    },
    /// Position of the input.
    At(Position),
    /// Items were lost.
    Unseen(Unseen),
    /// Something to tell the operator.
    Note(String),
    /// The input cannot be read; there is no more.
    Failed(String),
}

/// An input of a stream.
pub enum Input {
    /// A file, standard input or a generator.
    Source(Source),
    /// Lines that come over the network.
    Net(Listener),
    /// Packets of an interface that is open.
    Packets(RefCell<Capture>),
}

/// Reads the inputs of one stream in their order, and then ends.
pub struct Feed {
    pub inputs: Vec<Input>,
    pub options: ReadOptions,
    pub follow: bool,
    /// Position to continue at.
    pub resume: Position,
    /// Time when that position was written.
    pub written_ms: Option<i64>,
    pub to: SyncSender<Fed>,
    pub stop: Arc<AtomicBool>,
}

/// The other side is gone: nothing more is wanted.
struct Gone;

impl Feed {
    /// Reads everything. Says itself what went wrong.
    pub fn run(self) {
        // If the receiver is gone, there is nobody to tell.
        let _ = self.all();
    }

    fn send(&self, fed: Fed) -> Result<(), Gone> {
        self.to.send(fed).map_err(|_| Gone)
    }

    fn all(&self) -> Result<(), Gone> {
        // Inputs before the one where it stopped were read.
        let by_name = self.inputs.iter().position(|input| input.name() == self.resume.input);
        let resumed = by_name.or_else(|| self.inputs.iter().position(|input| input.is_file(self.resume.file)));
        for (index, input) in self.inputs.iter().enumerate().skip(resumed.unwrap_or(0)) {
            let resume = if resumed == Some(index) { self.resume.clone() } else { Position::default() };
            let outcome = match input {
                Input::Source(Source::Path(path)) if path.is_file() || self.follow => self.file(path, resume)?,
                Input::Source(source @ Source::Generator(_)) => self.generator(source, &resume)?,
                Input::Source(source) => {
                    self.missed(&resume)?;
                    self.pipe(&source.to_string(), |options, each| read(std::slice::from_ref(source), options, each))?
                }
                Input::Net(listener) => {
                    self.missed(&resume)?;
                    self.listen(listener)?
                }
                Input::Packets(capture) => {
                    self.missed(&resume)?;
                    self.capture(&mut capture.borrow_mut())?
                }
            };
            if !outcome || self.stop.load(Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// What came while nobody listened is gone.
    fn missed(&self, resume: &Position) -> Result<(), Gone> {
        match self.written_ms {
            Some(from_ms) if !resume.done => {
                self.send(Fed::Unseen(Unseen { from_ms, to_ms: Clock::wall_ms(), items: None }))
            }
            _ => Ok(()),
        }
    }

    /// Reads a file from where it stopped, and if it is followed, the files that take its name.
    /// Returns false if there is no use in reading on.
    fn file(&self, path: &Path, mut resume: Position) -> Result<bool, Gone> {
        let name = path.display().to_string();
        loop {
            let (file, file_resume) = match self.open(path, &name, resume) {
                Ok(Some(opened)) => opened,
                Ok(None) => return Ok(true),
                Err(Ok(gone)) => return Err(gone),
                Err(Err(error)) => {
                    self.send(Fed::Failed(format!("cannot open {name}: {error}")))?;
                    return Ok(false);
                }
            };
            let Some(end) = self.one_file(path, &name, file, file_resume)? else { return Ok(false) };
            match end {
                End::Reached => return Ok(true),
                End::Rotated => {
                    self.send(Fed::Note(format!("{name} was replaced by another file, which is read next")))?
                }
                End::Truncated => {
                    self.send(Fed::Note(format!("{name} was truncated: it is read again from its beginning")))?;
                    // What was written between the last look and the cut was not seen.
                    let now = Clock::wall_ms();
                    self.send(Fed::Unseen(Unseen { from_ms: now - LOOK.as_millis() as i64, to_ms: now, items: None }))?;
                }
            }
            resume = Position::default();
        }
    }

    fn unseen_since_written(&self) -> Unseen {
        Unseen { from_ms: self.written_ms.unwrap_or_default(), to_ms: Clock::wall_ms(), items: None }
    }

    /// Opens the file to go on with, and where. Waits for it if it is followed and not there.
    #[allow(clippy::type_complexity, reason = "an error of the system, or nobody who listens")]
    fn open(
        &self,
        path: &Path,
        name: &str,
        resume: Position,
    ) -> Result<Option<(File, Position)>, Result<Gone, io::Error>> {
        let mut told = false;
        let file = loop {
            let error = match File::open(path) {
                Ok(file) => break file,
                Err(error) => error,
            };
            // Who rotates a file makes a new one, and then says who may read it.
            let may_come = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied);
            if !(self.follow && may_come) {
                return Err(Err(error));
            }
            if self.stop.load(Relaxed) {
                return Ok(None);
            }
            if error.kind() == io::ErrorKind::PermissionDenied && !told {
                told = true;
                self.send(Fed::Note(format!("cannot open {name}: {error}; trying again"))).map_err(Ok)?;
            }
            std::thread::sleep(LOOK);
        };
        if let Some(id) = resume.file {
            if id.is(&file).map_err(Err)? {
                if file.metadata().map_err(Err)?.len() >= resume.mark {
                    return Ok(Some((file, Position { done: false, ..resume })));
                }
                self.send(Fed::Note(format!("{name} was truncated: it is read again from its beginning")))
                    .map_err(Ok)?;
            } else if let Some(old) = id.find_beside(path).filter(|_| self.follow) {
                let between = rotated_since(path, &old);
                if let Some(one) = between.first() {
                    let one = one.display();
                    self.send(Fed::Note(format!("{name} was rotated more than once: {one} may not be counted")))
                        .map_err(Ok)?;
                    self.send(Fed::Unseen(self.unseen_since_written())).map_err(Ok)?;
                }
                return Ok(Some((old, resume)));
            }
            if self.follow {
                self.send(Fed::Unseen(self.unseen_since_written())).map_err(Ok)?;
            }
        }
        let id = FileId::of(&file).map_err(Err)?;
        let start = Position::start(name, Some(id));
        self.send(Fed::At(start.clone())).map_err(Ok)?;
        Ok(Some((file, start)))
    }

    /// Reads one file from a position to its end; `None` if it cannot be read or nobody wants it.
    fn one_file(&self, path: &Path, name: &str, mut file: File, from: Position) -> Result<Option<End>, Gone> {
        let watched = match file.try_clone() {
            Ok(watched) => watched,
            Err(error) => return self.failed(format!("{name}: {error}")).map(|()| None),
        };
        if let Err(error) = file.seek(SeekFrom::Start(from.mark)) {
            return self.failed(format!("{name}: {error}")).map(|()| None);
        }
        let followed = self.follow.then(|| (PathBuf::from(path), from.file)).and_then(|(path, id)| Some((path, id?)));
        let tail = Tail::new(file, from.mark, followed, Arc::clone(&self.stop));
        let ending = tail.ending();
        // In the middle of a file nothing is looked at for what it could be.
        let options = ReadOptions { raw: self.options.raw || from.mark > 0, ..self.options.clone() };
        let delivery = RefCell::new(Delivery::new(self, from.clone(), from.items, from.mark, Some(watched)));
        let result = read_from(tail, name, &options, &mut |batch| delivery.borrow_mut().take(batch));
        let Delivery { position, gone, .. } = delivery.into_inner();
        if gone {
            return Err(Gone);
        }
        match self.concluded(result)? {
            Some(Ended::Input) => {
                self.send(Fed::At(Position { done: ending.get() == End::Reached, ..position }))?;
                Ok(Some(ending.get()))
            }
            _ => Ok(None),
        }
    }

    fn generator(&self, source: &Source, resume: &Position) -> Result<bool, Gone> {
        let start = Position { input: source.to_string(), ..resume.clone() };
        let delivery = RefCell::new(Delivery::new(self, start, resume.items, 0, None));
        let result = read(std::slice::from_ref(source), &self.options, &mut |batch| delivery.borrow_mut().take(batch));
        self.finished(delivery.into_inner(), result)
    }

    /// Reads what can be read once only.
    fn pipe(
        &self,
        name: &str,
        read: impl FnOnce(&ReadOptions, &mut dyn FnMut(Batch<'_>) -> ControlFlow<()>) -> Result<ReadSummary, ReadError>,
    ) -> Result<bool, Gone> {
        let start = Position::start(name, None);
        self.send(Fed::At(start.clone()))?;
        let mut delivery = Delivery::new(self, start, 0, 0, None);
        delivery.marks = false;
        let result = read(&self.options, &mut |batch| delivery.take(batch));
        self.finished(delivery, result)
    }

    /// Says where an input ended. Returns true if that was its end.
    fn finished(&self, delivery: Delivery<'_>, result: Result<ReadSummary, ReadError>) -> Result<bool, Gone> {
        let Delivery { position, gone, .. } = delivery;
        if gone {
            return Err(Gone);
        }
        let ended = self.concluded(result)? == Some(Ended::Input);
        if ended {
            self.send(Fed::At(Position { done: true, ..position }))?;
        }
        Ok(ended)
    }

    /// Says that the system dropped items that were just sent.
    fn dropped(&self, items: u64) {
        let now = Clock::wall_ms();
        // If nobody listens, the stream has ended.
        let _ = self.send(Fed::Unseen(Unseen { from_ms: now, to_ms: now, items: Some(items) }));
    }

    fn capture(&self, capture: &mut Capture) -> Result<bool, Gone> {
        let name = capture.interface.to_string();
        let packets = capture.start(Arc::clone(&self.stop), |items| self.dropped(items));
        let options = ReadOptions { raw: true, ..self.options.clone() };
        self.pipe(&name, |_, each| read_from(packets, &name, &options, each))
    }

    fn listen(&self, listener: &Listener) -> Result<bool, Gone> {
        match listener.start(Arc::clone(&self.stop), |items| self.dropped(items)) {
            Ok(lines) => {
                let options = ReadOptions { raw: true, ..self.options.clone() };
                self.pipe(&listener.to_string(), |_, each| read_from(lines, &listener.to_string(), &options, each))
            }
            Err(error) => {
                self.failed(format!("cannot listen on {listener}: {error}"))?;
                Ok(false)
            }
        }
    }

    fn failed(&self, why: String) -> Result<(), Gone> {
        self.send(Fed::Failed(why))
    }

    fn concluded(&self, result: Result<ReadSummary, ReadError>) -> Result<Option<Ended>, Gone> {
        match result {
            Ok(summary) => {
                if let Some(first) = &summary.first_skip {
                    self.send(Fed::Note(format!(
                        "skipped {}, the first: {first}",
                        counted(summary.skipped, "bad record")
                    )))?;
                }
                if let Some(damaged) = &summary.truncated {
                    self.send(Fed::Note(damaged.clone()))?;
                }
                Ok(Some(summary.ended))
            }
            Err(error) => {
                let remedy =
                    if self.options.on_error == OnError::Stop { " (without --strict it is skipped)" } else { "" };
                self.failed(format!("{error}{remedy}"))?;
                Ok(None)
            }
        }
    }
}

impl Input {
    pub fn name(&self) -> String {
        match self {
            Self::Source(source) => source.to_string(),
            Self::Net(listener) => listener.to_string(),
            Self::Packets(capture) => capture.borrow().interface.to_string(),
        }
    }

    /// Whether it is this file, named in another way than before.
    fn is_file(&self, id: Option<FileId>) -> bool {
        let (Self::Source(Source::Path(path)), Some(id)) = (self, id) else { return false };
        // Opening anything else than a file may wait.
        path.is_file() && File::open(path).and_then(|file| id.is(&file)).unwrap_or(false)
    }
}

/// Hands batches on, without the items that were counted before.
struct Delivery<'f> {
    feed: &'f Feed,
    position: Position,
    skip: u64,
    /// Where marks count from.
    origin: u64,
    file: Option<File>,
    marks: bool,
    gone: bool,
}

impl<'f> Delivery<'f> {
    fn new(feed: &'f Feed, position: Position, skip: u64, origin: u64, file: Option<File>) -> Self {
        let position = Position { items: 0, ..position };
        Self { feed, position, skip, origin, file, marks: true, gone: false }
    }

    fn take(&mut self, batch: Batch<'_>) -> ControlFlow<()> {
        let skipped = self.skip.min(batch.len() as u64);
        self.skip -= skipped;
        let mark = batch.mark().filter(|_| self.marks).map(|mark| self.origin + mark);
        let mut items = BatchBuf::new();
        for (key, weight) in batch.items().skip(skipped as usize) {
            items.push(key, weight);
        }
        if let (Some(file), Some(id)) = (&self.file, self.position.file)
            && id.is_short()
        {
            self.position.file = FileId::of(file).ok().or(self.position.file);
        }
        let before = self.position.after(skipped);
        self.position = match mark {
            Some(mark) => Position { mark, items: 0, ..self.position.clone() },
            None => self.position.after(batch.len() as u64),
        };
        if items.is_empty() {
            return ControlFlow::Continue(());
        }
        match self.feed.send(Fed::Items { items, before, mark }) {
            Ok(()) => ControlFlow::Continue(()),
            Err(Gone) => {
                self.gone = true;
                ControlFlow::Break(())
            }
        }
    }
}
