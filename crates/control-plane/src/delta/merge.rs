//! The running sums of two streams become one.

use ucl_equations::{ColumnId, Columns};

use super::Totals;
use crate::plane::least;
use crate::tally::Tally;

impl Totals {
    /// Adds the totals of another stream. `columns` has those of both, ours first, and `theirs` the other one's number of each.
    /// A key that has no column on one side may still have weight there: at most what that side's counters (`alone`,
    /// `their_counters`) allow.
    pub fn merge(
        &mut self,
        alone: &Tally,
        other: &Self,
        their_counters: &Tally,
        columns: &Columns,
        theirs: &[Option<ColumnId>],
    ) {
        for (column, theirs) in (0..columns.len()).zip(theirs) {
            let indices = columns.indices(ColumnId(column as u32));
            if column == self.uppers.len() {
                self.uppers.push(least(indices, |at| alone.get(at)));
                self.estimates.push(0.0);
            }
            match theirs {
                Some(theirs) => {
                    self.uppers[column] += other.uppers[theirs.0 as usize];
                    self.estimates[column] += other.estimates[theirs.0 as usize];
                }
                None => self.uppers[column] += least(indices, |at| their_counters.get(at)),
            }
        }
        self.epochs += other.epochs;
        self.unexplained += other.unexplained;
        self.checked.add(other.checked);
    }
}
