//! When keys are sent again: the Bloom filter keeps some from the control plane that it never sent.
//!
//! [`Refresh`] sends some of the keys that the filter claims to know. [`Rotation`] empties the
//! filter, or, with [`Generations`], one half of it at a time.

use crate::bloom::{BloomFilter, BloomKind, Noted, power};
use crate::hash::KeyHash;

/// At most one in so many.
const MOST_REFRESHED: f64 = 1.0 / 8.0;

/// A choice of keys by hash, another one in every epoch: the same key is not chosen twice in one
/// epoch and passed over in another for lack of luck, and no random state is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Refresh {
    /// Of 2^32.
    threshold: u32,
    epoch: u32,
}

impl Refresh {
    /// Returns true if any key is chosen.
    #[inline(always)]
    pub fn is_on(self) -> bool {
        self.threshold > 0
    }

    /// Returns true if this key is chosen in this epoch.
    #[inline(always)]
    pub fn chooses(self, hash: KeyHash) -> bool {
        hash.salted(self.epoch) < self.threshold
    }

    /// Unites the choices of two data planes that become one: the choice that sends more, until the
    /// next epoch.
    pub fn united(self, other: Self) -> Self {
        Self { threshold: self.threshold.max(other.threshold), epoch: self.epoch.max(other.epoch) }
    }

    /// A new epoch: other keys, as many as the filter's claims are false.
    pub fn next_epoch(&mut self, false_positive_rate: f64) {
        self.epoch = self.epoch.wrapping_add(1);
        self.threshold = (false_positive_rate.min(MOST_REFRESHED) * 4_294_967_296.0) as u32;
    }
}

/// A filter whose claims are false more often than this is emptied at the next cut.
pub const EMPTY_ABOVE: f64 = 1.0 / 256.0;

/// Cuts from one emptying to the next, at least: a filter that is far too small would send every
/// key at every cut.
pub const LEAST_CUTS: u32 = 4;

/// A half of a filter whose claims are false more often than this is full.
///
/// A key that is lost for an epoch leaves mass in four counters, and peeling passes it on to
/// others. With epochs at their limit, of a Zipf stream of 10M items over 1M keys in 64KB, mean
/// errors were
/// 0.0074 with one claim in 4,096 and 0.0012 with one in 8,192, for 1% more uplink.
pub const FULL_ABOVE: f64 = 1.0 / 8192.0;

/// Fill of the halves of a filter by generation. It follows from the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Generations {
    set: [u32; 2],
    /// Bits with which a half is full.
    full: u32,
    /// True if nothing is forgotten.
    pub held: bool,
}

impl Generations {
    /// Creates the generations of an empty filter of this size.
    pub fn new(bloom: &BloomFilter) -> Self {
        let half = bloom.half_bits();
        let rate = |set: u32| power(f64::from(set) / f64::from(half.max(1)), bloom.hashes);
        let (mut below, mut full) = (0, half.max(1));
        while full - below > 1 {
            let middle = below.midpoint(full);
            if rate(middle) < FULL_ABOVE { below = middle } else { full = middle }
        }
        Self { set: [0; 2], full, held: false }
    }

    /// Counts the halves of a filter of the same size whose content has changed.
    pub fn recounted(self, bloom: &BloomFilter) -> Self {
        Self { set: [bloom.set_in(0), bloom.set_in(1)], ..self }
    }

    /// Notes a key; whether it has to be sent.
    #[inline(always)]
    pub fn is_new(&mut self, rotation: &mut Rotation, bloom: &mut BloomFilter, hash: KeyHash) -> bool {
        if bloom.kind == BloomKind::Recent {
            return self.is_new_to_the_latest(rotation, bloom, hash);
        }
        let claims = bloom.halves_contain(hash);
        let younger = rotation.younger();
        if claims[younger] {
            return false;
        }
        self.note(rotation, bloom, hash);
        !claims[1 - younger]
    }

