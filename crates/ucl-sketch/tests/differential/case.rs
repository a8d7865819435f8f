//! A random sketch, and random keys and weights for it.

use ucl_sketch::learned::{Config as Network, TrainBudget};
use ucl_sketch::mirrored::{MirroredShape, Policy};
use ucl_sketch::{
    Base, BloomKind, Builder, ChangeKind, CounterBits, DecoderKind, Epochs, Hashing, HeavyKind, KeyFormat, ReportRule,
    Seed, Settings, Shape, UclSketch, em,
};

use crate::random::Random;

/// The most that a stream may weigh.
pub const MOST: u64 = i64::MAX as u64;

/// How heavy items are.
#[derive(Clone, Copy, Debug)]
pub enum Weights {
    One,
    Small,
    /// Every order of magnitude, up to what is left.
    Any,
    /// A good part of all that is left.
    Huge,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub shape: Shape,
    pub keys: KeyFormat,
    pub rule: ReportRule,
    pub settings: Settings,
    pub epochs: Epochs,
    pub uplink: bool,
    /// Bytes per item, where a sketch takes what goes beyond them.
    pub allowance: Option<f64>,
    pub weights: Weights,
    /// Keys that are inserted; as many more are asked for.
    pub universe: u32,
    pub seed: Seed,
}

/// The decoders that a base sketch can do with: the network only now and then, for it is slow.
fn decoder(random: &mut Random, base: Base) -> DecoderKind {
    use DecoderKind::{Cm, Delta, Em, Learned, Lsmr, Lsqr, Map, Omp, Refined};
    if cfg!(feature = "learned") && random.one_in(300) {
        return if base == Base::CountSketch { Learned } else { random.pick(&[Learned, Refined]) };
    }
    match base {
        Base::CountMin => random.pick(&[Cm, Map, Lsqr, Lsmr, Omp, Em, Em, Delta, Delta, Delta, Delta]),
        Base::CountSketch => random.pick(&[Cm, Cm, Lsqr, Lsmr, Omp]),
        Base::FlowRadar => random.pick(&[Cm, Lsqr, Lsmr, Omp, Em, Em, Delta, Delta, Delta]),
    }
}

/// A mirrored table of a few slots, and as few names.
fn table(random: &mut Random) -> Shape {
    let (least, most) = MirroredShape::COUNT_BITS;
    let table = MirroredShape {
        sets: random.spread(40) as u32,
        count_bits: random.between(least.into(), most.into()) as u8,
        buffer: random.between(40, 700) as u32,
        policy: random.pick(&[Policy::Skewed, Policy::Flows]),
    };
    Shape::mirrored(table, random.pick(&[0, 64, 1_000, 4_000]), random.between(1, 9) as u8)
}

/// A mirrored table with a sketch behind it.
fn table_and_sketch(random: &mut Random, base: Base) -> Shape {
    let Shape { heavy, slots, .. } = table(random);
    let sketch = shape(random, base);
    // A single counter would be none.
    Shape { heavy, slots, width: sketch.width.max(2), ..sketch }
}

/// A shape of the same kind as another: a table stays one, and so does a base sketch.
pub fn shape_like(random: &mut Random, other: &Shape) -> Shape {
    match other.heavy {
        HeavyKind::Mirrored(_) if other.absorbs() => table_and_sketch(random, other.base),
        HeavyKind::Mirrored(_) => table(random),
        _ => shape(random, other.base),
    }
}

fn shape(random: &mut Random, base: Base) -> Shape {
    let bloom = random.pick(&[BloomKind::Classic, BloomKind::SplitBlock, BloomKind::Recent]);
    let bloom_hashes = random.between(1, 8) as u8;
    let bloom_bits = match random.below(4) {
        0 => 0,
        1 => random.between(1, 300),
        _ => random.between(100, 4_000),
    };
    Shape {
        heavy: random.pick(&HeavyKind::ALL),
        slots: random.spread(70) as u32,
        vote_ratio: random.pick(&[1, 2, 8, 1 << 16]),
        base,
        rows: random.pick(&[1, 2, 3, 3, 4, 4, 5, 16]),
        width: random.spread(60) as u32,
        counter_bits: random.pick(&CounterBits::ALL),
        bloom,
        bloom_bits: bloom_bits as u32,
        bloom_hashes: if bloom == BloomKind::Recent { BloomKind::RECENT_KEYS } else { bloom_hashes },
    }
}

