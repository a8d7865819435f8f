//! The reading loop: one `read` call, one decode, one hand-over; repeat.
//!
//! A decoder gets a window of bytes and says how many it used up; what is left is shown again with
//! more bytes behind it. After every `read` call the items found are handed on, so that a slow pipe
//! never holds back what it has delivered, and a fast file still comes in batches of thousands.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::collect::{Collector, Consumer, Halt};
use crate::content::{self, Look};
use crate::decode::{self, Decode, ReadWindow};
use crate::error::{ReadError, ReadErrorKind};
#[cfg(feature = "parquet")]
use crate::format::Format;
use crate::open::{self, Opened, Packing, XZ_DICTIONARY_MB};
use crate::options::{Ended, ReadOptions, ReadSummary};
use crate::source::Source;

/// Decoded bytes asked for at a time: well inside the second-level cache, far above the cost of a
/// system call.
const WINDOW: usize = 1 << 18;

/// Reads all sources in order and passes their items to `each` in batches.
///
/// Compression (gzip, zstd, xz and bzip2, in any number of parts) is recognised by content, and so
/// is [`Content`](crate::Content) that the format cannot read. A last line without newline counts;
/// a file without bytes has no items. [`ReadOptions`] holds the rest.
///
/// # Errors
/// An input that cannot be opened or read; with [`OnError::Stop`](crate::OnError::Stop) also a bad
/// record and a truncated or damaged input. The items before it have been delivered, and the error
/// carries their summary.
///
/// ```
/// use std::ops::ControlFlow;
/// use ucl_streams::{ExactCounts, ReadOptions, Source, read};
///
/// let sources: Vec<Source> = vec!["zipf:1.2:10000".parse()?];
/// let mut counts = ExactCounts::new();
/// let summary = read(&sources, &ReadOptions::default(), &mut |batch| {
///     counts.insert_batch(batch);
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(summary.items, 10_000);
/// assert_eq!(counts.total(), 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read<'c>(
    sources: &[Source],
    options: &ReadOptions,
    each: &'c mut Consumer<'c>,
) -> Result<ReadSummary, ReadError> {
    if let Some(progress) = &options.progress {
        progress.start(total_size(sources));
    }
    let mut out = Collector::new(options, each);
    let result = sources.iter().try_for_each(|source| read_source(source, options, &mut out));
    conclude(result, out)
}

/// Reads one stream of bytes from memory or any reader. Messages call it `name`.
///
/// # Errors
/// As [`read`].
///
/// ```
/// use std::ops::ControlFlow;
/// use ucl_streams::{ReadOptions, read_from};
///
/// let mut keys = Vec::new();
/// read_from(&b"to be\nor not"[..], "memory", &ReadOptions::default(), &mut |batch| {
///     keys.extend(batch.keys().map(<[u8]>::to_vec));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(keys, [b"to be", b"or not" as &[u8]]);
/// # Ok::<(), ucl_streams::ReadError>(())
/// ```
pub fn read_from<'c>(
    reader: impl Read,
    name: &str,
    options: &ReadOptions,
    each: &'c mut Consumer<'c>,
) -> Result<ReadSummary, ReadError> {
    if let Some(progress) = &options.progress {
        progress.start(None);
    }
    let mut out = Collector::new(options, each);
    let result = read_bytes(reader, name.to_owned(), options, &mut out);
    conclude(result, out)
}

/// Sum of the sizes of all files, if all sources are files.
fn total_size(sources: &[Source]) -> Option<u64> {
    sources.iter().try_fold(0u64, |sum, source| match source {
        Source::Path(path) => {
            let meta = std::fs::metadata(path).ok()?;
            meta.is_file().then(|| sum.saturating_add(meta.len()))
        }
        Source::Stdin | Source::Generator(_) => None,
    })
}

fn conclude(result: Result<(), Halt>, mut out: Collector<'_>) -> Result<ReadSummary, ReadError> {
    // What was gathered before a failure is delivered; a wish to stop that comes up only then
    // changes nothing.
    let flushed = match &result {
        Err(Halt::Done(_)) => Ok(()),
        _ => out.flush(),
    };
    let mut summary = out.summary;
    match (result, flushed) {
        (Err(Halt::Failed(kind)), _) => return Err(ReadError { kind, summary: Box::new(summary) }),
        (Err(Halt::Damaged(message)), _) => {
            return Err(ReadError { kind: ReadErrorKind::Truncated(message), summary: Box::new(summary) });
        }
        (Err(Halt::Done(ended)), _) => summary.ended = ended,
        (Ok(()), _) => summary.ended = Ended::Input,
    }
    Ok(summary)
}

fn read_source(source: &Source, options: &ReadOptions, out: &mut Collector<'_>) -> Result<(), Halt> {
    #[cfg(feature = "parquet")]
    if let (Source::Path(path), Format::Parquet(keys), false) = (source, &options.format, options.raw) {
        out.input = source.to_string();
        out.check()?;
        return match crate::parquet::read_file(path, keys, options.weight.as_ref(), out) {
            Err(Halt::Damaged(message)) => {
                out.flush()?;
                out.damaged(message)
            }
            other => other,
        };
    }
    let opened: io::Result<Box<dyn Read>> = match source {
        Source::Generator(generator) => {
            out.check()?;
            return generator.run(options.seed, out);
        }
        Source::Stdin => Ok(open::open_stdin(options.interrupt.as_ref())),
        Source::Path(path) => open::open_path(path, options.interrupt.as_ref()),
    };
    let reader = opened.map_err(|error| match error.kind() {
        ErrorKind::Interrupted => Halt::Done(Ended::Interrupt),
        _ => Halt::Failed(ReadErrorKind::Open { input: source.to_string(), error }),
    })?;
    read_bytes(reader, source.to_string(), options, out)
}

