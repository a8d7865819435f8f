//! Full blocks are decoded one at a cut, so that no item waits for all of them.

use std::borrow::Cow;
use std::sync::Arc;

use ucl_equations::em;

use super::decode::Search;
use super::{BLOCK, Delta, Epoch, KEYS_PER_COUNTER, ROOM, WAITING, blocks_of, is_full};
use crate::decoder::DecodeError;
use crate::segment::Segment;

/// Full blocks are decoded one at a cut, so that no item waits for all of them. A state has all
/// that are due decoded ([`Delta::settled`]).
#[derive(Clone, Debug, Default)]
pub(super) enum Slices {
    /// None is to be decoded yet.
    #[default]
    None,
    /// The first of those that wait.
    Due,
    /// The next ones of a search, which has so many epochs, and before them some that were decoded.
    Searched { search: Arc<Search>, epochs: usize, decoded: usize },
}

impl Delta {
    /// Decodes a block of those that wait, if it is time. That follows from what was counted alone,
    /// never from how fast.
    pub fn decode_due(&mut self, segment: &Segment, options: &em::Options) -> Result<(), DecodeError> {
        if is_full(&self.pending[self.full..]) {
            // First what has been due since before: what is due now is the same with and without.
            self.settle(segment, options)?;
            if self.is_due() {
                self.slices = Slices::Due;
            }
        }
        if matches!(self.slices, Slices::None) { Ok(()) } else { self.decode_slice(segment, options) }
    }

    /// Whether the full blocks wait no more for others, one having become full just now.
    fn is_due(&mut self) -> bool {
        self.full = self.pending.len();
        let bytes: usize = self.pending.iter().map(Epoch::memory).sum();
        let known = self.pending.last().map_or(0, |last| last.known as usize);
        let no_room = self.full + BLOCK > WAITING || bytes * (self.full + BLOCK) > ROOM * known * self.full;
        no_room || {
            let touched: usize = self.pending.iter().map(|epoch| epoch.counters.touched().count()).sum();
            known <= KEYS_PER_COUNTER * touched
        }
    }

    /// Decodes the first block of those that wait; for several of them the candidates are found in
    /// one go.
    fn decode_slice(&mut self, segment: &Segment, options: &em::Options) -> Result<(), DecodeError> {
        let full: Vec<&Epoch> = self.pending[..self.full].iter().collect();
        let blocks = blocks_of(&self.pending[..self.full], &full);
        let Some(&block) = blocks.first() else {
            self.slices = Slices::None;
            return Ok(());
        };
        let (search, epochs, decoded) = match std::mem::take(&mut self.slices) {
            Slices::Searched { search, epochs, decoded } => (search, epochs, decoded),
            Slices::Due | Slices::None => {
                self.columns_read += segment.columns().len() as u64;
                (Arc::new(Search::new(segment, &blocks)?), full.len(), 0)
            }
        };
        rayon::scope(|_| self.totals.add_block(segment, block, &search, decoded, options, &mut self.series))?;
        let decoded = decoded + block.len();
        let len = block.len();
        self.pending.drain(..len);
        self.full -= len;
        if decoded < epochs {
            self.slices = Slices::Searched { search, epochs, decoded };
        }
        Ok(())
    }

    /// The same with all blocks decoded that are due.
    pub fn settled(&self, segment: &Segment, options: &em::Options) -> Result<Cow<'_, Self>, DecodeError> {
        if matches!(self.slices, Slices::None) {
            return Ok(Cow::Borrowed(self));
        }
        let mut settled = self.clone();
        settled.settle(segment, options)?;
        Ok(Cow::Owned(settled))
    }

    /// Decodes all blocks that are due.
    fn settle(&mut self, segment: &Segment, options: &em::Options) -> Result<(), DecodeError> {
        while !matches!(self.slices, Slices::None) {
            self.decode_slice(segment, options)?;
        }
        Ok(())
    }
}
