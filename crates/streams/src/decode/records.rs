//! `records:BYTES`: binary keys of one size, one after the other.

use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};

pub(super) struct Records {
    width: usize,
}

impl Records {
    /// Keys of `width` bytes, at least 1.
    pub fn new(width: usize) -> Self {
        Self { width }
    }
}

impl Decode for Records {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let whole = window.bytes.len() / self.width * self.width;
        out.block(self.width, &window.bytes[..whole], window.offset)?;
        let left = window.bytes.len() - whole;
        if window.end && left > 0 {
            let offset = window.offset + whole as u64;
            return Err(Halt::Damaged(format!(
                "{}: the input ends {left} bytes into the {}-byte record at byte offset {offset}",
                out.input, self.width
            )));
        }
        Ok(whole)
    }

    fn can_start_here(&self) -> bool {
        true
    }
}
