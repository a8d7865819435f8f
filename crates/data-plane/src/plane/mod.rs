//! The data plane: Algorithm 1 of the paper, per item, in a fixed budget.
//!
//! ```text
//! item -> heavy part -- own slot --------------------------> done
//!              \------ passed, or its former holder evicted -> counters (+ carries), Bloom filter -> report if new
//! ```
//! Behind Augmented Sketch's filter a passed key may then change places with a holder, by the
//! sketch's own estimate of it.

mod change;
mod merge;

pub use merge::MergeError;

use crate::bloom::{BloomFilter, BloomKind};
use crate::column::{BaseMap, CounterIndex, RowMap};
use crate::config::{Config, ConfigError, Memory};
use crate::counters::{Counters, Unsigned, Word};
use crate::hash::{HashSeed, KeyHash, MAX_DEGREE};
use crate::heavy::{AnyHeavy, CHUNK, HandedOn, HeavyPart, Offer, Reason, VotingFilter};
use crate::insert_error::InsertError;
use crate::key::{DigestKey, KeyFormat};
use crate::load::{KnownKeys, Limits};
use crate::report::{Cut, CutTotals, KeyFlags, KeyRef, Report, ReportRule, ReportSink};
use crate::resend::{Generations, Refresh, Rotation};
use crate::table::OutOfMemory;
use crate::totals::StreamTotals;

/// The device's half, which runs per item: heavy part, linear sketch and Bloom filter for keys of
/// `N` bytes in the slots.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DataPlane<const N: usize, H = VotingFilter<N>> {
    pub(crate) heavy: H,
    pub(crate) light: Light,
    pub(crate) totals: StreamTotals,
}

/// Everything behind the heavy part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Light {
    pub(crate) config: Config,
    // Of the seed, what a change has kept from the first configuration; the rest follows from this
    // one.
    pub(crate) seed: HashSeed,
    #[cfg_attr(feature = "serde", serde(skip, default = "crate::state::no_map"))]
    pub(crate) map: BaseMap,
    pub(crate) counters: Counters,
    pub(crate) bloom: BloomFilter,
    refresh: Refresh,
    rotation: Rotation,
    pub(crate) sketch_weight: u64,
    pub(crate) carries: u64,
    /// Counters of the first row that are not zero.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) touched: u32,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) generations: Generations,
    /// The keys reported, where epochs end by load.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(crate) known: Option<KnownKeys>,
}

impl<const N: usize> DataPlane<N> {
    /// Creates an empty data plane with the paper's voting filter in front.
    ///
    /// ```
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::Paper, seed: 1.into() };
    /// let mut plane = DataPlane::<4>::new(config)?;
    /// let mut reported = 0;
    /// let mut sink = |report: Report<'_>| reported += usize::from(matches!(report, Report::Key { .. }));
    /// for key in 0..10_000u32 {
    ///     plane.insert(&(key % 5_000).to_le_bytes(), 1, &mut sink)?;
    /// }
    /// assert!(reported > 1_000); // 5,000 keys do not fit into 3,000 slots
    /// assert!(plane.memory().total() <= 65_536);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        Self::with_heavy(config, VotingFilter::new(config.shape.slots, config.shape.vote_ratio)?)
    }
}

impl<const N: usize> DataPlane<N, AnyHeavy<N>> {
    /// Creates an empty data plane with the heavy part that the configuration names.
    ///
    /// ```
    /// use ucl_data_plane::{AnyHeavy, Base, Config, DataPlane, HeavyKind, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let shape = Shape { heavy: HeavyKind::Augmented, base: Base::CountSketch, slots: 10, ..Shape::PAPER_64KB };
    /// let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::Paper, seed: 1.into() };
    /// let mut plane = DataPlane::<4, AnyHeavy<4>>::any(config)?;
    /// plane.insert(&[7; 4], 5, &mut |_: Report<'_>| ())?;
    /// assert_eq!(plane.exact(&[7; 4]), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn any(config: Config) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        Self::with_heavy(config, AnyHeavy::new(&config.shape)?)
    }
}

