//! What a stream comes to, and how much it may weigh.

use crate::insert_error::InsertError;

/// The largest weight of an item, and of all items of a stream together: 2^63 - 1.
///
/// The control plane adds up weights in 64 bits with a sign.
pub const MAX_WEIGHT: u64 = i64::MAX as u64;

/// Returns the weight of a stream of weight `total` after one more item.
///
/// ```
/// use ucl_data_plane::{InsertError, MAX_WEIGHT, add_weight};
/// assert_eq!(add_weight(7, 5), Ok(12));
/// assert_eq!(add_weight(7, 0), Err(InsertError::Weight { weight: 0 }));
/// let too_much = InsertError::TotalWeight { total: 7, weight: MAX_WEIGHT };
/// assert_eq!(add_weight(7, MAX_WEIGHT), Err(too_much));
/// ```
///
/// # Errors
/// If the item weighs nothing or more than [`MAX_WEIGHT`], or the stream would.
#[inline(always)]
pub fn add_weight(total: u64, weight: u64) -> Result<u64, InsertError> {
    if weight == 0 || weight > MAX_WEIGHT {
        return Err(InsertError::Weight { weight });
    }
    joint_weight(total, weight).ok_or(InsertError::TotalWeight { total, weight })
}

/// Returns the weight of two streams together, or `None` if it is more than [`MAX_WEIGHT`].
#[inline(always)]
pub fn joint_weight(ours: u64, theirs: u64) -> Option<u64> {
    (theirs <= MAX_WEIGHT && ours <= MAX_WEIGHT - theirs).then(|| ours + theirs)
}

/// Items and weights of a stream so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct StreamTotals {
    pub(crate) items: u64,
    pub(crate) weight: u64,
    pub(crate) smallest_weight: u64,
}

impl StreamTotals {
    /// Adds an item, unless its weight is not allowed.
    #[inline(always)]
    pub fn take(&mut self, weight: u64) -> Result<(), InsertError> {
        add_weight(self.weight, weight)?;
        self.add(1, weight, weight);
        Ok(())
    }

    /// The totals after so many more items, of weight 1 if none is given. The sketch itself is as
    /// it was.
    pub fn with(mut self, items: usize, weights: Option<&[u64]>) -> Result<Self, InsertError> {
        match weights {
            Some(weights) if weights.len() != items => {
                return Err(InsertError::Weights { keys: items, weights: weights.len() });
            }
            Some(weights) => weights.iter().try_for_each(|&weight| self.take(weight))?,
            None if items == 0 => {}
            None => {
                let more = items as u64;
                let too_much = InsertError::TotalWeight { total: self.weight, weight: more };
                joint_weight(self.weight, more).ok_or(too_much)?;
                self.add(more, more, 1);
            }
        }
        Ok(self)
    }

    /// Fails for totals that were just read and that no stream has.
    #[cfg(feature = "serde")]
    pub fn check(&self) -> Result<(), crate::Inconsistent> {
        let Self { items, weight, smallest_weight: smallest } = *self;
        let in_range = items <= weight && weight <= MAX_WEIGHT;
        crate::ensure(in_range, || alloc::format!("{items} items of weight {weight} in all"))?;
        let known = (smallest == 0) == (items == 0) && smallest <= weight;
        crate::ensure(known, || alloc::format!("a smallest weight of {smallest} among {items} items"))
    }

    #[inline(always)]
    pub fn add(&mut self, items: u64, weight: u64, smallest: u64) {
        self.items += items;
        self.weight += weight;
        if self.smallest_weight == 0 || smallest < self.smallest_weight {
            self.smallest_weight = smallest;
        }
    }
}
