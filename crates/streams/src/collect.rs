//! Gathers the items of a decoder into batches for the consumer, keeps the totals, and decides when
//! to stop.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::batch::{Batch, BatchBuf};
use crate::error::{BadReason, BadRecord, Place, ReadErrorKind};
use crate::options::{Ended, OnError, Progress, ReadOptions, ReadSummary};
use crate::{BATCH_ITEMS, MAX_KEY_BYTES, MAX_WEIGHT};

/// A batch of long keys is handed on before it has `BATCH_ITEMS` items.
const BATCH_KEY_BYTES: usize = 1 << 20;

/// Callback that takes one batch. `Break` ends the reading.
pub type Consumer<'c> = dyn FnMut(Batch<'_>) -> ControlFlow<()> + 'c;

/// Why a decoder has to return at once.
#[derive(Debug)]
pub(crate) enum Halt {
    /// All is well, but no more items are wanted.
    Done(Ended),
    /// This input cannot be read any further; the text says where and why.
    Damaged(String),
    /// Reading failed.
    Failed(ReadErrorKind),
}

pub(crate) struct Collector<'c> {
    buffer: BatchBuf,
    each: &'c mut Consumer<'c>,
    on_error: OnError,
    key_bytes: Option<usize>,
    /// Weight that all further items may have together.
    weight_left: u64,
    /// Factor for weights.
    pub scale: u64,
    limit: u64,
    /// Items the current batch may hold: `BATCH_ITEMS`, less when the limit is near.
    room: usize,
    interrupt: Option<Arc<AtomicBool>>,
    progress: Option<Arc<Progress>>,
    /// The input being read, for messages.
    pub input: String,
    /// Mark of the next batch: see [`Batch::mark`].
    pub mark: Option<u64>,
    pub summary: ReadSummary,
}

impl<'c> Collector<'c> {
    pub fn new(options: &ReadOptions, each: &'c mut Consumer<'c>) -> Self {
        let limit = options.limit.unwrap_or(u64::MAX);
        Self {
            buffer: BatchBuf::new(),
            each,
            on_error: options.on_error,
            key_bytes: options.key_bytes,
            weight_left: MAX_WEIGHT.saturating_sub(options.weight_before),
            scale: options.scale.map_or(1, NonZeroU64::get),
            limit,
            room: room(limit),
            interrupt: options.interrupt.clone(),
            progress: options.progress.clone(),
            input: String::new(),
            mark: None,
            summary: ReadSummary::default(),
        }
    }

    /// Returns an error if reading has to stop here.
    pub fn check(&self) -> Result<(), Halt> {
        if self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Halt::Done(Ended::Interrupt));
        }
        if self.summary.items >= self.limit { Err(Halt::Done(Ended::Limit)) } else { Ok(()) }
    }

    /// Adds one item, unless its weight is 0.
    #[inline]
    pub fn key(&mut self, key: &[u8], weight: u64, place: Place) -> Result<(), Halt> {
        if key.len() > MAX_KEY_BYTES {
            return self.bad(place, BadReason::KeyTooLong { bytes: key.len() });
        }
        if let Some(wanted) = self.key_bytes.filter(|&bytes| bytes != key.len()) {
            return self.bad(place, BadReason::KeySize { bytes: key.len(), wanted });
        }
        if weight == 0 {
            self.summary.zero_weight += 1;
            return Ok(());
        }
        match self.weight_left.checked_sub(weight) {
            Some(left) => self.weight_left = left,
            None => return self.bad(place, BadReason::TotalWeight { weight }),
        }
        self.buffer.push(key, weight);
        // After the item and not before the next one: the last item of a limited live stream must
        // not wait for another.
        if self.buffer.len() == self.room || self.buffer.key_bytes() >= BATCH_KEY_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds keys of `width` bytes that lie side by side from this byte offset on; a remainder
    /// shorter than a key is left out.
    pub fn block(&mut self, width: usize, mut keys: &[u8], offset: u64) -> Result<(), Halt> {
        let left = self.weight_left.checked_sub((keys.len() / width) as u64);
        let Some(left) = left.filter(|_| self.key_bytes.is_none_or(|bytes| bytes == width)) else {
            // One of them is bad, and has to be named by its place.
            let mut places = (offset..).step_by(width).map(Place::Byte);
            return keys.chunks_exact(width).zip(&mut places).try_for_each(|(key, place)| self.key(key, 1, place));
        };
        self.weight_left = left;
        while keys.len() >= width {
            let take = (self.room - self.buffer.len()).min(keys.len() / width) * width;
            self.buffer.push_block(width, &keys[..take]);
            keys = &keys[take..];
            if self.buffer.len() == self.room || self.buffer.key_bytes() >= BATCH_KEY_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Records that a record is not an item.
    #[cold]
    pub fn bad(&mut self, place: Place, reason: BadReason) -> Result<(), Halt> {
        let record = BadRecord { input: self.input.clone(), place, reason };
        match self.on_error {
            OnError::Stop => Err(Halt::Failed(ReadErrorKind::Bad(record))),
            OnError::Skip => {
                self.summary.skipped += 1;
                self.summary.first_skip.get_or_insert(record);
                Ok(())
            }
        }
    }

    /// Records that an input cannot be read to its end.
    pub fn damaged(&mut self, message: String) -> Result<(), Halt> {
        match self.on_error {
            OnError::Stop => Err(Halt::Failed(ReadErrorKind::Truncated(message))),
            OnError::Skip => {
                self.summary.truncated.get_or_insert(message);
                Ok(())
            }
        }
    }

    /// Hands on what has been gathered, then looks whether to go on.
    pub fn flush(&mut self) -> Result<(), Halt> {
        if self.buffer.is_empty() {
            return self.check();
        }
        let mut batch = self.buffer.as_batch();
        batch.mark = self.mark.take();
        self.summary.items += batch.len() as u64;
        self.summary.weight += batch.total_weight();
        if let Some(progress) = &self.progress {
            progress.add_items(batch.len() as u64);
        }
        let answer = (self.each)(batch);
        self.buffer.clear();
        self.room = room(self.limit - self.summary.items);
        if answer.is_break() { Err(Halt::Done(Ended::Consumer)) } else { self.check() }
    }
}

fn room(left: u64) -> usize {
    left.min(BATCH_ITEMS as u64) as usize
}
