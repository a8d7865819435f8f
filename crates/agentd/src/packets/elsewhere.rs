//! Other systems, where packets cannot be read.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Interface;

/// An interface that cannot be opened on this system.
pub struct Capture {
    pub interface: Interface,
}

impl Capture {
    /// Returns an error: packets are read on Linux only.
    pub fn open(_: Interface, _: usize) -> io::Result<Self> {
        Err(io::Error::new(ErrorKind::Unsupported, "packets are read from interfaces on Linux only"))
    }

    /// Starts reading nothing.
    pub fn start<L: FnMut(u64)>(&mut self, _: Arc<AtomicBool>, _: L) -> impl Read {
        io::empty()
    }
}

/// Does nothing: this system has no privileges to give up.
pub fn drop_privileges(_: bool, _: bool) -> io::Result<()> {
    Ok(())
}
