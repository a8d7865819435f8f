//! The collectors of a service: one that takes epochs over HTTP, or one for each partition of NATS
//! that it reads.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Bytes;
use serde::Serialize;
use ucl_collector::{Collector, CollectorError, Selection, Snapshot};
use ucl_link::{Identity, Reply};
use ucl_storage::Folder;

use crate::core::{Core, CoreError, CoreMetrics};

/// All collectors, by partition. A stream is in one of them.
#[derive(Clone, Default)]
pub struct Cores {
    metrics: Arc<CoreMetrics>,
    held: Arc<RwLock<BTreeMap<u32, Core>>>,
    /// How many partitions there are; `None` if epochs come over HTTP.
    partitions: Option<u32>,
}

/// The answers of all collectors.
pub struct Answers<T> {
    pub answers: Vec<T>,
    /// Partitions that the answers are about; `None` for all streams.
    pub about: Option<PartitionsJson>,
}

/// Partitions that an answer is about.
#[derive(Clone, Debug, Serialize)]
pub struct PartitionsJson {
    /// How many there are.
    of: u32,
    /// Those of this collector.
    here: Vec<u32>,
}

impl Cores {
    /// None yet. Epochs come over HTTP, or if there are partitions, from NATS.
    pub fn new(partitions: Option<u32>) -> Self {
        Self { partitions, ..Self::default() }
    }

    /// Returns the counters of all collectors together.
    pub fn metrics(&self) -> &Arc<CoreMetrics> {
        &self.metrics
    }

    /// Adds the collector of a partition.
    pub fn insert(&self, partition: u32, core: Core) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).insert(partition, core);
    }

    /// Removes the collector of a partition.
    #[cfg(feature = "nats")]
    pub fn remove(&self, partition: u32) -> Option<Core> {
        self.held.write().unwrap_or_else(PoisonError::into_inner).remove(&partition)
    }

    fn all(&self) -> BTreeMap<u32, Core> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if requests are taken.
    pub fn is_ready(&self) -> bool {
        self.all().values().all(Core::is_ready)
    }

    /// Submits the body of a request.
    ///
    /// # Errors
    /// As [`Core::submit`], and if epochs come from NATS.
    pub async fn submit(&self, identity: Identity, body: Bytes) -> Result<Reply, CoreError> {
        if self.partitions.is_some() {
            return Err(CoreError::OnNats);
        }
        match self.all().values().next() {
            Some(core) => core.submit(identity, body).await,
            None => Err(CoreError::Unavailable("the collector is not open".into())),
        }
    }

    /// Asks every collector in its thread, all at once. Keep it short: epochs wait meanwhile.
    ///
    /// # Errors
    /// If one of them does not answer.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl Fn(&mut Collector<Folder>) -> T + Clone + Send + 'static,
    ) -> Result<Answers<T>, CoreError> {
        let all = self.all();
        let about = self.partitions.map(|of| PartitionsJson { of, here: all.keys().copied().collect() });
        let asked = all.into_values().map(|core| {
            let question = question.clone();
            tokio::spawn(async move { core.ask(move |collector| question(collector)).await })
        });
        let asked: Vec<_> = asked.collect();
        let mut answers = Vec::with_capacity(asked.len());
        for answer in asked {
            let gone = |_| CoreError::Unavailable("the question could not be answered".into());
            answers.push(answer.await.map_err(gone)??);
        }
        Ok(Answers { answers, about })
    }

    /// As [`Cores::ask`], for questions that may fail.
    ///
    /// # Errors
    /// If one of them does not answer, or fails to.
    pub async fn try_ask<T: Send + 'static>(
        &self,
        question: impl Fn(&mut Collector<Folder>) -> Result<T, CollectorError> + Clone + Send + 'static,
    ) -> Result<Answers<T>, CoreError> {
        let Answers { answers, about } = self.ask(question).await?;
        let answers: Result<Vec<T>, CollectorError> = answers.into_iter().collect();
        Ok(Answers { answers: answers?, about })
    }

    /// The counts of a selection at the last cut of each of its streams, and the partitions they
    /// are of.
    ///
    /// # Errors
    /// As [`Cores::try_ask`].
    pub async fn snapshot(&self, selection: &Selection) -> Result<(Snapshot, Option<PartitionsJson>), CoreError> {
        let selection = selection.clone();
        let Answers { answers, about } = self.try_ask(move |collector| collector.snapshot(&selection)).await?;
        Ok((Snapshot::of_all(answers), about))
    }
}