    /// [`Generations::is_new`] for a filter of the latest keys. While names are held, those that
    /// find no room pass for known: what is sent has an end.
    #[inline(always)]
    fn is_new_to_the_latest(&self, rotation: &mut Rotation, bloom: &mut BloomFilter, hash: KeyHash) -> bool {
        match bloom.note(hash, self.held) {
            Noted::Known | Noted::NoRoom => false,
            Noted::New => true,
            Noted::InPlaceOfAnother => {
                rotation.forgets(true);
                true
            }
        }
    }

    #[inline(never)]
    fn note(&mut self, rotation: &mut Rotation, bloom: &mut BloomFilter, hash: KeyHash) {
        if self.set[rotation.younger()] >= self.full && !self.held {
            rotation.turn(self.set[1 - rotation.younger()] > 0);
            bloom.clear_half(rotation.younger());
            self.set[rotation.younger()] = 0;
        }
        self.set[rotation.younger()] += bloom.set_in_half(hash, rotation.younger());
    }
}

/// Time since the filter was emptied, if it ever was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Rotation {
    /// Cuts since then; of a filter by generation, how often its halves have taken turns.
    cuts: u32,
    emptied: bool,
}

impl Rotation {
    /// The half of a filter by generation that keys are noted in.
    #[inline(always)]
    fn younger(self) -> usize {
        (self.cuts & 1) as usize
    }

    /// The older half becomes the younger one. Whether it forgets anything by that.
    fn turn(&mut self, forgets: bool) {
        self.cuts ^= 1;
        self.emptied |= forgets;
    }

    /// The filter has forgotten some key, or not.
    pub fn forgets(&mut self, some: bool) {
        self.emptied |= some;
    }

    /// Returns true if the filter has every key since the segment began.
    #[inline(always)]
    pub fn has_all(self) -> bool {
        !self.emptied
    }

    /// A new epoch: empties the filter if it is time.
    pub fn next_epoch(&mut self, bloom: &mut BloomFilter) {
        self.cuts = self.cuts.saturating_add(1);
        if self.cuts >= LEAST_CUTS && bloom.false_positive_rate() > EMPTY_ABOVE {
            bloom.clear();
            *self = Self { cuts: 0, emptied: true };
        }
    }

