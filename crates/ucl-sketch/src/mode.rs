//! How a sketch counts: exactly, exactly while the link allows, or in a linear sketch that is
//! decoded.

use std::fmt;
use std::str::FromStr;

use ucl_control_plane::DecoderKind;
use ucl_data_plane::{Config, HeavyKind};

/// Mode of counting.
///
/// ```
/// use ucl_sketch::{DecoderKind, Mode, UclSketch};
/// assert_eq!("em".parse(), Ok(Mode::Sketch(DecoderKind::Em)));
/// let mut sketch = UclSketch::builder().memory("8KB").build()?; // exact by default
/// for i in 0..100_000u32 {
///     sketch.insert((i % 5_000).to_string())?;
/// }
/// assert!(sketch.view().iter().all(|hit| hit.is_exact() && hit.count == 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every count is exact: a table holds the frequent keys, and what it evicts goes up the link.
    #[default]
    Exact,
    /// Every count is exact while the link allows: beyond an allowance of uplink, what the table
    /// does not hold goes into a sketch, is decoded as by delta, and has a range.
    Budget,
    /// Counts in a linear sketch: it takes what the heavy part evicts, and this decoder recovers
    /// it.
    Sketch(DecoderKind),
}

impl Mode {
    /// Iterates over all modes.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Exact, Self::Budget].into_iter().chain(DecoderKind::ALL.into_iter().map(Self::Sketch))
    }

    /// The mode of a sketch of this configuration, with this decoder.
    pub(crate) fn of(config: &Config, decoder: DecoderKind) -> Self {
        match config.shape.heavy {
            HeavyKind::Mirrored(_) if config.shape.absorbs() => Self::Budget,
            HeavyKind::Mirrored(_) => Self::Exact,
            _ => Self::Sketch(decoder),
        }
    }

    /// Returns true if a mirrored table counts, whose evictions can go up the link.
    pub fn is_mirrored(self) -> bool {
        matches!(self, Self::Exact | Self::Budget)
    }

    /// Returns the name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Budget => "budget",
            Self::Sketch(decoder) => decoder.name(),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of a text that is not the name of a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode '{name}': the modes are {}", Mode::all().map(Mode::name).collect::<Vec<_>>().join(", "))]
pub struct UnknownMode {
    name: String,
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        Self::all().find(|mode| mode.name() == name).ok_or_else(|| UnknownMode { name: name.to_owned() })
    }
}
