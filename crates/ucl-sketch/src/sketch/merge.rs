//! Two sketches become one.

use ucl_control_plane::Fault;

use super::UclSketch;
use crate::key::Key;

/// Error of two sketches that cannot be merged.
///
/// ```
/// use ucl_sketch::UclSketch;
/// let sketch = |seed| UclSketch::builder().key_bytes(4).seed(seed).build();
/// let error = sketch(1)?.merge(sketch(2)?).unwrap_err();
/// assert_eq!(error.to_string(), "sketches that differ in seed cannot be merged: 1 and 2");
/// # Ok::<(), ucl_sketch::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The sketches have different settings or seeds.
    #[error(transparent)]
    Refused(#[from] ucl_data_plane::MergeError),
    /// One of the two sketches has failed before.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl<K: Key> UclSketch<K> {
    /// Adds the counts of `other` to this sketch, as if it had seen both streams.
    ///
    /// Both sketches need the same settings and the same [`Builder::seed`](crate::Builder::seed):
    /// clone one builder for all threads or devices. Several sketches can be merged in any order.
    /// Merging ends the current epoch of both.
    ///
    /// # Errors
    /// If the sketches differ in their settings, the weight of both would pass 2^63, or one of them
    /// has failed. This sketch is then unchanged.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let device = || UclSketch::builder().memory("16KB").seed(1).build();
    /// let (mut here, mut there) = (device()?, device()?);
    /// here.insert(b"both")?;
    /// there.insert(b"both")?;
    /// there.insert(b"there")?;
    /// here.merge(there)?;
    /// let view = here.view();
    /// assert_eq!((view.estimate(b"both").count, view.estimate(b"there").count, view.items()), (2, 1, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, mut other: Self) -> Result<(), MergeError> {
        self.plane.check_merge(&other.plane)?;
        other.with_control(|theirs| self.with_control(|ours| ours.check_merge(theirs)))?;
        // Before either is cut: what is refused is left as it was.
        for sketch in [&mut *self, &mut other] {
            sketch.with_control(|control| control.fault().cloned().map_or(Ok(()), Err))?;
        }
        self.cut();
        other.cut();
        other.with_control(|theirs| self.with_control(|ours| ours.merge(theirs)))?;
        self.control.merge(&mut self.plane, &other.plane)?;
        self.start_epoch();
        Ok(())
    }
}
