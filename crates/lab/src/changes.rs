//! Measures how accurate a sketch stays when it changes in mid-stream (paper, "Robustness to Sketch
//! Changes").
//!
//! Half of the stream is counted, then something changes, then the other half is counted in eight
//! *windows*. Errors are measured before the change, right after it (no item in between) and 1, 2,
//! 4 and 8 windows later, over all keys so far and over those from before the change alone. The
//! learned decoder trains before each measurement but the one right after the change, as it would
//! when its window has filled.
//!
//! | change | what happens |
//! |---|---|
//! | rehash | other hash functions, same sizes |
//! | grow, shrink | twice the budget, half of it |
//! | reset, reset-warm | a new cycle from zero; with the network's weights or without |
//! | double | an equal sketch is merged in: twice the volume, in the same proportions |
//!
//! A plain Count-Min stands beside: it has one set of counters and no names of keys, so a rehash
//! leaves it with counters that nobody can read any more, and a new size with none.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use ucl_data_plane::HashSeed;
use ucl_sketch::{Bytes, ChangeKind, DecoderKind, Fallback, KeyFormat, QueryView, Settings, UclSketch};
use ucl_streams::{Batch, BatchBuf, ExactCounts};
use ucl_zoo::Sketch;
use ucl_zoo::count_min::CountMin;

use crate::recording::Recording;
use crate::system::SystemError;
use ucl_streams::metrics::ErrorMeter;

/// Windows after the change at which errors are measured.
const WINDOWS: [u64; 4] = [1, 2, 4, 8];

/// Change of the sketch in the middle of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SketchChange {
    /// The hash functions are replaced.
    Rehash,
    /// The budget is doubled.
    Grow,
    /// The budget is halved.
    Shrink,
    /// A new cycle starts.
    Reset,
    /// A new cycle starts and keeps the weights of the network.
    ResetWarm,
    /// An equal sketch is merged in.
    Double,
}

impl SketchChange {
    /// All changes.
    pub const ALL: [Self; 6] = [Self::Rehash, Self::Grow, Self::Shrink, Self::Reset, Self::ResetWarm, Self::Double];

    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rehash => "rehash",
            Self::Grow => "grow",
            Self::Shrink => "shrink",
            Self::Reset => "reset",
            Self::ResetWarm => "reset-warm",
            Self::Double => "double",
        }
    }

    fn starts_again(self) -> bool {
        matches!(self, Self::Reset | Self::ResetWarm)
    }
}

/// Method to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// UCL-sketch with this decoder; former segments are sealed.
    Ucl(DecoderKind),
    /// UCL-sketch with this decoder; columns are appended, as in the paper.
    PaperColumns(DecoderKind),
    /// A plain Count-Min.
    CountMin,
}

impl Subject {
    /// Returns the name in results.
    pub fn name(self) -> String {
        match self {
            Self::Ucl(decoder) => format!("ucl-{}", decoder.name()),
            Self::PaperColumns(decoder) => format!("ucl-{}, columns appended", decoder.name()),
            Self::CountMin => "cm".to_owned(),
        }
    }
}

/// Options of the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesOptions {
    /// Memory budget in bytes on the device that sees the stream.
    pub budget: usize,
    /// Seed of every hash and random choice.
    pub seed: u64,
    /// Changes to measure.
    pub changes: Vec<SketchChange>,
    /// Methods to measure.
    pub subjects: Vec<Subject>,
    /// Number of snapshots in a window of the learned decoder.
    pub window: usize,
    /// Largest number of passes over the window in training; the network's default if `None`.
    pub epochs: Option<usize>,
}

impl Default for ChangesOptions {
    fn default() -> Self {
        let learned = DecoderKind::Learned;
        Self {
            budget: 64 << 10,
            seed: 1,
            changes: SketchChange::ALL.to_vec(),
            subjects: vec![
                Subject::Ucl(learned),
                Subject::PaperColumns(learned),
                Subject::Ucl(DecoderKind::Delta),
                Subject::Ucl(DecoderKind::Em),
                Subject::CountMin,
            ],
            window: 128,
            epochs: None,
        }
    }
}

