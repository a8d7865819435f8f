//! The experiments: one file each, named as `ucl reproduce` names them.
//!
//! | spec | what | labels in the paper |
//! |---|---|---|
//! | [`accuracy-real`](accuracy_real) | errors against memory on the three real streams | `performance`, `entropy` |
//! | [`accuracy-zipf`](accuracy_zipf) | the same on Zipf 1.2 to 1.5 | `performance_zipf`, `entropy_zipf` |
//! | [`throughput`] | inserts and queries a second, by key size | `throughput` |
//! | [`convergence`] | the training loss | `fig:losses` |
//! | [`drift`] | streams that change under way | `tab:burst` |
//! | [`sensitivity`] | the network's settings | `bucket_ae`, `hd_ae`, `bucket_usage`, `hd_usage`, `model_parameters` |
//! | [`ablation`] | parts of the loss and of the network taken away | `ablation_1`, `entropy_ab` |
//! | [`recovery-cost`](recovery_cost) | decoding time and parameters by the number of keys | `ablation_2` |
//! | [`equation-based`](equation_based) | the systems that solve equations | `fig:equation_sketch_performance`, `tab:eae_es`, … |
//! | [`theory`] | lemmas and theorems beside what is measured | `lemma2`, `theorem2`, `theorem3`, `anlysis_table` |
//! | [`changes`] | the sketch itself changes in mid-stream | "Robustness to Sketch Changes" |
//! | [`frontier`] | accuracy against uplink against memory: past the paper | |
//!
//! A new spec is a file with a `SPEC` and a line in [`ALL`]. Methods are named, never built: a name that nobody has registered
//! is left out of a run, which says so, and takes part as soon as somebody registers it.

pub mod ablation;
pub mod accuracy_real;
pub mod accuracy_zipf;
mod beside;
pub mod changes;
mod common;
pub mod convergence;
pub mod drift;
pub mod equation_based;
pub mod frontier;
pub mod recovery_cost;
pub mod sensitivity;
pub mod theory;
pub mod throughput;

use crate::plot::Figure;
use crate::reproduce::{Job, Outcome, Scope, Table};

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name on the command line.
    pub name: &'static str,
    /// What it is called in reports.
    pub title: &'static str,
    /// The paper's tables and figures, by their labels in its source.
    pub labels: &'static [&'static str],
    /// What is measured and how, in a few sentences.
    pub about: &'static str,
    /// The plan.
    pub jobs: fn(&Scope) -> Vec<Job>,
    /// What is to be seen of it.
    pub present: fn(&[Outcome]) -> Presentation,
}

/// What is to be seen of finished jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presentation {
    /// Figures with their file names and captions.
    pub figures: Vec<(String, String, Figure)>,
    /// Tables, the most telling first.
    pub tables: Vec<Table>,
    /// Sentences: what is seen, and where it differs from the paper and why.
    pub remarks: Vec<String>,
}

/// All experiments.
pub const ALL: [&Spec; 12] = [
    &accuracy_real::SPEC,
    &accuracy_zipf::SPEC,
    &throughput::SPEC,
    &convergence::SPEC,
    &drift::SPEC,
    &sensitivity::SPEC,
    &ablation::SPEC,
    &recovery_cost::SPEC,
    &equation_based::SPEC,
    &theory::SPEC,
    &changes::SPEC,
    &frontier::SPEC,
];

/// The experiment of this name.
///
/// ```
/// use ucl_lab::specs;
/// assert_eq!(specs::find("frontier")?.name, "frontier");
/// assert!(specs::find("frontiers").unwrap_err().to_string().contains("there are accuracy-real, "));
/// # Ok::<(), specs::UnknownSpec>(())
/// ```
pub fn find(name: &str) -> Result<&'static Spec, UnknownSpec> {
    ALL.into_iter().find(|spec| spec.name == name).ok_or_else(|| UnknownSpec { given: name.to_owned() })
}

/// No experiment has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no experiment '{given}'; there are {}", ALL.map(|spec| spec.name).join(", "))]
pub struct UnknownSpec {
    given: String,
}
