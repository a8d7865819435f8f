//! Changes in mid-stream, on a stream small enough for a test.

use ucl_lab::Recording;
use ucl_lab::changes::{ChangeRow, ChangesOptions, SketchChange, Subject, changes};
use ucl_sketch::DecoderKind;
use ucl_streams::ReadOptions;

fn measured(subjects: Vec<Subject>) -> Vec<ChangeRow> {
    let stream = Recording::read(&["zipf:1.1:60000:4000".parse().unwrap()], &ReadOptions::default()).unwrap();
    let options =
        ChangesOptions { budget: 16 << 10, subjects, window: 8, epochs: Some(2), ..ChangesOptions::default() };
    let mut heard = 0;
    let rows = changes(&stream, &options, &mut |_| heard += 1).unwrap();
    assert_eq!(heard, options.subjects.len() * SketchChange::ALL.len());
    assert_eq!(rows.len(), heard * 6, "before, right after, and four times later");
    rows
}

fn at(rows: &[ChangeRow], method: &str, change: SketchChange, windows: Option<u64>) -> ChangeRow {
    let found = rows.iter().find(|row| row.method == method && row.change == change && row.windows == windows);
    found.unwrap_or_else(|| panic!("{method} {change:?} {windows:?}")).clone()
}

#[test]
fn what_was_known_survives_every_change_but_count_min_does_not() {
    let rows = measured(vec![
        Subject::Ucl(DecoderKind::Delta),
        Subject::Ucl(DecoderKind::Em),
        Subject::PaperColumns(DecoderKind::Em),
        Subject::CountMin,
    ]);
    assert!(rows.iter().all(|row| row.bound_violations.is_none_or(|violations| violations == 0)));
    for method in ["ucl-delta", "ucl-em"] {
        for change in [SketchChange::Rehash, SketchChange::Grow, SketchChange::Shrink] {
            let (before, after) = (at(&rows, method, change, None), at(&rows, method, change, Some(0)));
            assert!(after.are_before <= before.are * 1.05, "{before:?} {after:?}");
            assert!(at(&rows, method, change, Some(8)).are < 0.1, "{method} {change:?}");
        }
        let (before, after) =
            (at(&rows, method, SketchChange::Double, None), at(&rows, method, SketchChange::Double, Some(0)));
        assert!(after.are <= before.are + 0.01, "{before:?} {after:?}");
        assert_eq!(at(&rows, method, SketchChange::Reset, Some(0)).keys, 0);
    }
    let lost = at(&rows, "cm", SketchChange::Rehash, Some(0));
    assert!(lost.are_before > 0.5 && lost.bound_violations.is_none(), "{lost:?}");
    let line = serde_json::to_string(&rows[0]).unwrap();
    assert_eq!(serde_json::from_str::<ChangeRow>(&line).unwrap(), rows[0]);
}

/// A network of two epochs is no good, but it goes through all changes, and says who answers.
#[test]
fn the_network_goes_through_every_change() {
    let rows = measured(vec![Subject::Ucl(DecoderKind::Learned), Subject::PaperColumns(DecoderKind::Learned)]);
    assert!(rows.iter().all(|row| row.bound_violations == Some(0)));
    assert_eq!(at(&rows, "ucl-learned", SketchChange::Rehash, Some(0)).answered_by, "em");
    assert_eq!(at(&rows, "ucl-learned", SketchChange::Rehash, Some(1)).answered_by, "learned");
    assert_eq!(at(&rows, "ucl-learned, columns appended", SketchChange::Rehash, Some(0)).answered_by, "learned");
    assert_eq!(at(&rows, "ucl-learned", SketchChange::Double, Some(0)).answered_by, "learned");
}