impl<const N: usize, H: HeavyPart<N>> DataPlane<N, H> {
    /// An empty data plane behind `heavy`, which must be as the shape says.
    pub fn with_heavy(config: Config, heavy: H) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        if config.shape.heavy != heavy.kind() {
            return Err(ConfigError::Heavy { want: config.shape.heavy, got: heavy.kind() });
        }
        if config.keys.slot_bytes() != N {
            return Err(ConfigError::KeySize { want: config.keys.slot_bytes(), got: N });
        }
        let light = Light::new(config, HashSeed::new(config.seed))?;
        Ok(Self { heavy, light, totals: StreamTotals::default() })
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

    /// The key of the digests of long keys: the first configuration's, whatever became of the
    /// sketch.
    pub fn digest_key(&self) -> DigestKey {
        self.light.seed.digest_key()
    }

    /// Items inserted so far.
    pub fn items(&self) -> u64 {
        self.totals.items
    }

    /// Weight of the items.
    pub fn weight(&self) -> u64 {
        self.totals.weight
    }

    /// Bytes by part, as held.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        memory.add("heavy", self.heavy.memory());
        memory.add("counters", self.light.counters.memory());
        memory.add("bloom", self.light.bloom.memory());
        if self.light.config.keys != KeyFormat::Digest && !self.heavy.kind().sees_sketch() {
            memory.add("deferred", CHUNK * (size_of::<HandedOn<N>>() + size_of::<u32>()));
        }
        memory.add("known keys", self.light.known.as_ref().map_or(0, |_| KnownKeys::BYTES));
        memory
    }

    /// Counts the keys that are reported from now on, in [`DataPlane::KNOWN_KEYS_BYTES`] bytes, so
    /// that [`DataPlane::room`] can tell when an epoch should end.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn watch_load(&mut self) -> Result<(), ConfigError> {
        self.light.watch_load()
    }

    /// Bytes that [`DataPlane::watch_load`] takes.
    pub const KNOWN_KEYS_BYTES: usize = KnownKeys::BYTES;

    /// Returns the number of items that may be inserted before this is asked again, whatever they
    /// are, for the epoch to stay within [`LOAD_LIMIT`](crate::LOAD_LIMIT); 0 if it should end now,
    /// and `None` if the load is not watched.
    ///
    /// ```
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// let mut plane = DataPlane::<4>::new(config)?;
    /// plane.watch_load()?;
    /// let mut key = 0u32;
    /// while plane.room() > Some(0) {
    ///     plane.insert(&key.to_le_bytes(), 1, &mut |_: Report<'_>| ())?;
    ///     key += 1;
    /// }
    /// // 3,000 slots for heavy keys, and 4,096 counters for the others.
    /// assert!((3_000..9_000).contains(&key), "{key}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn room(&self) -> Option<u64> {
        self.light.room(if self.heavy.kind().sees_sketch() { 2 } else { 1 })
    }

    /// The weight that the heavy part holds exactly for a key (its slot bytes).
    pub fn exact(&self, key: &[u8; N]) -> u64 {
        self.heavy.exact(self.light.seed.hash(key), key)
    }

    /// Inserts one item.
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals.take(weight)?;
        if weight >= u64::from(self.heavy.weight_limit()) {
            self.light.record(key, weight, Reason::Passed, sink);
            return Ok(());
        }
        self.offer(key, weight as u32, sink);
        Ok(())
    }

    /// Keys of any length go through [`DataPlane::insert_bytes`]: here they would be taken for
    /// their digests.
    #[inline(always)]
    fn check_keys(&self) -> Result<(), InsertError> {
        // Settled by the compiler for all other sizes.
        if N == 16 && self.light.config.keys == KeyFormat::Digest { Err(InsertError::Digests) } else { Ok(()) }
    }

    /// Returns an error if a batch of so many items would be refused: a weight that is not allowed,
    /// a total that would pass 2^63, or another number of weights than of items. Items have weight
    /// 1 if no weights are given.
    pub fn check_batch(&self, items: usize, weights: Option<&[u64]>) -> Result<(), InsertError> {
        self.totals.with(items, weights).map(drop)
    }

    /// Offers one item to the heavy part, and records what it hands on.
    #[inline(always)]
    fn offer(&mut self, key: &[u8; N], weight: u32, sink: &mut impl ReportSink) {
        let hash = self.light.seed.hash(key);
        let mut out = HandedOn::NOTHING;
        if self.heavy.offer(hash, key, weight, &mut out) == Offer::HandedOn {
            self.light.record(&out.key, out.weight().into(), out.reason(), sink);
            if let Some(evicted) = self.exchange(hash, key, out.reason()) {
                self.light.record(&evicted.key, evicted.weight().into(), evicted.reason(), sink);
            }
        }
    }

    /// Gives a key that has just passed the chance to take a slot, if the heavy part does such
    /// things.
    #[inline(always)]
    fn exchange(&mut self, hash: KeyHash, key: &[u8; N], reason: Reason) -> Option<HandedOn<N>> {
        if !self.heavy.kind().sees_sketch() || reason != Reason::Passed {
            return None;
        }
        self.heavy.after_pass(hash, key, self.light.estimate(hash))
    }

    /// Inserts items of weight 1: the same state and the same reports in the same order as
    /// inserting one by one, in less time. Voting is never deferred; counters and Bloom filter are,
    /// by up to 64 items, never past the return.
    ///
    /// # Errors
    /// If the weight of the stream would pass 2^63. Then none of the items counts.
    #[inline]
    pub fn insert_batch(&mut self, keys: &[[u8; N]], sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals = self.totals.with(keys.len(), None)?;
        self.deferred(keys, |_| 1, sink);
        Ok(())
    }

    /// Inserts weighted items, as [`DataPlane::insert_batch`].
    ///
    /// # Errors
    /// If a weight is not allowed, the weight of the stream would pass 2^63, or there is not one
    /// weight for each key. Then none of the items counts.
    pub fn insert_weighted_batch(
        &mut self,
        keys: &[[u8; N]],
        weights: &[u64],
        sink: &mut impl ReportSink,
    ) -> Result<(), InsertError> {
        self.check_keys()?;
        // All or nothing: the whole batch is checked before any of it counts.
        self.totals = self.totals.with(keys.len(), Some(weights))?;
        let limit = u64::from(self.heavy.weight_limit());
        let mut rest = (keys, weights);
        // Weights too large for a slot are rare; they go one by one between the deferred runs.
        while !rest.0.is_empty() {
            let run = rest.1.iter().position(|&w| w >= limit).unwrap_or(rest.0.len());
            let (keys, weights) = (&rest.0[..run], &rest.1[..run]);
            self.deferred(keys, |i| weights[i] as u32, sink);
            if run < rest.0.len() {
                self.light.record(&rest.0[run], rest.1[run], Reason::Passed, sink);
            }
            let next = (run + 1).min(rest.0.len());
            rest = (&rest.0[next..], &rest.1[next..]);
        }
        Ok(())
    }

    #[inline(always)]
    fn deferred(&mut self, keys: &[[u8; N]], weight: impl Fn(usize) -> u32, sink: &mut impl ReportSink) {
        if self.heavy.kind().sees_sketch() {
            // An exchange needs the counters as they are after the pass.
            for (i, key) in keys.iter().enumerate() {
                self.offer(key, weight(i), sink);
            }
            return;
        }
        let mut buffer = [HandedOn::NOTHING; CHUNK];
        for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
            let weight = |i| weight(chunk * CHUNK + i);
            let filled = self.heavy.offer_chunk(&self.light.seed, keys, weight, &mut buffer);
            self.light.record_all(&buffer[..filled], sink);
        }
    }

    /// Ends an epoch: sends the changed slots and the counters, and starts the counters again from
    /// zero.
    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        self.send_cut(true, sink);
        self.heavy.settle();
        self.light.next_epoch();
    }

    /// Forgets no name while `hold` ([`ReportRule::Generations`]): then the names of an epoch of
    /// any length stay within what the filter can hold. A data plane that was restored does not
    /// hold them.
    pub fn hold_names(&mut self, hold: bool) {
        self.light.generations.held = hold;
    }

    /// Sends what [`DataPlane::cut`] would send, and changes nothing: asking never disturbs the
    /// counting.
    pub fn peek(&self, sink: &mut impl ReportSink) {
        self.send_cut(false, sink);
    }

    fn send_cut(&self, reset: bool, sink: &mut impl ReportSink) {
        self.heavy.changes(|change| {
            let holder = change.taken.then_some(&change.key[..]);
            sink.report(Report::Slot { slot: change.slot, holder, count: change.count });
        });
        let totals = CutTotals {
            items: self.totals.items,
            weight: self.totals.weight,
            sketch_weight: self.light.sketch_weight,
            smallest_weight: self.totals.smallest_weight,
            carries: self.light.carries,
        };
        sink.report(Report::Cut(Cut { totals, counters: &self.light.counters, reset }));
    }
}

