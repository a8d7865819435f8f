//! A data plane whose evictions go up the link while it allows, and into a sketch when it does not.
//!
//! The table is that of [`MirroredPlane`](super::MirroredPlane), and the sketch behind it that of
//! [`DataPlane`](crate::DataPlane). A newcomer that takes a slot is *exported*: the record tells
//! who it is and what its predecessor had. A newcomer that takes none is *absorbed* by the sketch,
//! and so is a count that is full while there are no tokens. No slot changes its holder unreported,
//! so the mirror stays true at no cost.
//!
//! # Who is exported
//!
//! What is left of the allowance is held against what a cut would cost at this moment: that much is
//! kept for it, up to three quarters of the allowance. What is free beyond it decides:
//!
//! - From a batch's worth of free tokens on, every newcomer is exported, as in mode exact.
//! - Below, the frequent ones are: the less is free, the more of a key has to be in this epoch's
//!   counters. What the sketch holds of a key that is never named is lost to the server, and so the
//!   heaviest of them go first.
//! - Without free tokens all are absorbed.
//!
//! There is no filter of the keys that were exported before. One that kept those from going up
//! again was measured, and hardly changed the errors for all the memory it took: the counters
//! already say who is worth it.
//!
//! A holder's full count goes up as well. Where the counters take it without an overflow, it keeps
//! to what is free, like a newcomer; where they do not, absorbing it would save nothing.
//!
//! # Names without a record
//!
//! A record has the key. That of a key of fixed size takes a few bytes, and there is no cheaper way
//! to name it. That of a code takes seven, and a name that is sent once takes as little as two. So
//! keys of any length are *named* while less than a batch's worth is free, and absorbed: the sketch
//! tells the counts of keys that have names. Records have only what the cuts and the names of an
//! epoch leave. (Six streams of text at half of what exact counting takes: errors fell to between
//! a seventh and four fifths, together with a larger filter of names and more counters.)
//!
//! # When an epoch ends
//!
//! When the sketch is as full as can be decoded, but cuts have no more of the allowance than
//! exports, or than names: the counters of keys without names tell nothing. The epoch goes on until
//! then.

use alloc::boxed::Box;

use super::allowance::{Allowance, CountSizes, Prices, entropy, entropy_bound};
use super::code::Tag;
use super::name_price::NamePrice;
use super::names::NamesSent;
use super::plane::{FRAME_BYTES, check_change, table_of};
use super::{MirroredPart, Pieces};
use crate::codes::CodedKey;
use crate::config::{Config, ConfigError, Memory, Shape, range};
use crate::counters::CounterWords;
use crate::hash::{HashSeed, KeyHash};
use crate::insert_error::InsertError;
use crate::key::{DigestKey, KeyFormat};
use crate::load::KnownKeys;
use crate::plane::{Light, MergeError};
use crate::report::{Cut, CutTotals, KeyFlags, KeyRef, Opening, Report, ReportSink};
use crate::table::OutOfMemory;
use crate::totals::{StreamTotals, joint_weight};

/// Bytes beside table and sketch.
pub(crate) const FIXED_BYTES: usize = FRAME_BYTES + size_of::<BudgetPlane<4>>() - size_of::<MirroredPart<4>>();

/// Bytes that the frame of a table's message takes at most, with the digest at a cut.
const EXPORT_FRAME: u64 = 36;
/// Bytes that the frame and the totals of a cut take at most.
const CUT_FRAME: u64 = 96;
/// Bits of a record beside the tag: set, way, kind and count.
const RECORD_BITS: u32 = 14;
/// An epoch ends when exports had so many times of what the cut costs. (With 1 in place of 4 the
/// errors of eleven streams at half of what exact counting takes were larger by a half, and with 8
/// they were as large.)
const EXPORTS_PER_CUT: u64 = 4;
/// The same where names go up without records.
const NAMES_PER_CUT: u64 = 1;
/// Items between two looks at the allowance of an epoch that should end.
const LOOK: u64 = 256;

