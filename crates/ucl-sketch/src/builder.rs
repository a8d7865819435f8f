//! Settings of a sketch: a budget (`memory`) or exact sizes (`shape`), and the rest.

use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use ucl_control_plane::{DecoderKind, Fallback, Settings, SettingsError};
use ucl_data_plane::mirrored::Allowance;
use ucl_data_plane::{Base, Config, ConfigError, CounterBits, Hashing, HeavyKind, KeyFormat, ReportRule, Seed, Shape};
use ucl_wire::WireError;

use crate::background::NoThread;
use crate::bytes::{Bytes, ParseBytesError};
use crate::epochs::Epochs;
use crate::key::{ByteKey, Key};
use crate::mode::Mode;
use crate::plan::{BudgetError, Plan, Request, SERIES_INTERVAL, plan};
use crate::sketch::UclSketch;

/// Place where the control plane runs.
///
/// ```
/// use ucl_sketch::{Execution, UclSketch};
/// let mut sketch = UclSketch::builder().execution(Execution::Background).build()?;
/// sketch.insert(b"never waits")?;
/// assert_eq!(sketch.view().estimate("never waits").count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Execution {
    /// The control plane runs in the caller's thread, at every cut: deterministic.
    #[default]
    Synchronous,
    /// The control plane runs in threads of its own: inserting never waits for decoding or
    /// training.
    Background,
    /// In threads of its own that lag behind by some epochs at most: the same answers as
    /// [`Execution::Synchronous`], sooner where there are two cores. Inserting waits for whoever
    /// falls behind further.
    // A state does not depend on it, and so does not have it.
    #[serde(skip)]
    Pipelined,
}

/// Settings of a [`UclSketch`], each with a default.
///
/// ```
/// use ucl_sketch::{CounterBits, DecoderKind, UclSketch};
/// let builder = UclSketch::builder().memory("32KB").key_bytes(13).expected_keys(50_000).decoder(DecoderKind::Em);
/// let (config, _) = builder.plan()?; // what would be built
/// assert_eq!(config.shape.counter_bits, CounterBits::B4); // keys outnumber wider counters
/// let sketch = builder.build()?;
/// assert!(sketch.memory().total() <= 32_768);
/// # Ok::<(), ucl_sketch::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Builder<K = ByteKey> {
    memory: Result<Bytes, ParseBytesError>,
    shape: Option<Shape>,
    keys: Result<KeyFormat, ConfigError>,
    expected_keys: Option<u64>,
    counter_bits: Option<CounterBits>,
    base: Option<Base>,
    heavy: Option<HeavyKind>,
    rule: Option<ReportRule>,
    epochs: Option<Epochs>,
    mode: Option<Mode>,
    code_bits: Option<u8>,
    count_bits: Option<u8>,
    uplink_per_item: Option<f64>,
    settings: Settings,
    seed: Option<u128>,
    hashing: Hashing,
    execution: Execution,
    measure_uplink: bool,
    key_type: PhantomData<fn() -> K>,
}

// Derived, these would ask it of the key.
impl<K> Clone for Builder<K> {
    fn clone(&self) -> Self {
        self.clone_for()
    }
}

/// Error of a sketch that cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The text is not a size such as `64KB`.
    #[error(transparent)]
    Size(#[from] ParseBytesError),
    /// The memory budget is too small or too large.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The shape or the key size is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings of the decoder are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The sketch has more counters than a message can hold.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The system could not start a thread.
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// A setting of the sketch was given, but exact counting has no sketch.
    #[error("modes exact and budget choose their own sketch, and take no {what}: leave it out, or choose another mode")]
    NoSketch {
        /// Name of the setting.
        what: &'static str,
    },
    /// The uplink per item is negative, or not a number.
    #[error("the uplink per item must be a number of bytes from 0")]
    Uplink,
    /// A limit of the uplink was given, but the mode has none to keep.
    #[error("mode {mode} sends what it has to: only mode budget keeps to a limit of the uplink")]
    NoBudget {
        /// The mode.
        mode: Mode,
    },
    /// The interval between two cuts is 0.
    #[error("an interval of 0 items never ends an epoch: give at least 1, or none for a single snapshot")]
    Interval,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory: Ok(Bytes(65_536)),
            shape: None,
            keys: Ok(KeyFormat::Digest),
            expected_keys: None,
            counter_bits: None,
            base: None,
            heavy: None,
            rule: None,
            epochs: None,
            mode: None,
            code_bits: None,
            count_bits: None,
            uplink_per_item: None,
            settings: Settings::default(),
            seed: None,
            hashing: Hashing::default(),
            execution: Execution::default(),
            measure_uplink: false,
            key_type: PhantomData,
        }
    }
}

