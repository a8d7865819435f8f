//! Minimal SVG canvas for figures: lines, boxes, marks and words, in pixels.
//!
//! By hand rather than by a plotting library: the few shapes of a figure are a hundred lines, and
//! text stays text in the reader's font.

use std::fmt::Write;

/// A place in pixels, from the left and from the top.
pub(super) type At = (i32, i32);

pub(super) const INK: &str = "#282828";
pub(super) const PALE: &str = "#E1E1E1";

/// Where words stand from left to right, as seen from their place.
#[derive(Clone, Copy)]
pub(super) enum Side {
    After,
    Around,
    Before,
}

/// Where words stand from top to bottom, as seen from their place.
#[derive(Clone, Copy)]
pub(super) enum Level {
    Below,
    Beside,
    Above,
}

/// How words look, and where they stand.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) size: i32,
    pub(super) side: Side,
    pub(super) level: Level,
    pub(super) colour: &'static str,
}

impl Words {
    pub(super) fn new(size: i32, side: Side, level: Level) -> Self {
        Self { size, side, level, colour: INK }
    }
}

/// A drawing in the making.
pub(super) struct Canvas {
    body: String,
    width: u32,
    height: u32,
    /// Added to all places: the corner of the panel that is being drawn.
    pub(super) origin: At,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self { body: String::new(), width, height, origin: (0, 0) }
    }

    /// One element a line, for differences that can be read.
    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    fn place(&self, at: At) -> At {
        (self.origin.0 + at.0, self.origin.1 + at.1)
    }

    pub(super) fn path(&mut self, points: &[At], colour: &str, width: u32) {
        let place = |&at: &At| {
            let (x, y) = self.place(at);
            format!("{x},{y}")
        };
        let points = points.iter().map(place).collect::<Vec<_>>().join(" ");
        self.element(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>"#
        ));
    }

    pub(super) fn bar(&mut self, corner: At, (width, height): (i32, i32), colour: &str) {
        let (x, y) = self.place(corner);
        let width = width.max(0);
        self.element(format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}"/>"#));
    }

    /// One of three marks.
    pub(super) fn mark(&mut self, kind: usize, at: At, colour: &str) {
        let (x, y) = self.place(at);
        match kind % 3 {
            0 => self.element(format_args!(r#"<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>"#)),
            1 => self.bar((at.0 - 4, at.1 - 4), (8, 8), colour),
            _ => {
                let (left, right, top, bottom) = (x - 5, x + 5, y - 5, y + 4);
                self.element(format_args!(
                    r#"<polygon points="{left},{bottom} {x},{top} {right},{bottom}" fill="{colour}"/>"#
                ));
            }
        }
    }

    pub(super) fn words(&mut self, text: &str, at: At, words: Words) {
        let Words { size, side, level, colour } = words;
        let (x, y) = self.place(at);
        let anchor = match side {
            Side::After => "start",
            Side::Around => "middle",
            Side::Before => "end",
        };
        // From the line on which the letters stand.
        let y = match level {
            Level::Below => y + size * 4 / 5,
            Level::Beside => y + size * 7 / 20,
            Level::Above => y - size / 5,
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.element(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#
        ));
    }

    pub(super) fn finish(self) -> String {
        let Self { body, width, height, .. } = self;
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\"/>\n{body}</svg>\n"
        )
    }
}
