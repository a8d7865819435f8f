//! The data plane: Algorithm 1 of the paper, per item, in a fixed budget.
//!
//! ```text
//! item -> heavy part -- own slot --------------------------> done
//!              \------ passed, or its former holder evicted -> counters (+ carries), Bloom filter -> report if new
//! ```

use crate::bloom::BloomFilter;
use crate::column::{CounterIndex, RowMap};
use crate::config::{Config, ConfigError, Memory};
use crate::counters::{Counters, Unsigned, Word};
use crate::hash::{HashSeed, KeyHash};
use crate::heavy::{CHUNK, HandedOn, HeavyPart, Offer, Reason, VotingFilter};
use crate::key::{KeyFormat, MAX_KEY_BYTES, digest};
use crate::refresh::Refresh;
use crate::report::{Cut, KeyFlags, KeyRef, Report, ReportRule, ReportSink};

/// What runs where the stream is seen: heavy part, linear sketch and Bloom filter for keys of `N` bytes in the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DataPlane<const N: usize, H = VotingFilter<N>> {
    pub(crate) heavy: H,
    pub(crate) light: Light,
    pub(crate) totals: Totals,
}

/// Everything behind the heavy part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Light {
    pub(crate) config: Config,
    // The configuration gives both.
    #[cfg_attr(feature = "serde", serde(skip, default = "crate::state::no_seed"))]
    pub(crate) seed: HashSeed,
    #[cfg_attr(feature = "serde", serde(skip, default = "crate::state::no_map"))]
    pub(crate) map: RowMap,
    pub(crate) counters: Counters,
    pub(crate) bloom: BloomFilter,
    refresh: Refresh,
    pub(crate) sketch_weight: u64,
    carries: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Totals {
    pub(crate) items: u64,
    pub(crate) weight: u64,
    pub(crate) smallest_weight: u64,
}

impl Totals {
    /// Adds, unless the weight is not allowed.
    #[inline(always)]
    fn take(&mut self, items: u64, weight: u64, smallest: u64) -> Result<(), ConfigError> {
        const MOST: u64 = i64::MAX as u64;
        if weight == 0 || weight > MOST {
            return Err(ConfigError::Weight { weight });
        }
        if self.weight > MOST - weight {
            return Err(ConfigError::TotalWeight { total: self.weight, weight });
        }
        self.add(items, weight, smallest);
        Ok(())
    }

    #[inline(always)]
    fn add(&mut self, items: u64, weight: u64, smallest: u64) {
        self.items += items;
        self.weight += weight;
        if self.smallest_weight == 0 || smallest < self.smallest_weight {
            self.smallest_weight = smallest;
        }
    }
}

impl<const N: usize> DataPlane<N> {
    /// An empty data plane with the paper's voting filter in front.
    ///
    /// ```
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::Paper, seed: 1 };
    /// let mut plane = DataPlane::<4>::new(config)?;
    /// let mut reported = 0;
    /// let mut sink = |report: Report<'_>| reported += usize::from(matches!(report, Report::Key { .. }));
    /// for key in 0..10_000u32 {
    ///     plane.insert(&(key % 5_000).to_le_bytes(), 1, &mut sink)?;
    /// }
    /// assert!(reported > 1_000); // 5,000 keys do not fit into 3,000 slots
    /// assert!(plane.memory().total() <= 65_536);
    /// # Ok::<(), ucl_data_plane::ConfigError>(())
    /// ```
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        Self::with_heavy(config, VotingFilter::new(config.shape.slots, config.shape.vote_ratio))
    }
}

