//! A control plane that is written down, and one that was read back.
//!
//! [`ControlPlane::state`] borrows everything that a later run needs to go on as if there had been
//! no stop: the registry, what was counted, the learned decoder's window, delta's totals with the
//! epochs that still wait for their block, and the network with its optimiser and random state.
//! Columns and hash tables follow from the keys and are not part of it; nor are times and the
//! history of training, which no answer depends on. Sealed segments are part of it, with what was
//! decoded.
//!
//! Whoever wrote the parts may have meant harm. [`ControlPlane::restore`] holds every length
//! against the configuration before anything is built from it, every number of a key or column
//! against how many there are, and every sum against the weight of the stream;
//! [`ControlPlane::check_against`] does the same with what the data plane says. After both, no
//! question and no report can panic, overflow, or run for longer than the settings ask for.

mod checks;
mod earlier;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ucl_data_plane::{BaseMap, Config, Geometry, HashSeed, HeavyKind, Inconsistent, RowMap, ensure};
use ucl_equations::{ColumnId, Columns};
use ucl_learned::{Contents, Solver};

pub(crate) use checks::check_rows;

use crate::decoder::classic::Classic;
use crate::decoder::judge::Verdict;
use crate::decoder::learned::Learned;
use crate::delta::{Delta, Doubts, Epoch, Totals};
use crate::exports::{Exports, ExportsState};
use crate::heavy::{HeavyMirror, Held};
use crate::key_state::KeyState;
use crate::open_epoch::OpenEpoch;
use crate::plane::{ControlPlane, Fault, Mode, fallback_of};
use crate::registry::{KeyId, Registry};
use crate::sealed::{Past, Sealed};
use crate::segment::Segment;
use crate::series::Series;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::window::Window;

/// Everything a control plane needs to go on, in parts that are written one by one.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Settings};
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let control = ControlPlane::new(config, Settings::default())?;
/// let again = ControlPlane::restore(config, control.settings().clone(), control.state()?)?;
/// assert_eq!(again.cuts(), control.cuts());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ControlState<'a> {
    /// The known keys.
    pub registry: Cow<'a, Registry>,
    /// Counters, the heavy part's mirror, and what is known of each key.
    pub counting: Counting<'a>,
    /// Segments before the open one; `None` if there never were any.
    pub earlier: Option<Earlier<'a>>,
    /// The learned decoder's snapshots.
    pub window: Cow<'a, Window>,
    /// Delta's sums.
    pub delta: Option<DeltaState<'a>>,
    /// Largest error of delta's sums, if it has decoded anything and knows it.
    pub doubts: Option<Cow<'a, Doubts>>,
    /// The network.
    pub model: Option<Model>,
    /// Counts that a mirrored table has sent.
    pub exports: Option<ExportsState<'a>>,
}

/// Counters, the heavy part's mirror, and what is known of each key.
#[derive(Clone, Serialize, Deserialize)]
pub struct Counting<'a> {
    keys: Cow<'a, Shared<KeyState>>,
    segment: Cow<'a, Segment>,
    heavy: Cow<'a, HeavyMirror>,
    columns_at_cut: usize,
    evicted: Cow<'a, [(ColumnId, u64)]>,
    late: Cow<'a, [ColumnId]>,
    found_again: usize,
    heavy_changes: Cow<'a, [(KeyId, i64)]>,
    moved: Cow<'a, [Held]>,
    smallest_weight: u64,
    at_cut: (u64, u64),
    cuts: u64,
}

/// Serialized form of the counts from before the sketch changed.
#[derive(Clone, Serialize, Deserialize)]
pub struct Earlier<'a> {
    past: Cow<'a, Past>,
    appended: Cow<'a, [Arc<Sealed>]>,
}

/// Serialized form of delta's sums, and of the epochs that it has not decoded yet.
#[derive(Clone, Serialize, Deserialize)]
pub struct DeltaState<'a> {
    totals: Cow<'a, Totals>,
    pending: Cow<'a, [Epoch]>,
    series: Cow<'a, Series>,
}

