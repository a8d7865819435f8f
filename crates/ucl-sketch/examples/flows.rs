//! Bytes per flow, with keys of their own type and a state that is kept in a file:
//! `cargo run --release -p ucl-sketch --example flows`

use std::net::Ipv4Addr;

use ucl_sketch::UclSketch;

/// Source and destination address, source and destination port, protocol.
type Flow = (Ipv4Addr, Ipv4Addr, u16, u16, u8);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sketch = UclSketch::builder().memory("64KB").keys::<Flow>().build()?;
    for i in 0..200_000u32 {
        let (flow, bytes) = packet(i);
        sketch.insert_weighted(flow, bytes)?;
    }
    let path = std::env::temp_dir().join(format!("flows-{}.ucl", std::process::id()));
    sketch.save(&path)?;

    // Another process, another day.
    let mut sketch = UclSketch::load(&path)?.with_keys::<Flow>()?;
    std::fs::remove_file(&path)?;
    for hit in sketch.view().top(5) {
        let Some((source, destination, _, port, _)) = hit.known_key() else { continue };
        println!("{source} -> {destination}:{port}  {} bytes ({}..={})", hit.count, hit.lower, hit.upper);
    }
    Ok(())
}

/// A made-up packet: a few flows have most of the packets.
fn packet(i: u32) -> (Flow, u64) {
    let flow = (i.wrapping_mul(2_654_435_769) >> 8) % (1 + i % 5_000);
    let source = Ipv4Addr::from(0x0a00_0000 | flow);
    let destination = Ipv4Addr::from(0xc0a8_0000 | (flow % 16));
    ((source, destination, 50_000, 443, 6), 40 + u64::from(i % 1_460))
}