/// One measurement of a method around a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeRow {
    /// Name of the method.
    pub method: String,
    /// Change of the sketch.
    pub change: SketchChange,
    /// Number of windows since the change; `None` before it.
    pub windows: Option<u64>,
    /// Number of items so far.
    pub items: u64,
    /// Number of keys measured.
    pub keys: u64,
    /// Number of keys measured that occurred before the change.
    pub keys_before: u64,
    /// Average relative error over all keys.
    pub are: f64,
    /// Average absolute error over all keys.
    pub aae: f64,
    /// Average relative error over the keys that occurred before the change.
    pub are_before: f64,
    /// True if the average relative error over all keys is at most 5% above its value before the
    /// change. An error over no keys is 0.
    pub recovered: bool,
    /// Seconds of training and decoding since the change.
    pub seconds: f64,
    /// Name of the decoder that answered.
    pub answered_by: String,
    /// Number of keys whose true count is outside its bounds: a bug if not 0. `None` if the method
    /// gives no guarantee.
    pub bound_violations: Option<u64>,
}

/// Measures every method through every change. `progress` receives the name of each measurement.
///
/// ```
/// use ucl_lab::Recording;
/// use ucl_lab::changes::{SketchChange, ChangesOptions, Subject, changes};
/// use ucl_sketch::DecoderKind;
/// use ucl_streams::ReadOptions;
///
/// let stream = Recording::read(&["zipf:1.1:40000:3000".parse()?], &ReadOptions::default())?;
/// let options = ChangesOptions {
///     budget: 16 << 10,
///     changes: vec![SketchChange::Rehash],
///     subjects: vec![Subject::Ucl(DecoderKind::Em), Subject::CountMin],
///     ..ChangesOptions::default()
/// };
/// let rows = changes(&stream, &options, &mut |_| ())?;
/// let right_after = |method: &str| rows.iter().find(|row| row.method == method && row.windows == Some(0)).unwrap();
/// assert!(right_after("ucl-em").are_before < 0.1);
/// assert!(right_after("cm").are_before > 0.5, "nobody can read its counters any more");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn changes(
    stream: &Recording,
    options: &ChangesOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<ChangeRow>, SystemError> {
    let parts = Parts::new(stream);
    let mut rows = Vec::new();
    for &subject in &options.subjects {
        for &change in &options.changes {
            progress(&format!("{} through {}", subject.name(), change.name()));
            rows.extend(Run::new(subject, change, &parts, stream.keys(), options)?.run()?);
        }
    }
    Ok(rows)
}

/// The stream in pieces: up to the change, and up to each measurement after it.
struct Parts {
    before: BatchBuf,
    after: Vec<(u64, BatchBuf)>,
    window_items: u64,
}

impl Parts {
    fn new(stream: &Recording) -> Self {
        let last = WINDOWS[WINDOWS.len() - 1];
        let window_items = (stream.items() / 2 / last).max(1);
        let mut items = stream.batch().items();
        let mut take = |count: u64| {
            let mut part = BatchBuf::new();
            items.by_ref().take(count as usize).for_each(|(key, weight)| part.push(key, weight));
            part
        };
        let before = take(stream.items().saturating_sub(window_items * last));
        let mut done = 0;
        let after = WINDOWS.map(|windows| {
            let part = take((windows - done) * window_items);
            done = windows;
            (windows, part)
        });
        Self { before, after: after.into(), window_items }
    }
}

/// One method that goes through one change.
struct Run<'a> {
    subject: Subject,
    change: SketchChange,
    parts: &'a Parts,
    keys: KeyFormat,
    options: &'a ChangesOptions,
    measured: Measured,
    items: u64,
    truth: ExactCounts,
    /// Keys from before the change, once it has happened.
    former: Option<ExactCounts>,
    /// The error before the change.
    reference: f64,
    seconds: f64,
}

/// A method under measurement.
enum Measured {
    Ucl { sketch: Box<UclSketch>, view: Option<Box<QueryView>> },
    CountMin { sketch: Plain, sound: bool },
}

/// A Count-Min whose hash functions can change under it.
struct Plain {
    counters: CountMin<false>,
    seed: HashSeed,
}

impl Plain {
    fn new(budget: usize) -> Result<Self, SystemError> {
        let counters = CountMin::new(&ucl_zoo::RivalPlan::new(budget, KeyFormat::Digest, 1))?;
        Ok(Self { counters, seed: HashSeed::new(1.into()) })
    }

