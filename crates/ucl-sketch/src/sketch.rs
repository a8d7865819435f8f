//! Both planes in one process.

use std::collections::BTreeMap;

use ucl_control_plane::{ControlPlane, Fault, QueryView, Settings};
use ucl_data_plane::{Config, ConfigError, Memory, Report, ReportSink};
use ucl_wire::{Encoder, Uplink};

use crate::background::Background;
use crate::builder::{BuildError, Builder, Execution};
use crate::pipeline::Pipeline;
use crate::plane::AnyPlane;

/// A message goes out.
pub(crate) type Out = Box<dyn FnMut(&[u8]) + Send>;

/// Where messages go that are only measured.
pub(crate) fn nowhere() -> Out {
    Box::new(|_| ())
}

/// Near-exact counts per key of an unbounded stream, in a fixed memory budget.
///
/// ```
/// use ucl_sketch::UclSketch;
///
/// let mut sketch = UclSketch::builder().memory("64KB").seed(7).build()?;
/// for i in 0..100_000u64 {
///     let page = format!("/page/{}", (i * i) % 1000);
///     sketch.insert(page.as_bytes())?;
/// }
/// let view = sketch.view()?;
/// let home = view.estimate(b"/page/0");
/// assert!(home.lower <= 1000 && 1000 <= home.upper);
/// assert_eq!(home.estimate, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UclSketch {
    pub(crate) plane: AnyPlane,
    pub(crate) control: Control,
    pub(crate) interval: Option<u64>,
    pub(crate) until_cut: u64,
    pub(crate) labels: BTreeMap<String, String>,
}

pub(crate) enum Control {
    Inline { control: Box<ControlPlane>, encoder: Option<Box<Encoder<Out>>> },
    Pipelined { pipeline: Box<Pipeline>, encoder: Option<Box<Encoder<Out>>> },
    Background(Background),
}

/// Sends every report to the control plane, or on its way there, and to the encoder that measures the uplink.
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
                let $sink = control.as_mut();
                $body
            }
            Control::Inline { control, encoder: Some(encoder) } => {
                let $sink = &mut Tee { control: control.as_mut(), encoder: encoder.as_mut() };
                $body
            }
            Control::Pipelined { pipeline, encoder: None } => {
                let $sink = pipeline.as_mut();
                $body
            }
            Control::Pipelined { pipeline, encoder: Some(encoder) } => {
                let $sink = &mut Tee { control: pipeline.as_mut(), encoder: encoder.as_mut() };
                $body
            }
            Control::Background(background) => {
                let $sink = background.encoder();
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

    /// What encodes the reports, if anything does.
    pub(crate) fn encoder(&mut self) -> Option<&mut Encoder<Out>> {
        match self {
            Self::Inline { encoder, .. } | Self::Pipelined { encoder, .. } => encoder.as_deref_mut(),
            Self::Background(background) => Some(background.encoder()),
        }
    }
}

mod change;
mod merge;

pub use change::{ChangeError, Size};
pub use merge::MergeError;