    /// Unites those of two data planes that become one.
    pub fn united(self, other: Self) -> Self {
        Self { cuts: self.cuts.max(other.cuts), emptied: self.emptied | other.emptied }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashSeed;

    /// Keys in use stay known, others are forgotten in turn; at no time is more than a share of new
    /// keys claimed, and nothing that was forgotten passes for never seen.
    #[test]
    fn halves_take_turns() {
        let seed = HashSeed::new(1.into());
        let hash = |key: u32| seed.hash(&key.to_le_bytes());
        let mut bloom = BloomFilter::new(BloomKind::Classic, 64_000, 12).unwrap();
        let (mut generations, mut rotation) = (Generations::new(&bloom), Rotation::default());
        let mut sent_again = 0;
        for key in 0..100_000 {
            let new = generations.is_new(&mut rotation, &mut bloom, hash(key));
            assert!(new || key > 0);
            // A few keys come all the time, and are never sent again.
            let in_use = key % 10;
            sent_again += u32::from(key > 10 && generations.is_new(&mut rotation, &mut bloom, hash(in_use)));
            assert!(rotation.has_all() || key > 3_000, "forgotten after {key}");
        }
        assert_eq!(sent_again, 0);
        assert!(!rotation.has_all());
        assert_eq!(generations, generations.recounted(&bloom));
        let claimed =
            |keys: core::ops::Range<u32>| keys.filter(|&key| bloom.halves_contain(hash(key)).contains(&true)).count();
        assert_eq!(claimed(98_500..100_000), 1_500, "the latest are known");
        assert!(claimed(0..90_000) < 90 && claimed(200_000..300_000) < 100);
    }

    /// The same of a filter of the latest keys, which claims far fewer that are new.
    #[test]
    fn the_latest_keys_are_remembered() {
        for seed in [1, 2] {
            let seed = HashSeed::new(seed.into());
            let hash = |key: u32| seed.hash(&key.to_le_bytes());
            let mut bloom = BloomFilter::new(BloomKind::Recent, 64_000, BloomKind::RECENT_KEYS).unwrap();
            assert_eq!((bloom.bits, BloomKind::recent_keys(bloom.bits)), (64_000, 3_000));
            let (generations, mut rotation) = (Generations::default(), Rotation::default());
            let mut is_new = |key: u32| generations.is_new_to_the_latest(&mut rotation, &mut bloom, hash(key));
            // Keys in use are hardly ever sent again: only where many others came to their block.
            let sent_again = (0..100_000).filter(|&key| is_new(key) && key >= 10 && is_new(key % 10)).count();
            assert!(sent_again < 10, "{sent_again}");
            assert!(!rotation.has_all() && bloom.set_bits == 3_000);
            let known = (99_000..100_000).filter(|&key| bloom.contains(hash(key))).count();
            assert!(known > 980, "{known} of the latest thousand");
            // 6 in 2^21 others, 11 of these.
            let claimed = (1_000_000..5_000_000).filter(|&key| bloom.contains(hash(key))).count();
            assert!((2..30).contains(&claimed), "{claimed} are claimed");
        }
    }

    /// While names are held, none is forgotten, and what is sent comes to an end.
    #[test]
    fn held_names_have_an_end_in_a_filter_of_the_latest() {
        let seed = HashSeed::new(1.into());
        let mut bloom = BloomFilter::new(BloomKind::Recent, 6_400, BloomKind::RECENT_KEYS).unwrap();
        let (mut generations, mut rotation) =
            (Generations { held: true, ..Generations::default() }, Rotation::default());
        let mut is_new = |key: u32| generations.is_new(&mut rotation, &mut bloom, seed.hash(&key.to_le_bytes()));
        assert_eq!((0..100_000).filter(|&key| is_new(key)).count(), 300);
        assert!(rotation.has_all());
    }

    /// While names are held nothing is forgotten, and the keys that are let through come to an end.
    #[test]
    fn held_names_come_to_an_end() {
        let seed = HashSeed::new(1.into());
        let mut bloom = BloomFilter::new(BloomKind::Classic, 6_400, 8).unwrap();
        let mut generations = Generations { held: true, ..Generations::new(&bloom) };
        let mut rotation = Rotation::default();
        let mut sent =
            (0..200_000u32).filter(|key| generations.is_new(&mut rotation, &mut bloom, seed.hash(&key.to_le_bytes())));
        assert!(sent.by_ref().count() < 6_400);
        drop(sent);
        assert!(rotation.has_all());
    }

    #[test]
    fn a_full_filter_is_emptied_and_an_ample_one_kept() {
        let fill = |bits: u32, keys: u32| {
            let mut filter = BloomFilter::new(BloomKind::Classic, bits, 6).unwrap();
            (0..keys).for_each(|key| {
                filter.insert(HashSeed::new(1.into()).hash(&key.to_le_bytes()));
            });
            filter
        };
        let mut rotation = Rotation::default();
        let mut ample = fill(32_000, 1_000);
        (0..100).for_each(|_| rotation.next_epoch(&mut ample));
        assert!(rotation.has_all() && ample == fill(32_000, 1_000));

        let mut rotation = Rotation::default();
        let mut full = fill(6_400, 1_000);
        assert!(full.false_positive_rate() > EMPTY_ABOVE);
        (1..LEAST_CUTS).for_each(|_| rotation.next_epoch(&mut full));
        assert!(rotation.has_all(), "not before so many cuts");
        rotation.next_epoch(&mut full);
        assert!(!rotation.has_all() && full == fill(6_400, 0));
        rotation.next_epoch(&mut full);
        assert!(!rotation.has_all(), "it stays said");
    }
}
