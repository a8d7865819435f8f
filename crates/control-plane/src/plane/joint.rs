//! The system of [`ChangeKind::PaperColumns`](crate::ChangeKind::PaperColumns): closed segments and the open one decoded as if their
//! counters were the same ones.

use std::borrow::Cow;
use std::sync::Arc;

use ucl_equations::{ColumnId, Columns};

use crate::key_state::KeyState;
use crate::sealed::Sealed;
use crate::segment::Segment;

/// The columns of the closed segments and then those of the open one, so that none moves when a key arrives.
pub(crate) fn columns<'a>(appended: &[Arc<Sealed>], open: &'a Columns) -> Cow<'a, Columns> {
    if appended.is_empty() {
        return Cow::Borrowed(open);
    }
    let (counters, degree) = (open.counters(), open.degree());
    let mut all = if open.is_ones() { Columns::ones(counters, degree) } else { Columns::signed(counters, degree) };
    for columns in appended.iter().map(|sealed| sealed.segment.columns()).chain([open]) {
        for id in (0..columns.len() as u32).map(ColumnId) {
            if columns.is_ones() {
                all.push(columns.indices(id));
            } else {
                let signs: Vec<i8> = (0..degree).map(|entry| columns.coefficient(id, entry) as i8).collect();
                all.push_signed(columns.indices(id), &signs);
            }
        }
    }
    Cow::Owned(all)
}

/// The counters of all of them, added up.
pub(crate) fn counters(appended: &[Arc<Sealed>], mut open: Vec<i64>) -> Vec<i64> {
    appended.iter().for_each(|sealed| sealed.segment.cumulative().add_to(&mut open));
    open
}

/// What each column's key has there at least.
pub(crate) fn lowers(appended: &[Arc<Sealed>], open: &Segment, keys: &[KeyState], smallest_weight: u64) -> Vec<f64> {
    let closed = appended.iter().flat_map(|sealed| sealed.lowers());
    let open = open.keys().iter().map(|key| keys[key.0 as usize].lower(smallest_weight));
    closed.chain(open).map(|lower| lower as f64).collect()
}
