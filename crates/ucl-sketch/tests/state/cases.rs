//! Sketches of every kind, small enough to collide, and streams for them.

use ucl_sketch::learned::{Config, TrainBudget};
use ucl_sketch::{
    Base, BloomKind, Builder, ChangeKind, CounterBits, DecoderKind, Epochs, Estimate, Fallback, Hashing, HeavyKind,
    KeyFormat, QueryView, ReportRule, Settings, Shape, UclSketch, em,
};

/// What a sketch is made of.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub decoder: DecoderKind,
    pub keys: KeyFormat,
    pub bits: CounterBits,
    pub base: Base,
    pub heavy: HeavyKind,
    pub change: ChangeKind,
    pub rule: ReportRule,
    pub bloom: BloomKind,
    pub interval: Option<u64>,
    /// In place of the interval.
    pub by_load: bool,
    pub retain: usize,
    pub uplink: bool,
    pub fallback: Fallback,
    pub seed: u128,
    pub hashing: Hashing,
}

impl Case {
    /// A plain one.
    pub fn new(decoder: DecoderKind, keys: KeyFormat) -> Self {
        Self {
            decoder,
            keys,
            bits: CounterBits::B4,
            base: Base::CountMin,
            heavy: HeavyKind::Voting,
            change: ChangeKind::Sealed,
            rule: ReportRule::Rotate,
            bloom: BloomKind::Classic,
            interval: Some(40),
            by_load: false,
            retain: 3,
            uplink: false,
            fallback: Fallback::WhenBetter,
            seed: 7,
            hashing: Hashing::default(),
        }
    }

    pub fn shape(&self) -> Shape {
        // Not every decoder can do with every base sketch.
        let base = match (self.base, self.decoder.name()) {
            (Base::CountSketch, "cm" | "lsqr" | "lsmr" | "omp" | "learned") => Base::CountSketch,
            (Base::FlowRadar, "map") | (Base::CountMin | Base::CountSketch, _) => Base::CountMin,
            (Base::FlowRadar, _) => Base::FlowRadar,
        };
        Shape {
            heavy: self.heavy,
            slots: 9,
            vote_ratio: 2,
            base,
            rows: 3,
            width: 17,
            counter_bits: self.bits,
            bloom: self.bloom,
            bloom_bits: 256,
            bloom_hashes: if self.bloom == BloomKind::Recent { BloomKind::RECENT_KEYS } else { 2 },
        }
    }

    pub fn builder(&self) -> Builder {
        let shape = self.shape();
        let learned =
            Config { hidden: 8, neck: 4, bucket_length: 16, batch: 4, epochs: 4, patience: 2, ..Config::default() };
        let settings = Settings {
            decoder: self.decoder,
            window: 3,
            train_every: Some(2),
            train_budget: self.seed.is_multiple_of(2).then(|| TrainBudget::steps(3)),
            learned,
            fallback: self.fallback,
            em: em::Options { iterations: 20, ..em::Options::default() },
            retain_epochs: self.retain,
            change: self.change,
            seed: 0,
        };
        let builder = UclSketch::builder()
            .shape(shape)
            .settings(settings)
            .report_rule(self.rule)
            .epochs(if self.by_load { Epochs::ByLoad } else { self.interval.into() })
            .measure_uplink(self.uplink)
            .seed(self.seed)
            .hashing(self.hashing);
        if let KeyFormat::Fixed(bytes) = self.keys { builder.key_bytes(bytes.into()) } else { builder }
    }

    pub fn build(&self) -> UclSketch {
        self.builder().build().unwrap()
    }

    /// The key of a number.
    pub fn key(&self, number: u8) -> Vec<u8> {
        match self.keys {
            KeyFormat::Fixed(bytes) => (0..bytes).map(|at| number.wrapping_mul(at | 1)).collect(),
            KeyFormat::Digest | KeyFormat::Code(_) => format!("/page/{number}").into_bytes(),
        }
    }

    pub fn insert(&self, sketch: &mut UclSketch, items: &[(u8, u64)]) {
        for &(number, weight) in items {
            sketch.insert_weighted(self.key(number), weight).unwrap();
        }
    }
}

/// A skewed stream that is the same everywhere.
pub fn stream(items: u64) -> Vec<(u8, u64)> {
    (0..items).map(|i| ((i * i % 251 * (i % 7) / 6) as u8, 1 + i % 3)).collect()
}

/// Known keys with their guaranteed and likely ranges, unknown ones, and the rest in words.
pub type Answers = (Vec<(Vec<u8>, Estimate, Estimate)>, Vec<Estimate>, String);

/// Everything that a view says.
pub fn answers(view: &QueryView) -> Answers {
    let known = |(id, answer)| (view.registry().key(id).to_vec(), answer, view.likely_of(id));
    let known = view.all().map(known).collect();
    let unknown = (0..20u8).map(|i| view.estimate(&vec![i ^ 0x5a; view.registry().format().slot_bytes()])).collect();
    let epochs: Vec<_> = view.series().epochs(..).collect();
    let rest = format!(
        "{} {} {} {} {} {} {:?} {} {:?}",
        view.items(),
        view.since(),
        view.weight(),
        view.answered_by(),
        view.unexplained(),
        view.estimated_lost_keys(),
        epochs,
        view.entropy(),
        view.self_check(),
    );
    (known, unknown, rest)
}
