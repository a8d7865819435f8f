//! When epochs end.

use std::fmt;

use ucl_control_plane::DecoderKind;

use crate::plan::PAPER_INTERVAL;

/// Rule for when an epoch ends.
///
/// ```
/// use ucl_sketch::{DecoderKind, Epochs, UclSketch};
/// let delta = UclSketch::builder().decoder(DecoderKind::Delta);
/// assert_eq!(delta.plan()?.1, Epochs::ByLoad);
/// assert_eq!(delta.interval(4_000).plan()?.1, Epochs::Every(4_000));
/// # Ok::<(), ucl_sketch::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Epochs {
    /// An epoch ends before it has more keys than its counters can tell apart. The sketch finds out
    /// by itself; the same stream always has the same epochs.
    ByLoad,
    /// An epoch ends after this many items.
    Every(u64),
    /// Only when asked.
    Open,
}

impl Epochs {
    /// Returns the default for a decoder.
    pub(crate) fn of(decoder: DecoderKind) -> Self {
        match decoder {
            DecoderKind::Delta => Self::ByLoad,
            DecoderKind::Learned | DecoderKind::Refined => Self::Every(PAPER_INTERVAL),
            _ => Self::Open,
        }
    }

    /// Returns the number of items of an epoch, if all have the same number.
    pub fn interval(self) -> Option<u64> {
        if let Self::Every(items) = self { Some(items) } else { None }
    }
}

impl From<Option<u64>> for Epochs {
    fn from(interval: Option<u64>) -> Self {
        interval.map_or(Self::Open, Self::Every)
    }
}

impl fmt::Display for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByLoad => f.write_str("by load"),
            Self::Every(items) => write!(f, "every {items} items"),
            Self::Open => f.write_str("none"),
        }
    }
}
