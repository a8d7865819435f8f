//! What a spec plans, and what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::data::{Dataset, Library};
use crate::recording::Recording;
use crate::registry::{Method, Registry};
use crate::row::Row;

/// How much of a spec is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// The paper's ranges.
    Full,
    /// Fewer budgets, seeds and epochs: all specs in ten minutes on two cores.
    Quick,
    /// A few generated thousand items: whether it runs at all, in seconds.
    Slice,
}

impl Extent {
    /// The choice for this extent.
    pub fn choose<T>(self, full: T, quick: T, slice: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Slice => slice,
        }
    }
}

/// How much is run, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// How much.
    pub extent: Extent,
    /// The seeds of the systems.
    pub seeds: Vec<u64>,
}

impl Scope {
    /// An extent with its usual number of seeds, or another.
    ///
    /// ```
    /// use ucl_lab::reproduce::{Extent, Scope};
    /// assert_eq!(Scope::new(Extent::Full, None).seeds, [1, 2, 3]);
    /// assert_eq!(Scope::new(Extent::Quick, Some(2)).seeds, [1, 2]);
    /// ```
    pub fn new(extent: Extent, seeds: Option<u64>) -> Self {
        Self { extent, seeds: (1..=seeds.unwrap_or(extent.choose(3, 1, 1))).collect() }
    }

    /// Passes over the window in training, at most.
    pub fn epochs(&self) -> usize {
        self.extent.choose(300, 60, 3)
    }
}

/// Names and what they are set to: `method` to `cm`, `memory` to `64KB`.
pub type Labels = BTreeMap<String, String>;

/// Does a job; says why, where it cannot.
pub type Work = Box<dyn Fn(&Bench<'_>) -> Result<Finding, String> + Send + Sync>;

/// One piece of work of a spec.
pub struct Job {
    /// What tells it from the spec's other jobs, in the order in which it is told: also its name in the store.
    pub labels: Vec<(&'static str, String)>,
    /// The data it reads, if any.
    pub dataset: Option<Dataset>,
    /// The method it measures; a job whose method nobody has registered is left out, and that is said.
    pub method: Option<&'static str>,
    /// Whether times are what it is about. Such jobs run alone.
    pub timing: bool,
    /// Does it.
    pub run: Work,
}

impl Job {
    /// A job that needs neither data nor a method, and whose figures do not depend on the machine.
    pub fn new(
        labels: impl IntoIterator<Item = (&'static str, String)>,
        run: impl Fn(&Bench<'_>) -> Result<Finding, String> + Send + Sync + 'static,
    ) -> Self {
        let labels = labels.into_iter().collect();
        Self { labels, dataset: None, method: None, timing: false, run: Box::new(run) }
    }

    /// The same, on this data.
    pub fn on(self, dataset: Dataset) -> Self {
        Self { dataset: Some(dataset), ..self }
    }

    /// The same, for this method.
    pub fn of(self, method: &'static str) -> Self {
        Self { method: Some(method), ..self }
    }

    /// The same, alone on the machine.
    pub fn alone(self) -> Self {
        Self { timing: true, ..self }
    }

    /// Its name: the same in every run of the same definition.
    pub fn id(&self) -> String {
        let parts: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        parts.join(" ")
    }
}

/// What a job has at hand.
pub struct Bench<'a> {
    /// The methods.
    pub registry: &'a Registry,
    /// The data.
    pub library: &'a Library,
}

impl Bench<'_> {
    /// A dataset in memory.
    pub fn stream(&self, dataset: Dataset) -> Result<Arc<Recording>, String> {
        self.library.stream(dataset)
    }

    /// A method by name.
    pub fn method(&self, name: &str) -> Result<&Method, String> {
        self.registry.find(name).map_err(|error| error.to_string())
    }
}

/// What a job found.
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
    /// Notes a figure. What is no finite number is left out.
    pub fn note(&mut self, name: &str, figure: impl Into<Option<f64>>) {
        if let Some(figure) = figure.into().filter(|figure: &f64| figure.is_finite()) {
            self.figures.insert(name.to_owned(), rounded(figure));
        }
    }

    /// Notes a curve.
    pub fn curve(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        self.curves.insert(name.to_owned(), values.into_iter().map(rounded).collect());
    }

    /// The figures of a measured system.
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
            ("coverage", row.coverage),
            ("bound_violations", row.bound_violations.map(|n| n as f64)),
            ("bound_width", row.bound_width),
            ("insert_mops", row.insert_mops),
            ("query_mops", row.query_mops),
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

/// A job that is done, well or not: one line of the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The job.
    pub job: String,
    /// Which bytes the dataset was, or how it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Its labels.
    pub labels: Labels,
    /// What it found.
    #[serde(flatten)]
    pub finding: Finding,
    /// Why it found nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// The program that did it.
    pub version: String,
}

impl Outcome {
    /// A label; empty if there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// A figure.
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
