//! The control plane: takes reports, closes epochs, decodes, answers.

mod change;
pub(crate) mod joint;
mod merge;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ucl_data_plane::{Config, Cut, Geometry, HashSeed, KeyFlags, KeyRef, MAX_KEY_BYTES, Memory, Report, ReportSink};
use ucl_equations::{ColumnId, Columns, Workspace};

use crate::decoder::classic::Classic;
use crate::decoder::learned::{KnownKey, Learned};
use crate::decoder::{DecodeError, Decoder, DecoderKind, System, refine};
use crate::delta::{self, Epoch};
use crate::heavy::{HeavyMirror, Held};
use crate::key_state::KeyState;
use crate::registry::{KeyId, Registry};
use crate::sealed::{Past, Sealed};
use crate::segment::{ReportError, Segment};
use crate::series::Series;
use crate::settings::{Settings, SettingsError};
use crate::tight;
use crate::window::Window;

pub(crate) enum Mode {
    Classic(Classic),
    Learned { network: Box<Learned>, fallback: Classic },
    Delta { totals: delta::Totals, pending: Vec<Epoch>, series: Series },
}

impl Mode {
    fn new(settings: &Settings, geometry: Geometry) -> Result<Self, SettingsError> {
        settings.decoder.supports(&geometry)?;
        Ok(match settings.decoder {
            DecoderKind::Delta => Self::Delta {
                totals: delta::Totals::default(),
                pending: Vec::new(),
                series: Series::new(settings.retain_epochs),
            },
            DecoderKind::Learned | DecoderKind::Refined => {
                let budget = settings.budget();
                let (learned, fallback) = (settings.learned.clone(), settings.fallback);
                let network = Box::new(Learned::new(geometry, learned, budget, fallback, settings.seed)?);
                Self::Learned { network, fallback: fallback_of(geometry, settings) }
            }
            kind => Self::Classic(Classic::new(kind, settings.em).expect("the other kinds are classic")),
        })
    }
}

/// What stands behind the data plane: registry, counters, decoder.
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
    pub(crate) keys: Vec<KeyState>,
    pub(crate) segment: Segment,
    pub(crate) heavy: HeavyMirror,
    pub(crate) window: Window,
    pub(crate) mode: Mode,
    /// Columns at the last cut: those beyond are new in the open epoch.
    pub(crate) columns_at_cut: usize,
    /// Evictions learned of in the open epoch, from the slots of the cut being received.
    pub(crate) evicted: Vec<(ColumnId, u64)>,
    /// New columns of the open epoch whose keys may have been in the sketch before: the Bloom filter had lost them.
    pub(crate) late: Vec<ColumnId>,
    /// How many keys the Bloom filter had lost, or may have lost, that became known all the same.
    pub(crate) found_again: usize,
    /// What changed in the heavy part since the last cut, by key.
    pub(crate) heavy_changes: Vec<(KeyId, i64)>,
    pub(crate) smallest_weight: u64,
    /// Segments that are sealed.
    pub(crate) past: Arc<Past>,
    /// Closed segments that are still decoded together with the open one: [`ChangeKind::PaperColumns`](crate::ChangeKind::PaperColumns).
    pub(crate) appended: Vec<Arc<Sealed>>,
    /// What was in the heavy part before it changed, until a cut tells who is still there.
    pub(crate) moved: Vec<Held>,
    /// Items and their weight at the last cut.
    pub(crate) at_cut: (u64, u64),
    pub(crate) cuts: u64,
    /// Time spent on decoding closed epochs.
    pub(crate) decoding: Duration,
    pub(crate) lagging: bool,
    pub(crate) fault: Option<Fault>,
}

/// Why a control plane's answers can no longer be trusted.
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
}