impl<H: HeavyPart<16>> DataPlane<16, H> {
    /// Inserts one item whose key may have any length up to
    /// [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES). The slot holds its digest, so the key is reported
    /// in full when it is first seen.
    pub fn insert_bytes(&mut self, key: &[u8], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        let format = self.light.config.keys;
        if format != KeyFormat::Digest {
            return Err(InsertError::NoDigests);
        }
        format.check(key.len())?;
        self.totals.take(weight)?;
        let digest = self.light.seed.digest_key().digest(key);
        let hash = self.light.seed.hash(&digest);
        let mut out = HandedOn::new(digest, 0, Reason::Passed);
        let too_heavy = weight >= u64::from(self.heavy.weight_limit());
        let offer = if too_heavy { Offer::HandedOn } else { self.heavy.offer(hash, &digest, weight as u32, &mut out) };
        if offer != Offer::Absorbed {
            // The name is at hand only now, so this is also where a lost one is sent again.
            let fresh = self.light.is_new(hash);
            if fresh || (self.light.refresh.is_on() && self.light.refresh.chooses(hash)) {
                self.light.known.iter_mut().for_each(|known| known.insert(hash));
                let flags = KeyFlags { hot: false, fresh: fresh & self.light.rotation.has_all() };
                sink.report(Report::Key { key: KeyRef::Digested { digest, bytes: key }, flags });
            }
        }
        if offer == Offer::HandedOn {
            let weight = if too_heavy { weight } else { out.weight().into() };
            self.light.record_digest(&out.key, weight, out.reason(), sink);
            if !too_heavy && let Some(evicted) = self.exchange(hash, &digest, out.reason()) {
                self.light.record_digest(&evicted.key, evicted.weight().into(), evicted.reason(), sink);
            }
        }
        Ok(())
    }
}

