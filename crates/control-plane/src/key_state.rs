//! What is known of one key beside its number.

use serde::{Deserialize, Serialize};

use crate::registry::KeyId;

/// Every key has one, so it is kept small: one word.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct KeyState(u64);

impl KeyState {
    const ENTERED: u64 = 1 << 63;
    const HOT: u64 = 1 << 62;

    /// Weight that is known to be in the sketch: what the key held in the heavy part when it was last seen there.
    /// (A slot holds less than 2^32, so 2^62 would take a billion evictions of full slots.)
    pub fn floor(self) -> u64 {
        self.0 & (Self::HOT - 1)
    }

    /// More of it is known to be in the sketch.
    pub fn raise_floor(&mut self, by: u64) {
        let floor = self.floor().saturating_add(by).min(Self::HOT - 1);
        self.0 = self.0 & (Self::ENTERED | Self::HOT) | floor | Self::ENTERED;
    }

    /// Whether the key is known to have entered the sketch.
    pub fn entered(self) -> bool {
        self.0 & Self::ENTERED != 0
    }

    /// Whether it was evicted after having been hit again.
    pub fn hot(self) -> bool {
        self.0 & Self::HOT != 0
    }

    /// A report named it.
    pub fn reported(&mut self, entered: bool, hot: bool) {
        self.0 |= if entered { Self::ENTERED } else { 0 } | if hot { Self::HOT } else { 0 };
    }

    /// Nothing of it is known to be in the sketch, which is another one from now on.
    pub fn left_behind(&mut self) {
        self.0 &= Self::HOT;
    }

    /// What the key has in the open segment's sketch at least.
    pub fn lower(self, smallest_weight: u64) -> u64 {
        if self.entered() { self.floor().max(smallest_weight) } else { 0 }
    }
}

/// Keys of which more is known to be in the sketch, for one view alone. There are few beside all
/// known keys, and so their states are kept apart instead of copying those of all.
#[derive(Default)]
pub(crate) struct RaisedFloors(Vec<(KeyId, KeyState)>);

impl RaisedFloors {
    /// More of a key is known to be in the sketch.
    pub fn raise(&mut self, keys: &[KeyState], key: KeyId, by: u64) {
        let mut state = self.of(keys, key);
        state.raise_floor(by);
        match self.place(key) {
            Ok(at) => self.0[at].1 = state,
            Err(at) => self.0.insert(at, (key, state)),
        }
    }

    /// The state of a key; `keys` has those that are known to all.
    pub fn of(&self, keys: &[KeyState], key: KeyId) -> KeyState {
        match self.place(key) {
            Ok(at) => self.0[at].1,
            Err(_) => keys.get(key.0 as usize).copied().unwrap_or_default(),
        }
    }

    fn place(&self, key: KeyId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |&(key, _)| key)
    }
}
