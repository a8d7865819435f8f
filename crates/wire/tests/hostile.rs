//! Bytes from anyone give a message or an error: never a panic, and never an allocation that only a
//! number asked for.
#![allow(unsafe_code, reason = "an allocator that remembers the largest request")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{config, tell, told};
use proptest::prelude::*;
use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
use ucl_wire::{Encoder, MAX_BUFFER, MAX_COUNTERS, Message, Receiver, WireError, decode_message, split_message};

struct Watching;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.with(|largest| largest.set(largest.get().max(layout.size())));
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

/// Decodes, and returns the largest allocation on the way.
fn watched(bytes: &[u8], segment: Option<&Config>) -> (Result<(), WireError>, usize) {
    LARGEST.with(|largest| largest.set(0));
    let result = decode_message(bytes, segment).map(drop);
    (result, LARGEST.with(Cell::get))
}

/// What a decoder may ask for in one go: eight bytes for every counter, and a few times what a
/// sender may collect.
fn bound(config: &Config) -> usize {
    8 * config.shape.geometry().counters() + 4 * MAX_BUFFER
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn messages() -> impl Strategy<Value = (Config, Vec<Vec<u8>>)> {
    config().prop_flat_map(|config| (Just(config), told(config))).prop_map(|(config, told)| {
        let mut messages = Vec::new();
        let mut encoder = Encoder::new(1, config, |message: &[u8]| messages.push(message.to_vec())).unwrap();
        tell(&config, &told, &mut encoder);
        encoder.flush();
        drop(encoder);
        (config, messages)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), config in config()) {
        prop_assert!(decode_message(&bytes, Some(&config)).is_err());
        prop_assert!(Receiver::new(1).receive(&bytes).is_err());
        let _ = split_message(&bytes);
    }

    /// The body is arbitrary but the frame and the checksum hold: the parsers themselves are
    /// reached.
    #[test]
    fn arbitrary_bodies_do_no_harm(
        body in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..3], 0..120), version in 1u8..3, kind in 0u8..6, config in config(),
    ) {
        let mut bytes = vec![b'U', b'C', version, kind, body.len() as u8];
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&[0; 4]);
        let (_, largest) = watched(&with_checksum(bytes), Some(&config));
        prop_assert!(largest <= bound(&config), "{largest} bytes");
    }

    #[test]
    fn a_flipped_bit_is_noticed((config, messages) in messages(), at: prop::sample::Index, bit in 0u32..8) {
        for message in messages {
            let mut broken = message.clone();
            broken[at.index(message.len())] ^= 1 << bit;
            prop_assert!(decode_message(&broken, Some(&config)).is_err());
        }
    }

    #[test]
    fn a_truncated_message_is_noticed((config, messages) in messages(), at: prop::sample::Index) {
        for message in messages {
            let cut = &message[..at.index(message.len())];
            let truncated = matches!(decode_message(cut, Some(&config)), Err(WireError::Truncated { .. }));
            prop_assert!(truncated);
        }
    }

    /// A sender that is wrong but computes its checksum: any outcome but a panic or a large
    /// allocation.
    #[test]
    fn wrong_bytes_with_a_right_checksum_do_no_harm(
        (config, messages) in messages(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for message in messages {
            let mut broken = message.clone();
            for (at, byte) in &flips {
                let at = at.index(message.len() - 4);
                broken[at] = *byte;
            }
            let (_, largest) = watched(&with_checksum(broken), Some(&config));
            prop_assert!(largest <= bound(&config), "{largest} bytes");
        }
    }
}

