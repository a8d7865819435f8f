//! The control plane: takes reports, closes epochs, decodes, answers.

mod change;
mod merge;
mod mode;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ucl_data_plane::mirrored::Pieces;
use ucl_data_plane::{
    Config, Cut, CutTotals, HashSeed, KeyFlags, KeyFormat, KeyRef, MAX_KEY_BYTES, Memory, Report, ReportSink,
};
use ucl_equations::Columns;

pub(crate) use self::mode::{Mode, fallback_of};
use crate::appended::Appended;
use crate::decoder::DecodeError;
use crate::decoder::learned::{KnownKey, Learned};
use crate::exports::{Exports, KnownKeys, Registered, reported_slots};
use crate::heavy::Held;
use crate::key_state::KeyState;
use crate::open_epoch::OpenEpoch;
use crate::registry::{KeyId, Registry};
use crate::sealed::Past;
use crate::segment::{ReportError, Segment};
use crate::settings::{Settings, SettingsError};
use crate::shared::Shared;
use crate::window::Window;

/// The server's half: registry, counters and decoder.
///
/// It is a [`ReportSink`]: in one process, hand it to [`ucl_data_plane::DataPlane::insert`].
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings};
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
///
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::Paper, seed: 1.into() };
/// let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
/// for i in 0..20_000u32 {
///     data.insert(&(i % 5_000).to_le_bytes(), 1, &mut control)?;
/// }
/// data.cut(&mut control);
/// let view = control.view(|sink| data.peek(sink))?;
/// let answer = view.estimate(&42u32.to_le_bytes());
/// assert!(answer.lower <= 4 && 4 <= answer.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ControlPlane {
    pub(crate) settings: Settings,
    pub(crate) registry: Arc<Registry>,
    pub(crate) keys: Shared<KeyState>,
    pub(crate) segment: Segment,
    pub(crate) open: OpenEpoch,
    /// What a mirrored table has sent, if the data plane has one.
    pub(crate) exports: Option<Exports>,
    pub(crate) window: Window,
    pub(crate) mode: Mode,
    /// Segments that are sealed.
    pub(crate) past: Arc<Past>,
    /// Closed segments that are still decoded together with the open one:
    /// [`ChangeKind::PaperColumns`](crate::ChangeKind::PaperColumns).
    pub(crate) appended: Appended,
    pub(crate) cuts: u64,
    /// Time spent on decoding closed epochs.
    pub(crate) decoding: Duration,
    pub(crate) lagging: bool,
    /// Whether anything came since the last cut.
    pub(crate) since_cut: bool,
    pub(crate) fault: Option<Fault>,
}

/// Reason why a control plane's answers can no longer be trusted.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let mut control = ControlPlane::new(config, Settings::default())?;
/// control.fail("the link went down".into());
/// assert_eq!(control.fault().unwrap().to_string(), "the reports can no longer be followed: the link went down");
/// # Ok::<(), ucl_control_plane::SettingsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The reports contradict each other.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A decoder failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The data plane went over to a configuration that the decoder cannot work with.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Messages could not be read, or are missing.
    #[error("the reports can no longer be followed: {0}")]
    Link(String),
    /// The peek brought nothing. Where the data plane is elsewhere, ask for
    /// [`ControlPlane::view_at_cut`].
    #[error("a view needs the data plane's counters: none came (for a remote data plane, view the last cut)")]
    EmptyPeek,
    /// Reports of an epoch that has not ended yet have come: its cut has to come first.
    #[error("there is no view at the cut: an epoch has begun since, and its own cut has not come yet")]
    NotAtCut,
}

