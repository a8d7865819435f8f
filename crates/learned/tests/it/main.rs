//! The crate as its users see it.

mod accuracy;
mod checkpoint;
mod online;
mod stream;
mod trace;
