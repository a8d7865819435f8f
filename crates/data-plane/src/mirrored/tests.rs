use super::*;
use crate::heavy::HeavyKind;
use crate::{ReportRule, Shape};
use proptest::prelude::*;
use std::collections::HashMap;

/// The keys that a server knows, with their counts.
#[derive(Default)]
struct Book {
    numbers: HashMap<Vec<u8>, u32>,
    counts: Vec<(Vec<u8>, u64)>,
}

impl KeyBook for Book {
    fn number(&mut self, key: &[u8]) -> u32 {
        *self.numbers.entry(key.to_vec()).or_insert_with(|| {
            self.counts.push((key.to_vec(), 0));
            self.counts.len() as u32 - 1
        })
    }

    fn key(&self, number: u32) -> &[u8] {
        &self.counts[number as usize].0
    }

    fn count(&mut self, number: u32, count: u64) {
        let sum = &mut self.counts[number as usize].1;
        *sum = sum.saturating_add(count);
    }
}

/// Counts on a device, and what a server makes of its messages alone.
fn counts<const N: usize>(
    shape: MirroredShape,
    items: &[([u8; N], u64)],
    cut_every: usize,
    seed: u128,
) -> HashMap<[u8; N], u64> {
    let keys = KeyFormat::Fixed(N as u8);
    let mut device = MirroredPart::<N>::new(shape, keys, seed.into());
    let mut server = Mirror::new(shape, keys, seed.into());
    let (mut message, mut book) = (Vec::new(), Book::default());
    let mut link = |piece: Pieces<'_>| match piece {
        Pieces::Bytes(bytes) => message.extend_from_slice(bytes),
        Pieces::End { cut } => {
            server.read(&message, cut, &mut book).unwrap();
            message.clear();
        }
    };
    for (i, (key, weight)) in items.iter().enumerate() {
        device.insert(key, *weight, &mut link);
        if (i + 1) % cut_every == 0 {
            device.cut(&mut link);
        }
    }
    device.cut(&mut link);
    let counted = book.counts.into_iter().filter(|(_, count)| *count > 0);
    counted.map(|(key, count)| (key[..].try_into().unwrap(), count)).collect()
}

fn exact<const N: usize>(items: &[([u8; N], u64)]) -> HashMap<[u8; N], u64> {
    let mut counts = HashMap::new();
    for (key, weight) in items {
        *counts.entry(*key).or_insert(0) += weight;
    }
    counts
}

fn shapes() -> impl Strategy<Value = MirroredShape> {
    (
        prop_oneof![1u32..4, 1u32..40],
        prop_oneof![Just(6u8), 3u8..21],
        40u32..600,
        prop::sample::select(&[Policy::Skewed, Policy::Flows][..]),
    )
        .prop_map(|(sets, count_bits, buffer, policy)| MirroredShape { sets, count_bits, buffer, policy })
}

/// Few keys and many, near each other and far apart; weights small, filling, and large.
fn items<const N: usize>() -> impl Strategy<Value = Vec<([u8; N], u64)>> {
    let near = (0u8..4, any::<u8>()).prop_map(|(high, low)| {
        let mut key = [0; N];
        (key[0], key[1]) = (low, high);
        key
    });
    let key = prop_oneof![3 => near, 1 => any::<u64>().prop_map(|x| core::array::from_fn(|i| (x >> (8 * (i % 8))) as u8 ^ i as u8))];
    let weight = prop_oneof![10 => Just(1u64), 3 => 1u64..100, 1 => 1u64..1 << 40];
    prop::collection::vec((key, weight), 0..1500)
}

fn check_batches<const N: usize>(
    shape: MirroredShape,
    items: &[([u8; N], u64)],
    batch: usize,
) -> Result<(), TestCaseError> {
    let new = || MirroredPart::<N>::new(shape, KeyFormat::Fixed(N as u8), 3.into());
    let (mut single, mut many) = (new(), new());
    let mut sent = [Vec::new(), Vec::new()];
    let [ours, theirs] = &mut sent;
    for (key, weight) in items {
        single.insert(key, *weight, &mut |piece| ours.push(std::format!("{piece:?}")));
    }
    for items in items.chunks(batch) {
        let keys: Vec<_> = items.iter().map(|item| item.0).collect();
        many.insert_batch(&keys, |at| items[at].1, &mut |piece| theirs.push(std::format!("{piece:?}")));
    }
    prop_assert_eq!(&sent[0], &sent[1]);
    prop_assert_eq!(single, many);
    Ok(())
}

