//! Streams in memory with their exact counts, read once and measured many times.

use std::ops::ControlFlow;
use std::sync::Arc;

use ucl_sketch::KeyFormat;
use ucl_streams::{Batch, BatchBuf, ExactCounts, ReadError, ReadErrorKind, ReadOptions, ReadSummary, Source, read};

/// Stream in memory with its exact counts.
///
/// ```
/// use ucl_lab::Recording;
/// use ucl_sketch::KeyFormat;
/// use ucl_streams::ReadOptions;
///
/// let zipf = Recording::read(&["zipf:1.2:5000:1000".parse()?], &ReadOptions::default())?;
/// assert_eq!(zipf.items(), 5000);
/// assert_eq!(zipf.keys(), KeyFormat::Fixed(4));
/// assert_eq!(zipf.truth().total(), 5000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recording {
    name: String,
    stream: BatchBuf,
    truth: ExactCounts,
    summary: ReadSummary,
    cut_off: Option<Arc<ReadErrorKind>>,
}

impl Recording {
    /// Reads all sources in order as one stream. If an error ends the reading, the items before it
    /// count, and [`Recording::cut_off`] reports it.
    ///
    /// # Errors
    ///
    /// The error that ended the reading, if there are no items before it.
    pub fn read(sources: &[Source], options: &ReadOptions) -> Result<Self, ReadError> {
        let name = sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        let mut recording = Self::new(name);
        let result = read(sources, options, &mut |batch| {
            recording.extend(batch);
            ControlFlow::Continue(())
        });
        match result {
            Ok(summary) => {
                recording.cut_off = summary.truncated.clone().map(ReadErrorKind::Truncated).map(Arc::new);
                recording.summary = summary;
            }
            Err(error) if recording.stream.is_empty() => return Err(error),
            Err(ReadError { kind, summary }) => {
                recording.cut_off = Some(Arc::new(kind));
                recording.summary = *summary;
            }
        }
        Ok(recording)
    }

    /// Creates an empty recording with this name, to be filled by [`Recording::extend`].
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            stream: BatchBuf::new(),
            truth: ExactCounts::new(),
            summary: ReadSummary::default(),
            cut_off: None,
        }
    }

    /// Appends the items of a batch.
    pub fn extend(&mut self, batch: Batch<'_>) {
        self.truth.insert_batch(batch);
        batch.items().for_each(|(key, weight)| self.stream.push(key, weight));
    }

    /// Returns the name of the input for results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the whole stream as one batch.
    pub fn batch(&self) -> Batch<'_> {
        self.stream.as_batch()
    }

    /// Number of items.
    pub fn items(&self) -> u64 {
        self.stream.len() as u64
    }

    /// Returns the exact counts of all keys.
    pub fn truth(&self) -> &ExactCounts {
        &self.truth
    }

    /// Returns the summary of the read, with skipped records.
    pub fn summary(&self) -> &ReadSummary {
        &self.summary
    }

    /// Returns the error that ended the reading before the end of the input, if one did.
    pub fn cut_off(&self) -> Option<&ReadErrorKind> {
        self.cut_off.as_deref()
    }

    /// Returns the format of the keys: of one size that fits a slot, or of any length.
    pub fn keys(&self) -> KeyFormat {
        match self.batch().fixed() {
            Some((bytes, _)) if KeyFormat::FIXED_SIZES.contains(&bytes) => KeyFormat::Fixed(bytes as u8),
            _ => KeyFormat::Digest,
        }
    }
}
