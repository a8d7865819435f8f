//! Experiments by name, as `ucl reproduce` lists them, one file each.
//!
//! | spec | what | labels in the paper |
//! |---|---|---|
//! | [`accuracy-real`](accuracy_real) | errors against memory on the three real streams | `performance`, `entropy` |
//! | [`retail-paper`](retail_paper) | Retail with the parameters that the paper prints | `entropy`, `tab:baseline_params`, `sketch_parameters` |
//! | [`accuracy-zipf`](accuracy_zipf) | the same on Zipf 1.2 to 1.5 | `performance_zipf`, `entropy_zipf` |
//! | [`throughput`] | inserts and queries a second, by key size | `throughput` |
//! | [`convergence`] | the training loss | `fig:losses` |
//! | [`online`] | the network trained along the stream | `model_parameters` |
//! | [`drift`] | streams that change under way | `tab:burst` |
//! | [`sensitivity`] | the network's settings | `bucket_ae`, `hd_ae`, `bucket_usage`, `hd_usage`, `model_parameters` |
//! | [`ablation`] | parts of the loss and of the network taken away | `ablation_1`, `entropy_ab` |
//! | [`recovery-cost`](recovery_cost) | decoding time and parameters by the number of keys | `ablation_2` |
//! | [`equation-based`](equation_based) | the systems that solve equations | `fig:equation_sketch_performance`, `tab:eae_es`, … |
//! | [`theory`] | lemmas and theorems beside what is measured | `lemma2`, `theorem2`, `theorem3`, `theorem4`, `anlysis_table` |
//! | [`changes`] | the sketch itself changes in mid-stream | "Robustness to Sketch Changes" |
//! | [`frontier`] | accuracy against uplink against memory: past the paper | |
//!
//! A new spec is a file with a `SPEC` and a line in [`ALL`]. Specs refer to methods by name. A
//! method that is not registered is left out of a run, and the run reports it.

pub mod ablation;
pub mod accuracy_real;
pub mod accuracy_zipf;
mod beside;
pub mod changes;
pub(crate) mod claims;
mod common;
pub mod convergence;
pub mod drift;
pub mod equation_based;
pub mod frontier;
pub mod online;
pub mod recovery_cost;
pub mod retail_paper;
pub mod sensitivity;
pub mod theory;
pub mod throughput;

use crate::plot::Figure;
use crate::reproduce::{Job, Outcome, Scope, Table};

/// Experiment of the evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in reports.
    pub title: &'static str,
    /// Labels of the tables and figures in the paper's source.
    pub labels: &'static [&'static str],
    /// Description of the measurement in a few sentences.
    pub about: &'static str,
    /// Function that plans the jobs.
    pub jobs: fn(&Scope) -> Vec<Job>,
    /// Function that presents the outcomes.
    pub present: fn(&[Outcome]) -> Presentation,
}

/// Presentation of finished jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presentation {
    /// Figures with their file names and captions.
    pub figures: Vec<(String, String, Figure)>,
    /// Tables, the most important first.
    pub tables: Vec<Table>,
    /// Remarks: what the results show, and where and why they differ from the paper.
    pub remarks: Vec<String>,
}

/// All experiments.
pub const ALL: [&Spec; 14] = [
    &accuracy_real::SPEC,
    &retail_paper::SPEC,
    &accuracy_zipf::SPEC,
    &throughput::SPEC,
    &convergence::SPEC,
    &online::SPEC,
    &drift::SPEC,
    &sensitivity::SPEC,
    &ablation::SPEC,
    &recovery_cost::SPEC,
    &equation_based::SPEC,
    &theory::SPEC,
    &changes::SPEC,
    &frontier::SPEC,
];

/// Returns the experiment with this name.
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

/// Error of a name that no experiment has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no experiment '{given}'; there are {}", ALL.map(|spec| spec.name).join(", "))]
pub struct UnknownSpec {
    given: String,
}
