//! A segment: one configuration of the linear sketch, with its columns and its counters.
//!
//! Counters arrive as remainders with carries; the segment rebuilds what 64-bit counters would
//! hold, and checks it: every row of unsigned counters must add up to the weight that the data
//! plane says it put in. A lost, repeated or reordered carry or cut breaks that sum, and is named,
//! never silently wrong. (Signed counters have no such sum: their carries are checked, and their
//! cuts only by the link, whose messages are numbered.)

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use ucl_data_plane::mirrored::OtherTable;
use ucl_data_plane::{
    BaseMap, ColumnMap, Config, Counters, Cut, CutTotals, HashSeed, Inconsistent, MAX_WEIGHT, OutOfMemory, ensure,
};
use ucl_equations::{ColumnId, Columns};

use crate::packed::Packed;
use crate::registry::{KeyId, Registry, key_hash};
use crate::shared::Shared;
use crate::state::check_rows;
use crate::tally::Tally;
use crate::tight;

/// Marks a key without a column.
const NONE: u32 = u32::MAX;

/// Counters and columns of one configuration of the linear sketch.
///
/// ```
/// use ucl_control_plane::Segment;
/// use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let segment = Segment::new(config)?;
/// assert_eq!((segment.cumulative().len(), segment.columns().len()), (4096, 0));
/// # Ok::<(), ucl_data_plane::OutOfMemory>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segment {
    config: Config,
    // The configuration and the keys give all columns again.
    #[serde(skip, default = "crate::state::no_seed")]
    seed: HashSeed,
    #[serde(skip, default = "crate::state::no_map")]
    map: BaseMap,
    #[serde(skip, default = "crate::state::no_columns")]
    columns: Columns,
    /// The key of each column.
    keys: Vec<KeyId>,
    /// The column of each key, [`NONE`] for none.
    #[serde(skip)]
    column_of: Shared<u32>,
    /// Counters of all closed epochs.
    cumulative: Tally,
    /// What carries have brought since the last cut; empty while there are none.
    carried: Tally,
    carries: u64,
    sketch_weight: u64,
}

/// The counters of an epoch that has just been closed.
pub(crate) struct EpochCounters<'a> {
    remainders: &'a Counters,
    /// The remainders, where they fit bytes.
    bytes: Option<Cow<'a, [u8]>>,
    /// What carries have brought; empty for nothing.
    carried: Tally,
}

impl EpochCounters<'_> {
    pub fn get(&self, at: usize) -> i64 {
        self.remainders.get(at).wrapping_add(if self.carried.is_empty() { 0 } else { self.carried.get(at) })
    }

    pub fn pack(mut self) -> Packed {
        let Some(bytes) = self.bytes.take() else {
            return Packed::new(&(0..self.remainders.len()).map(|at| self.get(at)).collect::<Vec<_>>());
        };
        let mut changed = Vec::new();
        self.carried.for_each_not_zero(|at, _| changed.push(at));
        Packed::of_bytes(bytes.into_owned(), changed, |at| self.get(at))
    }
}

