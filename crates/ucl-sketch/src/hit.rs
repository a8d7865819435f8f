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
    /// Lower end of the likely range ([`QueryView::likely`](crate::QueryView::likely)): narrower
    /// than the guaranteed one, and wrong for less than one key in a thousand (mode delta).
    pub likely_lower: u64,
    /// Upper end of the likely range.
    pub likely_upper: u64,
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

    /// Returns true if the count is guaranteed to be exact: both bounds are equal.
    pub fn is_exact(&self) -> bool {
        self.lower == self.upper
    }

    /// Returns true if the likely range is one number: the counters have only one solution for this
    /// key. An exact count is certain too.
    ///
    /// ```
    /// use ucl_sketch::{DecoderKind, UclSketch};
    /// let mut sketch = UclSketch::builder().decoder(DecoderKind::Delta).memory("64KB").seed(1).build()?;
    /// for i in 0..100_000 {
    ///     sketch.insert(format!("user {}", i % 58))?;
    /// }
    /// let view = sketch.view();
    /// assert!(view.iter().all(|hit| hit.is_certain()) && !view.iter().all(|hit| hit.is_exact()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_certain(&self) -> bool {
        self.likely_lower == self.likely_upper
    }
}

/// `tea: 12`, or `tea: 12 (likely 10 to 15)` where the count is not certain, or
/// `tea: 12 (10 to 15)` where nothing narrower than the guaranteed range is known.
impl<K: fmt::Display> fmt::Display for Hit<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.count)?;
        let (lower, upper) = (self.likely_lower, self.likely_upper);
        match (lower, upper) == (self.lower, self.upper) {
            _ if self.is_certain() => Ok(()),
            true => write!(f, " ({lower} to {upper})"),
            false => write!(f, " (likely {lower} to {upper})"),
        }
    }
}
