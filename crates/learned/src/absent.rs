//! The solver of a build without the feature `network`: there is none.
//!
//! Its methods are those that the control plane calls, so that nothing else has to know of the
//! feature. None of them can run, because no value can be made.

use crate::checkpoint::{CheckpointError, Contents};
use crate::config::{Config, ConfigError, CounterGrid};
use crate::problem::{Problem, ProblemError};
use crate::training::{Cancel, TrainBudget, TrainReport};

#[derive(Clone, Copy, Debug)]
enum Never {}

/// Stand-in for the learned solver: it cannot be created in this build.
#[derive(Clone, Debug)]
pub struct Solver(Never);

/// Stand-in for an encoded snapshot: it cannot be created in this build.
#[derive(Clone, Debug)]
pub struct Encoded(Never);

impl Solver {
    /// Returns [`ConfigError::NotBuilt`].
    pub fn new(_: CounterGrid, _: Config, _: u64) -> Result<Self, ConfigError> {
        Err(ConfigError::NotBuilt)
    }

    /// Returns [`ConfigError::NotBuilt`].
    pub fn from_safetensors(_: &[u8]) -> Result<Self, CheckpointError> {
        Err(ConfigError::NotBuilt.into())
    }

    /// Returns the shape of the sketch.
    pub fn shape(&self) -> CounterGrid {
        match self.0 {}
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        match self.0 {}
    }

    /// Number of trainable parameters.
    pub fn parameters(&self) -> usize {
        match self.0 {}
    }

    /// Number of training steps since the weights were drawn.
    pub fn steps(&self) -> u64 {
        match self.0 {}
    }

    /// Trains on a window.
    pub fn train(&mut self, _: &Problem<'_>, _: TrainBudget, _: &Cancel) -> Result<TrainReport, ProblemError> {
        match self.0 {}
    }

    /// Encodes the counters of one snapshot.
    pub fn encode(&self, _: &[f64]) -> Result<Encoded, ProblemError> {
        match self.0 {}
    }

    /// Decodes the frequencies of the first columns.
    pub fn decode(&self, _: &Encoded, _: &mut [f64]) -> Result<(), ProblemError> {
        match self.0 {}
    }

    /// Decodes the frequencies of one bucket's columns.
    pub fn decode_bucket(&self, _: &Encoded, _: usize, _: &mut [f64]) -> Result<(), ProblemError> {
        match self.0 {}
    }

    /// Returns the solver as the bytes of a safetensors file.
    pub fn to_safetensors(&self, _: Contents) -> Vec<u8> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_solver_and_the_message_says_what_to_do() {
        let error = Solver::new(CounterGrid { rows: 2, width: 8 }, Config::default(), 1).unwrap_err();
        assert_eq!(error, ConfigError::NotBuilt);
        assert!(error.to_string().contains("feature `learned`"), "{error}");
        let error = Solver::from_safetensors(&[]).unwrap_err();
        assert!(error.to_string().contains("feature `learned`"), "{error}");
    }
}
