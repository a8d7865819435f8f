//! How an input happens to be cut into reads must not be seen in its items.

use std::ops::ControlFlow;

use proptest::prelude::*;

use crate::captures;
use crate::support::{Items, Trickle, collect, options};
use ucl_streams::{OnError, ReadOptions, read_from};

/// Reads at one go and in small steps, with either way to handle errors; everything must be the
/// same.
fn same_in_steps(format: &str, weight: Option<&str>, data: &[u8], steps: &[usize]) -> Result<(), TestCaseError> {
    for on_error in [OnError::Stop, OnError::Skip] {
        let options = options(format, weight, on_error);
        let (whole, whole_result) = collect(data, &options);
        let trickle = Trickle { data, steps: steps.to_vec(), calls: 0 };
        let (stepped, stepped_result) = collect(trickle, &options);
        prop_assert_eq!(whole, stepped, "{} {:?}", format, weight);
        match (whole_result, stepped_result) {
            (Ok(mut a), Ok(mut b)) => {
                if a.truncated.is_some() {
                    // How far a reader had looked ahead of the damage is its own affair.
                    (a.bytes_read, a.bytes_decoded) = (0, 0);
                    (b.bytes_read, b.bytes_decoded) = (0, 0);
                }
                prop_assert_eq!(a, b);
            }
            (Err(a), Err(b)) => {
                prop_assert_eq!(a.to_string(), b.to_string());
                prop_assert_eq!(a.summary.items, b.summary.items);
            }
            (a, b) => prop_assert!(false, "{:?} against {:?}", a, b),
        }
    }
    Ok(())
}

/// At every mark, a new read of the rest delivers the items that are left. Returns the number of
/// marks.
fn same_from_marks(format: &str, data: &[u8], steps: &[usize]) -> Result<usize, TestCaseError> {
    let options = ReadOptions { raw: true, ..options(format, None, OnError::Skip) };
    let trickle = Trickle { data, steps: steps.to_vec(), calls: 0 };
    let mut items = Items::new();
    let mut marks = Vec::new();
    let read = read_from(trickle, "input", &options, &mut |batch| {
        items.extend(batch.items().map(|(key, weight)| (key.to_vec(), weight)));
        marks.extend(batch.mark().map(|mark| (mark as usize, items.len())));
        ControlFlow::Continue(())
    });
    prop_assert!(read.is_ok());
    for (mark, before) in &marks {
        let (rest, _) = collect(&data[*mark..], &options);
        prop_assert_eq!(&rest, &items[*before..], "{} from byte {}", format, mark);
    }
    Ok(marks.len())
}

fn soup(alphabet: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(alphabet), 0..120)
}

fn steps() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..9, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn of_lines_and_tokens(data in soup(b"ab01 \t\r\n\xff\0"), steps in steps()) {
        for format in ["lines", "field:2", "field:2,1", "fimi", "records:3", "regex:a(b?)", "combined:ip"] {
            same_in_steps(format, None, &data, &steps)?;
        }
        same_in_steps("field:1", Some("2"), &data, &steps)?;
    }

    #[test]
    fn reading_starts_anew_at_marks(data in soup(b"ab01 \t\r\n\n\xff"), steps in steps()) {
        for format in ["lines", "field:2", "records:3", "regex:a(b?)", "combined:ip", "jsonl:/k"] {
            same_from_marks(format, &data, &steps)?;
        }
        prop_assert!(same_from_marks("lines", &data, &steps)? > 0 || !data.contains(&b'\n'));
        // A new reader would take the first row for a header, or has no packet header.
        prop_assert_eq!(same_from_marks("csv:1", &data, &steps)?, 0);
    }

    #[test]
    fn of_tables(data in soup(b"ab12,\t\"\"\r\n\n"), steps in steps(), mark in any::<bool>()) {
        let data = if mark { [&b"\xef\xbb\xbf"[..], &data].concat() } else { data };
        same_in_steps("csv:2", None, &data, &steps)?;
        same_in_steps("csv:1", Some("2"), &data, &steps)?;
        same_in_steps("csv:a", None, &[&b"b,a\n"[..], &data].concat(), &steps)?;
        same_in_steps("tsv:1", None, &data, &steps)?;
        same_in_steps("csv:2,1", None, &data, &steps)?;
    }

    #[test]
    fn of_json(values in prop::collection::vec("[0-9]{1,3}|\"[a-z\\\\]{0,3}\"|null|\\{", 0..12), steps in steps()) {
        let data: String = values.iter().map(|value| format!("{{\"k\":{value},\"n\":1{value}}}\r\n")).collect();
        same_in_steps("jsonl:/k", None, data.as_bytes(), &steps)?;
        same_in_steps("jsonl:/k", Some("/n"), data.as_bytes(), &steps)?;
        same_in_steps("jsonl:n,k", None, data.as_bytes(), &steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn of_captures(cut in 0usize..2000, steps in prop::collection::vec(1usize..60, 1..6), flip in any::<(u16, u8)>()) {
        for (_, mut capture) in captures::every_container() {
            // Cut off and damaged captures must behave the same, too.
            let at = usize::from(flip.0) % capture.len();
            capture[at] ^= flip.1;
            let cut = capture.len() - cut.min(capture.len());
            same_in_steps("pcap", None, &capture[..cut], &steps)?;
            same_in_steps("pcap:srcport", Some("bytes"), &capture, &steps)?;
        }
    }

    #[test]
    fn of_compressed_data(rows in prop::collection::vec("[a-c]{0,6}", 0..200), split in 0usize..200, steps in steps(), cut in 0usize..40) {
        let (first, second) = rows.split_at(split.min(rows.len()));
        let text = |rows: &[String]| rows.iter().map(|row| format!("{row}\n")).collect::<String>();
        for (_, pack) in crate::compression::PACKERS {
            let packed = [pack(text(first).as_bytes()), pack(text(second).as_bytes())].concat();
            let (items, result) = collect(Trickle { data: &packed, steps: steps.clone(), calls: 0 }, &options("lines", None, OnError::Stop));
            let expected: Vec<_> = rows.iter().map(|row| (row.clone().into_bytes(), 1)).collect();
            prop_assert_eq!(&items, &expected);
            prop_assert_eq!(result.unwrap().bytes_read, packed.len() as u64);
            // Of a truncated file, a prefix (as long as the signature is still whole).
            let (items, _) = collect(&packed[..packed.len().saturating_sub(cut).max(10)], &options("lines", None, OnError::Skip));
            prop_assert!(expected.starts_with(&items));
        }
    }
}
