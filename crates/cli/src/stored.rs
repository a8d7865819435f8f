//! State files as the commands see them: a sketch, and how its keys are written.

use std::num::NonZeroU64;
use std::path::Path;

use ucl_sketch::{Fault, Hashing, KeyFormat, LoadError, Seed, UclSketch};
use ucl_streams::Format;

use crate::input::InputArgs;

/// What `count` writes on a sketch, by name.
pub const FORMAT: &str = "format";
pub const WEIGHT: &str = "weight";
pub const MEMORY: &str = "memory";
pub const SCALE: &str = "scale";
pub const HEADER: &str = "header";

/// A sketch from a file.
pub struct Stored {
    pub sketch: UclSketch,
    /// How its keys are read and shown.
    pub format: Format,
    /// Where the weight of its records is.
    pub weight: Option<String>,
    /// What its weights were multiplied by.
    pub scale: Option<NonZeroU64>,
    /// Whether its tables have a header row, if that was said.
    pub header: Option<bool>,
    /// The memory it was made for.
    pub budget: usize,
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
            KeyFormat::Digest => Format::Lines,
        };
        let format = label(FORMAT).and_then(|text| text.parse().ok()).unwrap_or(plain);
        let budget = label(MEMORY).and_then(|text| text.parse().ok()).unwrap_or(sketch.memory().total());
        let weight = label(WEIGHT).cloned();
        let scale = label(SCALE).and_then(|text| text.parse().ok());
        let header = label(HEADER).and_then(|text| text.parse().ok());
        Self { sketch, format, weight, scale, header, budget }
    }

    /// What to read where the command line does not say it: more of the same.
    pub fn input(&self, given: &InputArgs) -> InputArgs {
        let header = given.header_row().or(self.header);
        InputArgs {
            format: Some(self.format.clone()),
            weight: self.weight.clone(),
            scale: self.scale,
            header: header == Some(true),
            no_header: header == Some(false),
            ..given.clone()
        }
    }
}

/// What to know of a sketch that an earlier version began; nothing for others.
pub fn earlier_hashes(seed: Seed) -> Option<&'static str> {
    (seed.hashing() != Hashing::default()).then_some(
        "those of an earlier version, which the state keeps: someone can make keys of over 240 bytes collide on purpose, \
         and then their ranges are wrong. If keys may be hostile, start a new count",
    )
}

/// While the window has not filled up, trains on what there is, rather than answer by another decoder.
pub fn train_if_not_ready(sketch: &mut UclSketch) -> Result<(), Fault> {
    let ready = sketch.with_control(|control| control.network().is_none_or(|network| network.is_ready()));
    if ready { Ok(()) } else { sketch.train() }
}