proptest! {
    #[test]
    fn every_count_is_rebuilt_from_the_bytes(
        shape in shapes(),
        four in items::<4>(), eight in items::<8>(), thirteen in items::<13>(), sixteen in items::<16>(),
        cut_every in 1usize..2000,
        seed: u128,
    ) {
        prop_assert_eq!(counts(shape, &four, cut_every, seed), exact(&four));
        prop_assert_eq!(counts(shape, &eight, cut_every, seed), exact(&eight));
        prop_assert_eq!(counts(shape, &thirteen, cut_every, seed), exact(&thirteen));
        prop_assert_eq!(counts(shape, &sixteen, cut_every, seed), exact(&sixteen));
    }

    /// Items come one by one or together: the table, what waits and what was sent are the same.
    #[test]
    fn batches_are_what_their_items_are(
        shape in shapes(),
        four in items::<4>(), eight in items::<8>(), thirteen in items::<13>(),
        batch in 1usize..200,
    ) {
        check_batches(shape, &four, batch)?;
        check_batches(shape, &eight, batch)?;
        check_batches(shape, &thirteen, batch)?;
    }

    #[test]
    fn any_bytes_can_be_read(shape in shapes(), messages in prop::collection::vec(any::<(Vec<u8>, Option<u64>)>(), 0..5)) {
        for key_bytes in [4, 8, 13, 16] {
            let (mut mirror, mut book) = (Mirror::new(shape, KeyFormat::Fixed(key_bytes), 1.into()), Book::default());
            for (message, cut) in &messages {
                let read = mirror.read(message, *cut, &mut book);
                prop_assert_eq!(read.is_err(), cut.is_some_and(|cut| cut != mirror.digest(&book)));
            }
            prop_assert!(book.counts.iter().all(|(key, _)| key.len() == usize::from(key_bytes)));
        }
    }
}

/// One hot key in each set, all alike: their records take a fraction of a bit each, and a message
/// of a few bytes has thousands.
#[test]
fn messages_of_next_to_nothing_are_read_whole() {
    let shape = MirroredShape { sets: 1_500, count_bits: 3, buffer: 8_000, policy: Policy::Skewed };
    let round = (0..1_500u32).map(|key| (key.to_le_bytes(), 1));
    let items: Vec<_> = core::iter::repeat_n(round, 200).flatten().collect();
    assert_eq!(counts(shape, &items, 250_000, 5), exact(&items));
}

#[test]
fn the_memory_is_what_was_planned() {
    fn check<const N: usize>(budget: usize) {
        let keys = KeyFormat::Fixed(N as u8);
        let shape = MirroredShape::within(budget, keys).unwrap();
        let memory = MirroredPart::<N>::new(shape, keys, 1.into()).memory();
        assert_eq!(memory.total(), shape.memory(keys), "{N} bytes in {budget}: {memory}");
        let config = crate::Config { keys, shape: Shape::mirrored(shape, 0, 1), rule: ReportRule::New, seed: 1.into() };
        let plane = MirroredPlane::<N>::new(config).unwrap();
        assert_eq!(plane.memory().total(), config.memory().total());
        assert!(memory.total() <= budget && memory.total() > budget - budget / 50 - 300, "{N} in {budget}: {memory}");
    }
    for budget in [8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20] {
        check::<4>(budget);
        check::<8>(budget);
        check::<13>(budget);
        check::<16>(budget);
    }
    assert_eq!(MirroredShape::within(500, KeyFormat::Fixed(4)), None);
}

mod budget {
    use super::*;
    use crate::mirrored::Allowance;
    use crate::{Config, Report};

    /// So small that everything collides.
    fn config(counters: u32) -> Config {
        let table = MirroredShape { sets: 5, count_bits: 3, buffer: 60, policy: Policy::Skewed };
        Config {
            keys: KeyFormat::Fixed(4),
            shape: Shape::absorbing(table, counters, 0, 1),
            rule: ReportRule::New,
            seed: 3.into(),
        }
    }

    fn item() -> impl Strategy<Value = (u32, u64)> {
        (prop_oneof![3 => 0u32..20, 1 => 0u32..2_000], prop_oneof![9 => Just(1u64), 1 => 1u64..5_000])
    }

    /// All that a server learns: exact counts by key, the weight that was absorbed, and what the
    /// counters of the first row add up to.
    #[derive(Default)]
    struct Server {
        book: Book,
        message: Vec<u8>,
        absorbed: u64,
        first_row: u64,
        exported: u64,
    }

