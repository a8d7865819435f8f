//! The planner: from a memory budget to shapes.
//!
//! It knows the budget, the size of the keys, how many keys to expect and which decoder will
//! answer; it never sees the stream. Two families of shapes:
//!
//! - **wide** ([`wide`]), the paper's: counters of 32 bits, few of them, and a large heavy part;
//!   for the learned decoder and the classic ones. Near the paper's own table for Retail.
//! - **narrow** ([`narrow`]): counters of 8 or 4 bits with carries, as many as fit, a small heavy
//!   part that holds on to its keys, and a Bloom filter that loses few keys; for EM and delta,
//!   which turn equations into accuracy.

use ucl_control_plane::DecoderKind;
pub use ucl_data_plane::bloom::expected_coverage;
use ucl_data_plane::mirrored::MirroredShape;
use ucl_data_plane::{
    Base, BloomKind, CounterBits, DataPlane, EMPTY_ABOVE, HeavyKind, KeyFormat, LEAST_CUTS, ReportRule, Shape,
};

use crate::Bytes;
use crate::epochs::Epochs;
use crate::mode::Mode;

/// Budget and keys that a plan is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The budget, in bytes.
    pub memory: usize,
    /// Format of keys in slots.
    pub keys: KeyFormat,
    /// Distinct keys to expect; by default a quarter of the budget's bytes.
    pub expected_keys: Option<u64>,
    /// Bits per counter; the family's own if not given.
    pub counter_bits: Option<CounterBits>,
    /// The linear sketch.
    pub base: Base,
    /// The heavy part.
    pub heavy: HeavyKind,
    /// Items between two cuts; the decoder's own if not given.
    pub interval: Option<u64>,
    /// Leaves room for watching the load of epochs. [`plan`] does so wherever they end by load.
    pub watch_load: bool,
    /// Rule for which keys are sent; `None` for the one that goes with the decoder.
    pub rule: Option<ReportRule>,
    /// Bits of a count in a mirrored table: more for items that weigh much
    /// ([`WEIGHTED_COUNT_BITS`]). Six if not given. The counters of mode budget go by it.
    pub count_bits: Option<u8>,
    /// The uplink has a limit: mode budget has to expect that much will be absorbed.
    pub limited: bool,
}

impl Default for Request {
    /// 64KB, keys of any length, nothing else known.
    fn default() -> Self {
        Self {
            memory: 65_536,
            keys: KeyFormat::Digest,
            expected_keys: None,
            counter_bits: None,
            base: Base::CountMin,
            heavy: HeavyKind::Voting,
            interval: None,
            watch_load: false,
            rule: None,
            count_bits: None,
            limited: false,
        }
    }
}

impl Request {
    /// Distinct keys, as told or guessed.
    fn expected(&self) -> f64 {
        self.expected_keys.unwrap_or(default_expected_keys(self.memory)).max(1) as f64
    }
}

/// Returns the number of distinct keys that a budget in bytes is planned for where nobody says how
/// many there will be.
///
/// ```
/// assert_eq!(ucl_sketch::plan::default_expected_keys(64 << 10), 16_384);
/// ```
pub fn default_expected_keys(memory: usize) -> u64 {
    memory as u64 / 4
}

/// Sizes that the planner has chosen.
///
/// ```
/// use ucl_sketch::plan::{Plan, Request, plan};
/// use ucl_sketch::{DecoderKind, Mode, ReportRule};
/// let Plan { rule, epochs, .. } = plan(Mode::Sketch(DecoderKind::Learned), Request::default())?;
/// assert_eq!((rule, epochs.interval()), (ReportRule::Paper, Some(1_000)));
/// # Ok::<(), ucl_sketch::plan::BudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Format of keys in slots: not as asked for, where a mirrored table has codes for keys of any
    /// length.
    pub keys: KeyFormat,
    /// The shape.
    pub shape: Shape,
    /// The report rule that goes with it.
    pub rule: ReportRule,
    /// Rule for when epochs end.
    pub epochs: Epochs,
}

