//! The collector as a service: HTTP, tokens and files around [`ucl_collector`].
//!
//! ```text
//! POST /v1/{tenant}/{stream}/{incarnation}   envelopes laid end to end -> a reply, as JSON
//! GET  /v1/{tenant}/streams                  health, lag, uplink, memory; n, after, self_check
//! GET  /v1/{tenant}/estimate?key=a&key=b     POST {"keys": ["a", "b"]} for more than 1,000
//! GET  /v1/{tenant}/top?n=20&offset=0
//! GET  /v1/{tenant}/changes?last=5m&n=20     against the range of the same length before
//! GET  /v1/{tenant}/series?key=a&step=1m     what each epoch added to a key
//! GET  /v1/{tenant}/prefix?prefix=/api/      sums of all known keys that start so
//! GET  /v1/{tenant}/export                   every known key, as CSV
//! DELETE /v1/{tenant}/streams?stream=a       needs the scope admin
//! GET  /v1/openapi.json                      all of it, described
//! GET  / | /metrics | /healthz | /readyz
//! ```
//!
//! Questions take `stream` (any number of names, or starts of names with `*` behind them) and
//! `format`. Those about counts take a range of time: `last` (a number and `ms`, `s`, `m`, `h` or
//! `d`), or `from` and `to` (milliseconds since 1970, or UTC as in `2026-01-31T09:30:00Z`). A range
//! has the epochs that ended after `from` and not after `to`, by the clock of their agent, as far
//! back as epochs are kept one by one (`keep_epochs`). The JSON of `top` and `estimate`:
//!
//! ```json
//! {
//!   "format": "lines", "incarnations": 2, "items": 14, "weight": 14,
//!   "unseen_items": 0, "unseen_unknown": false,
//!   "range": {
//!     "from_ms": 1763453000000, "to_ms": 1763453300000,
//!     "covered_from_ms": 1763453003000, "covered_to_ms": 1763453297000,
//!     "epochs": 58, "complete": true
//!   },
//!   "keys": [{"key": "tea", "shown": "tea", "estimate": 10, "lower": 10, "upper": 10}],
//!   "next": null
//! }
//! ```
//!
//! `range` is `null` without a range, and then items and weight are those of everything. `complete`
//! is false if epochs of the range are too old to be kept one by one; the answer is then about the
//! others. `changes` has `before` (a range like `range`) and in each of `keys` the objects `before`
//! and `after` and the number `change`; `series` has `series: [{stream, incarnation, epochs: [{seq,
//! started_ms, ended_ms, duration_ms, items, estimate, lower, upper}]}]` and with `step` also
//! `steps: [{from_ms, to_ms, estimate, lower, upper}]`, sums over all streams; `prefix` has
//! `prefixes: [{prefix, keys, estimate, lower, upper}]`. Errors are `application/problem+json`.
//!
//! Bounds hold for the items of the epochs that were counted ([`ucl_collector::Slice`] says when
//! they are exact).
//!
//! One thread owns the collector ([`core`]); handlers translate only. What is acknowledged is on
//! the disk. Stopping is a path like any other: requests under way are answered, the states are
//! written, and the folder is free.

mod config;
pub mod core;
mod cores;
mod http;
#[cfg(feature = "nats")]
mod nats;
mod nats_config;
mod patient;
mod serve;
#[cfg(feature = "tls")]
mod tls;
mod tokens;

pub use config::{Config, ConfigError, DEFAULT_FILE, Options, Tls};
pub use nats_config::NatsConfig;
pub use serve::{Server, StartError, Stopper};
pub use tokens::{Grant, NewToken, Scope, Tokens};

/// The tenant of those who name none.
pub const DEFAULT_TENANT: &str = "default";
