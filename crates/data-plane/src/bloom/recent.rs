//! The latest keys by fingerprint: what a filter by generation remembers in fewer bits, and forgets
//! one key at a time.
//!
//! A key has one block of 128 bits, with the fingerprints (21 bits each) of the [`KEYS`] keys that
//! came there last. The younger three stand in the first word, the older three in the second; 0 is
//! a free place. A key that is found among the older ones becomes the youngest: keys in use stay,
//! and one that comes all the time is written only now and then. A new key pushes out the oldest.
//!
//! A new key is taken for a known one with probability `6 / 2^21`, whatever came before, because
//! a full block has six chances. A Bloom filter for so few false claims needs 30 bits a key, and
//! by halves, twice as many: this needs 21.3. (Fingerprints of 16 bits would remember more keys,
//! but a key that shares its fingerprint with one that is always in use is lost for good. Of a
//! Bloom filter by halves such a key is lost for one generation. So claims must be false far more
//! rarely here.)

use crate::hash::KeyHash;

/// Keys in a block: the number of hashes that a shape with this kind of filter states.
pub(crate) const KEYS: u8 = 6;
/// Bits of a block.
pub(crate) const BLOCK_BITS: u32 = 128;
/// 32-bit words of a block.
pub(super) const WORDS: usize = 4;

const BITS: u32 = KeyHash::FINGERPRINT_BITS;
/// Lanes of a word.
const LANES: u32 = 3;
/// The lowest bit of each lane, and the highest.
const LOWEST: u64 = 1 | 1 << BITS | 1 << (2 * BITS);
const HIGHEST: u64 = LOWEST << (BITS - 1);
/// All lanes.
const ALL: u64 = (1 << (LANES * BITS)) - 1;

/// The probability that a full block claims a key that it does not have.
pub(super) const FALSE_CLAIMS: f64 = KEYS as f64 / (1u32 << BITS) as f64;

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// It was there.
    Known,
    /// It has a free place now.
    New,
    /// It has the place of another key, which is forgotten.
    InPlaceOfAnother,
    /// It has none: nothing was to be forgotten for it.
    NoRoom,
}

/// For each lane of a word that holds the fingerprint its highest bit.
#[inline(always)]
fn found(word: u64, fingerprint: u64) -> u64 {
    let differ = word ^ (fingerprint * LOWEST);
    // The highest bit of a lane is set by the sum, or was set, unless the lane is zero.
    let rest = LOWEST * ((1 << (BITS - 1)) - 1);
    !(((differ & rest) + rest) | differ) & HIGHEST
}

#[inline(always)]
fn split(block: &[u32; WORDS]) -> [u64; 2] {
    let word = |at: usize| u64::from(block[at]) | u64::from(block[at + 1]) << 32;
    [word(0), word(2)]
}

#[inline(always)]
fn join([young, old]: [u64; 2]) -> [u32; WORDS] {
    [young as u32, (young >> 32) as u32, old as u32, (old >> 32) as u32]
}

/// Notes a key. `hold` lets it in only where there is a free place.
#[inline(always)]
pub(super) fn note(block: &mut [u32; WORDS], fingerprint: u64, hold: bool) -> Noted {
    let [young, _] = split(block);
    if found(young, fingerprint) != 0 {
        return Noted::Known;
    }
    note_beyond_the_young(block, fingerprint, hold)
}

#[inline]
fn note_beyond_the_young(block: &mut [u32; WORDS], fingerprint: u64, hold: bool) -> Noted {
    let [young, old] = split(block);
    let there = found(old, fingerprint);
    let oldest = old >> ((LANES - 1) * BITS);
    if there == 0 && oldest != 0 && hold {
        return Noted::NoRoom;
    }
    // It leaves a gap, or the oldest does: all before that move back by one place.
    let end = if there == 0 { ALL } else { (there << 1) - 1 };
    let moved = (old << BITS | young >> ((LANES - 1) * BITS)) & end;
    *block = join([(young << BITS | fingerprint) & ALL, old & !end | moved]);
    match (there, oldest) {
        (0, 0) => Noted::New,
        (0, _) => Noted::InPlaceOfAnother,
        _ => Noted::Known,
    }
}

