//! A data plane that was written down and read back.
//!
//! The derives of the types themselves say what is written; what follows from the configuration
//! (hash secrets, the map of columns) is not. Whoever wrote the bytes may have meant harm, so
//! nothing that was read is used before [`DataPlane::restored`] has held every length against the
//! configuration (which allocates nothing by itself), and every content against what inserting can
//! lead to. After that no insert, cut or peek can panic or overflow.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bloom::{BloomFilter, BloomKind};
use crate::column::{BaseMap, Geometry, RowMap};
use crate::config::{Config, Shape};
use crate::counters::Counters;
use crate::hash::HashSeed;
use crate::heavy::HeavyPart;
use crate::key::{DigestKey, KeyFormat};
use crate::load::KnownKeys;
use crate::plane::{DataPlane, Light};
use crate::resend::Generations;
use crate::seed::{Hashing, Seed};

/// A restored state that contradicts itself or its configuration. The text says in what.
///
/// ```
/// let error = ucl_data_plane::Inconsistent("3 counters, but the sketch has 4".into());
/// assert_eq!(error.to_string(), "3 counters, but the sketch has 4");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

/// An error that says `why`, unless `holds`.
#[inline]
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), Inconsistent> {
    if holds { Ok(()) } else { Err(Inconsistent(why())) }
}

/// A heavy part that can tell whether it was restored to something that offers can lead to.
pub trait RestoredHeavy<const N: usize>: HeavyPart<N> {
    /// Fails if not; nothing was allocated by the numbers of the shape before.
    fn check(&self, shape: &Shape, seed: &HashSeed) -> Result<(), Inconsistent>;
}

/// Stands in until [`DataPlane::restored`] has the configuration.
pub(crate) fn no_map() -> BaseMap {
    BaseMap::Rows(RowMap::new(Geometry { rows: 1, width: 1, degree: 1, signed: false }))
}

/// A seed is written as its number. Which functions it keys is the same for all of a sketch, and is
/// written once, by whoever writes the sketch: [`Config::hashed_by`] puts it back.
impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u128::deserialize(deserializer).map(Self::from)
    }
}

/// Written is what a seed does not share with the configuration after [`HashSeed::rehashed`]: the
/// key of the digests. What was read stands in for the hashes of some seed, until
/// [`HashSeed::restored`] makes it that of the configuration.
impl Serialize for HashSeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.digest_key().number().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HashSeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = u128::deserialize(deserializer)?;
        Ok(Self::with_digest_key(DigestKey::new(key, Hashing::default())))
    }
}

impl HashSeed {
    /// Makes what was read the secrets of this seed, with the digests that were read.
    ///
    /// # Errors
    /// If the key of the digests is none that the functions of the seed have.
    pub fn restored(self, seed: Seed) -> Result<Self, Inconsistent> {
        let key = self.digest_key().number();
        let hashing = seed.hashing();
        let fits = hashing != Hashing::V1 || key <= u64::MAX.into();
        ensure(fits, || format!("a digest key of 128 bits for hash functions of {hashing}"))?;
        Ok(Self::with_digest_key(DigestKey::new(key, hashing)).rehashed(seed))
    }
}

/// Keys of one size, end to end.
pub(crate) mod flat_keys {
    use alloc::vec::Vec;

    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer, const N: usize>(keys: &[[u8; N]], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(keys.as_flattened())
    }

    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(deserializer: D) -> Result<Vec<[u8; N]>, D::Error> {
        let bytes: Vec<u8> = serde_bytes::deserialize(deserializer)?;
        let (keys, rest) = bytes.as_chunks::<N>();
        if rest.is_empty() { Ok(keys.to_vec()) } else { Err(D::Error::invalid_length(bytes.len(), &"whole keys")) }
    }
}

impl Config {
    /// Returns the configuration with a seed for these functions: a seed that was read does not
    /// know them.
    pub fn hashed_by(self, hashing: Hashing) -> Self {
        Self { seed: self.seed.with_hashing(hashing), ..self }
    }

