//! What all pictures share: title, legend, four panels, a note; colours and numbers.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{METRICS, Picture, WIDTH, bars, lines};

pub(super) const FONT_NAME: &str = "sans-serif";
pub(super) const HEADER: u32 = 48;
pub(super) const FOOTER: u32 = 30;
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const PALE: RGBColor = RGBColor(225, 225, 225);

const LEGEND_LINE: u32 = 26;
const LEGEND_ENTRY: u32 = 190;
const MARGIN: u32 = 24;

pub(super) type DrawResult<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// Ten colours that can be told apart, also by most who do not see all of them; then again, with
/// other marks.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(120, 94, 70),
    RGBColor(90, 90, 90),
    RGBColor(120, 60, 170),
    RGBColor(150, 170, 40),
];

pub(super) fn colour(method: usize) -> RGBColor {
    COLOURS[method % COLOURS.len()]
}

/// Sizes are even: the drawing library cuts off half pixels, up or down by letter, and full stops
/// would hover.
pub(super) fn text<'a>(size: u32, horizontal: HPos, vertical: VPos) -> TextStyle<'a> {
    debug_assert!(size.is_multiple_of(2));
    (FONT_NAME, size).into_font().color(&INK).pos(Pos::new(horizontal, vertical))
}

pub(super) fn legend_height(picture: &Picture<'_>) -> u32 {
    if picture.budgets.len() == 1 {
        return 0; // Bars carry their names.
    }
    (picture.methods.len() as u32).div_ceil(legend_columns()) * LEGEND_LINE + 6
}

fn legend_columns() -> u32 {
    (WIDTH - 2 * MARGIN) / LEGEND_ENTRY
}

pub(super) fn draw<B: DrawingBackend>(picture: &Picture<'_>, root: &DrawingArea<B, Shift>) -> DrawResult<B> {
    root.fill(&WHITE)?;
    let (width, height) = root.dim_in_pixel();
    let single = picture.budgets.len() == 1;
    let title = match picture.budgets[..] {
        [budget] => format!("{}, {}", picture.title, size(budget)),
        _ => picture.title.clone(),
    };
    root.draw(&Text::new(title, (MARGIN as i32, 16), text(22, HPos::Left, VPos::Top)))?;
    if !single {
        draw_legend(picture, root)?;
    }
    let top = HEADER + legend_height(picture);
    let (_, below) = root.split_vertically(top);
    let (panels, _) = below.split_vertically(height - top - FOOTER);
    for (panel, metric) in panels.split_evenly((2, 2)).iter().zip(&METRICS) {
        if single { bars::draw(picture, metric, panel)? } else { lines::draw(picture, metric, panel)? }
    }
    let note = note(picture);
    root.draw(&Text::new(note, ((width - MARGIN) as i32, height as i32 - 8), text(14, HPos::Right, VPos::Bottom)))
}

fn note(picture: &Picture<'_>) -> String {
    let seeds = picture.summaries.iter().map(|summary| summary.seeds()).max().unwrap_or(1);
    let mut notes = vec!["logarithmic axes".to_owned()];
    if METRICS.iter().any(|metric| picture.range(metric).2) {
        notes.push("an error of 0 is drawn at the lower edge".to_owned());
    }
    if seeds > 1 {
        notes.push(format!("mean of {seeds} seeds, thin lines from the smallest to the largest"));
    }
    notes.join("; ")
}

fn draw_legend<B: DrawingBackend>(picture: &Picture<'_>, root: &DrawingArea<B, Shift>) -> DrawResult<B> {
    for (number, name) in picture.methods.iter().enumerate() {
        let (column, line) = (number as u32 % legend_columns(), number as u32 / legend_columns());
        let (x, y) = ((MARGIN + column * LEGEND_ENTRY) as i32, (HEADER + line * LEGEND_LINE + 10) as i32);
        root.draw(&PathElement::new([(x, y), (x + 30, y)], colour(number).stroke_width(2)))?;
        lines::draw_mark(root, number, (x + 15, y))?;
        root.draw(&Text::new((*name).to_owned(), (x + 38, y), text(16, HPos::Left, VPos::Center)))?;
    }
    Ok(())
}

/// `64KB`.
pub fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{}KB", short(bytes as f64 / 1024.0)),
        _ => format!("{}MB", short(bytes as f64 / 1_048_576.0)),
    }
}

fn short(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// `1,234,567`.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|c| str::from_utf8(c).unwrap_or_default()).collect();
    groups.join(",")
}

/// Three digits that matter: `0.0123`, `1.23`, `1,235`.
pub fn figure(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        x if (999.5..1e15).contains(&x) => thousands(x.round() as u64),
        x if !(1e-4..1e15).contains(&x) => format!("{x:.1e}"),
        x => format!("{x:.*}", (2 - x.log10().floor() as i32).max(0) as usize),
    }
}

/// A tick of a logarithmic axis: `0.01`, `1`, `1000`, `1e6`.
pub(super) fn tick(x: f64) -> String {
    if (1e-4..1e5).contains(&x) { format!("{}", (x * 1e6).round() / 1e6) } else { format!("{x:e}") }
}

/// The whole powers of ten from `low` to `high`, at most about eight of them.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().round() as i32, high.log10().round() as i32);
    let step = ((last - first) as usize).div_ceil(8).max(1);
    (first..=last).step_by(step).map(|power| 10f64.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0.0, 2.5e-7, 0.01234, 1.0, 170.4, 1473.2].map(figure),
            ["0", "2.5e-7", "0.0123", "1.00", "170", "1,473"]
        );
        assert_eq!([1e-5, 1e-3, 0.1, 1.0, 1e4, 1e6].map(tick), ["1e-5", "0.001", "0.1", "1", "10000", "1e6"]);
        assert_eq!([100, 65_536, 63_408, 1 << 20].map(size), ["100B", "64KB", "61.9KB", "1MB"]);
        assert_eq!(decades(0.01, 10.0).len(), 4);
        assert_eq!(decades(1e-9, 1e9).len(), 7);
    }
}