/// Error of a budget that no sketch can be planned for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The budget does not hold even the smallest shape.
    #[error("a budget of {} is too small for {keys}: at least {} are needed", Bytes(*.memory), Bytes(*.least))]
    TooSmall {
        /// Given budget.
        memory: usize,
        /// Format of the keys.
        keys: KeyFormat,
        /// The smallest that works.
        least: usize,
    },
    /// The budget is more than the largest shape takes.
    #[error(
        "a budget of {} is too large for one sketch: its table would have {slots} slots, but the most is {most}",
        Bytes(*.memory)
    )]
    TooLarge {
        /// Given budget.
        memory: usize,
        /// Slots that would be left over for the heavy part or the mirrored table.
        slots: usize,
        /// The most slots.
        most: u32,
    },
}

/// The smallest useful part sizes: a handful of slots, counters and Bloom bits.
const LEAST_SLOTS: usize = 8;
const LEAST_WIDTH: usize = 16;
const LEAST_BLOOM: usize = 64;

/// Plans for a mode.
///
/// ```
/// use ucl_sketch::plan::{Request, plan};
/// use ucl_sketch::{KeyFormat, Mode};
/// let request =
///     Request { memory: 65_536, keys: KeyFormat::Fixed(4), ..Request::default() };
/// let plan = plan(Mode::Exact, request)?;
/// assert!(plan.shape.memory(request.keys).total() <= 65_536);
/// # Ok::<(), ucl_sketch::plan::BudgetError>(())
/// ```
///
/// # Errors
/// If the budget is too small or too large for the mode.
pub fn plan(mode: Mode, request: Request) -> Result<Plan, BudgetError> {
    let keys = coded(request.keys);
    let decoder = match mode {
        Mode::Exact => {
            let epochs = request.interval.into();
            return Ok(Plan { keys, shape: exact(request)?, rule: ReportRule::New, epochs });
        }
        Mode::Budget => {
            let epochs = request.interval.map_or(Epochs::ByLoad, Epochs::Every);
            return Ok(Plan { keys, shape: budget(request)?, rule: ReportRule::New, epochs });
        }
        Mode::Sketch(decoder) => decoder,
    };
    let rule = request.rule.unwrap_or(match decoder {
        DecoderKind::Em => ReportRule::New,
        DecoderKind::Delta => ReportRule::Generations,
        _ => ReportRule::Paper,
    });
    let epochs = match (decoder, request.interval) {
        (DecoderKind::Delta, Some(items)) => Epochs::Every(items),
        _ => Epochs::of(decoder),
    };
    let watch_load = request.watch_load || epochs == Epochs::ByLoad;
    let request = Request { rule: Some(rule), watch_load, ..request };
    let shape = match decoder {
        // It decodes all at once, whenever cuts are made.
        DecoderKind::Em => narrow(Request { interval: None, ..request }),
        DecoderKind::Delta => narrow(request),
        _ => wide(request),
    }?;
    Ok(Plan { keys: request.keys, shape, rule, epochs })
}

/// Keys of any length have codes in a mirrored table.
fn coded(keys: KeyFormat) -> KeyFormat {
    if keys == KeyFormat::Digest { KeyFormat::Code(KeyFormat::CODE_BITS) } else { keys }
}

/// The share of the budget that remembers which names were sent, for keys of any length. (More
/// saves names, less saves misses.)
const NAME_SHARE: f64 = 0.15;
/// Hashes of its filters: each is full when it claims one new name in 512.
const NAME_HASHES: u8 = 9;
/// The same, and the share of the counters, in mode budget with a limit: then most keys are named
/// once, and absorbed. (Six streams of text at half of what exact counting takes had 1.1 to 6.7
/// times the errors with the shares of an unlimited budget. Without a limit these shares send 1.05
/// to 1.7 times as much.)
const LIMITED_NAME_SHARE: f64 = 0.3;
const LIMITED_ABSORBING_SHARE: f64 = 0.3;

