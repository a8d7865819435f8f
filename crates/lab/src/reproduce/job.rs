//! Jobs of a spec and their outcomes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::data::{Dataset, Library};
use crate::recording::Recording;
use crate::registry::{Method, MethodRegistry};
use crate::row::Row;

/// Extent to which a spec is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// All ranges of the paper.
    Full,
    /// Fewer budgets, seeds and epochs: all specs take ten minutes on two cores.
    Quick,
    /// A few thousand generated items: a test in seconds that everything runs.
    Slice,
}

impl Extent {
    /// Returns the choice for this extent.
    pub fn choose<T>(self, full: T, quick: T, slice: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Slice => slice,
        }
    }
}

/// Extent and seeds of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Extent of the run.
    pub extent: Extent,
    /// Seeds of the systems.
    pub seeds: Vec<u64>,
}

impl Scope {
    /// Creates a scope with the default number of seeds for the extent, or with another number.
    ///
    /// ```
    /// use ucl_lab::reproduce::{Extent, Scope};
    /// assert_eq!(Scope::new(Extent::Full, None).seeds, [1, 2, 3]);
    /// assert_eq!(Scope::new(Extent::Quick, Some(2)).seeds, [1, 2]);
    /// ```
    pub fn new(extent: Extent, seeds: Option<u64>) -> Self {
        Self { extent, seeds: (1..=seeds.unwrap_or(extent.choose(3, 1, 1))).collect() }
    }

    /// Largest number of passes over the window in training.
    pub fn epochs(&self) -> usize {
        self.extent.choose(300, 60, 3)
    }
}

/// Names and values, such as `method` and `cm`, `memory` and `64KB`.
pub type Labels = BTreeMap<String, String>;