/// Mutations of the golden messages with right checksums, for as long as one likes:
/// `UCL_FUZZ_SECONDS=600 cargo test -p ucl-wire --test hostile -- --ignored`
#[test]
#[ignore = "takes as long as UCL_FUZZ_SECONDS says"]
fn mutated_messages_do_no_harm_for_long() {
    use std::hash::{BuildHasher, RandomState};
    let seconds = std::env::var("UCL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut random = ucl_streams::SplitMix64::new(RandomState::new().hash_one(0));
    let mut below = |n: usize| random.below(n as u64) as usize;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let mut corpus: Vec<(Config, Vec<u8>)> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap().replace("\n\n", "|").replace('\n', "");
        let messages: Vec<Vec<u8>> = text.split('|').map(|hex| hex.as_bytes().chunks(2).map(byte).collect()).collect();
        let Message::SegmentOpen(config) = decode_message(&messages[0], None).unwrap().1 else { panic!("opens first") };
        corpus.extend(messages.into_iter().map(|message| (config, message)));
    }
    let start = std::time::Instant::now();
    let first = corpus.len();
    let mut rounds = 0u64;
    let mut accepted = 0u64;
    while start.elapsed().as_secs() < seconds {
        let (config, mut bytes) = corpus[below(corpus.len())].clone();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(5) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes[at] = below(256) as u8,
                2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
                3 => bytes.insert(at, below(256) as u8),
                _ if bytes.len() > 20 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        // The frame's length, where it has two bytes, follows.
        let length = bytes.len().saturating_sub(10);
        if (0x80..0x4000).contains(&length) {
            (bytes[4], bytes[5]) = (length as u8 | 0x80, (length >> 7) as u8);
        }
        let bytes = with_checksum(bytes);
        let (result, largest) = watched(&bytes, Some(&config));
        assert!(largest <= bound(&config), "{largest} bytes");
        let _ = Receiver::new(300).receive(&bytes);
        rounds += 1;
        if result.is_ok() {
            accepted += 1;
            match corpus.len() {
                0..500 => corpus.push((config, bytes)),
                full => corpus[first + below(full - first)] = (config, bytes),
            }
        }
    }
    println!("{rounds} messages, {accepted} of them accepted");
    assert!(rounds > 0);
}

fn paper() -> Config {
    Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() }
}

#[test]
fn a_number_alone_allocates_nothing() {
    // Stream, segment, epoch and seq 0, then 2^62 keys.
    let keys = [0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    let mut bytes = vec![b'U', b'C', 1, 1, keys.len() as u8];
    bytes.extend_from_slice(&keys);
    bytes.extend_from_slice(&[0; 4]);
    let (result, largest) = watched(&with_checksum(bytes), Some(&paper()));
    assert!(matches!(result, Err(WireError::TooLarge { what: "keys", .. })), "{result:?}");
    assert!(largest < 1024, "{largest} bytes");
}

#[test]
fn a_sketch_that_no_message_holds_is_refused_by_the_sender() {
    let huge = Config { shape: Shape { rows: 16, width: 1 << 27, ..Shape::PAPER_64KB }, ..paper() };
    let refused = Encoder::new(1, huge, |_: &[u8]| {}).map(drop);
    assert!(matches!(refused, Err(WireError::TooLarge { what: "bytes of counters", .. })));
    let mut open = Vec::new();
    drop(Encoder::new(1, paper(), |message: &[u8]| open = message.to_vec()).unwrap());
    let (result, largest) = watched(&open, Some(&huge));
    assert!(result.is_ok() && largest < 1024, "opening allocates no counters: {largest} bytes");
}

/// How much a reader allocates is the reader's choice, not the sender's.
#[test]
fn a_large_sketch_is_taken_only_by_a_reader_that_says_so() {
    let large = Config { shape: Shape { rows: 4, width: 1 << 23, ..Shape::PAPER_64KB }, ..paper() };
    let counters = large.shape.geometry().counters();
    assert!(counters > MAX_COUNTERS);
    let mut open = Vec::new();
    drop(Encoder::new(1, large, |message: &[u8]| open = message.to_vec()).unwrap());
    let refused = WireError::TooLarge { what: "counters", value: counters as u64, most: MAX_COUNTERS as u64 };
    let (result, largest) = watched(&open, None);
    assert_eq!(result, Err(refused.clone()));
    assert!(largest < 1024, "{largest} bytes");
    let mut receiver = Receiver::new(1);
    assert_eq!(receiver.receive(&open), Err(refused));
    let below = Receiver::new(1).with_counter_limit(counters - 1).receive(&open);
    assert!(matches!(below, Err(WireError::TooLarge { .. })));
    assert_eq!(Receiver::new(1).with_counter_limit(counters).receive(&open), Ok(Message::SegmentOpen(large)));
}

#[test]
fn errors_say_what_to_do() {
    let mut open = Vec::new();
    drop(Encoder::new(1, paper(), |message: &[u8]| open = message.to_vec()).unwrap());
    let error = |bytes: &[u8]| decode_message(bytes, None).unwrap_err().to_string();
    let mut newer = open.clone();
    newer[2] = 6;
    assert_eq!(error(&newer), "the message has version 6, but this reader knows versions up to 5: update it");
    assert_eq!(error(b"GET / HTTP/1.1"), "a message starts with the bytes 55 43, not [47, 45]");
    assert_eq!(error(&open[..9]), format!("message needs {} bytes, but 4 are left", open.len() - 9));
    let twice = [open.clone(), open.clone()].concat();
    assert_eq!(error(&twice), format!("{} bytes follow where the message should end", open.len()));
    let lost = WireError::Lost { expected: 3, got: 6 }.to_string();
    assert_eq!(lost, "messages 3 to 5 are missing before message 6");
}
