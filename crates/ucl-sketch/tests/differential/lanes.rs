//! A program, run on several sketches side by side and against exact counts.

use std::collections::HashMap;

use ucl_sketch::{DecoderKind, Execution, InsertError, QueryView, UclSketch};

use crate::case::{Case, MOST, shape_like};
use crate::random::Random;

/// What was really inserted.
#[derive(Clone, Default)]
struct Truth {
    counts: HashMap<u32, u64>,
    items: u64,
    weight: u64,
}

impl Truth {
    fn add(&mut self, number: u32, weight: u64) {
        *self.counts.entry(number).or_default() += weight;
        (self.items, self.weight) = (self.items + 1, self.weight + weight);
    }

    fn of(&self, number: u32) -> u64 {
        self.counts.get(&number).copied().unwrap_or(0)
    }

    fn merge(&mut self, other: &Self) {
        other.counts.iter().for_each(|(&number, &weight)| *self.counts.entry(number).or_default() += weight);
        (self.items, self.weight) = (self.items + other.items, self.weight + other.weight);
    }
}

/// An inserted item: a key's number, and a weight.
type Item = (u32, u64);

struct Run {
    case: Case,
    /// Synchronous, pipelined, loaded again and again, and one in the background. The first three
    /// agree in every bit.
    lanes: Vec<UclSketch>,
    truth: Truth,
    /// What counted before each change that was sealed, oldest first, and what no longer counts.
    sealed: Vec<Truth>,
    dropped: Truth,
    merged: bool,
    checks: u64,
    tell: bool,
}

/// The lane that is saved and loaded.
const LOADED: usize = 2;
/// The lane in the background, which may add epochs together.
const BACKGROUND: usize = 3;

/// Runs the program of a seed; how many checks it made.
pub fn run(seed: u64, tell: bool) -> u64 {
    let mut random = Random::new(seed);
    let case = Case::random(&mut random);
    if tell {
        eprintln!("{case:#?}");
    }
    let modes = [Execution::Synchronous, Execution::Pipelined, Execution::Synchronous, Execution::Background];
    let build = |mode| case.builder().execution(mode).build().unwrap_or_else(|error| panic!("{error}: {case:?}"));
    let lanes = modes.map(build).into_iter().collect();
    let (truth, dropped) = (Truth::default(), Truth::default());
    let mut run = Run { case, lanes, truth, sealed: Vec::new(), dropped, merged: false, checks: 0, tell };
    for _ in 0..random.between(3, 14) {
        run.step(&mut random);
    }
    run.compare();
    run.check(&mut random);
    run.checks
}

impl Run {
    fn each(&mut self, call: impl Fn(&mut UclSketch)) {
        self.lanes.iter_mut().for_each(call);
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.tell {
            eprintln!("{}", what());
        }
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(24) {
            0..=5 => self.insert(random, false),
            6..=11 => self.insert(random, true),
            12 => self.refuse(random),
            13 => {
                self.tell(|| "cut".into());
                self.each(UclSketch::cut);
            }
            14 | 15 => self.load(),
            16 => self.change(random),
            17 | 18 => self.merge(random),
            19 if random.one_in(3) => self.reset(random.one_in(2)),
            20 => self.drop_oldest(),
            _ => self.check(random),
        }
    }

    fn items(&self, random: &mut Random, left: u64, flat: bool) -> Vec<Item> {
        let mut items = Vec::new();
        let mut left = left;
        for _ in 0..random.spread(600) {
            let mut number = self.case.number(random);
            // A batch has keys of one length.
            number &= if flat { !1 } else { !0 };
            let Some(weight) = self.case.weight(random, left) else { break };
            left -= weight;
            items.push((number, weight));
        }
        items
    }

    fn insert(&mut self, random: &mut Random, flat: bool) {
        let items = self.items(random, MOST - self.truth.weight, flat);
        self.tell(|| format!("insert {} (flat: {flat})", items.len()));
        let case = self.case.clone();
        self.each(|sketch| insert(&case, sketch, &items, flat));
        items.iter().for_each(|&(number, weight)| self.truth.add(number, weight));
    }

