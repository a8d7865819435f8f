//! Both planes in one process.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use ucl_control_plane::{ControlPlane, Fault, QueryView, Settings};
use ucl_data_plane::mirrored::Allowance;
use ucl_data_plane::{Config, InsertError, Memory, Report, ReportSink};
use ucl_wire::{Encoder, Uplink};

use crate::background::Background;
use crate::builder::{BuildError, Builder, Execution};
use crate::epochs::Epochs;
use crate::key::{AsKey, ByteKey, Key};
use crate::mode::Mode;
use crate::pipeline::Pipeline;
use crate::plane::AnyPlane;
use crate::view::View;

/// A message goes out.
pub(crate) type Out = Box<dyn FnMut(&[u8]) + Send>;

/// Discards messages that are only measured.
pub(crate) fn nowhere() -> Out {
    Box::new(|_| ())
}

/// Near-exact counts per key of an unbounded stream, in a fixed memory budget.
///
/// ```
/// use ucl_sketch::UclSketch;
///
/// let mut sketch = UclSketch::builder().memory("64KB").build()?;
/// for i in 0..100_000u64 {
///     sketch.insert(format!("/page/{}", (i * i) % 1000))?;
/// }
/// let home = sketch.view().estimate("/page/0");
/// assert!(home.lower <= 1000 && 1000 <= home.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UclSketch<K = ByteKey> {
    pub(crate) plane: AnyPlane,
    pub(crate) control: Control,
    pub(crate) epochs: Epochs,
    /// Items until the epoch ends, or until its load is looked at again.
    pub(crate) until_cut: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) keys: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for UclSketch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UclSketch")
            .field("config", self.plane.config())
            .field("epochs", &self.epochs)
            .field("items", &self.plane.items())
            .field("weight", &self.plane.weight())
            .finish_non_exhaustive()
    }
}

pub(crate) enum Control {
    Inline { control: Box<ControlPlane>, encoder: Option<Box<Encoder<Out>>> },
    Pipelined { pipeline: Box<Pipeline>, encoder: Option<Box<Encoder<Out>>> },
    Background(Background),
}

/// Sends every report to the control plane, or on its way there, and to the encoder that measures
/// the uplink.
struct Tee<'a, S> {
    control: &'a mut S,
    encoder: &'a mut Encoder<Out>,
}

impl<S: ReportSink> ReportSink for Tee<'_, S> {
    #[inline]
    fn report(&mut self, report: Report<'_>) {
        self.encoder.report(report);
        self.control.report(report);
    }
}

/// Runs the expression with `sink` bound to wherever reports go.
macro_rules! with_sink {
    ($control:expr, $sink:ident => $body:expr) => {
        match $control {
            Control::Inline { control, encoder: None } => {
                let $sink = &mut crate::sink::Sink(control.as_mut());
                $body
            }
            Control::Inline { control, encoder: Some(encoder) } => {
                let tee = &mut Tee { control: control.as_mut(), encoder: encoder.as_mut() };
                let $sink = &mut crate::sink::Sink(tee);
                $body
            }
            Control::Pipelined { pipeline, encoder: None } => {
                let $sink = &mut crate::sink::Sink(pipeline.as_mut());
                $body
            }
            Control::Pipelined { pipeline, encoder: Some(encoder) } => {
                let tee = &mut Tee { control: pipeline.as_mut(), encoder: encoder.as_mut() };
                let $sink = &mut crate::sink::Sink(tee);
                $body
            }
            Control::Background(background) => {
                let $sink = &mut crate::sink::Sink(background.encoder());
                $body
            }
        }
    };
}

impl Control {
    /// Runs `f` on the control plane, after every report sent so far has reached it.
    pub(crate) fn with<T>(&mut self, f: impl FnOnce(&mut ControlPlane) -> T) -> T {
        match self {
            Self::Inline { control, .. } => f(control),
            Self::Pipelined { pipeline, .. } => f(pipeline.control()),
            Self::Background(background) => background.with_control(f),
        }
    }

    /// Returns the encoder of the reports, if there is one.
    pub(crate) fn encoder(&mut self) -> Option<&mut Encoder<Out>> {
        match self {
            Self::Inline { encoder, .. } | Self::Pipelined { encoder, .. } => encoder.as_deref_mut(),
            Self::Background(background) => Some(background.encoder()),
        }
    }
}

mod all;
mod change;
mod merge;
mod once;

pub use change::{ChangeError, Size};
pub use merge::MergeError;

