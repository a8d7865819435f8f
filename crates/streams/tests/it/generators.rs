//! Generated streams: pinned bit by bit, and alike in kind to what they stand for.

use std::ops::ControlFlow;

use ucl_streams::{CaidaLike, ExactCounts, Format, ReadOptions, Source, ZipfKeys, read};

fn counts(source: &str, seed: u64) -> ExactCounts {
    let mut counts = ExactCounts::new();
    let options = ReadOptions { seed, ..ReadOptions::default() };
    read(&[source.parse::<Source>().unwrap()], &options, &mut |batch| {
        counts.insert_batch(batch);
        ControlFlow::Continue(())
    })
    .unwrap();
    counts
}

fn share(counts: &ExactCounts, n: usize) -> f64 {
    counts.top(n).iter().map(|(_, count)| count).sum::<u64>() as f64 / counts.total() as f64
}

/// FNV-1a, to pin long streams in one number.
fn digest(keys: impl Iterator<Item = impl AsRef<[u8]>>) -> u64 {
    keys.fold(0xcbf2_9ce4_8422_2325, |hash, key| {
        key.as_ref().iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    })
}

#[test]
fn goldens() {
    let numbers =
        |skew, keys, seed| ZipfKeys::new(skew, keys, seed).take(4).map(u32::from_le_bytes).collect::<Vec<_>>();
    assert_eq!(numbers(1.2, 1 << 31, 0), [3_166_249_182, 349_094_640, 3_471_071_197, 827_166_128]);
    assert_eq!(numbers(0.0, 1 << 32, 1), [1_924_278_087, 1_607_060_227, 3_956_953_753, 428_697_964]);
    assert_eq!(digest(ZipfKeys::new(1.2, (1 << 31) - 1, 42).take(100_000)), 0xae4e_becb_8374_e738);
    assert_eq!(digest(ZipfKeys::new(1.0, 1000, 42).take(100_000)), 0xa21a_639b_2177_e79c);
    let flows: Format = "pcap".parse().unwrap();
    let first: Vec<_> = CaidaLike::new(1_000_000, 0).take(2).map(|key| flows.key_display(&key)).collect();
    assert_eq!(first, ["107.247.110.74:56326 > 38.37.62.35:8080 tcp", "114.144.29.91:8411 > 15.188.116.76:443 tcp"]);
    assert_eq!(digest(CaidaLike::new(1_000_000, 42).take(100_000)), 0x6ecb_d7d2_b240_a66d);
}

#[test]
fn zipf_is_the_papers() {
    // The paper: 2M items, around 22K to 214K distinct keys. Expected for 2^31 - 1 keys: 22.4K and
    // 213.5K.
    let (steep, flat) = (counts("zipf:1.5", 1), counts("zipf:1.2", 1));
    assert_eq!((steep.total(), flat.total()), (2_000_000, 2_000_000));
    assert!((21_500..23_300).contains(&steep.distinct()), "{}", steep.distinct());
    assert!((209_000..218_000).contains(&flat.distinct()), "{}", flat.distinct());
    // The first rank's probability is 1 / zeta(1.5) = 0.3828.
    assert!((share(&steep, 1) - 0.3828).abs() < 0.002);
}

#[test]
fn zipf_seeds_differ_and_keys_are_bounded() {
    let (one, two) = (counts("zipf:1.2:20000", 1), counts("zipf:1.2:20000", 2));
    assert_ne!(one.top(1)[0].0, two.top(1)[0].0);
    assert_eq!(counts("zipf:0:50000:100", 3).distinct(), 100);
}

/// Bounds around a reference trace of 1M packets: 103,414 flows, 50,913 of them of one packet, the
/// largest 1.42%, the ten largest 10.5%, the hundred largest 29.2%, the thousand largest 53.7%.
#[test]
fn caida_like_is_alike() {
    for seed in [1, 2, 3] {
        let counts = counts("caida-like", seed);
        let flows = counts.distinct();
        assert!((92_000..112_000).contains(&flows), "{flows} flows");
        let single = counts.iter().filter(|(_, count)| *count == 1).count() as f64 / flows as f64;
        assert!((0.46..0.52).contains(&single), "{single} of them single");
        for (n, range) in [(1, 0.009..0.021), (10, 0.07..0.13), (100, 0.25..0.33), (1000, 0.50..0.58)] {
            let share = share(&counts, n);
            assert!(range.contains(&share), "top {n}: {share}");
        }
    }
}

#[test]
fn caida_like_flows_come_and_go() {
    let packets: Vec<_> = CaidaLike::new(200_000, 5).take(200_000).collect();
    let mut seen = std::collections::HashMap::new();
    for (at, key) in packets.iter().enumerate() {
        seen.entry(key).or_insert((at, at, 0)).1 = at;
        seen.get_mut(key).unwrap().2 += 1;
    }
    // New flows appear until the end, and those of moderate size do not last the whole stream.
    let late = seen.values().filter(|(first, ..)| *first >= 150_000).count();
    assert!(late * 10 > seen.len(), "{late} of {}", seen.len());
    let mut lives: Vec<_> =
        seen.values().filter(|(.., n)| (11..=100).contains(n)).map(|(first, last, _)| last - first).collect();
    lives.sort_unstable();
    assert!((3_000..80_000).contains(&lives[lives.len() / 2]), "median life {}", lives[lives.len() / 2]);
    // Bursts: the next packet is far more often of the same flow than at random order.
    let repeats = packets.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(repeats > 2_000, "{repeats}");
    assert!(packets.iter().all(|key| matches!(key[12], 6 | 17)));
}