impl Case {
    pub fn random(random: &mut Random) -> Self {
        let exact = random.one_in(3);
        let budget = !exact && random.one_in(3);
        let base = if exact { Base::CountMin } else { random.pick(&Base::ALL) };
        let decoder = if exact { DecoderKind::Delta } else { decoder(random, base) };
        let learned =
            Network { hidden: 8, neck: 4, bucket_length: 16, batch: 4, epochs: 2, patience: 2, ..Network::default() };
        let settings = Settings {
            decoder,
            window: 3,
            train_every: Some(2),
            train_budget: Some(TrainBudget::steps(3)),
            learned,
            em: em::Options { iterations: random.pick(&[1, 10, 30]), ..em::Options::default() },
            retain_epochs: random.pick(&[0, 0, 3]),
            change: random.pick(&[ChangeKind::Sealed, ChangeKind::PaperColumns]),
            ..Settings::default()
        };
        Self {
            shape: match (exact, budget) {
                (true, _) => table(random),
                (_, true) => table_and_sketch(random, base),
                _ => shape(random, base),
            },
            keys: random.pick(&[
                KeyFormat::Fixed(4),
                KeyFormat::Fixed(8),
                KeyFormat::Fixed(13),
                KeyFormat::Fixed(16),
                KeyFormat::Digest,
                KeyFormat::Digest,
            ]),
            rule: random.pick(&ReportRule::ALL),
            settings,
            epochs: random
                .pick(&[None, Some(1), Some(7), Some(40), Some(300)])
                .map_or(random.pick(&[Epochs::Open, Epochs::ByLoad, Epochs::ByLoad]), Epochs::Every),
            uplink: random.one_in(3),
            allowance: random.pick(&[None, Some(0.0), Some(0.1), Some(0.5), Some(2.0)]).filter(|_| budget),
            weights: random.pick(&[Weights::One, Weights::Small, Weights::Any, Weights::Huge]),
            universe: random.spread(1_200) as u32,
            seed: Seed::new(random.wide()).with_hashing(random.pick(&Hashing::ALL)),
        }
    }

    /// Whether every answer has to be exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.shape.heavy, HeavyKind::Mirrored(_)) && !self.shape.absorbs()
    }

    pub fn builder(&self) -> Builder {
        let builder = UclSketch::builder()
            .shape(self.shape)
            .settings(self.settings.clone())
            .report_rule(self.rule)
            .epochs(self.epochs)
            .measure_uplink(self.uplink)
            .seed(self.seed.value())
            .hashing(self.seed.hashing());
        let builder = match self.allowance {
            Some(bytes) => builder.uplink_per_item(bytes),
            None => builder,
        };
        if let KeyFormat::Fixed(bytes) = self.keys { builder.key_bytes(bytes.into()) } else { builder }
    }

    /// The key of a number. Of keys of any length every second one has [`Case::FLAT`] bytes.
    pub fn key(&self, number: u32) -> Vec<u8> {
        let digits = number.to_le_bytes();
        match self.keys {
            KeyFormat::Fixed(bytes) => (0..usize::from(bytes)).map(|at| digits[at % 4]).collect(),
            KeyFormat::Digest | KeyFormat::Code(_) if number.is_multiple_of(2) => {
                [&digits[..], &[9; Self::FLAT - 4]].concat()
            }
            // Lengths on both sides of every fast path of a hash, and an empty key.
            KeyFormat::Digest | KeyFormat::Code(_) => {
                let length = [0, 1, 3, 8, 16, 17, 128, 129, 240, 241, 600][number as usize / 2 % 11];
                let mut key = if number == 1 { Vec::new() } else { [&digits[..], &[7]].concat() };
                key.resize(if number == 1 { 0 } else { length + 5 }, b'x');
                key
            }
        }
    }

    /// Bytes of the keys that a batch has.
    pub fn flat_bytes(&self) -> usize {
        if let KeyFormat::Fixed(bytes) = self.keys { bytes.into() } else { Self::FLAT }
    }

    const FLAT: usize = 7;

    /// A key to insert: some are far more frequent than others.
    pub fn number(&self, random: &mut Random) -> u32 {
        let most = u64::from(self.universe);
        let number = if random.one_in(2) { random.spread(most) - 1 } else { random.between(0, most - 1) };
        number as u32
    }

    /// A weight that is allowed where `left` is left; `None` if nothing is.
    pub fn weight(&self, random: &mut Random, left: u64) -> Option<u64> {
        let most = match self.weights {
            Weights::One => 1,
            Weights::Small => 9,
            Weights::Any => left,
            Weights::Huge if random.one_in(9) => return (left > 0).then_some(left),
            Weights::Huge => left / 5 + 1,
        };
        let most = most.min(left);
        (most > 0)
            .then(|| if matches!(self.weights, Weights::Any) { random.spread(most) } else { random.between(1, most) })
    }
}
