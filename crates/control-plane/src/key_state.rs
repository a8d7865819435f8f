//! What is known of one key beside its number.

use serde::{Deserialize, Serialize};

use crate::heavy::Held;
use crate::registry::KeyId;
use crate::shared::Shared;

/// Every key has one, so it is kept small: one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeyState(u64);

impl KeyState {
    const ENTERED: u64 = 1 << 63;
    const HOT: u64 = 1 << 62;

    /// Weight that is known to be in the sketch: what the key held in the heavy part when it was
    /// last seen there. (A slot holds less than 2^32, so 2^62 would take a billion evictions of
    /// full slots.)
    pub fn floor(self) -> u64 {
        self.0 & (Self::HOT - 1)
    }

    /// More of it is known to be in the sketch.
    pub fn raise_floor(&mut self, by: u64) {
        let floor = self.floor().saturating_add(by).min(Self::HOT - 1);
        self.0 = self.0 & (Self::ENTERED | Self::HOT) | floor | Self::ENTERED;
    }

    /// Returns true if the key is known to have entered the sketch.
    pub fn entered(self) -> bool {
        self.0 & Self::ENTERED != 0
    }

    /// Returns true if the key was evicted after having been hit again.
    pub fn hot(self) -> bool {
        self.0 & Self::HOT != 0
    }

    /// A report named it.
    pub fn reported(&mut self, entered: bool, hot: bool) {
        self.0 |= if entered { Self::ENTERED } else { 0 } | if hot { Self::HOT } else { 0 };
    }

    /// Forgets what is known of the key in the sketch, because another sketch follows.
    pub fn left_behind(&mut self) {
        self.0 &= Self::HOT;
    }

    /// Returns the least count of the key in the open segment's sketch.
    pub fn lower(self, smallest_weight: u64) -> u64 {
        if self.entered() { self.floor().max(smallest_weight) } else { 0 }
    }
}

/// Keys of which more is known to be in the sketch, for one view alone. There are few beside all
/// known keys, and so their states are kept apart instead of copying those of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct RaisedFloors(Vec<(KeyId, KeyState)>);

impl RaisedFloors {
    /// The states of keys after what they held came into the sketch; `keys` has those before.
    pub fn new(keys: &Shared<KeyState>, mut entered: Vec<Held>) -> Self {
        entered.sort_by_key(|held| held.key);
        let raised = entered.chunk_by(|a, b| a.key == b.key).map(|same| {
            let mut state = known(keys, same[0].key);
            same.iter().for_each(|held| state.raise_floor(held.count));
            (same[0].key, state)
        });
        Self(raised.collect())
    }

    /// The state of a key; `keys` has those that are known to all.
    pub fn of(&self, keys: &Shared<KeyState>, key: KeyId) -> KeyState {
        match self.0.binary_search_by_key(&key, |&(key, _)| key) {
            Ok(at) => self.0[at].1,
            Err(_) => known(keys, key),
        }
    }
}

/// The state of a key, which may be known to one view alone.
fn known(keys: &Shared<KeyState>, key: KeyId) -> KeyState {
    keys.find(key.0 as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_floors_are_those_of_states_that_were_raised_one_by_one() {
        let mut states = vec![KeyState::default(); 5];
        states[2].raise_floor(7);
        states[3].reported(true, true);
        let held = [(4, 1), (2, 5), (9, 0), (2, 3), (3, 8)];
        let held: Vec<Held> = held.map(|(key, count)| Held { key: KeyId(key), count }).to_vec();
        let shared: Shared<KeyState> = states.iter().copied().collect();
        let raised = RaisedFloors::new(&shared, held.clone());
        let mut all = states;
        all.resize(10, KeyState::default());
        held.iter().for_each(|held| all[held.key.0 as usize].raise_floor(held.count));
        for (key, state) in (0..).map(KeyId).zip(all) {
            assert_eq!(raised.of(&shared, key).0, state.0, "{key:?}");
        }
    }
}
