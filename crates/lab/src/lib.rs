//! Measurements of UCL-sketch and other sketches: systems, metrics, experiments and plots.
//!
//! Every comparison of this project runs here, under the same conditions for all systems: the same
//! stream item by item (never totals), the same [memory accounting](ucl_data_plane::Memory), and
//! the same [metrics](ucl_streams::metrics) over all distinct keys. Beside the errors, every cost
//! is measured: the encoded uplink, the memory of the control plane, and the time to insert, train
//! and decode.
//!
//! ```text
//! Source -> Recording (stream + exact counts) -> Experiment: methods × budgets × seeds -> Row -> Summary -> table, plot
//!                                                   |
//!                                MethodRegistry: name -> Method -> Box<dyn System>
//! ```
//!
//! - [`System`] is the trait of a measured system. [`MethodRegistry`] finds systems by name; other
//!   crates can add their own.
//! - [`Experiment`] runs them. [`Row`] is the result of one run, and [`plot`](mod@plot) draws rows.
//! - [`specs`] has the experiments of the paper, one file each. [`reproduce`] runs them, stores and
//!   resumes results, and writes the report.
//!
//! ```
//! use ucl_lab::{Options, Recording, MethodRegistry, measure};
//! use ucl_streams::ReadOptions;
//!
//! let stream = Recording::read(&["zipf:1.1:20000:3000".parse()?], &ReadOptions::default())?;
//! let registry = MethodRegistry::standard();
//! let measured = measure(registry.find("ucl-delta")?, &stream, 16 << 10, 1, &Options::default());
//! println!("{}", measured.row.to_json());
//! let system = measured.system.expect("16KB are enough");
//! let (key, truth) = stream.truth().top(1)[0];
//! let (lower, upper) = system.estimate(key).bounds.expect("it has bounds");
//! assert!((lower..=upper).contains(&truth));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//! Streams are held in memory whole, twice over with their exact counts. Times are wall-clock times
//! of one machine: compare them within one run only.

pub mod changes;
pub mod experiment;
pub mod plot;
pub mod predict;
mod recording;
pub mod registry;
pub mod reproduce;
mod row;
pub mod specs;
mod summary;
mod system;
pub mod systems;

pub use experiment::{Experiment, Measured, MethodRun, measure};
pub use recording::Recording;
pub use registry::{Method, MethodRegistry, UnknownMethod};
pub use row::{Row, Unbounded};
pub use summary::{Spread, Summary};
pub use system::{Answer, Extras, Options, Pass, Request, System, SystemError, Training};