/// Whether the key is there.
#[inline(always)]
pub(super) fn contains(block: &[u32; WORDS], fingerprint: u64) -> bool {
    let [young, old] = split(block);
    found(young, fingerprint) | found(old, fingerprint) != 0
}

/// Takes in the keys of another block, the younger ones of both first; whether any was forgotten.
pub(super) fn unite(ours: &mut [u32; WORDS], theirs: &[u32; WORDS]) -> bool {
    let mut united = [0; WORDS];
    let mut kept = 0;
    let mut each = [fingerprints(ours).fuse(), fingerprints(theirs).fuse()];
    let mut all = [0; 2 * KEYS as usize];
    let mut count = 0;
    // The youngest of each, then the second ones, and so on.
    for _ in 0..KEYS {
        for fingerprint in each.iter_mut().filter_map(Iterator::next) {
            if !all[..count].contains(&fingerprint) {
                all[count] = fingerprint;
                count += 1;
            }
        }
    }
    for &fingerprint in all[..count].iter().take(KEYS.into()).rev() {
        note(&mut united, fingerprint, false);
        kept += 1;
    }
    *ours = united;
    kept < count
}

/// The fingerprints of a block, the youngest first.
pub(super) fn fingerprints(block: &[u32; WORDS]) -> impl DoubleEndedIterator<Item = u64> + use<> {
    let lanes = |word: u64| [0, 1, 2].map(|lane| word >> (lane * BITS) & ((1 << BITS) - 1));
    let [young, old] = split(block).map(lanes);
    young.into_iter().chain(old).filter(|&fingerprint| fingerprint != 0)
}

/// Whether keys can have left a block like this: free places come last, no fingerprint stands
/// twice, and no bit beyond the lanes is set.
#[cfg(feature = "serde")]
pub(super) fn is_sound(block: &[u32; WORDS]) -> bool {
    let mut again = [0; WORDS];
    for fingerprint in fingerprints(block).rev() {
        note(&mut again, fingerprint, false);
    }
    again == *block
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        /// As a list would do it.
        #[test]
        fn the_latest_keys_are_there(
            keys in prop::collection::vec((prop_oneof![1u64..9, Just((1 << BITS) - 1), 1u64..1 << BITS], prop::bool::weighted(0.1)), 0..200),
        ) {
            let (mut block, mut list) = ([0; WORDS], Vec::<u64>::new());
            for (key, hold) in keys {
                prop_assert_eq!(contains(&block, key), list.contains(&key));
                let want = match list.iter().position(|&held| held == key) {
                    Some(0..3) => Noted::Known,
                    Some(at) => {
                        let key = list.remove(at);
                        list.insert(0, key);
                        Noted::Known
                    }
                    None if list.len() == 6 && hold => Noted::NoRoom,
                    None => {
                        list.insert(0, key);
                        if list.len() > 6 { list.truncate(6); Noted::InPlaceOfAnother } else { Noted::New }
                    }
                };
                prop_assert_eq!(note(&mut block, key, hold), want);
                prop_assert_eq!(fingerprints(&block).collect::<Vec<_>>(), &list[..]);
                #[cfg(feature = "serde")]
                prop_assert!(is_sound(&block));
            }
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn what_keys_cannot_leave_is_not_sound() {
        let block = |young: u64, old: u64| is_sound(&join([young, old]));
        assert!(block(0, 0) && block(7, 0) && block(7 | 8 << BITS, 0));
        assert!(!block(7 | 7 << BITS, 0), "twice");
        assert!(!block(7 << BITS, 0) && !block(7, 8), "a free place before another key");
        assert!(!block(1 << 63, 0) && !block(ALL, 1 << 63));
    }
}