impl UclSketch {
    /// Settings by name; see [`Builder`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(
        config: Config,
        settings: Settings,
        interval: Option<u64>,
        execution: Execution,
        measure_uplink: bool,
    ) -> Result<Self, BuildError> {
        let plane = AnyPlane::new(config)?;
        let control = match execution {
            Execution::Synchronous | Execution::Pipelined => {
                let encoder = measure_uplink.then(|| Encoder::new(0, config, nowhere())).transpose()?;
                let control = Box::new(ControlPlane::new(config, settings)?);
                Control::Inline { control, encoder: encoder.map(Box::new) }
            }
            Execution::Background => Control::Background(Background::start(config, settings)?),
        };
        let until_cut = interval.unwrap_or(u64::MAX);
        let sketch = Self { plane, control, interval, until_cut, labels: BTreeMap::new() };
        Ok(if execution == Execution::Pipelined { sketch.pipelined() } else { sketch })
    }

    /// The same sketch, from now on as with [`Execution::Pipelined`]; one in the background stays there. For sketches that were
    /// loaded: a state does not tell where it was counted. Where the system cannot start threads it stays synchronous, with the
    /// same answers.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().memory("16KB").build()?;
    /// sketch.insert(b"before")?;
    /// let mut sketch = sketch.pipelined();
    /// sketch.insert(b"after")?;
    /// assert_eq!(sketch.view()?.keys(), 2);
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

    /// Inserts one item. A key that does not fit the sketch, or a weight that does not, is an error and changes nothing.
    #[inline]
    pub fn insert(&mut self, key: &[u8]) -> Result<(), ConfigError> {
        self.insert_weighted(key, 1)
    }

    /// Inserts one item of some weight (bytes, say), at least 1.
    #[inline]
    pub fn insert_weighted(&mut self, key: &[u8], weight: u64) -> Result<(), ConfigError> {
        let plane = &mut self.plane;
        with_sink!(&mut self.control, sink => plane.insert(key, weight, sink))?;
        self.passed(1);
        Ok(())
    }

    /// Inserts many items of weight 1, faster than one by one. For keys of the configured size, or of any one size if keys may
    /// have any length.
    ///
    /// # Errors
    /// If keys of this size do not fit the sketch, or the weight of the stream would pass 2^63. Then none of the items counts.
    pub fn insert_batch<const N: usize>(&mut self, keys: &[[u8; N]]) -> Result<(), ConfigError> {
        self.insert_all(N, keys.len(), keys.as_flattened(), None)
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
    /// If the bytes are not whole keys, keys of this size do not fit the sketch, there is not one weight for each key, a weight
    /// is 0 or above 2^63 - 1, or the weight of the stream would pass 2^63. Then none of the items counts.
    pub fn insert_flat(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), ConfigError> {
        // How many keys of no bytes there are is told by their weights alone.
        let count = match (keys.len().checked_div(key_bytes), weights) {
            (Some(count), _) if count * key_bytes == keys.len() => count,
            (None, Some(weights)) if keys.is_empty() => weights.len(),
            _ => return Err(ConfigError::Ragged { bytes: keys.len(), key_bytes }),
        };
        self.insert_all(key_bytes, count, keys, weights)
    }

    /// Inserts `count` keys laid end to end. Everything is checked before any of it counts, so that nothing fails later.
    fn insert_all(
        &mut self,
        key_bytes: usize,
        count: usize,
        keys: &[u8],
        weights: Option<&[u64]>,
    ) -> Result<(), ConfigError> {
        self.plane.check_batch(key_bytes, count, weights)?;
        let mut done = 0;
        while done < count {
            // A batch ends where the epoch ends.
            let here = (self.until_cut.min(1 << 20) as usize).min(count - done);
            let part = done..done + here;
            let plane = &mut self.plane;
            let keys = &keys[part.start * key_bytes..part.end * key_bytes];
            let weights = weights.map(|weights| &weights[part]);
            with_sink!(&mut self.control, sink => plane.insert_batch(key_bytes, here, keys, weights, sink))?;
            self.passed(here as u64);
            done += here;
        }
        Ok(())
    }

    #[inline]
    fn passed(&mut self, items: u64) {
        self.until_cut -= items;
        if self.until_cut == 0 {
            self.cut();
        }
    }

    /// Ends the epoch now. Happens by itself every `interval` items.
    pub fn cut(&mut self) {
        let plane = &mut self.plane;
        with_sink!(&mut self.control, sink => plane.cut(sink));
        self.start_epoch();
    }

    fn start_epoch(&mut self) {
        self.until_cut = self.interval.unwrap_or(u64::MAX);
    }

    /// The state at this moment. Asking changes nothing.
    pub fn view(&mut self) -> Result<QueryView, Fault> {
        let plane = &self.plane;
        self.control.with(|control| control.view(|sink| plane.peek(sink)))
    }

    /// Trains the learned decoder now, instead of waiting for its window to fill.
    pub fn train(&mut self) -> Result<(), Fault> {
        self.with_control(|control| control.train())?;
        Ok(())
    }

    /// Runs `f` on the control plane, after every report sent so far has reached it.
    pub fn with_control<T>(&mut self, f: impl FnOnce(&mut ControlPlane) -> T) -> T {
        self.control.with(f)
    }

    /// The data plane's configuration.
    pub fn config(&self) -> &Config {
        self.plane.config()
    }

    /// Items between two cuts.
    pub fn interval(&self) -> Option<u64> {
        self.interval
    }

    /// What was written on the sketch beside its state, by name.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Writes something on the sketch that its state file shall remember: how its keys are to be shown, say.
    pub fn set_label(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.labels.insert(name.into(), text.into());
    }

    /// The data plane's bytes, by part.
    pub fn memory(&self) -> Memory {
        self.plane.memory()
    }

    /// The control plane's bytes, by part.
    pub fn control_memory(&mut self) -> Memory {
        self.with_control(|control| control.memory())
    }

    /// Items inserted so far.
    pub fn items(&self) -> u64 {
        self.plane.items()
    }

    /// Their weight.
    pub fn weight(&self) -> u64 {
        self.plane.weight()
    }

    /// Bytes that the reports so far took on the wire; `None` if they are not encoded.
    pub fn uplink(&mut self) -> Option<Uplink> {
        self.control.encoder().map(|encoder| encoder.uplink())
    }
}