impl ControlPlane {
    /// A control plane for a data plane of this configuration.
    pub fn new(config: Config, settings: Settings) -> Result<Self, SettingsError> {
        let mode = Mode::new(&settings, config.shape.geometry())?;
        let window = if settings.decoder.is_trained() { settings.window } else { 0 };
        Ok(Self {
            settings,
            registry: Arc::new(Registry::new(config.keys, HashSeed::new(config.seed))),
            keys: Vec::new(),
            segment: Segment::new(config)?,
            heavy: HeavyMirror::new(config.shape.slots)?,
            window: Window::new(window),
            mode,
            columns_at_cut: 0,
            evicted: Vec::new(),
            late: Vec::new(),
            found_again: 0,
            heavy_changes: Vec::new(),
            smallest_weight: 0,
            past: Arc::default(),
            appended: Vec::new(),
            moved: Vec::new(),
            at_cut: (0, 0),
            cuts: 0,
            decoding: Duration::ZERO,
            lagging: false,
            fault: None,
        })
    }

    /// How it decodes.
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

    /// Time spent so far on decoding epochs as they close (delta); what a view decodes comes on top.
    pub fn decoding(&self) -> Duration {
        self.decoding
    }

    /// What went wrong, if anything did: from then on nothing is taken in any more.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Takes nothing in any more, and says why: the transport lost the thread.
    pub fn fail(&mut self, why: String) {
        self.fault.get_or_insert(Fault::Link(why));
    }

    /// While lagging, delta adds a closed epoch to the one before it that still waits: less resolution, nothing lost.
    pub fn set_lagging(&mut self, lagging: bool) {
        self.lagging = lagging;
    }

    /// Takes one report. After one that contradicts those before, nothing is taken in any more, and every call says so.
    pub fn accept(&mut self, report: Report<'_>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        self.take(report).inspect_err(|fault| self.fault = Some(fault.clone()))
    }

    fn take(&mut self, report: Report<'_>) -> Result<(), Fault> {
        match report {
            Report::Key { key, flags } => self.accept_key(key, flags)?,
            Report::Carry { at, times } => self.segment.carry(at.0, times)?,
            Report::Slot { slot, holder, count } => self.accept_slot(slot, holder, count)?,
            Report::Cut(cut) => self.accept_cut(&cut)?,
            Report::Open { config, opening } => self.accept_open(config, opening)?,
        }
        Ok(())
    }

    fn intern(&mut self, identity: &[u8]) -> Result<(KeyId, bool), ReportError> {
        let want = self.registry.format().slot_bytes();
        if identity.len() != want {
            return Err(ReportError::Key { want, got: identity.len() });
        }
        // A view may share the registry; only a new key makes us write to it.
        if let Some(id) = self.registry.find(identity) {
            return Ok((id, false));
        }
        let id = Arc::make_mut(&mut self.registry).intern(identity).0;
        tight::push(&mut self.keys, KeyState::default());
        Ok((id, true))
    }

    fn accept_key(&mut self, key: KeyRef<'_>, flags: KeyFlags) -> Result<(), ReportError> {
        let (id, entered) = match key {
            KeyRef::Whole(bytes) => (self.intern(bytes)?.0, true),
            KeyRef::Digest(digest) => (self.intern(&digest)?.0, true),
            KeyRef::Digested { bytes, .. } if bytes.len() > MAX_KEY_BYTES => {
                return Err(ReportError::Key { want: MAX_KEY_BYTES, got: bytes.len() });
            }
            KeyRef::Digested { digest, bytes } => {
                let (id, new) = self.intern(&digest)?;
                // One that the Bloom filter had lost may be known from its slot.
                if new || !self.registry.is_named(id) {
                    Arc::make_mut(&mut self.registry).give_name(id, bytes);
                }
                // First sight is not yet the sketch; but the key may enter it unseen, so it needs a column.
                (id, false)
            }
        };
        self.keys[id.0 as usize].reported(entered, flags.hot);
        self.give_column(id, flags.fresh);
        Ok(())
    }

    /// Gives the key a column, unless it has one. One that is not `fresh` may have been in the sketch before.
    fn give_column(&mut self, key: KeyId, fresh: bool) -> ColumnId {
        let before = self.segment.columns().len();
        let column = self.segment.ensure_column(key, self.registry.identity_of(key));
        if !fresh && column.0 as usize == before {
            self.late.push(column);
            self.found_again += 1;
        }
        column
    }

