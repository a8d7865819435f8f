//! The likely range: narrower than the guaranteed one, and nearly always right.

use ucl_equations::ColumnId;

use super::{BoundKind, Estimate};
use crate::delta::{Doubts, Sums};
use crate::registry::KeyId;

/// Share of keys whose true count lies within the likely range of delta
/// ([`QueryView::likely`](crate::QueryView::likely)), at least. Measured, not proven:
/// `docs/likely.md`.
pub const LIKELY: f64 = 0.999;

/// What is known of likely ranges.
#[derive(Clone, Debug)]
pub(crate) enum LikelyRanges {
    /// The likely range is the guaranteed one.
    Guaranteed,
    /// Keys in doubt, in order, and how far their true counts may be below and above the estimate.
    /// All others have one solution.
    Doubts(Vec<(KeyId, u64, u64)>),
}

impl LikelyRanges {
    /// Computes the ranges from the doubts about columns, which were decoded to these `sums` and
    /// belong to these `keys`.
    pub fn new(doubts: &Doubts, sums: &Sums, keys: &[KeyId]) -> Self {
        if !doubts.are_told() {
            return Self::Guaranteed;
        }
        let of_key = |(ColumnId(column), below, above): (ColumnId, f64, f64)| {
            let decoded = sums.estimate(column as usize);
            // Sums of fractions that stand for whole numbers are off by less.
            const SLACK: f64 = 1e-6;
            let shown = decoded.max(0.0).round();
            let below = shown - (decoded - below - SLACK).ceil();
            let above = (decoded + above + SLACK).floor() - shown;
            (keys[column as usize], below.max(0.0) as u64, above.max(0.0) as u64)
        };
        let mut doubts: Vec<(KeyId, u64, u64)> = doubts.iter().map(of_key).collect();
        doubts.sort_unstable();
        Self::Doubts(doubts)
    }

    /// The likely range of a known key, from its guaranteed one.
    pub fn of(&self, id: KeyId, certain: Estimate) -> Estimate {
        let Self::Doubts(doubts) = self else { return certain };
        let (below, above) = match doubts.binary_search_by_key(&id, |&(id, ..)| id) {
            Ok(at) => (doubts[at].1, doubts[at].2),
            Err(_) => (0, 0),
        };
        let lower = certain.estimate.saturating_sub(below).max(certain.lower);
        let upper = certain.estimate.saturating_add(above).min(certain.upper);
        if (lower, upper) == (certain.lower, certain.upper) {
            return certain;
        }
        Estimate { lower, upper, bound: BoundKind::Probable(LIKELY), ..certain }
    }
}
