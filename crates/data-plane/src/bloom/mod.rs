//! The Bloom filter that remembers which keys were reported.
//!
//! A key that it claims to know and does not (a false positive) is never reported: it is lost to
//! the control plane until refreshed. With `K` keys in `m` bits and `k` hashes that happens to the
//! next key with probability `(1 - e^(-kK/m))^k`.
//!
//! *Classic* sets `k` bits anywhere: the best rate per bit. *Split-block* sets `k` bits in one
//! block of `k` 32-bit lanes, one in each lane: one cache line per key, at a higher rate of lost
//! keys. While the whole filter sits in the cache it is no faster (`cargo bench`); it is meant for
//! filters that do not. *Recent* remembers the latest keys by fingerprint (`bloom/recent.rs`): the
//! one that forgets, and the one that is looked up fastest.

mod recent;

use alloc::vec::Vec;

pub(crate) use self::recent::Noted;
use crate::hash::{BloomHash, KeyHash, MAX_BLOOM_HASHES};
use crate::table::{OutOfMemory, filled};

/// Placement of a key's bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BloomKind {
    /// Bits anywhere in the filter.
    #[default]
    Classic,
    /// All bits in one block of 32-bit lanes: as many lanes as there are hashes (at most 8), one
    /// bit in each.
    SplitBlock,
    /// No Bloom filter but the fingerprints of the latest keys, six in each block of 128 bits: a
    /// new key makes a full block forget the one that was not used for longest, more or less.
    Recent,
}

impl BloomKind {
    /// Hashes of a filter of this kind: the least, and the most.
    pub(crate) fn hashes(self) -> [u8; 2] {
        match self {
            Self::Classic => [1, MAX_BLOOM_HASHES as u8],
            Self::SplitBlock => [1, 8],
            Self::Recent => [Self::RECENT_KEYS; 2],
        }
    }

    /// Keys of a block of [`BloomKind::Recent`], in place of a number of hashes.
    pub const RECENT_KEYS: u8 = recent::KEYS;

    /// The number of bits really used of `bits`: blocks are whole.
    pub(crate) fn whole_bits(self, bits: u32, hashes: u8) -> u32 {
        match self {
            Self::Classic => bits,
            Self::SplitBlock => bits - bits % (32 * u32::from(hashes.max(1))),
            Self::Recent => bits - bits % recent::BLOCK_BITS,
        }
    }

    /// Returns how many keys a filter that forgets ([`BloomKind::Recent`]) of this many bits
    /// remembers at most.
    pub fn recent_keys(bits: u32) -> u32 {
        bits / recent::BLOCK_BITS * u32::from(recent::KEYS)
    }
}

/// A set of keys with false positives and no false negatives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BloomFilter {
    pub(crate) kind: BloomKind,
    pub(crate) hashes: u8,
    pub(crate) bits: u32,
    /// Number of set bits; of the latest keys, the number of keys.
    pub(crate) set_bits: u32,
    pub(crate) words: Vec<u32>,
}