    /// The counters so far are no longer where anybody looks: what a plain sketch cannot survive.
    fn rehash(&mut self, seed: u64) {
        self.seed = HashSeed::new(u128::from(seed).into());
    }

    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        for (key, weight) in batch.items() {
            let key = self.seed.digest_key().digest(key);
            self.counters.insert(&key, self.seed.hash(&key), weight)?;
        }
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> u64 {
        let key = self.seed.digest_key().digest(key);
        self.counters.estimate(&key, self.seed.hash(&key))
    }
}

impl<'a> Run<'a> {
    fn new(
        subject: Subject,
        change: SketchChange,
        parts: &'a Parts,
        keys: KeyFormat,
        options: &'a ChangesOptions,
    ) -> Result<Self, SystemError> {
        let measured = build(subject, parts, keys, options.budget, options)?;
        let truth = ExactCounts::new();
        let former = None;
        Ok(Self {
            subject,
            change,
            parts,
            keys,
            options,
            measured,
            items: 0,
            truth,
            former,
            reference: 0.0,
            seconds: 0.0,
        })
    }

    fn run(mut self) -> Result<Vec<ChangeRow>, SystemError> {
        let parts = self.parts;
        self.insert(parts.before.as_batch())?;
        let mut rows = vec![self.measure(None, true)?];
        self.reference = rows[0].are;
        self.seconds = 0.0;
        let start = Instant::now();
        self.apply()?;
        self.seconds += start.elapsed().as_secs_f64();
        rows.push(self.measure(Some(0), false)?);
        for (windows, part) in &parts.after {
            self.insert(part.as_batch())?;
            rows.push(self.measure(Some(*windows), true)?);
        }
        Ok(rows)
    }

    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        self.items += batch.len() as u64;
        self.truth.insert_batch(batch);
        self.measured.insert(batch)
    }

    fn apply(&mut self) -> Result<(), SystemError> {
        let seed = self.options.seed.wrapping_add(1_000);
        let budget = self.options.budget;
        self.former = Some(self.truth.clone());
        if self.change.starts_again() {
            self.truth = ExactCounts::new();
        }
        let resized = match self.change {
            SketchChange::Grow => budget * 2,
            _ => budget / 2,
        };
        match (self.change, &mut self.measured) {
            (SketchChange::Rehash, Measured::Ucl { sketch, .. }) => sketch.rehash(seed.into()).map_err(refused)?,
            (SketchChange::Rehash, Measured::CountMin { sketch, sound }) => {
                sketch.rehash(seed);
                *sound = false;
            }
            (SketchChange::Grow | SketchChange::Shrink, Measured::Ucl { sketch, .. }) => {
                sketch.resize(Bytes(resized)).map_err(refused)?;
            }
            (SketchChange::Grow | SketchChange::Shrink, Measured::CountMin { .. }) => {
                self.measured = build(self.subject, self.parts, self.keys, resized, self.options)?;
                if let Measured::CountMin { sound, .. } = &mut self.measured {
                    *sound = false;
                }
            }
            (SketchChange::Reset | SketchChange::ResetWarm, Measured::Ucl { sketch, .. }) => {
                sketch.reset(self.change == SketchChange::ResetWarm);
            }
            (SketchChange::Reset | SketchChange::ResetWarm, Measured::CountMin { .. }) => {
                self.measured = build(self.subject, self.parts, self.keys, budget, self.options)?;
            }
            (SketchChange::Double, _) => self.double()?,
        }
        Ok(())
    }

    /// All counts become twice what they are.
    fn double(&mut self) -> Result<(), SystemError> {
        let counts: Vec<(Vec<u8>, u64)> = self.truth.iter().map(|(key, count)| (key.to_vec(), count)).collect();
        counts.iter().for_each(|(key, count)| self.truth.insert(key, *count));
        let mut other = build(self.subject, self.parts, self.keys, self.options.budget, self.options)?;
        other.insert(self.parts.before.as_batch())?;
        match (&mut self.measured, other) {
            (Measured::Ucl { sketch, .. }, Measured::Ucl { sketch: other, .. }) => {
                sketch.merge(*other).map_err(|error| SystemError::Change(error.to_string()))
            }
            // Counters add up as well as items do.
            (measured, _) => measured.insert(self.parts.before.as_batch()),
        }
    }

    fn measure(&mut self, windows: Option<u64>, train: bool) -> Result<ChangeRow, SystemError> {
        let start = Instant::now();
        self.measured.decode(train)?;
        self.seconds += start.elapsed().as_secs_f64();
        let (mut all, mut before, mut violations, mut keys_before) =
            (ErrorMeter::default(), ErrorMeter::default(), 0, 0);
        for (key, truth) in self.truth.iter() {
            let (estimate, lower, upper) = self.measured.estimate(key);
            all.add(truth, estimate);
            violations += u64::from(!(lower..=upper).contains(&truth));
            if self.former.as_ref().is_none_or(|former| former.get(key) > 0) {
                before.add(truth, estimate);
                keys_before += 1;
            }
        }
        let errors = all.errors();
        let keys = self.truth.distinct() as u64;
        Ok(ChangeRow {
            method: self.subject.name(),
            change: self.change,
            windows,
            items: self.items,
            keys,
            keys_before,
            are: errors.are,
            aae: errors.aae,
            are_before: before.errors().are,
            recovered: windows.is_some() && errors.are <= self.reference * 1.05,
            seconds: self.seconds,
            answered_by: self.measured.answered_by(),
            bound_violations: self.measured.has_bounds().then_some(violations),
        })
    }
}