impl Light {
    pub(crate) fn new(config: Config, seed: HashSeed) -> Result<Self, OutOfMemory> {
        let shape = config.shape;
        let bloom = BloomFilter::new(shape.bloom, shape.sketch_bloom_bits(), shape.bloom_hashes)?;
        Ok(Self {
            config,
            seed,
            map: BaseMap::new(&shape),
            counters: Counters::new(shape.geometry().counters(), shape.counter_bits, shape.signed())?,
            generations: Generations::new(&bloom),
            bloom,
            refresh: Refresh::default(),
            rotation: Rotation::default(),
            sketch_weight: 0,
            carries: 0,
            touched: 0,
            known: None,
        })
    }

    /// Counts the keys that are reported from now on.
    pub(crate) fn watch_load(&mut self) -> Result<(), ConfigError> {
        self.known = Some(KnownKeys::new()?);
        Ok(())
    }

    /// Items that may come before the load is to be looked at again, if each adds so many keys at
    /// most; `None` if the load is not watched.
    pub(crate) fn room(&self, keys_per_item: u8) -> Option<u64> {
        let known = self.known.as_ref()?;
        let limits = Limits::new(self.config.shape.geometry(), keys_per_item);
        Some(limits.room(self.touched, known.estimate()))
    }

    /// The counters were sent: they start again from zero.
    pub(crate) fn next_epoch(&mut self) {
        self.counters.clear();
        (self.carries, self.touched) = (0, 0);
        match self.config.rule {
            ReportRule::Paper | ReportRule::New | ReportRule::Generations => {}
            ReportRule::Refresh => self.refresh.next_epoch(self.bloom.false_positive_rate()),
            ReportRule::Rotate => self.rotation.next_epoch(&mut self.bloom),
        }
    }

