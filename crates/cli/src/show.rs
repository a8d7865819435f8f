//! Things shown to people: numbers, sizes, tables; and the one door to standard output.

use std::fmt::Display;
use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serializer;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Prints to standard output. A closed pipe comes back as an error that [`crate::fail`] knows to be
/// none.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_ref())?;
    Ok(out.flush()?)
}

/// `1,234,567`.
pub fn count(n: impl Into<u128>) -> String {
    let digits = n.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Serialises a value as its text: for numbers with more bits than a JSON number has.
pub fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// `1 item`, `2,000 items`.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `36.5KB`, with 1,024 bytes to the kilobyte as everywhere here.
pub fn bytes(n: usize) -> String {
    let scaled = |unit: usize| {
        let value = n as f64 / unit as f64;
        let text = if value < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") };
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    };
    match n {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{n} bytes"),
        // As much as would be rounded to 1024 has the next unit.
        1024..1_048_064 => scaled(1 << 10) + "KB",
        1_048_064..1_073_217_536 => scaled(1 << 20) + "MB",
        _ => scaled(1 << 30) + "GB",
    }
}

/// `2.31M`, for rates.
pub fn rate(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e3 => format!("{:.1}K", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// A number of mixed size with three digits that matter: `0.0123`, `1.23`, `1,234`.
pub fn figure(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        size if (999.5..1e18).contains(&size) => count(x.round() as u64),
        size if size < 1e-4 => format!("{x:.1e}"),
        size => {
            let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
            format!("{x:.decimals$}")
        }
    }
}

/// Cuts a text to at most `most` columns of a screen, ending in an ellipsis.
pub fn shorten(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut wide = 1;
    let fits = |char: &char| {
        wide += char.width().unwrap_or(0);
        wide <= most
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// A table without lines. `right` tells which columns are numbers.
pub fn table(header: &[&str], right: &[bool], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    table.add_rows(rows);
    for (column, &right) in table.column_iter_mut().zip(right) {
        column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
        column.set_padding((1, 1));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0u64, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [1, 1000, 1024, 65_536, 37_376, 1_048_063, 1_048_575, 1_572_864, 1_073_741_823].map(bytes),
            ["1 byte", "1000 bytes", "1KB", "64KB", "36.5KB", "1023KB", "1MB", "1.5MB", "1GB"]
        );
        assert_eq!(
            [0.0, 0.0123, 1.0, 12.34, 123.4, 1234.5].map(figure),
            ["0", "0.0123", "1.00", "12.3", "123", "1,235"]
        );
        assert_eq!([12.0, 1234.0, 2.5e6].map(rate), ["12", "1.2K", "2.50M"]);
        assert_eq!((shorten("grün", 4), shorten("grüner", 4)), ("grün".into(), "grü…".into()));
        assert_eq!((shorten("日本", 4), shorten("日本語", 4)), ("日本".into(), "日…".into()));
    }
}