    /// Fails for a configuration that no data plane can have.
    pub fn check(&self) -> Result<(), Inconsistent> {
        if let KeyFormat::Fixed(bytes) = self.keys {
            let known = KeyFormat::FIXED_SIZES.contains(&bytes.into());
            ensure(known, || format!("keys of {bytes} bytes do not sit in slots as they are"))?;
        }
        if let KeyFormat::Code(bits) = self.keys {
            ensure((8..=KeyFormat::CODE_BITS).contains(&bits), || format!("codes of {bits} bits"))?;
        }
        self.shape.validate().map_err(|error| Inconsistent(format!("{error}")))
    }
}

impl<const N: usize, H: RestoredHeavy<N>> DataPlane<N, H> {
    /// Makes a data plane that was just read usable, or says why it cannot be one of this
    /// configuration.
    pub fn restored(mut self, config: &Config) -> Result<Self, Inconsistent> {
        config.check()?;
        let slot_bytes = config.keys.slot_bytes();
        let shape = &config.shape;
        ensure(slot_bytes == N, || format!("slots of {N}-byte keys for keys of {slot_bytes} bytes"))?;
        let own = self.light.config.hashed_by(config.seed.hashing());
        ensure(own == *config, || "the data plane has another configuration than the file".into())?;
        self.light.restore(own)?;
        self.heavy.check(shape, &self.light.seed)?;

        let totals = &self.totals;
        let sketch_weight = self.light.sketch_weight;
        totals.check()?;
        let held = self.heavy.entries().try_fold(0u64, |sum, (_, _, count, _)| sum.checked_add(count));
        let sum = held.and_then(|held| held.checked_add(sketch_weight));
        // What came before a change of the sketch is in counters that were sent off: less is
        // possible, more is not.
        ensure(sum.is_some_and(|sum| sum <= totals.weight), || {
            format!("the heavy part and the sketch ({sketch_weight}) have more than all items: {}", totals.weight)
        })?;
        self.light.check_counters()?;
        Ok(self)
    }
}

impl Light {
    /// Makes a sketch that was just read usable with its own configuration, or says why it cannot
    /// be one of it.
    pub(crate) fn restore(&mut self, config: Config) -> Result<(), Inconsistent> {
        self.config = config;
        self.seed = self.seed.restored(config.seed)?;
        self.map = BaseMap::new(&config.shape);
        self.counters.check(&config.shape)?;
        self.bloom.check(&Shape { bloom_bits: config.shape.sketch_bloom_bits(), ..config.shape })?;
        self.generations = Generations::new(&self.bloom);
        self.recount();
        Ok(())
    }

    /// Fails for counters that hold more than entered the sketch.
    pub(crate) fn check_counters(&self) -> Result<(), Inconsistent> {
        let limit = self.sketch_weight as i64;
        let beyond = self.counters.iter().position(|value| !(-limit..=limit).contains(&value));
        ensure(beyond.is_none(), || format!("counter {beyond:?} holds more than entered the sketch"))
    }

    /// Continues from the notes of watching the load.
    pub(crate) fn watch_load_from(&mut self, registers: Vec<u8>) -> Result<(), Inconsistent> {
        let length = registers.len();
        let known = KnownKeys::restored(registers);
        ensure(known.is_some(), || format!("{length} registers that count no known keys"))?;
        self.known = known;
        Ok(())
    }
}

impl<const N: usize, H: HeavyPart<N>> DataPlane<N, H> {
    /// Returns the notes of [`DataPlane::watch_load`], for [`DataPlane::watch_load_from`]; they are
    /// no part of what is written of a data plane.
    pub fn known_keys(&self) -> Option<&[u8]> {
        self.light.known.as_ref().map(KnownKeys::registers)
    }

    /// Continues from the notes that [`DataPlane::known_keys`] returned.
    ///
    /// # Errors
    /// If this cannot have come from there.
    pub fn watch_load_from(&mut self, registers: Vec<u8>) -> Result<(), Inconsistent> {
        self.light.watch_load_from(registers)
    }
}

impl Counters {
    fn check(&self, shape: &Shape) -> Result<(), Inconsistent> {
        let want = shape.geometry().counters();
        let bits = shape.counter_bits;
        let same = self.len() == want && self.bits() == bits && self.signed() == shape.signed();
        ensure(same, || format!("{} {} counters, but the sketch has {want} {bits} ones", self.len(), self.bits()))?;
        let (words, needed) = (self.words_len(), if bits.bits() == 4 { want.div_ceil(2) } else { want });
        ensure(words == needed, || format!("{words} words for {want} {bits} counters"))
    }
}

