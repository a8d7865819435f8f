//! Two streams that ran side by side.

use std::sync::Arc;

use super::{EpochCounts, Series};
use crate::registry::KeyId;

impl Series {
    /// The last epoch is one with the epoch before, if no item came in it; whether it was so. Such an epoch comes with a merge: who lost
    /// a slot to whom.
    pub(crate) fn fold_last(&mut self) -> bool {
        let [.., before, last] = self.epochs.make_contiguous() else { return false };
        let fold = before.items == last.items;
        if fold {
            *before = Arc::new(EpochCounts::new(last.items, before.iter().chain(last.iter()).collect()));
            self.epochs.pop_back();
        }
        fold
    }

    /// Adds the epochs of another stream, the last one to the last one, and so on back; `id` numbers its keys here.
    pub(crate) fn merge(&mut self, other: &Self, id: impl Fn(KeyId) -> KeyId) {
        if self.retention == 0 {
            return;
        }
        let renumbered = |epoch: &EpochCounts| epoch.iter().map(|(key, count)| (id(key), count)).collect::<Vec<_>>();
        for (back, theirs) in other.epochs.iter().rev().enumerate().take(self.retention) {
            let mut parts = renumbered(theirs);
            match self.epochs.len().checked_sub(back + 1) {
                Some(at) => {
                    let ours = &self.epochs[at];
                    parts.extend(ours.iter());
                    self.epochs[at] = Arc::new(EpochCounts::new(ours.items + theirs.items, parts));
                }
                None => self.epochs.push_front(Arc::new(EpochCounts::new(theirs.items, parts))),
            }
        }
        self.dropped = self.dropped.max(other.dropped);
    }
}
