//! Bytes between hosts, counted by four threads, saved, merged and compared with exact counts:
//! `cargo run --release -p ucl-sketch --example sixty_lines`

use std::collections::HashMap;
use std::error::Error;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::thread;

use ucl_sketch::{Builder, UclSketch, random_seed};

/// Client and server: 8 bytes, one of the sizes (4, 8, 13, 16) that take the least memory.
type Hosts = (Ipv4Addr, Ipv4Addr);
type Failure = Box<dyn Error + Send + Sync>;

/// Packets that one worker sees, each with its size in bytes. A few hosts have most of them.
fn packets(worker: u32) -> impl Iterator<Item = (Hosts, u64)> {
    (0..50_000u32).map(move |i| {
        let rank = (i.wrapping_mul(2_654_435_769) >> 8) % (1 + i % 5_000);
        let client = Ipv4Addr::from(0x0a00_0000 | rank);
        ((client, Ipv4Addr::from(0xc0a8_0000 | (worker % 2))), u64::from(40 + i % 1_460))
    })
}

/// Counts the packets of one worker and saves the sketch in a file.
fn count(worker: u32, builder: Builder<Hosts>, folder: &Path) -> Result<PathBuf, Failure> {
    let mut sketch = builder.build()?;
    sketch.insert_all_weighted(packets(worker))?;
    let path = folder.join(format!("worker-{}-{worker}.ucl", std::process::id()));
    sketch.save(&path)?;
    Ok(path)
}

/// Starts the workers, merges their files, and prints the hosts with the most bytes.
pub fn main() -> Result<(), Failure> {
    // Sketches can be merged if they were built with the same settings and seed.
    let builder = &UclSketch::builder().memory("32KB").keys::<Hosts>().seed(random_seed());
    let folder = &std::env::temp_dir();
    let mut merged = builder.clone().build()?;
    let files: Vec<Result<PathBuf, Failure>> = thread::scope(|scope| {
        let start = |worker| scope.spawn(move || count(worker, builder.clone(), folder));
        let workers: Vec<_> = (0..4).map(start).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    for path in files {
        let path = path?;
        merged.merge(UclSketch::load(&path)?.with_keys()?)?;
        std::fs::remove_file(path)?;
    }
    let mut exact: HashMap<Hosts, u64> = HashMap::new();
    (0..4).flat_map(packets).for_each(|(hosts, bytes)| *exact.entry(hosts).or_default() += bytes);
    for hit in merged.view().top(5) {
        let hosts = hit.known_key().ok_or("keys of 8 bytes are known in full")?;
        println!("{} -> {}  {} bytes ({}..={})", hosts.0, hosts.1, hit.count, hit.lower, hit.upper);
        assert_eq!(hit.count, exact[hosts], "by default, counts are exact");
    }
    Ok(())
}
