//! A segment: one configuration of the linear sketch, with its columns and its counters.
//!
//! Counters arrive as remainders with carries; the segment rebuilds what 64-bit counters would hold, and checks it:
//! every row of unsigned counters must add up to the weight that the data plane says it put in. A lost, repeated or
//! reordered report breaks that sum, and is named, never silently wrong.

use serde::{Deserialize, Serialize};
use ucl_data_plane::{ColumnMap, Config, Cut, HashSeed, Inconsistent, RowMap, ensure};
use ucl_equations::{ColumnId, Columns};

use crate::registry::{KeyId, Registry, key_hash};
use crate::state::check_rows;

/// Marks a key without a column.
const NONE: u32 = u32::MAX;

/// One configuration of the linear sketch.
///
/// ```
/// use ucl_control_plane::Segment;
/// use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1 };
/// let segment = Segment::new(config);
/// assert_eq!((segment.cumulative().len(), segment.columns().len()), (4096, 0));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Segment {
    config: Config,
    // The configuration and the keys give all columns again.
    #[serde(skip, default = "crate::state::no_seed")]
    seed: HashSeed,
    #[serde(skip, default = "crate::state::no_map")]
    map: RowMap,
    #[serde(skip, default = "crate::state::no_columns")]
    columns: Columns,
    /// The key of each column.
    keys: Vec<KeyId>,
    /// The column of each key, [`NONE`] for none.
    #[serde(skip)]
    column_of: Vec<u32>,
    /// Counters of all closed epochs.
    cumulative: Vec<i64>,
    /// What carries have brought since the last cut.
    epoch: Vec<i64>,
    carries: u64,
    sketch_weight: u64,
}

/// A report that contradicts those before it: the data plane's state is not what the reports said.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Fault, ReportError, Settings};
/// use ucl_data_plane::{CounterIndex, Report};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1 };
/// let mut control = ControlPlane::new(config, Settings::default())?;
/// let stray = Report::Carry { at: CounterIndex(9_999), times: 1 };
/// let error = control.accept(stray).unwrap_err();
/// assert_eq!(error, Fault::Report(ReportError::Counter { at: 9_999, counters: 4_096 }));
/// # Ok::<(), ucl_control_plane::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// A counter index outside the segment's sketch.
    #[error("a carry names counter {at}, but the sketch has {counters}")]
    Counter {
        /// Named.
        at: u32,
        /// There are.
        counters: usize,
    },
    /// A cut with another number of counters.
    #[error("a cut has {got} counters, but the sketch has {want}")]
    Counters {
        /// Configured.
        want: usize,
        /// Received.
        got: usize,
    },
    /// Carries were lost, repeated or mixed up with another epoch's.
    #[error(
        "the cut at item {items} says that carries of {sent} in all were sent since the last one, but {received} arrived"
    )]
    Carries {
        /// Item index of the cut.
        items: u64,
        /// By the data plane's sum.
        sent: u64,
        /// Received.
        received: u64,
    },
    /// A cut was lost or repeated: the rows no longer add up.
    #[error(
        "at item {items} row {row} of the counters adds up to {sum}, but {sketch_weight} entered the sketch: \
         a report was lost or repeated"
    )]
    RowSum {
        /// Item index of the cut.
        items: u64,
        /// The row.
        row: usize,
        /// Its sum.
        sum: i64,
        /// What it should be.
        sketch_weight: u64,
    },
    /// A slot number outside the heavy part.
    #[error("a report names heavy slot {slot}, but there are {slots}")]
    Slot {
        /// Named.
        slot: u32,
        /// There are.
        slots: u32,
    },
    /// A key that does not fit the configuration.
    #[error("a report has a key of {got} bytes where {want} are expected")]
    Key {
        /// Expected.
        want: usize,
        /// Received.
        got: usize,
    },
}

impl Segment {
    /// An empty segment.
    pub fn new(config: Config) -> Self {
        let counters = config.shape.geometry().counters();
        Self { cumulative: vec![0; counters], epoch: vec![0; counters], ..Self::without_counters(config) }
    }