/// Counts keys exactly while the allowance lasts, and in a sketch when it does not.
///
/// ```
/// use ucl_data_plane::mirrored::{Allowance, BudgetPlane, MirroredShape};
/// use ucl_data_plane::{Config, KeyFormat, Report, ReportRule, Shape};
///
/// let keys = KeyFormat::Fixed(4);
/// let table = MirroredShape::within(16_384, keys).expect("16KB are enough");
/// let config = Config { keys, shape: Shape::absorbing(table, 1_024, 0, 1), rule: ReportRule::New, seed: 7.into() };
/// let mut plane = BudgetPlane::<4>::new(config)?;
/// plane.set_allowance(Allowance::per_item(0.5));
/// for i in 0..100_000u32 {
///     plane.insert(&(i % 997 * (i % 1_009)).to_le_bytes(), 1, &mut |_: Report<'_>| ())?;
/// }
/// assert!(plane.absorbed() > 0 && plane.allowance().spent() < 50_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BudgetPlane<const N: usize> {
    pub(super) part: MirroredPart<N>,
    pub(super) light: Light,
    /// For keys of any length.
    pub(super) names: Option<Box<Names>>,
    pub(super) totals: StreamTotals,
    pub(super) allowance: Allowance,
    pub(super) prices: Prices,
    /// Weight that the table has sent off.
    pub(super) exported: u64,
    /// Weight in the sketch, and bytes spent, at the last cut.
    pub(super) absorbed_before: u64,
    pub(super) spent_before: u64,
    /// Nothing may go up the link.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) frozen: bool,
}

/// What becomes of a newcomer.
enum Fate {
    /// It takes a slot, and a record goes up.
    Exported,
    /// Its name goes up, and the sketch counts it.
    Named,
    /// The sketch counts it.
    Absorbed,
}

/// The names that go up the link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Names {
    pub(super) sent: NamesSent,
    pub(super) price: NamePrice,
    /// Bytes that names without a record took since the last cut.
    since_cut: u64,
    /// Bytes that the last cut took, and the names before it.
    last_epoch: u64,
}

impl Names {
    /// Bytes that it takes beside its filters.
    pub const BYTES: usize = size_of::<Self>() + NamePrice::BYTES;

    fn new(shape: &Shape) -> Result<Self, OutOfMemory> {
        Ok(Self { sent: NamesSent::new(shape)?, price: NamePrice::new(), since_cut: 0, last_epoch: 0 })
    }

    /// Forgets all names.
    fn clear(&mut self) {
        self.sent.clear();
        self.price = NamePrice::new();
        (self.since_cut, self.last_epoch) = (0, 0);
    }

    /// An epoch ended with a cut of so many bytes.
    fn next_epoch(&mut self, cut: u64) {
        self.last_epoch = cut.saturating_add(core::mem::take(&mut self.since_cut));
    }
}

impl<const N: usize> BudgetPlane<N> {
    /// Bytes of a carry, with its place among the counters.
    pub const CARRY_BYTES: u64 = 3;