/// Function that runs a job and returns its finding or the reason of its failure.
pub type Work = Box<dyn Fn(&Bench<'_>) -> Result<Finding, String> + Send + Sync>;

/// Unit of work of a spec.
pub struct Job {
    /// Labels that distinguish the job from the spec's other jobs, in order. They are also its name
    /// in the store.
    pub labels: Vec<(&'static str, String)>,
    /// Dataset that the job reads, if any.
    pub dataset: Option<Dataset>,
    /// Method that the job measures. A job with an unregistered method is skipped and reported.
    pub method: Option<&'static str>,
    /// True if the job measures times. Such jobs run alone.
    pub timing: bool,
    /// Function that runs the job.
    pub run: Work,
}

impl Job {
    /// Creates a job that needs neither data nor a method, and whose figures do not depend on the
    /// machine.
    pub fn new(
        labels: impl IntoIterator<Item = (&'static str, String)>,
        run: impl Fn(&Bench<'_>) -> Result<Finding, String> + Send + Sync + 'static,
    ) -> Self {
        let labels = labels.into_iter().collect();
        Self { labels, dataset: None, method: None, timing: false, run: Box::new(run) }
    }

    /// Returns the job with this dataset.
    pub fn on(self, dataset: Dataset) -> Self {
        Self { dataset: Some(dataset), ..self }
    }

    /// Returns the job with this method.
    pub fn of(self, method: &'static str) -> Self {
        Self { method: Some(method), ..self }
    }

    /// Returns the job marked to run alone on the machine.
    pub fn alone(self) -> Self {
        Self { timing: true, ..self }
    }

    /// Returns the name of the job, which is the same in every run.
    pub fn id(&self) -> String {
        let parts: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.join(" ")
    }
}

/// Methods and data for a job.
pub struct Bench<'a> {
    /// Registered methods.
    pub registry: &'a MethodRegistry,
    /// Available datasets.
    pub library: &'a Library,
}

impl Bench<'_> {
    /// Returns a dataset in memory.
    pub fn stream(&self, dataset: Dataset) -> Result<Arc<Recording>, String> {
        self.library.stream(dataset)
    }

    /// Returns the method with this name.
    pub fn method(&self, name: &str) -> Result<&Method, String> {
        self.registry.find(name).map_err(|error| error.to_string())
    }
}

/// Findings of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Figures by name.
    pub figures: BTreeMap<String, f64>,
    /// Curves by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, Vec<f64>>,
    /// Words by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
}

impl Finding {
    /// Adds a figure, unless it is not a finite number.
    pub fn note(&mut self, name: &str, figure: impl Into<Option<f64>>) {
        if let Some(figure) = figure.into().filter(|figure: &f64| figure.is_finite()) {
            self.figures.insert(name.to_owned(), rounded(figure));
        }
    }

    /// Adds a curve.
    pub fn curve(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        self.curves.insert(name.to_owned(), values.into_iter().map(rounded).collect());
    }

    /// Returns the figures of a measured system.
    pub fn of_row(row: &Row) -> Result<Self, String> {
        if let Some(error) = &row.error {
            return Err(error.clone());
        }
        let mut finding = Self::default();
        let figures = [
            ("aae", row.aae),
            ("are", row.are),
            ("wmrd", row.wmrd),
            ("entropy_error", row.entropy_error),
            ("entropy_error_all_keys", row.entropy_error_all_keys),
            ("coverage", row.coverage),
            ("bound_violations", row.bound_violations.map(|n| n as f64)),
            ("bound_width", row.bound_width),
            ("insert_mops", row.insert_mops),
            ("query_mops", row.query_mops),
            ("bucket_query_mops", row.bucket_query_mops),
            ("train_seconds", row.train_seconds),
            ("train_epochs", row.train_epochs.map(|n| n as f64)),
            ("decode_ms", row.decode_ms),
            ("uplink_bytes_per_item", row.uplink_bytes_per_item),
            ("control_bytes", row.control_bytes.map(|n| n as f64)),
            ("memory_used", row.memory_used.map(|n| n as f64)),
            ("exact_map_bytes", Some(row.exact_map_bytes as f64)),
            ("snapshots", row.snapshots.map(|n| n as f64)),
            ("counter_bits", row.counter_bits.map(|n| n as f64)),
            ("keys", Some(row.keys as f64)),
            ("items", Some(row.items as f64)),
        ];
        figures.into_iter().for_each(|(name, figure)| finding.note(name, figure));
        if let Some(unbounded) = &row.unbounded {
            finding.note("unbounded_aae", unbounded.aae);
            finding.note("unbounded_are", unbounded.are);
            finding.note("unbounded_wmrd", unbounded.wmrd);
            finding.note("unbounded_entropy_error", unbounded.entropy_error);
            finding.note("unbounded_entropy_error_all_keys", unbounded.entropy_error_all_keys);
        }
        finding.note("restarts", row.restarts.map(|n| n as f64));
        finding.note("collapsed", row.collapsed.map(|collapsed| f64::from(u8::from(collapsed))));
        if let Some(decoder) = &row.answered_by {
            finding.words.insert("answered_by".to_owned(), decoder.clone());
        }
        Ok(finding)
    }
}

/// Six digits that matter: what is kept of a figure.
fn rounded(figure: f64) -> f64 {
    format!("{figure:.5e}").parse().unwrap_or(figure)
}

/// Outcome of a finished job, successful or not: one line of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Name of the job.
    pub job: String,
    /// Identity of the dataset: a digest or a generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Labels of the job.
    pub labels: Labels,
    /// Findings of the job.
    #[serde(flatten)]
    pub finding: Finding,
    /// Reason of the failure, if the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Version of the program that ran the job.
    pub version: String,
}

impl Outcome {
    /// Returns a label, or an empty text if there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Returns a figure.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.finding.figures.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_by_its_labels() {
        let job = Job::new([("memory", "64KB".into()), ("method", "cm".into())], |_| Ok(Finding::default()));
        assert_eq!(job.id(), "memory=64KB method=cm");
    }

    #[test]
    fn figures_keep_six_digits_and_only_numbers() {
        let mut finding = Finding::default();
        finding.note("a", 1.0 / 3.0);
        finding.note("b", f64::NAN);
        finding.note("c", None);
        assert_eq!(finding.figures, BTreeMap::from([("a".to_owned(), 0.333333)]));
        let failed = Row { error: Some("too small".into()), ..Row::default() };
        assert_eq!(Finding::of_row(&failed), Err("too small".to_owned()));
    }
}