/// Plans a mirrored table in all of the budget.
///
/// # Errors
/// If the budget is too small or too large.
pub fn exact(request: Request) -> Result<Shape, BudgetError> {
    let keys = coded(request.keys);
    mirrored_within(request, keys, |memory| {
        let bits = name_bits(memory, keys, NAME_SHARE);
        with_table(request, keys, memory, |table| Shape::mirrored(table, bits, NAME_HASHES))
    })
}

/// The share of the counters in mode budget. (On eleven streams at half of what exact counting
/// takes, errors were about the same from 0.15 to 0.3.)
const ABSORBING_SHARE: f64 = 0.2;

/// Bits of a count in a mirrored table for items that weigh much: packets by their bytes. (Of 6 to
/// 20 bits for the bytes of 500,000 packets over 100,000 keys in 64KB, 16 sent least in mode exact,
/// 0.62 bytes per item, and 6 sent 1.01. For items of weight 1, 16 bits send 8% more than 6.)
pub const WEIGHTED_COUNT_BITS: u8 = 16;

/// Bits of the counters behind a table whose counts have so many. What a counter cannot hold goes
/// up the link at once, whatever the limit. (For those packets with 0.2 bytes per item, counts of
/// 6 bits before counters of 8 sent 0.88, and the sketch absorbed nearly all. Counts of 16 bits
/// before counters of 32 sent 0.193, with about half of the error.)
fn absorbing_bits(count_bits: Option<u8>) -> CounterBits {
    match count_bits.unwrap_or(0) {
        0..=8 => CounterBits::B8,
        9..=13 => CounterBits::B16,
        _ => CounterBits::B32,
    }
}

/// Plans a mirrored table, and a sketch for what the link does not take.
///
/// # Errors
/// If the budget is too small or too large.
pub fn budget(request: Request) -> Result<Shape, BudgetError> {
    let keys = coded(request.keys);
    let counter_bits = absorbing_bits(request.count_bits);
    let with = |memory: usize, absorbing: f64, naming: f64| {
        let width = (memory as f64 * absorbing / counter_bits.bytes(4) as f64) as usize;
        let width = width.clamp(LEAST_WIDTH, Shape::MOST_WIDTH as usize) as u32;
        let bits = name_bits(memory, keys, naming);
        let memory = memory.checked_sub(DataPlane::<4>::KNOWN_KEYS_BYTES)?;
        with_table(request, keys, memory, |table| Shape {
            counter_bits,
            ..Shape::absorbing(table, width, bits, NAME_HASHES)
        })
    };
    mirrored_within(request, keys, |memory| {
        let limited = || with(memory, LIMITED_ABSORBING_SHARE, LIMITED_NAME_SHARE);
        // A small table has more use for what there is.
        let limited = (request.limited && keys.any_length()).then(limited).flatten();
        limited.or_else(|| with(memory, ABSORBING_SHARE, NAME_SHARE))
    })
}

/// Bits of the filters that remember names, for keys of any length.
fn name_bits(memory: usize, keys: KeyFormat, share: f64) -> u32 {
    if !keys.any_length() {
        return 0;
    }
    // Two filters of whole words.
    let bytes = (memory as f64 * share) as u64 / 8 * 8;
    (bytes * 8).min(u64::from(Shape::MOST_BLOOM_BITS)) as u32
}

/// The shape that `shape` makes of the largest table for which there is memory.
fn with_table(
    request: Request,
    keys: KeyFormat,
    memory: usize,
    shape: impl Fn(MirroredShape) -> Shape,
) -> Option<Shape> {
    // What the table has beside it does not depend on its size.
    let any = MirroredShape::within(1 << 20, keys)?;
    let beside = shape(any).memory(keys).total() - any.memory(keys);
    let left = memory.checked_sub(beside)?;
    let table = match request.count_bits {
        Some(bits) => MirroredShape::with_count_bits(left, keys, bits),
        None => MirroredShape::within(left, keys),
    }?;
    Some(shape(table))
}

