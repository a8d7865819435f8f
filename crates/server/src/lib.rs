//! The collector as a service: HTTP, tokens and files around [`ucl_collector`].
//!
//! ```text
//! POST /v1/{tenant}/{stream}/{incarnation}   envelopes laid end to end -> a reply, as JSON
//! GET  /v1/{tenant}/streams | estimate | top
//! GET  /healthz | /readyz
//! ```
//!
//! One thread owns the collector ([`core`]); handlers translate only. What is acknowledged is on
//! the disk. Stopping is a path like any other: requests under way are answered, the states are
//! written, and the folder is free.

mod clock;
mod config;
pub mod core;
mod http;
mod serve;
mod tokens;

pub use config::{Config, ConfigError, DEFAULT_FILE, Options};
pub use serve::{Server, StartError, Stopper};
pub use tokens::{Grant, NewToken, Scope, Tokens};

/// The tenant of those who name none.
pub const DEFAULT_TENANT: &str = "default";
