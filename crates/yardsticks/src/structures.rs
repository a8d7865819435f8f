//! Structures to compare with. Each inserts every key once and asserts the number of items counted.

use std::hash::Hash;
use std::hint::black_box;

use asap_sketchlib::{CountMinSketch as AsapCountMin, DataInput, FastPath, Vector2D};
use datasketches::countmin::CountMinSketch;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::{FlowCache, Rounds, Texts};

const ROWS: u8 = 4;
const WIDTH: u32 = 4096;
/// Memory of a flow cache: as much as these Count-Min sketches.
const CACHE_BYTES: usize = ROWS as usize * WIDTH as usize * size_of::<u32>();

type Asap = AsapCountMin<Vector2D<i32>, FastPath>;

/// Adds the two Count-Min sketches.
fn count_min<'a, K: Hash + AsRef<[u8]> + ?Sized + 'a>(
    rounds: &mut Rounds<'a>,
    keys: impl Iterator<Item = &'a K> + Clone + 'a,
) {
    let items = keys.clone().count() as u64;
    let again = keys.clone();
    rounds.case(
        "datasketches 0.6, Count-Min 4x4096",
        || CountMinSketch::<u32>::with_seed(ROWS, WIDTH, 1).expect("a valid shape"),
        move |sketch| keys.clone().for_each(|key| sketch.update(key)),
        move |sketch, ()| assert_eq!(u64::from(sketch.total_weight()), items),
    );
    rounds.case(
        "asap_sketchlib 0.4, Count-Min 4x4096, one hash",
        || Asap::with_dimensions(ROWS.into(), WIDTH as usize),
        move |sketch| again.clone().for_each(|key| sketch.update(&DataInput::Bytes(key.as_ref()))),
        move |sketch, ()| {
            let sum: u64 = sketch.as_storage().as_slice().iter().map(|&count| count as u64).sum();
            assert_eq!(sum, items * u64::from(ROWS));
        },
    );
}

/// Adds the yardsticks for keys of one size; the `datasketches` crate comes first.
pub fn fixed<'a, const N: usize>(rounds: &mut Rounds<'a>, keys: &'a [[u8; N]]) {
    let items = keys.len() as u64;
    count_min(rounds, keys.iter());
    rounds.case(
        "hashbrown and foldhash, exact counts",
        HashMap::<[u8; N], u64, FixedState>::default,
        move |counts| keys.iter().for_each(|key| *counts.entry(*key).or_default() += 1),
        move |counts, ()| assert_eq!(counts.values().sum::<u64>(), items),
    );
    rounds.case(
        "4-way flow cache, 64KB",
        || FlowCache::new(CACHE_BYTES),
        move |cache| {
            let mut left = 0;
            for key in keys {
                cache.insert(key, |key, count| left += u64::from(black_box((key, count)).1));
            }
            left
        },
        move |cache, left| assert_eq!(cache.weight() + left, items),
    );
}

/// Adds the yardsticks for keys of any length; the `datasketches` crate comes first.
pub fn texts<'a>(rounds: &mut Rounds<'a>, keys: &'a Texts) {
    let items = keys.iter().count() as u64;
    count_min(rounds, keys.iter());
    rounds.case(
        "hashbrown and foldhash, exact counts",
        HashMap::<Vec<u8>, u64, FixedState>::default,
        move |counts| keys.iter().for_each(|key| *counts.entry_ref(key).or_default() += 1),
        move |counts, ()| assert_eq!(counts.values().sum::<u64>(), items),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case checks its own total; this runs them all.
    #[test]
    fn yardsticks_count_everything() {
        let numbers = &crate::numbers()[..30_000];
        let tuples = crate::five_tuples(numbers);
        let strings = Texts::new(numbers);
        let mut rounds = Rounds::new("fixed");
        fixed(&mut rounds, numbers);
        fixed(&mut rounds, &tuples);
        assert_eq!(rounds.run(1, 1).lines().count(), 10);
        let mut rounds = Rounds::new("texts");
        texts(&mut rounds, &strings);
        assert_eq!(rounds.run(1, 1).lines().count(), 5);
    }
}
