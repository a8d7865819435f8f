//! `jsonl:PATH`: one JSON document a line.
//!
//! Only the path to the key is looked at; everything else is checked for being JSON and passed
//! over, so nothing is built in memory. When a name occurs twice in an object, the last one counts.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::lines::Splitter;
use super::weight::weight;
use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};
use crate::composite::push_part;
use crate::error::BadReason;
use crate::format::JsonPointer;

pub(super) struct Jsonl {
    splitter: Splitter,
    keys: Vec<JsonPointer>,
    weight: Option<JsonPointer>,
    /// A key of several parts.
    key: Vec<u8>,
}

impl Jsonl {
    /// Creates a decoder for these keys, of which there is at least one.
    pub fn new(keys: Vec<JsonPointer>, weight: Option<JsonPointer>) -> Self {
        Self { splitter: Splitter::default(), keys, weight, key: Vec::new() }
    }
}

impl Decode for Jsonl {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let Self { splitter, keys, weight: weight_pointer, key: scratch } = self;
        splitter.split(window, out, |line, place, out| {
            if line.iter().all(u8::is_ascii_whitespace) {
                return Ok(());
            }
            let weight_text = weight_pointer.as_ref().map(|pointer| text_at(pointer, line));
            let key = match &keys[..] {
                [key] => text_at(key, line),
                keys => joined(keys, line, scratch).map(|()| Cow::default()),
            };
            let (key, weight_text) = match key.and_then(|key| Ok((key, weight_text.transpose()?))) {
                Ok(found) => found,
                Err(reason) => return out.bad(place, reason),
            };
            let weight = match weight_text {
                None => 1,
                Some(text) => match weight(text.as_bytes(), place, out)? {
                    Some(weight) => weight,
                    None => return Ok(()),
                },
            };
            out.key(if keys.len() == 1 { key.as_bytes() } else { scratch }, weight, place)
        })
    }

    fn can_start_here(&self) -> bool {
        self.splitter.is_between_lines()
    }
}

/// Makes a key of what several pointers lead to.
fn joined(pointers: &[JsonPointer], line: &[u8], key: &mut Vec<u8>) -> Result<(), BadReason> {
    key.clear();
    for (index, pointer) in pointers.iter().enumerate() {
        push_part(key, text_at(pointer, line)?.as_bytes(), index == 0);
    }
    Ok(())
}

/// The string or number a pointer leads to.
fn text_at<'l>(pointer: &JsonPointer, line: &'l [u8]) -> Result<Cow<'l, str>, BadReason> {
    let not_json = |error: serde_json::Error| BadReason::Json(error.to_string());
    let mut document = serde_json::Deserializer::from_slice(line);
    let found = Follow(&pointer.steps).deserialize(&mut document).map_err(not_json)?;
    document.end().map_err(not_json)?;
    let raw = found.ok_or_else(|| BadReason::NothingAtPointer { pointer: pointer.to_string() })?.get();
    let found = match raw.as_bytes().first() {
        Some(b'"') => {
            let inner = &raw[1..raw.len() - 1];
            return if inner.contains('\\') {
                serde_json::from_str(raw).map(Cow::Owned).map_err(not_json)
            } else {
                Ok(Cow::Borrowed(inner))
            };
        }
        Some(b'-' | b'0'..=b'9') => return Ok(Cow::Borrowed(raw)),
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'n') => "null",
        _ => "a boolean",
    };
    Err(BadReason::NotAKey { pointer: pointer.to_string(), found })
}

/// Follows the steps of a pointer and returns the raw text at its end.
struct Follow<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Follow<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0.split_first() {
            None => <&RawValue>::deserialize(deserializer).map(Some),
            Some((step, rest)) => deserializer.deserialize_any(Step { step, rest }),
        }
    }
}

struct Step<'p> {
    step: &'p str,
    rest: &'p [String],
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(matches) = map.next_key_seed(Named(self.step))? {
            if matches {
                found = map.next_value_seed(Follow(self.rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        // As RFC 6901 has it: no leading zeros.
        let wanted = self.step.parse::<usize>().ok().filter(|index| index.to_string() == self.step);
        let mut found = None;
        for index in 0.. {
            let more = if Some(index) == wanted {
                elements.next_element_seed(Follow(self.rest))?.map(|value| found = value).is_some()
            } else {
                elements.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(found)
    }

    // Anything else has no parts.
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Reads an object's name and says whether it is this one, without keeping it.
struct Named<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Named<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Named<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
