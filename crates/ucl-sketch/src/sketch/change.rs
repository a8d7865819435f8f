//! Changes in mid-stream.

use ucl_control_plane::{Fault, SettingsError};
use ucl_data_plane::{Config, ConfigError, HeavyKind, Shape};
use ucl_wire::{WireError, check_config};

use super::UclSketch;
use crate::bytes::Bytes;
use crate::key::Key;
use crate::mode::Mode;
use crate::plan::{BudgetError, Request, plan};

/// New size of a sketch, for [`UclSketch::resize`].
///
/// ```
/// use ucl_sketch::{Bytes, Shape, Size};
/// assert_eq!(Size::from(Bytes(65_536)), Size::Memory(Bytes(65_536)));
/// assert_eq!(Size::from(Shape::PAPER_64KB), Size::Shape(Shape::PAPER_64KB));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Memory budget; the planner chooses the shape.
    Memory(Bytes),
    /// Exact shape.
    Shape(Shape),
}

impl From<Bytes> for Size {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl From<Shape> for Size {
    fn from(shape: Shape) -> Self {
        Self::Shape(shape)
    }
}

/// Error of a change that cannot be made. The sketch is unchanged.
///
/// ```
/// use ucl_sketch::{Bytes, ChangeError, UclSketch};
/// let mut sketch = UclSketch::builder().build()?;
/// assert!(matches!(sketch.resize(Bytes(10)), Err(ChangeError::Budget(_))));
/// # Ok::<(), ucl_sketch::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The memory budget is too small or too large.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The shape is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The decoder does not support this shape.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The shape has more counters than a message can hold.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The sketch has failed before.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl<K: Key> UclSketch<K> {
    /// Changes the hash functions in mid-stream. No count is lost: the counters so far are decoded
    /// and kept, and later items are counted in new ones.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().memory("16KB").seed(1).build()?;
    /// sketch.insert(b"before")?;
    /// sketch.rehash(2)?;
    /// sketch.insert(b"after")?;
    /// let view = sketch.view();
    /// assert_eq!((view.estimate(b"before").count, view.estimate(b"after").count), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the sketch has failed before. The sketch is then unchanged.
    pub fn rehash(&mut self, seed: u128) -> Result<(), ChangeError> {
        let config = *self.config();
        self.change(Config { seed: config.seed.with_value(seed), ..config })
    }

    /// Changes the size in mid-stream, to a budget ([`Bytes`]) or a [`Shape`]. No count is lost:
    /// heavy keys move to the new slots, and those that find none are counted by the new counters.
    ///
    /// A budget always gives the same shape, so that sketches that were resized alike can still be
    /// merged. For an expected number of keys, take a shape from [`plan`](crate::plan::plan).
    ///
    /// ```
    /// use ucl_sketch::{Bytes, UclSketch};
    /// let mut sketch = UclSketch::builder().memory("16KB").seed(1).build()?;
    /// sketch.insert_weighted(b"heavy", 100)?;
    /// sketch.resize(Bytes(8 << 10))?;
    /// sketch.insert(b"heavy")?;
    /// assert!(sketch.memory().total() <= 8 << 10);
    /// assert_eq!(sketch.view().estimate(b"heavy").count, 101);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the budget or the shape is beyond a limit, the decoder does not support the shape, there
    /// is not enough memory, or the sketch has failed before. The sketch is then unchanged.
    pub fn resize(&mut self, size: impl Into<Size>) -> Result<(), ChangeError> {
        let config = *self.config();
        let shape = match size.into() {
            Size::Shape(shape) => shape,
            Size::Memory(Bytes(memory)) => {
                let decoder = self.with_control(|control| control.settings().decoder);
                let mode = Mode::of(&config, decoder);
                let keys = config.keys;
                let interval = self.interval();
                let rule = Some(config.rule);
                let (base, heavy) = (config.shape.base, config.shape.heavy);
                let count_bits = if let HeavyKind::Mirrored(table) = heavy { Some(table.count_bits) } else { None };
                let limited = self.allowance().is_some_and(|allowance| !allowance.is_unlimited());
                let request = Request { memory, keys, base, heavy, interval, rule, count_bits, ..Request::default() };
                plan(mode, Request { limited, ..request })?.shape
            }
        };
        self.change(Config { shape, ..config })
    }

    fn change(&mut self, config: Config) -> Result<(), ChangeError> {
        config.shape.validate()?;
        if self.control.encoder().is_some() {
            check_config(&config)?;
        }
        self.with_control(|control| match control.fault() {
            Some(fault) => Err(ChangeError::from(fault.clone())),
            None => Ok(control.check_change(&config)?),
        })?;
        self.control.change(&mut self.plane, config)?;
        self.start_epoch();
        Ok(())
    }

    /// Starts a new cycle: all counts from zero. A trained network starts it with its weights, or
    /// with fresh ones; either way a classic decoder answers until it is trained on the new cycle.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().build()?;
    /// sketch.insert(b"yesterday")?;
    /// sketch.reset(true);
    /// assert_eq!((sketch.items(), sketch.view().estimate(b"yesterday").upper), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self, keep_weights: bool) {
        self.control.reset(&mut self.plane, keep_weights);
        self.start_epoch();
    }

    /// Drops the counts from before the oldest change, and returns true if there were any. Later
    /// answers are about the items after it ([`QueryView::since`](crate::QueryView::since)).
    ///
    /// # Errors
    /// If the sketch has failed before.
    pub fn drop_oldest_segment(&mut self) -> Result<bool, Fault> {
        self.with_control(|control| control.drop_oldest_segment())
    }
}
