//! When keys are sent again: the Bloom filter keeps some from the control plane that it never sent.
//!
//! [`Refresh`] sends some of the keys that the filter claims to know. [`Rotation`] empties the
//! filter.

use crate::bloom::BloomFilter;
use crate::hash::KeyHash;

/// At most one in so many.
const MOST_REFRESHED: f64 = 1.0 / 8.0;

/// A choice of keys by hash, another one in every epoch: the same key is not chosen twice in one
/// epoch and passed over in another for lack of luck, and no random state is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Refresh {
    /// Of 2^32.
    threshold: u32,
    epoch: u32,
}

impl Refresh {
    /// Whether any key is chosen.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.threshold > 0
    }

    /// Whether this key is, in this epoch.
    #[inline(always)]
    pub fn chooses(self, hash: KeyHash) -> bool {
        hash.salted(self.epoch) < self.threshold
    }

    /// Of two data planes that become one: the choice that sends more, until the next epoch.
    pub fn united(self, other: Self) -> Self {
        Self { threshold: self.threshold.max(other.threshold), epoch: self.epoch.max(other.epoch) }
    }

    /// A new epoch: other keys, as many as the filter's claims are false.
    pub fn next_epoch(&mut self, false_positive_rate: f64) {
        self.epoch = self.epoch.wrapping_add(1);
        self.threshold = (false_positive_rate.min(MOST_REFRESHED) * 4_294_967_296.0) as u32;
    }
}

/// A filter whose claims are false more often than this is emptied at the next cut.
pub const EMPTY_ABOVE: f64 = 1.0 / 256.0;

/// Cuts from one emptying to the next, at least: a filter that is far too small would send every
/// key at every cut.
pub const LEAST_CUTS: u32 = 4;

/// How long ago the filter was emptied, and whether it ever was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rotation {
    cuts: u32,
    emptied: bool,
}

impl Rotation {
    /// Whether the filter has every key since the segment began.
    #[inline(always)]
    pub fn has_all(self) -> bool {
        !self.emptied
    }

    /// A new epoch: empties the filter if it is time.
    pub fn next_epoch(&mut self, bloom: &mut BloomFilter) {
        self.cuts = self.cuts.saturating_add(1);
        if self.cuts >= LEAST_CUTS && bloom.false_positive_rate() > EMPTY_ABOVE {
            bloom.clear();
            *self = Self { cuts: 0, emptied: true };
        }
    }

    /// Of two data planes that become one.
    pub fn united(self, other: Self) -> Self {
        Self { cuts: self.cuts.max(other.cuts), emptied: self.emptied | other.emptied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bloom::BloomKind;
    use crate::hash::HashSeed;

    #[test]
    fn a_full_filter_is_emptied_and_an_ample_one_kept() {
        let fill = |bits: u32, keys: u32| {
            let mut filter = BloomFilter::new(BloomKind::Classic, bits, 6).unwrap();
            (0..keys).for_each(|key| {
                filter.insert(HashSeed::new(1.into()).hash(&key.to_le_bytes()));
            });
            filter
        };
        let mut rotation = Rotation::default();
        let mut ample = fill(32_000, 1_000);
        (0..100).for_each(|_| rotation.next_epoch(&mut ample));
        assert!(rotation.has_all() && ample == fill(32_000, 1_000));

        let mut rotation = Rotation::default();
        let mut full = fill(6_400, 1_000);
        assert!(full.false_positive_rate() > EMPTY_ABOVE);
        (1..LEAST_CUTS).for_each(|_| rotation.next_epoch(&mut full));
        assert!(rotation.has_all(), "not before so many cuts");
        rotation.next_epoch(&mut full);
        assert!(!rotation.has_all() && full == fill(6_400, 0));
        rotation.next_epoch(&mut full);
        assert!(!rotation.has_all(), "it stays said");
    }
}