    impl Server {
        fn take(&mut self, mirror: &mut Mirror, width: u32, report: Report<'_>) {
            match report {
                Report::Export(Pieces::Bytes(bytes)) => {
                    self.exported += bytes.len() as u64;
                    self.message.extend_from_slice(bytes);
                }
                Report::Export(Pieces::End { cut }) => {
                    mirror.read(&self.message, cut, &mut self.book).unwrap();
                    self.message.clear();
                }
                Report::Carry { at, times } if at.0 < width => self.first_row += 256 * times as u64,
                Report::Carry { .. } => {}
                Report::Cut(cut) => {
                    self.absorbed = cut.totals.sketch_weight;
                    self.first_row += cut.counters.iter().take(width as usize).sum::<i64>() as u64;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    proptest! {
        /// What was exported and what was absorbed is all there is; nobody has more than the truth;
        /// and what is not absorbed at all is exact. Batches do as single inserts do.
        #[test]
        fn everything_is_somewhere(
            items in prop::collection::vec(item(), 1..600),
            per_item in prop::sample::select(&[None, Some(0.0), Some(0.2), Some(1.0), Some(20.0)][..]),
            freeze in any::<bool>(),
            cut_every in 1usize..700,
        ) {
            let (config, width) = (config(16), 16);
            let HeavyKind::Mirrored(table) = config.shape.heavy else { unreachable!() };
            let mut plane = BudgetPlane::<4>::new(config).unwrap();
            if let Some(bytes) = per_item {
                plane.set_allowance(Allowance::per_item(bytes));
            }
            let mut batched = plane.clone();
            let mut mirror = Mirror::new(table, config.keys, config.seed);
            let (mut server, mut truth) = (Server::default(), HashMap::<u32, u64>::new());
            let mut sink = |report: Report<'_>| server.take(&mut mirror, width, report);
            for (i, chunk) in items.chunks(cut_every).enumerate() {
                plane.freeze(freeze && i % 3 == 1);
                batched.freeze(freeze && i % 3 == 1);
                for &(key, weight) in chunk {
                    plane.insert(&key.to_le_bytes(), weight, &mut sink).unwrap();
                    *truth.entry(key).or_default() += weight;
                }
                let keys: Vec<[u8; 4]> = chunk.iter().map(|(key, _)| key.to_le_bytes()).collect();
                let weights: Vec<u64> = chunk.iter().map(|&(_, weight)| weight).collect();
                batched.insert_weighted_batch(&keys, &weights, &mut |_: Report<'_>| ()).unwrap();
                prop_assert_eq!(&batched, &plane);
                plane.cut(&mut sink);
                batched.cut(&mut |_: Report<'_>| ());
            }
            let all: u64 = truth.values().sum();
            let counts: HashMap<u32, u64> = server.book.counts.iter()
                .map(|(key, count)| (u32::from_le_bytes(key[..].try_into().unwrap()), *count)).collect();
            prop_assert_eq!(counts.values().sum::<u64>() + server.absorbed, all);
            prop_assert_eq!(server.first_row, server.absorbed);
            for (key, count) in counts {
                prop_assert!(count <= truth.get(&key).copied().unwrap_or(0), "{}", key);
            }
            if per_item.is_none() && !freeze {
                prop_assert_eq!(server.absorbed, 0);
            }
            prop_assert!(plane.allowance().spent() >= server.exported);
        }

        /// Between cuts, what goes up stays within what is allowed, but for the records that a
        /// batch had when it became full.
        #[test]
        fn the_allowance_is_kept(keys in prop::collection::vec(0u32..3_000, 500..4_000), hundredths in 1u32..300) {
            let mut plane = BudgetPlane::<4>::new(config(64)).unwrap();
            plane.set_allowance(Allowance::per_item(f64::from(hundredths) / 100.0));
            let mut messages = 0;
            for key in keys {
                let mut sink = |report: Report<'_>| messages += u64::from(matches!(report, Report::Export(Pieces::End { .. })));
                plane.insert(&key.to_le_bytes(), 1, &mut sink).unwrap();
                let over = -plane.allowance().left(plane.items());
                prop_assert!(over < 200, "{} bytes too many", over);
            }
        }
    }

    #[test]
    fn a_frozen_table_sends_nothing() {
        let mut plane = BudgetPlane::<4>::new(config(16)).unwrap();
        plane.freeze(true);
        for key in 0..5_000u32 {
            let mut sink = |report: Report<'_>| assert!(matches!(report, Report::Carry { .. }), "{report:?}");
            plane.insert(&(key % 70).to_le_bytes(), 1, &mut sink).unwrap();
        }
        assert!(plane.absorbed() > 4_000);
    }
}
