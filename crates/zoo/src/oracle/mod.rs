//! Oracles of the [learned sketches](crate::learned) that compute something: a regression that learns, and a network that only costs time.

mod regression;
mod rnn;

pub use regression::Regression;
pub use rnn::Rnn;