impl ControlPlane {
    /// A control plane for a data plane of this configuration.
    ///
    /// # Errors
    /// If the settings are invalid or do not go with the configuration, or there is not enough
    /// memory.
    pub fn new(config: Config, settings: Settings) -> Result<Self, SettingsError> {
        let mode = Mode::new(&settings, config.shape.geometry())?;
        let window = if settings.decoder.is_trained() { settings.window } else { 0 };
        Ok(Self {
            settings,
            registry: Arc::new(Registry::new(config.keys, HashSeed::new(config.seed))),
            keys: Shared::default(),
            segment: Segment::new(config)?,
            open: OpenEpoch::new(reported_slots(&config))?,
            exports: Exports::new(&config),
            window: Window::new(window),
            mode,
            past: Arc::default(),
            appended: Appended::default(),
            cuts: 0,
            decoding: Duration::ZERO,
            lagging: false,
            since_cut: false,
            fault: None,
        })
    }

    /// Returns the settings of the decoder.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The known keys.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The segment that is being counted into.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// The window of the learned decoder.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The network, if the decoder has one.
    pub fn network(&self) -> Option<&Learned> {
        if let Mode::Learned { network, .. } = &self.mode { Some(network) } else { None }
    }

    /// Cuts received.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// Total weight of all items up to the last cut.
    pub fn weight(&self) -> u64 {
        self.open.weight
    }

    /// Time spent so far on decoding epochs as they close (delta); what a view decodes comes on
    /// top.
    pub fn decoding(&self) -> Duration {
        self.decoding
    }

    /// Number of columns read so far to find the keys that can have occurred in closed epochs
    /// (delta). Each search reads the columns of all known keys.
    pub fn columns_read(&self) -> u64 {
        if let Mode::Delta(delta) = &self.mode { delta.columns_read } else { 0 }
    }

    /// Returns the fault, if there was one: from then on every report is refused.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Refuses every report from now on, and says why: the transport lost the thread.
    pub fn fail(&mut self, why: String) {
        self.fault.get_or_insert(Fault::Link(why));
    }

    /// While lagging, delta adds a closed epoch to the one before it that still waits: less
    /// resolution, nothing lost.
    pub fn set_lagging(&mut self, lagging: bool) {
        self.lagging = lagging;
    }

    /// Applies one report. After one that contradicts those before, nothing is taken in any more,
    /// and every call says so.
    pub fn accept(&mut self, report: Report<'_>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.take(report).inspect_err(|fault| self.fault = Some(fault.clone()))
    }

    fn take(&mut self, report: Report<'_>) -> Result<(), Fault> {
        self.since_cut = !matches!(report, Report::Cut(_));
        match report {
            Report::Key { key, flags } => self.accept_key(key, flags)?,
            Report::Carry { at, times } => self.segment.carry(at.0, times)?,
            Report::Slot { slot, holder, count } => self.accept_slot(slot, holder, count)?,
            Report::Export(piece) => self.accept_export(piece)?,
            Report::Cut(cut) => self.accept_cut(&cut)?,
            Report::Open { config, opening } => self.accept_open(config, opening)?,
        }
        Ok(())
    }

    fn accept_export(&mut self, piece: Pieces<'_>) -> Result<(), ReportError> {
        let Self { exports, registry, keys, open, settings, .. } = self;
        let exports = exports.as_mut().ok_or(ReportError::NoTable)?;
        let changes = (settings.retain_epochs > 0).then_some(&mut open.heavy_changes);
        let known = registry.len();
        exports.take(piece, KnownKeys { registry: Registered::Plane(registry, keys), changes })?;
        self.open.give_columns(known.., &self.registry, &mut self.segment);
        Ok(())
    }

    fn intern(&mut self, identity: &[u8]) -> Result<(KeyId, bool), ReportError> {
        // A view may share the registry; only a new key makes us write to it.
        if let Some(id) = self.registry.find(identity) {
            return Ok((id, false));
        }
        let learned = Registry::to_write(&mut self.registry).learn(identity)?;
        self.keys.push(KeyState::default());
        Ok(learned)
    }

