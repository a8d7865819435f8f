//! The metrics against a dense NumPy version of the paper's formulas (`golden/make_metrics.py`).

use serde::Deserialize;
use ucl_streams::metrics::ErrorMeter;

#[derive(Deserialize)]
struct Case {
    name: String,
    truth: Vec<u64>,
    estimate: Vec<u64>,
    aae: f64,
    are: f64,
    wmrd: f64,
    entropy_error: f64,
    entropy_error_all_keys: f64,
}

#[test]
fn agrees_with_numpy() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/metrics.json")).unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let mut meter = ErrorMeter::default();
        case.truth.iter().zip(&case.estimate).for_each(|(&truth, &estimate)| meter.add(truth, estimate));
        let got = meter.errors();
        let pairs = [
            ("aae", got.aae, case.aae),
            ("are", got.are, case.are),
            ("wmrd", got.wmrd, case.wmrd),
            ("entropy_error", got.entropy_error, case.entropy_error),
            ("entropy_error_all_keys", got.entropy_error_all_keys, case.entropy_error_all_keys),
        ];
        for (metric, got, want) in pairs {
            assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{}: {metric} {got}, NumPy {want}", case.name);
        }
    }
}