/// A report that contradicts those before it: the data plane's state is not what the reports said.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Fault, ReportError, Settings};
/// use ucl_data_plane::{CounterIndex, Report};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let mut control = ControlPlane::new(config, Settings::default())?;
/// let stray = Report::Carry { at: CounterIndex(9_999), times: 1 };
/// let error = control.accept(stray).unwrap_err();
/// assert_eq!(error, Fault::Report(ReportError::Counter { at: 9_999, counters: 4_096 }));
/// # Ok::<(), ucl_control_plane::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// A mirrored table is not what its messages say.
    #[error(transparent)]
    Table(#[from] OtherTable),
    /// A mirrored table's messages have more weight or more keys than a stream can have.
    #[error("the messages of a table have more weight or more keys than any stream")]
    Exports,
    /// A piece of a table's message in a stream without such a table.
    #[error("a message of a mirrored table, but the configuration has none")]
    NoTable,
    /// A counter index outside the segment's sketch.
    #[error("a carry names counter {at}, but the sketch has {counters}")]
    Counter {
        /// Counter that the carry names.
        at: u32,
        /// Number of counters.
        counters: usize,
    },
    /// More than a counter can have.
    #[error("a carry of {times} to counter {at} is beyond 64 bits")]
    CarrySize {
        /// The counter.
        at: u32,
        /// Number of overflows that the carry reports.
        times: i64,
    },
    /// A cut with another number of counters.
    #[error("a cut has {got} counters, but the sketch has {want}")]
    Counters {
        /// Configured number of counters.
        want: usize,
        /// Received number of counters.
        got: usize,
    },
    /// Carries were lost, repeated or mixed up with another epoch's.
    #[error(
        "the cut at item {items} says that carries of {sent} in all were sent since the last one, but {received} arrived"
    )]
    Carries {
        /// Item index of the cut.
        items: u64,
        /// Sum of the data plane.
        sent: u64,
        /// Sum of the received carries.
        received: u64,
    },
    /// A cut was lost or repeated: the rows no longer add up.
    #[error(
        "at item {items} row {row} of the counters adds up to {sum}, but {sketch_weight} entered the sketch, \
         {per_key} times in every row: a report was lost or repeated"
    )]
    RowSum {
        /// Item index of the cut.
        items: u64,
        /// The row.
        row: usize,
        /// Sum of the row.
        sum: i128,
        /// Weight that entered the sketch.
        sketch_weight: u64,
        /// Counters of a key in every row.
        per_key: u16,
    },
    /// A slot number outside the heavy part.
    #[error("a report names heavy slot {slot}, but there are {slots}")]
    Slot {
        /// Slot that the report names.
        slot: u32,
        /// Number of slots.
        slots: u32,
    },
    /// Slots that are not in their order: reports were repeated or exchanged.
    #[error("a cut reports heavy slot {slot} after slot {before}: a report was repeated, or came out of its order")]
    SlotOrder {
        /// Slot that the report names.
        slot: u32,
        /// The one before.
        before: u32,
    },
    /// What the slots hold does not add up.
    #[error(
        "at item {items} the heavy part holds {}, but {} by what was reported of its slots: a report was lost",
        or_nonsense(weight),
        or_nonsense(reported)
    )]
    Heavy {
        /// Item index of the cut.
        items: u64,
        /// Weight of the stream that is in no sketch; `None` if sketches have more than the stream.
        weight: Option<u64>,
        /// Weight by the reports; `None` beyond 64 bits.
        reported: Option<u64>,
    },
    /// A segment was opened while the one before still had an open epoch: its last cut was lost.
    #[error("a segment was opened, but the cut that ends the one before never came")]
    NotCut,
    /// There is not enough memory for the counters of a segment.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A key that does not fit the configuration.
    #[error("a report has a key of {got} bytes where {want} are expected")]
    Key {
        /// Expected length.
        want: usize,
        /// Received length.
        got: usize,
    },
}

fn or_nonsense(weight: &Option<u64>) -> String {
    weight.map_or("what cannot be".to_owned(), |weight| weight.to_string())
}

impl Segment {
    /// Returns an empty segment, or an error if there is no memory for its counters.
    pub fn new(config: Config) -> Result<Self, OutOfMemory> {
        let counters = config.shape.geometry().counters();
        Ok(Self { cumulative: Tally::zeros(counters)?, ..Self::without_counters(config) })
    }

    /// The mapping alone.
    pub(crate) fn without_counters(config: Config) -> Self {
        let geometry = config.shape.geometry();
        let counters = geometry.counters();
        let degree = usize::from(geometry.degree);
        Self {
            config,
            seed: HashSeed::new(config.seed),
            map: BaseMap::new(&config.shape),
            columns: if geometry.signed { Columns::signed(counters, degree) } else { Columns::ones(counters, degree) },
            keys: Vec::new(),
            column_of: Shared::default(),
            cumulative: Tally::default(),
            carried: Tally::default(),
            carries: 0,
            sketch_weight: 0,
        }
    }

    /// The same mapping without a column, and without counters.
    pub(crate) fn empty_like(&self) -> Self {
        Self::without_counters(self.config)
    }

    /// The mapping, and which key has which column: what a view asks for.
    pub(crate) fn without_columns(&self) -> Self {
        Self { column_of: self.column_of.clone(), ..Self::without_counters(self.config) }
    }

    /// Returns the configuration of the segment.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the columns of the segment.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The key of each column.
    pub fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// The key's column, if it has one.
    #[inline]
    pub fn column_of(&self, key: KeyId) -> Option<ColumnId> {
        self.column_of.find(key.0 as usize).filter(|&column| column != NONE).map(ColumnId)
    }

