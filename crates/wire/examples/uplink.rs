//! What a stream costs to send: uplink bytes per item, by part, for several intervals between cuts,
//! beside the order-0 entropy of the counters.
//!
//! Items are whitespace-separated numbers on standard input, counted as 4-byte keys in 64KB (narrow
//! shapes): `zcat retail.dat.gz | cargo run --release -p ucl-wire --example uplink`

use std::io::Read;

use ucl_data_plane::{
    Base, BloomKind, Config, CounterBits, DataPlane, HeavyKind, KeyFormat, Report, ReportRule, ReportSink, Shape,
};
use ucl_wire::{Encoder, Message, Receiver};

/// An encoder that also adds up the order-0 entropy of every snapshot.
struct Measured<S> {
    encoder: S,
    entropy_bits: f64,
}

impl<S: ReportSink> ReportSink for Measured<S> {
    fn report(&mut self, report: Report<'_>) {
        if let Report::Cut(cut) = &report {
            let mut counts = std::collections::BTreeMap::<i64, u32>::new();
            cut.counters.iter().for_each(|value| *counts.entry(value).or_default() += 1);
            let n = cut.counters.len() as f64;
            self.entropy_bits += counts.values().map(|&c| f64::from(c) * (n / f64::from(c)).log2()).sum::<f64>();
        }
        self.encoder.report(report);
    }
}

fn narrow(bits: CounterBits, width: u32, seed: u64) -> Config {
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 163,
        vote_ratio: 8,
        base: Base::CountMin,
        rows: 4,
        width,
        counter_bits: bits,
        bloom: BloomKind::Classic,
        bloom_bits: 209_715,
        bloom_hashes: 6,
    };
    Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: u128::from(seed).into() }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let items: Vec<[u8; 4]> = text
        .split_ascii_whitespace()
        .map(|item| Ok(item.parse::<u32>()?.to_le_bytes()))
        .collect::<Result<_, std::num::ParseIntError>>()?;
    println!("{} items; bytes per item, mean of 3 seeds", items.len());
    println!("counters        interval   total    keys carries   slots counters (entropy) headers  bytes/message");
    for (bits, width, interval) in [
        (CounterBits::B8, 9_338, usize::MAX),
        (CounterBits::B8, 9_338, 64_000),
        (CounterBits::B8, 9_338, 16_000),
        (CounterBits::B8, 9_338, 1_000),
        (CounterBits::B8, 4_000, 1_000),
        (CounterBits::B8, 1_024, 1_000),
        (CounterBits::B4, 18_677, usize::MAX),
        (CounterBits::B4, 18_677, 64_000),
        (CounterBits::B32, 1_024, 16_000),
    ] {
        let mut sums = [0.0; 7];
        let mut messages = 0;
        for seed in 1..=3 {
            let config = narrow(bits, width, seed);
            let mut plane = DataPlane::<4>::new(config)?;
            let mut receiver = Receiver::new(seed);
            let mut items_received = 0;
            let deliver = |message: &[u8]| {
                let message = receiver.receive(message).expect("what the encoder writes can be read");
                if let Message::Reports(reports) = message {
                    items_received = reports.cut.map_or(items_received, |cut| cut.totals.items);
                }
            };
            let mut sink = Measured { encoder: Encoder::new(seed, config, deliver)?, entropy_bits: 0.0 };
            for epoch in items.chunks(interval.min(items.len().max(1))) {
                plane.insert_batch(epoch, &mut sink).expect("few items");
                plane.cut(&mut sink);
            }
            let uplink = sink.encoder.uplink();
            let entropy = sink.entropy_bits / 8.0;
            assert_eq!(items_received, items.len() as u64);
            let parts = [uplink.total(), uplink.keys, uplink.carries, uplink.slots, uplink.counters];
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += part as f64 / 3.0 / items.len() as f64;
            }
            sums[5] += entropy / 3.0 / items.len() as f64;
            sums[6] += uplink.headers as f64 / 3.0 / items.len() as f64;
            messages += uplink.messages;
        }
        let [total, keys, carries, slots, counters, entropy, headers] = sums;
        let interval = if interval == usize::MAX { "end".into() } else { interval.to_string() };
        let per_message = total * 3.0 * items.len() as f64 / messages as f64;
        println!(
            "4×{width:>6} {bits:>6} {interval:>8}  {total:.4}  {keys:.4}  {carries:.4}  {slots:.4}   {counters:.4} ({entropy:.4})  {headers:.4}  {per_message:.0}"
        );
    }
    Ok(())
}
