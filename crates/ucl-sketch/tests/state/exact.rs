//! Exact counting, saved and loaded: as ever, and refused where it was tampered with.

use std::collections::HashMap;

use ucl_sketch::state::{FORMAT_VERSION, Section, Summary, mend};
use ucl_sketch::{Device, Mode, UclSketch};

use crate::golden::path;

fn key(number: u64) -> String {
    if number.is_multiple_of(3) { number.to_string() } else { format!("/a/path/{number}") }
}

/// A sketch of so little memory that most items evict.
fn sketch(text: bool) -> UclSketch {
    let builder = UclSketch::builder().mode(Mode::Exact).memory_bytes(4_096).seed(5).interval(700).measure_uplink(true);
    let mut sketch = if text { builder.build() } else { builder.key_bytes(4).build() }.unwrap();
    insert(&mut sketch, text, 0..1_500);
    sketch
}

fn insert(sketch: &mut UclSketch, text: bool, items: std::ops::Range<u64>) {
    insert_of(397, sketch, text, items);
}

fn insert_of(keys: u64, sketch: &mut UclSketch, text: bool, items: std::ops::Range<u64>) {
    for number in items.map(|i| i * i % keys) {
        if text {
            sketch.insert(key(number)).unwrap();
        } else {
            sketch.insert((number as u32).to_le_bytes()).unwrap();
        }
    }
}

#[test]
fn exact_counts_are_written_as_ever() {
    for (name, text) in [("exact-text", true), ("exact-4", false)] {
        let written = sketch(text).to_bytes().unwrap();
        let path = path(FORMAT_VERSION, name);
        if std::env::var_os("UCL_REGENERATE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert!(written == golden, "{name}: the format has changed, which makes it a new version");
    }
}

/// One of them has the uplink as it was before names were predicted.
#[test]
fn exact_counts_are_read_as_ever() {
    for (name, text) in [("exact-text", true), ("exact-text-wire-4", true), ("exact-4", false)] {
        let golden = std::fs::read(path(FORMAT_VERSION, name)).unwrap();
        assert!(Summary::read(&golden).unwrap().sections.iter().any(|&(section, _)| section == Section::Exports));
        let mut loaded = UclSketch::from_bytes(&golden).unwrap();
        insert(&mut loaded, text, 1_500..3_000);
        let mut want: HashMap<u64, u64> = HashMap::new();
        (0..3_000u64).for_each(|i| *want.entry(i * i % 397).or_default() += 1);
        let view = loaded.query_view().unwrap();
        assert_eq!(view.keys(), want.len());
        for (number, count) in want {
            let answer = if text {
                view.estimate(key(number).as_bytes())
            } else {
                view.estimate(&(number as u32).to_le_bytes())
            };
            assert_eq!((answer.estimate, answer.lower, answer.upper), (count, count, count), "{name}: {number}");
        }
    }
}

/// A sketch of mode budget that absorbs a part of its items.
fn budget(text: bool) -> UclSketch {
    let builder = UclSketch::builder().memory_bytes(8_192).seed(5).uplink_per_item(0.5).measure_uplink(true);
    let mut sketch = if text { builder.build() } else { builder.key_bytes(4).build() }.unwrap();
    insert_of(4_001, &mut sketch, text, 0..4_000);
    sketch
}

#[test]
fn what_was_absorbed_is_written_as_ever() {
    for (name, text) in [("budget-text", true), ("budget-4", false)] {
        let written = budget(text).to_bytes().unwrap();
        let path = path(FORMAT_VERSION, name);
        if std::env::var_os("UCL_REGENERATE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert!(written == golden, "{name}: the format has changed, which makes it a new version");
        let mut loaded = UclSketch::from_bytes(&golden).unwrap();
        assert_eq!(loaded.mode(), Mode::Budget);
        assert!(loaded.query_view().unwrap().absorbed() > 0, "{name}");
        let mut whole = budget(text);
        for sketch in [&mut loaded, &mut whole] {
            insert_of(4_001, sketch, text, 4_000..9_000);
        }
        assert!(loaded.to_bytes().unwrap() == whole.to_bytes().unwrap(), "{name}: it goes on in another way");
    }
}

/// The defect: with a table whose counts were more than the stream has left, the price of the next
/// cut was that of a negative weight.
#[test]
fn a_table_with_more_than_the_stream_is_refused() {
    let builder = UclSketch::builder().memory_bytes(6_144).seed(5).key_bytes(4).uplink_per_item(0.5);
    let mut device = builder.device().unwrap();
    let keys: Vec<u8> = (0..1_000u32).flat_map(u32::to_le_bytes).collect();
    device.insert_batch(4, &keys, None).unwrap();
    device.cut();
    let bytes = device.to_bytes();
    let mut refused = 0;
    for from in (100..bytes.len() - 400).step_by(100) {
        let mut damaged = bytes.clone();
        damaged[from..from + 400].iter_mut().for_each(|byte| *byte |= 0x3f);
        mend(&mut damaged);
        match Device::from_bytes(&damaged) {
            Err(error) => refused += usize::from(error.to_string().contains("in the table")),
            Ok(mut device) => {
                device.grant(1 << 20);
                device.insert_batch(4, &keys, None).unwrap();
            }
        }
    }
    assert!(refused > 5, "{refused} were refused");
}

/// Every byte of the table, its batch and its mirror is checked or harmless: the result is an error
/// or a sketch that works.
#[test]
fn tampered_tables_are_refused_or_work() {
    for (make, text) in [(sketch as fn(bool) -> UclSketch, true), (sketch, false), (budget, true), (budget, false)] {
        let bytes = make(text).to_bytes().unwrap();
        let mut refused = 0;
        for at in (20..bytes.len()).step_by(7) {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                mend(&mut damaged);
                match UclSketch::from_bytes(&damaged) {
                    Err(_) => refused += 1,
                    Ok(mut sketch) => {
                        insert(&mut sketch, text, 0..50);
                        sketch.cut();
                        let _ = sketch.query_view();
                    }
                }
            }
        }
        assert!(refused > 200, "{refused} were refused");
    }
}