fn refused(error: ucl_sketch::ChangeError) -> SystemError {
    SystemError::Change(error.to_string())
}

fn build(
    subject: Subject,
    parts: &Parts,
    keys: KeyFormat,
    budget: usize,
    options: &ChangesOptions,
) -> Result<Measured, SystemError> {
    let (decoder, change) = match subject {
        Subject::Ucl(decoder) => (decoder, ChangeKind::Sealed),
        Subject::PaperColumns(decoder) => (decoder, ChangeKind::PaperColumns),
        Subject::CountMin => return Ok(Measured::CountMin { sketch: Plain::new(budget)?, sound: true }),
    };
    let mut settings = Settings {
        decoder,
        change,
        train_every: None,
        window: options.window,
        fallback: Fallback::WhenUntrained,
        ..Settings::default()
    };
    settings.learned.epochs = options.epochs.unwrap_or(settings.learned.epochs);
    let trained = decoder.is_trained();
    let mut builder = UclSketch::builder().memory_bytes(budget).settings(settings).seed(options.seed.into());
    if let KeyFormat::Fixed(bytes) = keys {
        builder = builder.key_bytes(bytes.into());
    }
    if trained {
        builder = builder.interval((parts.window_items / options.window.max(1) as u64).max(1));
    }
    Ok(Measured::Ucl { sketch: Box::new(builder.build()?), view: None })
}

impl Measured {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        match self {
            Self::CountMin { sketch, .. } => sketch.insert(batch),
            Self::Ucl { sketch, .. } => match batch.fixed() {
                Some((bytes, keys)) => Ok(sketch.insert_flat(bytes, keys, batch.weights())?),
                None => Ok(batch.items().try_for_each(|(key, weight)| sketch.insert_weighted(key, weight))?),
            },
        }
    }

    /// Gets ready to answer for this moment; `train` as it would have been trained by now.
    fn decode(&mut self, train: bool) -> Result<(), SystemError> {
        if let Self::Ucl { sketch, view } = self {
            if train {
                sketch.train()?;
            }
            *view = Some(Box::new(sketch.query_view()?));
        }
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> (u64, u64, u64) {
        match self {
            Self::Ucl { view: Some(view), .. } => {
                let answer = view.estimate(key);
                (answer.estimate, answer.lower, answer.upper)
            }
            Self::Ucl { view: None, .. } => (0, 0, 0),
            Self::CountMin { sketch, .. } => {
                let estimate = sketch.estimate(key);
                (estimate, 0, estimate)
            }
        }
    }

    fn answered_by(&self) -> String {
        match self {
            Self::Ucl { view, .. } => view.as_ref().map_or(String::new(), |view| view.answered_by().name().to_owned()),
            Self::CountMin { .. } => "cm".to_owned(),
        }
    }

    fn has_bounds(&self) -> bool {
        match self {
            Self::Ucl { .. } => true,
            Self::CountMin { sound, .. } => *sound,
        }
    }
}