impl<const N: usize, H: HeavyPart<N>> DataPlane<N, H> {
    /// An empty data plane behind `heavy`.
    pub fn with_heavy(config: Config, heavy: H) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        if config.keys.slot_bytes() != N {
            return Err(ConfigError::KeySize { want: config.keys.slot_bytes(), got: N });
        }
        let shape = config.shape;
        let geometry = shape.geometry();
        let light = Light {
            config,
            seed: HashSeed::new(config.seed),
            map: RowMap::new(geometry),
            counters: Counters::new(geometry.counters(), shape.counter_bits, shape.signed),
            bloom: BloomFilter::new(shape.bloom, shape.bloom_bits, shape.bloom_hashes),
            refresh: Refresh::default(),
            sketch_weight: 0,
            carries: 0,
        };
        Ok(Self { heavy, light, totals: Totals::default() })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.light.config
    }

    /// The heavy part.
    pub fn heavy(&self) -> &H {
        &self.heavy
    }

    /// The Bloom filter.
    pub fn bloom(&self) -> &BloomFilter {
        &self.light.bloom
    }

    /// Items inserted so far.
    pub fn items(&self) -> u64 {
        self.totals.items
    }

    /// Their weight.
    pub fn weight(&self) -> u64 {
        self.totals.weight
    }

    /// Bytes by part, as held.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("heavy", self.heavy.memory());
        memory.add("counters", self.light.counters.memory());
        memory.add("bloom", self.light.bloom.memory());
        if let KeyFormat::Fixed(_) = self.light.config.keys {
            memory.add("deferred", CHUNK * (size_of::<HandedOn<N>>() + size_of::<u32>()));
        }
        memory
    }

    /// The weight that the heavy part holds exactly for a key (its slot bytes).
    pub fn exact(&self, key: &[u8; N]) -> u64 {
        self.heavy.exact(self.light.seed.hash(key), key)
    }

    /// Inserts one item.
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], weight: u64, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        debug_assert!(self.light.config.keys != KeyFormat::Digest, "long keys go through insert_bytes");
        self.totals.take(1, weight, weight)?;
        if weight >= u64::from(self.heavy.weight_limit()) {
            self.light.record(key, weight, Reason::Passed, sink);
            return Ok(());
        }
        let mut out = HandedOn::NOTHING;
        if self.heavy.offer(self.light.seed.hash(key), key, weight as u32, &mut out) == Offer::HandedOn {
            self.light.record(&out.key, out.weight().into(), out.reason(), sink);
        }
        Ok(())
    }

    /// Inserts items of weight 1: the same state and the same reports in the same order as inserting one by one,
    /// in less time. Voting is never deferred; counters and Bloom filter are, by up to 64 items, never past the return.
    #[inline]
    pub fn insert_batch(&mut self, keys: &[[u8; N]], sink: &mut impl ReportSink) {
        if !keys.is_empty() {
            self.totals.add(keys.len() as u64, keys.len() as u64, 1);
        }
        self.deferred(keys, |_| 1, sink);
    }

    /// Inserts weighted items, as [`DataPlane::insert_batch`]. A weight that is not allowed refuses the whole batch.
    pub fn insert_weighted_batch(
        &mut self,
        keys: &[[u8; N]],
        weights: &[u64],
        sink: &mut impl ReportSink,
    ) -> Result<(), ConfigError> {
        assert_eq!(keys.len(), weights.len(), "one weight a key");
        // All or nothing: the whole batch is checked before any of it counts.
        let mut totals = self.totals;
        weights.iter().try_for_each(|&weight| totals.take(1, weight, weight))?;
        let limit = u64::from(self.heavy.weight_limit());
        let mut rest = (keys, weights);
        // Weights too large for a slot are rare; they go one by one between the deferred runs.
        while !rest.0.is_empty() {
            let run = rest.1.iter().position(|&w| w >= limit).unwrap_or(rest.0.len());
            let (keys, weights) = (&rest.0[..run], &rest.1[..run]);
            for &weight in weights {
                self.totals.take(1, weight, weight)?;
            }
            self.deferred(keys, |i| weights[i] as u32, sink);
            if run < rest.0.len() {
                self.insert(&rest.0[run], rest.1[run], sink)?;
            }
            let next = (run + 1).min(rest.0.len());
            rest = (&rest.0[next..], &rest.1[next..]);
        }
        Ok(())
    }

    #[inline(always)]
    fn deferred(&mut self, keys: &[[u8; N]], weight: impl Fn(usize) -> u32, sink: &mut impl ReportSink) {
        let mut buffer = [HandedOn::NOTHING; CHUNK];
        for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
            let weight = |i| weight(chunk * CHUNK + i);
            let filled = self.heavy.offer_chunk(&self.light.seed, keys, weight, &mut buffer);
            self.light.record_all(&buffer[..filled], sink);
        }
    }

    /// Ends an epoch: sends the changed slots and the counters, and starts the counters again from zero.
    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        self.send_cut(true, sink);
        self.heavy.settle();
        self.light.counters.clear();
        self.light.carries = 0;
        if self.light.config.rule == ReportRule::Refresh {
            self.light.refresh.next_epoch(self.light.bloom.false_positive_rate());
        }
    }

    /// Sends what [`DataPlane::cut`] would send, and changes nothing: asking never disturbs the counting.
    pub fn peek(&self, sink: &mut impl ReportSink) {
        self.send_cut(false, sink);
    }

    fn send_cut(&self, reset: bool, sink: &mut impl ReportSink) {
        self.heavy.changes(|change| {
            let holder = change.taken.then_some(&change.key[..]);
            sink.report(Report::Slot { slot: change.slot, holder, count: change.count });
        });
        sink.report(Report::Cut(Cut {
            items: self.totals.items,
            weight: self.totals.weight,
            sketch_weight: self.light.sketch_weight,
            smallest_weight: self.totals.smallest_weight,
            carries: self.light.carries,
            counters: &self.light.counters,
            reset,
        }));
    }
}