fn read_bytes(reader: impl Read, name: String, options: &ReadOptions, out: &mut Collector<'_>) -> Result<(), Halt> {
    out.input = name;
    let mut decoder = decode::for_options(options).map_err(|error| Halt::Failed(ReadErrorKind::Spec(error)))?;
    out.check()?;
    let reader = Retrying { inner: reader, flag: options.interrupt.clone() };
    let opened = open::unpack(reader, options.progress.clone(), options.raw);
    let mut opened = match opened {
        Ok(opened) => opened,
        Err(error) => return Err(stop_or_fail(error, out, 0)),
    };
    let result = pump(&mut opened, decoder.as_mut(), options, out);
    out.summary.bytes_read += opened.stored.bytes.get();
    match result {
        Err(Halt::Damaged(message)) => {
            out.flush()?;
            out.damaged(message)
        }
        other => other,
    }
}

fn pump(
    opened: &mut Opened<'_>,
    decoder: &mut dyn Decode,
    options: &ReadOptions,
    out: &mut Collector<'_>,
) -> Result<(), Halt> {
    let mut window = vec![0; WINDOW];
    let mut filled = 0;
    let mut offset = 0u64;
    let mut recognised = options.raw;
    loop {
        if filled == window.len() {
            // A record longer than the window. Decoders give up on records past `MAX_RECORD_BYTES`,
            // so this ends.
            window.resize(2 * window.len(), 0);
        }
        let read = match opened.plain.read(&mut window[filled..]) {
            Ok(n) => n,
            Err(error) => return Err(broken(error, opened, offset + filled as u64, out)),
        };
        filled += read;
        out.summary.bytes_decoded += read as u64;
        let end = read == 0;
        if !recognised {
            match content::look_at(&window[..filled]) {
                Look::Is(content) if !content.suits(&options.format) => {
                    return Err(Halt::Failed(ReadErrorKind::Content { input: out.input.clone(), content }));
                }
                Look::NeedMore if !end => continue,
                _ => recognised = true,
            }
        }
        let used = decoder.decode(ReadWindow { bytes: &window[..filled], offset, end }, out)?;
        let plain = opened.packing == Packing::Plain;
        out.mark = (plain && decoder.can_start_here()).then_some(offset + used as u64);
        out.flush()?;
        out.mark = None;
        if end {
            return Ok(());
        }
        window.copy_within(used..filled, 0);
        filled -= used;
        offset += used as u64;
    }
}

/// A failed read: the user's interrupt, the system's failure, or a decompressor that cannot go on.
fn broken(error: io::Error, opened: &Opened<'_>, offset: u64, out: &Collector<'_>) -> Halt {
    let stored = opened.stored.bytes.get();
    if opened.packing == Packing::Plain || opened.stored.failed.get() || error.kind() == ErrorKind::Interrupted {
        return stop_or_fail(error, out, stored);
    }
    let packing = opened.packing.name();
    // The two errors of zstd that say nothing against the data; it has no kinds of errors, only
    // texts.
    let too_large = ["Frame requires too much memory for decoding", "Allocation error : not enough memory"];
    if opened.packing == Packing::Zstd && too_large.contains(&error.to_string().as_str()) {
        return Halt::Damaged(format!(
            "{}: the zstd data near byte {stored} needs a larger window than there is memory for ({error}); compress it \
             with `zstd --long=27` or less",
            out.input
        ));
    }
    if opened.packing == Packing::Xz && error.kind() == ErrorKind::OutOfMemory {
        return Halt::Damaged(format!(
            "{}: the xz data near byte {stored} needs a dictionary of more than {XZ_DICTIONARY_MB}MB; compress it with \
             `xz -9` or less",
            out.input
        ));
    }
    let what = if error.kind() == ErrorKind::UnexpectedEof { "is truncated" } else { "is damaged" };
    Halt::Damaged(format!(
        "{}: the {packing} data {what} near byte {stored} ({error}); the {offset} bytes before it were read",
        out.input
    ))
}

fn stop_or_fail(error: io::Error, out: &Collector<'_>, offset: u64) -> Halt {
    if error.kind() == ErrorKind::Interrupted {
        Halt::Done(Ended::Interrupt)
    } else {
        Halt::Failed(ReadErrorKind::Io { input: out.input.clone(), offset, error })
    }
}

/// Repeats reads that a signal cut short, unless the flag says that this was the end.
struct Retrying<R> {
    inner: R,
    flag: Option<Arc<AtomicBool>>,
}

impl<R: Read> Read for Retrying<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if self.flag.as_ref().is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed)) {
                        return Err(error);
                    }
                }
                result => return result,
            }
        }
    }
}
