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
    /// The estimated count.
    pub count: u64,
    /// The true count is at least this, always.
    pub lower: u64,
    /// The true count is at most this, always.
    pub upper: u64,
    /// Where the estimate comes from.
    pub source: Source,
}

impl<K> Hit<K> {
    /// The key.
    pub fn key(&self) -> &KeyName<K> {
        &self.key
    }

    /// The key, if it is known in full.
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

    /// Whether the count is certain: the range holds one number.
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