impl UclSketch {
    /// Returns a builder with every setting at its default. Keys are text or bytes, unless
    /// [`Builder::keys`] says otherwise.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<K: Key> UclSketch<K> {
    pub(crate) fn new(
        config: Config,
        settings: Settings,
        epochs: Epochs,
        execution: Execution,
        measure_uplink: bool,
    ) -> Result<Self, BuildError> {
        let mut plane = AnyPlane::new(config)?;
        if epochs == Epochs::ByLoad {
            plane.watch_load()?;
        }
        let control = match execution {
            Execution::Synchronous | Execution::Pipelined => {
                let encoder = measure_uplink.then(|| Encoder::new(0, config, nowhere())).transpose()?;
                let control = Box::new(ControlPlane::new(config, settings)?);
                Control::Inline { control, encoder: encoder.map(Box::new) }
            }
            Execution::Background => Control::Background(Background::start(config, settings)?),
        };
        // A mirrored table has no load.
        let epochs = if epochs == Epochs::ByLoad && plane.room().is_none() { Epochs::Open } else { epochs };
        let mut sketch =
            Self { plane, control, epochs, until_cut: u64::MAX, labels: BTreeMap::new(), keys: PhantomData };
        sketch.start_epoch();
        Ok(if execution == Execution::Pipelined { sketch.pipelined() } else { sketch })
    }

