//! The data plane for any key size and heavy part: generic inside, enums here, so that no call per
//! item is dynamic.

use serde::{Deserialize, Serialize};
use ucl_data_plane::mirrored::{Allowance, BudgetPlane, MirroredPlane, StoredBudgetPlane, StoredPlane};
use ucl_data_plane::{
    AnyHeavy, Config, ConfigError, DataPlane, DigestKey, HeavyKind, Inconsistent, InsertError, KeyFormat, Memory,
    MergeError, ReportSink,
};

/// A data plane for keys of `N` bytes in the slots, with any heavy part in front of a sketch.
type Plane<const N: usize> = DataPlane<N, AnyHeavy<N>>;

/// A data plane of one of the kinds of keys: with a sketch, with a mirrored table, or with both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum AnyPlane {
    K4(Plane<4>),
    K8(Plane<8>),
    K13(Plane<13>),
    K16(Plane<16>),
    Digest(Plane<16>),
    Mirrored4(MirroredPlane<4>),
    Mirrored8(MirroredPlane<8>),
    Mirrored13(MirroredPlane<13>),
    Mirrored16(MirroredPlane<16>),
    Code(MirroredPlane<8>),
    Budget4(BudgetPlane<4>),
    Budget8(BudgetPlane<8>),
    Budget13(BudgetPlane<13>),
    Budget16(BudgetPlane<16>),
    BudgetCode(BudgetPlane<8>),
}

/// [`AnyPlane`] as it was read: nothing of it may be used before [`StoredAnyPlane::restored`].
#[derive(Deserialize)]
pub(crate) enum StoredAnyPlane {
    K4(Plane<4>),
    K8(Plane<8>),
    K13(Plane<13>),
    K16(Plane<16>),
    Digest(Plane<16>),
    Mirrored4(StoredPlane),
    Mirrored8(StoredPlane),
    Mirrored13(StoredPlane),
    Mirrored16(StoredPlane),
    Code(StoredPlane),
    Budget4(StoredBudgetPlane),
    Budget8(StoredBudgetPlane),
    Budget13(StoredBudgetPlane),
    Budget16(StoredBudgetPlane),
    BudgetCode(StoredBudgetPlane),
}

/// Runs the same expression for whichever plane it is.
macro_rules! each {
    ($self:expr, $plane:ident => $body:expr) => {
        match $self {
            AnyPlane::K4($plane) => $body,
            AnyPlane::K8($plane) => $body,
            AnyPlane::K13($plane) => $body,
            AnyPlane::K16($plane) | AnyPlane::Digest($plane) => $body,
            AnyPlane::Mirrored4($plane) => $body,
            AnyPlane::Mirrored13($plane) => $body,
            AnyPlane::Mirrored16($plane) => $body,
            AnyPlane::Mirrored8($plane) | AnyPlane::Code($plane) => $body,
            AnyPlane::Budget4($plane) => $body,
            AnyPlane::Budget13($plane) => $body,
            AnyPlane::Budget16($plane) => $body,
            AnyPlane::Budget8($plane) | AnyPlane::BudgetCode($plane) => $body,
        }
    };
}

impl StoredAnyPlane {
    /// Makes a plane that was just read usable, or says why it cannot be one of this configuration.
    pub fn restored(self, config: &Config) -> Result<AnyPlane, Inconsistent> {
        use KeyFormat::{Code, Digest, Fixed};
        Ok(match (self, config.keys) {
            (Self::K4(plane), Fixed(_)) => AnyPlane::K4(plane.restored(config)?),
            (Self::K8(plane), Fixed(_)) => AnyPlane::K8(plane.restored(config)?),
            (Self::K13(plane), Fixed(_)) => AnyPlane::K13(plane.restored(config)?),
            (Self::K16(plane), Fixed(_)) => AnyPlane::K16(plane.restored(config)?),
            (Self::Digest(plane), Digest) => AnyPlane::Digest(plane.restored(config)?),
            (Self::Mirrored4(plane), Fixed(_)) => AnyPlane::Mirrored4(MirroredPlane::restored(plane, config)?),
            (Self::Mirrored8(plane), Fixed(_)) => AnyPlane::Mirrored8(MirroredPlane::restored(plane, config)?),
            (Self::Mirrored13(plane), Fixed(_)) => AnyPlane::Mirrored13(MirroredPlane::restored(plane, config)?),
            (Self::Mirrored16(plane), Fixed(_)) => AnyPlane::Mirrored16(MirroredPlane::restored(plane, config)?),
            (Self::Code(plane), Code(_)) => AnyPlane::Code(MirroredPlane::restored(plane, config)?),
            (Self::Budget4(plane), Fixed(_)) => AnyPlane::Budget4(BudgetPlane::restored(plane, config)?),
            (Self::Budget8(plane), Fixed(_)) => AnyPlane::Budget8(BudgetPlane::restored(plane, config)?),
            (Self::Budget13(plane), Fixed(_)) => AnyPlane::Budget13(BudgetPlane::restored(plane, config)?),
            (Self::Budget16(plane), Fixed(_)) => AnyPlane::Budget16(BudgetPlane::restored(plane, config)?),
            (Self::BudgetCode(plane), Code(_)) => AnyPlane::BudgetCode(BudgetPlane::restored(plane, config)?),
            (_, keys) => return Err(Inconsistent(format!("a data plane of another kind than for {keys}"))),
        })
    }
}

