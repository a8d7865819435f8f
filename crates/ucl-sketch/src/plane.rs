//! The data plane for any key size and heavy part: generic inside, enums here, so that no call per
//! item is dynamic.

use serde::{Deserialize, Serialize};
use ucl_data_plane::{
    AnyHeavy, Config, ConfigError, DataPlane, DigestKey, Inconsistent, InsertError, KeyFormat, Memory, MergeError,
    ReportSink,
};

/// A data plane for keys of `N` bytes in the slots, with any heavy part.
type Plane<const N: usize> = DataPlane<N, AnyHeavy<N>>;

/// A data plane of one of the five kinds of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AnyPlane {
    K4(Plane<4>),
    K8(Plane<8>),
    K13(Plane<13>),
    K16(Plane<16>),
    Digest(Plane<16>),
}

/// Runs the same expression for whichever plane it is.
macro_rules! each {
    ($self:expr, $plane:ident => $body:expr) => {
        match $self {
            AnyPlane::K4($plane) => $body,
            AnyPlane::K8($plane) => $body,
            AnyPlane::K13($plane) => $body,
            AnyPlane::K16($plane) | AnyPlane::Digest($plane) => $body,
        }
    };
}

impl AnyPlane {
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Ok(match config.keys {
            KeyFormat::Fixed(4) => Self::K4(Plane::any(config)?),
            KeyFormat::Fixed(8) => Self::K8(Plane::any(config)?),
            KeyFormat::Fixed(13) => Self::K13(Plane::any(config)?),
            KeyFormat::Fixed(16) => Self::K16(Plane::any(config)?),
            KeyFormat::Fixed(other) => return Err(ConfigError::KeySize { want: 16, got: other.into() }),
            KeyFormat::Digest => Self::Digest(Plane::any(config)?),
        })
    }

    /// Makes a plane that was just read usable, or says why it cannot be one of this configuration.
    pub fn restored(self, config: &Config) -> Result<Self, Inconsistent> {
        Ok(match (self, config.keys) {
            (Self::K4(plane), KeyFormat::Fixed(_)) => Self::K4(plane.restored(config)?),
            (Self::K8(plane), KeyFormat::Fixed(_)) => Self::K8(plane.restored(config)?),
            (Self::K13(plane), KeyFormat::Fixed(_)) => Self::K13(plane.restored(config)?),
            (Self::K16(plane), KeyFormat::Fixed(_)) => Self::K16(plane.restored(config)?),
            (Self::Digest(plane), KeyFormat::Digest) => Self::Digest(plane.restored(config)?),
            (_, keys) => return Err(Inconsistent(format!("a data plane of another kind than for {keys}"))),
        })
    }

    pub fn config(&self) -> &Config {
        each!(self, plane => plane.config())
    }

    /// The key of the digests, which a change of the sketch keeps.
    pub fn digest_key(&self) -> DigestKey {
        each!(self, plane => plane.digest_key())
    }

    pub fn memory(&self) -> Memory {
        each!(self, plane => plane.memory())
    }

    pub fn items(&self) -> u64 {
        each!(self, plane => plane.items())
    }

    pub fn weight(&self) -> u64 {
        each!(self, plane => plane.weight())
    }

    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        each!(self, plane => plane.cut(sink));
    }

    pub fn peek(&self, sink: &mut impl ReportSink) {
        each!(self, plane => plane.peek(sink));
    }

    pub fn change(&mut self, config: Config, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        each!(self, plane => plane.change(config, sink))
    }

    pub fn reset(&mut self, keep_weights: bool, sink: &mut impl ReportSink) {
        each!(self, plane => plane.reset(keep_weights, sink));
    }

    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        match (self, other) {
            (Self::K4(plane), Self::K4(other)) => plane.check_merge(other),
            (Self::K8(plane), Self::K8(other)) => plane.check_merge(other),
            (Self::K13(plane), Self::K13(other)) => plane.check_merge(other),
            (Self::K16(plane), Self::K16(other)) | (Self::Digest(plane), Self::Digest(other)) => {
                plane.check_merge(other)
            }
            _ => MergeError::unless_equal("key format", &self.config().keys, &other.config().keys),
        }
    }

    pub fn merge(&mut self, other: &Self, sink: &mut impl ReportSink) -> Result<(), MergeError> {
        match (self, other) {
            (Self::K4(plane), Self::K4(other)) => plane.merge(other, sink),
            (Self::K8(plane), Self::K8(other)) => plane.merge(other, sink),
            (Self::K13(plane), Self::K13(other)) => plane.merge(other, sink),
            (Self::K16(plane), Self::K16(other)) | (Self::Digest(plane), Self::Digest(other)) => {
                plane.merge(other, sink)
            }
            (plane, other) => plane.check_merge(other),
        }
    }

    #[inline]
    pub fn insert(&mut self, key: &[u8], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        match self {
            Self::K4(plane) => plane.insert(sized(key)?, weight, sink),
            Self::K8(plane) => plane.insert(sized(key)?, weight, sink),
            Self::K13(plane) => plane.insert(sized(key)?, weight, sink),
            Self::K16(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Digest(plane) => plane.insert_bytes(key, weight, sink),
        }
    }

    /// Whether a batch of `count` keys of one size can be inserted, whole.
    pub fn check_batch(&self, key_bytes: usize, count: usize, weights: Option<&[u64]>) -> Result<(), InsertError> {
        self.config().keys.check(key_bytes)?;
        each!(self, plane => plane.check_batch(count, weights))
    }

    /// Inserts keys laid end to end. [`AnyPlane::check_batch`] comes before.
    pub fn insert_batch(
        &mut self,
        key_bytes: usize,
        count: usize,
        keys: &[u8],
        weights: Option<&[u64]>,
        sink: &mut impl ReportSink,
    ) -> Result<(), InsertError> {
        fn run<const N: usize>(
            plane: &mut Plane<N>,
            keys: &[u8],
            weights: Option<&[u64]>,
            sink: &mut impl ReportSink,
        ) -> Result<(), InsertError> {
            let (keys, rest) = keys.as_chunks::<N>();
            if !rest.is_empty() {
                return Err(InsertError::Ragged { bytes: keys.as_flattened().len() + rest.len(), key_bytes: N });
            }
            match weights {
                None => plane.insert_batch(keys, sink),
                Some(weights) => plane.insert_weighted_batch(keys, weights, sink),
            }
        }
        match self {
            Self::K4(plane) => run(plane, keys, weights, sink),
            Self::K8(plane) => run(plane, keys, weights, sink),
            Self::K13(plane) => run(plane, keys, weights, sink),
            Self::K16(plane) => run(plane, keys, weights, sink),
            Self::Digest(plane) => (0..count).try_for_each(|at| {
                let key = &keys[at * key_bytes..(at + 1) * key_bytes];
                plane.insert_bytes(key, weights.map_or(1, |weights| weights[at]), sink)
            }),
        }
    }
}

#[inline]
fn sized<const N: usize>(key: &[u8]) -> Result<&[u8; N], InsertError> {
    key.try_into().map_err(|_| InsertError::KeySize { want: N, got: key.len() })
}
