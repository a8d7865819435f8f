//! The system of [`ChangeKind::PaperColumns`]: closed segments and the open one decoded as if their
//! counters were the same ones.

use std::borrow::Cow;
use std::sync::Arc;

use ucl_data_plane::{Inconsistent, ensure};
use ucl_equations::{ColumnId, Columns};

use crate::decoder::DecoderKind;
use crate::registry::KeyId;
use crate::sealed::{ChangeKind, Sealed};
use crate::segment::Segment;
use crate::settings::Settings;

/// Closed segments that are still decoded together with the open one, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Appended(Vec<Arc<Sealed>>);

impl Appended {
    /// Segments that were read back, which must go with the open one.
    pub fn restored(closed: Vec<Arc<Sealed>>, open: &Segment, settings: &Settings) -> Result<Self, Inconsistent> {
        let fit = closed.iter().all(|sealed| can_append(&sealed.segment, open, settings));
        ensure(fit, || "segments are decoded together that cannot be".into())?;
        Ok(Self(closed))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_slice(&self) -> &[Arc<Sealed>] {
        &self.0
    }

    /// Appends a segment, in whose place this one is open now, or returns it with all before it if
    /// they cannot be decoded together.
    pub fn push(&mut self, sealed: Sealed, open: &Segment, settings: &Settings) -> Vec<Arc<Sealed>> {
        let append = can_append(&sealed.segment, open, settings);
        self.0.push(Arc::new(sealed));
        if append { Vec::new() } else { self.take() }
    }

    /// The segments, which are decoded no more.
    pub fn take(&mut self) -> Vec<Arc<Sealed>> {
        std::mem::take(&mut self.0)
    }

    /// The columns of the closed segments and then those of the open one, so that none moves when a
    /// key arrives.
    pub fn columns<'a>(&self, open: &'a Columns) -> Cow<'a, Columns> {
        if self.is_empty() {
            return Cow::Borrowed(open);
        }
        let degree = open.degree();
        let empty: fn(usize, usize) -> Columns = if open.is_ones() { Columns::ones } else { Columns::signed };
        let mut all = empty(open.counters(), degree);
        for columns in self.0.iter().map(|sealed| sealed.segment.columns()).chain([open]) {
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

    /// The key of each column.
    pub fn keys<'a>(&'a self, open: &'a Segment) -> impl Iterator<Item = KeyId> + 'a {
        self.0.iter().flat_map(|sealed| sealed.segment.keys()).chain(open.keys()).copied()
    }

    /// The counters of all segments, added up.
    pub fn counters<'a>(&self, open: &'a [i64]) -> Cow<'a, [i64]> {
        let mut sum = Cow::Borrowed(open);
        self.0.iter().for_each(|sealed| sealed.segment.cumulative().add_to(sum.to_mut()));
        sum
    }

    /// Returns the least count of each column's key in the appended segments; `lower` tells it for
    /// the open segment.
    pub fn lowers(&self, open: &Segment, lower: impl Fn(KeyId) -> u64) -> Vec<f64> {
        let closed = self.0.iter().flat_map(|sealed| sealed.lowers());
        closed.chain(open.keys().iter().map(|&key| lower(key))).map(|lower| lower as f64).collect()
    }

    /// The closed segments with what was decoded for their columns, and what was decoded for the
    /// open one.
    pub fn split(&self, mut decoded: Vec<f64>) -> (Self, Vec<f64>) {
        let mut later = &decoded[..];
        let with_estimates = |sealed: &Arc<Sealed>| {
            let (estimates, rest) = later.split_at(sealed.segment.columns().len());
            later = rest;
            Arc::new(sealed.with_estimates(estimates))
        };
        let closed = self.0.iter().map(with_estimates).collect();
        let open = decoded.len() - later.len();
        (Self(closed), decoded.split_off(open))
    }

    pub fn memory(&self) -> usize {
        self.0.iter().map(|sealed| sealed.memory()).sum()
    }
}

/// Whether a closed segment can be decoded together with the open one. Delta decodes every epoch on
/// its own.
fn can_append(closed: &Segment, open: &Segment, settings: &Settings) -> bool {
    let geometry = |segment: &Segment| segment.config().shape.geometry();
    settings.change == ChangeKind::PaperColumns
        && settings.decoder != DecoderKind::Delta
        && geometry(closed) == geometry(open)
}
