//! `lines` and `field:N`, and the splitting into lines that `jsonl` shares.

use memchr::memchr_iter;

use super::weight::weight;
use super::{Decode, Window};
use crate::MAX_RECORD_BYTES;
use crate::collect::{Collector, Halt};
use crate::error::{BadReason, Place};

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
        window: Window<'_>,
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
}

/// `lines`: the whole line is the key, also of an empty one: there are as many items as lines.
#[derive(Default)]
pub(super) struct Lines {
    splitter: Splitter,
}

impl Decode for Lines {
    fn decode(&mut self, window: Window<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        self.splitter.split(window, out, |line, place, out| out.key(line, 1, place))
    }
}

/// `field:N`: columns are separated by runs of blanks and tabs; leading ones do not count. Blank
/// lines are no records.
pub(super) struct Fields {
    splitter: Splitter,
    key: usize,
    weight: Option<usize>,
}

impl Fields {
    /// Columns count from 1.
    pub fn new(key: usize, weight: Option<usize>) -> Self {
        Self { splitter: Splitter::default(), key, weight }
    }
}

impl Decode for Fields {
    fn decode(&mut self, window: Window<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let (wanted_key, wanted_weight) = (self.key, self.weight);
        let last = wanted_key.max(wanted_weight.unwrap_or(0));
        self.splitter.split(window, out, |line, place, out| {
            let (mut key, mut weight_text, mut found) = (&[][..], None, 0);
            let fields = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty());
            for field in fields.take(last) {
                found += 1;
                if found == wanted_key {
                    key = field;
                }
                if Some(found) == wanted_weight {
                    weight_text = Some(field);
                }
            }
            if found == 0 {
                return Ok(());
            }
            if found < last {
                return out.bad(place, BadReason::MissingColumn { wanted: last, found });
            }
            match weight_text {
                None => out.key(key, 1, place),
                Some(text) => match weight(text, place, out)? {
                    Some(weight) => out.key(key, weight, place),
                    None => Ok(()),
                },
            }
        })
    }
}
