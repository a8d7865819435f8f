//! Two data planes become one.
//!
//! Counters are linear, so those of the same configuration and seed add up (what overflows is
//! carried to the sink: narrow counters alone are not a complete state); the heavy parts resolve
//! slot by slot ([`HeavyChange::merge`]); the Bloom filters unite. Whose side something is on
//! decides nothing: merging is commutative, and the total weight is exact in any order.

use alloc::format;
use alloc::string::String;
use core::fmt::{Debug, Display};

use super::{DataPlane, Light};
use crate::column::CounterIndex;
use crate::config::{Config, Shape};
use crate::heavy::HeavyChange;
use crate::key::KeyFormat;
use crate::report::{Report, ReportSink};
use crate::totals::joint_weight;

/// Error of two sketches that cannot be merged.
///
/// ```
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let mut a = DataPlane::<4>::new(config)?;
/// let b = DataPlane::<4>::new(Config { seed: 2.into(), ..config })?;
/// let error = a.merge(&b, &mut |_: Report<'_>| ()).unwrap_err();
/// assert_eq!(error.to_string(), "sketches that differ in seed cannot be merged: 1 and 2");
/// # Ok::<(), ucl_data_plane::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The sketches have different settings.
    #[error("sketches that differ in {what} cannot be merged: {ours} and {theirs}")]
    Differ {
        /// Name of the setting.
        what: &'static str,
        /// Setting of this sketch.
        ours: String,
        /// Setting of the other sketch.
        theirs: String,
    },
    /// The weight of both streams together would pass 2^63, beyond the control plane's counters.
    #[error("the weight of both streams would pass 2^63: {ours} and {theirs}")]
    TotalWeight {
        /// Weight of this sketch.
        ours: u64,
        /// Weight of the other sketch.
        theirs: u64,
    },
}

impl MergeError {
    /// Refuses two settings that are not the same.
    pub fn unless_equal<T: PartialEq + Debug>(what: &'static str, ours: &T, theirs: &T) -> Result<(), Self> {
        if ours == theirs {
            return Ok(());
        }
        Err(Self::Differ { what, ours: format!("{ours:?}"), theirs: format!("{theirs:?}") })
    }

    /// Refuses two settings that are not the same, in the words that outputs have for them.
    pub fn unless_same<T: PartialEq + Display>(what: &'static str, ours: &T, theirs: &T) -> Result<(), Self> {
        if ours == theirs {
            return Ok(());
        }
        Err(Self::Differ { what, ours: format!("{ours}"), theirs: format!("{theirs}") })
    }
}

impl Config {
    /// Checks that sketches of both configurations can be merged; the error names the first
    /// difference.
    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        let Self { keys, shape, rule, seed } = self;
        let Shape { heavy, slots, vote_ratio, base, rows, width, counter_bits, bloom, bloom_bits, bloom_hashes } =
            shape;
        fn same<T: PartialEq + Display>(what: &'static str, ours: &T, theirs: &T) -> Result<(), MergeError> {
            MergeError::unless_same(what, ours, theirs)
        }
        same("hash functions", &seed.hashing(), &other.seed.hashing())?;
        same("seed", seed, &other.seed)?;
        same("key format", keys, &other.keys)?;
        same("slots", slots, &other.shape.slots)?;
        same("vote ratio", vote_ratio, &other.shape.vote_ratio)?;
        same("rows", rows, &other.shape.rows)?;
        same("width", width, &other.shape.width)?;
        same("counter bits", &counter_bits.bits(), &other.shape.counter_bits.bits())?;
        same("base sketch", base, &other.shape.base)?;
        // Mirrored tables have sizes too.
        MergeError::unless_equal("heavy part", heavy, &other.shape.heavy)?;
        MergeError::unless_equal("Bloom kind", bloom, &other.shape.bloom)?;
        same("Bloom bits", bloom_bits, &other.shape.bloom_bits)?;
        same("Bloom hashes", bloom_hashes, &other.shape.bloom_hashes)?;
        same("report rule", rule, &other.rule)
    }
}

impl<const N: usize, H: HeavyChange<N>> DataPlane<N, H> {
    /// Checks that [`DataPlane::merge`] would succeed.
    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        self.light.config.check_merge(&other.light.config)?;
        if self.light.config.keys == KeyFormat::Digest {
            // After a rehash, digests are still those of the first seed.
            let digests = |plane: &Self| plane.light.seed.digest_key();
            MergeError::unless_equal("first seed", &digests(self), &digests(other))?;
        }
        let (ours, theirs) = (self.totals.weight, other.totals.weight);
        joint_weight(ours, theirs).map(drop).ok_or(MergeError::TotalWeight { ours, theirs })
    }

    /// Adds the counts of `other` to this data plane. The sink must know the reports of both: cut
    /// both before, so that what the other one's counters hold is not sent twice.
    ///
    /// ```
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// let (mut a, mut b) = (DataPlane::<4>::new(config)?, DataPlane::<4>::new(config)?);
    /// let mut sink = |_: Report<'_>| ();
    /// a.insert(b"key1", 5, &mut sink)?;
    /// b.insert(b"key1", 2, &mut sink)?;
    /// a.merge(&b, &mut sink)?;
    /// assert_eq!((a.exact(b"key1"), a.items()), (7, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self, sink: &mut impl ReportSink) -> Result<(), MergeError> {
        self.check_merge(other)?;
        self.light.merge(&other.light, sink);
        if other.totals.items > 0 {
            self.totals.add(other.totals.items, other.totals.weight, other.totals.smallest_weight);
        }
        let Self { heavy, light, .. } = self;
        heavy.merge(&other.heavy, |key, count, hot| light.evict(key, count, hot, sink));
        Ok(())
    }
}

impl Light {
    /// Adds what another one of the same configuration has counted.
    pub(crate) fn merge(&mut self, other: &Self, sink: &mut impl ReportSink) {
        for (at, value) in other.counters.iter().enumerate().filter(|&(_, value)| value != 0) {
            let times = self.counters.add(at, value < 0, value.unsigned_abs());
            if times != 0 {
                self.carries = self.carries.wrapping_add(times as u64);
                sink.report(Report::Carry { at: CounterIndex(at as u32), times });
            }
        }
        self.carries = self.carries.wrapping_add(other.carries);
        self.sketch_weight += other.sketch_weight;
        let forgotten = self.bloom.unite(&other.bloom);
        self.refresh = self.refresh.united(other.refresh);
        self.rotation = self.rotation.united(other.rotation);
        self.rotation.forgets(forgotten);
        self.recount();
        if let (Some(ours), Some(theirs)) = (&mut self.known, &other.known) {
            ours.unite(theirs);
        }
    }
}
