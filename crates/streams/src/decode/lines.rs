//! `lines` and `field:N`, and the splitting into lines that `jsonl` shares.

use memchr::memchr_iter;

use super::weight::weight;
use super::{Decode, ReadWindow};
use crate::MAX_RECORD_BYTES;
use crate::collect::{Collector, Halt};
use crate::composite::push_part;
use crate::error::{BadReason, Place};
use crate::options::Delimiter;

/// Cuts windows at `\n`, drops a `\r` before it, counts lines.
#[derive(Default)]
pub(super) struct Splitter {
    /// Lines seen so far.
    lines: u64,
    /// Bytes at the start of the next window known to hold no newline, so that a long line is
    /// searched once.
    searched: usize,
    /// Inside a line that is too long and was given up.
    overlong: bool,
}

impl Splitter {
    /// Calls `each` with every whole line and its number.
    #[inline]
    pub fn split(
        &mut self,
        window: ReadWindow<'_>,
        out: &mut Collector<'_>,
        mut each: impl FnMut(&[u8], Place, &mut Collector<'_>) -> Result<(), Halt>,
    ) -> Result<usize, Halt> {
        let bytes = window.bytes;
        let mut start = 0;
        for found in memchr_iter(b'\n', &bytes[self.searched..]) {
            let end = self.searched + found;
            self.lines += 1;
            if self.overlong {
                self.overlong = false;
            } else {
                let line = &bytes[start..end];
                each(line.strip_suffix(b"\r").unwrap_or(line), Place::Line(self.lines), out)?;
            }
            start = end + 1;
        }
        let rest = &bytes[start..];
        if window.end {
            if !rest.is_empty() && !self.overlong {
                self.lines += 1;
                each(rest.strip_suffix(b"\r").unwrap_or(rest), Place::Line(self.lines), out)?;
            }
            return Ok(bytes.len());
        }
        if rest.len() >= MAX_RECORD_BYTES && !self.overlong {
            self.overlong = true;
            out.bad(Place::Line(self.lines + 1), BadReason::RecordTooLong)?;
        }
        if self.overlong {
            start = bytes.len();
        }
        self.searched = bytes.len() - start;
        Ok(start)
    }

    /// Returns true if the bytes used up end with a line.
    pub fn is_between_lines(&self) -> bool {
        !self.overlong
    }
}

/// `lines`: the whole line is the key, also of an empty one: there are as many items as lines.
#[derive(Default)]
pub(super) struct Lines {
    splitter: Splitter,
}

impl Decode for Lines {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        self.splitter.split(window, out, |line, place, out| out.key(line, 1, place))
    }

    fn can_start_here(&self) -> bool {
        self.splitter.is_between_lines()
    }
}

/// `field:N`: columns are separated by runs of blanks and tabs, where leading ones do not count, or
/// by each delimiter if there is one. Blank lines are no records.
pub(super) struct Fields {
    splitter: Splitter,
    wanted: Wanted,
    delimiter: Option<Delimiter>,
}

/// Column numbers, from 1, and the key that is being made of several of them.
struct Wanted {
    keys: Vec<usize>,
    weight: Option<usize>,
    last: usize,
    key: Vec<u8>,
}

impl Fields {
    /// Columns count from 1. There is at least one key.
    pub fn new(keys: Vec<usize>, weight: Option<usize>, delimiter: Option<Delimiter>) -> Self {
        let last = keys.iter().copied().chain(weight).max().unwrap_or(1);
        let wanted = Wanted { keys, weight, last, key: Vec::new() };
        Self { splitter: Splitter::default(), wanted, delimiter }
    }
}

impl Wanted {
    #[inline]
    fn take<'l>(
        &mut self,
        fields: impl Iterator<Item = &'l [u8]> + Clone,
        place: Place,
        out: &mut Collector<'_>,
    ) -> Result<(), Halt> {
        let first_key = self.keys[0];
        let mut key = &[][..];
        let mut weight_text = None;
        let mut found = 0;
        for field in fields.clone().take(self.last) {
            found += 1;
            if found == first_key {
                key = field;
            }
            if Some(found) == self.weight {
                weight_text = Some(field);
            }
        }
        if found < self.last {
            return out.bad(place, BadReason::MissingColumn { wanted: self.last, found });
        }
        if self.keys.len() > 1 {
            self.key.clear();
            for (index, number) in self.keys.iter().enumerate() {
                // Keys have few parts: to look at the line again for each of them is cheap.
                let part = fields.clone().nth(number - 1).unwrap_or_default();
                push_part(&mut self.key, part, index == 0);
            }
            key = &self.key;
        }
        match weight_text {
            None => out.key(key, 1, place),
            Some(text) => match weight(text, place, out)? {
                Some(weight) => out.key(key, weight, place),
                None => Ok(()),
            },
        }
    }
}

impl Decode for Fields {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let wanted = &mut self.wanted;
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        match self.delimiter.map(Delimiter::byte) {
            None => self.splitter.split(window, out, |line, place, out| {
                let fields = line.split(is_blank).filter(|field| !field.is_empty());
                if line.iter().all(is_blank) { Ok(()) } else { wanted.take(fields, place, out) }
            }),
            Some(delimiter) => self.splitter.split(window, out, |line, place, out| {
                let fields = line.split(|byte| *byte == delimiter);
                if line.iter().all(is_blank) { Ok(()) } else { wanted.take(fields, place, out) }
            }),
        }
    }

    fn can_start_here(&self) -> bool {
        self.splitter.is_between_lines()
    }
}
