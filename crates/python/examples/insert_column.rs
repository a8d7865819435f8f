//! Counts the keys of a file and prints the seconds that took: the yardstick of
//! `crates/python/bench/compare.py`, which counts the same keys from Python.
//!
//! `insert_column MODE FILE WIDTH`: keys of 4 or 8 bytes end to end, or lines if the width is 0.

use std::fs;
use std::time::Instant;

use ucl_sketch::UclSketch;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, file, width] = &arguments[..] else { return Err("usage: insert_column MODE FILE WIDTH".into()) };
    let bytes = fs::read(file)?;
    let builder = UclSketch::builder().memory("64KB").seed(1).mode(mode.parse()?);
    let (sketch, seconds) = match &width[..] {
        "4" => {
            let mut sketch = builder.key_bytes(4).build()?;
            let start = Instant::now();
            sketch.insert_batch::<4>(bytes.as_chunks().0)?;
            (sketch, start.elapsed())
        }
        "8" => {
            let mut sketch = builder.key_bytes(8).build()?;
            let start = Instant::now();
            sketch.insert_batch::<8>(bytes.as_chunks().0)?;
            (sketch, start.elapsed())
        }
        "0" => {
            let lines: Vec<&[u8]> = bytes.trim_ascii_end().split(|&byte| byte == b'\n').collect();
            let mut sketch = builder.build()?;
            let start = Instant::now();
            for line in lines {
                sketch.insert(line)?;
            }
            (sketch, start.elapsed())
        }
        other => return Err(format!("a width of {other}: give 4, 8 or 0").into()),
    };
    println!("{} {}", sketch.items(), seconds.as_secs_f64());
    Ok(())
}
