//! Plots the four errors against memory, or as bars for a single budget.
//!
//! All errors are on a logarithmic axis; an error of 0 has no place there and sits at its lower
//! edge, which a note then says. With several seeds a point is their mean and a thin line goes from
//! the smallest to the largest.
//!
//! [`Figure`] draws anything else: panels of lines or bars over linear or logarithmic axes.
//!
//! Letters come from an embedded font, so that a picture looks the same on a machine without any.

mod bars;
mod chart;
mod lines;
mod page;

pub use chart::{Axis, Content, Figure, Line, Panel, Point, Scale};
pub use page::{figure as figure_text, size as size_text};

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::row::Row;
use crate::summary::{Spread, Summary};

static FONT: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");

/// The picture's width; the height follows from what is in it.
const WIDTH: u32 = 1200;

/// Error of a picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The file name does not end in .svg or .png.
    #[error("{}: a plot is an .svg or a .png file", .0.display())]
    Extension(PathBuf),
    /// There is nothing to plot: every method failed.
    #[error("there is no figure to plot: every method failed")]
    Nothing,
    /// The file could not be written.
    #[error("cannot write {}: {why}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system or the drawing library says.
        why: String,
    },
}

/// File format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// Vector graphics.
    Svg,
    /// Pixels.
    Png,
}

impl PlotFormat {
    /// Returns the format that the name of a file implies.
    ///
    /// ```
    /// use std::path::Path;
    /// use ucl_lab::plot::PlotFormat;
    /// assert_eq!(PlotFormat::of(Path::new("errors.svg")).unwrap(), PlotFormat::Svg);
    /// let error = PlotFormat::of(Path::new("errors.pdf")).unwrap_err();
    /// assert_eq!(error.to_string(), "errors.pdf: a plot is an .svg or a .png file");
    /// ```
    pub fn of(path: &Path) -> Result<Self, PlotError> {
        match path.extension().map(|extension| extension.to_ascii_lowercase()) {
            Some(extension) if extension == "svg" => Ok(Self::Svg),
            Some(extension) if extension == "png" => Ok(Self::Png),
            _ => Err(PlotError::Extension(path.to_owned())),
        }
    }
}

/// One of the four panels.
struct Metric {
    title: &'static str,
    figure: fn(&Row) -> Option<f64>,
}

const METRICS: [Metric; 4] = [
    Metric { title: "AAE (counts)", figure: |row| row.aae },
    Metric { title: "ARE (share of the true count)", figure: |row| row.are },
    Metric { title: "WMRD (0 to 2)", figure: |row| row.wmrd },
    Metric { title: "Entropy error (bits, weighted by frequency)", figure: |row| row.entropy_error },
];

/// Everything there is to draw.
struct Picture<'a> {
    title: String,
    /// Method names, in order: their place is their colour.
    methods: Vec<&'a str>,
    /// Budgets in bytes, ascending.
    budgets: Vec<usize>,
    summaries: Vec<Summary<'a>>,
}

impl<'a> Picture<'a> {
    fn of(rows: &'a [Row]) -> Result<Self, PlotError> {
        let summaries: Vec<Summary<'a>> =
            Summary::of(rows).into_iter().filter(|summary| summary.spread(|row| row.aae).is_some()).collect();
        let first = summaries.first().ok_or(PlotError::Nothing)?.first();
        let mut methods: Vec<&str> = Vec::new();
        let mut budgets: Vec<usize> = summaries.iter().map(|summary| summary.first().memory_budget).collect();
        budgets.sort_unstable();
        budgets.dedup();
        for summary in &summaries {
            if !methods.contains(&summary.first().method.as_str()) {
                methods.push(&summary.first().method);
            }
        }
        let name =
            Path::new(&first.input).file_name().map_or(first.input.as_str().into(), |name| name.to_string_lossy());
        let title = format!("{name}: {} items, {} keys", page::thousands(first.items), page::thousands(first.keys));
        Ok(Self { title, methods, budgets, summaries })
    }

    /// Budget and figure of every point of a method, by budget.
    fn points(&self, method: &str, metric: &Metric) -> Vec<(usize, Spread)> {
        let mut points: Vec<(usize, Spread)> = self
            .summaries
            .iter()
            .filter(|summary| summary.first().method == method)
            .filter_map(|summary| Some((summary.first().memory_budget, summary.spread(metric.figure)?)))
            .collect();
        points.sort_by_key(|point| point.0);
        points
    }

    /// Whole powers of ten around all figures that are not 0; whether some are 0.
    fn range(&self, metric: &Metric) -> (f64, f64, bool) {
        let spreads = self.summaries.iter().filter_map(|summary| summary.spread(metric.figure));
        let (mut low, mut high, mut zero) = (f64::INFINITY, 0f64, false);
        for spread in spreads {
            for x in [spread.least, spread.mean, spread.most] {
                zero |= x <= 0.0;
                low = if x > 0.0 { low.min(x) } else { low };
                high = high.max(x);
            }
        }
        if high == 0.0 {
            return (0.1, 1.0, zero);
        }
        // A figure right at the lower edge would have no bar.
        let floor = |x: f64| 10f64.powf((x.log10() - 0.05).floor());
        let ceiling = |x: f64| 10f64.powf((x.log10() + 0.05).ceil());
        (floor(low), ceiling(high).max(floor(low) * 10.0), zero)
    }

    fn height(&self) -> u32 {
        let panel = if self.budgets.len() == 1 { bars::panel_height(self.methods.len()) } else { lines::PANEL_HEIGHT };
        page::HEADER + page::legend_height(self) + 2 * panel + page::FOOTER
    }

    fn draw<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Result<(), String>
    where
        B::ErrorType: 'static,
    {
        page::draw(self, root).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())
    }
}

/// Draws the errors of these rows to a file.
///
/// ```
/// use ucl_lab::{Experiment, Options, Recording, Registry, plot};
/// use ucl_streams::ReadOptions;
///
/// let registry = Registry::standard();
/// let stream = Recording::read(&["zipf:1.1:5000:1000".parse()?], &ReadOptions::default())?;
/// let (methods, budgets) = (registry.select(["cm", "cs"])?, vec![4 << 10, 8 << 10]);
/// let rows = Experiment { methods, budgets, seeds: vec![1], options: Options::default() }.run(&stream, |_| ());
/// let picture = plot::svg(&rows)?;
/// assert!(picture.contains("AAE") && picture.contains("8KB"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plot(rows: &[Row], path: &Path) -> Result<(), PlotError> {
    let failed = |why: String| PlotError::Write { path: path.to_owned(), why };
    match PlotFormat::of(path)? {
        PlotFormat::Svg => std::fs::write(path, svg(rows)?).map_err(|error| failed(error.to_string())),
        PlotFormat::Png => {
            let picture = Picture::of(rows)?;
            register_font();
            let root = BitMapBackend::new(path, (WIDTH, picture.height())).into_drawing_area();
            picture.draw(&root).map_err(failed)
        }
    }
}

/// Returns the errors of these rows as an SVG picture, for a page.
pub fn svg(rows: &[Row]) -> Result<String, PlotError> {
    let picture = Picture::of(rows)?;
    register_font();
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, picture.height())).into_drawing_area();
        picture.draw(&root).map_err(|why| PlotError::Write { path: "svg".into(), why })?;
    }
    Ok(text)
}

/// Makes the embedded font known, once. Its name stays general: an SVG is shown with the reader's
/// own fonts.
fn register_font() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let registered = plotters::style::register_font(page::FONT_NAME, FontStyle::Normal, FONT);
        assert!(registered.is_ok(), "the embedded font is a font");
    });
}
