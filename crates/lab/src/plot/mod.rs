//! Plots the four errors against memory, or as bars for a single budget.
//!
//! All errors are on a logarithmic axis; an error of 0 has no place there and sits at its lower
//! edge, which a note then says. With several seeds a point is their mean and a thin line goes from
//! the smallest to the largest.
//!
//! [`Figure`] draws anything else: panels of lines or bars over linear or logarithmic axes.

mod axis;
mod canvas;
mod figure;
mod numbers;
mod panel;
mod style;

pub use axis::{Axis, Scale};
pub use figure::{Content, Figure, Line, Panel, Point};
pub use numbers::{figure as figure_text, size as size_text};

use std::path::{Path, PathBuf};

use crate::row::Row;
use crate::summary::{Spread, Summary};

/// Error of a picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The file name does not end in .svg.
    #[error("{}: a plot is an .svg file", .0.display())]
    Extension(PathBuf),
    /// There is nothing to plot: every method failed.
    #[error("there is no figure to plot: every method failed")]
    Nothing,
    /// The file could not be written.
    #[error("cannot write {}: {why}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Error reported by the operating system.
        why: std::io::Error,
    },
}

/// Checks that a plot can have this name.
///
/// ```
/// use std::path::Path;
/// use ucl_lab::plot::check_name;
/// assert!(check_name(Path::new("errors.svg")).is_ok());
/// let error = check_name(Path::new("errors.pdf")).unwrap_err();
/// assert_eq!(error.to_string(), "errors.pdf: a plot is an .svg file");
/// ```
pub fn check_name(path: &Path) -> Result<(), PlotError> {
    match path.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("svg") => Ok(()),
        _ => Err(PlotError::Extension(path.to_owned())),
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

/// The errors of rows as a figure.
fn errors(rows: &[Row]) -> Result<Figure, PlotError> {
    let summaries: Vec<Summary<'_>> =
        Summary::of(rows).into_iter().filter(|summary| summary.spread(|row| row.aae).is_some()).collect();
    let first = summaries.first().ok_or(PlotError::Nothing)?.first();
    let mut budgets: Vec<usize> = summaries.iter().map(|summary| summary.first().memory_budget).collect();
    budgets.sort_unstable();
    budgets.dedup();
    let mut methods: Vec<&str> = Vec::new();
    for summary in &summaries {
        if !methods.contains(&summary.first().method.as_str()) {
            methods.push(&summary.first().method);
        }
    }
    let name = Path::new(&first.input).file_name().map_or(first.input.as_str().into(), |name| name.to_string_lossy());
    let mut title =
        format!("{name}: {} items, {} keys", numbers::thousands(first.items), numbers::thousands(first.keys));
    let single = budgets.len() == 1;
    if single {
        title += &format!(", {}", size_text(budgets[0]));
    }
    let points = |method: &str, metric: &Metric| -> Vec<(usize, Spread)> {
        let of_method = summaries.iter().filter(|summary| summary.first().method == method);
        let point = |summary: &Summary<'_>| Some((summary.first().memory_budget, summary.spread(metric.figure)?));
        let mut points: Vec<(usize, Spread)> = of_method.filter_map(point).collect();
        points.sort_by_key(|point| point.0);
        points
    };
    let panel = |metric: &Metric| {
        if single {
            let bar = |method: &&str| Some(((*method).to_owned(), points(method, metric).first()?.1));
            return Panel::bars(metric.title, Axis::log(""), methods.iter().filter_map(bar).collect());
        }
        let line = |method: &&str| {
            let points = points(method, metric).into_iter().map(|(budget, y)| Point { x: budget as f64, y });
            Line::new(*method, points)
        };
        let ticks = budgets.iter().map(|&budget| (budget as f64, size_text(budget)));
        let memory = Axis::log("memory").with_ticks(ticks);
        Panel::lines(metric.title, memory, Axis::log(""), methods.iter().map(line).collect())
    };
    let seeds = summaries.iter().map(|summary| summary.seeds()).max().unwrap_or(1);
    let mut note = "logarithmic axes".to_owned();
    if seeds > 1 {
        note += &format!("; mean of {seeds} seeds, thin lines from the smallest to the largest");
    }
    Ok(Figure { title, note, panels: METRICS.iter().map(panel).collect(), columns: 2 })
}

/// Draws the errors of these rows to a file.
///
/// ```
/// use ucl_lab::{Experiment, Options, Recording, MethodRegistry, plot};
/// use ucl_streams::ReadOptions;
///
/// let registry = MethodRegistry::standard();
/// let stream = Recording::read(&["zipf:1.1:5000:1000".parse()?], &ReadOptions::default())?;
/// let methods = registry.select(["cm", "cs"])?;
/// let budgets = vec![4 << 10, 8 << 10];
/// let rows = Experiment { methods, budgets, seeds: vec![1], options: Options::default() }.run(&stream, |_| ());
/// let picture = plot::svg(&rows)?;
/// assert!(picture.contains("AAE") && picture.contains("8KB"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plot(rows: &[Row], path: &Path) -> Result<(), PlotError> {
    errors(rows)?.save(path)
}

/// Returns the errors of these rows as an SVG picture, for a page.
pub fn svg(rows: &[Row]) -> Result<String, PlotError> {
    errors(rows)?.svg()
}