    fn accept_key(&mut self, key: KeyRef<'_>, flags: KeyFlags) -> Result<(), ReportError> {
        let (id, entered) = match key {
            KeyRef::Whole(bytes) => (self.intern(bytes)?.0, true),
            KeyRef::Digest(digest) => (self.intern(&digest)?.0, true),
            KeyRef::Name(bytes) if !self.registry.format().admits(bytes.len()) => {
                return Err(ReportError::Key { want: MAX_KEY_BYTES, got: bytes.len() });
            }
            KeyRef::Name(bytes) => return self.accept_name(bytes),
            KeyRef::Digested { bytes, .. } if !KeyFormat::Digest.admits(bytes.len()) => {
                return Err(ReportError::Key { want: MAX_KEY_BYTES, got: bytes.len() });
            }
            KeyRef::Digested { digest, bytes } => {
                let (id, new) = self.intern(&digest)?;
                // One that the Bloom filter had lost may be known from its slot.
                if new || !self.registry.is_named(id) {
                    Registry::to_write(&mut self.registry).give_name(id, bytes);
                }
                // First sight is not yet the sketch; but the key may enter it unseen, so it needs a
                // column.
                (id, false)
            }
        };
        self.keys.update(id.0 as usize, |state| state.reported(entered, flags.hot));
        self.open.give_column(id, self.registry.identity_of(id), flags.fresh, &mut self.segment);
        Ok(())
    }

    /// The name of a key that has a code. Nothing of it is known to be in the sketch.
    fn accept_name(&mut self, name: &[u8]) -> Result<(), ReportError> {
        let mut room = [0; 16];
        let want = self.registry.format().slot_bytes();
        let identity = self.registry.identity(name, &mut room).ok_or(ReportError::Key { want, got: name.len() })?;
        let known = self.registry.len();
        let (id, _) = self.intern(identity)?;
        if self.registry.format().any_length() && !self.registry.is_named(id) {
            Registry::to_write(&mut self.registry).give_name(id, name);
        }
        self.open.give_columns(known.., &self.registry, &mut self.segment);
        Ok(())
    }

    fn accept_slot(&mut self, slot: u32, holder: Option<&[u8]>, count: u64) -> Result<(), ReportError> {
        let holder = holder.map(|identity| self.intern(identity)).transpose()?.map(|(id, _)| id);
        for former in self.open.take_slot(slot, holder, count)? {
            self.enter_sketch(former);
        }
        Ok(())
    }

    fn enter_sketch(&mut self, former: Held) {
        self.keys.update(former.key.0 as usize, |state| state.raise_floor(former.count));
        self.open.enter_sketch(former, self.registry.identity_of(former.key), &mut self.segment);
    }

    fn accept_cut(&mut self, cut: &Cut<'_>) -> Result<(), Fault> {
        for former in self.open.take_missing() {
            self.enter_sketch(former);
        }
        let before = self.segment.sketch_weight();
        let counters = self.segment.close_epoch(cut)?;
        self.check_heavy(&cut.totals)?;
        let weight = cut.totals.sketch_weight.saturating_sub(before);
        self.cuts += 1;
        // Only the learned decoder's window keeps counters.
        let cumulative = if self.window.length() > 0 { self.segment.cumulative().to_vec() } else { Vec::new() };
        self.window.push(&self.appended.counters(&cumulative), weight);
        let changes = self.open.close(&cut.totals, self.segment.columns().len());
        if let Mode::Delta(delta) = &mut self.mode {
            delta.push(&self.segment, changes, weight, counters, self.lagging);
            let start = Instant::now();
            delta.decode_due(&self.segment, &self.settings.em)?;
            self.decoding += start.elapsed();
        }
        if self.settings.train_every.is_some_and(|every| self.cuts.is_multiple_of(every)) {
            self.train()?;
        }
        Ok(())
    }

    /// What is in no sketch must be in the heavy part.
    fn check_heavy(&mut self, totals: &CutTotals) -> Result<(), ReportError> {
        self.open.heavy.settle();
        let weight = self.weight_in_heavy(totals.weight, totals.sketch_weight);
        let reported = match &self.exports {
            Some(exports) => Some(exports.weight()),
            None => self.open.heavy.weight(),
        };
        let same = weight.is_some() && weight == reported;
        same.then_some(()).ok_or(ReportError::Heavy { items: totals.items, weight, reported })
    }

