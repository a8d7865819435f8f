//! Reruns the paper's evaluation: every table and figure with one command.
//!
//! ```text
//! Spec -> jobs -> (skip what the store has) -> Outcome, one line each in jobs/SPEC.jsonl
//!              outcomes -> tables (.md, .csv), figures (.svg), report.html, a dated result
//! ```
//!
//! - A [`Spec`](crate::specs::Spec) is one experiment: a plan of [`Job`]s and what is to be seen of
//!   their [`Outcome`]s.
//! - A job has a stable name. What it found is stored as soon as it is done, so that a run can be
//!   stopped and resumed; a job is done again only if its data has changed.
//! - Jobs that measure time run alone; all others run side by side. No figure but times depends on
//!   that.
//! - [`Library`] has the data, and says what it is; [`paper`] has what the paper prints.
//!
//! ```
//! use ucl_lab::reproduce::{Extent, Reproduction, Scope};
//! use ucl_lab::{MethodRegistry, specs};
//!
//! let folder = std::env::temp_dir().join(format!("ucl-reproduce-{}", std::process::id()));
//! let registry = MethodRegistry::standard();
//! let reproduction = Reproduction {
//!     registry: &registry,
//!     specs: vec![specs::find("ablation")?],
//!     scope: Scope::new(Extent::Slice, None),
//!     data_dir: None,
//!     out: folder.clone(),
//!     resume: true,
//!     workers: 2,
//! };
//! let results = reproduction.run(&|_| ())?;
//! assert!(folder.join("report.html").exists());
//! assert!(results[0].outcomes.iter().all(|outcome| outcome.error.is_none()));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod data;
pub mod docs;
mod environment;
mod job;
mod output;
mod page;
pub mod paper;
mod run;
mod table;

pub use data::{DataError, Dataset, Identity, Known, Library, manifest};
pub use environment::Environment;
pub use job::{Bench, Extent, Finding, Job, Labels, Outcome, Scope, Work};
pub use run::{Event, Reproduction, SpecResult};
pub use table::{Cell, Table};

use std::path::{Path, PathBuf};

/// Reason why an evaluation cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The data folder could not be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file could not be written.
    #[error("cannot write {}: {why}", path.display())]
    Write {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error reported by the operating system.
        why: std::io::Error,
    },
    /// A stored result could not be read.
    #[error("cannot read {}: {why}", path.display())]
    Store {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        why: String,
    },
    /// A figure could not be drawn or written.
    #[error(transparent)]
    Plot(#[from] crate::plot::PlotError),
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), ReproduceError> {
    let failed = |why| ReproduceError::Write { path: path.to_owned(), why };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, content).map_err(failed)
}
