//! What the commands print alike: rows of keys with their counts, tables that fit the screen, and
//! the words for how far to trust them.

pub mod histogram;

use std::io::IsTerminal;

use serde::Serialize;
use ucl_sketch::{Estimate, SelfCheck};
use unicode_width::UnicodeWidthStr;

use crate::key::Key;
use crate::show::{count, shorten, table};

/// One key's answer.
#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub key: Key,
    pub estimate: u64,
    pub lower: u64,
    pub upper: u64,
    pub source: &'static str,
    #[serde(rename = "true", skip_serializing_if = "Option::is_none")]
    pub truth: Option<u64>,
}

impl Row {
    pub fn new(key: Key, answer: Estimate) -> Self {
        let Estimate { estimate, lower, upper, source, .. } = answer;
        Self { key, estimate, lower, upper, source: source.name(), truth: None }
    }
}

/// Longer keys are cut off in tables; `--json`, `--all` and `--out` have them whole.
const KEY_WIDTH: usize = 100;
/// A key is not cut to less, however narrow the screen.
const LEAST_KEY_WIDTH: usize = 12;

/// A table whose column `key_at` has keys. They are cut off where the table would be wider than the
/// screen.
pub fn key_table(header: &[&str], right: &[bool], key_at: usize, rows: Vec<Vec<String>>) -> String {
    fitted(header, right, key_at, rows, screen_width())
}

fn fitted(header: &[&str], right: &[bool], key_at: usize, rows: Vec<Vec<String>>, screen: Option<usize>) -> String {
    let within = |most: usize| {
        let cut = |row: &Vec<String>| {
            let mut row = row.clone();
            row[key_at] = shorten(&row[key_at], most);
            row
        };
        table(header, right, rows.iter().map(cut))
    };
    let text = within(KEY_WIDTH);
    let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
    let Some(excess) = screen.and_then(|screen| widest.checked_sub(screen)).filter(|excess| *excess > 0) else {
        return text;
    };
    let longest = rows.iter().map(|row| row[key_at].width().min(KEY_WIDTH)).max().unwrap_or(0);
    within(longest.saturating_sub(excess).max(LEAST_KEY_WIDTH))
}

/// Columns of the terminal that standard output is, if it is one.
fn screen_width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| columns.into())
}

/// Appends the true count where it is wanted. Of a key without a name it cannot be told.
pub fn with_truth(mut cells: Vec<String>, truth: Option<u64>, audited: bool) -> Vec<String> {
    cells.extend(audited.then(|| truth.map_or("?".to_owned(), count)));
    cells
}

/// The names of columns, with one for the true count where it is wanted.
pub fn header<'h>(names: &[&'h str], audited: bool) -> Vec<&'h str> {
    names.iter().copied().chain(audited.then_some("true")).collect()
}

/// The most frequent keys, with their shares of the whole.
pub fn top(rows: &[Row], total: u64, audited: bool) -> String {
    let share = |row: &Row| format!("{:.2}%", 100.0 * row.estimate as f64 / total.max(1) as f64);
    let cells = |(i, row): (usize, &Row)| {
        let key = row.key.shown.clone();
        let cells = vec![(i + 1).to_string(), key, count(row.estimate), count(row.lower), count(row.upper), share(row)];
        with_truth(cells, row.truth, audited)
    };
    let header = header(&["#", "key", "estimate", "at least", "at most", "share"], audited);
    let rows = rows.iter().enumerate().map(cells).collect();
    key_table(&header, &[true, false, true, true, true, true, true], 1, rows)
}

/// One JSON object a row.
pub fn json_lines(rows: &[Row]) -> serde_json::Result<String> {
    rows.iter().map(|row| Ok(serde_json::to_string(row)? + "\n")).collect()
}

/// Keys that were asked for.
pub fn queries(rows: &[Row]) -> String {
    let audited = rows.iter().any(|row| row.truth.is_some());
    let cells = |row: &Row| {
        let key = row.key.shown.clone();
        let cells = vec![key, count(row.estimate), count(row.lower), count(row.upper), row.source.to_owned()];
        with_truth(cells, row.truth, audited)
    };
    let header = header(&["query", "estimate", "at least", "at most", "source"], audited);
    key_table(&header, &[false, true, true, true, false, true], 0, rows.iter().map(cells).collect())
}

/// Describes the error of the estimates by their own check.
pub fn self_check(check: &SelfCheck) -> String {
    if check.residual < 5e-5 {
        return "self-check: less than 0.01% off (good below 1%)".to_owned();
    }
    format!("self-check: {check}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_the_screen() {
        let rows =
            || vec![vec!["1".to_owned(), "k".repeat(60), "7".to_owned()], vec!["2".into(), "short".into(), "8".into()]];
        let lines = |screen| {
            let text = fitted(&["#", "key", "count"], &[true, false, true], 1, rows(), screen);
            text.lines().map(UnicodeWidthStr::width).max().unwrap()
        };
        let whole = lines(None);
        assert!(whole > 60);
        assert_eq!(lines(Some(200)), whole);
        assert_eq!(lines(Some(whole)), whole);
        for screen in [whole - 1, 60, 40, 30] {
            assert_eq!(lines(Some(screen)), screen);
        }
        assert_eq!(lines(Some(5)), lines(Some(1)), "a key is never cut to nothing");
    }
}
