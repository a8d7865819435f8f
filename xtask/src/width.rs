//! Checks how wide lines of prose are: Markdown, and comments in Rust.

/// The most columns of a comment line in Rust.
const COMMENT: usize = 100;

/// The most columns of a line of prose in Markdown.
const PROSE: usize = 120;

/// Names the lines of a Markdown page that are too wide.
pub fn wide_prose(path: &str, text: &str) -> Vec<String> {
    wide_lines(path, prose(text), PROSE)
}

/// Names the comment lines of a Rust file that are too wide.
pub fn wide_comments(path: &str, text: &str) -> Vec<String> {
    wide_lines(path, comments(text), COMMENT)
}

/// A line of text with its number, from 1.
type Line<'a> = (usize, &'a str);

/// The lines of Markdown that can be wrapped: no code blocks, no tables.
fn prose(text: &str) -> Vec<Line<'_>> {
    wrappable(text.lines().enumerate().map(|(i, line)| (i + 1, line, line)))
}

/// The comment lines of Rust that can be wrapped: no examples, no tables.
fn comments(text: &str) -> Vec<Line<'_>> {
    let lines = text.lines().enumerate().filter_map(|(i, line)| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some((i + 1, line, comment.strip_prefix(['/', '!']).unwrap_or(comment)))
    });
    wrappable(lines)
}

/// Leaves out code blocks and tables. Takes lines with their number and with the text in them.
fn wrappable<'a>(lines: impl Iterator<Item = (usize, &'a str, &'a str)>) -> Vec<Line<'a>> {
    let mut in_code = false;
    let mut out = vec![];
    for (number, line, text) in lines {
        let text = text.trim_start();
        let fence = text.starts_with("```");
        in_code ^= fence;
        if !in_code && !fence && !text.starts_with('|') {
            out.push((number, line));
        }
    }
    out
}

/// Names the lines that are wider than `limit` and could be broken.
fn wide_lines(path: &str, lines: Vec<Line<'_>>, limit: usize) -> Vec<String> {
    let wide = lines.into_iter().filter(|(_, line)| line.chars().count() > limit && can_break(line));
    wide.map(|(number, _)| format!("{path}:{number}: over {limit} columns")).collect()
}

/// A single word, such as a long address, cannot be broken.
fn can_break(line: &str) -> bool {
    let marks = ["//", "///", "//!", "-", "*"];
    line.split_whitespace().filter(|word| !marks.contains(word)).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_prose_is_found_and_code_and_tables_are_not() {
        let wide = "word ".repeat(30);
        let text = format!("{wide}\n```\n{wide}\n```\n| {wide} |\n- {}\nshort\n{wide}\n", "x".repeat(130));
        assert_eq!(wide_prose("a.md", &text), ["a.md:1: over 120 columns", "a.md:8: over 120 columns"]);
    }

    #[test]
    fn wide_comments_are_found_and_code_and_examples_are_not() {
        let wide = "word ".repeat(21);
        let text =
            format!("//! {wide}\nlet x = 1; // {wide}\n    /// ```\n    /// {wide}\n    /// ```\n    // {wide}\n");
        assert_eq!(wide_comments("a.rs", &text), ["a.rs:1: over 100 columns", "a.rs:6: over 100 columns"]);
    }

    #[test]
    fn columns_are_characters_not_bytes() {
        let line = format!("{} ends", "é".repeat(PROSE - 5));
        assert_eq!(wide_prose("a.md", &line), Vec::<String>::new());
    }
}
