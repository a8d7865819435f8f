//! Interface of a measured system: it takes a stream, answers for any key, and reports its bytes.

use std::collections::BTreeMap;

use ucl_sketch::{Base, CounterBits, Fault, HeavyKind, InsertError, KeyFormat, Memory, ReportRule, Shape};
use ucl_streams::Batch;

use crate::recording::Recording;

/// System under measurement. The runner inserts the whole stream, calls [`finish`](System::finish)
/// once, and then queries every key.
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
    /// Inserts consecutive items of the stream.
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError>;

    /// Ends the stream and prepares the answers (training, decoding).
    fn finish(&mut self) -> Result<(), SystemError> {
        Ok(())
    }

    /// Returns the answer for a key, after [`finish`](System::finish).
    fn estimate(&self, key: &[u8]) -> Answer;

    /// Returns the answer of a trained decoder before it is put within the bounds; `None` for other
    /// systems.
    fn unbounded(&self, _key: &[u8]) -> Option<u64> {
        None
    }

    /// Asks the network for each key, by the paper's Algorithm 3, and returns the sum of the
    /// answers; `None` for systems without a network.
    fn ask_network(&self, _keys: &mut dyn Iterator<Item = &[u8]>) -> Option<u64> {
        None
    }

    /// Returns whether the key is known by name; `None` for systems that store no names.
    fn knows(&self, _key: &[u8]) -> Option<bool> {
        None
    }

    /// Returns the bytes by part on the device that sees the stream.
    fn memory(&self) -> Memory;

    /// Returns further figures.
    fn extras(&self) -> Extras {
        Extras::default()
    }
}

/// Answer for a key: an estimate, and guaranteed bounds for systems that have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Estimated count.
    pub estimate: u64,
    /// Guaranteed lower and upper bound, both inclusive.
    pub bounds: Option<(u64, u64)>,
}

/// Further figures of a system, all optional.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Seconds of training.
    pub train_seconds: Option<f64>,
    /// Number of passes over the training data.
    pub train_epochs: Option<usize>,
    /// Number of times that the network collapsed in training and was trained again.
    pub restarts: Option<usize>,
    /// Whether the network had collapsed when it was asked.
    pub collapsed: Option<bool>,
    /// Loss after each pass over the training data.
    pub losses: Vec<f64>,
    /// Number of trainable parameters, 4 bytes each.
    pub parameters: Option<usize>,
    /// Milliseconds of decoding, without training.
    pub decode_ms: Option<f64>,
    /// Self-check: share of a row left out that the estimates predict wrongly. It needs no ground
    /// truth.
    pub self_check: Option<f64>,
    /// Name of the decoder that answered, if it is not the requested one (for example, if a network
    /// could not be trained).
    pub answered_by: Option<String>,
    /// Encoded bytes sent to the control plane.
    pub uplink_bytes: Option<u64>,
    /// Bytes held by the control plane.
    pub control_bytes: Option<usize>,
    /// Number of snapshots sent.
    pub snapshots: Option<u64>,
    /// Number of items between two snapshots.
    pub interval: Option<u64>,
    /// Rule by which keys are reported.
    pub rule: Option<&'static str>,
    /// Kind of the linear sketch.
    pub base: Option<&'static str>,
    /// Kind of the heavy part.
    pub heavy: Option<&'static str>,
    /// Sizes by name.
    pub shape: BTreeMap<&'static str, u64>,
}

/// Request to build a system.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Memory budget in bytes on the device that sees the stream. A system that does not fit
    /// returns an error.
    pub budget: usize,
    /// Format of the keys.
    pub keys: KeyFormat,
    /// Seed of every hash and random choice.
    pub seed: u64,
    /// Pass that this instance is for.
    pub pass: Pass,
    /// Stream of the measurement. Only systems with prior knowledge may read it, and say so: ideal
    /// oracles, and learned oracles, which train on its beginning.
    pub stream: &'a Recording,
    /// Settings of the user. A system reads those that concern it.
    pub options: &'a Options,
}

/// Pass of a measurement. Accuracy and speed are measured in separate runs, so that one does not
/// distort the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Run for answers: decodes, and counts the encoded uplink.
    Accuracy,
    /// Run for speed: inserts only, without encoding or decoding.
    Speed,
}

/// Settings of an experiment for all methods and budgets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Shape of the UCL-sketch. Its bytes become the budget of the other systems.
    pub shape: Option<Shape>,
    /// Kind of the linear sketch of the UCL-sketch, instead of Count-Min.
    pub base: Option<Base>,
    /// Kind of the heavy part of the UCL-sketch, instead of the paper's.
    pub heavy: Option<HeavyKind>,
    /// Whether to use the paper's shapes for Retail at each budget, for methods that have one
    /// ([`ucl_zoo::paper`]).
    pub paper_shapes: bool,
    /// Number of items between two cuts, `Some(None)` for no cuts; the decoder's default if `None`.
    pub interval: Option<Option<u64>>,
    /// Number of bits in a counter, instead of the planner's choice.
    pub counter_bits: Option<CounterBits>,
    /// Rule by which keys are reported, instead of the planner's choice.
    pub rule: Option<ReportRule>,
    /// Expected number of distinct keys. It is never taken from the stream.
    pub expected_keys: Option<u64>,
    /// Bytes per item that a method may send, for those that can keep to it (`sample`).
    pub uplink: Option<f64>,
    /// Number of bits of the codes that stand for keys in mode exact, instead of 64, or of none for
    /// keys of one size.
    pub code_bits: Option<u8>,
    /// Items have weights, such as the bytes of packets: a mirrored table has wider counts.
    pub weighted: bool,
    /// Number of snapshots that the learned decoder trains on.
    pub window: Option<usize>,
    /// Number of iterations of EM.
    pub iterations: Option<usize>,
    /// Largest number of passes over the window in training.
    pub epochs: Option<usize>,
    /// When the learned decoder trains.
    pub training: Training,
    /// Configuration of the network and its loss, instead of the paper's. `epochs` takes
    /// precedence.
    pub learned: Option<ucl_sketch::learned::Config>,
}

/// When the learned decoder trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Training {
    /// Once at the end of the stream, on the last window.
    #[default]
    Final,
    /// Along the stream ([`Settings::online`](ucl_sketch::Settings::online)), and not at its end.
    Online,
}

impl std::str::FromStr for Training {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "final" => Ok(Self::Final),
            "online" => Ok(Self::Online),
            _ => Err("there are online (along the stream) and final (once, at its end)".to_owned()),
        }
    }
}

/// Reason why a system has no answers.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// A system of the zoo could not be built or could not continue.
    #[error(transparent)]
    Zoo(#[from] ucl_zoo::Error),
    /// The sketch could not be built with these settings.
    #[error(transparent)]
    Build(#[from] ucl_sketch::BuildError),
    /// A key, a weight or a setting is invalid.
    #[error(transparent)]
    Input(#[from] InsertError),
    /// The method cannot count such keys.
    #[error("{method} counts keys of 4, 8, 13 or 16 bytes, not {keys}")]
    Keys {
        /// Name of the method.
        method: &'static str,
        /// Format of the keys in the stream.
        keys: KeyFormat,
    },
    /// A message was lost or damaged. It never left this process, so this is our bug.
    #[error(transparent)]
    Wire(#[from] ucl_wire::WireError),
    /// The sketch cannot make this change.
    #[error("the sketch cannot be changed: {0}")]
    Change(String),
    /// The control plane found an inconsistency, so its answers are invalid.
    #[error(transparent)]
    Fault(#[from] Fault),
}
