//! Tables: as Markdown, as CSV, as HTML.

use std::fmt::Write;

use crate::plot::figure_text;

/// Cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// Figure. Pages show three digits of it, files all.
    Figure(f64),
    /// Unknown value.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Option<f64>> for Cell {
    fn from(figure: Option<f64>) -> Self {
        figure.map_or(Self::None, Self::Figure)
    }
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Figure(x) if x.fract() == 0.0 && x.abs() < 1e15 => whole(*x as i64),
            Self::Figure(x) if *x < 0.0 => format!("-{}", figure_text(-x)),
            Self::Figure(x) => figure_text(*x),
            Self::None => "-".to_owned(),
        }
    }

    fn stored(&self) -> String {
        match self {
            Self::Text(text) if text.contains([',', '"', '\n']) => format!("\"{}\"", text.replace('"', "\"\"")),
            Self::Text(text) => text.clone(),
            Self::Figure(figure) => figure.to_string(),
            Self::None => String::new(),
        }
    }
}

/// `-1,234,567`.
fn whole(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|c| str::from_utf8(c).unwrap_or_default()).collect();
    format!("{}{}", if n < 0 { "-" } else { "" }, groups.join(","))
}

/// Table of results.
///
/// ```
/// use ucl_lab::reproduce::Table;
/// let mut table = Table::new("errors", "Errors", ["method", "AAE"]);
/// table.push(["cm".into(), 34.4.into()]);
/// assert_eq!(table.markdown(), "| method | AAE |\n|---|---:|\n| cm | 34.4 |\n");
/// assert_eq!(table.csv(), "method,AAE\ncm,34.4\n");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the file, without its extension.
    pub name: String,
    /// Title above the table.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells of the rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        header: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { name: name.into(), title: title.into(), header, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Returns true if a column is of figures, and so stands to the right.
    fn is_figures(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| **cell != Cell::None);
        cells.clone().next().is_some() && cells.all(|cell| matches!(cell, Cell::Figure(_)))
    }

    /// Returns the table as Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.header.iter().map(|name| name.replace('|', "\\|")).collect());
        let rules = (0..self.header.len()).map(|column| if self.is_figures(column) { "---:" } else { "---" });
        text += &format!("|{}|\n", rules.collect::<Vec<_>>().join("|"));
        for row in &self.rows {
            text += &line(row.iter().map(|cell| cell.shown().replace('|', "\\|")).collect());
        }
        text
    }

    /// Returns the table as CSV, with all digits.
    pub fn csv(&self) -> String {
        let header = self.header.iter().map(|name| Cell::Text(name.clone())).collect::<Vec<_>>();
        let line = |row: &Vec<Cell>| row.iter().map(Cell::stored).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&header).chain(&self.rows).map(line).collect()
    }

    /// Returns the table as HTML.
    pub fn html(&self) -> String {
        let mut text = "<div class=\"wide\"><table>\n<thead><tr>".to_owned();
        // Writing to a string cannot fail.
        for (column, name) in self.header.iter().enumerate() {
            let _ = write!(text, "<th{}>{}</th>", self.class(column), escape(name));
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            text += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let _ = write!(text, "<td{}>{}</td>", self.class(column), escape(&cell.shown()));
            }
            text += "</tr>\n";
        }
        text + "</tbody></table></div>\n"
    }

    fn class(&self, column: usize) -> &'static str {
        if self.is_figures(column) { " class=\"figure\"" } else { "" }
    }
}

/// Text as HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_told_apart_from_what_surrounds_them() {
        let mut table = Table::new("t", "T", ["a|b", "c"]);
        table.push(["x, \"y\" <z>".into(), Cell::None]);
        table.push(["p|q".into(), Cell::Figure(-1234.5678)]);
        assert_eq!(table.markdown(), "| a\\|b | c |\n|---|---:|\n| x, \"y\" <z> | - |\n| p\\|q | -1,235 |\n");
        assert_eq!(table.csv(), "a|b,c\n\"x, \"\"y\"\" <z>\",\np|q,-1234.5678\n");
        assert!(table.html().contains("<td>x, &quot;y&quot; &lt;z&gt;</td><td class=\"figure\">-</td>"));
    }
}