impl BloomFilter {
    /// Creates an empty filter of `bits` bits (rounded down to whole blocks, where there are
    /// blocks). Zero bits or hashes is a filter that claims nothing, so that every key is new.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(kind: BloomKind, bits: u32, hashes: u8) -> Result<Self, OutOfMemory> {
        let bits = kind.whole_bits(bits, hashes);
        let hashes = if bits == 0 { 0 } else { hashes };
        Ok(Self { kind, hashes, bits, set_bits: 0, words: filled(bits.div_ceil(32) as usize, 0)? })
    }

    /// Adds a key. Returns true if it was new (not claimed before).
    ///
    /// ```
    /// use ucl_data_plane::{BloomFilter, BloomKind, HashSeed};
    /// let mut filter = BloomFilter::new(BloomKind::Classic, 80_000, 8)?;
    /// let h = HashSeed::new(1.into()).hash(&7u32.to_le_bytes());
    /// assert!(filter.insert(h));
    /// assert!(!filter.insert(h) && filter.contains(h));
    /// # Ok::<(), ucl_data_plane::OutOfMemory>(())
    /// ```
    #[inline(always)]
    pub fn insert(&mut self, h: KeyHash) -> bool {
        if self.kind == BloomKind::Recent {
            return self.note(h, false) != Noted::Known;
        }
        // Keys are mostly known: look first, write only for a new one.
        let new = !self.contains(h);
        if new {
            self.set(h);
        }
        new
    }

    /// Notes one of the latest keys ([`BloomKind::Recent`]); none is forgotten for it if the others
    /// are to be held.
    #[inline(always)]
    pub(crate) fn note(&mut self, h: KeyHash, hold: bool) -> Noted {
        let blocks = self.bits / recent::BLOCK_BITS;
        let (all, _) = self.words.as_chunks_mut::<{ recent::WORDS }>();
        let Some(block) = all.get_mut(h.bloom().position(0, blocks) as usize) else {
            // Nothing remembers nothing.
            return Noted::InPlaceOfAnother;
        };
        let noted = recent::note(block, h.fingerprint(), hold);
        self.set_bits += u32::from(noted == Noted::New);
        noted
    }

    /// The block of a key among the latest ones.
    fn block_of(&self, h: KeyHash) -> Option<&[u32; recent::WORDS]> {
        let (all, _) = self.words.as_chunks();
        all.get(h.bloom().position(0, self.bits / recent::BLOCK_BITS) as usize)
    }

    /// Whether keys can have left these blocks of fingerprints.
    #[cfg(feature = "serde")]
    pub(crate) fn is_sound(&self) -> bool {
        self.words.as_chunks().0.iter().all(recent::is_sound)
    }

    #[inline(never)]
    fn set(&mut self, h: KeyHash) {
        let h = h.bloom();
        for i in 0..self.hashes.into() {
            let (word, mask) = match self.kind {
                BloomKind::SplitBlock => self.split_block(h, i),
                BloomKind::Classic | BloomKind::Recent => self.classic(h, i),
            };
            self.set_bits += u32::from(self.words[word] & mask == 0);
            self.words[word] |= mask;
        }
    }

    /// Returns true if the filter claims the key.
    #[inline(always)]
    pub fn contains(&self, h: KeyHash) -> bool {
        if self.kind == BloomKind::Recent {
            return self.block_of(h).is_some_and(|block| recent::contains(block, h.fingerprint()));
        }
        let h = h.bloom();
        let hashes = self.hashes.into();
        // All bits are looked at: leaving at the first unset one is a branch that is taken at
        // random.
        let claims = |(word, mask): (usize, u32)| u32::from(self.words[word] & mask != 0);
        let set: u32 = match self.kind {
            BloomKind::SplitBlock => (0..hashes).map(|i| claims(self.split_block(h, i))).sum(),
            _ => (0..hashes).map(|i| claims(self.classic(h, i))).sum(),
        };
        (set == hashes) & (hashes > 0)
    }

    #[inline(always)]
    fn classic(&self, h: BloomHash, i: u32) -> (usize, u32) {
        let bit = h.position(i, self.bits);
        ((bit >> 5) as usize, 1 << (bit & 31))
    }

    #[inline(always)]
    fn split_block(&self, h: BloomHash, i: u32) -> (usize, u32) {
        let lanes = u32::from(self.hashes);
        let block = h.position(0, self.bits / (32 * lanes));
        ((block * lanes + i) as usize, 1 << h.lane(i))
    }

    /// Bits of each of the two halves of a filter by generation
    /// ([`crate::ReportRule::Generations`]): whole words, which take turns, so that both are looked
    /// up in the same cache lines.
    pub(crate) fn half_bits(&self) -> u32 {
        self.bits / 64 * 32
    }

    #[inline(always)]
    fn in_half(&self, h: BloomHash, i: u32, half: usize) -> (usize, u32) {
        let bit = h.position(i, self.half_bits());
        ((bit >> 5) as usize * 2 + half, 1 << (bit & 31))
    }

    /// Returns true if each of the halves claims the key.
    #[inline(always)]
    pub(crate) fn halves_contain(&self, h: KeyHash) -> [bool; 2] {
        if self.half_bits() == 0 {
            return [false; 2];
        }
        let h = h.bloom();
        let mut claims = [true; 2];
        for i in 0..self.hashes.into() {
            for (half, claims) in claims.iter_mut().enumerate() {
                let (word, mask) = self.in_half(h, i, half);
                *claims &= self.words[word] & mask != 0;
            }
        }
        claims
    }

    /// Adds a key to one half; how many bits that set.
    #[inline(never)]
    pub(crate) fn set_in_half(&mut self, h: KeyHash, half: usize) -> u32 {
        if self.half_bits() == 0 {
            return 0;
        }
        let h = h.bloom();
        let before = self.set_bits;
        for i in 0..self.hashes.into() {
            let (word, mask) = self.in_half(h, i, half);
            self.set_bits += u32::from(self.words[word] & mask == 0);
            self.words[word] |= mask;
        }
        self.set_bits - before
    }

    /// Forgets the keys of one half.
    pub(crate) fn clear_half(&mut self, half: usize) {
        self.set_bits -= self.set_in(half);
        self.words.iter_mut().skip(half).step_by(2).for_each(|word| *word = 0);
    }

    /// Bits set in one half.
    pub(crate) fn set_in(&self, half: usize) -> u32 {
        self.words.iter().skip(half).step_by(2).map(|word| word.count_ones()).sum()
    }

    /// Claims from now on what either filter claims, but for what finds no room among the latest
    /// keys; whether anything was forgotten. Both must be of the same kind and size.
    pub(crate) fn unite(&mut self, other: &Self) -> bool {
        debug_assert!((self.kind, self.hashes, self.bits) == (other.kind, other.hashes, other.bits));
        if self.kind == BloomKind::Recent {
            return self.unite_recent(other);
        }
        self.set_bits = 0;
        for (ours, theirs) in self.words.iter_mut().zip(&other.words) {
            *ours |= theirs;
            self.set_bits += ours.count_ones();
        }
        false
    }

    fn unite_recent(&mut self, other: &Self) -> bool {
        let (ours, _) = self.words.as_chunks_mut::<{ recent::WORDS }>();
        let mut forgotten = false;
        for (ours, theirs) in ours.iter_mut().zip(other.words.as_chunks::<{ recent::WORDS }>().0) {
            forgotten |= recent::unite(ours, theirs);
        }
        self.set_bits = self.recount_recent();
        forgotten
    }

    /// How many of the latest keys there are.
    pub(crate) fn recount_recent(&self) -> u32 {
        self.words
            .as_chunks::<{ recent::WORDS }>()
            .0
            .iter()
            .map(|block| recent::fingerprints(block).count() as u32)
            .sum()
    }

    /// Forgets every key.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.set_bits = 0;
    }

    /// Returns the probability that the next claim about a key never inserted is false: all of its
    /// bits set by others.
    pub fn false_positive_rate(&self) -> f64 {
        match self.kind {
            _ if self.bits == 0 => 0.0,
            BloomKind::Recent => {
                f64::from(self.set_bits) / f64::from(BloomKind::recent_keys(self.bits)) * recent::FALSE_CLAIMS
            }
            _ => power(f64::from(self.set_bits) / f64::from(self.bits), self.hashes),
        }
    }

    /// Returns the number of bytes held.
    pub fn memory(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }
}