    /// An empty data plane, without a limit.
    ///
    /// # Errors
    /// If the configuration has no mirrored table with a sketch behind it, or is for keys of
    /// another size.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_seed(config, HashSeed::new(config.seed))
    }

    fn with_seed(config: Config, seed: HashSeed) -> Result<Self, ConfigError> {
        config.shape.validate()?;
        let table = table_of::<N>(&config)?;
        // A single counter tells no keys apart.
        range("counters", config.shape.geometry().counters() as u64, 2, u64::MAX)?;
        let part = MirroredPart::new(table, config.keys, config.seed);
        let prices = Prices::at_most(part.layout.quotient_bits + part.layout.rest_bits + RECORD_BITS);
        Ok(Self {
            part,
            prices,
            light: Light::new(config, seed)?,
            names: config.keys.any_length().then(|| Names::new(&config.shape).map(Box::new)).transpose()?,
            totals: StreamTotals::default(),
            allowance: Allowance::UNLIMITED,
            exported: 0,
            absorbed_before: 0,
            spent_before: 0,
            frozen: false,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.light.config
    }

    /// The key of the codes of long keys: the first configuration's, whatever became of the table.
    pub fn digest_key(&self) -> DigestKey {
        self.light.seed.digest_key()
    }

    /// Items inserted so far.
    pub fn items(&self) -> u64 {
        self.totals.items
    }

    /// Total weight of all items inserted.
    pub fn weight(&self) -> u64 {
        self.totals.weight
    }

    /// Weight that went into the sketch, in this segment.
    pub fn absorbed(&self) -> u64 {
        self.light.sketch_weight
    }

    /// What may go up the link.
    pub fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// Sets what may go up the link from now on, and what was spent of it.
    pub fn set_allowance(&mut self, allowance: Allowance) {
        self.allowance = allowance.with_advance(self.advance());
        self.spent_before = self.allowance.spent();
    }

    /// What a plane may spend before it has earned it.
    fn advance(&self) -> u64 {
        2 * u64::from(self.part.shape().buffer)
    }

    /// Adds tokens.
    pub fn grant(&mut self, bytes: u64) {
        self.allowance.grant(bytes);
    }

    /// Takes tokens for what goes up the link beside the plane's own messages.
    pub fn spend(&mut self, bytes: u64) {
        self.allowance.debit(bytes);
    }

    /// Freezes the table, or lets it go on: while it is frozen everything that it would send is
    /// absorbed, whatever the allowance. The carries of that time are not debited: who freezes the
    /// table holds them back, and debits what they take in the end ([`BudgetPlane::CARRY_BYTES`]).
    /// A data plane that was restored is not frozen.
    pub fn freeze(&mut self, freeze: bool) {
        self.frozen = freeze;
    }

    /// Bytes by part, as held.
    pub fn memory(&self) -> Memory {
        let mut memory = self.part.memory();
        memory.add("counters", self.light.counters.memory());
        memory.add("names", self.names.as_ref().map_or(0, |names| names.sent.memory() + Names::BYTES));
        memory.add("known keys", self.light.known.as_ref().map_or(0, |_| KnownKeys::BYTES));
        memory.add("totals", FIXED_BYTES);
        memory
    }

    /// Bytes that a cut would send now, about.
    fn reserve(&self) -> u64 {
        let waiting = self.part.batch.len() as u64 * u64::from(self.prices.record) / 128;
        let live = self.live_bound() * u64::from(self.prices.live) / 100;
        let counters = self.counters_bound() * u64::from(self.prices.counters) / 100;
        EXPORT_FRAME + CUT_FRAME + waiting + live + counters
    }

    /// The most bytes that the counts in the slots take.
    fn live_bound(&self) -> u64 {
        let shape = self.part.shape();
        let live = self.totals.weight - self.exported - self.light.sketch_weight;
        entropy_bound(shape.slots() as u64, live, shape.count_bits.into())
    }

    /// The most bytes that the counters take.
    fn counters_bound(&self) -> u64 {
        let shape = &self.light.config.shape;
        let sum = (self.light.sketch_weight - self.absorbed_before).saturating_mul(shape.rows.into());
        entropy_bound(shape.geometry().counters() as u64, sum, shape.counter_bits.bits())
    }

    /// A batch was sent: what it took, and what is left, tell what the next cut will take.
    #[inline(never)]
    fn learn_prices(&mut self, records: usize, bytes: u64) {
        self.prices.learn_record(records, bytes);
        let mut sizes = CountSizes::default();
        for set in 0..self.part.table.sets() {
            self.part.table.standings(set).iter().for_each(|slot| sizes.add(slot.count));
        }
        self.prices.live = Prices::share(sizes.bytes(), self.live_bound());
        self.prices.counters = Prices::share(counters_bytes(&self.light.counters.words()), self.counters_bound());
    }

    /// Runs `send` on the table, and learns from what it sent.
    #[inline]
    fn export<T>(
        &mut self,
        sink: &mut impl ReportSink,
        send: impl FnOnce(&mut MirroredPart<N>, &mut dyn FnMut(Pieces<'_>)) -> T,
    ) -> T {
        let (records, spent) = (self.part.batch.len(), self.allowance.spent());
        let Self { part, allowance, .. } = self;
        let done = send(part, &mut |piece| {
            debit(piece, allowance);
            sink.report(Report::Export(piece));
        });
        if self.part.batch.len() <= records && !self.allowance.is_unlimited() {
            self.learn_prices(records, self.allowance.spent() - spent);
        }
        done
    }

    /// Bytes that may be spent now.
    fn free(&self) -> i64 {
        let items = self.totals.items;
        let reserve = self.reserve().min(self.allowance.allowed(items) / 4 * 3);
        self.allowance.left(items).saturating_sub_unsigned(reserve)
    }

    /// Returns true if the allowance has a cut left, and so many bytes beside it.
    pub fn affords_cut(&self, beside: u64) -> bool {
        let left = self.allowance.left(self.totals.items);
        let price = self.reserve().saturating_add(beside);
        self.allowance.is_unlimited() || left >= price.min(i64::MAX as u64) as i64
    }

    /// Whether exports and names have had their share since the last cut.
    fn has_exported(&self) -> bool {
        let since = self.allowance.spent() - self.spent_before;
        let share = if self.names.is_some() { NAMES_PER_CUT } else { EXPORTS_PER_CUT };
        self.allowance.is_unlimited() || since >= share * self.reserve()
    }

    /// Whether a full count is absorbed without a counter that overflows. If one does, that takes
    /// as much as a record: nothing is saved.
    fn absorbs_full(&self) -> bool {
        let shape = &self.light.config.shape;
        u64::from(shape.rows) << self.part.shape().count_bits >> shape.counter_bits.bits() == 0
    }

    /// Whether the full count of a holder goes up.
    fn sends_full(&self) -> bool {
        if self.frozen || self.allowance.is_unlimited() {
            return !self.frozen;
        }
        let left = if self.absorbs_full() { self.free() } else { self.allowance.left(self.totals.items) };
        left > 0
    }

    /// Returns what becomes of a newcomer.
    fn fate(&self, hash: KeyHash) -> Fate {
        if self.frozen {
            return Fate::Absorbed;
        }
        if self.allowance.is_unlimited() {
            return Fate::Exported;
        }
        let ample = i64::from(self.part.shape().buffer);
        let free = self.free();
        // Full counts of those who have a slot come first.
        let for_records = free.saturating_sub(if self.absorbs_full() { ample / 4 } else { 0 });
        match &self.names {
            None if self.is_worth(for_records, hash) => Fate::Exported,
            Some(names) if for_records.saturating_sub_unsigned(names.last_epoch) >= ample => Fate::Exported,
            Some(_) if self.is_worth(free, hash) => Fate::Named,
            _ => Fate::Absorbed,
        }
    }

    /// Whether a key may take some of the bytes that are free: the fewer they are, the more of it
    /// has to be in the counters.
    fn is_worth(&self, free: i64, hash: KeyHash) -> bool {
        let ample = i64::from(self.part.shape().buffer);
        if free <= 0 || free >= ample {
            return free > 0;
        }
        // In items of the usual weight.
        let usual = (self.totals.weight / self.totals.items.max(1)).max(1);
        let items = (self.light.estimate(hash) / usual).min(i64::MAX as u64 / 2) as i64;
        (items + 1).saturating_mul(free) >= ample
    }

    /// Counts an item whose totals were taken. `name` is a key of any length.
    #[inline]
    fn count(&mut self, key: &[u8; N], weight: u64, name: Option<&[u8]>, sink: &mut impl ReportSink) {
        let (set, tag) = self.part.code.split(key);
        match self.part.table.find::<N, false>(set, &tag) {
            Some(way) => {
                let times = self.part.table.hit::<false>(set, way, weight);
                if times > 0 {
                    self.full(key, set, way, times, sink);
                }
            }
            None => self.newcomer(key, (set, tag), weight, name, sink),
        }
    }

    #[inline(never)]
    fn full(&mut self, key: &[u8; N], set: u32, way: usize, times: u64, sink: &mut impl ReportSink) {
        let weight = times << self.part.shape().count_bits;
        if self.sends_full() {
            self.exported += weight;
            self.export(sink, |part, mut out| part.full(set, way, times, &mut out));
        } else {
            self.absorb(key, weight, sink);
        }
    }

    #[inline(never)]
    fn newcomer(
        &mut self,
        key: &[u8; N],
        (set, tag): (u32, Tag),
        weight: u64,
        name: Option<&[u8]>,
        sink: &mut impl ReportSink,
    ) {
        let hash = self.light.seed.hash(key);
        match self.fate(hash) {
            Fate::Exported => {}
            Fate::Named => {
                self.name_alone(key, hash, name, sink);
                return self.absorb(key, weight, sink);
            }
            Fate::Absorbed => return self.absorb(key, weight, sink),
        }
        self.light.known.iter_mut().for_each(|known| known.insert(hash));
        if let Some(name) = name {
            self.send_name(hash, name, sink);
        }
        let left = self.export(sink, |part, mut out| part.miss(set, tag, weight, &mut out));
        let bits = self.part.shape().count_bits;
        self.exported += left + (weight >> bits << bits);
    }

    /// Names a key that is absorbed. A code that tells its key has no name, but the server has not
    /// seen the code.
    fn name_alone(&mut self, key: &[u8; N], hash: KeyHash, name: Option<&[u8]>, sink: &mut impl ReportSink) {
        let coded = match self.light.config.keys {
            KeyFormat::Code(bits) if name.is_none() => {
                let code = u64::from_le_bytes(core::array::from_fn(|i| key[i]));
                self.light.seed.digest_key().key_of_code(code, bits)
            }
            _ => None,
        };
        let Some(name) = name.or_else(|| coded.as_ref().map(CodedKey::bytes)) else { return };
        let Some(price) = self.send_name(hash, name, sink) else { return };
        self.names.iter_mut().for_each(|names| names.since_cut += price);
        self.light.known.iter_mut().for_each(|known| known.insert(hash));
    }

    /// Sends a name, unless it was sent before. Returns what it takes.
    fn send_name(&mut self, hash: KeyHash, name: &[u8], sink: &mut impl ReportSink) -> Option<u64> {
        let names = self.names.as_mut()?;
        if !names.sent.is_new(hash) {
            return None;
        }
        let price = names.price.of(name);
        self.allowance.debit(price);
        sink.report(Report::Key { key: KeyRef::Name(name), flags: KeyFlags::default() });
        Some(price)
    }

    fn absorb(&mut self, key: &[u8; N], weight: u64, sink: &mut impl ReportSink) {
        let price = if self.frozen { 0 } else { Self::CARRY_BYTES };
        let allowance = &mut self.allowance;
        self.light.count(self.light.seed.hash(key), weight, &mut |report: Report<'_>| {
            allowance.debit(price);
            sink.report(report);
        });
    }

    /// Inserts one item.
    ///
    /// # Errors
    /// If the weight is not allowed, or keys may have any length ([`BudgetPlane::insert_bytes`]).
    #[inline]
    pub fn insert(&mut self, key: &[u8; N], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.totals.take(weight)?;
        self.count(key, weight, None, sink);
        Ok(())
    }

    #[inline(always)]
    fn check_keys(&self) -> Result<(), InsertError> {
        // Settled by the compiler for all other sizes.
        if N == 8 && self.light.config.keys.any_length() { Err(InsertError::Digests) } else { Ok(()) }
    }

    /// Returns an error if a batch of so many items would be refused; see
    /// [`DataPlane::check_batch`](crate::DataPlane::check_batch).
    pub fn check_batch(&self, items: usize, weights: Option<&[u64]>) -> Result<(), InsertError> {
        self.totals.with(items, weights).map(drop)
    }

    /// Inserts items of weight 1.
    ///
    /// # Errors
    /// If the weight of the stream would pass 2^63. Then none of the items counts.
    pub fn insert_batch(&mut self, keys: &[[u8; N]], sink: &mut impl ReportSink) -> Result<(), InsertError> {
        self.check_keys()?;
        self.check_batch(keys.len(), None)?;
        for key in keys {
            // One by one: what is free depends on the totals.
            self.totals.add(1, 1, 1);
            self.count(key, 1, None, sink);
        }
        Ok(())
    }

    /// Inserts weighted items.
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
        self.check_batch(keys.len(), Some(weights))?;
        for (key, &weight) in keys.iter().zip(weights) {
            self.totals.add(1, weight, weight);
            self.count(key, weight, None, sink);
        }
        Ok(())
    }

    /// Counts the keys that are exported from now on, so that [`BudgetPlane::room`] can tell when
    /// an epoch should end.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn watch_load(&mut self) -> Result<(), ConfigError> {
        self.light.watch_load()
    }

    /// Returns the number of items that may be inserted before this is asked again; 0 if the epoch
    /// should end now, and `None` if the load is not watched. An epoch ends when the sketch is as
    /// full as it can be decoded, and the allowance has a cut left; until then it goes on.
    pub fn room(&self) -> Option<u64> {
        match self.light.room(1)? {
            0 if !(self.affords_cut(0) && self.has_exported()) => Some(LOOK),
            room => Some(room),
        }
    }

    /// Ends an epoch: sends what waits, all counts, and what the sketch has absorbed.
    pub fn cut(&mut self, sink: &mut impl ReportSink) {
        let before = self.allowance.spent();
        let Self { part, allowance, .. } = self;
        part.cut(&mut |piece| {
            debit(piece, allowance);
            sink.report(Report::Export(piece));
        });
        self.allowance.debit(CUT_FRAME + counters_bytes(&self.light.counters.words()));
        self.send_totals(true, sink);
        self.exported = self.totals.weight - self.light.sketch_weight;
        self.absorbed_before = self.light.sketch_weight;
        self.spent_before = self.allowance.spent();
        self.names.iter_mut().for_each(|names| names.next_epoch(self.spent_before - before));
        self.light.next_epoch();
    }

    /// Sends what [`BudgetPlane::cut`] would send, and changes nothing.
    pub fn peek(&self, sink: &mut impl ReportSink) {
        self.part.clone().cut(&mut |piece| sink.report(Report::Export(piece)));
        self.send_totals(false, sink);
    }

    fn send_totals(&self, reset: bool, sink: &mut impl ReportSink) {
        let StreamTotals { items, weight, smallest_weight } = self.totals;
        let Light { sketch_weight, carries, counters, .. } = &self.light;
        let totals = CutTotals { items, weight, sketch_weight: *sketch_weight, smallest_weight, carries: *carries };
        sink.report(Report::Cut(Cut { totals, counters, reset }));
    }

    /// Cuts and goes on in another configuration, with an empty table, sketch and filter.
    ///
    /// # Errors
    /// If the configuration is invalid, or for other keys or hash functions. Then nothing changed.
    pub fn change(&mut self, config: Config, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        check_change(self.config(), &config)?;
        let mut next = Self::with_seed(config, self.light.seed.rehashed(config.seed))?;
        self.cut(sink);
        next.totals = self.totals;
        next.frozen = self.frozen;
        next.allowance = self.allowance;
        next.exported = self.totals.weight;
        (next.spent_before, next.prices) = (self.spent_before, self.prices);
        next.light.known = self.light.known.take();
        next.light.known.iter_mut().for_each(KnownKeys::clear);
        *self = next;
        sink.report(Report::Open { config: &config, opening: Opening::Change });
        Ok(())
    }

    /// Starts a new cycle, from zero: nothing was ever inserted. What the sink has not been told in
    /// a cut is gone, and the allowance starts again.
    pub fn reset(&mut self, keep_weights: bool, sink: &mut impl ReportSink) {
        let config = *self.config();
        self.part = MirroredPart::new(*self.part.shape(), config.keys, config.seed);
        self.light.clear();
        if let Some(names) = &mut self.names {
            names.clear();
        }
        self.totals = StreamTotals::default();
        self.set_allowance(self.allowance.anew());
        (self.exported, self.absorbed_before) = (0, 0);
        sink.report(Report::Open { config: &config, opening: Opening::Reset { keep_weights } });
    }

    /// Returns an error if [`BudgetPlane::merge`] would fail.
    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        self.config().check_merge(other.config())?;
        if self.config().keys.any_length() {
            MergeError::unless_equal("first seed", &self.digest_key(), &other.digest_key())?;
        }
        let (ours, theirs) = (self.totals.weight, other.totals.weight);
        joint_weight(ours, theirs).map(drop).ok_or(MergeError::TotalWeight { ours, theirs })
    }

    /// Counts from now on what both have counted. Both must have been cut just before: this table
    /// goes on, and the other one has nothing that was not sent.
    ///
    /// # Errors
    /// If they differ in their configuration, or the weight of both would pass 2^63.
    pub fn merge(&mut self, other: &Self, sink: &mut impl ReportSink) -> Result<(), MergeError> {
        self.check_merge(other)?;
        self.light.merge(&other.light, sink);
        let StreamTotals { items, weight, smallest_weight } = other.totals;
        if items > 0 {
            self.totals.add(items, weight, smallest_weight);
        }
        self.allowance.unite(&other.allowance);
        self.exported += other.exported;
        self.absorbed_before += other.absorbed_before;
        self.spent_before = self.allowance.spent();
        Ok(())
    }
}

