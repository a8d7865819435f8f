//! What can go wrong.

use ucl_data_plane::{ConfigError, InsertError, KeyFormat, OutOfMemory};

/// Why a system cannot be built, or has no answers. After an error from an insert the system's answers are worth nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Give more memory.
    #[error("a budget of {budget} bytes is too small: at least {least} are needed")]
    Budget {
        /// Asked for.
        budget: usize,
        /// The smallest that works.
        least: usize,
    },
    /// Use a system with wider counters, or one that sends carries.
    #[error("a 32-bit counter overflowed: the stream is too heavy for this method")]
    Overflow,
    /// Mend the stream.
    #[error(transparent)]
    Input(#[from] InsertError),
    /// The configuration cannot be met.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Give less memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Give the keys that the ideal oracle is to know ([`Knowledge::Ranking`](crate::Knowledge)).
    #[error("an ideal oracle must be told which keys are heavy")]
    NeedsRanking,
    /// Give the counts to train on ([`Knowledge::Sample`](crate::Knowledge)).
    #[error("a learned oracle needs counts from earlier in the stream to train on")]
    NeedsSample,
    /// Leave the paper's shapes, or choose one of its budgets.
    #[error(
        "the paper gives shapes for 16KB to 128KB in steps of 16KB and 4-byte keys, not for {budget} bytes and {keys}"
    )]
    NoPaperShape {
        /// Asked for.
        budget: usize,
        /// Asked for.
        keys: KeyFormat,
    },
    /// Merge only systems of the same kind, shape and seed.
    #[error("two systems can be merged only if they have the same kind, shape and seed")]
    Unlike,
    /// Feed one system with both streams.
    #[error("this system cannot be merged: its state depends on the order of the items")]
    NotMergeable,
    /// The equations could not be solved: our bug.
    #[error(transparent)]
    Equations(#[from] ucl_equations::Error),
}
