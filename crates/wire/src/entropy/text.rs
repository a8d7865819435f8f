//! Text, as predictions that hold for a while and the bytes where they fail.
//!
//! Names have much in common: hosts, folders, endings. After the same three bytes a name often goes
//! on as an earlier one did. So the place that followed these bytes last is the prediction, and all
//! that is written is for how many bytes it holds, and the byte after them (LZP: C. Bloom, "LZP: a
//! new data compression algorithm", DCC 1996). The reader makes the same predictions: no place is
//! ever written, and the order of names is kept. It is as simple as it is because names come a few
//! thousand at a time. Two thousand names of a message, in bytes a name (`cargo test -p ucl-wire
//! names_are_short -- --nocapture`):
//!
//! | names | as they are | coded byte by byte | predicted |
//! |---|---|---|---|
//! | `/product/831` | 13.3 | 6.6 | 2.8 |
//! | `https://news.example/c4ca42.html` | 32.0 | 17.5 | 4.5 |
//! | `100.115.135.148 161.13.107.160:443 6` | 33.6 | 14.7 | 13.2 |
//!
//! ```text
//! text = 0 block                                 where predictions do not help
//!      | 1 varint(n) n values, block             how long each holds; the other bytes
//! ```
//! The length of the text is known from elsewhere. No text is no bytes.

use alloc::vec;
use alloc::vec::Vec;

use ucl_data_plane::mirrored::index_of;

use super::block;
use super::values::{self, Scratch};
use crate::WireError;
use crate::bytes::{Reader, put_varint};

const PLAIN: u8 = 0;
const PREDICTED: u8 = 1;

/// Where the text went on after three bytes, by their hash.
struct Places {
    /// Zero for none: nothing goes before the first byte.
    places: Vec<u32>,
    bits: u32,
}

impl Places {
    /// For a text of so many bytes. The table takes no more memory than the text, up to 16KB.
    fn new(bytes: usize) -> Self {
        let bits = (bytes / size_of::<u32>()).max(1).ilog2().clamp(6, 12);
        Self { places: vec![0; 1 << bits], bits }
    }

    /// Notes that the text goes on at its end, and returns where it went on last.
    fn replace(&mut self, text: &[u8]) -> Option<usize> {
        let last = text.last_chunk()?;
        let place = core::mem::replace(&mut self.places[index_of(*last, self.bits)], text.len() as u32);
        (place > 0).then_some(place as usize)
    }
}

/// Appends a text.
pub(crate) fn write(text: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
    if text.is_empty() {
        return;
    }
    let start = out.len();
    out.push(PLAIN);
    block::write(text, 8, &mut scratch.words, out);
    let plain = out.len();
    write_predicted(text, scratch, out);
    if out.len() - plain < plain - start {
        out.drain(start..plain);
    } else {
        out.truncate(plain);
    }
}

fn write_predicted(text: &[u8], scratch: &mut Scratch, out: &mut Vec<u8>) {
    let mut places = Places::new(text.len());
    let (mut lengths, mut others) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        if let Some(place) = places.replace(&text[..at]) {
            let ahead = text[place..].iter().zip(&text[at..]);
            let length = ahead.take_while(|(earlier, now)| earlier == now).count();
            lengths.push(length as u64);
            for _ in 0..length {
                at += 1;
                places.replace(&text[..at]);
            }
        }
        others.extend(text.get(at));
        at += 1;
    }
    out.push(PREDICTED);
    put_varint(out, lengths.len() as u64);
    values::write(lengths.iter().copied(), scratch, out);
    block::write(&others, 8, &mut scratch.words, out);
}

/// Reads a text of `bytes` bytes. The caller has checked that this is no more than it is ready to
/// hold.
pub(crate) fn read(reader: &mut Reader<'_>, bytes: usize, what: &'static str) -> Result<Vec<u8>, WireError> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    match reader.byte(what)? {
        PLAIN => block::read(reader, bytes, 8, what),
        PREDICTED => read_predicted(reader, bytes, what),
        _ => Err(WireError::Corrupt { what }),
    }
}

