//! Oracles of the [learned sketches](crate::learned): a trained regression, and a recurrent network
//! that is there for its running time only.

mod regression;
mod rnn;

pub use regression::Regression;
pub use rnn::Rnn;