    fn accept_slot(&mut self, slot: u32, holder: Option<&[u8]>, count: u64) -> Result<(), ReportError> {
        if slot as usize >= self.heavy.len() {
            return Err(ReportError::Slot { slot, slots: self.heavy.len() as u32 });
        }
        self.heavy.report(slot).map_err(|before| ReportError::SlotOrder { slot, before })?;
        let holder = holder.map(|identity| self.intern(identity)).transpose()?.map(|(id, _)| id);
        if let Some(former) = self.heavy.change(slot, holder, count, &mut self.heavy_changes) {
            self.went_into_the_sketch(former);
        }
        // Who holds a slot with nothing in it was flushed, or exchanged in: all it has is in the sketch.
        if let Some(key) = holder.filter(|_| count == 0) {
            self.went_into_the_sketch(Held { key, count });
        }
        Ok(())
    }

    /// A key lost its place in the heavy part: it is in the sketch, even if the Bloom filter kept its name from us then.
    fn went_into_the_sketch(&mut self, former: Held) {
        self.keys[former.key.0 as usize].raise_floor(former.count);
        let column = self.give_column(former.key, false);
        if former.count > 0 {
            self.evicted.push((column, former.count));
        }
    }

    fn accept_cut(&mut self, cut: &Cut<'_>) -> Result<(), Fault> {
        let moved = std::mem::take(&mut self.moved);
        for lost in self.heavy.missing(&moved) {
            self.went_into_the_sketch(lost);
        }
        let before = self.segment.sketch_weight();
        let counters = self.segment.close_epoch(cut)?;
        self.check_heavy(cut)?;
        self.smallest_weight = cut.totals.smallest_weight;
        self.at_cut = (cut.totals.items, cut.totals.weight);
        self.cuts += 1;
        // Only the learned decoder has a window.
        let wanted = (self.window.length() > 0).then(|| self.segment.cumulative().to_vec());
        let cumulative = joint::counters(&self.appended, wanted.unwrap_or_default());
        self.window.push(&cumulative, cut.totals.sketch_weight.saturating_sub(before));
        let evicted = std::mem::take(&mut self.evicted);
        let heavy = std::mem::take(&mut self.heavy_changes);
        let (first_new, known) = (self.columns_at_cut, self.segment.columns().len());
        self.columns_at_cut = known;
        if let Mode::Delta { totals, pending, series } = &mut self.mode {
            let columns = self.segment.columns();
            let cumulative = |at| self.segment.cumulative().get(at);
            totals.push_new(columns, known, &self.late, |at| counters.get(at), cumulative);
            let (known, first_new) = (known as u32, first_new as u32);
            let (counters, weight) = (counters.pack(), cut.totals.sketch_weight.saturating_sub(before));
            let late = delta::worth_a_look(self.segment.config().rule, &self.late);
            let epoch = Epoch { counters, weight, known, first_new, late, evicted, heavy, items: cut.totals.items };
            match pending.last_mut() {
                Some(last) if self.lagging => {
                    totals.new_in_the_first_part(columns, last.first_new..last.known, |at| epoch.counters.get(at));
                    last.add(epoch);
                }
                _ => pending.push(epoch),
            }
            if delta::is_full(pending) {
                let start = Instant::now();
                totals.add_block(&self.segment, pending, &self.settings.em, series)?;
                pending.clear();
                self.decoding += start.elapsed();
            }
        }
        self.late.clear();
        if self.settings.train_every.is_some_and(|every| self.cuts.is_multiple_of(every)) {
            self.train()?;
        }
        Ok(())
    }

