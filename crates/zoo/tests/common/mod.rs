//! Streams made by hand, with their exact counts.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::collections::BTreeMap;

use ucl_data_plane::KeyFormat;
use ucl_streams::SplitMix64;
use ucl_zoo::{Entry, Knowledge, Oracle, Rival, RivalPlan};

pub struct Stream {
    pub name: String,
    pub keys: KeyFormat,
    pub items: Vec<(Vec<u8>, u64)>,
    pub truth: BTreeMap<Vec<u8>, u64>,
}

impl Stream {
    pub fn new(name: impl Into<String>, items: Vec<(Vec<u8>, u64)>) -> Self {
        let mut truth = BTreeMap::new();
        items.iter().for_each(|(key, weight)| *truth.entry(key.clone()).or_default() += weight);
        let length = items[0].0.len();
        let one_length = items.iter().all(|(key, _)| key.len() == length);
        let keys = if one_length { KeyFormat::for_key_bytes(length).unwrap() } else { KeyFormat::Digest };
        Self { name: name.into(), keys, items, truth }
    }

    /// Keys of `bytes` bytes, about as frequent as `1 / rank`.
    pub fn skewed(bytes: usize, keys: u64, items: u64) -> Self {
        let mut random = SplitMix64::new(items);
        let draw = |_| {
            // The inverse of the distribution function of 1/rank is exponential in the rank's
            // logarithm.
            let rank = ((keys as f64).powf(random.unit()) as u64).min(keys) - 1;
            let mut key = mix(rank).to_le_bytes().repeat(3);
            key.truncate(bytes);
            (key, 1)
        };
        Self::new(format!("{items} items of {keys} {bytes}-byte keys"), (0..items).map(draw).collect())
    }

    pub fn weighted() -> Self {
        let mut stream = Self::skewed(4, 700, 1500);
        let weighted = stream.items.drain(..).zip(0..).map(|((key, _), i)| (key, 1 + i * i % 23)).collect();
        Self::new("weighted", weighted)
    }

    pub fn few_keys() -> Self {
        let items = (0..2000u64).map(|i| (mix(i * i % 30).to_le_bytes()[..4].to_vec(), 1)).collect();
        Self::new("few keys", items)
    }

    pub fn heavy() -> Self {
        let heavy =
            |i: u64| (mix(i % 7).to_le_bytes()[..4].to_vec(), [1 << 20, 1 << 31, 1 << 40, 1 << 58][i as usize % 4]);
        Self::new("heavy", (0..20).map(heavy).collect())
    }

    pub fn all() -> Vec<Self> {
        let words = Self::skewed(8, 900, 5000).items.into_iter();
        let words = words.map(|(key, _)| (format!("/{}", u64::from_le_bytes(key.try_into().unwrap())).into_bytes(), 1));
        vec![
            Self::skewed(4, 2000, 12_000),
            Self::skewed(8, 1000, 5000),
            Self::skewed(13, 1000, 5000),
            Self::skewed(16, 1000, 5000),
            Self::new("words", words.collect()),
            Self::weighted(),
            Self::few_keys(),
            Self::new("one item", vec![(b"only".to_vec(), 3)]),
        ]
    }

    pub fn weight(&self) -> u64 {
        self.truth.values().sum()
    }

    /// Every item as often as it weighs.
    pub fn repeated(&self) -> Self {
        let repeat = |(key, weight): &(Vec<u8>, u64)| vec![(key.clone(), 1); *weight as usize];
        Self::new("repeated", self.items.iter().flat_map(repeat).collect())
    }

    pub fn split(&self, at: usize) -> (Self, Self) {
        let (first, second) = self.items.split_at(at);
        (Self::new("first", first.to_vec()), Self::new("second", second.to_vec()))
    }
}

/// A key of the format, other than all others.
pub fn key(number: u64, keys: KeyFormat) -> Vec<u8> {
    let mut key = mix(number).to_le_bytes().repeat(2);
    match keys {
        KeyFormat::Fixed(4) => (number as u32).to_le_bytes().to_vec(),
        KeyFormat::Fixed(bytes) => {
            key.truncate(bytes.into());
            key
        }
        KeyFormat::Digest | KeyFormat::Code(_) => format!("key {number}").into_bytes(),
    }
}

pub fn ranking(stream: &Stream) -> Vec<&[u8]> {
    let mut keys: Vec<(&[u8], u64)> = sample(stream);
    keys.sort_by_key(|&(key, count)| (std::cmp::Reverse(count), key));
    keys.into_iter().map(|(key, _)| key).collect()
}

pub fn sample(stream: &Stream) -> Vec<(&[u8], u64)> {
    stream.truth.iter().map(|(key, &count)| (key.as_slice(), count)).collect()
}

pub fn knowledge<'a>(entry: &Entry, ranking: &'a [&'a [u8]], sample: &'a [(&'a [u8], u64)]) -> Option<Knowledge<'a>> {
    match entry.oracle {
        Oracle::None => None,
        Oracle::Ideal => Some(Knowledge::Ranking(ranking)),
        Oracle::Trained => Some(Knowledge::Sample(sample)),
    }
}

pub fn plan(stream: &Stream, budget: usize, seed: u64) -> RivalPlan<'static> {
    RivalPlan::new(budget, stream.keys, seed)
}

pub fn build(entry: &Entry, stream: &Stream, budget: usize, seed: u64) -> Box<dyn Rival> {
    let (ranking, sample) = (ranking(stream), sample(stream));
    let plan = RivalPlan { knowledge: knowledge(entry, &ranking, &sample), ..plan(stream, budget, seed) };
    entry.build(&plan).unwrap_or_else(|error| panic!("{} on {}: {error}", entry.name, stream.name))
}

pub fn feed(rival: &mut dyn Rival, stream: &Stream) {
    for (key, weight) in &stream.items {
        rival.insert(key, *weight).unwrap_or_else(|error| panic!("{}: {error}", stream.name));
    }
}

/// Another number for every number.
fn mix(x: u64) -> u64 {
    SplitMix64::new(x).next_u64()
}