/// Where evictions go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Evictions {
    /// Into the sketch.
    Absorbed,
    /// Up the link.
    Exported,
    /// Up the link while it allows, into the sketch when it does not.
    Budget,
}

impl Evictions {
    fn of(config: &Config) -> Self {
        match config.shape.heavy {
            HeavyKind::Mirrored(_) if config.shape.absorbs() => Self::Budget,
            HeavyKind::Mirrored(_) => Self::Exported,
            _ => Self::Absorbed,
        }
    }
}

impl AnyPlane {
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        use Evictions::{Absorbed, Budget, Exported};
        use KeyFormat::{Code, Digest, Fixed};
        Ok(match (config.keys, Evictions::of(&config)) {
            (Fixed(4), Absorbed) => Self::K4(Plane::any(config)?),
            (Fixed(8), Absorbed) => Self::K8(Plane::any(config)?),
            (Fixed(13), Absorbed) => Self::K13(Plane::any(config)?),
            (Fixed(16), Absorbed) => Self::K16(Plane::any(config)?),
            (Fixed(4), Exported) => Self::Mirrored4(MirroredPlane::new(config)?),
            (Fixed(8), Exported) => Self::Mirrored8(MirroredPlane::new(config)?),
            (Fixed(13), Exported) => Self::Mirrored13(MirroredPlane::new(config)?),
            (Fixed(16), Exported) => Self::Mirrored16(MirroredPlane::new(config)?),
            (Fixed(4), Budget) => Self::Budget4(BudgetPlane::new(config)?),
            (Fixed(8), Budget) => Self::Budget8(BudgetPlane::new(config)?),
            (Fixed(13), Budget) => Self::Budget13(BudgetPlane::new(config)?),
            (Fixed(16), Budget) => Self::Budget16(BudgetPlane::new(config)?),
            (Fixed(other), _) => return Err(ConfigError::KeySize { want: 16, got: other.into() }),
            (Digest, _) => Self::Digest(Plane::any(config)?),
            (Code(_), Budget) => Self::BudgetCode(BudgetPlane::new(config)?),
            (Code(_), _) => Self::Code(MirroredPlane::new(config)?),
        })
    }

    /// Sets what may go up the link, if evictions may go elsewhere; returns whether they may.
    pub fn set_allowance(&mut self, allowance: Allowance) -> bool {
        match self {
            Self::Budget4(plane) => plane.set_allowance(allowance),
            Self::Budget13(plane) => plane.set_allowance(allowance),
            Self::Budget16(plane) => plane.set_allowance(allowance),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.set_allowance(allowance),
            _ => return false,
        }
        true
    }

    /// Adds to what may go up the link, if evictions may go elsewhere.
    pub fn grant(&mut self, bytes: u64) {
        match self {
            Self::Budget4(plane) => plane.grant(bytes),
            Self::Budget13(plane) => plane.grant(bytes),
            Self::Budget16(plane) => plane.grant(bytes),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.grant(bytes),
            _ => {}
        }
    }

    /// Takes from what may go up the link.
    pub fn spend(&mut self, bytes: u64) {
        match self {
            Self::Budget4(plane) => plane.spend(bytes),
            Self::Budget13(plane) => plane.spend(bytes),
            Self::Budget16(plane) => plane.spend(bytes),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.spend(bytes),
            _ => {}
        }
    }

    /// Bytes of a carry that was held back.
    pub const CARRY_BYTES: u64 = BudgetPlane::<4>::CARRY_BYTES;

    /// Returns false if a cut, and so many bytes beside it, take more than what may go up the link
    /// now.
    pub fn affords_cut(&self, beside: u64) -> bool {
        match self {
            Self::Budget4(plane) => plane.affords_cut(beside),
            Self::Budget13(plane) => plane.affords_cut(beside),
            Self::Budget16(plane) => plane.affords_cut(beside),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.affords_cut(beside),
            _ => true,
        }
    }

    /// Weight that went into the sketch in place of going up the link, since it has its sizes.
    pub fn absorbed(&self) -> u64 {
        match self {
            Self::Budget4(plane) => plane.absorbed(),
            Self::Budget13(plane) => plane.absorbed(),
            Self::Budget16(plane) => plane.absorbed(),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.absorbed(),
            _ => 0,
        }
    }

    /// What may go up the link, if evictions may go elsewhere.
    pub fn allowance(&self) -> Option<&Allowance> {
        match self {
            Self::Budget4(plane) => Some(plane.allowance()),
            Self::Budget13(plane) => Some(plane.allowance()),
            Self::Budget16(plane) => Some(plane.allowance()),
            Self::Budget8(plane) | Self::BudgetCode(plane) => Some(plane.allowance()),
            _ => None,
        }
    }

    pub fn config(&self) -> &Config {
        each!(self, plane => plane.config())
    }

    /// The key of the digests and codes, which a change of the sketch keeps.
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

    /// Watches the load of epochs from now on; a mirrored table has none.
    pub fn watch_load(&mut self) -> Result<(), ConfigError> {
        match self {
            Self::K4(plane) => plane.watch_load(),
            Self::K8(plane) => plane.watch_load(),
            Self::K13(plane) => plane.watch_load(),
            Self::K16(plane) | Self::Digest(plane) => plane.watch_load(),
            Self::Budget4(plane) => plane.watch_load(),
            Self::Budget13(plane) => plane.watch_load(),
            Self::Budget16(plane) => plane.watch_load(),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.watch_load(),
            _ => Ok(()),
        }
    }

    /// Items that may come before the load is to be looked at again; 0 if the epoch should end.
    pub fn room(&self) -> Option<u64> {
        match self {
            Self::K4(plane) => plane.room(),
            Self::K8(plane) => plane.room(),
            Self::K13(plane) => plane.room(),
            Self::K16(plane) | Self::Digest(plane) => plane.room(),
            Self::Budget4(plane) => plane.room(),
            Self::Budget13(plane) => plane.room(),
            Self::Budget16(plane) => plane.room(),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.room(),
            _ => None,
        }
    }

    /// Forgets no name while `hold`; and a mirrored table that can be without the link sends
    /// nothing.
    pub fn hold_names(&mut self, hold: bool) {
        match self {
            Self::K4(plane) => plane.hold_names(hold),
            Self::K8(plane) => plane.hold_names(hold),
            Self::K13(plane) => plane.hold_names(hold),
            Self::K16(plane) | Self::Digest(plane) => plane.hold_names(hold),
            Self::Budget4(plane) => plane.freeze(hold),
            Self::Budget13(plane) => plane.freeze(hold),
            Self::Budget16(plane) => plane.freeze(hold),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.freeze(hold),
            _ => {}
        }
    }

    /// Returns the notes of watching the load, for a state.
    #[cfg(feature = "state")]
    pub fn known_keys(&self) -> Option<&[u8]> {
        match self {
            Self::K4(plane) => plane.known_keys(),
            Self::K8(plane) => plane.known_keys(),
            Self::K13(plane) => plane.known_keys(),
            Self::K16(plane) | Self::Digest(plane) => plane.known_keys(),
            Self::Budget4(plane) => plane.known_keys(),
            Self::Budget13(plane) => plane.known_keys(),
            Self::Budget16(plane) => plane.known_keys(),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.known_keys(),
            _ => None,
        }
    }

    /// Continues from the notes that [`AnyPlane::known_keys`] returned.
    #[cfg(feature = "state")]
    pub fn watch_load_from(&mut self, registers: Vec<u8>) -> Result<(), Inconsistent> {
        match self {
            Self::K4(plane) => plane.watch_load_from(registers),
            Self::K8(plane) => plane.watch_load_from(registers),
            Self::K13(plane) => plane.watch_load_from(registers),
            Self::K16(plane) | Self::Digest(plane) => plane.watch_load_from(registers),
            Self::Budget4(plane) => plane.watch_load_from(registers),
            Self::Budget13(plane) => plane.watch_load_from(registers),
            Self::Budget16(plane) => plane.watch_load_from(registers),
            Self::Budget8(plane) | Self::BudgetCode(plane) => plane.watch_load_from(registers),
            _ => Err(Inconsistent("a mirrored table has no load to watch".into())),
        }
    }

    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        each!(self, plane => plane.cut(sink));
    }

    pub fn peek(&self, sink: &mut impl ReportSink) {
        each!(self, plane => plane.peek(sink));
    }

    pub fn change(&mut self, config: Config, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        let (want, got) = (self.config().shape.heavy, config.shape.heavy);
        if Evictions::of(self.config()) != Evictions::of(&config) {
            return Err(ConfigError::Heavy { want, got });
        }
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
            (Self::Mirrored4(plane), Self::Mirrored4(other)) => plane.check_merge(other),
            (Self::Mirrored13(plane), Self::Mirrored13(other)) => plane.check_merge(other),
            (Self::Mirrored16(plane), Self::Mirrored16(other)) => plane.check_merge(other),
            (Self::Mirrored8(plane), Self::Mirrored8(other)) | (Self::Code(plane), Self::Code(other)) => {
                plane.check_merge(other)
            }
            (Self::Budget4(plane), Self::Budget4(other)) => plane.check_merge(other),
            (Self::Budget13(plane), Self::Budget13(other)) => plane.check_merge(other),
            (Self::Budget16(plane), Self::Budget16(other)) => plane.check_merge(other),
            (Self::Budget8(plane), Self::Budget8(other)) | (Self::BudgetCode(plane), Self::BudgetCode(other)) => {
                plane.check_merge(other)
            }
            _ => self.config().check_merge(other.config()),
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
            (Self::Mirrored4(plane), Self::Mirrored4(other)) => plane.merge(other),
            (Self::Mirrored13(plane), Self::Mirrored13(other)) => plane.merge(other),
            (Self::Mirrored16(plane), Self::Mirrored16(other)) => plane.merge(other),
            (Self::Mirrored8(plane), Self::Mirrored8(other)) | (Self::Code(plane), Self::Code(other)) => {
                plane.merge(other)
            }
            (Self::Budget4(plane), Self::Budget4(other)) => plane.merge(other, sink),
            (Self::Budget13(plane), Self::Budget13(other)) => plane.merge(other, sink),
            (Self::Budget16(plane), Self::Budget16(other)) => plane.merge(other, sink),
            (Self::Budget8(plane), Self::Budget8(other)) | (Self::BudgetCode(plane), Self::BudgetCode(other)) => {
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
            Self::Mirrored4(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Mirrored8(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Mirrored13(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Mirrored16(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Code(plane) => plane.insert_bytes(key, weight, sink),
            Self::Budget4(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Budget8(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Budget13(plane) => plane.insert(sized(key)?, weight, sink),
            Self::Budget16(plane) => plane.insert(sized(key)?, weight, sink),
            Self::BudgetCode(plane) => plane.insert_bytes(key, weight, sink),
        }
    }

    /// Checks that a batch of `count` keys of one size can be inserted as a whole.
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
        /// Keys of one size, or why these are none.
        fn chunks<const N: usize>(keys: &[u8]) -> Result<&[[u8; N]], InsertError> {
            match keys.as_chunks::<N>() {
                (chunks, []) => Ok(chunks),
                _ => Err(InsertError::Ragged { bytes: keys.len(), key_bytes: N }),
            }
        }
        macro_rules! run {
            ($plane:expr) => {
                match weights {
                    None => $plane.insert_batch(chunks(keys)?, sink),
                    Some(weights) => $plane.insert_weighted_batch(chunks(keys)?, weights, sink),
                }
            };
        }
        let one_by_one = |at: usize| (&keys[at * key_bytes..(at + 1) * key_bytes], weights.map_or(1, |all| all[at]));
        match self {
            Self::K4(plane) => run!(plane),
            Self::K8(plane) => run!(plane),
            Self::K13(plane) => run!(plane),
            Self::K16(plane) => run!(plane),
            Self::Mirrored4(plane) => run!(plane),
            Self::Mirrored8(plane) => run!(plane),
            Self::Mirrored13(plane) => run!(plane),
            Self::Mirrored16(plane) => run!(plane),
            Self::Budget4(plane) => run!(plane),
            Self::Budget8(plane) => run!(plane),
            Self::Budget13(plane) => run!(plane),
            Self::Budget16(plane) => run!(plane),
            Self::Digest(plane) => (0..count).try_for_each(|at| {
                let (key, weight) = one_by_one(at);
                plane.insert_bytes(key, weight, sink)
            }),
            Self::Code(plane) => (0..count).try_for_each(|at| {
                let (key, weight) = one_by_one(at);
                plane.insert_bytes(key, weight, sink)
            }),
            Self::BudgetCode(plane) => (0..count).try_for_each(|at| {
                let (key, weight) = one_by_one(at);
                plane.insert_bytes(key, weight, sink)
            }),
        }
    }
}

#[inline]
fn sized<const N: usize>(key: &[u8]) -> Result<&[u8; N], InsertError> {
    key.try_into().map_err(|_| InsertError::KeySize { want: N, got: key.len() })
}