impl BudgetPlane<8> {
    /// Inserts one item whose key may have any length up to
    /// [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES). Its name is reported when it is exported, unless
    /// its code tells it.
    ///
    /// # Errors
    /// If the key is too long, all keys have one size, or the weight is not allowed.
    pub fn insert_bytes(&mut self, key: &[u8], weight: u64, sink: &mut impl ReportSink) -> Result<(), InsertError> {
        let format = self.config().keys;
        let KeyFormat::Code(bits) = format else { return Err(InsertError::NoDigests) };
        format.check(key.len())?;
        self.totals.take(weight)?;
        let digest_key = self.digest_key();
        let code = digest_key.code(key, bits);
        let name = digest_key.key_of_code(code, bits).is_none().then_some(key);
        self.count(&code.to_le_bytes(), weight, name, sink);
        Ok(())
    }
}

fn debit(piece: Pieces<'_>, allowance: &mut Allowance) {
    allowance.debit(match piece {
        Pieces::Bytes(bytes) => bytes.len() as u64 + 1,
        Pieces::End { .. } => EXPORT_FRAME,
    });
}

/// What counters take, to be debited: their entropy with a table of the symbols, or all of their
/// bytes where they are wider than one.
fn counters_bytes(words: &CounterWords<'_>) -> u64 {
    let bytes = match words {
        CounterWords::B4(words) | CounterWords::B8(words) => words,
        CounterWords::B16(words) => return 2 * words.len() as u64,
        CounterWords::B32(words) => return 4 * words.len() as u64,
    };
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let symbols = counts.iter().filter(|count| **count > 0).count() as u64;
    (entropy(&counts) + 2 * symbols).min(bytes.len() as u64)
}
