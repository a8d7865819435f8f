use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Counts on a device, and what a server makes of its messages alone.
fn counts<const N: usize>(
    shape: MirroredShape,
    items: &[([u8; N], u64)],
    cut_every: usize,
    seed: u128,
) -> HashMap<[u8; N], u64> {
    let mut device = MirroredPart::<N>::new(shape, seed.into());
    let mut server = Mirror::new(shape, N, seed.into());
    let (mut message, mut counts) = (Vec::new(), HashMap::new());
    let mut link = |piece: Pieces<'_>| match piece {
        Pieces::Bytes(bytes) => message.extend_from_slice(bytes),
        Pieces::End { cut } => {
            server.read(&message, cut, |key, count| *counts.entry(key.try_into().unwrap()).or_insert(0) += count);
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
    counts
}

fn exact<const N: usize>(items: &[([u8; N], u64)]) -> HashMap<[u8; N], u64> {
    let mut counts = HashMap::new();
    for (key, weight) in items {
        *counts.entry(*key).or_insert(0) += weight;
    }
    counts
}

fn shapes() -> impl Strategy<Value = MirroredShape> {
    (prop_oneof![1u32..4, 1u32..40], 3u32..21, 40usize..600, prop::sample::select(&[Policy::Skewed, Policy::Flows][..]))
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

    #[test]
    fn any_bytes_can_be_read(shape in shapes(), messages in prop::collection::vec(any::<(Vec<u8>, bool)>(), 0..5)) {
        for key_bytes in [4, 8, 13, 16] {
            let mut mirror = Mirror::new(shape, key_bytes, 1.into());
            for (message, cut) in &messages {
                mirror.read(message, *cut, |key, _| assert_eq!(key.len(), key_bytes));
            }
        }
    }
}

#[test]
fn the_memory_is_what_was_planned() {
    fn check<const N: usize>(budget: usize) {
        let shape = MirroredShape::within(budget, N).unwrap();
        let memory = MirroredPart::<N>::new(shape, 1.into()).memory();
        assert_eq!(memory.total(), shape.memory(N), "{N} bytes in {budget}: {memory}");
        assert!(memory.total() <= budget && memory.total() > budget - budget / 50 - 300, "{N} in {budget}: {memory}");
    }
    for budget in [8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20] {
        check::<4>(budget);
        check::<8>(budget);
        check::<13>(budget);
        check::<16>(budget);
    }
    assert_eq!(MirroredShape::within(500, 4), None);
}
