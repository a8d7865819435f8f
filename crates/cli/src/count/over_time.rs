//! `--last` and `--changes`: questions about time. Delta decodes every epoch on its own, so it can
//! tell.

use serde::Serialize;
use ucl_sketch::{DecoderKind, KeyId, Mode, QueryView};
use ucl_streams::Format;

use super::Args;
use crate::fail::Usage;
use crate::key::Key;

/// Epochs compared by `--changes`, if `--last` does not say.
const COMPARED: usize = 16;

/// Which epochs the user wants to hear of.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// The last so many.
    last: Option<usize>,
    /// Compare the last so many with as many before.
    compare: Option<usize>,
    /// Number of keys to show.
    top: usize,
}

impl Period {
    /// Reads the options about time; `None` if there are none.
    pub fn of(args: &Args, mode: Mode) -> Result<Option<Self>, Usage> {
        if args.last.is_none() && !args.changes && args.keep.is_none() {
            return Ok(None);
        }
        if !mode.is_mirrored() && mode != Mode::Sketch(DecoderKind::Delta) {
            return Err(Usage(format!(
                "--last, --changes and --keep work with --mode exact, budget or delta, not with {mode}"
            )));
        }
        let compare = args.changes.then(|| args.last.unwrap_or(COMPARED));
        Ok(Some(Self { last: args.last, compare, top: args.top }))
    }

    /// Returns the number of epochs to keep: enough to answer, and as many as asked for.
    pub fn epochs(&self, args: &Args) -> usize {
        // The open epoch may be too short to be compared, and is kept all the same.
        let compared = self.compare.map_or(0, |n| n.saturating_mul(2).saturating_add(1));
        self.last.unwrap_or(0).max(compared).max(args.keep.unwrap_or(0))
    }

    /// Asks a view.
    pub fn ask(&self, view: &QueryView, format: &Format) -> OverTime {
        let series = view.series();
        let kept = series.len();
        let name = |key: KeyId| Key::known(view, format, key);
        // Items before an epoch began: the end of the one before, if that is kept.
        let begin = |epoch: usize| match epoch {
            0 if series.dropped() == 0 => Some(0),
            0 => None,
            epoch => series.epochs(epoch - 1..epoch).next().map(|before| before.items),
        };
        let span = |from: usize, to: usize| Span {
            epochs: to - from,
            first_item: begin(from).map(|items| items + 1),
            last_item: begin(to).filter(|_| to < kept),
        };
        let last = self.last.map(|n| {
            let from = kept.saturating_sub(n);
            let count = |(key, count): (KeyId, f64)| Count { key: name(key), count: whole(count) };
            let keys = series.top(from.., self.top).into_iter().map(count).collect();
            Last { span: span(from, kept), keys }
        });
        let changes = self.compare.map(|n| {
            // What has just begun says little of rates.
            let too_short = kept > 1 && series.length(kept - 1) < series.length(kept - 2) / 2;
            let to = kept - usize::from(too_short);
            // With few epochs, the newer half against the older.
            let n = n.min(to / 2);
            let middle = to - n;
            let from = to - 2 * n;
            let change = |change: ucl_sketch::Change| Changed {
                key: name(change.key),
                before: tenth(change.before),
                after: tenth(change.after),
            };
            let keys = series.changes(from..middle, middle..to, self.top).into_iter().map(change).collect();
            Changes { before: span(from, middle), after: span(middle, to), keys }
        });
        OverTime { epochs_kept: kept, bytes_kept: series.memory(), last, changes }
    }
}

/// Estimates are whole numbers; what cancels out to a little below zero is zero.
fn whole(count: f64) -> u64 {
    (count.max(0.0) + 0.5).floor() as u64
}

fn tenth(mean: f64) -> f64 {
    (mean.max(0.0) * 10.0).round() / 10.0
}

/// The answers about time.
#[derive(Debug, Serialize)]
pub struct OverTime {
    pub epochs_kept: usize,
    /// Memory of the kept epochs, beside the sketch.
    pub bytes_kept: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Last>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// Some consecutive epochs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Span {
    pub epochs: usize,
    /// Number of the first item, counted from 1; `None` if it is no longer known.
    pub first_item: Option<u64>,
    /// Number of the last item; `None` for the end of the stream.
    pub last_item: Option<u64>,
}

#[derive(Debug, Serialize)]
pub struct Last {
    #[serde(flatten)]
    pub span: Span,
    pub keys: Vec<Count>,
}

/// A key's count in a span.
#[derive(Debug, Serialize)]
pub struct Count {
    #[serde(flatten)]
    pub key: Key,
    pub count: u64,
}

#[derive(Debug, Serialize)]
pub struct Changes {
    pub before: Span,
    pub after: Span,
    pub keys: Vec<Changed>,
}

/// A key's count per epoch of the usual length, before and after.
#[derive(Debug, Serialize)]
pub struct Changed {
    #[serde(flatten)]
    pub key: Key,
    pub before: f64,
    pub after: f64,
}
