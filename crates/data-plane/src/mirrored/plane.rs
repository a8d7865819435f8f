//! A data plane whose evictions go up the link: the table, the names, and the totals of the stream.

use super::names::NamesSent;
use super::{MirroredPart, MirroredShape};
use crate::config::{Config, ConfigError, Memory};
use crate::counters::Counters;
use crate::hash::HashSeed;
use crate::heavy::HeavyKind;
use crate::insert_error::InsertError;
use crate::key::{DigestKey, KeyFormat};
use crate::plane::MergeError;
use crate::report::{Cut, CutTotals, KeyFlags, KeyRef, Opening, Report, ReportSink};
use crate::totals::{StreamTotals, joint_weight};

/// What frames the message that is being sent takes on a device: `ucl_wire::ExportFrames` and the
/// header that it writes. A test of that crate holds it to this.
pub(super) const FRAME_BYTES: usize = 192;

/// Bytes beside the table: none of them depends on the size of the keys.
pub(crate) const FIXED_BYTES: usize = FRAME_BYTES + size_of::<MirroredPlane<4>>() - size_of::<MirroredPart<4>>();

/// Counts every key exactly: what the table evicts is reported, and nothing enters a sketch.
///
/// ```
/// use ucl_data_plane::mirrored::{MirroredPlane, MirroredShape};
/// use ucl_data_plane::{Config, KeyFormat, Report, ReportRule, Shape};
///
/// let keys = KeyFormat::Code(64);
/// let table = MirroredShape::within(16_384, keys).expect("16KB are enough");
/// let config = Config { keys, shape: Shape::mirrored(table, 0, 1), rule: ReportRule::New, seed: 7.into() };
/// let mut plane = MirroredPlane::<8>::new(config)?;
/// let mut names = Vec::new();
/// let mut sink = |report: Report<'_>| {
///     if let Report::Key { key, .. } = report {
///         names.push(format!("{key:?}"));
///     }
/// };
/// plane.insert_bytes(b"/index.html", 1, &mut sink)?;
/// plane.insert_bytes(b"/", 1, &mut sink)?; // short: its code tells it
/// assert_eq!(names.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MirroredPlane<const N: usize> {
    pub(super) config: Config,
    pub(super) seed: HashSeed,
    pub(super) part: MirroredPart<N>,
    /// For keys of any length.
    pub(super) names: Option<NamesSent>,
    /// One counter that stays 0: nothing enters the sketch.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) counters: Counters,
    pub(super) totals: StreamTotals,
}

