//! The agent as a program: reads inputs, counts them, and sends the counts to a collector, over
//! HTTP or NATS.
//!
//! [`ucl_agent`] has the rules (what is on disk before what is sent); this crate has the threads
//! around it. Each stream has three: one reads its input, one owns the agent, one waits for the
//! collector. They talk through channels with bounds. [`run`] is what `ucl agent` and the small
//! binary `ucl-agent` do. [`Embedded`] is an agent inside another program, which hands its items
//! over.

// They panic where nobody reads any more: a log must not end the counting.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod args;
mod carrier;
mod embedded;
mod feed;
mod log;
mod net;
mod packets;
mod place;
mod position;
mod run;
mod tail;
mod worker;

pub use args::{Args, StreamSpec, client};
pub use embedded::{Embedded, EmbeddedError, EmbeddedSettings, EmbeddedStatus};
pub use run::{AgentdError, run, run_and_tell};
pub use worker::Outcome;