fn read_predicted(reader: &mut Reader<'_>, bytes: usize, what: &'static str) -> Result<Vec<u8>, WireError> {
    let corrupt = || WireError::Corrupt { what };
    // Each prediction is followed by a byte, but for the last.
    let predictions = reader.bounded(what, bytes as u64)? as usize;
    let lengths = values::read(reader, predictions, what)?;
    let held = lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length));
    let others = held.and_then(|held| (bytes as u64).checked_sub(held)).ok_or_else(corrupt)?;
    let others = block::read(reader, others as usize, 8, what)?;

    let mut places = Places::new(bytes);
    let mut text = Vec::with_capacity(bytes);
    let (mut lengths, mut others) = (lengths.into_iter(), others.into_iter());
    while text.len() < bytes {
        if let Some(place) = places.replace(&text) {
            let length = lengths.next().ok_or_else(corrupt)? as usize;
            // A byte at a time: what is copied may reach into the copy.
            for from in place..place + length {
                text.push(text[from]);
                places.replace(&text);
            }
        }
        // None at the end, or if too few are left: then the text is too short.
        match others.next() {
            Some(byte) => text.push(byte),
            None => break,
        }
    }
    let whole = text.len() == bytes && lengths.next().is_none() && others.next().is_none();
    if whole { Ok(text) } else { Err(corrupt()) }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::{String, ToString};

    use proptest::prelude::*;
    use ucl_streams::SplitMix64;

    use super::*;

    fn written(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(text, &mut Scratch::default(), &mut out);
        out
    }

    fn round_trip(text: &[u8]) -> usize {
        let out = written(text);
        let mut reader = Reader::new(&out);
        assert_eq!(read(&mut reader, text.len(), "test").unwrap(), text);
        reader.end().unwrap();
        out.len()
    }

    /// Bytes a name when coded byte by byte, and predicted.
    fn lengths(name: impl FnMut(u64) -> String) -> [f64; 2] {
        let text: String = (0..2_000).map(name).collect();
        let mut plain = Vec::new();
        block::write(text.as_bytes(), 8, &mut Vec::new(), &mut plain);
        let [raw, plain, here] = [text.len(), plain.len(), round_trip(text.as_bytes())].map(|n| n as f64 / 2e3);
        std::println!("{raw:.1} -> {plain:.1} -> {here:.1}");
        [plain, here]
    }

    #[test]
    fn names_are_short() {
        // The same number for the same place, of some length in bits.
        let number = |i: u64, bits: u32| SplitMix64::new(i).next_u64() >> (64 - bits);
        let [plain, here] = lengths(|i| format!("/product/{}", number(i, 14)));
        assert!(here < 0.5 * plain);
        let [plain, here] = lengths(|i| format!("https://news.example/{:06x}.html", number(i, 24)));
        assert!(here < 0.35 * plain);
        let [plain, here] = lengths(|i| {
            let address = |from: u64| [0, 1, 2, 3].map(|k| number(8 * i + from + k, 8).to_string()).join(".");
            format!("{} {}:443 6", address(0), address(4))
        });
        assert!(here < plain);
        // What cannot be predicted takes a byte more than without.
        let noise: Vec<u8> = (0..500).map(|i| number(i, 8) as u8).collect();
        let mut plain = Vec::new();
        block::write(&noise, 8, &mut Vec::new(), &mut plain);
        assert!(round_trip(&noise) <= plain.len() + 1);
    }

    #[test]
    fn short_and_repeated_texts() {
        for text in ["", "a", "abc", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "abcabcabcabcabcabcabcabcabcabcabcabcabc"] {
            for times in [1, 2, 30] {
                round_trip(text.repeat(times).as_bytes());
            }
        }
        assert!(round_trip(&[b'x'; 100_000]) < 20);
    }

    proptest! {
        #[test]
        fn texts_round_trip(words in prop::collection::vec("[a-d]{0,9}", 0..200), times in 1usize..4) {
            round_trip(words.concat().repeat(times).as_bytes());
        }

        /// Any bytes are a text or an error.
        #[test]
        fn damage_is_an_error_or_another_text(
            text in "([ab]{1,5}/){0,60}", at in any::<prop::sample::Index>(), byte: u8, bytes in 0usize..400,
        ) {
            let mut out = written(text.as_bytes());
            if !out.is_empty() {
                let at = at.index(out.len());
                out[at] = byte;
            }
            for bytes in [bytes, text.len()] {
                if let Ok(read) = read(&mut Reader::new(&out), bytes, "test") {
                    prop_assert_eq!(read.len(), bytes);
                }
            }
        }
    }
}