impl Builder {
    /// Sets the type of the keys (default: text or bytes): integers, addresses, strings, tuples.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().keys::<(u32, String)>().build()?;
    /// sketch.insert((7, "tea".to_owned()))?;
    /// assert_eq!(sketch.view().estimate((7, "tea".to_owned())).count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keys<K: Key>(self) -> Builder<K> {
        let keys = K::SIZE.map_or(Ok(KeyFormat::Digest), KeyFormat::for_key_bytes);
        Builder { keys, ..self.clone_for() }
    }

    /// Sets the number of bytes that every key has. Keys of 4, 8, 13 and 16 bytes sit in the slots
    /// as they are. Without it, keys may have any length up to 65,535 bytes.
    pub fn key_bytes(mut self, bytes: usize) -> Self {
        self.keys = KeyFormat::for_key_bytes(bytes);
        self
    }
}

impl<K> Builder<K> {
    fn clone_for<L>(&self) -> Builder<L> {
        Builder {
            memory: self.memory.clone(),
            shape: self.shape,
            keys: self.keys.clone(),
            expected_keys: self.expected_keys,
            counter_bits: self.counter_bits,
            base: self.base,
            heavy: self.heavy,
            rule: self.rule,
            epochs: self.epochs,
            mode: self.mode,
            code_bits: self.code_bits,
            count_bits: self.count_bits,
            uplink_per_item: self.uplink_per_item,
            settings: self.settings.clone(),
            seed: self.seed,
            hashing: self.hashing,
            execution: self.execution,
            measure_uplink: self.measure_uplink,
            key_type: PhantomData,
        }
    }
}

impl<K: Key> Builder<K> {
    /// Sets the memory budget of the data plane as text, such as `"64KB"` (the default). The
    /// planner chooses the shape.
    pub fn memory(mut self, size: &str) -> Self {
        self.memory = size.parse();
        self
    }

