//! Errors of building, filling and merging systems.

use ucl_data_plane::{ConfigError, InsertError, KeyFormat, OutOfMemory};

/// Reason why a system cannot be built or has no answers. After a failed insert the answers of the
/// system are invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The memory budget is too small for this system.
    #[error("a budget of {budget} bytes is too small: at least {least} are needed")]
    Budget {
        /// Budget in bytes that was asked for.
        budget: usize,
        /// Smallest budget in bytes that works.
        least: usize,
    },
    /// A 32-bit counter overflowed.
    #[error("a 32-bit counter overflowed: the stream is too heavy for this method")]
    Overflow,
    /// A key, a weight or a setting is invalid.
    #[error(transparent)]
    Input(#[from] InsertError),
    /// The configuration cannot be met.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is not enough memory for the budget.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The ideal oracle was not given the most frequent keys
    /// ([`Knowledge::Ranking`](crate::Knowledge)).
    #[error("an ideal oracle must be told which keys are heavy")]
    NeedsRanking,
    /// The learned oracle was not given counts to train on
    /// ([`Knowledge::Sample`](crate::Knowledge)).
    #[error("a learned oracle needs counts from earlier in the stream to train on")]
    NeedsSample,
    /// The paper has no shape for this budget or key format.
    #[error(
        "the paper gives shapes for 16KB to 128KB in steps of 16KB and 4-byte keys, not for {budget} bytes and {keys}"
    )]
    NoPaperShape {
        /// Budget in bytes that was asked for.
        budget: usize,
        /// Key format that was asked for.
        keys: KeyFormat,
    },
    /// The systems to merge differ in kind, shape or seed.
    #[error("two systems can be merged only if they have the same kind, shape and seed")]
    Unlike,
    /// The system cannot be merged.
    #[error("this system cannot be merged: its state depends on the order of the items")]
    NotMergeable,
    /// The equations could not be solved. This is a bug.
    #[error(transparent)]
    Equations(#[from] ucl_equations::Error),
}
