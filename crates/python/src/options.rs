//! How a sketch is made.

use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::{Deserialize, Serialize};
use ucl_sketch::{Builder, Bytes, KeyFormat, Mode, UclSketch};

use crate::error::Error;
use crate::key_type::KeyType;

/// Settings of a sketch. They are kept until the type of the keys is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    pub memory: usize,
    pub mode: String,
    // As text: JSON knows no whole numbers of 128 bits.
    seed: String,
    pub interval: Option<u64>,
    pub expected_keys: Option<u64>,
    pub keep_epochs: usize,
}

impl Options {
    /// Checks everything that does not depend on the keys. Without a seed, a random one is drawn
    /// now: copies of the same empty sketch can be merged.
    pub fn new(
        memory: usize,
        mode: &str,
        seed: Option<u128>,
        interval: Option<u64>,
        expected_keys: Option<u64>,
        keep_epochs: usize,
    ) -> Result<Self, Error> {
        mode.parse::<Mode>()?;
        let seed = match seed {
            Some(seed) => seed,
            None => UclSketch::builder().plan()?.0.seed.value(),
        };
        Ok(Self { memory, mode: mode.to_owned(), seed: seed.to_string(), interval, expected_keys, keep_epochs })
    }

    pub fn seed(&self) -> u128 {
        self.seed.parse().unwrap_or_default()
    }

    /// The facade's builder for keys of a type.
    pub fn builder(&self, keys: &KeyType) -> Result<Builder, Error> {
        self.builder_for(keys.format()?)
    }

    fn builder_for(&self, keys: KeyFormat) -> Result<Builder, Error> {
        let mut builder = UclSketch::builder()
            .memory_bytes(self.memory)
            .mode(self.mode.parse()?)
            .seed(self.seed())
            .retain_epochs(self.keep_epochs);
        if let KeyFormat::Fixed(bytes) = keys {
            builder = builder.key_bytes(bytes.into());
        }
        if let Some(keys) = self.expected_keys {
            builder = builder.expected_keys(keys);
        }
        if let Some(items) = self.interval {
            builder = builder.interval(items);
        }
        Ok(builder)
    }

    /// A sketch to be filled, of keys whose type is not known yet.
    pub fn unkeyed(&self) -> Result<UclSketch, Error> {
        Ok(self.builder_for(KeyFormat::Digest)?.build()?)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("internal: options are plain data")
    }

    pub fn from_json(text: &str) -> Result<Self, Error> {
        let wrong = |error| Error::Value(format!("the options of a sketch cannot be read: {error}"));
        let options: Self = serde_json::from_str(text).map_err(wrong)?;
        options.mode.parse::<Mode>()?;
        Ok(options)
    }
}

/// Reads a size: a number of bytes, or text like `64KB`.
pub fn size(value: &Bound<'_, PyAny>) -> Result<usize, Error> {
    if let Ok(text) = value.cast::<PyString>() {
        let bytes: Bytes = text.to_str()?.parse().map_err(|error| Error::Build(ucl_sketch::BuildError::Size(error)))?;
        return Ok(bytes.0);
    }
    Ok(value.extract()?)
}