/// The network of the learned decoder as `safetensors`, with all that training needs to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The network that answers.
    pub network: Vec<u8>,
    /// Twin of the network, which sees one row less.
    pub twin: Option<Vec<u8>>,
    /// Last verdict of the twin.
    pub verdict: Option<Verdict>,
    /// True if the network was trained since its columns were last replaced.
    pub settled: bool,
}

/// Stand in until the configuration is at hand.
pub(crate) fn no_seed() -> HashSeed {
    HashSeed::new(0.into())
}
pub(crate) fn no_map() -> BaseMap {
    BaseMap::Rows(RowMap::new(Geometry { rows: 1, width: 1, degree: 1, signed: false }))
}
pub(crate) fn no_columns() -> Columns {
    Columns::ones(1, 1)
}

impl ControlPlane {
    /// Trains only on request from now on; how often it trained by itself.
    pub fn take_training(&mut self) -> Option<u64> {
        self.settings.train_every.take()
    }

    /// Everything that a later run needs, by reference; an error for a control plane that takes
    /// nothing in any more.
    pub fn state(&self) -> Result<ControlState<'_>, Fault> {
        // Spelled out, so that a new field has to be thought of here and in `restore`.
        let Self {
            settings: _,
            registry,
            keys,
            segment,
            open,
            exports,
            window,
            mode,
            past,
            appended,
            cuts,
            decoding: _,
            lagging: _,
            since_cut: _,
            fault,
        } = self;
        if let Some(fault) = fault {
            return Err(fault.clone());
        }
        let OpenEpoch {
            items,
            weight,
            smallest_weight,
            first_new,
            late,
            found_again,
            heavy,
            heavy_changes,
            evicted,
            moved,
        } = open;
        let counting = Counting {
            keys: Cow::Borrowed(keys),
            segment: Cow::Borrowed(segment),
            heavy: Cow::Borrowed(heavy),
            columns_at_cut: *first_new,
            evicted: Cow::Borrowed(evicted),
            late: Cow::Borrowed(late),
            found_again: *found_again,
            heavy_changes: Cow::Borrowed(heavy_changes),
            moved: Cow::Borrowed(moved),
            smallest_weight: *smallest_weight,
            at_cut: (*items, *weight),
            cuts: *cuts,
        };
        let changed = !past.is_new() || !appended.is_empty();
        let earlier =
            changed.then(|| Earlier { past: Cow::Borrowed(&**past), appended: Cow::Borrowed(appended.as_slice()) });
        let mut delta = None;
        let mut doubts = None;
        let mut model = None;
        match mode {
            Mode::Classic(_) => {}
            Mode::Learned { network, .. } => model = Some(network.model()),
            Mode::Delta(state) => {
                let told = |totals: &Totals| totals.epochs() > 0 && totals.doubts().are_told();
                match state.settled(segment, &self.settings.em)? {
                    Cow::Borrowed(state) => {
                        delta = Some(DeltaState {
                            totals: Cow::Borrowed(&state.totals),
                            pending: Cow::Borrowed(state.pending()),
                            series: Cow::Borrowed(&state.series),
                        });
                        doubts = told(&state.totals).then(|| Cow::Borrowed(state.totals.doubts()));
                    }
                    Cow::Owned(state) => {
                        let (totals, pending, series) = state.into_parts();
                        doubts = told(&totals).then(|| Cow::Owned(totals.doubts().clone()));
                        let (totals, pending, series) = (Cow::Owned(totals), Cow::Owned(pending), Cow::Owned(series));
                        delta = Some(DeltaState { totals, pending, series });
                    }
                }
            }
        }
        let registry = registry.flat();
        let exports = exports.as_ref().map(Exports::state);
        Ok(ControlState { registry, counting, earlier, window: Cow::Borrowed(window), delta, doubts, model, exports })
    }

    /// The control plane that a state describes, or what is wrong with it.
    pub fn restore(config: Config, settings: Settings, state: ControlState<'_>) -> Result<Self, Inconsistent> {
        config.check()?;
        settings.check(&config)?;
        let ControlState { registry, counting, earlier, window, delta, doubts, model, exports } = state;
        let registry = registry.into_owned().restored(&config)?;
        let Counting {
            keys,
            segment,
            heavy,
            columns_at_cut,
            evicted,
            late,
            found_again,
            heavy_changes,
            moved,
            smallest_weight,
            at_cut: (items, weight),
            cuts,
        } = counting;
        let open = OpenEpoch {
            items,
            weight,
            smallest_weight,
            first_new: columns_at_cut,
            late: late.into_owned(),
            found_again,
            heavy: heavy.into_owned(),
            heavy_changes: heavy_changes.into_owned(),
            evicted: evicted.into_owned(),
            moved: moved.into_owned(),
        };
        let doubts = doubts.map(Cow::into_owned);
        let mode = restore_mode(&config, &settings, delta, doubts, model)?;
        let wanted = matches!(config.shape.heavy, HeavyKind::Mirrored(_));
        ensure(exports.is_some() == wanted, || format!("exact counts: {}, not {wanted}", exports.is_some()))?;
        let exports = exports.map(|exports| Exports::restored(exports, &config, registry.len())).transpose()?;
        let segment = segment.into_owned().restored(&registry)?;
        ensure(*segment.config() == config, || "the open segment has another configuration than the file".into())?;
        let (past, appended) = match earlier {
            Some(earlier) => earlier.restored(&registry, &segment, &settings)?,
            None => Default::default(),
        };
        let since_cut = !segment.is_cut() || !open.is_fresh(segment.columns().len());
        let control = Self {
            segment,
            registry: Arc::new(registry),
            keys: keys.into_owned(),
            open,
            exports,
            window: window.into_owned(),
            mode,
            settings,
            past: Arc::new(past),
            appended,
            cuts,
            decoding: Duration::ZERO,
            lagging: false,
            since_cut,
            fault: None,
        };
        control.check()?;
        Ok(control)
    }
}

