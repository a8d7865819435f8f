//! The last snapshots: what the learned decoder trains on.

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Counters at one cut, added up since the segment opened.
///
/// ```
/// let snapshot = ucl_control_plane::Snapshot { counters: vec![3.0, 4.0], interval_weight: 7.0 };
/// assert_eq!(snapshot.counters.iter().sum::<f64>(), snapshot.interval_weight);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The counters since the segment opened.
    #[serde(serialize_with = "as_integers", deserialize_with = "from_integers")]
    pub counters: Vec<f64>,
    /// Weight that entered the sketch in the epoch before the cut.
    pub interval_weight: f64,
}

/// They are whole numbers, which take a byte or two where a float takes eight.
fn as_integers<S: Serializer>(counters: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(counters.iter().map(|&counter| counter as i64))
}

fn from_integers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    Ok(Vec::<i64>::deserialize(deserializer)?.into_iter().map(|counter| counter as f64).collect())
}

/// A sliding window over the snapshots.
///
/// ```
/// use ucl_control_plane::Window;
/// let mut window = Window::new(2);
/// for epoch in 1..=3 {
///     window.push(&[10 * epoch, 7], 10);
/// }
/// assert_eq!((window.len(), window.seen()), (2, 3));
/// assert_eq!(window.iter().next().unwrap().counters, [20.0, 7.0]);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    snapshots: VecDeque<Snapshot>,
    length: usize,
    /// Snapshots ever pushed.
    seen: u64,
}

impl Window {
    /// Creates a window that keeps the last `length` snapshots; 0 keeps none.
    pub fn new(length: usize) -> Self {
        Self { snapshots: VecDeque::new(), length, seen: 0 }
    }

    /// Adds a snapshot, and drops the oldest one if the window is full.
    pub fn push(&mut self, counters: &[i64], interval_weight: u64) {
        self.seen += 1;
        if self.length == 0 {
            return;
        }
        // The oldest one's buffer serves the newest.
        let mut slot = if self.snapshots.len() == self.length { self.snapshots.pop_front() } else { None }
            .unwrap_or(Snapshot { counters: Vec::new(), interval_weight: 0.0 });
        slot.counters.clear();
        slot.counters.extend(counters.iter().map(|&c| c as f64));
        slot.interval_weight = interval_weight as f64;
        self.snapshots.push_back(slot);
    }

    /// Iterates over the snapshots, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Snapshot> {
        self.snapshots.iter()
    }

    /// Returns the greatest number of held snapshots.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the number of held snapshots.
    pub fn len(&self) -> usize {
        self.snapshots.len()
    }

    /// Returns true if no snapshot is held.
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty()
    }

    /// Returns the number of snapshots that were ever pushed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the number of bytes held.
    pub fn memory(&self) -> usize {
        self.snapshots.iter().map(|s| s.counters.capacity() * size_of::<f64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes() {
        let mut window = Window::new(2);
        for i in 0..5 {
            window.push(&[i, 2 * i], 10 + i as u64);
        }
        let held: Vec<(f64, f64)> = window.iter().map(|s| (s.counters[1], s.interval_weight)).collect();
        assert_eq!((held, window.seen()), (vec![(6.0, 13.0), (8.0, 14.0)], 5));
    }
}
