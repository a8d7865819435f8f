//! Memory per known key: our own account of the control plane, and what the process really takes.
//!
//! `cargo run --release -p ucl-lab --example memory_per_key [KEYS ...]`: distinct 4-byte keys, each
//! once, in 64KB with default settings, in the modes exact and delta. Every line is a process of
//! its own, because the peak is the process's. "Peak" includes one view, which holds all answers at
//! once.

use std::error::Error;
use std::process::Command;

use ucl_sketch::{DecoderKind, Mode, UclSketch};
use ucl_streams::process::{peak_resident_bytes, resident_bytes};

const NUMBERS: [u32; 3] = [100_000, 650_000, 2_500_000];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, mode, keys] = &arguments[..]
        && one == "one"
    {
        return line(mode.parse()?, keys.parse()?);
    }
    let number = |text: &String| text.parse().map_err(|_| format!("{text} is not a number of keys"));
    let asked: Vec<u32> = arguments.iter().map(number).collect::<Result<_, _>>()?;
    println!("                          bytes per known key");
    println!(" mode       keys      known    account   resident       peak   peak / account");
    for mode in [Mode::Exact, Mode::Sketch(DecoderKind::Delta)] {
        for keys in if asked.is_empty() { &NUMBERS } else { &asked[..] } {
            let one = ["one", mode.name(), &keys.to_string()];
            let status = Command::new(std::env::current_exe()?).args(one).status()?;
            if !status.success() {
                return Err(format!("the process for {keys} keys failed: {status}").into());
            }
        }
    }
    Ok(())
}

fn line(mode: Mode, keys: u32) -> Result<(), Box<dyn Error>> {
    let mut sketch = UclSketch::builder().mode(mode).memory("64KB").key_bytes(4).seed(1).build()?;
    let mut batch = Vec::with_capacity(4096);
    for start in (0..keys).step_by(4096) {
        batch.clear();
        batch.extend((start..keys.min(start.saturating_add(4096))).map(u32::to_le_bytes));
        sketch.insert_batch(&batch)?;
    }
    let resident = resident_bytes();
    let account = sketch.control_memory().total();
    let view = sketch.query_view()?;
    assert_eq!(view.weight(), u64::from(keys), "every item is counted");
    let known = view.keys();
    let peak = peak_resident_bytes();
    let each = |bytes: Option<usize>| bytes.map_or("unknown".into(), |bytes| (bytes / known.max(1)).to_string());
    let ratio = peak.map_or("unknown".into(), |peak| format!("{:.1}", peak as f64 / account as f64));
    let account = each(Some(account));
    println!(" {mode:<5}  {keys:>8}  {known:>9}  {account:>9}  {:>9}  {:>9}  {ratio:>15}", each(resident), each(peak));
    Ok(())
}