    /// What is in no sketch must be in the heavy part.
    fn check_heavy(&mut self, cut: &Cut<'_>) -> Result<(), ReportError> {
        self.heavy.settle();
        let (weight, reported) = (self.weight_in_heavy(cut.totals.weight, cut.totals.sketch_weight), self.heavy.weight());
        let same = weight.is_some() && weight == reported;
        same.then_some(()).ok_or(ReportError::Heavy { items: cut.totals.items, weight, reported })
    }

    /// Trains the learned decoder on the window, now; nothing for other decoders.
    pub fn train(&mut self) -> Result<(), DecodeError> {
        let known = self.known_keys();
        let Mode::Learned { network, .. } = &mut self.mode else { return Ok(()) };
        let columns = joint::columns(&self.appended, self.segment.columns());
        network.train(&columns, &known, &self.window, self.smallest_weight)
    }

    /// A training to be run elsewhere, on a copy of everything it needs; `None` for other decoders.
    pub fn training_job(&self, stop: Arc<AtomicBool>) -> Option<TrainingJob> {
        let network = self.network()?;
        Some(TrainingJob {
            network: network.for_training(stop),
            columns: joint::columns(&self.appended, self.segment.columns()).into_owned(),
            known: self.known_keys(),
            window: self.window.clone(),
            smallest_weight: self.smallest_weight,
        })
    }

    /// Takes over a network that was trained elsewhere.
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
        let keys = self.appended.iter().flat_map(|sealed| sealed.segment.keys()).chain(self.segment.keys());
        let lowers = joint::lowers(&self.appended, &self.segment, &self.keys, self.smallest_weight);
        keys.zip(lowers).map(|(key, least)| KnownKey { hot: self.keys[key.0 as usize].hot(), least }).collect()
    }

    /// Bytes by part.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("keys", self.registry.key_bytes());
        memory.add("key index", self.registry.index_bytes());
        memory.add("key states", self.keys.capacity() * size_of::<KeyState>());
        memory.add("columns", self.segment.column_bytes());
        memory.add("counters", self.segment.counter_bytes());
        self.heavy.add_memory(&mut memory);
        memory.add("sealed segments", self.past.memory() + self.appended.iter().map(|s| s.memory()).sum::<usize>());
        memory.add("window", self.window.memory());
        match &self.mode {
            Mode::Classic(_) => {}
            Mode::Learned { network, .. } => {
                memory.add("network", network.solver().parameters() * 3 * size_of::<f32>())
            }
            Mode::Delta { totals, pending, series } => {
                memory.add("totals", totals.memory());
                memory.add("series", series.memory());
                memory.add("pending epochs", pending.iter().map(Epoch::memory).sum());
            }
        }
        memory
    }
}

/// Who answers while the network cannot.
pub(crate) fn fallback_of(geometry: Geometry, settings: &Settings) -> Classic {
    let kind = if geometry.signed { DecoderKind::Lsmr } else { DecoderKind::Em };
    Classic::new(kind, settings.em).expect("a classic kind")
}

/// Decodes counters by the snapshot decoder; which one answered, and whether as a fallback.
pub(crate) fn decode_snapshot(
    mode: &mut Mode,
    settings: &Settings,
    system: &System<'_>,
) -> Result<(Vec<f64>, DecoderKind, bool), DecodeError> {
    match mode {
        Mode::Classic(classic) => Ok((classic.decode(system)?, classic.kind(), false)),
        Mode::Learned { network, .. } if answers(network, settings.decoder) => {
            let mut x = network.decode(system)?;
            if settings.decoder == DecoderKind::Refined {
                x = refine(system, &x, &settings.em, &mut Workspace::default())?;
            }
            Ok((x, settings.decoder, false))
        }
        Mode::Learned { fallback, .. } => Ok((fallback.decode(system)?, fallback.kind(), true)),
        Mode::Delta { .. } => unreachable!("delta decodes epochs"),
    }
}

/// Whether the network answers. The refined decoder takes from it what EM can use, so it needs no verdict.
fn answers(network: &Learned, decoder: DecoderKind) -> bool {
    if decoder == DecoderKind::Refined { network.is_ready() } else { network.is_trusted() }
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
