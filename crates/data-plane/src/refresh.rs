//! Which keys are sent again although the Bloom filter claims to know them.

use crate::hash::KeyHash;

/// At most one in so many.
const MOST: f64 = 1.0 / 8.0;

/// A choice of keys by hash, another one in every epoch: the same key is not chosen twice in one epoch and passed over in
/// another for lack of luck, and no random state is kept.
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
        self.threshold = (false_positive_rate.min(MOST) * 4_294_967_296.0) as u32;
    }
}