impl<H: HeavyPart<16>> DataPlane<16, H> {
    /// Inserts one item whose key may have any length up to [`MAX_KEY_BYTES`]. The slot holds its digest, so the key is
    /// reported in full when it is first seen.
    pub fn insert_bytes(&mut self, key: &[u8], weight: u64, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        debug_assert!(self.light.config.keys == KeyFormat::Digest);
        if key.len() > MAX_KEY_BYTES {
            return Err(ConfigError::KeyTooLong { bytes: key.len() });
        }
        self.totals.take(1, weight, weight)?;
        let digest = digest(key, self.light.seed.digest_seed());
        let hash = self.light.seed.hash(&digest);
        let mut out = HandedOn::new(digest, 0, Reason::Passed);
        let too_heavy = weight >= u64::from(self.heavy.weight_limit());
        let offer = if too_heavy { Offer::HandedOn } else { self.heavy.offer(hash, &digest, weight as u32, &mut out) };
        if offer != Offer::Absorbed {
            // The name is at hand only now, so this is also where a lost one is sent again.
            let fresh = self.light.bloom.insert(hash);
            if fresh || (self.light.refresh.is_on() && self.light.refresh.chooses(hash)) {
                let flags = KeyFlags { hot: false, fresh };
                sink.report(Report::Key { key: KeyRef::Digested { digest, bytes: key }, flags });
            }
        }
        if offer == Offer::HandedOn {
            let weight = if too_heavy { weight } else { out.weight().into() };
            self.light.count(self.light.seed.hash(&out.key), weight, sink);
            // The key was sent when it was first seen: only its heat may be news.
            if out.reason() == Reason::EvictedHot && self.light.config.rule == ReportRule::Paper {
                let flags = KeyFlags { hot: true, fresh: false };
                sink.report(Report::Key { key: KeyRef::Digest(out.key), flags });
            }
        }
        Ok(())
    }
}

impl Light {
    /// Records what a batch handed on. Not inlined: the voting loop needs its registers.
    #[inline(never)]
    fn record_all<const N: usize>(&mut self, entries: &[HandedOn<N>], sink: &mut impl ReportSink) {
        // The usual four rows of whole-byte counters have a loop of their own, which knows both.
        if self.config.shape.rows == 4
            && let Some(words) = self.counters.unsigned()
        {
            let run = Run {
                map: self.map,
                seed: self.seed,
                rule: self.config.rule,
                refresh: self.refresh,
                bloom: &mut self.bloom,
                sketch_weight: &mut self.sketch_weight,
                carries: &mut self.carries,
            };
            return match words {
                Unsigned::B8(words) => run.record(words, entries, sink),
                Unsigned::B16(words) => run.record(words, entries, sink),
                Unsigned::B32(words) => run.record(words, entries, sink),
            };
        }
        for entry in entries {
            self.record(&entry.key, entry.weight().into(), entry.reason(), sink);
        }
    }

    /// Counts what the heavy part handed on, and reports its key by the rule.
    #[inline(always)]
    fn record<const N: usize>(&mut self, key: &[u8; N], weight: u64, reason: Reason, sink: &mut impl ReportSink) {
        let hash = self.seed.hash(key);
        let refresh = self.refresh.is_on() && {
            let first =
                (0..usize::from(self.config.shape.rows)).any(|row| self.counters.get(self.map.entry(hash, row).0) == 0);
            first && self.refresh.chooses(hash)
        };
        self.count(hash, weight, sink);
        let hot = reason == Reason::EvictedHot;
        let fresh = self.bloom.insert(hash);
        if fresh | refresh | (hot & (self.config.rule == ReportRule::Paper)) {
            sink.report(Report::Key { key: KeyRef::Whole(key), flags: KeyFlags { hot, fresh } });
        }
    }

    #[inline(always)]
    fn count(&mut self, hash: KeyHash, weight: u64, sink: &mut impl ReportSink) {
        self.sketch_weight += weight;
        for row in 0..usize::from(self.config.shape.rows) {
            let (at, negative) = self.map.entry(hash, row);
            let times = self.counters.add(at, negative, weight);
            if times != 0 {
                self.carries = self.carries.wrapping_add(times as u64);
                sink.report(Report::Carry { at: CounterIndex(at as u32), times });
            }
        }
    }
}

/// What [`Light::record`] works on, taken apart so that a loop over words of a known type keeps it in registers.
struct Run<'a> {
    map: RowMap,
    seed: HashSeed,
    rule: ReportRule,
    refresh: Refresh,
    bloom: &'a mut BloomFilter,
    sketch_weight: &'a mut u64,
    carries: &'a mut u64,
}

impl Run<'_> {
    /// [`Light::record`] for each entry, for four rows.
    #[inline(always)]
    fn record<W: Word, const N: usize>(self, words: &mut [W], entries: &[HandedOn<N>], sink: &mut impl ReportSink) {
        for entry in entries {
            let hash = self.seed.hash(&entry.key);
            let weight = u64::from(entry.weight());
            *self.sketch_weight += weight;
            let at = [0, 1, 2, 3].map(|row| self.map.entry(hash, row).0);
            let refresh =
                self.refresh.is_on() && at.iter().any(|&at| words[at].is_zero()) && self.refresh.chooses(hash);
            for at in at {
                let times = words[at].add(weight);
                if times != 0 {
                    *self.carries = self.carries.wrapping_add(times);
                    sink.report(Report::Carry { at: CounterIndex(at as u32), times: times as i64 });
                }
            }
            let hot = entry.reason() == Reason::EvictedHot;
            let fresh = self.bloom.insert(hash);
            if fresh | refresh | (hot & (self.rule == ReportRule::Paper)) {
                sink.report(Report::Key { key: KeyRef::Whole(&entry.key), flags: KeyFlags { hot, fresh } });
            }
        }
    }
}