    /// Gives the key a column, unless it has one.
    pub(crate) fn ensure_column(&mut self, key: KeyId, identity: &[u8]) -> ColumnId {
        if let Some(column) = self.column_of(key) {
            return column;
        }
        let column = self.map.column(key_hash(&self.seed, identity));
        let id = if self.config.shape.signed() {
            self.columns.push_signed(column.indices(), column.signs())
        } else {
            self.columns.push(column.indices())
        };
        tight::push(&mut self.keys, key);
        self.column_of.grow(key.0 as usize + 1, NONE);
        *self.column_of.entry(key.0 as usize) = id.0;
        id
    }

    /// Takes the columns from number `len` on back.
    pub(crate) fn truncate(&mut self, len: usize) {
        for key in self.keys.drain(len..) {
            *self.column_of.entry(key.0 as usize) = NONE;
        }
        self.columns.truncate(len);
    }

    /// The counters a key would use, known or not.
    pub(crate) fn positions(&self, identity: &[u8]) -> ucl_data_plane::Column {
        self.map.column(key_hash(&self.seed, identity))
    }

    pub(crate) fn carry(&mut self, at: u32, times: i64) -> Result<(), ReportError> {
        let counters = self.cumulative.len();
        if at as usize >= counters {
            return Err(ReportError::Counter { at, counters });
        }
        // Most epochs bring no carry at all.
        if self.carried.is_empty() {
            self.carried = Tally::zeros(counters)?;
        }
        let unit = self.config.shape.counter_bits.carry_unit(self.config.shape.signed());
        // A signed remainder may be negative: then what was carried is up to 2^63, one more than a
        // counter can have.
        let most = 1u128 << 63;
        if (i128::from(times) * i128::from(unit)).unsigned_abs() > most {
            return Err(ReportError::CarrySize { at, times });
        }
        self.carried.add_at(at as usize, times.wrapping_mul(unit));
        self.carries = self.carries.wrapping_add(times as u64);
        Ok(())
    }

    /// What carries have brought to each counter since the last cut; empty for nothing.
    pub(crate) fn carried(&self) -> &Tally {
        &self.carried
    }

    /// What all carries since the last cut come to.
    pub(crate) fn carries(&self) -> u64 {
        self.carries
    }

    /// Whether a cut with these totals and this many counters can be the next one.
    fn check_cut(&self, totals: &CutTotals, counters: usize) -> Result<(), ReportError> {
        let want = self.cumulative.len();
        if want != counters {
            return Err(ReportError::Counters { want, got: counters });
        }
        if self.carries != totals.carries {
            let CutTotals { items, carries: sent, .. } = *totals;
            return Err(ReportError::Carries { items, sent, received: self.carries });
        }
        Ok(())
    }

    /// The open epoch's counters, by the totals and remainders of a cut that was not made.
    pub(crate) fn open_counters(&self, totals: &CutTotals, mut remainders: Vec<i64>) -> Result<Vec<i64>, ReportError> {
        self.check_cut(totals, remainders.len())?;
        self.carried.add_to(&mut remainders);
        Ok(remainders)
    }

