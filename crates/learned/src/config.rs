//! Sizes of the problem and of the network, and settings of training.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Counters of the sketch: `rows` rows of `width` counters. A counter has the index `row * width +
/// column`.
///
/// A sketch without rows (FlowRadar) has `rows = 1`; how many counters a key touches is the
/// columns' affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterGrid {
    /// Number of rows `d`.
    pub rows: usize,
    /// Number of counters in a row `w`.
    pub width: usize,
}

impl CounterGrid {
    /// Number of all counters, `d · w`.
    pub fn counters(&self) -> usize {
        self.rows * self.width
    }
}

/// Sizes of the network, weights of the loss and limits of training. The default is the paper's
/// table of hyperparameters.
///
/// ```
/// use ucl_learned::Config;
///
/// let paper = Config::default();
/// assert_eq!((paper.hidden, paper.bucket_length, paper.batch), (128, 512, 32));
/// let without_sr = Config { lambda: 0.0, ..paper };
/// assert!(without_sr.validate().is_ok());
/// assert!(Config { hidden: 7, ..Config::default() }.validate().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Hidden dimension `h`, even and at least 4. Half of the bucket embedding is sines, half
    /// cosines.
    pub hidden: usize,
    /// Width of the narrow layer between two wide ones; 64 in the paper's network.
    pub neck: usize,
    /// Number of keys in a bucket, `L`. 1024 suits large key spaces better than the default.
    pub bucket_length: usize,
    /// True if all buckets share their parameters and differ by their embedding (the paper's
    /// "scalable architecture", SA). Otherwise every bucket has an embedding block and a head, and
    /// the network grows with the keys.
    pub shared_buckets: bool,
    /// Weight of the sparsity term; 0 is the paper's "without SR".
    pub lambda: f32,
    /// True if the loss has the equivariant term; `false` is the paper's "without EQ".
    pub equivariant: bool,
    /// Share of the cold keys that one transformation raises by the smallest weight.
    pub raised_share: f64,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// Number of snapshots in a training step.
    pub batch: usize,
    /// Largest number of passes over the window.
    pub epochs: usize,
    /// Number of epochs without a better loss after which training stops.
    pub patience: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hidden: 128,
            neck: 64,
            bucket_length: 512,
            shared_buckets: true,
            lambda: 0.1,
            equivariant: true,
            raised_share: 0.05,
            learning_rate: 1e-3,
            batch: 32,
            epochs: 300,
            patience: 30,
        }
    }
}

impl Config {
    /// Checks that a network can be built and trained with this configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("neck", self.neck),
            ("bucket_length", self.bucket_length),
            ("batch", self.batch),
            ("epochs", self.epochs),
            ("patience", self.patience),
        ];
        for (field, value) in sizes {
            check_size(field, value)?;
        }
        check_size("hidden", self.hidden)?;
        if self.hidden < 4 || !self.hidden.is_multiple_of(2) {
            return Err(ConfigError::Hidden(self.hidden));
        }
        let reals = [
            ("lambda", f64::from(self.lambda), 0.0, f64::MAX),
            ("raised_share", self.raised_share, 0.0, 1.0),
            ("learning_rate", self.learning_rate, f64::MIN_POSITIVE, 1.0),
        ];
        for (field, value, low, high) in reals {
            if !(low..=high).contains(&value) {
                return Err(ConfigError::Real { field, value, low, high });
            }
        }
        Ok(())
    }
}

#[cfg(any(test, feature = "network"))]
impl CounterGrid {
    /// Checks that the shape is one that a network can be built for.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_size("rows", self.rows)?;
        check_size("width", self.width)?;
        match self.rows.checked_mul(self.width) {
            Some(counters) => check_size("rows * width", counters),
            None => Err(ConfigError::Size { field: "rows * width", value: usize::MAX, most: MAX_SIZE }),
        }
    }
}

/// Largest size of any dimension. Products of two sizes cannot overflow.
pub const MAX_SIZE: usize = 1 << 28;

/// Largest number of parameters of a network with one bucket block: 4 GB.
pub const MAX_PARAMETERS: usize = 1 << 30;

fn check_size(field: &'static str, value: usize) -> Result<(), ConfigError> {
    if (1..=MAX_SIZE).contains(&value) { Ok(()) } else { Err(ConfigError::Size { field, value, most: MAX_SIZE }) }
}

/// Error of a network that cannot be built.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ConfigError {
    /// This build has no network: the feature `network` of this crate is off.
    #[error("this program was built without the network: build it with the feature `learned` of ucl-sketch")]
    NotBuilt,
    /// A size is zero or over [`MAX_SIZE`].
    #[error("{field} is {value}, but must be from 1 to {most}")]
    Size {
        /// Name of the size.
        field: &'static str,
        /// Size that was asked for.
        value: usize,
        /// Largest allowed value.
        most: usize,
    },
    /// The hidden dimension is odd or below 4.
    #[error("hidden is {0}, but must be even and at least 4: half of the bucket embedding is sines, half cosines")]
    Hidden(usize),
    /// The network would have more than [`MAX_PARAMETERS`] parameters.
    #[error("the network would have {parameters} parameters, more than {most}")]
    Parameters {
        /// Number of parameters that these sizes would need.
        parameters: usize,
        /// Largest allowed value.
        most: usize,
    },
    /// A real-valued setting is out of range or not a number.
    #[error("{field} is {value}, but must be from {low:e} to {high:e}")]
    Real {
        /// Name of the setting.
        field: &'static str,
        /// Value that was asked for.
        value: f64,
        /// Smallest allowed value.
        low: f64,
        /// Largest allowed value.
        high: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        Config::default().validate().unwrap();
    }

    #[test]
    fn errors_name_the_field_and_the_value() {
        let message = |c: Config| c.validate().unwrap_err().to_string();
        let base = Config::default;
        assert_eq!(message(Config { batch: 0, ..base() }), "batch is 0, but must be from 1 to 268435456");
        assert!(message(Config { hidden: 5, ..base() }).starts_with("hidden is 5, but must be even"));
        assert!(message(Config { lambda: f32::NAN, ..base() }).starts_with("lambda is NaN"));
        assert!(message(Config { learning_rate: 0.0, ..base() }).starts_with("learning_rate is 0"));
        assert!(message(Config { raised_share: 1.5, ..base() }).contains("raised_share is 1.5"));
        let huge = CounterGrid { rows: 1 << 20, width: 1 << 20 };
        assert!(huge.validate().unwrap_err().to_string().starts_with("rows * width"));
    }
}
