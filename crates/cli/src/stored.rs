//! State files as the commands see them: a sketch, and how its records were read.

use std::num::NonZeroU64;
use std::path::Path;

use ucl_sketch::{Fault, Hashing, KeyFormat, LoadError, Seed, UclSketch};
use ucl_streams::{Delimiter, Format};

use crate::input::InputArgs;

/// Label of a sketch that holds the format of its keys.
pub const FORMAT: &str = "format";
pub const WEIGHT: &str = "weight";
pub const MEMORY: &str = "memory";
pub const SCALE: &str = "scale";
pub const HEADER: &str = "header";
pub const DELIMITER: &str = "delimiter";
pub const QUOTES: &str = "quotes";

/// A sketch from a file.
pub struct Stored {
    pub sketch: UclSketch,
    /// Rules for reading its records.
    pub reading: Reading,
    /// True if its tables have a header row; `None` if that was not said.
    pub header: Option<bool>,
    /// The character between the columns of its tables, if that was said.
    pub delimiter: Option<Delimiter>,
    /// True if quotes in its tables are ordinary characters.
    pub no_quotes: bool,
    /// The memory it was made for.
    pub budget: usize,
}

/// Rules for turning records into keys and weights.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Format, which says where the key is.
    pub format: Format,
    /// Place of the weight.
    pub weight: Option<String>,
    /// Factor for weights.
    pub scale: Option<NonZeroU64>,
}

impl Reading {
    /// The first option in which two readings differ. One state holds the counts of one reading
    /// only: a mix of columns, or of weights and items, would answer no question.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let format = |reading: &Self| Some(reading.format.to_string());
        let weight = |reading: &Self| reading.weight.clone();
        let scale = |reading: &Self| reading.scale.map(|scale| scale.to_string());
        let options = [
            ("format", format(self), format(other)),
            ("weight", weight(self), weight(other)),
            ("scale", scale(self), scale(other)),
        ];
        let differs = options.into_iter().find(|(_, ours, theirs)| ours != theirs);
        differs.map(|(option, ours, theirs)| Difference { option, ours, theirs })
    }
}

/// An option that was not the same both times.
#[derive(Debug)]
pub struct Difference {
    /// Name of the option on the command line, without the dashes.
    pub option: &'static str,
    pub ours: Option<String>,
    pub theirs: Option<String>,
}

impl Stored {
    pub fn load(path: &Path) -> anyhow::Result<Self> {
        // The file's name is in the message already if it cannot be read.
        UclSketch::load(path).map(Self::of).map_err(|error| match error {
            LoadError::Read { .. } => error.into(),
            other => anyhow::anyhow!("{}: {other}", path.display()),
        })
    }

    pub fn of(sketch: UclSketch) -> Self {
        let label = |name: &str| sketch.labels().get(name);
        // A program other than this one may have saved it.
        let plain = match sketch.config().keys {
            KeyFormat::Fixed(bytes) => Format::Records(bytes.into()),
            KeyFormat::Digest | KeyFormat::Code(_) => Format::Lines,
        };
        let format = label(FORMAT).and_then(|text| text.parse().ok()).unwrap_or(plain);
        let budget = label(MEMORY).and_then(|text| text.parse().ok()).unwrap_or(sketch.memory().total());
        let weight = label(WEIGHT).cloned();
        let scale = label(SCALE).and_then(|text| text.parse().ok());
        let header = label(HEADER).and_then(|text| text.parse().ok());
        let delimiter = label(DELIMITER).and_then(|text| text.parse().ok());
        let no_quotes = label(QUOTES).is_some_and(|text| text == "false");
        Self { sketch, reading: Reading { format, weight, scale }, header, delimiter, no_quotes, budget }
    }

    /// Returns the given options, completed by those of the stored sketch.
    pub fn input(&self, given: &InputArgs) -> InputArgs {
        let Reading { format, weight, scale } = self.reading.clone();
        let header = given.header_row().or(self.header);
        InputArgs {
            format: Some(format),
            weight,
            scale,
            header: header == Some(true),
            no_header: header == Some(false),
            delimiter: given.delimiter.or(self.delimiter),
            no_quotes: given.no_quotes || self.no_quotes,
            ..given.clone()
        }
    }
}

/// Returns a note for a sketch that an earlier version began; nothing for others.
pub fn earlier_hashes(seed: Seed) -> Option<&'static str> {
    (seed.hashing() != Hashing::default()).then_some(
        "the state uses those of an earlier version. An attacker can choose keys of over 240 bytes that collide, and their \
         ranges are then wrong. If keys may be hostile, start a new count",
    )
}

/// While the window has not filled up, trains on what there is, rather than answer by another
/// decoder.
pub fn train_if_not_ready(sketch: &mut UclSketch) -> Result<(), Fault> {
    let ready = sketch.with_control(|control| control.network().is_none_or(|network| network.is_ready()));
    if ready { Ok(()) } else { sketch.train() }
}

/// Formats a key format as `--key-bytes` takes it.
pub fn key_bytes(keys: KeyFormat) -> String {
    match keys {
        KeyFormat::Fixed(bytes) => bytes.to_string(),
        KeyFormat::Digest | KeyFormat::Code(_) => "any".to_owned(),
    }
}