    /// Returns the same sketch, which runs as with [`Execution::Pipelined`] from now on.
    ///
    /// This is for sketches that were loaded, since a state does not store the execution. A sketch
    /// in the background stays there. If the system cannot start threads, the sketch stays
    /// synchronous, with the same answers.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().memory("16KB").build()?;
    /// sketch.insert(b"before")?;
    /// let mut sketch = sketch.pipelined();
    /// sketch.insert(b"after")?;
    /// assert_eq!(sketch.view().known_keys(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pipelined(self) -> Self {
        let control = match self.control {
            Control::Inline { control, encoder } => match Pipeline::new(control) {
                Ok(pipeline) => Control::Pipelined { pipeline: Box::new(pipeline), encoder },
                Err(control) => Control::Inline { control, encoder },
            },
            other => other,
        };
        Self { control, ..self }
    }

    /// Inserts one item.
    ///
    /// # Errors
    /// If the key does not fit the sketch, or the total weight would pass 2^63. The sketch is then
    /// as it was.
    #[inline]
    pub fn insert(&mut self, key: impl AsKey<K>) -> Result<(), InsertError> {
        self.insert_weighted(key, 1)
    }

    /// Inserts one item that counts `weight` times: a packet by its bytes, a purchase by its price.
    ///
    /// # Errors
    /// If the key does not fit the sketch, the weight is 0 or above 2^63 - 1, or the total weight
    /// would pass 2^63. The sketch is then as it was.
    #[inline]
    pub fn insert_weighted(&mut self, key: impl AsKey<K>, weight: u64) -> Result<(), InsertError> {
        let plane = &mut self.plane;
        let control = &mut self.control;
        key.with_key_bytes(|bytes| control.insert(plane, bytes, weight))?;
        self.passed(1);
        Ok(())
    }

    /// Inserts many items of weight 1, faster than one by one. For keys of the configured size, or
    /// of any one size if keys may have any length.
    ///
    /// # Errors
    /// If keys of this size do not fit the sketch, or the weight of the stream would pass 2^63.
    /// Then none of the items counts.
    pub fn insert_batch<const N: usize>(&mut self, keys: &[[u8; N]]) -> Result<(), InsertError> {
        self.insert_keys(N, keys.len(), keys.as_flattened(), None)
    }

    /// Inserts keys of `key_bytes` bytes laid end to end, with their weights if not all are 1.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().key_bytes(4).build()?;
    /// sketch.insert_flat(4, b"key1key2", Some(&[7, 9]))?;
    /// assert!(sketch.insert_flat(4, b"key1ke", None).is_err());
    /// assert!(sketch.insert_flat(4, b"key1key2", Some(&[7])).is_err());
    /// assert_eq!((sketch.items(), sketch.weight()), (2, 16));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are not whole keys, keys of this size do not fit the sketch, there is not one
    /// weight for each key, a weight is 0 or above 2^63 - 1, or the weight of the stream would pass
    /// 2^63. Then none of the items counts.
    pub fn insert_flat(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), InsertError> {
        // How many keys of no bytes there are is told by their weights alone.
        let count = match (keys.len().checked_div(key_bytes), weights) {
            (Some(count), _) if count * key_bytes == keys.len() => count,
            (None, Some(weights)) if keys.is_empty() => weights.len(),
            _ => return Err(InsertError::Ragged { bytes: keys.len(), key_bytes }),
        };
        self.insert_keys(key_bytes, count, keys, weights)
    }

    /// Inserts `count` keys laid end to end. Everything is checked before any of it counts, so that
    /// nothing fails later.
    fn insert_keys(
        &mut self,
        key_bytes: usize,
        count: usize,
        keys: &[u8],
        weights: Option<&[u64]>,
    ) -> Result<(), InsertError> {
        self.plane.check_batch(key_bytes, count, weights)?;
        let mut done = 0;
        while done < count {
            // A batch ends where the epoch ends.
            let here = (self.until_cut.min(1 << 20) as usize).min(count - done);
            let part = done..done + here;
            let plane = &mut self.plane;
            let keys = &keys[part.start * key_bytes..part.end * key_bytes];
            let weights = weights.map(|weights| &weights[part]);
            self.control.insert_batch(plane, key_bytes, here, keys, weights)?;
            self.passed(here as u64);
            done += here;
        }
        Ok(())
    }

    #[inline]
    fn passed(&mut self, items: u64) {
        self.until_cut -= items;
        if self.until_cut == 0 {
            self.cut_if_due();
        }
    }

    /// Ends the epoch, unless its load leaves room for more.
    fn cut_if_due(&mut self) {
        match self.plane.room().filter(|_| self.epochs == Epochs::ByLoad) {
            Some(room) if room > 0 => self.until_cut = room,
            _ => self.cut(),
        }
    }

    /// Ends the epoch now. This also happens by itself, as [`UclSketch::epochs`] says.
    pub fn cut(&mut self) {
        self.control.cut(&mut self.plane);
        self.start_epoch();
    }

    fn start_epoch(&mut self) {
        self.until_cut = match self.epochs {
            // What a merge or a change has moved into the sketch may fill it at once.
            Epochs::ByLoad => self.plane.room().unwrap_or(u64::MAX).max(1),
            Epochs::Every(items) => items,
            Epochs::Open => u64::MAX,
        };
    }

    /// Returns the counts at this moment. Asking changes nothing.
    ///
    /// # Panics
    /// If the counters contradict each other, which only a defect of this library brings about;
    /// [`UclSketch::query_view`] returns that as an error.
    pub fn view(&mut self) -> View<K> {
        match self.query_view() {
            Ok(view) => View::new(view),
            Err(fault) => panic!("internal: {fault}"),
        }
    }

    /// Returns the counts at this moment by key numbers, with everything that can be asked about
    /// time.
    ///
    /// # Errors
    /// If the counters contradict each other, which only a defect of this library brings about.
    pub fn query_view(&mut self) -> Result<QueryView, Fault> {
        self.control.view(&self.plane)
    }

    /// Trains the learned decoder now, instead of waiting for its window to fill.
    ///
    /// # Errors
    /// If the sketch has failed before, or fails now because of a defect of this library.
    pub fn train(&mut self) -> Result<(), Fault> {
        self.with_control(|control| control.train())?;
        Ok(())
    }

    /// Runs `f` on the control plane, after every report sent so far has reached it.
    pub fn with_control<T>(&mut self, f: impl FnOnce(&mut ControlPlane) -> T) -> T {
        self.control.with(f)
    }

    /// Returns the configuration of the data plane.
    pub fn config(&self) -> &Config {
        self.plane.config()
    }

    /// Returns the mode: exact, or a sketch with a decoder.
    pub fn mode(&mut self) -> Mode {
        let decoder = self.with_control(|control| control.settings().decoder);
        Mode::of(self.plane.config(), decoder)
    }

    /// Returns when epochs end.
    pub fn epochs(&self) -> Epochs {
        self.epochs
    }

    /// Returns the number of items between two cuts, if it is fixed.
    pub fn interval(&self) -> Option<u64> {
        self.epochs.interval()
    }

    /// Returns what may go up the link, in mode budget.
    pub fn allowance(&self) -> Option<&Allowance> {
        self.plane.allowance()
    }

    /// Returns the labels of the sketch, by name.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Sets a label, which is saved in the state file: for example, how to display the keys.
    pub fn set_label(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.labels.insert(name.into(), text.into());
    }

    /// Returns the bytes used by the data plane, by part.
    pub fn memory(&self) -> Memory {
        self.plane.memory()
    }

    /// Returns the bytes used by the control plane, by part.
    pub fn control_memory(&mut self) -> Memory {
        self.with_control(|control| control.memory())
    }

    /// Number of items inserted.
    pub fn items(&self) -> u64 {
        self.plane.items()
    }

    /// Total weight of all items inserted.
    pub fn weight(&self) -> u64 {
        self.plane.weight()
    }

    /// Bytes that the reports would have taken on the wire if the epoch ended now; `None` if they
    /// are not encoded. Nothing changes.
    pub fn uplink_with_open_epoch(&mut self) -> Option<Uplink> {
        let config = *self.plane.config();
        let state = self.control.encoder()?.state();
        let mut encoder = Encoder::restore(config, state, nowhere()).ok()?;
        self.plane.peek(&mut encoder);
        Some(encoder.uplink())
    }

    /// Bytes that the reports so far took on the wire; `None` if they are not encoded.
    pub fn uplink(&mut self) -> Option<Uplink> {
        self.control.encoder().map(|encoder| encoder.uplink())
    }
}