    /// Bad input of all kinds is an error, and nothing of it counts.
    fn refuse(&mut self, random: &mut Random) {
        let bytes = self.case.flat_bytes();
        let keys: Vec<u8> = (0..5).flat_map(|number| self.case.key(2 * number)).collect();
        let left = MOST - self.truth.weight;
        let bad = random.below(5);
        let mut weights = [1; 5];
        weights[random.below(5)] = random.pick(&[0, u64::MAX, left.saturating_add(1)]);
        let key = self.case.key(0);
        self.tell(|| format!("refuse {bad}"));
        for sketch in &mut self.lanes[..BACKGROUND] {
            let before = sketch.to_bytes().expect("a state");
            let refused: Result<(), InsertError> = match bad {
                0 => sketch.insert_flat(bytes, &keys, Some(&weights)),
                1 => sketch.insert_flat(bytes, &keys[1..], None),
                2 => sketch.insert_flat(bytes, &keys, Some(&[1; 4])),
                3 => sketch.insert_weighted(&key, weights.into_iter().find(|&weight| weight != 1).unwrap_or(0)),
                _ => sketch.insert(vec![1; 65_536]),
            };
            assert!(refused.is_err(), "bad input {bad} was taken");
            assert!(sketch.to_bytes().expect("a state") == before, "bad input {bad} left a trace");
        }
    }

    fn load(&mut self) {
        self.tell(|| "load".into());
        for lane in [LOADED, BACKGROUND] {
            let bytes = self.lanes[lane].to_bytes().expect("a state");
            self.lanes[lane] = UclSketch::from_bytes(&bytes).unwrap_or_else(|error| panic!("lane {lane}: {error}"));
        }
        let bytes = self.lanes[LOADED].to_bytes().expect("a state");
        assert!(self.lanes[0].to_bytes().expect("a state") == bytes, "a loaded sketch has another state");
    }

    fn change(&mut self, random: &mut Random) {
        let seed = random.wide();
        if random.one_in(2) {
            self.tell(|| format!("rehash {seed}"));
            self.each(|sketch| sketch.rehash(seed).expect("a seed"));
        } else {
            let shape = shape_like(random, &self.case.shape);
            self.tell(|| format!("resize {shape:?}"));
            self.each(|sketch| sketch.resize(shape).expect("a shape"));
            self.case.shape = shape;
        }
        self.sealed.push(self.truth.clone());
    }

    fn merge(&mut self, random: &mut Random) {
        // One that was built alike, and has come to the same configuration; at times it is too
        // heavy.
        let config = *self.lanes[0].config();
        let case = self.case.clone();
        let mut other = case.builder().build().expect("a case");
        let mut truth = Truth::default();
        let left = MOST - self.truth.weight;
        let too_heavy = random.one_in(12) && left < MOST;
        let elsewhere = random.one_in(3);
        for flat in [false, true] {
            if elsewhere && !flat {
                other.resize(shape_like(random, &case.shape)).expect("a shape");
            } else if *other.config() != config {
                other.resize(config.shape).expect("a shape");
                other.rehash(config.seed.value()).expect("a seed");
            }
            let items = self.items(random, left - truth.weight, flat);
            insert(&case, &mut other, &items, flat);
            items.iter().for_each(|&(number, weight)| truth.add(number, weight));
            if random.one_in(2) {
                other.cut();
            }
        }
        if too_heavy {
            other.insert_weighted(case.key(0), left + 1 - truth.weight).expect("within the limit by itself");
        }
        self.tell(|| format!("merge {} items (too heavy: {too_heavy})", truth.items));
        let bytes = other.to_bytes().expect("a state");
        for sketch in &mut self.lanes {
            let other = UclSketch::from_bytes(&bytes).expect("what was just written");
            let merged = sketch.merge(other);
            assert_eq!(merged.is_err(), too_heavy, "{merged:?}");
        }
        if !too_heavy {
            self.truth.merge(&truth);
            self.merged = true;
        }
    }

    fn reset(&mut self, keep_weights: bool) {
        self.tell(|| "reset".into());
        self.each(|sketch| sketch.reset(keep_weights));
        (self.truth, self.dropped, self.merged) = Default::default();
        self.sealed.clear();
    }

    fn drop_oldest(&mut self) {
        // Which of several streams' segments is the oldest is a matter of their items.
        if self.merged {
            return;
        }
        self.tell(|| "drop the oldest segment".into());
        let there_is = !self.sealed.is_empty();
        self.each(|sketch| assert_eq!(sketch.drop_oldest_segment(), Ok(there_is)));
        if there_is {
            self.dropped = self.sealed.remove(0);
        }
    }