/// The largest shape with a mirrored table, or why there is none.
fn mirrored_within(
    request: Request,
    keys: KeyFormat,
    within: impl Fn(usize) -> Option<Shape>,
) -> Result<Shape, BudgetError> {
    let shape = within(request.memory).ok_or_else(|| {
        let least = (1..).find(|&memory| within(memory).is_some()).unwrap_or(usize::MAX);
        BudgetError::TooSmall { memory: request.memory, keys, least }
    })?;
    if let HeavyKind::Mirrored(table) = shape.heavy
        && table.sets == MirroredShape::MOST_SETS
    {
        let slots = (request.memory as f64 / table.memory(keys) as f64 * table.slots() as f64) as usize;
        return Err(BudgetError::TooLarge { memory: request.memory, slots, most: table.slots() as u32 });
    }
    Ok(shape)
}

/// The paper's sampling interval.
pub const PAPER_INTERVAL: u64 = 1_000;

/// Items of an epoch whose counts are kept, for questions about time.
pub const SERIES_INTERVAL: u64 = 16_000;

/// Hashes of the paper's filter, and the bits per key with which they cover over 99% of the keys
/// (`tests/coverage.rs` counts them).
const PAPER_HASHES: u8 = 8;
const PAPER_KEY_BITS: f64 = 7.0;
/// The heavy part keeps at least this share of the budget beside a filter for many keys.
const LEAST_HEAVY_SHARE: f64 = 0.1;

/// Plans the paper's shapes, by its rule (appendix "Parameter Settings"): the filter covers over
/// 99% of the expected keys with 8 hashes where the memory allows it, takes over half of a memory
/// that is small for them (65% at most), and the heavy part has the rest.
///
/// One difference: where 99% do not fit, the paper stays with 8 hashes. Here the number of hashes
/// is the one that loses the fewest keys. With 100,000 keys in 32KB, 8 hashes would cover 55% of
/// them, and 2 cover 79% (`fewer_hashes_cover_more_of_too_many_keys` in `tests/coverage.rs`).
///
/// ```
/// use ucl_sketch::plan::{Request, expected_coverage, wide};
/// let request = Request { memory: 96 << 10, expected_keys: Some(40_000), ..Request::default() };
/// let shape = wide(request)?;
/// assert_eq!(shape.bloom_hashes, 8);
/// assert!(expected_coverage(shape.bloom_bits, 8, 40_000.0) > 0.99);
/// # Ok::<(), ucl_sketch::plan::BudgetError>(())
/// ```
///
/// # Errors
/// If the budget is too small or too large.
pub fn wide(request: Request) -> Result<Shape, BudgetError> {
    let rows = match request.memory {
        0..=73_728 => 4,
        73_729..=122_880 => 6,
        _ => 8,
    };
    let bits = request.counter_bits.unwrap_or(CounterBits::B32);
    // The paper: 512 counters of 32 bits a row up to 32KB, 1024 above; the same bytes with other
    // widths.
    let width = match request.memory {
        0..16_384 => request.memory / 32,
        16_384..40_000 => 512,
        _ => 1024,
    };
    let share = (width * usize::from(rows) * 4) as f64 / request.memory.max(1) as f64;
    // As published: 1 in the paper's filter, 8 in Elastic Sketch.
    let vote_ratio = if request.heavy == HeavyKind::Elastic { 8 } else { 1 };
    let most = (1.0 - share - LEAST_HEAVY_SHARE).clamp(LEAST_HEAVY_SHARE, MOST_BLOOM_SHARE);
    // Shares are of what is left beside the fixed part, which counts in small budgets.
    let empty = Shape { heavy: request.heavy, base: request.base, rows, counter_bits: bits, ..Shape::PAPER_64KB };
    let fixed = Shape { slots: 0, width: 0, bloom_bits: 0, ..empty }.memory(request.keys).total();
    let key_bits = PAPER_KEY_BITS * request.memory as f64 / request.memory.saturating_sub(fixed).max(1) as f64;
    let shape = fit(request, rows, bits, vote_ratio, bloom_share(request, key_bits, most), share)?;
    let covered = expected_coverage(shape.bloom_bits, PAPER_HASHES, request.expected());
    Ok(if covered > 0.99 && shape.bloom == BloomKind::Classic {
        Shape { bloom_hashes: PAPER_HASHES, ..shape }
    } else {
        shape
    })
}