impl<const N: usize> MirroredPlane<N> {
    /// An empty data plane.
    ///
    /// # Errors
    /// If the configuration has no mirrored table, or is for keys of another size.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_seed(config, HashSeed::new(config.seed))
    }

    fn with_seed(config: Config, seed: HashSeed) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        let table = table_of::<N>(&config)?;
        let names = config.keys.any_length().then(|| NamesSent::new(&config.shape)).transpose()?;
        let counters = Counters::new(config.shape.geometry().counters(), config.shape.counter_bits, false)?;
        let part = MirroredPart::new(table, config.keys, config.seed);
        Ok(Self { config, seed, part, names, counters, totals: StreamTotals::default() })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The key of the codes of long keys: the first configuration's, whatever became of the table.
    pub fn digest_key(&self) -> DigestKey {
        self.seed.digest_key()
    }

    /// Items inserted so far.
    pub fn items(&self) -> u64 {
        self.totals.items
    }

    /// Total weight of all items inserted.
    pub fn weight(&self) -> u64 {
        self.totals.weight
    }

    /// Bytes by part, as held.
    pub fn memory(&self) -> Memory {
        let mut memory = self.part.memory();
        memory.add("names", self.names.as_ref().map_or(0, NamesSent::memory));
        memory.add("totals", FIXED_BYTES + self.counters.memory());
        memory
    }

    /// Inserts one item.
    ///
    /// # Errors
    /// If the weight is not allowed, or keys may have any length ([`MirroredPlane::insert_bytes`]).
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals.take(weight)?;
        self.part.insert(key, weight, &mut |piece| sink.report(Report::Export(piece)));
        Ok(())
    }

    #[inline(always)]
    fn check_keys(&self) -> Result<(), InsertError> {
        // Settled by the compiler for all other sizes.
        if N == 8 && self.names.is_some() { Err(InsertError::Digests) } else { Ok(()) }
    }

    /// Returns an error if a batch of so many items would be refused; see
    /// [`DataPlane::check_batch`](crate::DataPlane::check_batch).
    pub fn check_batch(&self, items: usize, weights: Option<&[u64]>) -> Result<(), InsertError> {
        self.totals.with(items, weights).map(drop)
    }

    /// Inserts items of weight 1.
    ///
    /// # Errors
    /// If the weight of the stream would pass 2^63. Then none of the items counts.
    pub fn insert_batch(&mut self, keys: &[[u8; N]], sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals = self.totals.with(keys.len(), None)?;
        self.part.insert_batch(keys, |_| 1, &mut |piece| sink.report(Report::Export(piece)));
        Ok(())
    }

    /// Inserts weighted items.
    ///
    /// # Errors
    /// If a weight is not allowed, the weight of the stream would pass 2^63, or there is not one
    /// weight for each key. Then none of the items counts.
    pub fn insert_weighted_batch(
        &mut self,
        keys: &[[u8; N]],
        weights: &[u64],
        sink: &mut impl ReportSink,
    ) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals = self.totals.with(keys.len(), Some(weights))?;
        self.part.insert_batch(keys, |at| weights[at], &mut |piece| sink.report(Report::Export(piece)));
        Ok(())
    }

    /// Ends an epoch: sends what waits, all counts, and the totals of the stream.
    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        self.part.cut(&mut |piece| sink.report(Report::Export(piece)));
        self.send_totals(true, sink);
    }

    /// Sends what [`MirroredPlane::cut`] would send, and changes nothing.
    pub fn peek(&self, sink: &mut impl ReportSink) {
        self.part.clone().cut(&mut |piece| sink.report(Report::Export(piece)));
        self.send_totals(false, sink);
    }

    fn send_totals(&self, reset: bool, sink: &mut impl ReportSink) {
        let StreamTotals { items, weight, smallest_weight } = self.totals;
        let totals = CutTotals { items, weight, sketch_weight: 0, smallest_weight, carries: 0 };
        sink.report(Report::Cut(Cut { totals, counters: &self.counters, reset }));
    }

    /// Cuts and goes on in another configuration, with an empty table.
    ///
    /// # Errors
    /// If the configuration is invalid, or for other keys or hash functions. Then nothing changed.
    pub fn change(&mut self, config: Config, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        check_change(&self.config, &config)?;
        let mut next = Self::with_seed(config, self.seed.rehashed(config.seed))?;
        self.cut(sink);
        next.totals = self.totals;
        *self = next;
        sink.report(Report::Open { config: &config, opening: Opening::Change });
        Ok(())
    }

    /// Starts a new cycle, from zero: nothing was ever inserted. What the sink has not been told in
    /// a cut is gone.
    pub fn reset(&mut self, keep_weights: bool, sink: &mut impl ReportSink) {
        let config = self.config;
        self.part = MirroredPart::new(*self.part.shape(), config.keys, config.seed);
        if let Some(names) = &mut self.names {
            names.clear();
        }
        self.totals = StreamTotals::default();
        sink.report(Report::Open { config: &config, opening: Opening::Reset { keep_weights } });
    }

    /// Returns an error if [`MirroredPlane::merge`] would fail.
    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        self.config.check_merge(&other.config)?;
        if self.config.keys.any_length() {
            MergeError::unless_equal("first seed", &self.digest_key(), &other.digest_key())?;
        }
        let (ours, theirs) = (self.totals.weight, other.totals.weight);
        joint_weight(ours, theirs).map(drop).ok_or(MergeError::TotalWeight { ours, theirs })
    }

    /// Counts from now on what both have counted. Both must have been cut just before: this table
    /// goes on, and the other one has nothing that was not sent.
    ///
    /// # Errors
    /// If they differ in their configuration, or the weight of both would pass 2^63.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_merge(other)?;
        let StreamTotals { items, weight, smallest_weight } = other.totals;
        if items > 0 {
            self.totals.add(items, weight, smallest_weight);
        }
        Ok(())
    }
}

/// The table of a configuration for keys of `N` bytes.
pub(super) fn table_of<const N: usize>(config: &Config) -> Result<MirroredShape, ConfigError> {
    let HeavyKind::Mirrored(table) = config.shape.heavy else {
        let any = MirroredShape { sets: 1, count_bits: 6, buffer: 40, policy: super::Policy::Skewed };
        return Err(ConfigError::Heavy { want: config.shape.heavy, got: HeavyKind::Mirrored(any) });
    };
    if let KeyFormat::Code(bits) = config.keys {
        crate::config::range("bits of a code", bits.into(), 8, KeyFormat::CODE_BITS.into())?;
    }
    // Digests have 128 bits, of which 64 would have to travel with each newcomer.
    if config.keys.slot_bytes() != N || config.keys == KeyFormat::Digest {
        return Err(ConfigError::KeySize { want: config.keys.slot_bytes(), got: N });
    }
    Ok(table)
}

/// A table goes on with keys of the same format and the same hash functions.
pub(super) fn check_change(ours: &Config, next: &Config) -> Result<(), ConfigError> {
    if next.keys != ours.keys {
        return Err(ConfigError::KeySize { want: ours.keys.slot_bytes(), got: next.keys.slot_bytes() });
    }
    let (want, got) = (ours.seed.hashing(), next.seed.hashing());
    if want == got { Ok(()) } else { Err(ConfigError::HashFunctions { want, got }) }
}

impl MirroredPlane<8> {
    /// Inserts one item whose key may have any length up to
    /// [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES). Its name is reported with the first code that does
    /// not tell it.
    ///
    /// # Errors
    /// If the key is too long, all keys have one size, or the weight is not allowed.
    pub fn insert_bytes(&mut self, key: &[u8], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        let format = self.config.keys;
        let (KeyFormat::Code(bits), Some(names)) = (format, &mut self.names) else {
            return Err(InsertError::NoDigests);
        };
        format.check(key.len())?;
        self.totals.take(weight)?;
        let digest_key = self.seed.digest_key();
        let code = digest_key.code(key, bits);
        let bytes = code.to_le_bytes();
        let came = self.part.insert(&bytes, weight, &mut |piece| sink.report(Report::Export(piece)));
        if came && digest_key.key_of_code(code, bits).is_none() && names.is_new(self.seed.hash(&bytes)) {
            sink.report(Report::Key { key: KeyRef::Name(key), flags: KeyFlags::default() });
        }
        Ok(())
    }
}
