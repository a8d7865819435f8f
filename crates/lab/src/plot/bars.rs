//! One budget: a panel of horizontal bars, each with its method's name and its figure.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{DrawResult, INK, PALE, colour, decades, figure, text, tick};
use super::{Metric, Picture};

const BAR: i32 = 24;
const TITLE: i32 = 34;
const AXIS: i32 = 34;
const NAMES: i32 = 118;
/// Room for the figure behind the longest bar.
const FIGURES: i32 = 74;

pub(super) fn panel_height(methods: usize) -> u32 {
    (TITLE + AXIS) as u32 + BAR as u32 * methods as u32 + 12
}

/// Drawn by hand in pixels: the library's own bars do not start anywhere on a logarithmic axis.
pub(super) fn draw<B: DrawingBackend>(
    picture: &Picture<'_>,
    metric: &Metric,
    panel: &DrawingArea<B, Shift>,
) -> DrawResult<B> {
    let (low, high, _) = picture.range(metric);
    let (width, _) = panel.dim_in_pixel();
    let (left, right) = (NAMES, width as i32 - FIGURES);
    let bottom = TITLE + BAR * picture.methods.len() as i32;
    let place = |x: f64| {
        let share = (x.max(low) / low).log10() / (high / low).log10();
        left + (share.min(1.0) * f64::from(right - left)).round() as i32
    };

    panel.draw(&Text::new(metric.title, (left, 12), text(16, HPos::Left, VPos::Top)))?;
    for x in decades(low, high) {
        let at = place(x);
        panel.draw(&PathElement::new([(at, TITLE), (at, bottom)], PALE))?;
        panel.draw(&Text::new(tick(x), (at, bottom + 6), text(14, HPos::Center, VPos::Top)))?;
    }
    for (number, method) in picture.methods.iter().enumerate() {
        let (top, end) = (TITLE + BAR * number as i32 + 4, TITLE + BAR * (number as i32 + 1) - 4);
        let middle = (top + end) / 2;
        panel.draw(&Text::new((*method).to_owned(), (left - 8, middle), text(14, HPos::Right, VPos::Center)))?;
        for (_, spread) in picture.points(method, metric) {
            let tip = place(spread.mean);
            panel.draw(&Rectangle::new([(left, top), (tip, end)], colour(number).filled()))?;
            let (least, most) = (place(spread.least), place(spread.most));
            if least < most {
                panel.draw(&PathElement::new([(least, middle), (most, middle)], INK))?;
            }
            let behind = tip.max(most) + 6;
            panel.draw(&Text::new(figure(spread.mean), (behind, middle), text(14, HPos::Left, VPos::Center)))?;
        }
    }
    panel.draw(&PathElement::new([(left, TITLE), (left, bottom)], INK))
}