/// The probability that a filter of `bits` bits and `hashes` hashes to which `keys` keys were
/// offered claims one that was not. (Keys that it wrongly claims set no bit, but then all their
/// bits are set: the fill is the same.)
pub fn false_positive_rate(bits: u32, hashes: u8, keys: f64) -> f64 {
    if bits == 0 || hashes == 0 {
        return 0.0;
    }
    power(1.0 - exp(-f64::from(hashes) * keys / f64::from(bits)), hashes)
}

/// Returns the expected share of `keys` keys, arriving one after the other, that the filter does
/// not lose.
///
/// Lemma 2 of the paper bounds the same thing by the fill of a single bit, which is very loose.
pub fn expected_coverage(bits: u32, hashes: u8, keys: f64) -> f64 {
    let steps = 1000;
    let at = |step: u32| keys * (f64::from(step) + 0.5) / f64::from(steps);
    1.0 - (0..steps).map(|step| false_positive_rate(bits, hashes, at(step))).sum::<f64>() / f64::from(steps)
}

/// Returns the expected share of `keys` keys, arriving one after the other, that a filter of the
/// latest keys ([`BloomKind::Recent`]) does not lose.
pub fn recent_coverage(bits: u32, keys: f64) -> f64 {
    let room = f64::from(BloomKind::recent_keys(bits));
    // Until it is full, the rate grows with the keys.
    let filling = keys.min(room);
    let lost = filling * filling / 2.0 / room.max(1.0) + (keys - room).max(0.0);
    if room == 0.0 || keys <= 0.0 { 1.0 } else { 1.0 - recent::FALSE_CLAIMS * lost / keys }
}

