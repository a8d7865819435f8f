//! How fast each format is read on this machine, one core, with a consumer that only looks at the
//! keys.
//!
//! `cargo run --release -p ucl-streams --example throughput [MEGABYTES]`: makes files in a
//! temporary directory, reads each three times, prints the best.
//! `cargo run … --example throughput count FORMAT FILE` reads a file of yours into exact counts.

use std::fs;
use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

use ucl_streams::{ExactCounts, Format, Generator, ReadOptions, Source, ZipfKeys, read};

type Error = Box<dyn std::error::Error>;

/// Reads everything, touching every key; returns items and seconds.
fn time(source: &Source, format: &Format) -> Result<(u64, u64, f64), Error> {
    let options = ReadOptions { format: format.clone(), seed: 1, ..ReadOptions::default() };
    let mut key_bytes = 0;
    let start = Instant::now();
    let summary = read(std::slice::from_ref(source), &options, &mut |batch| {
        match batch.fixed() {
            Some((_, keys)) => key_bytes += black_box(keys).len(),
            None => batch.keys().for_each(|key| key_bytes += black_box(key).len()),
        }
        ControlFlow::Continue(())
    })?;
    Ok((summary.items, summary.bytes_decoded.max(key_bytes as u64), start.elapsed().as_secs_f64()))
}

fn report(name: &str, source: &Source, format: &Format) -> Result<(), Error> {
    let mut best = (0, 0, f64::INFINITY);
    for _ in 0..3 {
        let run = time(source, format)?;
        best = if run.2 < best.2 { run } else { best };
    }
    let (items, bytes, seconds) = best;
    println!(
        "{name:<28} {items:>9} items {:>7.0} MB/s {:>6.1} M items/s",
        bytes as f64 / seconds / 1e6,
        items as f64 / seconds / 1e6
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, format, file] = &arguments[..] {
        if command != "count" {
            return Err("usage: throughput [MEGABYTES] | throughput count FORMAT FILE".into());
        }
        let format: Format = format.parse()?;
        let mut counts = ExactCounts::new();
        let start = Instant::now();
        let options = ReadOptions { format: format.clone(), seed: 1, ..ReadOptions::default() };
        let summary = read(&[file.parse()?], &options, &mut |batch| {
            counts.insert_batch(batch);
            ControlFlow::Continue(())
        })?;
        println!("{summary:#?}\n{} distinct, {:.2} s", counts.distinct(), start.elapsed().as_secs_f64());
        let ones = counts.iter().filter(|(_, count)| *count == 1).count();
        println!("{ones} keys once; shares of the largest:");
        for n in [1, 10, 100, 1000] {
            let sum: u64 = counts.top(n).iter().map(|(_, count)| count).sum();
            println!("  top {n:>4}: {:.4}", sum as f64 / counts.total() as f64);
        }
        for (key, count) in counts.top(5) {
            println!("  {count:>9} {}", format.key_display(key));
        }
        return Ok(());
    }
    let megabytes: u64 = arguments.first().map_or(Ok(200), |text| text.parse())?;
    let directory = tempfile::tempdir()?;
    let mut keys = ZipfKeys::new(1.1, 1 << 24, 1);
    let mut number = || u32::from_le_bytes(keys.next().unwrap_or_default());
    let mut make = |name: &str, row: &mut dyn FnMut(u32) -> Vec<u8>| -> Result<Source, Error> {
        let path = directory.path().join(name);
        let mut file = std::io::BufWriter::new(fs::File::create(&path)?);
        let mut written = 0;
        while written < megabytes * 1_000_000 {
            let row = row(number());
            written += row.len() as u64;
            file.write_all(&row)?;
        }
        file.flush()?;
        Ok(Source::Path(path))
    };
    let lines = make("fixed", &mut |n| format!("key-{n:015}\n").into_bytes())?;
    report("lines, 20 bytes each", &lines, &Format::Lines)?;
    let varied = make("varied", &mut |n| format!("{}{n:010}\n", &"host.example"[..(n % 12) as usize]).into_bytes())?;
    report("lines, 11 to 22 bytes", &varied, &Format::Lines)?;
    let fields = make("fields", &mut |n| format!("2024-05-01 GET /{n:010} 200\n").into_bytes())?;
    report("field:3 of 4", &fields, &"field:3".parse()?)?;
    let csv = make("csv", &mut |n| format!("12,\"user {n}\",GET,200\n").into_bytes())?;
    report("csv:2 of 4, quoted", &csv, &"csv:2".parse()?)?;
    let jsonl =
        make("jsonl", &mut |n| format!("{{\"time\":1714521600,\"user\":{{\"id\":{n}}},\"ok\":true}}\n").into_bytes())?;
    report("jsonl:/user/id", &jsonl, &"jsonl:/user/id".parse()?)?;
    let fimi = make("fimi", &mut |n| format!("{}{}", n % 100_000, if n % 10 == 0 { '\n' } else { ' ' }).into_bytes())?;
    report("fimi", &fimi, &Format::Fimi)?;
    let records = make("records", &mut |n| [n.to_le_bytes(); 4].concat()[..13].to_vec())?;
    report("records:13", &records, &"records:13".parse()?)?;
    let gz = directory.path().join("fixed.gz");
    let Source::Path(plain) = &lines else { return Ok(()) };
    let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&gz)?, flate2::Compression::fast());
    std::io::copy(&mut fs::File::open(plain)?, &mut encoder)?;
    encoder.finish()?;
    report("lines, gzip", &Source::Path(gz), &Format::Lines)?;
    let zst = directory.path().join("fixed.zst");
    zstd::stream::copy_encode(fs::File::open(plain)?, fs::File::create(&zst)?, 1)?;
    report("lines, zstd", &Source::Path(zst), &Format::Lines)?;
    for generator in ["zipf:1.2", "caida-like"] {
        report(generator, &Source::Generator(generator.parse::<Generator>()?), &Format::Lines)?;
    }
    Ok(())
}