fn restore_mode(
    config: &Config,
    settings: &Settings,
    delta: Option<DeltaState<'_>>,
    doubts: Option<Doubts>,
    model: Option<Model>,
) -> Result<Mode, Inconsistent> {
    let decoder = settings.decoder;
    let geometry = config.shape.geometry();
    let parts = (delta.is_some(), model.is_some());
    match (Classic::new(decoder, settings.em), delta, model) {
        (Some(classic), None, None) => Ok(Mode::Classic(classic)),
        (None, Some(DeltaState { totals, pending, series }), None) if !decoder.is_trained() => {
            let totals = totals.into_owned().with_doubts(doubts);
            Ok(Mode::Delta(Delta::restored(totals, pending.into_owned(), series.into_owned())))
        }
        (None, None, Some(model)) if decoder.is_trained() => Ok(Mode::Learned {
            network: Box::new(Learned::restored(geometry, settings, &model)?),
            fallback: fallback_of(geometry, settings),
        }),
        _ => Err(Inconsistent(format!(
            "the decoder '{decoder}' with delta's sums: {}, with a network: {}",
            parts.0, parts.1
        ))),
    }
}

impl Learned {
    fn model(&self) -> Model {
        Model {
            network: self.solver().to_safetensors(Contents::Training),
            twin: self.twin().map(|twin| twin.to_safetensors(Contents::Training)),
            verdict: self.verdict(),
            settled: self.is_settled(),
        }
    }

    fn restored(geometry: Geometry, settings: &Settings, model: &Model) -> Result<Self, Inconsistent> {
        let read = |bytes: &[u8]| Solver::from_safetensors(bytes).map_err(|error| Inconsistent(error.to_string()));
        let twin = model.twin.as_deref().map(read).transpose()?;
        Self::assemble(geometry, settings, read(&model.network)?, twin, (model.verdict, model.settled))
    }
}
