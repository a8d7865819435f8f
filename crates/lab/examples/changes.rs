//! How each method takes changes in mid-stream:
//! `cargo run --release -p ucl-lab --example changes -- INPUT [FORMAT] [EPOCHS]`.
//!
//! One line of JSON a measurement on standard output, a table of relative errors on standard error.

use std::io::Write;

use ucl_lab::Recording;
use ucl_lab::changes::{ChangesOptions, changes};
use ucl_streams::ReadOptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let input = args.next().unwrap_or_else(|| "zipf:1.1:200000:20000".to_owned());
    let mut reading = ReadOptions::default();
    if let Some(format) = args.next() {
        reading.format = format.parse()?;
    }
    let epochs = args.next().map(|epochs| epochs.parse()).transpose()?;
    let stream = Recording::read(&[input.parse()?], &reading)?;
    let all = ChangesOptions { epochs, ..ChangesOptions::default() };
    let mut out = std::io::stdout().lock();
    eprintln!(
        "{:<30} {:<11} {:>7} {:>9} {:>9} {:>9} {:>8}",
        "method", "change", "windows", "ARE", "ARE old", "AAE", "seconds"
    );
    // One change after the other, so that there is something to see early.
    for &change in &all.changes {
        for row in changes(&stream, &ChangesOptions { changes: vec![change], ..all.clone() }, &mut |_| ())? {
            let windows = row.windows.map_or("before".to_owned(), |windows| windows.to_string());
            eprintln!(
                "{:<30} {:<11} {windows:>7} {:>9.4} {:>9.4} {:>9.3} {:>8.2}",
                row.method,
                row.change.name(),
                row.are,
                row.are_before,
                row.aae,
                row.seconds
            );
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        }
    }
    Ok(())
}