/// Narrow counters, many of them: 8 bits each, or 4 where that pays for the carries it costs.
///
/// The rules come from a search over splits of the budget, on generated streams with budgets from
/// 8KB to 256KB (`cargo run --release -p ucl-lab --example search_shapes`; `docs/planner.md` has
/// what it found).
///
/// # Errors
/// If the budget is too small or too large.
pub fn narrow(request: Request) -> Result<Shape, BudgetError> {
    // Few slots, for most hot keys are recovered as well as held.
    let roomy = |key_bits: f64| {
        let bloom = bloom_share(request, key_bits, MOST_BLOOM_SHARE);
        (bloom, 0.03 + 0.02 * ((bloom - 0.4) / 0.25).clamp(0.0, 1.0))
    };
    let shape = narrow_with(request, CounterBits::B8, roomy(KEY_BITS))?;
    if request.counter_bits.is_some() {
        return Ok(shape);
    }
    // Epochs that are short against a row leave most counters at 0 or 1, and lost keys are what
    // errors are left: half the bits a counter, and what that saves to the filter.
    if request.interval.is_some_and(|interval| interval * 2 < u64::from(shape.width)) {
        return narrow_with(request, CounterBits::B4, roomy(2.0 * KEY_BITS));
    }
    // An epoch has at most as many keys as items.
    let counters = shape.geometry().counters() as f64;
    let unknowns = request.interval.map_or(f64::INFINITY, |interval| interval as f64).min(request.expected());
    // Far more unknowns than equations: these matter more than some lost keys.
    if unknowns > 2.0 * counters {
        return narrow_with(request, CounterBits::B4, (bloom_share(request, KEY_BITS, 0.45), 0.01));
    }
    // More keys than counters: half the bits make up for it.
    if request.expected() > counters {
        return narrow_with(request, CounterBits::B4, roomy(KEY_BITS));
    }
    Ok(shape)
}

/// The largest share of the filter: counters must be left.
const MOST_BLOOM_SHARE: f64 = 0.65;
/// Bloom bits per expected key: about 13 lose one key in some hundreds.
const KEY_BITS: f64 = 12.8;

/// The share of the budget that gives every expected key so many bits, but not more than `most`.
fn bloom_share(request: Request, key_bits: f64, most: f64) -> f64 {
    (key_bits * request.expected() / 8.0 / request.memory.max(1) as f64).clamp(0.1, most)
}

fn narrow_with(request: Request, bits: CounterBits, (bloom, heavy): (f64, f64)) -> Result<Shape, BudgetError> {
    fit(request, 4, request.counter_bits.unwrap_or(bits), 8, bloom, 1.0 - bloom - heavy)
}