    fn without_counters(config: Config) -> Self {
        let geometry = config.shape.geometry();
        let (counters, degree) = (geometry.counters(), usize::from(geometry.rows));
        Self {
            config,
            seed: HashSeed::new(config.seed),
            map: RowMap::new(geometry),
            columns: if geometry.signed { Columns::signed(counters, degree) } else { Columns::ones(counters, degree) },
            keys: Vec::new(),
            column_of: Vec::new(),
            cumulative: Vec::new(),
            epoch: Vec::new(),
            carries: 0,
            sketch_weight: 0,
        }
    }

    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its columns.
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
        self.column_of.get(key.0 as usize).filter(|&&c| c != NONE).map(|&c| ColumnId(c))
    }

    /// Gives the key a column, unless it has one.
    pub(crate) fn ensure_column(&mut self, key: KeyId, identity: &[u8]) -> ColumnId {
        if let Some(column) = self.column_of(key) {
            return column;
        }
        let column = self.map.column(key_hash(&self.seed, identity));
        let id = if self.config.shape.signed {
            self.columns.push_signed(column.indices(), column.signs())
        } else {
            self.columns.push(column.indices())
        };
        self.keys.push(key);
        if self.column_of.len() <= key.0 as usize {
            self.column_of.resize(key.0 as usize + 1, NONE);
        }
        self.column_of[key.0 as usize] = id.0;
        id
    }

    /// The counters a key would use, known or not.
    pub(crate) fn positions(&self, identity: &[u8]) -> ucl_data_plane::Column {
        self.map.column(key_hash(&self.seed, identity))
    }

    pub(crate) fn carry(&mut self, at: u32, times: i64) -> Result<(), ReportError> {
        let counters = self.epoch.len();
        let slot = self.epoch.get_mut(at as usize).ok_or(ReportError::Counter { at, counters })?;
        *slot += times * self.config.shape.counter_bits.carry_unit(self.config.shape.signed);
        self.carries = self.carries.wrapping_add(times as u64);
        Ok(())
    }

    /// What carries have brought to each counter since the last cut.
    pub(crate) fn carried(&self) -> &[i64] {
        &self.epoch
    }

    /// What all carries since the last cut come to.
    pub(crate) fn carries(&self) -> u64 {
        self.carries
    }

    /// The open epoch's counters, by their remainders.
    pub(crate) fn open_epoch(&self, remainders: &[i64]) -> Vec<i64> {
        self.epoch.iter().zip(remainders).map(|(carried, rest)| carried + rest).collect()
    }

    /// Closes the epoch and returns its counters, after checking that they add up.
    pub(crate) fn close_epoch(&mut self, cut: &Cut<'_>) -> Result<Vec<i64>, ReportError> {
        let (want, got) = (self.epoch.len(), cut.counters.len());
        if want != got {
            return Err(ReportError::Counters { want, got });
        }
        if self.carries != cut.carries {
            return Err(ReportError::Carries { items: cut.items, sent: cut.carries, received: self.carries });
        }
        let remainders: Vec<i64> = cut.counters.iter().collect();
        let epoch = self.open_epoch(&remainders);
        for (total, new) in self.cumulative.iter_mut().zip(&epoch) {
            *total += new;
        }
        self.epoch.fill(0);
        self.carries = 0;
        self.sketch_weight = cut.sketch_weight;
        if !self.config.shape.signed {
            for (row, counters) in self.cumulative.chunks(self.config.shape.width as usize).enumerate() {
                let sum: i64 = counters.iter().sum();
                if sum != cut.sketch_weight as i64 {
                    return Err(ReportError::RowSum { items: cut.items, row, sum, sketch_weight: cut.sketch_weight });
                }
            }
        }
        Ok(epoch)
    }

    /// Makes a segment that was just read usable, or says why it cannot be one of this configuration.
    pub(crate) fn restored(mut self, config: &Config, registry: &Registry) -> Result<Self, Inconsistent> {
        ensure(self.config == *config, || "a segment has another configuration than the file".into())?;
        let (geometry, sketch_weight) = (config.shape.geometry(), self.sketch_weight);
        let (want, cumulative, epoch) = (geometry.counters(), self.cumulative.len(), self.epoch.len());
        let lengths = cumulative == want && epoch == want;
        ensure(lengths, || format!("{cumulative} and {epoch} counters in a segment of {want}"))?;
        ensure(sketch_weight <= i64::MAX as u64, || format!("a weight of {sketch_weight} in the sketch"))?;
        check_rows(&self.cumulative, config, sketch_weight)?;
        let unit = config.shape.counter_bits.carry_unit(config.shape.signed);
        let stray = self.epoch.iter().position(|carried| carried % unit != 0);
        ensure(stray.is_none(), || format!("the carries of counter {stray:?} are no multiple of {unit}"))?;
        let carries = self.epoch.iter().fold(0u64, |sum, carried| sum.wrapping_add((carried / unit) as u64));
        ensure(carries == self.carries, || format!("carries of {carries} in all, not {}", self.carries))?;
        // Lengths are what they should be: only now is anything built from them.
        let keys = std::mem::take(&mut self.keys);
        let Self { cumulative, epoch, .. } = self;
        self = Self { cumulative, epoch, carries, sketch_weight, ..Self::without_counters(*config) };
        for (column, &key) in keys.iter().enumerate() {
            let fresh = (key.0 as usize) < registry.len() && self.column_of(key).is_none();
            ensure(fresh, || format!("column {column} belongs to key {}, of {}", key.0, registry.len()))?;
            self.ensure_column(key, registry.identity_of(key));
        }
        Ok(self)
    }

    /// The counters of all closed epochs.
    pub fn cumulative(&self) -> &[i64] {
        &self.cumulative
    }

    /// The weight that entered the sketch in all closed epochs.
    pub fn sketch_weight(&self) -> u64 {
        self.sketch_weight
    }

    /// Bytes of columns and their numbers.
    pub(crate) fn column_bytes(&self) -> usize {
        self.columns.memory() + (self.keys.capacity() + self.column_of.capacity()) * size_of::<u32>()
    }

    /// Bytes of counters.
    pub(crate) fn counter_bytes(&self) -> usize {
        (self.cumulative.capacity() + self.epoch.capacity()) * size_of::<i64>()
    }
}
