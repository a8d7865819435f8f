//! Segments from before the sketch changed, read back.

use std::sync::Arc;

use ucl_data_plane::{Inconsistent, ensure};

use super::Earlier;
use crate::appended::Appended;
use crate::open_epoch::OpenEpoch;
use crate::plane::ControlPlane;
use crate::registry::{KeyId, Registry};
use crate::sealed::{End, Past, Sealed};
use crate::segment::Segment;
use crate::settings::Settings;

/// No sketch was merged from more.
const MOST_STREAMS: u32 = 1 << 20;

impl Earlier<'_> {
    /// Makes the segments usable, each on its own.
    pub(super) fn restored(
        self,
        registry: &Registry,
        open: &Segment,
        settings: &Settings,
    ) -> Result<(Past, Appended), Inconsistent> {
        let restore = |sealed: Arc<Sealed>| Ok(Arc::new(Arc::unwrap_or_clone(sealed).restored(registry)?));
        let mut past = self.past.into_owned();
        past.sealed = past.sealed.into_iter().map(restore).collect::<Result<_, Inconsistent>>()?;
        let appended = self.appended.into_owned().into_iter().map(restore).collect::<Result<Vec<_>, Inconsistent>>()?;
        ensure(past.streams <= MOST_STREAMS, || format!("{} streams were merged", past.streams))?;
        let ends = past.sealed.iter().chain(&appended).map(|sealed| &sealed.end).chain(&past.dropped);
        ends.into_iter().try_for_each(|end| end.check(past.streams, registry))?;
        Ok((past, Appended::restored(appended, open, settings)?))
    }
}

impl Sealed {
    fn restored(self, registry: &Registry) -> Result<Self, Inconsistent> {
        let Self { segment, parts, end } = self;
        let segment = Arc::unwrap_or_clone(segment).restored(registry)?;
        let closed = segment.carried().is_empty() && segment.carries() == 0;
        ensure(closed, || "a sealed segment has carries of an open epoch".into())?;
        let columns = segment.columns().len();
        let most = segment.sketch_weight();
        ensure(parts.len() == columns, || format!("{} counts in a sealed segment of {columns}", parts.len()))?;
        let odd = parts
            .iter()
            .find(|part| !(part.lower <= part.estimate && part.estimate <= part.upper && part.upper <= most));
        ensure(odd.is_none(), || format!("{odd:?} in a sealed segment that {most} entered"))?;
        Ok(Self { segment: Arc::new(segment), parts, end })
    }
}

impl End {
    fn check(&self, streams: u32, registry: &Registry) -> Result<(), Inconsistent> {
        let (first, last) = (self.stream, self.through);
        ensure(first <= last && last <= streams, || format!("a segment of streams {first} to {last}, of {streams}"))?;
        let stray = self.held.iter().find(|held| held.key >= KeyId(registry.len() as u32));
        ensure(stray.is_none(), || format!("{stray:?} was held, of {} keys", registry.len()))?;
        let (held, weight) = (self.held_weight(), self.weight);
        ensure(held.is_some_and(|held| held <= weight), || format!("{held:?} were held of {weight}"))
    }

    /// What the heavy part held in all.
    fn held_weight(&self) -> Option<u64> {
        self.held.iter().try_fold(0u64, |sum, held| sum.checked_add(held.count))
    }
}

impl ControlPlane {
    /// Checks the earlier segments against the last cut.
    pub(super) fn check_earlier(&self) -> Result<(), Inconsistent> {
        // However many are dropped from now on, what no longer counts is within what was counted.
        let mut dropped: Vec<&End> = self.past.dropped.iter().collect();
        let ends = self.past.sealed.iter().chain(self.appended.as_slice()).map(|sealed| Some(&sealed.end));
        let OpenEpoch { items, weight, .. } = self.open;
        for next in std::iter::once(None).chain(ends) {
            if let Some(end) = next {
                dropped.retain(|earlier| !end.covers(earlier));
                dropped.push(end);
            }
            let sum = |of: fn(&End) -> u64| dropped.iter().try_fold(0u64, |sum, &end| sum.checked_add(of(end)));
            let (before, heavy) = (sum(|end| end.items), sum(|end| end.weight));
            let within = before.is_some_and(|sum| sum <= items) && heavy.is_some_and(|sum| sum <= weight);
            ensure(within, || format!("segments up to item {before:?} (weight {heavy:?}), of {items} ({weight})"))?;
        }
        Ok(())
    }

    /// What of a stream's weight must be in the heavy part: it is in no sketch.
    pub(crate) fn weight_in_heavy(&self, weight: u64, sketch_weight: u64) -> Option<u64> {
        weight.checked_sub(sketch_weight)?.checked_sub(self.earlier_weight()?)
    }

    /// The weight in all segments before the open one, dropped ones included.
    fn earlier_weight(&self) -> Option<u64> {
        let sealed =
            self.past.sealed.iter().chain(self.appended.as_slice()).map(|sealed| Some(sealed.segment.sketch_weight()));
        let dropped = self.past.dropped.iter().map(|end| end.weight.checked_sub(end.held_weight()?));
        sealed.chain(dropped).try_fold(0u64, |sum, weight| sum.checked_add(weight?))
    }
}
