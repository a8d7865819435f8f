//! Pictures of any figures: several panels of lines or bars, linear and logarithmic axes.
//!
//! A [`Figure`] says what is to be seen; drawing decides where it goes. Lines of one name have one
//! colour and one mark in all panels, and their name at their end. Where our systems stand beside
//! others, ours have colours and the others are grey. On a logarithmic axis what is 0 or less is
//! drawn at the lower edge, and a note says so.
//!
//! ```
//! use ucl_lab::plot::{Axis, Figure, Line, Panel, Point};
//!
//! let line = |name, figures: [f64; 2]| Line::new(name, [Point::at(16.0, figures[0]), Point::at(128.0, figures[1])]);
//! let lines = vec![line("cm", [340.0, 7.5]), line("delta", [7.5, 0.0])];
//! let panel = Panel::lines("AAE (counts)", Axis::log("memory (KB)"), Axis::log(""), lines);
//! let picture = Figure { title: "Retail".into(), note: String::new(), panels: vec![panel], columns: 1 }.svg()?;
//! assert!(picture.contains("delta") && picture.contains("lower edge"));
//! # Ok::<(), ucl_lab::plot::PlotError>(())
//! ```

use std::path::Path;

use super::canvas::{Canvas, INK, Level, Side, Words};
use super::style::Styles;
use super::{Axis, PlotError, Scale, panel};
use crate::summary::Spread;

const WIDTH: u32 = 1200;
const MARGIN: i32 = 24;
const HEADER: u32 = 48;
const FOOTER: u32 = 30;

/// Picture of several panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title above the panels.
    pub title: String,
    /// Note below the panels.
    pub note: String,
    /// Panels from left to right, then down.
    pub panels: Vec<Panel>,
    /// Number of panels side by side.
    pub columns: usize,
}

/// Coordinate system with lines, or list of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Title with the unit.
    pub title: String,
    /// Content of the panel.
    pub content: Content,
}

/// Content of a panel.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Lines over a common axis.
    Lines {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// Lines in the order of the legend.
        lines: Vec<Line>,
    },
    /// Horizontal bars, one for each name.
    Bars {
        /// Horizontal axis.
        x: Axis,
        /// Name and value of each bar.
        bars: Vec<(String, Spread)>,
    },
}

/// Line, or separate points.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points in the order of `x`.
    pub points: Vec<Point>,
}

/// Point with the spread of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: Spread,
}

impl Point {
    /// Creates a point without a spread.
    pub fn at(x: f64, y: f64) -> Self {
        Self { x, y: Spread { mean: y, deviation: 0.0, least: y, most: y } }
    }
}

impl Line {
    /// Creates a line through these points.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

impl Panel {
    /// Creates a panel of lines. Lines without points are left out.
    pub fn lines(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Line>) -> Self {
        let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
        Self { title: title.into(), content: Content::Lines { x, y, lines } }
    }

    /// Creates a panel of bars.
    pub fn bars(title: impl Into<String>, x: Axis, bars: Vec<(String, Spread)>) -> Self {
        Self { title: title.into(), content: Content::Bars { x, bars } }
    }

    fn is_empty(&self) -> bool {
        match &self.content {
            Content::Lines { lines, .. } => lines.is_empty(),
            Content::Bars { bars, .. } => bars.is_empty(),
        }
    }

    /// Returns true if some figure has no place on its logarithmic axis.
    fn has_zero(&self) -> bool {
        match &self.content {
            Content::Lines { y, lines, .. } => {
                y.scale == Scale::Log && lines.iter().flat_map(|line| &line.points).any(|point| point.y.least <= 0.0)
            }
            Content::Bars { x, bars } => x.scale == Scale::Log && bars.iter().any(|(_, spread)| spread.least <= 0.0),
        }
    }
}

impl Figure {
    /// Returns the picture as SVG text.
    pub fn svg(&self) -> Result<String, PlotError> {
        if self.panels.iter().all(Panel::is_empty) {
            return Err(PlotError::Nothing);
        }
        let columns = self.columns.clamp(1, self.panels.len());
        let rows: Vec<&[Panel]> = self.panels.chunks(columns).collect();
        let tall = |row: &[Panel]| row.iter().map(panel::height).max().unwrap_or(0);
        let height = HEADER + rows.iter().map(|row| tall(row)).sum::<u32>() + FOOTER;
        let mut canvas = Canvas::new(WIDTH, height);
        let title = Words { colour: INK, ..Words::new(22, Side::After, Level::Below) };
        canvas.words(&self.title, (MARGIN, 16), title);
        let styles = Styles::of(self.names());
        let wide = WIDTH as i32 / columns as i32;
        let mut top = HEADER;
        for row in rows {
            for (column, panel) in row.iter().enumerate() {
                canvas.origin = (column as i32 * wide, top as i32);
                panel::draw(panel, &styles, wide, &mut canvas);
            }
            top += tall(row);
        }
        canvas.origin = (0, 0);
        let zero = "a figure of 0 is drawn at the lower edge of a logarithmic axis";
        let mut notes: Vec<&str> = Vec::new();
        notes.extend((!self.note.is_empty()).then_some(self.note.as_str()));
        notes.extend(self.panels.iter().any(Panel::has_zero).then_some(zero));
        let at = (WIDTH as i32 - MARGIN, height as i32 - 8);
        canvas.words(&notes.join("; "), at, Words::new(14, Side::Before, Level::Above));
        Ok(canvas.finish())
    }

    /// Writes the picture to an `.svg` file.
    pub fn save(&self, path: &Path) -> Result<(), PlotError> {
        super::check_name(path)?;
        let failed = |why: std::io::Error| PlotError::Write { path: path.to_owned(), why };
        std::fs::write(path, self.svg()?).map_err(failed)
    }

    /// The names of all lines and bars, in the order of their first appearance.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for panel in &self.panels {
            let here: Vec<&str> = match &panel.content {
                Content::Lines { lines, .. } => lines.iter().map(|line| line.name.as_str()).collect(),
                Content::Bars { bars, .. } => bars.iter().map(|(name, _)| name.as_str()).collect(),
            };
            for name in here {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}
