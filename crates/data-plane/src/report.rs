//! What the data plane tells the control plane: plain values, handed to a sink as they arise.
//!
//! No I/O and no buffering here. In one process the sink is the control plane's queue; across
//! machines it is the encoder of `ucl-wire`. Every report counts as uplink.

use core::fmt;
use core::str::FromStr;

use crate::column::CounterIndex;
use crate::config::Config;
use crate::counters::Counters;
use crate::mirrored::Pieces;

/// Rule for which keys are sent.
///
/// ```
/// use ucl_data_plane::ReportRule;
/// assert_eq!("rotate".parse(), Ok(ReportRule::Rotate));
/// assert_eq!("all".parse::<ReportRule>().unwrap_err().to_string(), "the report rules are paper, new, refresh, rotate and generations");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ReportRule {
    /// The paper's rule: a passed key if the Bloom filter did not have it (cold); an evicted key
    /// always, as hot if it was hit again after taking its slot, else as cold if new.
    #[default]
    Paper,
    /// Any key only if the Bloom filter did not have it.
    New,
    /// Sends what [`ReportRule::New`] sends; and a key that the filter claims to know is sent again
    /// now and then, the first time it enters the sketch in an epoch (one of its counters was still
    /// 0), with the probability that the filter's claim is false, at most 1/8. Keys lost to the
    /// filter are found that way; a filter with room to spare sends next to nothing.
    Refresh,
    /// Sends what [`ReportRule::New`] sends; and at a cut where the filter's claims have become
    /// false too often (one in 256) it is emptied, so that every key that comes again is sent
    /// again, the lost ones too. Costs a name for each active key then, and loses hardly any.
    Rotate,
    /// As [`ReportRule::New`], with a filter that forgets: keys in use are remembered, and those
    /// that are not make room. One of the kind [`BloomKind::Recent`](crate::BloomKind::Recent)
    /// forgets one key at a time. A Bloom filter has two halves: when the claims of the younger one
    /// have become false too often (one in 8,192), the older one is forgotten and takes its place.
    /// [`DataPlane::hold_names`](crate::DataPlane::hold_names) stops that for a while.
    Generations,
}

impl ReportRule {
    /// All rules.
    pub const ALL: [Self; 5] = [Self::Paper, Self::New, Self::Refresh, Self::Rotate, Self::Generations];

    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::New => "new",
            Self::Refresh => "refresh",
            Self::Rotate => "rotate",
            Self::Generations => "generations",
        }
    }
}

impl fmt::Display for ReportRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No report rule has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the report rules are paper, new, refresh, rotate and generations")]
pub struct UnknownRule;

impl FromStr for ReportRule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Self, UnknownRule> {
        Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or(UnknownRule)
    }
}

/// Reasons for sending a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyFlags {
    /// True if the key was evicted from the heavy part after having been hit again.
    pub hot: bool,
    /// The Bloom filter did not have it, and has forgotten nothing since the segment began. It has
    /// no false negatives, so the key was never in the segment's sketch before.
    pub fresh: bool,
}

/// A key as the data plane can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRef<'a> {
    /// The key itself: what sits in the slots.
    Whole(&'a [u8]),
    /// A long key at first sight, with the digest that stands for it from now on.
    Digested {
        /// Digest of the key.
        digest: [u8; 16],
        /// The key.
        bytes: &'a [u8],
    },
    /// A long key that was sent before.
    Digest([u8; 16]),
    /// A key of any length that has a code, which follows from it.
    Name(&'a [u8]),
}

/// Totals of a stream at one consistent moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutTotals {
    /// Items inserted so far.
    pub items: u64,
    /// Total weight of all items inserted so far.
    pub weight: u64,
    /// The weight that went into the linear sketch so far, in this segment. With all carries, every
    /// row of unsigned counters adds up to it: a lost or repeated report shows.
    pub sketch_weight: u64,
    /// The smallest weight of an item so far (0 before the first).
    pub smallest_weight: u64,
    /// The sum of all carries' `times` since the last cut (modulo 2^64, as signed ones may be
    /// negative): the same whether they travel one by one or added up by counter.
    pub carries: u64,
}

/// The counters and totals at one consistent moment.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// Items, weights and carries so far.
    pub totals: CutTotals,
    /// The remainders.
    pub counters: &'a Counters,
    /// True if the counters start again from zero after this cut (transport only: the control plane
    /// adds up).
    pub reset: bool,
}

/// Message from the data plane to the control plane.
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// A key that is in the linear sketch, or, for long keys, was seen for the first time.
    Key {
        /// The key.
        key: KeyRef<'a>,
        /// Reasons for sending it.
        flags: KeyFlags,
    },
    /// A counter overflowed.
    Carry {
        /// The counter.
        at: CounterIndex,
        /// Number of units that left the counter; negative only for signed counters.
        times: i64,
    },
    /// Slot of the heavy part that changed since the last cut; sent before a cut.
    Slot {
        /// The slot's number.
        slot: u32,
        /// The new holder (the bytes in the slot: key or digest) if the slot was taken since the
        /// last cut.
        holder: Option<&'a [u8]>,
        /// The exact weight held; 0 when empty, or when all of the holder's weight is in the
        /// sketch.
        count: u64,
    },
    /// The next bytes of what a mirrored table sends, or the end of one of its messages. Before a
    /// cut comes a message with the counts of all slots.
    Export(Pieces<'a>),
    /// The end of an epoch.
    Cut(Cut<'a>),
    /// Counters and Bloom filter start again from nothing, in this configuration. What follows
    /// belongs to the new segment.
    Open {
        /// The new segment's configuration.
        config: &'a Config,
        /// Relation to the segment before.
        opening: Opening,
    },
}

/// Relation of a segment to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opening {
    /// The former segment is sealed, and its counts stay. A cut came right before.
    Change,
    /// A new cycle: all counts start from zero.
    Reset {
        /// True if a trained network starts the new cycle with the weights it has.
        keep_weights: bool,
    },
}

/// Receiver of reports.
pub trait ReportSink {
    /// Takes one report. Reports come in order and none is sent twice.
    fn report(&mut self, report: Report<'_>);
}

impl<F: FnMut(Report<'_>)> ReportSink for F {
    #[inline(always)]
    fn report(&mut self, report: Report<'_>) {
        self(report);
    }
}
