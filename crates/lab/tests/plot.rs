//! Pictures of rows: what is in them, and what cannot be drawn.

use std::path::Path;

use ucl_lab::plot::{plot, svg};
use ucl_lab::{Experiment, MethodRegistry, Options, Recording, Row};
use ucl_streams::ReadOptions;

fn rows(budgets: &[usize]) -> Vec<Row> {
    let registry = MethodRegistry::standard();
    let stream = Recording::read(&["zipf:1.1:4000:1000".parse().unwrap()], &ReadOptions::default()).unwrap();
    let experiment = Experiment {
        methods: registry.select(["ucl-em", "cm", "exact-map"]).unwrap(),
        budgets: budgets.to_vec(),
        seeds: vec![1, 2],
        options: Options::default(),
    };
    experiment.run(&stream, |_| ())
}

/// Texts of an SVG picture, one a line in the source.
fn texts(picture: &str) -> Vec<&str> {
    picture.lines().filter_map(|line| line.strip_prefix("<text ")?.split_once('>')?.1.strip_suffix("</text>")).collect()
}

#[test]
fn bars_carry_names_and_figures() {
    let picture = svg(&rows(&[4096])).unwrap();
    let texts = texts(&picture);
    assert!(texts[0].ends_with("4,000 items, 613 keys, 4KB"), "{texts:?}");
    for method in ["ucl-em", "cm", "exact-map"] {
        assert_eq!(texts.iter().filter(|text| **text == method).count(), 4, "one bar a panel: {texts:?}");
    }
    let note = texts.last().unwrap();
    assert!(note.contains("0 is drawn at the lower edge") && note.contains("mean of 2 seeds"), "{note}");
}

#[test]
fn lines_have_their_names_at_their_ends_and_the_budgets_as_ticks() {
    let picture = svg(&rows(&[8192, 2048, 4096])).unwrap();
    let texts = texts(&picture);
    for method in ["ucl-em", "cm", "exact-map"] {
        assert_eq!(texts.iter().filter(|text| **text == method).count(), 4, "one line a panel: {texts:?}");
    }
    for budget in ["2KB", "4KB", "8KB"] {
        assert_eq!(texts.iter().filter(|text| **text == budget).count(), 4, "{texts:?}");
    }
}

#[test]
fn failed_methods_are_left_out() {
    let rows = rows(&[4096, 64]);
    assert!(rows.iter().any(|row| row.error.is_some()));
    assert!(svg(&rows).is_ok());
    let failed: Vec<Row> = rows.into_iter().filter(|row| row.error.is_some()).collect();
    assert_eq!(svg(&failed).unwrap_err().to_string(), "there is no figure to plot: every method failed");
}

#[test]
fn files_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(&[4096]);
    for name in ["errors.svg", "ERRORS.SVG"] {
        let path = folder.path().join(name);
        plot(&rows, &path).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().starts_with("<svg"));
    }
    let refused = plot(&rows, Path::new("errors.png")).unwrap_err().to_string();
    assert_eq!(refused, "errors.png: a plot is an .svg file");
    let nowhere = plot(&rows, Path::new("no/such/folder/errors.svg")).unwrap_err().to_string();
    assert!(nowhere.starts_with("cannot write no/such/folder/errors.svg: "), "{nowhere}");
}
