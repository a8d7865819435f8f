//! What can go wrong with a state file.

use std::io;
use std::path::PathBuf;

use ucl_control_plane::{DecoderKind, Fault};
use ucl_data_plane::{Inconsistent, KeyFormat};

use super::{FORMAT_VERSION, Section};
use crate::background::NoThread;

/// Error of a state that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error reported by the operating system.
        error: io::Error,
    },
    /// The file is not a state of UCL-sketch.
    #[error("not a UCL-sketch state file")]
    NotAState,
    /// The sketch has keys of another type.
    #[error("the state has {found}, not keys of type {wanted}")]
    KeyType {
        /// Format of the keys in the state.
        found: KeyFormat,
        /// Name of the key type that was asked for.
        wanted: &'static str,
    },
    /// The state needs the network, which this build does not have (feature `learned`).
    #[error("the state is of the decoder '{decoder}': build this program with the feature `learned` of ucl-sketch")]
    NotBuilt {
        /// Decoder of the state.
        decoder: DecoderKind,
    },
    /// A newer version of this program wrote the state.
    #[error("the state file has version {found}, but versions up to {FORMAT_VERSION} can be read: update this program")]
    NewerVersion {
        /// Version of the file.
        found: u32,
    },
    /// The file is incomplete, as after a copy that was interrupted.
    #[error("the state file is cut short: it has {found} bytes of {expected}")]
    Truncated {
        /// Number of bytes found.
        found: u64,
        /// Smallest number of bytes that the file should have.
        expected: u64,
    },
    /// Other bytes follow the end of the state.
    #[error("{bytes} bytes follow where the state file should end")]
    TrailingBytes {
        /// Number of bytes after the end.
        bytes: u64,
    },
    /// The table of sections is damaged.
    #[error("the state file's table of sections is damaged: {why}")]
    Table {
        /// Description of the problem.
        why: String,
    },
    /// A section is damaged: its checksum is wrong.
    #[error("the state file is damaged: the checksum of its section '{section}' is wrong")]
    SectionChecksum {
        /// Name of the section.
        section: Section,
    },
    /// The file is damaged: its checksum is wrong.
    #[error("the state file is damaged: its checksum is wrong")]
    Checksum,
    /// A required section is missing: the writer had a bug.
    #[error("the state file's section '{section}' is missing")]
    Missing {
        /// Name of the section.
        section: Section,
    },
    /// A section is invalid although its checksum is right: the writer had a bug.
    #[error("the state file's section '{section}' cannot be read: {why}")]
    Malformed {
        /// Name of the section.
        section: Section,
        /// Description of the problem.
        why: String,
    },
    /// A section does not fit in the memory of this machine.
    #[error("out of memory: the state file's section '{section}' of {bytes} bytes does not fit")]
    OutOfMemory {
        /// Name of the section.
        section: Section,
        /// Size of the section in the file, in bytes.
        bytes: usize,
    },
    /// The system could not start a thread.
    #[error(transparent)]
    Thread(#[from] NoThread),
    /// Parts of the state contradict each other: the writer had a bug.
    #[error("the state file contradicts itself: {0}")]
    Inconsistent(#[from] Inconsistent),
}

/// Error of a state that cannot be saved. An older file is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error reported by the operating system.
        error: io::Error,
    },
    /// The sketch has failed, so its state cannot be used later.
    #[error("a sketch that has failed cannot be saved: {0}")]
    Fault(#[from] Fault),
    /// The settings of the sketch are out of the range that a state can have.
    #[error("a sketch with these settings cannot be saved: {0}")]
    Settings(#[from] Inconsistent),
}
