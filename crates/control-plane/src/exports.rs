//! What a mirrored table has sent: who sits where, and an exact count of every key.
//!
//! The device reports every change of a holder, so the victim of each is known here
//! ([`ucl_data_plane::mirrored`]). After a cut nothing is left on the device that is not here.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ucl_data_plane::mirrored::{KeyBook, Mirror, Pieces, StoredMirror};
use ucl_data_plane::{Config, HeavyKind, Inconsistent, Memory, ensure};

use crate::heavy::Held;
use crate::key_state::KeyState;
use crate::registry::{KeyId, Registry};
use crate::segment::ReportError;
use crate::shared::Shared;
use crate::tight;

/// No more keys than this can be told apart in a mirror.
const MOST_KEYS: usize = (u32::MAX - 16) as usize;

#[derive(Clone, Debug)]
pub(crate) struct Exports {
    mirror: Mirror,
    /// The pieces so far of the message that is under way.
    open: Vec<u8>,
    /// What was counted exactly, by key.
    counts: Vec<u64>,
    /// The sum of all counts.
    weight: u64,
}

/// Serialized form of the counts that a mirrored table has sent.
#[derive(Clone, Serialize, Deserialize)]
pub struct ExportsState<'a> {
    mirror: StoredMirror,
    counts: Cow<'a, [u64]>,
}

/// Slots that a heavy part of this configuration reports at cuts: a mirrored table reports changes
/// as they come.
pub(crate) fn reported_slots(config: &Config) -> u32 {
    if matches!(config.shape.heavy, HeavyKind::Mirrored(_)) { 0 } else { config.shape.slots }
}

impl Exports {
    /// Creates an empty one; `None` for a configuration without a mirrored table.
    pub fn new(config: &Config) -> Option<Self> {
        let HeavyKind::Mirrored(table) = config.shape.heavy else { return None };
        let mirror = Mirror::new(table, config.keys, config.seed);
        Some(Self { mirror, open: Vec::new(), counts: Vec::new(), weight: 0 })
    }

    /// The device goes on with an empty table of this configuration.
    pub fn restart_table(&mut self, config: &Config) {
        if let Some(new) = Self::new(config) {
            self.mirror = new.mirror;
        }
    }

    /// Returns the weight that was counted exactly so far.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Every key with what was counted exactly.
    pub fn iter(&self) -> impl Iterator<Item = Held> + '_ {
        let counts = (0u32..).map(KeyId).zip(&self.counts);
        counts.filter(|(_, count)| **count > 0).map(|(key, &count)| Held { key, count })
    }

    /// Adds a piece of a message, and applies the message when it ends.
    pub fn take(&mut self, piece: Pieces<'_>, keys: KnownKeys<'_>) -> Result<(), ReportError> {
        match piece {
            Pieces::Bytes(bytes) => {
                self.open.extend_from_slice(bytes);
                Ok(())
            }
            Pieces::End { cut } => {
                let message = std::mem::take(&mut self.open);
                let read = self.read(&message, cut, keys);
                self.open = message;
                self.open.clear();
                read
            }
        }
    }

    /// Applies a whole message.
    pub fn read(&mut self, message: &[u8], cut: Option<u64>, keys: KnownKeys<'_>) -> Result<(), ReportError> {
        let Self { mirror, counts, weight, .. } = self;
        let mut ledger = Ledger { keys, counts, sum: Some(*weight), room: true };
        let read = mirror.read(message, cut, &mut ledger);
        let Ledger { sum, room, .. } = ledger;
        *weight = sum.filter(|_| room).ok_or(ReportError::Exports)?;
        read.map_err(ReportError::Table)
    }

    /// Adds what another one has, whose keys have these numbers here.
    pub fn merge(&mut self, other: &Self, ids: &[KeyId], keys: usize) {
        tight::grow(&mut self.counts, keys, 0);
        for (&count, id) in other.counts.iter().zip(ids) {
            self.counts[id.0 as usize] += count;
        }
        self.weight += other.weight;
    }

    pub fn state(&self) -> ExportsState<'_> {
        ExportsState { mirror: self.mirror.stored(), counts: Cow::Borrowed(&self.counts) }
    }

    /// Restores a state, or says what is wrong with it.
    pub fn restored(state: ExportsState<'_>, config: &Config, keys: usize) -> Result<Self, Inconsistent> {
        let mirror = Mirror::restored(state.mirror, config, keys)?;
        let counts = state.counts.into_owned();
        ensure(counts.len() <= keys, || format!("exact counts of {} keys, of {keys}", counts.len()))?;
        let weight = counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
        let weight = weight.filter(|&weight| weight <= ucl_data_plane::MAX_WEIGHT);
        let weight = weight.ok_or_else(|| Inconsistent("exact counts beyond any stream".into()))?;
        Ok(Self { mirror, open: Vec::new(), counts, weight })
    }

    pub fn add_memory(&self, memory: &mut Memory) {
        memory.add("table mirror", self.mirror.memory() + self.open.capacity());
        memory.add("exact counts", self.counts.capacity() * size_of::<u64>());
    }
}

/// Where new keys become known, and what else has to hear of counts.
pub(crate) struct KnownKeys<'a> {
    pub registry: Registered<'a>,
    /// Gain of each key in this epoch, if anyone asks for that.
    pub changes: Option<&'a mut Vec<(KeyId, i64)>>,
}

/// Who learns new keys.
pub(crate) enum Registered<'a> {
    /// The control plane. A view may share its registry: only a new key makes us write to it.
    Plane(&'a mut Arc<Registry>, &'a mut Shared<KeyState>),
    /// One view alone.
    View(&'a mut Registry),
}

impl Registered<'_> {
    fn registry(&self) -> &Registry {
        match self {
            Self::Plane(registry, _) => registry,
            Self::View(registry) => registry,
        }
    }
}

struct Ledger<'a> {
    keys: KnownKeys<'a>,
    counts: &'a mut Vec<u64>,
    /// `None` once it passed what a stream can have.
    sum: Option<u64>,
    /// Whether there were numbers for all keys.
    room: bool,
}

impl KeyBook for Ledger<'_> {
    #[inline]
    fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(id) = self.keys.registry.registry().find(key) {
            return id.0;
        }
        if self.keys.registry.registry().len() >= MOST_KEYS {
            self.room = false;
            return 0;
        }
        match &mut self.keys.registry {
            Registered::Plane(registry, states) => {
                states.push(KeyState::default());
                Registry::to_write(registry).intern(key).0.0
            }
            Registered::View(registry) => registry.intern(key).0.0,
        }
    }

    fn key(&self, number: u32) -> &[u8] {
        self.keys.registry.registry().identity_of(KeyId(number))
    }

    #[inline]
    fn count(&mut self, number: u32, count: u64) {
        let at = number as usize;
        if at >= self.counts.len() {
            tight::grow(self.counts, at + 1, 0);
        }
        // The sum is at least as large as any count.
        self.sum = self.sum.and_then(|sum| ucl_data_plane::joint_weight(sum, count));
        self.counts[at] = self.counts[at].wrapping_add(count);
        if let Some(changes) = &mut self.keys.changes {
            changes.push((KeyId(number), count as i64));
        }
    }
}