impl BloomFilter {
    pub(crate) fn check(&self, shape: &Shape) -> Result<(), Inconsistent> {
        let bits = shape.bloom.whole_bits(shape.bloom_bits, shape.bloom_hashes);
        let hashes = if bits == 0 { 0 } else { shape.bloom_hashes };
        let same = self.kind == shape.bloom && self.bits == bits && self.hashes == hashes;
        ensure(same, || {
            format!("a Bloom filter of {} bits and {} hashes, not {bits} and {hashes}", self.bits, self.hashes)
        })?;
        let (words, needed) = (self.words.len(), bits.div_ceil(32) as usize);
        ensure(words == needed, || format!("{words} words for {bits} Bloom bits"))?;
        if self.kind == BloomKind::Recent {
            ensure(self.is_sound(), || "fingerprints of keys that cannot stand like this".into())?;
            let held = self.recount_recent();
            return ensure(held == self.set_bits, || format!("{held} fingerprints, not {}", self.set_bits));
        }
        let set: u64 = self.words.iter().map(|word| u64::from(word.count_ones())).sum();
        ensure(set == u64::from(self.set_bits), || format!("{set} Bloom bits are set, not {}", self.set_bits))?;
        let unused = match bits % 32 {
            0 => 0,
            used => self.words[words - 1] >> used,
        };
        ensure(unused == 0, || "Bloom bits beyond the end are set".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CounterBits, Report, ReportRule, ReportSink};
    use alloc::string::ToString;
    use std::vec::Vec;

    struct Nowhere;
    impl ReportSink for Nowhere {
        fn report(&mut self, _: Report<'_>) {}
    }

    fn plane() -> (Config, DataPlane<4>) {
        let shape = Shape {
            slots: 20,
            width: 15,
            rows: 3,
            counter_bits: CounterBits::B4,
            bloom_bits: 100,
            bloom_hashes: 3,
            ..Shape::PAPER_64KB
        };
        let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 3.into() };
        let mut plane = DataPlane::<4>::new(config).unwrap();
        for i in 0..500u32 {
            plane.insert(&(i * i % 97).to_le_bytes(), u64::from(i % 3) + 1, &mut Nowhere).unwrap();
        }
        (config, plane)
    }

    #[test]
    fn what_inserting_made_is_restored_as_it_was() {
        let (config, plane) = plane();
        assert_eq!(plane.clone().restored(&config), Ok(plane));
    }

    /// Each way to be wrong has its own words.
    #[test]
    fn what_inserting_cannot_make_is_refused() {
        type Damage = fn(&mut DataPlane<4>);
        let damages: [(Damage, &str); 8] = [
            (|p| p.light.config.seed = 4.into(), "the data plane has another configuration than the file"),
            (|p| p.totals.weight = u64::MAX, "500 items of weight 18446744073709551615 in all"),
            (|p| p.totals.smallest_weight = 0, "a smallest weight of 0 among 500 items"),
            (|p| p.light.sketch_weight += 1, "have more than all items: "),
            (|p| p.light.bloom.set_bits += 1, "Bloom bits are set, not"),
            (|p| p.light.bloom.words.truncate(2), "2 words for 100 Bloom bits"),
            (
                |p| p.light.counters = Counters::new(45, CounterBits::B8, false).unwrap(),
                "45 8-bit counters, but the sketch has 45 4-bit ones",
            ),
            (|p| p.light.counters = Counters::new(44, CounterBits::B4, false).unwrap(), "44 4-bit counters"),
        ];
        for (damage, message) in damages {
            let (config, mut plane) = plane();
            damage(&mut plane);
            let error = plane.restored(&config).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let errors: Vec<String> = [KeyFormat::Fixed(8), KeyFormat::Fixed(5), KeyFormat::Digest]
            .into_iter()
            .map(|keys| plane().1.restored(&Config { keys, ..plane().0 }).unwrap_err().to_string())
            .collect();
        assert_eq!(errors[0], "slots of 4-byte keys for keys of 8 bytes");
        assert_eq!(errors[1], "keys of 5 bytes do not sit in slots as they are");
        assert_eq!(errors[2], "slots of 4-byte keys for keys of 16 bytes");
    }
}
