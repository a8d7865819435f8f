//! Checkpoints in the `safetensors` format: weights by name, and optionally all that training needs
//! to go on as if it had never stopped.
//!
//! | tensor | shape | what |
//! |---|---|---|
//! | `row.0.weight`, `row.0.bias`, `row.1.*` | `[h, w]`, `[h]` | the encoder's layers over a row |
//! | `mix.0.*`, `mix.1.*` | `[neck, d·h]` .. | the encoder's layers over all rows |
//! | `embed.0.*`, `embed.1.*`, `head.0.*`, `head.1.*` | | the bucket block; `bucket.<i>.` before it when unshared |
//! | `adam.first`, `adam.second`, `adam.step` | `[parameters]`, `[1]` | moments and step, if asked for |
//! | `rng` | `[4]` | the random generator |
//!
//! Shape and configuration stand in the metadata under `ucl-learned`, as `name=value` pairs.
//! Weights are PyTorch's layout, so `safetensors.torch.load_file` reads them.

#[cfg(feature = "network")]
mod file;

use thiserror::Error;

use crate::config::ConfigError;

/// Error of a checkpoint that cannot be read or does not fit.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The bytes are not a complete safetensors file.
    #[cfg(feature = "network")]
    #[error("not a readable safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// The metadata about the network is missing or unknown.
    #[error("checkpoint metadata `ucl-learned`: {0}")]
    Metadata(String),
    /// The checkpoint describes a network that cannot be built.
    #[error("checkpoint describes an impossible network: {0}")]
    Config(#[from] ConfigError),
    /// Tensors are missing, unexpected or of another shape. There is one line for each.
    #[error("checkpoint does not fit the network:\n  {}", .0.join("\n  "))]
    Mismatch(Vec<String>),
}

/// Content of a checkpoint besides the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Weights and random state: enough to decode, at a third of the size.
    Weights,
    /// Weights, random state, and Adam's moments and step: training continues as if it had not
    /// stopped.
    Training,
}
