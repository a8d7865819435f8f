//! Reading from memory, and readers that behave badly.

use std::io::{self, Read};
use std::ops::ControlFlow;

use ucl_streams::{OnError, ReadError, ReadOptions, ReadSummary, read_from};

pub type Items = Vec<(Vec<u8>, u64)>;

/// Options for a format and weight as a user writes them.
pub fn options(format: &str, weight: Option<&str>, on_error: OnError) -> ReadOptions {
    let format: ucl_streams::Format = format.parse().unwrap();
    let weight = weight.map(|text| format.parse_weight(text).unwrap());
    ReadOptions { format, weight, on_error, ..ReadOptions::default() }
}

/// All items, and how it ended.
pub fn collect(reader: impl Read, options: &ReadOptions) -> (Items, Result<ReadSummary, ReadError>) {
    let mut items = Items::new();
    let result = read_from(reader, "input", options, &mut |batch| {
        assert!(!batch.is_empty() && batch.len() <= ucl_streams::BATCH_ITEMS);
        items.extend(batch.items().map(|(key, weight)| (key.to_vec(), weight)));
        ControlFlow::Continue(())
    });
    (items, result)
}

/// Keys of an input that has nothing wrong with it.
pub fn keys(format: &str, input: &[u8]) -> Vec<String> {
    let (items, result) = collect(input, &options(format, None, OnError::Stop));
    let summary = result.unwrap();
    assert_eq!(summary.items, items.len() as u64);
    assert_eq!(summary.bytes_read, input.len() as u64);
    items.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect()
}

/// Keys and weights of an input that has nothing wrong with it.
pub fn weighted(format: &str, weight: &str, input: &[u8]) -> Vec<(String, u64)> {
    let (items, result) = collect(input, &options(format, Some(weight), OnError::Stop));
    assert_eq!(result.unwrap().weight, items.iter().map(|(_, w)| u128::from(*w)).sum::<u128>());
    items.into_iter().map(|(key, weight)| (String::from_utf8(key).unwrap(), weight)).collect()
}

/// Reads a bad input twice: stopping, which must deliver `before` and the message, and skipping,
/// which must deliver `all`.
pub fn bad(format: &str, weight: Option<&str>, input: &[u8], before: usize, message: &str, all: &[&str]) {
    let (items, result) = collect(input, &options(format, weight, OnError::Stop));
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!((items.len(), error.summary.items), (before, before as u64));
    let (items, result) = collect(input, &options(format, weight, OnError::Skip));
    let summary = result.unwrap();
    let got: Vec<_> = items.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect();
    assert_eq!(got, all);
    assert!(summary.skipped > 0 || summary.truncated.is_some());
    match summary.first_skip {
        Some(skip) => assert_eq!(skip.to_string(), message),
        None => assert_eq!(summary.truncated.as_deref(), Some(message)),
    }
}

/// Hands out a few bytes at a time: the given counts, over and over, with the odd interrupted call
/// in between.
pub struct Trickle<'t> {
    pub data: &'t [u8],
    pub steps: Vec<usize>,
    pub calls: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.steps[self.calls % self.steps.len()].min(buffer.len()).min(self.data.len());
        let (now, later) = self.data.split_at(n);
        buffer[..n].copy_from_slice(now);
        self.data = later;
        Ok(n)
    }
}
