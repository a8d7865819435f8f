//! What can go wrong with a state file.

use std::io;
use std::path::PathBuf;

use ucl_control_plane::{DecoderKind, Fault};
use ucl_data_plane::{Inconsistent, KeyFormat};

use super::{FORMAT_VERSION, Section};
use crate::background::NoThread;

/// A state that cannot be read. Nothing of it was used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// See that the file is there and may be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Another program wrote this.
    #[error("not a UCL-sketch state file")]
    NotAState,
    /// The sketch holds keys of another type.
    #[error("the state has {found}, which {wanted} is not")]
    KeyType {
        /// The keys of the state.
        found: KeyFormat,
        /// The type asked for.
        wanted: &'static str,
    },
    /// The state has a network, and this build is without: the feature `learned` is off.
    #[error("the state is of the decoder '{decoder}': build this program with the feature `learned` of ucl-sketch")]
    NotBuilt {
        /// The decoder of the state.
        decoder: DecoderKind,
    },
    /// Update this program.
    #[error("the state file has version {found}, but versions up to {FORMAT_VERSION} can be read: update this program")]
    NewerVersion {
        /// The file's.
        found: u32,
    },
    /// A copy broke off: copy it again.
    #[error("the state file is cut short: it has {found} bytes of {expected}")]
    Truncated {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be, at least.
        expected: u64,
    },
    /// Something was appended to it.
    #[error("{bytes} bytes follow where the state file should end")]
    TrailingBytes {
        /// How many.
        bytes: u64,
    },
    /// The file was damaged: take an older one.
    #[error("the state file's table of sections is damaged: {why}")]
    Table {
        /// What is wrong with it.
        why: String,
    },
    /// The file was damaged: take an older one.
    #[error("the state file is damaged: the checksum of its section '{section}' is wrong")]
    SectionChecksum {
        /// The section.
        section: Section,
    },
    /// The file was damaged: take an older one.
    #[error("the state file is damaged: its checksum is wrong")]
    Checksum,
    /// It was not written by this program, or by one with a bug.
    #[error("the state file's section '{section}' is missing")]
    Missing {
        /// The section.
        section: Section,
    },
    /// It was not written by this program, or by one with a bug.
    #[error("the state file's section '{section}' cannot be read: {why}")]
    Malformed {
        /// The section.
        section: Section,
        /// What is wrong with it.
        why: String,
    },
    /// Load it where there is more memory.
    #[error("out of memory: the state file's section '{section}' of {bytes} bytes does not fit")]
    OutOfMemory {
        /// The section.
        section: Section,
        /// Its bytes in the file.
        bytes: usize,
    },
    /// End other threads.
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// It was not written by this program, or by one with a bug.
    #[error("the state file contradicts itself: {0}")]
    Inconsistent(#[from] Inconsistent),
}

/// A state that cannot be saved. An older file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// See that the folder is there, may be written to, and has room.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// What has failed cannot go on later.
    #[error("a sketch that has failed cannot be saved: {0}")]
    Fault(#[from] Fault),
    /// Choose settings with which the sketch can answer within a lifetime.
    #[error("a sketch with these settings cannot be saved: {0}")]
    Settings(#[from] Inconsistent),
}
