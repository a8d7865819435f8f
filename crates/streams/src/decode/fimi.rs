//! `fimi`: the format of the frequent-itemset repositories; every blank-separated token is an item.

use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};
use crate::error::{BadReason, Place};
use crate::key_text::fimi_key;
use crate::{MAX_KEY_BYTES, MAX_RECORD_BYTES};

#[derive(Default)]
pub(super) struct Fimi {
    /// Newlines seen so far.
    lines: u64,
    /// Inside a token that is too long and was given up.
    overlong: bool,
}

impl Fimi {
    /// Takes a token; `number` is what its digits come to, if there is nothing but digits.
    #[inline]
    fn token(&self, token: &[u8], number: Option<u64>, out: &mut Collector<'_>) -> Result<(), Halt> {
        let place = Place::Line(self.lines + 1);
        match number.and_then(|number| u32::try_from(number).ok()) {
            // Ten digits cannot have overflowed; a leading zero makes it a text.
            Some(number) if token.len() == 1 || (token.len() <= 10 && token[0] != b'0') => {
                out.key(&number.to_le_bytes(), 1, place)
            }
            _ if token.len() > MAX_KEY_BYTES => out.bad(place, BadReason::KeyTooLong { bytes: token.len() }),
            _ => out.key(&fimi_key(token), 1, place),
        }
    }
}

impl Decode for Fimi {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let bytes = window.bytes;
        let mut start = 0;
        let mut number = Some(0u64);
        // Numbers are worked out on the way to their end: tokens are so short that a second look at
        // them costs a third of the time.
        for (at, &byte) in bytes.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                number = number.map(|number| number.wrapping_mul(10).wrapping_add(u64::from(digit)));
                continue;
            }
            if !byte.is_ascii_whitespace() {
                number = None;
                continue;
            }
            if self.overlong {
                self.overlong = false;
            } else if at > start {
                self.token(&bytes[start..at], number, out)?;
            }
            start = at + 1;
            number = Some(0);
            self.lines += u64::from(byte == b'\n');
        }
        let rest = &bytes[start..];
        if window.end {
            if !rest.is_empty() && !self.overlong {
                self.token(rest, number, out)?;
            }
            return Ok(bytes.len());
        }
        if rest.len() >= MAX_RECORD_BYTES && !self.overlong {
            self.overlong = true;
            out.bad(Place::Line(self.lines + 1), BadReason::RecordTooLong)?;
        }
        Ok(if self.overlong { bytes.len() } else { start })
    }
}
