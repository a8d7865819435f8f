//! Bytes from anyone give a sketch that works or an error: never a panic, and never an allocation
//! that only a number asked for. `fuzz/` looks for more of the same with a fuzzer's patience.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ucl_sketch::state::{FORMAT_VERSION, mend};
use ucl_sketch::{Base, CounterBits, DecoderKind, HeavyKind, KeyFormat, LoadError, UclSketch};
use ucl_streams::SplitMix64;

use crate::cases::{Case, stream};
use crate::golden;

struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends may allocate when its memory of this is gone already.
        let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(layout.size())));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What reading may ask for in one go: a few times the file, and what `serde` is ready to reserve
/// on a number's word.
fn bound(file: usize) -> usize {
    64 * file + (4 << 20)
}

/// Loads; whatever was loaded must work. Whether it was.
fn try_load(bytes: &[u8]) -> bool {
    LARGEST.with(|largest| largest.set(0));
    let loaded = UclSketch::from_bytes(bytes);
    let largest = LARGEST.with(Cell::get);
    assert!(largest <= bound(bytes.len()), "{largest} bytes at once for a file of {}", bytes.len());
    let Ok(mut sketch) = loaded else { return false };
    let again = sketch.to_bytes().unwrap();
    assert!(UclSketch::from_bytes(&again).unwrap().to_bytes().unwrap() == again, "what was accepted is kept");
    if let KeyFormat::Fixed(bytes) = sketch.config().keys {
        for i in 0..30u8 {
            let _ = sketch.insert(vec![i; bytes.into()]);
        }
    } else {
        let _ = sketch.insert(b"/page/1");
    }
    if let Ok(view) = sketch.query_view() {
        assert!(view.all().all(|(_, answer)| answer.lower <= answer.estimate && answer.estimate <= answer.upper));
        let _ = (view.entropy(), view.mean_bound_width(), view.top(3), view.estimated_lost_keys());
    }
    // Training may be asked for any number of steps, and would take them.
    if sketch.with_control(|control| control.network().is_none()) {
        sketch.cut();
        let copy = UclSketch::from_bytes(bytes).unwrap();
        let _ = UclSketch::from_bytes(bytes).unwrap().merge(copy);
        let _ = sketch.rehash(5);
        let _ = (sketch.insert(b"key1"), sketch.query_view().is_ok());
        while let Ok(true) = sketch.drop_oldest_segment() {
            let _ = sketch.query_view().map(|view| view.estimate(b"key1"));
        }
    }
    true
}

/// Mutations that are the same everywhere.
struct Random(SplitMix64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }
}

fn mutate(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => bytes.truncate(at.max(1)),
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                drop(bytes.drain(at..end));
            }
            5 => {
                let other = &others[random.below(others.len())];
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(200)).min(other.len())];
                bytes.splice(at..at, part.iter().copied());
            }
            _ => {
                // A number larger than anything.
                let end = (at + 10).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

fn files() -> Vec<Vec<u8>> {
    let read = |(name, _, _): (&str, Case, bool)| std::fs::read(golden::path(FORMAT_VERSION, name)).unwrap();
    let mut files: Vec<Vec<u8>> = golden::files(FORMAT_VERSION).into_iter().map(read).collect();
    for (decoder, keys, bits, base, heavy) in [
        (DecoderKind::Delta, KeyFormat::Digest, CounterBits::B8, Base::CountMin, HeavyKind::Elastic),
        (DecoderKind::Cm, KeyFormat::Fixed(16), CounterBits::B32, Base::CountSketch, HeavyKind::Voting),
        (DecoderKind::Refined, KeyFormat::Fixed(4), CounterBits::B8, Base::CountMin, HeavyKind::Augmented),
    ] {
        if !decoder.is_built() {
            continue;
        }
        let case = Case { bits, base, heavy, uplink: true, ..Case::new(decoder, keys) };
        let mut sketch = case.build();
        case.insert(&mut sketch, &stream(330));
        files.push(sketch.to_bytes().unwrap());
    }
    files
}

#[test]
fn mutated_files_do_no_harm() {
    let files = files();
    let mut random = Random::new(5);
    assert!(files.iter().all(|file| try_load(file)));
    let (mut refused, mut past_the_checksums) = (0, 0);
    for round in 0..6_000 {
        let mut bytes = files[round % files.len()].clone();
        mutate(&mut bytes, &files, &mut random);
        let unchanged = files.contains(&bytes);
        assert!(unchanged || UclSketch::from_bytes(&bytes).is_err(), "damage is noticed");
        mend(&mut bytes);
        let read = UclSketch::from_bytes(&bytes).map(drop);
        let past = matches!(read, Err(LoadError::Malformed { .. } | LoadError::Inconsistent(_)));
        past_the_checksums += usize::from(past);
        refused += usize::from(!try_load(&bytes));
    }
    // The mending works, and most of what gets through it is noticed.
    assert!(past_the_checksums > 2_000, "{past_the_checksums} of 6000");
    assert!((3_000..6_000).contains(&refused), "{refused} of 6000");
}

/// As long as one likes, with other mutations every time:
/// `UCL_FUZZ_SECONDS=600 cargo test -p ucl-sketch --test state -- --ignored`
#[test]
#[ignore = "takes as long as UCL_FUZZ_SECONDS says"]
fn mutated_files_do_no_harm_for_long() {
    let seconds = std::env::var("UCL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let start = std::time::Instant::now();
    let mut corpus = files();
    let seed = random_seed();
    let mut random = Random::new(seed);
    let mut rounds = 0u64;
    let mut accepted = 0u64;
    let first = corpus.len();
    while start.elapsed().as_secs() < seconds {
        let mut bytes = corpus[random.below(corpus.len())].clone();
        mutate(&mut bytes, &corpus, &mut random);
        let _ = UclSketch::from_bytes(&bytes).is_ok();
        mend(&mut bytes);
        rounds += 1;
        if try_load(&bytes) {
            accepted += 1;
            // What was accepted is a place to go on from; a place at random makes room for it.
            match corpus.len() {
                0..500 => corpus.push(bytes),
                full => corpus[first + random.below(full - first)] = bytes,
            }
        }
    }
    println!("seed {seed}: {rounds} files, {accepted} of them accepted");
    assert!(rounds > 0);
}

fn random_seed() -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new().hash_one(0)
}

/// Single bytes at every place of the sections that say how large everything is.
#[test]
fn every_byte_of_a_small_file_may_be_wrong() {
    let good = files().swap_remove(1);
    for at in 0..good.len().min(2_500) {
        for byte in [0, 0xff, good[at] ^ 1, good[at].wrapping_add(1)] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            mend(&mut bytes);
            try_load(&bytes);
        }
    }
}
