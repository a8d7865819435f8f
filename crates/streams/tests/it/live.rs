//! Pipes that are slow, limits, interrupts, progress.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use ucl_streams::{Ended, OnError, Progress, ReadOptions, Source, read, read_from};

use crate::support::{collect, options};

/// A pipe in memory: blocks until something is sent, ends when the sender is gone. Pieces are far
/// shorter than any buffer.
struct Pipe(Receiver<&'static [u8]>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Ok(data) = self.0.recv() else { return Ok(0) };
        buffer[..data.len()].copy_from_slice(data);
        Ok(data.len())
    }
}

/// Every piece sent must come out before the next one is sent; a reader that waits would wait for
/// ever.
#[test]
fn nothing_is_held_back() {
    for (format, pieces) in [
        ("lines", [&b"a\nb\npart"[..], b"ial\nc\n", b"d\n"]),
        ("csv:k", [b"k\na\nb\n", b"partial\nc\n", b"d\n"]),
        ("jsonl:/0", [b"[\"a\"]\n[\"b\"]\n", b"[\"partial\"]\n[\"c\"]\n", b"[\"d\"]\n"]),
        ("records:1", [b"ab", b"xc", b"d"]),
    ] {
        let (sender, receiver) = channel();
        sender.send(pieces[0]).unwrap();
        let mut next = pieces[1..].iter();
        let mut sender = Some(sender);
        let mut batches = Vec::new();
        let summary = read_from(Pipe(receiver), "pipe", &options(format, None, OnError::Stop), &mut |batch| {
            batches.push(batch.len());
            match next.next() {
                Some(piece) => sender.as_ref().unwrap().send(piece).unwrap(),
                None => sender = None,
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(batches, [2, 2, 1], "{format}");
        assert_eq!(summary.items, 5);
    }
}

#[test]
fn a_limit_does_not_wait_for_one_more() {
    // The pipe stays open and silent: asking for a fourth line would block.
    let (sender, receiver) = channel();
    sender.send(&b"a\nb\nc\n"[..]).unwrap();
    let options = ReadOptions { limit: Some(3), ..ReadOptions::default() };
    let (items, result) = collect(Pipe(receiver), &options);
    assert_eq!(items.len(), 3);
    assert_eq!(result.unwrap().ended, Ended::Limit);
    drop(sender);
}

#[test]
fn limits_are_exact() {
    let input = "x\n".repeat(20_000);
    for limit in [0, 1, 4095, 4096, 4097, 8192, 19_999, 20_000, 20_001] {
        for format in ["lines", "records:2"] {
            let options = ReadOptions { limit: Some(limit), ..options(format, None, OnError::Stop) };
            let (items, result) = collect(input.as_bytes(), &options);
            assert_eq!(items.len() as u64, limit.min(20_000), "{format}");
            assert_eq!(result.unwrap().ended, if limit > 20_000 { Ended::Input } else { Ended::Limit });
        }
    }
    let options = ReadOptions { limit: Some(7), ..ReadOptions::default() };
    let sources: [Source; 2] = ["zipf:1:5".parse().unwrap(), "zipf:1:5".parse().unwrap()];
    let summary = read(&sources, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(summary.items, 7, "one limit for all sources");
}

#[test]
fn the_consumer_may_stop() {
    let mut batches = 0;
    let options = ReadOptions::default();
    let summary = read(&["zipf:1.1:100000".parse().unwrap()], &options, &mut |_| {
        batches += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!((batches, summary.items, summary.ended), (1, 4096, Ended::Consumer));
}

#[test]
fn interrupts_end_the_input() {
    let flag = Arc::new(AtomicBool::new(false));
    let options = ReadOptions { interrupt: Some(flag.clone()), ..ReadOptions::default() };
    let summary = read(&["zipf:1.1:100000".parse().unwrap()], &options, &mut |_| {
        flag.store(true, Ordering::Relaxed);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((summary.items, summary.ended), (4096, Ended::Interrupt));
}

/// A named pipe whose writer has gone silent: the flag must end the waiting.
#[cfg(target_os = "linux")]
#[test]
fn interrupts_end_a_silent_pipe() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    writer.write_all(b"a\nb\n").unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let options = ReadOptions { interrupt: Some(flag.clone()), ..ReadOptions::default() };
    let mut items = 0;
    let summary = read(&[Source::Path(path.into())], &options, &mut |batch| {
        items += batch.len();
        let flag = flag.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((items, summary.ended), (2, Ended::Interrupt));
    drop(writer);
}

/// A named pipe that nobody writes to: opening it waits, and the flag must end that, too.
#[cfg(unix)]
#[test]
fn interrupts_end_the_wait_for_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let flag = Arc::new(AtomicBool::new(false));
    let options = ReadOptions { interrupt: Some(flag.clone()), ..ReadOptions::default() };
    let sources = ["zipf:1.1:10".parse().unwrap(), Source::Path(path)];
    let summary = read(&sources, &options, &mut |_| {
        let flag = flag.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        });
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((summary.items, summary.ended), (10, Ended::Interrupt));
}

#[test]
fn progress_counts_stored_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.gz");
    let packed = crate::compression::gzip("x\n".repeat(5000).as_bytes());
    std::fs::write(&path, &packed).unwrap();
    let progress = Arc::new(Progress::default());
    let options = ReadOptions { progress: Some(progress.clone()), ..ReadOptions::default() };
    let source = Source::Path(path);
    read(&[source.clone(), source.clone()], &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let size = 2 * packed.len() as u64;
    assert_eq!((progress.items(), progress.bytes(), progress.total_bytes()), (10_000, size, Some(size)));
    read(&[source, "zipf:1:1".parse().unwrap()], &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((progress.items(), progress.total_bytes()), (5001, None), "it starts anew");
}

#[test]
fn failing_reads_are_reported() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("the disk is on fire"));
            }
            buffer[0] = b'a';
            Ok(1)
        }
    }
    for on_error in [OnError::Stop, OnError::Skip] {
        let (items, result) = collect(Broken(false), &options("lines", None, on_error));
        assert_eq!(result.unwrap_err().to_string(), "cannot read input after 1 bytes: the disk is on fire");
        assert!(items.is_empty(), "half a line is no item");
    }
}