    /// Forgets everything that was counted, in the same memory.
    pub(crate) fn clear(&mut self) {
        self.counters.clear();
        self.bloom.clear();
        (self.refresh, self.rotation) = (Refresh::default(), Rotation::default());
        (self.sketch_weight, self.carries) = (0, 0);
        self.recount();
        self.known.iter_mut().for_each(KnownKeys::clear);
    }

    /// Returns true if the filter does not have a key, which it has from now on.
    #[inline(always)]
    pub(crate) fn is_new(&mut self, hash: KeyHash) -> bool {
        is_new(self.config.rule, &mut self.generations, &mut self.rotation, &mut self.bloom, hash)
    }

    /// Counts anew which counters of the first row are not zero, and how full the halves of a
    /// filter by generation are.
    pub(crate) fn recount(&mut self) {
        if self.config.rule == ReportRule::Generations && self.bloom.kind != BloomKind::Recent {
            self.generations = self.generations.recounted(&self.bloom);
        }
        let first_row = self.config.shape.geometry().width as usize;
        self.touched = self.counters.iter().take(first_row).filter(|&counter| counter != 0).count() as u32;
    }

    /// Records what a batch handed on. Not inlined: the voting loop needs its registers.
    #[inline(never)]
    fn record_all<const N: usize>(&mut self, entries: &[HandedOn<N>], sink: &mut impl ReportSink) {
        // The usual four rows of whole-byte counters have a loop of their own, which knows both.
        if let BaseMap::Rows(map) = self.map
            && self.config.shape.rows == 4
            && let Some(words) = self.counters.unsigned()
        {
            let run = Run {
                map,
                seed: self.seed,
                rule: self.config.rule,
                refresh: self.refresh,
                rotation: &mut self.rotation,
                generations: &mut self.generations,
                bloom: &mut self.bloom,
                sketch_weight: &mut self.sketch_weight,
                carries: &mut self.carries,
                touched: &mut self.touched,
                known: self.known.as_mut(),
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
            let mut first = false;
            self.map.entries(hash, |at, _| first |= self.counters.get(at) == 0);
            first && self.refresh.chooses(hash)
        };
        self.count(hash, weight, sink);
        let hot = reason == Reason::EvictedHot;
        let fresh = self.is_new(hash);
        if fresh | refresh | (hot & (self.config.rule == ReportRule::Paper)) {
            self.known.iter_mut().for_each(|known| known.insert(hash));
            let flags = KeyFlags { hot, fresh: fresh & self.rotation.has_all() };
            sink.report(Report::Key { key: KeyRef::Whole(key), flags });
        }
    }

    /// The same for a key that is known by its digest.
    fn record_digest(&mut self, digest: &[u8; 16], weight: u64, reason: Reason, sink: &mut impl ReportSink) {
        self.count(self.seed.hash(digest), weight, sink);
        // The key was sent when it was first seen: only its heat may be news.
        if reason == Reason::EvictedHot && self.config.rule == ReportRule::Paper {
            let flags = KeyFlags { hot: true, fresh: false };
            sink.report(Report::Key { key: KeyRef::Digest(*digest), flags });
        }
    }

    #[inline(always)]
    pub(crate) fn count(&mut self, hash: KeyHash, weight: u64, sink: &mut impl ReportSink) {
        self.sketch_weight += weight;
        let first_row = self.config.shape.geometry().width as usize;
        self.map.entries(hash, |at, negative| {
            let before = self.counters.get(at) != 0;
            let times = self.counters.add(at, negative, weight);
            if at < first_row {
                // A counter that overflows to zero is touched again by what comes next.
                self.touched += u32::from(self.counters.get(at) != 0);
                self.touched -= u32::from(before);
            }
            if times != 0 {
                self.carries = self.carries.wrapping_add(times as u64);
                sink.report(Report::Carry { at: CounterIndex(at as u32), times });
            }
        });
    }

    /// Estimates a key by the sketch alone, from the present counters: their minimum, or their
    /// median if they have signs (the lower one of two).
    pub(crate) fn estimate(&self, hash: KeyHash) -> u64 {
        let mut values = [0i64; MAX_DEGREE];
        let mut degree = 0;
        self.map.entries(hash, |at, negative| {
            let value = self.counters.get(at);
            values[degree] = if negative { -value } else { value };
            degree += 1;
        });
        let values = &mut values[..degree];
        values.sort_unstable();
        let rank = if self.counters.signed() { (degree - 1) / 2 } else { 0 };
        values[rank].max(0) as u64
    }
}

/// Returns true if a filter does not have a key, which it has from now on.
#[inline(always)]
fn is_new(
    rule: ReportRule,
    generations: &mut Generations,
    rotation: &mut Rotation,
    bloom: &mut BloomFilter,
    hash: KeyHash,
) -> bool {
    if rule == ReportRule::Generations || bloom.kind == BloomKind::Recent {
        generations.is_new(rotation, bloom, hash)
    } else {
        bloom.insert(hash)
    }
}

/// Fields that [`Light::record`] works on, taken apart so that a loop over words of a known type
/// keeps it in registers.
struct Run<'a> {
    map: RowMap,
    seed: HashSeed,
    rule: ReportRule,
    refresh: Refresh,
    rotation: &'a mut Rotation,
    generations: &'a mut Generations,
    bloom: &'a mut BloomFilter,
    sketch_weight: &'a mut u64,
    carries: &'a mut u64,
    touched: &'a mut u32,
    known: Option<&'a mut KnownKeys>,
}