    /// Closes the epoch and returns its counters, after checking that they add up.
    pub(crate) fn close_epoch<'a>(&mut self, cut: &Cut<'a>) -> Result<EpochCounters<'a>, ReportError> {
        self.check_cut(&cut.totals, cut.counters.len())?;
        let CutTotals { items, sketch_weight, .. } = cut.totals;
        let carried = std::mem::take(&mut self.carried);
        let epoch = EpochCounters { remainders: cut.counters, bytes: cut.counters.to_bytes(), carried };
        match &epoch.bytes {
            Some(bytes) => self.cumulative.add_bytes(bytes),
            None => self.cumulative.add(&cut.counters.to_vec()),
        }
        epoch.carried.for_each_not_zero(|at, carried| self.cumulative.add_at(at, carried));
        self.carries = 0;
        self.sketch_weight = sketch_weight;
        let geometry = self.config.shape.geometry();
        if !geometry.signed {
            let want = i128::from(sketch_weight) * i128::from(geometry.per_row());
            for (row, sum) in self.cumulative.row_sums(geometry.width as usize).into_iter().enumerate() {
                if sum != want {
                    let per_key = geometry.per_row();
                    return Err(ReportError::RowSum { items, row, sum, sketch_weight, per_key });
                }
            }
        }
        Ok(epoch)
    }

    /// Makes a segment that was just read usable, or says why it cannot be one.
    pub(crate) fn restored(mut self, registry: &Registry) -> Result<Self, Inconsistent> {
        let config = self.config.hashed_by(registry.digest_key().hashing());
        config.check()?;
        ensure(config.keys == registry.format(), || {
            format!("a segment of {}, but a registry of {}", config.keys, registry.format())
        })?;
        let shape = &config.shape;
        let sketch_weight = self.sketch_weight;
        let want = shape.geometry().counters();
        let cumulative = self.cumulative.len();
        let carried = self.carried.len();
        let lengths = cumulative == want && (carried == want || carried == 0);
        ensure(lengths, || format!("{cumulative} and {carried} counters in a segment of {want}"))?;
        ensure(sketch_weight <= MAX_WEIGHT, || format!("a weight of {sketch_weight} in the sketch"))?;
        check_rows(&self.cumulative.to_vec(), shape, sketch_weight)?;
        let unit = shape.counter_bits.carry_unit(shape.signed());
        let stray = self.carried.to_vec().iter().position(|carried| carried % unit != 0);
        ensure(stray.is_none(), || format!("the carries of counter {stray:?} are no multiple of {unit}"))?;
        // Modulo 2^64, as what was carried to one signed counter may be 2^63 and more ([`Tally`]).
        let carried = self.carried.to_vec().iter().fold(0u64, |sum, &carried| sum.wrapping_add(carried as u64));
        let carries = self.carries;
        let want = self.carries.wrapping_mul(unit as u64);
        ensure(carried == want, || format!("carries of {carried} in all, not {carries} of {unit} each"))?;
        // Lengths are what they should be: only now is anything built from them.
        let keys = std::mem::take(&mut self.keys);
        let Self { cumulative, carried, .. } = self;
        self = Self { cumulative, carried, carries, sketch_weight, ..Self::without_counters(config) };
        for (column, &key) in keys.iter().enumerate() {
            let fresh = (key.0 as usize) < registry.len() && self.column_of(key).is_none();
            ensure(fresh, || format!("column {column} belongs to key {}, of {}", key.0, registry.len()))?;
            self.ensure_column(key, registry.identity_of(key));
        }
        Ok(self)
    }

    /// The counters of all closed epochs.
    pub fn cumulative(&self) -> &Tally {
        &self.cumulative
    }

    /// The weight that entered the sketch in all closed epochs.
    pub fn sketch_weight(&self) -> u64 {
        self.sketch_weight
    }

    /// The segment without room for an epoch: none will come.
    pub(crate) fn closed(mut self) -> Self {
        debug_assert!(self.is_cut());
        self.carried = Tally::default();
        self
    }

    /// Whether nothing has come since the last cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.carries == 0 && (0..self.carried.len()).all(|at| self.carried.get(at) == 0)
    }

    /// Adds another segment of the same configuration, of which a cut has just been made too. `key`
    /// tells its keys' numbers here, `identity` what stands for them in slots.
    pub(crate) fn merge<'a>(
        &mut self,
        other: &Self,
        key: impl Fn(KeyId) -> KeyId,
        identity: impl Fn(KeyId) -> &'a [u8],
    ) {
        for &theirs in &other.keys {
            self.ensure_column(key(theirs), identity(key(theirs)));
        }
        self.cumulative.add(&other.cumulative.to_vec());
        self.sketch_weight += other.sketch_weight;
    }

    /// The same segment where keys have other numbers.
    pub(crate) fn renumbered(&self, key: impl Fn(KeyId) -> KeyId) -> Self {
        let keys: Vec<KeyId> = self.keys.iter().map(|&old| key(old)).collect();
        let mut column_of = vec![NONE; keys.iter().map(|key| key.0 as usize + 1).max().unwrap_or(0)];
        for (column, key) in (0u32..).zip(&keys) {
            column_of[key.0 as usize] = column;
        }
        let column_of = column_of.into_iter().collect();
        Self { keys, column_of, ..self.clone() }
    }

    /// Bytes of columns and their numbers.
    pub(crate) fn column_bytes(&self) -> usize {
        self.columns.memory() + self.keys.capacity() * size_of::<KeyId>() + self.column_of.memory()
    }

    /// Bytes of counters.
    pub(crate) fn counter_bytes(&self) -> usize {
        self.cumulative.memory() + self.carried.memory()
    }
}