/// Gives the Bloom filter and the counters their shares of the budget, and the heavy part the rest.
fn fit(
    request: Request,
    rows: u16,
    counter_bits: CounterBits,
    vote_ratio: u32,
    bloom_share: f64,
    counter_share: f64,
) -> Result<Shape, BudgetError> {
    let expected = request.expected();
    let emptied_after = request.interval.filter(|_| request.rule == Some(ReportRule::Rotate));
    let hashes = |bits: u32| match request.rule {
        Some(ReportRule::Generations) => BloomKind::RECENT_KEYS,
        _ => bloom_hashes(bits, expected, emptied_after),
    };
    let bloom = match request.rule {
        Some(ReportRule::Generations) => BloomKind::Recent,
        _ => BloomKind::Classic,
    };
    let shape = |slots: usize, width: usize, bloom_bytes: usize| Shape {
        heavy: request.heavy,
        slots: slots as u32,
        vote_ratio,
        base: request.base,
        rows,
        width: width as u32,
        counter_bits,
        bloom,
        bloom_bits: (bloom_bytes / 4 * 32) as u32,
        bloom_hashes: hashes((bloom_bytes / 4 * 32) as u32),
    };
    let watching = if request.watch_load { DataPlane::<4>::KNOWN_KEYS_BYTES } else { 0 };
    let least = shape(LEAST_SLOTS, LEAST_WIDTH, LEAST_BLOOM).memory(request.keys).total() + watching;
    let too_small = BudgetError::TooSmall { memory: request.memory, keys: request.keys, least };
    if request.memory < least {
        return Err(too_small);
    }
    let budget = request.memory - watching - shape(0, 0, 0).memory(request.keys).total();
    let counter_bytes = |width: usize| counter_bits.bytes(width * usize::from(rows));
    // Each part gets its share, but leaves room for the least of those that come after it.
    let room = budget - request.heavy.bytes(LEAST_SLOTS, request.keys.slot_bytes());
    let most_bloom = (room - counter_bytes(LEAST_WIDTH)).min(Shape::MOST_BLOOM_BITS as usize / 8);
    let bloom_bytes = ((budget as f64 * bloom_share) as usize).clamp(LEAST_BLOOM, most_bloom);
    let counter_room = (room - bloom_bytes) * 8 / usize::from(rows) / counter_bits.bits() as usize;
    let counters = budget as f64 * counter_share * 8.0 / f64::from(counter_bits.bits());
    let width =
        ((counters / f64::from(rows)) as usize).clamp(LEAST_WIDTH, counter_room.min(Shape::MOST_WIDTH as usize));
    let left = budget - bloom_bytes - counter_bytes(width);
    let slots = request.heavy.slots_in(left, request.keys.slot_bytes());
    // The other parts stop at their limits; where not even the rest fits, so much memory is of no
    // use.
    let memory = request.memory;
    let most = Shape::MOST_SLOTS;
    if slots > most as usize {
        return Err(BudgetError::TooLarge { memory, slots, most });
    }
    Ok(shape(slots, width, bloom_bytes))
}

/// The number of hashes with which a filter loses the fewest of so many keys. With an interval it
/// is one that is emptied in time ([`ReportRule::Rotate`]), and needs to hold fewer of them at a
/// time.
///
/// ```
/// use ucl_sketch::plan::bloom_hashes;
/// // Far too few bits for all of the keys: hardly any hash, or the filter would claim everything.
/// assert_eq!((bloom_hashes(100_000, 100_000.0, None), bloom_hashes(100_000, 100_000.0, Some(1_000))), (1, 9));
/// ```
pub fn bloom_hashes(bits: u32, keys: f64, interval: Option<u64>) -> u8 {
    let at_a_time = interval.map_or(keys, |interval| keys_at_a_time(bits, interval).min(keys));
    let coverage = |hashes: &u8| expected_coverage(bits, *hashes, at_a_time);
    (1..=12).max_by(|a, b| coverage(a).total_cmp(&coverage(b))).unwrap_or(6)
}

/// The most keys that a filter has to hold which is emptied in time: as many as fit before its
/// claims become false too often, or as come until it may be emptied again.
fn keys_at_a_time(bits: u32, interval: u64) -> f64 {
    // The classic optimum: a filter half full, with as many hashes as the rate has halvings.
    let room = f64::from(bits) * std::f64::consts::LN_2 / -EMPTY_ABOVE.log2();
    room.max(f64::from(LEAST_CUTS) * interval as f64)
}
