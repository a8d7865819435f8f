//! What a measured system is: it takes a stream, answers for any key, and accounts for its bytes.

use std::collections::BTreeMap;

use ucl_sketch::{Base, CounterBits, Fault, HeavyKind, InsertError, KeyFormat, Memory, ReportRule, Shape};
use ucl_streams::Batch;

use crate::recording::Recording;

/// A system under measurement. The runner inserts the whole stream, calls [`finish`](System::finish) once, and then asks for
/// every key.
///
/// ```
/// use ucl_data_plane::Memory;
/// use ucl_lab::{Answer, System, SystemError};
/// use ucl_streams::{Batch, BatchBuf};
///
/// /// Answers the mean count for every key.
/// struct Mean { items: u64, keys: u64 }
///
/// impl System for Mean {
///     fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
///         self.items += batch.len() as u64;
///         Ok(())
///     }
///     fn estimate(&self, _key: &[u8]) -> Answer {
///         Answer { estimate: self.items / self.keys, bounds: Some((0, self.items)) }
///     }
///     fn memory(&self) -> Memory {
///         let mut memory = Memory::default();
///         memory.add("items", 8);
///         memory
///     }
/// }
///
/// let mut stream = BatchBuf::new();
/// [b"a", b"b", b"a", b"b"].iter().for_each(|key| stream.push(*key, 1));
/// let mut mean = Mean { items: 0, keys: 2 };
/// mean.insert(stream.as_batch())?;
/// assert_eq!(mean.estimate(b"a").estimate, 2);
/// # Ok::<(), SystemError>(())
/// ```
pub trait System {
    /// Takes some consecutive items of the stream.
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError>;

    /// The stream has ended: do whatever the answers still need (train, decode).
    fn finish(&mut self) -> Result<(), SystemError> {
        Ok(())
    }

    /// The answer for a key, after [`finish`](System::finish).
    fn estimate(&self, key: &[u8]) -> Answer;

    /// Whether the system knows the key by name; `None` for systems that know no names.
    fn knows(&self, _key: &[u8]) -> Option<bool> {
        None
    }

    /// Bytes by part at the place where the stream is seen.
    fn memory(&self) -> Memory;

    /// What else there is to report.
    fn extras(&self) -> Extras {
        Extras::default()
    }
}

/// An answer: a whole number, and where the truth is guaranteed to lie, for systems that guarantee it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The estimate.
    pub estimate: u64,
    /// Lower and upper bound, both included.
    pub bounds: Option<(u64, u64)>,
}

/// What some systems report beside their answers. All of it is optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Seconds of training.
    pub train_seconds: Option<f64>,
    /// Passes over the training data.
    pub train_epochs: Option<usize>,
    /// The loss after each of them.
    pub losses: Vec<f64>,
    /// Trainable parameters, 4 bytes each.
    pub parameters: Option<usize>,
    /// Milliseconds of decoding, training aside.
    pub decode_ms: Option<f64>,
    /// The share of a row left out that the estimates predict wrongly: an error gauge without ground truth.
    pub self_check: Option<f64>,
    /// Who answered, where it was not the method itself (a network that could not be trained, say).
    pub answered_by: Option<String>,
    /// Bytes sent to where the answers are given, as encoded.
    pub uplink_bytes: Option<u64>,
    /// Bytes held there.
    pub control_bytes: Option<usize>,
    /// Snapshots sent.
    pub snapshots: Option<u64>,
    /// Items between two of them.
    pub interval: Option<u64>,
    /// Which keys are sent.
    pub rule: Option<&'static str>,
    /// The linear sketch.
    pub base: Option<&'static str>,
    /// The heavy part.
    pub heavy: Option<&'static str>,
    /// Sizes by name.
    pub shape: BTreeMap<&'static str, u64>,
}

/// What a system is to be built for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Bytes at the place where the stream is seen. What a system cannot fit into it, it refuses.
    pub budget: usize,
    /// What the keys look like.
    pub keys: KeyFormat,
    /// Fixes every hash and random choice.
    pub seed: u64,
    /// What this instance is for.
    pub pass: Pass,
    /// The stream that it will be measured on. Only for systems that are allowed to know something of it beforehand and say so:
    /// ideal oracles, and learned ones, which train on its beginning.
    pub stream: &'a Recording,
    /// The user's wishes; a system reads those that concern it.
    pub options: &'a Options,
}

/// Every method is run at least twice: the price of measuring must not show in what is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// To be asked for answers: decodes, and counts its uplink as encoded.
    Accuracy,
    /// Only inserted into, against the clock: encodes nothing, decodes nothing.
    Speed,
}

/// Settings of an experiment that are the same for all methods and budgets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// A shape of the UCL-sketch by hand. Its bytes become the budget of the other systems.
    pub shape: Option<Shape>,
    /// The linear sketch of the UCL-sketch, instead of Count-Min.
    pub base: Option<Base>,
    /// The heavy part of the UCL-sketch, instead of the paper's.
    pub heavy: Option<HeavyKind>,
    /// Take the paper's shapes for Retail at each budget, for every method that has one there ([`ucl_zoo::paper`]).
    pub paper_shapes: bool,
    /// Items between two cuts, `Some(None)` for no cuts; what goes with the decoder if not given.
    pub interval: Option<Option<u64>>,
    /// Bits per counter, instead of the planner's choice.
    pub counter_bits: Option<CounterBits>,
    /// Which keys are sent, instead of what goes with the shape.
    pub rule: Option<ReportRule>,
    /// Distinct keys to expect. Never taken from the stream.
    pub expected_keys: Option<u64>,
    /// Snapshots that the learned decoder trains on.
    pub window: Option<usize>,
    /// Iterations of EM.
    pub iterations: Option<usize>,
    /// Passes over the window in training, at most.
    pub epochs: Option<usize>,
    /// The network and its loss, instead of the paper's. The epochs above come first.
    pub learned: Option<ucl_sketch::learned::Config>,
}

/// Why a system has no answers.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// A system of the zoo could not be built or could not go on.
    #[error(transparent)]
    Zoo(#[from] ucl_zoo::Error),
    /// Mend the settings.
    #[error(transparent)]
    Build(#[from] ucl_sketch::BuildError),
    /// Mend the stream.
    #[error(transparent)]
    Input(#[from] InsertError),
    /// Choose another change, or other settings.
    #[error("the sketch cannot change so: {0}")]
    Change(String),
    /// The control plane's answers cannot be trusted.
    #[error(transparent)]
    Fault(#[from] Fault),
}