impl Run<'_> {
    /// [`Light::record`] for each entry, for four rows: first the counters of all, then the filter.
    /// Whether a key is new is a coin toss for the processor, and the less is under way when it
    /// guesses wrong, the better.
    #[inline(always)]
    fn record<W: Word, const N: usize>(mut self, words: &mut [W], entries: &[HandedOn<N>], sink: &mut impl ReportSink) {
        const { assert!(CHUNK <= u64::BITS as usize) }
        // A bit for each entry.
        let mut refreshed = 0u64;
        for (i, entry) in entries.iter().enumerate() {
            let hash = self.seed.hash(&entry.key);
            let weight = u64::from(entry.weight());
            *self.sketch_weight += weight;
            // Written out: `map` over an array becomes a call.
            let at = |row| self.map.entry(hash, row).0;
            let at = [at(0), at(1), at(2), at(3)];
            let refresh =
                self.refresh.is_on() && at.iter().any(|&at| words[at].is_zero()) && self.refresh.chooses(hash);
            refreshed |= u64::from(refresh) << i;
            *self.touched += u32::from(words[at[0]].is_zero());
            for at in at {
                let times = words[at].add(weight);
                if times != 0 {
                    *self.carries = self.carries.wrapping_add(times);
                    sink.report(Report::Carry { at: CounterIndex(at as u32), times: times as i64 });
                }
            }
            *self.touched -= u32::from(words[at[0]].is_zero());
        }
        for (i, entry) in entries.iter().enumerate() {
            let hash = self.seed.hash(&entry.key);
            let hot = entry.reason() == Reason::EvictedHot;
            let fresh = is_new(self.rule, self.generations, self.rotation, self.bloom, hash);
            if fresh | (refreshed >> i & 1 != 0) | (hot & (self.rule == ReportRule::Paper)) {
                self.known.iter_mut().for_each(|known| known.insert(hash));
                let flags = KeyFlags { hot, fresh: fresh & self.rotation.has_all() };
                sink.report(Report::Key { key: KeyRef::Whole(&entry.key), flags });
            }
        }
    }
}