    /// The first lanes have the same state, bit for bit.
    fn compare(&mut self) {
        let states: Vec<Vec<u8>> =
            self.lanes[..BACKGROUND].iter_mut().map(|sketch| sketch.to_bytes().expect("a state")).collect();
        assert!(states[0] == states[1], "pipelined is not as synchronous");
        assert!(states[0] == states[LOADED], "loaded is not as synchronous");
    }

    /// Asks every lane for every key.
    fn check(&mut self, random: &mut Random) {
        self.tell(|| "check".into());
        let known: Vec<QueryView> =
            self.lanes.iter_mut().map(|sketch| sketch.query_view().unwrap_or_else(|fault| panic!("{fault}"))).collect();
        for (lane, view) in known.iter().enumerate() {
            assert_eq!((view.items(), view.weight()), (self.truth.items, self.truth.weight), "lane {lane}");
            assert_eq!(view.since(), self.dropped.items, "lane {lane}");
        }
        let strangers = random.between(0, 1 << 30) as u32;
        let numbers =
            (0..self.case.universe).chain((0..self.case.universe).map(|n| self.case.universe + strangers + n));
        for number in numbers {
            let key = self.case.key(number);
            let truth = self.truth.of(number) - self.dropped.of(number);
            let first = known[0].estimate(&key);
            for (lane, view) in known.iter().enumerate() {
                let answer = view.estimate(&key);
                let sound = answer.lower <= answer.estimate && answer.estimate <= answer.upper;
                let holds = answer.lower <= truth && truth <= answer.upper;
                assert!(sound && holds, "lane {lane}, key {number} has {truth}: {answer:?}");
                assert!(!self.case.is_exact() || answer.lower == answer.upper, "key {number} has {truth}: {answer:?}");
                assert!(lane == BACKGROUND || answer == first, "lane {lane}, key {number}: {answer:?}, not {first:?}");
                let likely = view.likely(&key);
                let sound = likely.lower <= likely.estimate && likely.estimate <= likely.upper;
                let within = answer.lower <= likely.lower && likely.upper <= answer.upper;
                assert!(sound && within, "lane {lane}, key {number}: {likely:?} of {answer:?}");
                let same = lane == BACKGROUND || likely == known[0].likely(&key);
                assert!(same, "lane {lane}, key {number}: {likely:?}");
                self.checks += 1;
            }
        }
        // What is asked of a view beside keys must not fail either.
        let view = &known[0];
        let _ = (view.top(3), view.histogram(), view.entropy(), view.estimated_lost_keys(), view.filter_overflows());
        let residual = view.self_check().unwrap_or_else(|error| panic!("{error}"));
        assert!(residual.is_none_or(|check| check.residual >= 0.0), "{residual:?}");
        let epochs = view.series().epochs(..).count();
        assert!(epochs == 0 || self.case.settings.decoder == DecoderKind::Delta);
    }
}

/// Inserts items one by one, or in batches.
fn insert(case: &Case, sketch: &mut UclSketch, items: &[Item], flat: bool) {
    if !flat {
        for &(number, weight) in items {
            let key = case.key(number);
            if weight == 1 { sketch.insert(&key) } else { sketch.insert_weighted(&key, weight) }.expect("an item");
        }
        return;
    }
    fn batch<const N: usize>(sketch: &mut UclSketch, keys: &[u8]) -> Result<(), InsertError> {
        sketch.insert_batch(keys.as_chunks::<N>().0)
    }
    let keys: Vec<u8> = items.iter().flat_map(|&(number, _)| case.key(number)).collect();
    let weights: Vec<u64> = items.iter().map(|&(_, weight)| weight).collect();
    let ones = weights.iter().all(|&weight| weight == 1);
    let inserted = match case.flat_bytes() {
        4 if ones => batch::<4>(sketch, &keys),
        8 if ones => batch::<8>(sketch, &keys),
        13 if ones => batch::<13>(sketch, &keys),
        16 if ones => batch::<16>(sketch, &keys),
        7 if ones => batch::<7>(sketch, &keys),
        bytes => sketch.insert_flat(bytes, &keys, Some(&weights)),
    };
    inserted.expect("a batch");
}