    /// Trains the learned decoder on the window, now; nothing for other decoders.
    pub fn train(&mut self) -> Result<(), DecodeError> {
        let known = self.known_keys();
        let Mode::Learned { network, .. } = &mut self.mode else { return Ok(()) };
        let columns = self.appended.columns(self.segment.columns());
        network.train(&columns, &known, &self.window, self.open.smallest_weight)
    }

    /// A training to be run elsewhere, on a copy of everything it needs; `None` for other decoders.
    pub fn training_job(&self, stop: Arc<AtomicBool>) -> Option<TrainingJob> {
        let network = self.network()?;
        Some(TrainingJob {
            network: network.for_training(stop),
            columns: self.appended.columns(self.segment.columns()).into_owned(),
            known: self.known_keys(),
            window: self.window.clone(),
            smallest_weight: self.open.smallest_weight,
        })
    }

    /// Installs a network that was trained elsewhere.
    pub fn install(&mut self, trained: Result<Learned, DecodeError>) {
        match (trained, &mut self.mode) {
            // One that was trained for a segment that has been sealed since is of no use.
            (Ok(trained), Mode::Learned { network, .. }) if trained.generation() == network.generation() => {
                **network = trained;
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                self.fault.get_or_insert(error.into());
            }
        }
    }

    /// What is known of the key of each column, the appended segments' first.
    fn known_keys(&self) -> Vec<KnownKey> {
        let state = |key: KeyId| self.keys.get(key.0 as usize);
        let lowers = self.appended.lowers(&self.segment, |key| state(key).lower(self.open.smallest_weight));
        let keys = self.appended.keys(&self.segment);
        keys.zip(lowers).map(|(key, least)| KnownKey { hot: state(key).hot(), least }).collect()
    }

    /// Bytes by part.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("keys", self.registry.key_bytes());
        memory.add("key index", self.registry.index_bytes());
        memory.add("key states", self.keys.memory());
        memory.add("columns", self.segment.column_bytes());
        memory.add("counters", self.segment.counter_bytes());
        self.open.heavy.add_memory(&mut memory);
        if let Some(exports) = &self.exports {
            exports.add_memory(&mut memory);
        }
        memory.add("sealed segments", self.past.memory() + self.appended.memory());
        memory.add("window", self.window.memory());
        match &self.mode {
            Mode::Classic(_) => {}
            Mode::Learned { network, .. } => {
                memory.add("network", network.solver().parameters() * 3 * size_of::<f32>())
            }
            Mode::Delta(delta) => delta.add_memory(&mut memory),
        }
        memory
    }
}

impl ReportSink for ControlPlane {
    fn report(&mut self, report: Report<'_>) {
        // What went wrong is kept, for whoever asks.
        let _ = self.accept(report);
    }
}

/// A training with a copy of all it needs.
///
/// ```
/// use ucl_control_plane::{ControlPlane, DecoderKind, Settings};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let settings = Settings { decoder: DecoderKind::Learned, ..Settings::default() };
/// let mut control = ControlPlane::new(config, settings)?;
/// let job = control.training_job(Default::default()).unwrap();
/// let trained = std::thread::spawn(|| job.run()).join().unwrap();
/// control.install(trained);
/// # Ok::<(), ucl_control_plane::SettingsError>(())
/// ```
pub struct TrainingJob {
    network: Learned,
    columns: Columns,
    known: Vec<KnownKey>,
    window: Window,
    smallest_weight: u64,
}

impl TrainingJob {
    /// Trains; may take long.
    pub fn run(mut self) -> Result<Learned, DecodeError> {
        self.network.train(&self.columns, &self.known, &self.window, self.smallest_weight)?;
        Ok(self.network)
    }
}

/// The smallest of some counters.
pub(crate) fn least(indices: &[u32], counter: impl Fn(usize) -> i64) -> u64 {
    indices.iter().map(|&at| counter(at as usize)).min().unwrap_or(0).max(0) as u64
}
