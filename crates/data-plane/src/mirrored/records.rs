//! What a sorted batch says, record by record.

use super::WAYS;
use super::batch::{Batch, Waiting};
use super::model::Record;
use super::table::{SlotLayout, Table};

/// The records of a sorted batch, in the order in which they are sent, and then the end.
///
/// One place asks for them and codes them, so that the coder is compiled once, in registers.
pub struct Records<'a> {
    pub table: &'a Table,
    pub layout: &'a SlotLayout,
    pub batch: &'a Batch,
    /// A record that the batch has no room for, to be sent after it.
    pub alone: Option<Record>,
    /// The next one of the batch.
    at: usize,
    /// Of this set and since its last change of holders, how often counts were filled, and of which
    /// ways: they are added up.
    set: u32,
    filled: [u64; WAYS],
    ways: u32,
}

impl<'a> Records<'a> {
    pub fn new(table: &'a Table, layout: &'a SlotLayout, batch: &'a Batch, alone: Option<Record>) -> Self {
        Self { table, layout, batch, alone, at: 0, set: 0, filled: [0; WAYS], ways: 0 }
    }

    #[inline(always)]
    pub fn next(&mut self) -> Record {
        loop {
            let next = (self.at < self.batch.len()).then(|| self.batch.get(self.at));
            match next {
                Some((set, _, Waiting::Full { way, times })) if self.ways == 0 || set == self.set => {
                    self.set = set;
                    self.filled[way] += times;
                    self.ways |= 1 << way;
                    self.at += 1;
                }
                Some((set, _, Waiting::Miss { way, count })) if self.ways == 0 => {
                    let newcomer = match self.batch.newcomer(self.at, set) {
                        Ok(way) => self.table.tag::<false>(set, way),
                        Err(packed) => self.layout.unpack(packed),
                    };
                    self.at += 1;
                    return Record::Miss { set, way, count, newcomer };
                }
                None if self.ways == 0 => return self.alone.take().unwrap_or(Record::End),
                // A change of holders, another set or the end is next.
                _ => {
                    let way = self.ways.trailing_zeros() as usize;
                    self.ways &= self.ways - 1;
                    return Record::Full { set: self.set, way, times: core::mem::take(&mut self.filled[way]) };
                }
            }
        }
    }
}