/// Returns the expected number of keys that were offered, if `held` of them were not lost. Infinite
/// where the filter is so full that this cannot be told: where one in twenty keys or fewer gets
/// through, and chance alone (a standard deviation of `held`) would change the answer by half.
pub fn offered_keys(bits: u32, hashes: u8, held: f64) -> f64 {
    let step = held.max(1.0) / 1000.0;
    let (mut offered, mut through) = (0.0, 0.0);
    while through < held {
        let passes = 1.0 - false_positive_rate(bits, hashes, offered + step / 2.0);
        if passes < 0.05 && passes * passes * held < 4.0 {
            return f64::INFINITY;
        }
        through += passes * step;
        offered += step;
    }
    offered
}

pub(crate) fn power(base: f64, exponent: u8) -> f64 {
    (0..exponent).fold(1.0, |p, _| p * base)
}

// `core` has no transcendental functions; this one serves estimates only, never positions, so a
// plain series will do.
pub(crate) fn exp(x: f64) -> f64 {
    // e^x = (e^(x/1024))^1024 with a fourth-order series inside.
    let y = x / 1024.0;
    let small = 1.0 + y * (1.0 + y / 2.0 * (1.0 + y / 3.0 * (1.0 + y / 4.0)));
    (0..10).fold(small, |p, _| p * p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashSeed;

    #[test]
    fn the_series_agrees_with_std() {
        for i in 1..400 {
            let x = f64::from(i) * 0.05;
            assert!((exp(-x) - (-x).exp()).abs() < 1e-9 * (-x).exp().max(1e-3), "exp(-{x})");
        }
    }

    /// No false negatives ever; false positives at the rate the formula gives (classic) or near
    /// above it (split).
    #[test]
    fn claims_what_it_holds_and_little_else() {
        for (kind, slack) in [(BloomKind::Classic, 1.15), (BloomKind::SplitBlock, 2.0)] {
            let seed = HashSeed::new(9.into());
            let (bits, hashes, keys) = (40_960, 6, 5_000u32);
            let mut filter = BloomFilter::new(kind, bits, hashes).unwrap();
            for key in 0..keys {
                filter.insert(seed.hash(&key.to_le_bytes()));
            }
            assert!((0..keys).all(|k| filter.contains(seed.hash(&k.to_le_bytes()))));
            let probes = 100_000;
            let wrong = (keys..keys + probes).filter(|k| filter.contains(seed.hash(&k.to_le_bytes()))).count();
            let rate = wrong as f64 / f64::from(probes);
            let expected = false_positive_rate(bits, hashes, f64::from(keys));
            assert!(rate < expected * slack && rate > expected * 0.8, "{kind:?}: {rate} against {expected}");
            assert!((filter.false_positive_rate() / expected - 1.0).abs() < 0.15, "{kind:?}");
        }
    }

    #[test]
    fn coverage_is_as_predicted() {
        let seed = HashSeed::new(2.into());
        // As planned, and far more keys than planned for.
        for (bits, hashes, keys, within) in [(80_000, 8, 15_000u32, 0.005), (206_432, 10, 103_000, 0.005)] {
            let mut filter = BloomFilter::new(BloomKind::Classic, bits, hashes).unwrap();
            let covered = (0..keys).filter(|k| filter.insert(seed.hash(&k.to_le_bytes()))).count();
            let predicted = expected_coverage(bits, hashes, f64::from(keys));
            let offered = offered_keys(bits, hashes, covered as f64);
            assert!((offered / f64::from(keys) - 1.0).abs() < 0.05, "{offered} against {keys}");
            let covered = covered as f64 / f64::from(keys);
            assert!((covered - predicted).abs() < within, "{covered} against {predicted}");
        }
    }

    #[test]
    fn an_empty_shape_claims_nothing() {
        let mut filter = BloomFilter::new(BloomKind::Classic, 0, 8).unwrap();
        let h = HashSeed::new(0.into()).hash(&[1, 2, 3, 4]);
        assert!(filter.insert(h) && filter.insert(h) && !filter.contains(h));
    }
}
