//! Runs jobs and stores their outcomes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::data::{Identity, Library};
use super::job::{Bench, Finding, Job, Outcome, Scope};
use super::{ReproduceError, output};
use crate::registry::MethodRegistry;
use crate::specs::Spec;

/// Experiments to run, with their data and the folder of results.
pub struct Reproduction<'a> {
    /// Registered methods.
    pub registry: &'a MethodRegistry,
    /// Experiments to run.
    pub specs: Vec<&'static Spec>,
    /// Extent and seeds of the run.
    pub scope: Scope,
    /// Folder with the data.
    pub data_dir: Option<PathBuf>,
    /// Folder for the results.
    pub out: PathBuf,
    /// True if finished jobs are kept and not run again.
    pub resume: bool,
    /// Largest number of jobs that run at the same time.
    pub workers: usize,
}

/// Event during a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Start of a spec, with the number of jobs that remain.
    Begin {
        /// The spec.
        spec: &'a Spec,
        /// Number of jobs to run.
        jobs: usize,
        /// Number of jobs finished in an earlier run.
        done: usize,
        /// Names of planned methods that are not registered.
        missing: &'a [String],
    },
    /// Start of a job.
    Start {
        /// The spec.
        spec: &'a Spec,
        /// The job.
        job: &'a str,
    },
    /// End of a job.
    Done {
        /// Outcome of the job.
        outcome: &'a Outcome,
    },
}

/// Results of one spec.
#[derive(Clone, Debug)]
pub struct SpecResult {
    /// Spec that was run.
    pub spec: &'static Spec,
    /// Extent and seeds of the run.
    pub scope: Scope,
    /// Outcomes in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// Names of planned methods that are not registered.
    pub missing: Vec<String>,
    /// Identities of the datasets.
    pub data: Vec<Identity>,
}

type Watch<'w> = &'w (dyn Fn(Event<'_>) + Sync);

impl Reproduction<'_> {
    /// Runs all specs and writes the results.
    pub fn run(&self, watch: Watch<'_>) -> Result<Vec<SpecResult>, ReproduceError> {
        let library = Library::open(self.data_dir.as_deref(), self.scope.extent)?;
        let bench = Bench { registry: self.registry, library: &library };
        let mut results = Vec::with_capacity(self.specs.len());
        for &spec in &self.specs {
            let result = self.run_spec(spec, &bench, watch)?;
            let shown = output::write_spec(&self.out, &result)?;
            results.push((result, shown));
        }
        output::write_report(&self.out, &self.scope, &results)?;
        Ok(results.into_iter().map(|(result, _)| result).collect())
    }

    fn run_spec(&self, spec: &'static Spec, bench: &Bench<'_>, watch: Watch<'_>) -> Result<SpecResult, ReproduceError> {
        let planned = (spec.jobs)(&self.scope);
        let mut data: Vec<Identity> = Vec::new();
        for dataset in planned.iter().filter_map(|job| job.dataset) {
            let identity = bench.library.identity(dataset);
            if !data.contains(identity) {
                data.push(identity.clone());
            }
        }
        let mut missing: Vec<String> = Vec::new();
        for name in planned.iter().filter_map(|job| job.method).filter(|name| self.registry.find(name).is_err()) {
            if !missing.iter().any(|known| known == name) {
                missing.push(name.to_owned());
            }
        }
        let present = |job: &&Job| job.method.is_none_or(|name| self.registry.find(name).is_ok());
        let jobs: Vec<&Job> = planned.iter().filter(present).collect();

        let mut store = Store::open(&self.out.join("jobs").join(format!("{}.jsonl", spec.name)), self.resume)?;
        let todo: Vec<&Job> = jobs.iter().copied().filter(|job| store.find(job, bench).is_none()).collect();
        watch(Event::Begin { spec, jobs: todo.len(), done: jobs.len() - todo.len(), missing: &missing });
        let (alone, together): (Vec<&Job>, Vec<&Job>) = todo.into_iter().partition(|job| job.timing);
        {
            let store = Mutex::new(&mut store);
            let next = AtomicUsize::new(0);
            let work = || -> Result<(), ReproduceError> {
                while let Some(job) = together.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run_job(spec, job, bench, &store, watch)?;
                }
                Ok(())
            };
            std::thread::scope(|scope| {
                let workers: Vec<_> =
                    (0..self.workers.clamp(1, together.len().max(1))).map(|_| scope.spawn(work)).collect();
                workers
                    .into_iter()
                    .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })?;
            alone.iter().try_for_each(|job| run_job(spec, job, bench, &store, watch))?;
        }
        let outcomes = jobs.iter().filter_map(|job| store.find(job, bench).cloned()).collect();
        Ok(SpecResult { spec, scope: self.scope.clone(), outcomes, missing, data })
    }
}

fn run_job(
    spec: &Spec,
    job: &Job,
    bench: &Bench<'_>,
    store: &Mutex<&mut Store>,
    watch: Watch<'_>,
) -> Result<(), ReproduceError> {
    let id = job.id();
    watch(Event::Start { spec, job: &id });
    let start = Instant::now();
    let (finding, error) = match (job.run)(bench) {
        Ok(finding) => (finding, None),
        Err(why) => (Finding::default(), Some(why)),
    };
    let outcome = Outcome {
        job: id,
        data: stamp(job, bench),
        labels: job.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        finding,
        error,
        seconds: (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    watch(Event::Done { outcome: &outcome });
    store.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(outcome)
}

/// Which bytes a job reads.
fn stamp(job: &Job, bench: &Bench<'_>) -> Option<String> {
    job.dataset.map(|dataset| bench.library.identity(dataset).stamp.clone())
}

/// The outcomes of one spec in a file, a line each.
struct Store {
    path: PathBuf,
    file: File,
    outcomes: HashMap<(String, Option<String>), Outcome>,
}

impl Store {
    fn open(path: &Path, resume: bool) -> Result<Self, ReproduceError> {
        let failed = |why| ReproduceError::Write { path: path.to_owned(), why };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut outcomes = HashMap::new();
        if resume && path.exists() {
            let text = std::fs::read_to_string(path)
                .map_err(|why| ReproduceError::Store { path: path.to_owned(), why: why.to_string() })?;
            // The last line may be half a line: the run was stopped while it was written.
            let lines = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
            // A job that failed may do better the next time.
            for outcome in lines.filter(|outcome| outcome.error.is_none()) {
                outcomes.insert((outcome.job.clone(), outcome.data.clone()), outcome);
            }
        }
        let mut options = OpenOptions::new();
        if resume {
            options.append(true)
        } else {
            options.write(true).truncate(true)
        };
        let mut file = options.create(true).open(path).map_err(failed)?;
        // So that half a line does not spoil the next one.
        if resume && file.metadata().map_err(failed)?.len() > 0 {
            file.write_all(b"\n").map_err(failed)?;
        }
        Ok(Self { path: path.to_owned(), file, outcomes })
    }

    fn find(&self, job: &Job, bench: &Bench<'_>) -> Option<&Outcome> {
        self.outcomes.get(&(job.id(), stamp(job, bench)))
    }

    fn add(&mut self, outcome: Outcome) -> Result<(), ReproduceError> {
        let mut line = serde_json::to_string(&outcome).expect("names and finite numbers only");
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|why| ReproduceError::Write { path: self.path.clone(), why })?;
        self.outcomes.insert((outcome.job.clone(), outcome.data.clone()), outcome);
        Ok(())
    }
}
