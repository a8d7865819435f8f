//! Pictures of any figures: several panels of lines or bars, one legend, linear and logarithmic
//! axes.
//!
//! A [`Figure`] says what is to be seen; drawing decides where it goes. Lines of one name have one
//! colour and one mark in all panels, and stand in the legend once. On a logarithmic axis what is 0
//! or less is drawn at the lower edge, and a note says so.
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

mod axis;
mod panel;

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

pub use axis::{Axis, Scale};

use super::lines::draw_mark;
use super::page::{DrawResult, colour, text};
use super::{PlotError, PlotFormat, register_font};
use crate::summary::Spread;

const WIDTH: u32 = 1200;
const MARGIN: u32 = 24;
const HEADER: u32 = 48;
const FOOTER: u32 = 30;
const LEGEND_LINE: u32 = 26;

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
        /// Across.
        x: Axis,
        /// Up.
        y: Axis,
        /// The lines.
        lines: Vec<Line>,
    },
    /// Horizontal bars, one for each name.
    Bars {
        /// Across.
        x: Axis,
        /// Names and figures.
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

    /// Whether some figure has no place on its logarithmic axis.
    fn has_zero(&self) -> bool {
        match &self.content {
            Content::Lines { y, lines, .. } => {
                y.scale == Scale::Log && lines.iter().flat_map(|line| &line.points).any(|point| point.y.least <= 0.0)
            }
            Content::Bars { x, bars } => x.scale == Scale::Log && bars.iter().any(|(_, spread)| spread.least <= 0.0),
        }
    }

    fn height(&self) -> u32 {
        match &self.content {
            Content::Lines { .. } => panel::LINES_HEIGHT,
            Content::Bars { bars, .. } => panel::bars_height(bars.len()),
        }
    }
}

impl Figure {
    /// Returns the picture as SVG text.
    pub fn svg(&self) -> Result<String, PlotError> {
        let height = self.height()?;
        register_font();
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
            self.present(&root).map_err(|why| PlotError::Write { path: "svg".into(), why })?;
        }
        Ok(text)
    }

    /// Writes the picture to an `.svg` or `.png` file.
    pub fn save(&self, path: &Path) -> Result<(), PlotError> {
        let failed = |why: String| PlotError::Write { path: path.to_owned(), why };
        match PlotFormat::of(path)? {
            PlotFormat::Svg => std::fs::write(path, self.svg()?).map_err(|error| failed(error.to_string())),
            PlotFormat::Png => {
                let height = self.height()?;
                register_font();
                let root = BitMapBackend::new(path, (WIDTH, height)).into_drawing_area();
                self.present(&root).map_err(failed)
            }
        }
    }

    /// The names in the legend, in the order of their first appearance.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for panel in &self.panels {
            if let Content::Lines { lines, .. } = &panel.content {
                for line in lines {
                    if !names.contains(&line.name.as_str()) {
                        names.push(&line.name);
                    }
                }
            }
        }
        names
    }

    fn columns(&self) -> usize {
        self.columns.clamp(1, self.panels.len().max(1))
    }

    fn legend(&self) -> (Vec<&str>, u32, u32) {
        let names = self.names();
        if names.len() < 2 {
            return (Vec::new(), 1, 0);
        }
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        // About 9 pixels a letter at this size; the line and its mark stand before.
        let entry = (longest * 9 + 56).max(120);
        let columns = ((WIDTH - 2 * MARGIN) / entry).max(1);
        let height = (names.len() as u32).div_ceil(columns) * LEGEND_LINE + 6;
        (names, columns, height)
    }

    fn height(&self) -> Result<u32, PlotError> {
        if self.panels.iter().all(Panel::is_empty) {
            return Err(PlotError::Nothing);
        }
        let rows = self.panels.chunks(self.columns()).map(|row| row.iter().map(Panel::height).max().unwrap_or(0));
        Ok(HEADER + self.legend().2 + rows.sum::<u32>() + FOOTER)
    }

    fn present<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Result<(), String>
    where
        B::ErrorType: 'static,
    {
        self.draw(root).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())
    }

    fn draw<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> DrawResult<B> {
        root.fill(&WHITE)?;
        let (width, height) = root.dim_in_pixel();
        root.draw(&Text::new(self.title.clone(), (MARGIN as i32, 16), text(22, HPos::Left, VPos::Top)))?;
        let (names, columns, legend) = self.legend();
        let entry = (WIDTH - 2 * MARGIN) / columns;
        for (number, name) in names.iter().enumerate() {
            let (column, line) = (number as u32 % columns, number as u32 / columns);
            let (x, y) = ((MARGIN + column * entry) as i32, (HEADER + line * LEGEND_LINE + 10) as i32);
            root.draw(&PathElement::new([(x, y), (x + 30, y)], colour(number).stroke_width(2)))?;
            draw_mark(root, number, (x + 15, y))?;
            root.draw(&Text::new((*name).to_owned(), (x + 38, y), text(16, HPos::Left, VPos::Center)))?;
        }
        let names = self.names();
        let mut top = HEADER + legend;
        for row in self.panels.chunks(self.columns()) {
            let tall = row.iter().map(Panel::height).max().unwrap_or(0);
            let wide = width / self.columns() as u32;
            for (column, panel) in row.iter().enumerate() {
                let left = column as u32 * wide;
                let area = root.clone().shrink((left, top), (wide, tall));
                panel::draw(panel, &names, &area)?;
            }
            top += tall;
        }
        let zero = "a figure of 0 is drawn at the lower edge of a logarithmic axis";
        let mut notes: Vec<&str> = Vec::new();
        notes.extend((!self.note.is_empty()).then_some(self.note.as_str()));
        notes.extend(self.panels.iter().any(Panel::has_zero).then_some(zero));
        let at = ((width - MARGIN) as i32, height as i32 - 8);
        root.draw(&Text::new(notes.join("; "), at, text(14, HPos::Right, VPos::Bottom)))
    }
}
