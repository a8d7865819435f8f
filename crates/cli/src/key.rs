//! Keys on their way out and in: escaped for people at a terminal, as they are for programs.

use std::io::{BufRead, Read};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use ucl_sketch::{KeyFormat, KeyId, QueryView};
use ucl_streams::{Format, MAX_RECORD_BYTES};

use crate::fail::Usage;

/// A key in both forms. In JSON it has the fields of [`KeyData`].
#[derive(Clone, Debug)]
pub struct Key {
    /// Text for a terminal: `hex:…` where the key is not plain text.
    pub shown: String,
    /// For programs, where that differs.
    data: Option<Vec<u8>>,
}

impl Key {
    pub fn new(format: &Format, key: &[u8]) -> Self {
        let (shown, data) = (format.key_display(key), format.key_data(key));
        let data = (*data != *shown.as_bytes()).then(|| data.into_owned());
        Self { shown, data }
    }

    /// A known key. If the filter of names kept its name from us, there is only its digest or code,
    /// as `digest:…` or `code:…`.
    pub fn known(view: &QueryView, format: &Format, id: KeyId) -> Self {
        let registry = view.registry();
        if registry.is_named(id) {
            return Self::new(format, registry.key(id));
        }
        let kind = if matches!(registry.format(), KeyFormat::Code(_)) { "code" } else { "digest" };
        Self { shown: format!("{kind}:{}", hex(registry.identity_of(id))), data: None }
    }

    /// A key from a collector, ready for a terminal. `data` is for programs, if there is any.
    pub fn received(shown: String, data: Option<Vec<u8>>) -> Self {
        let data = data.filter(|data| *data != *shown.as_bytes());
        Self { shown, data }
    }

    pub fn into_data(self) -> KeyData {
        KeyData(self.data.unwrap_or_else(|| self.shown.into_bytes()))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_bytes(self.data.as_deref().unwrap_or(self.shown.as_bytes()), serializer)
    }
}

/// A key as data files hold it. In JSON, `key` is its text; where the bytes are not valid UTF-8,
/// `key` is null and `key_hex` has them in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyData(pub Vec<u8>);

impl Serialize for KeyData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_bytes(&self.0, serializer)
    }
}

fn serialize_bytes<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let text = std::str::from_utf8(data).ok();
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("key", &text)?;
    if text.is_none() {
        map.serialize_entry("key_hex", &hex(data))?;
    }
    map.end()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads keys, one a line; empty lines are none. A line need not be UTF-8. It may not be longer
/// than a record, so that a file without lines is not read whole.
pub fn each_line(
    mut lines: impl BufRead,
    shown: &str,
    format: &Format,
    mut each: impl FnMut(Vec<u8>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    for line in 1.. {
        let place = || format!("{shown}, line {line}");
        bytes.clear();
        let limit = MAX_RECORD_BYTES as u64 + 1;
        let read = lines.by_ref().take(limit).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| anyhow::anyhow!("{}: {error}", place()))?;
        if read == 0 {
            break;
        }
        if read as u64 == limit && !bytes.ends_with(b"\n") {
            return Err(Usage(format!("{}: the line is longer than {MAX_RECORD_BYTES} bytes", place())).into());
        }
        let key = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let key = key.strip_suffix(b"\r").unwrap_or(key);
        if !key.is_empty() {
            each(format.parse_key_bytes(key).map_err(|error| Usage(format!("{}: {error}", place())))?)?;
        }
    }
    Ok(())
}
