//! One row of an answer.

use std::fmt;

use ucl_control_plane::Source;

use crate::key::KeyName;

/// A key and its count, with the range in which the true count lies.
///
/// ```
/// use ucl_sketch::UclSketch;
/// let mut sketch = UclSketch::builder().build()?;
/// sketch.insert_weighted("tea", 12)?;
/// let hit = sketch.view().estimate("tea");
/// assert_eq!((hit.count, hit.lower, hit.upper, hit.is_exact()), (12, 12, 12, true));
/// assert_eq!(hit.to_string(), "tea: 12");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit<K> {
    pub(crate) key: KeyName<K>,
    /// Estimated count.
    pub count: u64,
    /// Guaranteed lower bound of the true count.
    pub lower: u64,
    /// Guaranteed upper bound of the true count.
    pub upper: u64,
    /// Source of the estimate.
    pub source: Source,
}

impl<K> Hit<K> {
    /// Returns the key, which can be displayed even if only its digest or code is known. Keys that
    /// cannot be displayed, such as tuples, are read by [`Hit::known_key`].
    pub fn key(&self) -> &KeyName<K> {
        &self.key
    }

    /// Returns a reference to the key, if it is known in full. Keys of 4, 8, 13 or 16 bytes always
    /// are ([`KeyName`]).
    pub fn known_key(&self) -> Option<&K> {
        self.key.known()
    }

    /// Returns the key, if it is known in full.
    pub fn into_key(self) -> Option<K> {
        match self.key {
            KeyName::Known(key) => Some(key),
            KeyName::Digest(_) | KeyName::Code(_) => None,
        }
    }

    /// Returns true if the count is certain: both bounds are equal.
    pub fn is_exact(&self) -> bool {
        self.lower == self.upper
    }
}

/// `tea: 12`, or `tea: 12 (10 to 15)` where the count is not certain.
impl<K: fmt::Display> fmt::Display for Hit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.count)?;
        if self.is_exact() { Ok(()) } else { write!(f, " ({} to {})", self.lower, self.upper) }
    }
}
