//! From a name to plain bytes: opening, counting, decompression by content, and reads that a Ctrl-C can end.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use flate2::bufread::MultiGzDecoder;

use crate::options::Progress;

const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Compressed bytes read at a time.
const STORED_CHUNK: usize = 1 << 17;

/// An opened input: plain bytes, and what is known about the stored ones.
pub(crate) struct Opened<'r> {
    /// The bytes after decompression.
    pub plain: Box<dyn Read + 'r>,
    /// What the stored bytes were, for messages.
    pub packing: Packing,
    pub stored: Rc<Stored>,
}

/// Accounts of the stored bytes, shared with the reader that counts them.
#[derive(Default)]
pub(crate) struct Stored {
    pub bytes: Cell<u64>,
    /// Whether the *system* failed, as opposed to the decompressor.
    pub failed: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

/// Looks at the first bytes and puts a decompressor in front if they ask for one.
pub(crate) fn unpack<'r>(reader: impl Read + 'r, progress: Option<Arc<Progress>>) -> io::Result<Opened<'r>> {
    let stored = Rc::new(Stored::default());
    let mut reader = Counting { inner: reader, stored: stored.clone(), progress };
    let mut head = vec![0; STORED_CHUNK];
    let mut filled = 0;
    // Read on only while what came could still become a signature: a pipe may be slow and say very little.
    let packing = loop {
        let start = &head[..filled];
        if start.starts_with(GZIP) {
            break Packing::Gzip;
        } else if start.starts_with(ZSTD) {
            break Packing::Zstd;
        } else if !GZIP.starts_with(start) && !ZSTD.starts_with(start) {
            break Packing::Plain;
        }
        match reader.read(&mut head[filled..])? {
            0 => break Packing::Plain,
            n => filled += n,
        }
    };
    head.truncate(filled);
    let whole = Cursor::new(head).chain(reader);
    let plain: Box<dyn Read + 'r> = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(STORED_CHUNK, whole))),
        Packing::Zstd => Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(STORED_CHUNK, whole))?),
    };
    Ok(Opened { plain, packing, stored })
}

/// Opens a file; a pipe or device gets a thread of its own if there is a flag that may end it.
pub(crate) fn open_path(path: &std::path::Path, interrupt: Option<&Arc<AtomicBool>>) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    let regular = file.metadata().is_ok_and(|meta| meta.is_file());
    Ok(match interrupt {
        Some(flag) if !regular => Box::new(Interruptible::new(file, flag.clone())),
        _ => Box::new(file),
    })
}

/// Standard input, likewise.
pub(crate) fn open_stdin(interrupt: Option<&Arc<AtomicBool>>) -> Box<dyn Read> {
    match interrupt {
        Some(flag) => Box::new(Interruptible::new(io::stdin(), flag.clone())),
        None => Box::new(io::stdin()),
    }
}

struct Counting<R> {
    inner: R,
    stored: Rc<Stored>,
    progress: Option<Arc<Progress>>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(n) => {
                self.stored.bytes.set(self.stored.bytes.get() + n as u64);
                if let Some(progress) = &self.progress {
                    progress.add_bytes(n as u64);
                }
                Ok(n)
            }
            Err(error) => {
                self.stored.failed.set(error.kind() != ErrorKind::Interrupted);
                Err(error)
            }
        }
    }
}

/// Reads on a thread of its own, so that waiting for a silent pipe can be given up when a flag is set.
///
/// A blocked `read` cannot be called off portably (signal handlers commonly restart it). The thread that stays behind in it
/// ends with the next byte or with the process.
struct Interruptible {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Cursor<Vec<u8>>,
    flag: Arc<AtomicBool>,
}

impl Interruptible {
    const CHUNK: usize = 1 << 17;
    const LOOK_AT_FLAG: Duration = Duration::from_millis(50);

    fn new(mut inner: impl Read + Send + 'static, flag: Arc<AtomicBool>) -> Self {
        let (sender, chunks) = sync_channel(2);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; Self::CHUNK];
                let result = match inner.read(&mut chunk) {
                    Ok(n) => {
                        chunk.truncate(n);
                        Ok(chunk)
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let last = result.as_ref().map_or(true, Vec::is_empty);
                if sender.send(result).is_err() || last {
                    return;
                }
            }
        });
        Self { chunks, current: Cursor::default(), flag }
    }
}

impl Read for Interruptible {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.current.read(buffer)? {
                0 => {}
                n => return Ok(n),
            }
            if self.flag.load(Ordering::Relaxed) {
                return Err(ErrorKind::Interrupted.into());
            }
            match self.chunks.recv_timeout(Self::LOOK_AT_FLAG) {
                Ok(Ok(chunk)) if chunk.is_empty() => return Ok(0),
                Ok(Ok(chunk)) => self.current = Cursor::new(chunk),
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