    /// Sets the memory budget of the data plane in bytes.
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory = Ok(Bytes(bytes));
        self
    }

    /// Sets the exact shape of the sketch, instead of a budget.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = Some(shape);
        self
    }

    /// Sets the expected number of distinct keys, by which the planner sizes the Bloom filter
    /// (default: a quarter of the budget in bytes).
    pub fn expected_keys(mut self, keys: u64) -> Self {
        self.expected_keys = Some(keys);
        self
    }

    /// Sets the bits per counter, instead of the planner's choice.
    pub fn counter_bits(mut self, bits: CounterBits) -> Self {
        self.counter_bits = Some(bits);
        self
    }

    /// Sets the linear sketch (default: Count-Min, or that of the given shape).
    ///
    /// ```
    /// use ucl_sketch::{Base, DecoderKind, HeavyKind, UclSketch};
    /// let builder = UclSketch::builder().base(Base::CountSketch).heavy(HeavyKind::Elastic);
    /// assert!(builder.clone().decoder(DecoderKind::Lsqr).build().is_ok());
    /// let error = builder.decoder(DecoderKind::Em).build().err().unwrap();
    /// assert!(error.to_string().contains("it needs columns without negative coefficients"));
    /// ```
    pub fn base(mut self, base: Base) -> Self {
        self.base = Some(base);
        self
    }

    /// Sets the heavy part (default: the paper's voting filter, or that of the given shape).
    pub fn heavy(mut self, heavy: HeavyKind) -> Self {
        self.heavy = Some(heavy);
        self
    }

    /// Sets the rule by which keys are sent (default: depends on the decoder).
    pub fn report_rule(mut self, rule: ReportRule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Sets the number of items between two cuts; `None` for no cuts, with one snapshot for each
    /// view.
    pub fn interval(self, items: impl Into<Option<u64>>) -> Self {
        self.epochs(items.into().into())
    }

    /// Sets when epochs end. By default delta's end by load, or every 16,000 items where their
    /// counts are kept ([`Builder::retain_epochs`]).
    pub fn epochs(mut self, epochs: Epochs) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// Sets the number of snapshots that the learned decoder trains on (default: 128).
    pub fn window(mut self, snapshots: usize) -> Self {
        self.settings.window = snapshots;
        self
    }

    /// Sets when a classic decoder answers in place of the network (default: while the network is
    /// not trained, and whenever it is judged to be worse).
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.settings.fallback = fallback;
        self
    }

    /// Sets the mode of counting: exactly (the default), or in a sketch that is decoded.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        if let Mode::Sketch(decoder) = mode {
            self.settings.decoder = decoder;
        }
        self
    }

    /// Sets the decoder that answers: [`Mode::Sketch`] with it.
    pub fn decoder(self, decoder: DecoderKind) -> Self {
        self.mode(Mode::Sketch(decoder))
    }

    /// Sets the number of bits of the codes that stand for keys of any length in [`Mode::Exact`]
    /// (default: 64). Fewer save uplink, and make it likelier that two keys are taken for one; each
    /// answer says how likely.
    pub fn code_bits(mut self, bits: u8) -> Self {
        self.code_bits = Some(bits);
        self
    }

    /// Sets the number of bits of a count in the table of [`Mode::Exact`] and [`Mode::Budget`]
    /// (default: 6): more for items that weigh much
    /// ([`plan::WEIGHTED_COUNT_BITS`](crate::plan::WEIGHTED_COUNT_BITS)). The counters that absorb
    /// what the link does not take are wider then, too: what they cannot hold is sent at once, and
    /// keeps to no limit.
    pub fn count_bits(mut self, bits: u8) -> Self {
        self.count_bits = Some(bits);
        self
    }

    /// Sets what may go up the link, in bytes per item, and so [`Mode::Budget`] (default: no
    /// limit). What does not fit is absorbed by a sketch, and its counts have ranges. The first
    /// bytes, up to a seventh of the memory, may go up before there are items that allow them.
    ///
    /// ```
    /// use ucl_sketch::{Mode, UclSketch};
    /// let builder = UclSketch::builder().memory("16KB").uplink_per_item(0.1);
    /// assert_eq!(builder.chosen_mode(), Mode::Budget);
    /// let mut sketch = builder.measure_uplink(true).build()?;
    /// for i in 0..200_000u64 {
    ///     sketch.insert((i * i % 30_011).to_string())?;
    /// }
    /// let view = sketch.view();
    /// let hit = view.estimate("1");
    /// assert!(hit.lower <= hit.count && hit.count <= hit.upper);
    /// assert!(sketch.uplink_with_open_epoch().unwrap().total() < 20_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn uplink_per_item(mut self, bytes: f64) -> Self {
        self.uplink_per_item = Some(bytes);
        self
    }

    /// Sets the number of epochs whose counts are kept one by one, for questions about time
    /// (default: none), in the modes exact and delta. Without an interval, an epoch then has 16,000
    /// items.
    pub fn retain_epochs(mut self, epochs: usize) -> Self {
        self.settings.retain_epochs = epochs;
        self
    }

    /// Sets everything about decoding at once; also [`Mode::Sketch`] with their decoder.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.mode = Some(Mode::Sketch(settings.decoder));
        self.settings = settings;
        self
    }

    /// Fixes every hash, weight and random choice (default: 128 random bits). Sketches that are to
    /// be merged need the same seed. Whoever knows the seed can choose keys that spoil the
    /// estimates, so where keys may be hostile it has to be random and secret.
    pub fn seed(mut self, seed: u128) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the hash functions (default: the present ones). A sketch that is to be merged with one
    /// that an earlier version began needs those of that version.
    pub fn hashing(mut self, hashing: Hashing) -> Self {
        self.hashing = hashing;
        self
    }

    /// Sets where the control plane runs (default: synchronously).
    pub fn execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Encodes all reports to count the bytes they would take on a wire; always on in the
    /// background.
    pub fn measure_uplink(mut self, measure: bool) -> Self {
        self.measure_uplink = measure;
        self
    }

    /// Returns the mode that was asked for, or that goes with the other settings: settings of the
    /// sketch (a shape, counters, a base sketch, a heavy part, a report rule) ask for one that is
    /// decoded by delta, and a limit of the uplink asks for [`Mode::Budget`]. Without any of them
    /// it is [`Mode::default`].
    ///
    /// ```
    /// use ucl_sketch::{CounterBits, DecoderKind, Mode, UclSketch};
    /// assert_eq!(UclSketch::builder().chosen_mode(), Mode::Exact);
    /// let counters = UclSketch::builder().counter_bits(CounterBits::B4);
    /// assert_eq!(counters.chosen_mode(), Mode::Sketch(DecoderKind::Delta));
    /// ```
    pub fn chosen_mode(&self) -> Mode {
        match (self.mode, self.of_a_sketch(), self.uplink_per_item) {
            (Some(mode), _, _) => mode,
            (None, Some(_), _) => Mode::Sketch(self.settings.decoder),
            (None, None, Some(_)) => Mode::Budget,
            (None, None, None) => Mode::default(),
        }
    }

    /// Keys of any length have codes in a mirrored table.
    fn coded(&self, keys: KeyFormat) -> KeyFormat {
        match keys {
            KeyFormat::Digest => KeyFormat::Code(self.code_bits.unwrap_or(KeyFormat::CODE_BITS)),
            fixed => fixed,
        }
    }

    /// The first setting that only a sketch has, if one was given.
    fn of_a_sketch(&self) -> Option<&'static str> {
        let asked = [
            ("shape", self.shape.is_some()),
            ("counter width", self.counter_bits.is_some()),
            ("base sketch", self.base.is_some()),
            ("heavy part", self.heavy.is_some()),
            ("report rule", self.rule.is_some()),
        ];
        asked.into_iter().find(|(_, asked)| *asked).map(|(what, _)| what)
    }

    /// Returns the configuration and the epochs that [`Builder::build`] would use.
    ///
    /// # Errors
    /// If the settings contradict each other or are beyond a limit, or the budget is too small or
    /// too large.
    pub fn plan(&self) -> Result<(Config, Epochs), BuildError> {
        let keys = self.keys.clone()?;
        let mode = self.chosen_mode();
        if mode.is_mirrored()
            && let Some(what) = self.of_a_sketch()
        {
            return Err(BuildError::NoSketch { what });
        }
        // Epochs that are asked about one by one are told apart by their numbers of items.
        let timed = (mode == Mode::Sketch(DecoderKind::Delta) && self.settings.retain_epochs > 0)
            .then_some(Epochs::Every(SERIES_INTERVAL));
        let epochs = self.epochs.or(timed);
        let planned = match self.shape {
            Some(shape) => {
                let (base, heavy) = (self.base.unwrap_or(shape.base), self.heavy.unwrap_or(shape.heavy));
                let shape = Shape { base, heavy, ..shape };
                let keys = if matches!(heavy, HeavyKind::Mirrored(_)) { self.coded(keys) } else { keys };
                Plan { keys, shape, rule: ReportRule::Paper, epochs: self.default_epochs() }
            }
            None => {
                let keys = if mode.is_mirrored() { self.coded(keys) } else { keys };
                let request = Request {
                    memory: self.memory.clone()?.0,
                    keys,
                    expected_keys: self.expected_keys,
                    counter_bits: self.counter_bits,
                    base: self.base.unwrap_or_default(),
                    heavy: self.heavy.unwrap_or_default(),
                    interval: epochs.and_then(Epochs::interval),
                    watch_load: epochs == Some(Epochs::ByLoad),
                    rule: self.rule,
                    count_bits: self.count_bits,
                    limited: self.uplink_per_item.is_some(),
                };
                plan(mode, request)?
            }
        };
        // Epochs that are to be kept have to end.
        let epochs = epochs.unwrap_or(match planned.epochs {
            Epochs::Open if self.settings.retain_epochs > 0 => Epochs::Every(SERIES_INTERVAL),
            planned => planned,
        });
        if epochs == Epochs::Every(0) {
            return Err(BuildError::Interval);
        }
        planned.shape.validate()?;
        let seed = Seed::new(self.seed.unwrap_or_else(random_seed)).with_hashing(self.hashing);
        Ok((Config { keys: planned.keys, shape: planned.shape, rule: self.rule.unwrap_or(planned.rule), seed }, epochs))
    }

    fn default_epochs(&self) -> Epochs {
        match self.chosen_mode() {
            Mode::Sketch(decoder) => Epochs::of(decoder),
            Mode::Exact => Epochs::Open,
            Mode::Budget => Epochs::ByLoad,
        }
    }

    /// Builds the sketch.
    ///
    /// # Errors
    /// If the settings contradict each other or are beyond a limit, the budget is too small or too
    /// large, or the system has not enough memory or cannot start a thread.
    pub fn build(self) -> Result<UclSketch<K>, BuildError> {
        let (config, epochs) = self.plan()?;
        let mut settings = Settings { seed: config.seed.folded(), ..self.settings.clone() };
        if self.chosen_mode().is_mirrored() {
            // What was absorbed, epoch by epoch; in mode exact that is nothing.
            settings.decoder = DecoderKind::Delta;
        }
        let allowance = self.allowance(&config)?;
        let mut sketch = UclSketch::new(config, settings, epochs, self.execution, self.measure_uplink)?;
        if let Some(allowance) = allowance {
            sketch.plane.set_allowance(allowance);
        }
        Ok(sketch)
    }

    /// What may go up the link, if anything was said of it.
    pub(crate) fn allowance(&self, config: &Config) -> Result<Option<Allowance>, BuildError> {
        let Some(bytes) = self.uplink_per_item else { return Ok(None) };
        if !config.shape.absorbs() {
            return Err(BuildError::NoBudget { mode: self.chosen_mode() });
        }
        if bytes >= 0.0 { Ok(Some(Allowance::per_item(bytes))) } else { Err(BuildError::Uplink) }
    }
}

/// Returns 128 random bits for [`Builder::seed`], where several sketches need the same seed.
///
/// ```
/// use ucl_sketch::{UclSketch, random_seed};
///
/// let seed = random_seed();
/// let mut monday = UclSketch::builder().memory("16KB").seed(seed).build()?;
/// let tuesday = UclSketch::builder().memory("16KB").seed(seed).build()?;
/// monday.merge(tuesday)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn random_seed() -> u128 {
    // The system's randomness keys the standard library's hash maps.
    let random = RandomState::new();
    let half = |number: u8| u128::from(random.hash_one(number));
    half(0) | half(1) << 64
}
