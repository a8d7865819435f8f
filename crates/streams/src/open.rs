//! Opens inputs: counts the stored bytes, decompresses by content, and lets a Ctrl-C end a waiting
//! read.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;

use crate::content::{Look, Signature, look};
use crate::options::Progress;

const PACKINGS: &[(Packing, Signature)] = &[
    (Packing::Gzip, &[(0, &[0x1f, 0x8b, 0x08])]),
    (Packing::Zstd, &[(0, &[0x28, 0xb5, 0x2f, 0xfd])]),
    // A frame to be skipped, with which parallel compressors begin.
    (Packing::Zstd, &[(0, &[0x50, 0x2a, 0x4d, 0x18])]),
    (Packing::Xz, &[(0, b"\xfd7zXZ\0")]),
    // A block, or the end of a stream without one.
    (Packing::Bzip2, &[(0, b"BZh"), (4, b"1AY&SY")]),
    (Packing::Bzip2, &[(0, b"BZh"), (4, b"\x17\x72\x45\x38\x50\x90")]),
];

/// The largest window of zstd, which `zstd --long=31` uses: 2GB, of which only what is filled takes
/// memory.
const ZSTD_WINDOW_LOG: u32 = if cfg!(target_pointer_width = "32") { 30 } else { 31 };

/// The largest dictionary of xz, four times that of `xz -9`, and what its decoder needs beside it.
pub(crate) const XZ_DICTIONARY_MB: u32 = 256;
const XZ_MEMORY_KB: u32 = (XZ_DICTIONARY_MB + 1) << 10;

/// Compressed bytes read at a time.
const STORED_CHUNK: usize = 1 << 17;

/// An opened input: plain bytes, and what is known about the stored ones.
pub(crate) struct Opened<'r> {
    /// The bytes after decompression.
    pub plain: Box<dyn Read + 'r>,
    /// Compression of the stored bytes, for messages.
    pub packing: Packing,
    pub stored: Rc<Stored>,
}

/// Accounts of the stored bytes, shared with the reader that counts them.
#[derive(Default)]
pub(crate) struct Stored {
    pub bytes: Cell<u64>,
    /// True if the *system* failed, as opposed to the decompressor.
    pub failed: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Packing {
    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Xz => "xz",
            Packing::Bzip2 => "bzip2",
        }
    }
}

/// Looks at the first bytes and puts a decompressor in front if they ask for one, unless the stored
/// bytes are wanted.
pub(crate) fn unpack<'r>(reader: impl Read + 'r, progress: Option<Arc<Progress>>, raw: bool) -> io::Result<Opened<'r>> {
    let stored = Rc::new(Stored::default());
    let mut reader = Counting { inner: reader, stored: stored.clone(), progress };
    if raw {
        return Ok(Opened { plain: Box::new(reader), packing: Packing::Plain, stored });
    }
    let mut head = vec![0; STORED_CHUNK];
    let mut filled = 0;
    // Read on only while what came could still become a signature: a pipe may be slow and say very
    // little.
    let packing = loop {
        match look(PACKINGS, &head[..filled]) {
            Look::Is(packing) => break packing,
            Look::Other => break Packing::Plain,
            Look::NeedMore => {}
        }
        match reader.read(&mut head[filled..])? {
            0 => break Packing::Plain,
            n => filled += n,
        }
    };
    head.truncate(filled);
    let whole = Cursor::new(head).chain(reader);
    if packing == Packing::Plain {
        return Ok(Opened { plain: Box::new(whole), packing, stored });
    }
    let packed = BufReader::with_capacity(STORED_CHUNK, whole);
    let plain: Box<dyn Read + 'r> = match packing {
        Packing::Plain => Box::new(packed),
        Packing::Gzip => Box::new(Members::new(packed)),
        Packing::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(packed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Packing::Xz => Box::new(Pieces::new(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KB))),
        Packing::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
    };
    Ok(Opened { plain, packing, stored })
}

/// The members of a gzip file, one after the other. Zero bytes behind a member are padding, as for
/// gzip itself: tapes and block devices leave them.
struct Members<R> {
    /// Taken out only while it is replaced by the next one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(reader: R) -> Self {
        Self { member: Some(GzDecoder::new(reader)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(buffer)?;
            if n > 0 || buffer.is_empty() || !has_more_than_zeros(member.get_mut())? {
                return Ok(n);
            }
            self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
        }
        Ok(0)
    }
}

/// Passes over zero bytes; whether anything is left.
fn has_more_than_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let more = zeros < bytes.len();
        reader.consume(zeros);
        if more {
            return Ok(true);
        }
    }
}

/// Reads xz in small pieces. A call of its decoder that fails loses what it has decoded, so that a
/// large one would lose much of a file that is cut off.
struct Pieces<R> {
    inner: R,
    /// Error after the pieces that were returned.
    failure: Option<io::Error>,
}

impl<R: Read> Pieces<R> {
    const PIECE: usize = 1 << 12;
    /// Bytes to return at most, so that a slow pipe is not waited for too long.
    const MOST: usize = 1 << 16;

    fn new(inner: R) -> Self {
        Self { inner, failure: None }
    }
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut filled = 0;
        let most = buffer.len().min(Self::MOST);
        while filled < most {
            match self.inner.read(&mut buffer[filled..most.min(filled + Self::PIECE)]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if filled == 0 => return Err(error),
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        Ok(filled)
    }
}

/// Opens a file. If there is a flag that may end it, a pipe or device is opened and read on threads
/// of their own: opening a named pipe waits for a writer.
pub(crate) fn open_path(path: &Path, interrupt: Option<&Arc<AtomicBool>>) -> io::Result<Box<dyn Read>> {
    let Some(flag) = interrupt.filter(|_| !path.is_file()) else { return Ok(Box::new(File::open(path)?)) };
    let (sender, opened) = sync_channel(1);
    let path = path.to_owned();
    std::thread::spawn(move || sender.send(File::open(path)));
    let file = wait(&opened, flag)?.ok_or(ErrorKind::NotFound)??;
    Ok(Box::new(Interruptible::new(file, flag.clone())))
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

const LOOK_AT_FLAG: Duration = Duration::from_millis(50);

/// Waits for what a thread sends, or for the flag, which is `Interrupted`. `None` when the thread
/// has ended.
fn wait<T>(sent: &Receiver<T>, flag: &AtomicBool) -> io::Result<Option<T>> {
    loop {
        if flag.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        match sent.recv_timeout(LOOK_AT_FLAG) {
            Ok(sent) => return Ok(Some(sent)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        }
    }
}

/// Reads on a thread of its own, so that waiting for a silent pipe can be given up when a flag is
/// set.
///
/// A blocked `read` cannot be called off portably (signal handlers commonly restart it). The thread
/// that stays behind in it ends with the next byte or with the process.
struct Interruptible {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Cursor<Vec<u8>>,
    flag: Arc<AtomicBool>,
}

impl Interruptible {
    const CHUNK: usize = 1 << 17;

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
            match wait(&self.chunks, &self.flag)?.transpose()? {
                Some(chunk) if !chunk.is_empty() => self.current = Cursor::new(chunk),
                _ => return Ok(0),
            }
        }
    }
}
