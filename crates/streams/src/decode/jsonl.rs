//! `jsonl:POINTER`: one JSON document a line.
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
use super::{Decode, Window};
use crate::collect::{Collector, Halt};
use crate::error::BadReason;
use crate::format::JsonPointer;

pub(super) struct Jsonl {
    splitter: Splitter,
    key: JsonPointer,
    weight: Option<JsonPointer>,
}

impl Jsonl {
    pub fn new(key: JsonPointer, weight: Option<JsonPointer>) -> Self {
        Self { splitter: Splitter::default(), key, weight }
    }
}

impl Decode for Jsonl {
    fn decode(&mut self, window: Window<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let (key_pointer, weight_pointer) = (&self.key, self.weight.as_ref());
        self.splitter.split(window, out, |line, place, out| {
            if line.iter().all(u8::is_ascii_whitespace) {
                return Ok(());
            }
            let found = text_at(key_pointer, line)
                .and_then(|key| Ok((key, weight_pointer.map(|pointer| text_at(pointer, line)).transpose()?)));
            match found {
                Err(reason) => out.bad(place, reason),
                Ok((key, None)) => out.key(key.as_bytes(), 1, place),
                Ok((key, Some(text))) => match weight(text.as_bytes(), place, out)? {
                    Some(weight) => out.key(key.as_bytes(), weight, place),
                    None => Ok(()),
                },
            }
        })
    }
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
