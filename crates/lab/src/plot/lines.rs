//! Several budgets: a panel of lines, error against memory, both logarithmic.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{DrawResult, INK, PALE, colour, decades, size, text, tick};
use super::{Metric, Picture};

pub(super) const PANEL_HEIGHT: u32 = 360;
const LEFT: i32 = 72;
const RIGHT: i32 = 28;
const TOP: i32 = 40;
const BOTTOM: i32 = 52;

/// Drawn by hand in pixels, as the bars are: the ticks are the budgets and the powers of ten, and
/// no others.
pub(super) fn draw<B: DrawingBackend>(
    picture: &Picture<'_>,
    metric: &Metric,
    panel: &DrawingArea<B, Shift>,
) -> DrawResult<B> {
    let (low, high, _) = picture.range(metric);
    let (width, height) = panel.dim_in_pixel();
    let (right, bottom) = (width as i32 - RIGHT, height as i32 - BOTTOM);
    let (least, most) = (picture.budgets[0].max(1) as f64, picture.budgets[picture.budgets.len() - 1] as f64);
    let across = |budget: usize| {
        let share = (budget as f64 / least).ln() / (most / least).ln();
        // A little room, so that no mark sits on the frame.
        LEFT + 16 + (share * f64::from(right - LEFT - 32)).round() as i32
    };
    let up = |x: f64| {
        let share = (x.max(low) / low).log10() / (high / low).log10();
        bottom - (share.min(1.0) * f64::from(bottom - TOP)).round() as i32
    };

    panel.draw(&Text::new(metric.title, (LEFT, 14), text(16, HPos::Left, VPos::Top)))?;
    for y in decades(low, high) {
        panel.draw(&PathElement::new([(LEFT, up(y)), (right, up(y))], PALE))?;
        panel.draw(&Text::new(tick(y), (LEFT - 8, up(y)), text(14, HPos::Right, VPos::Center)))?;
    }
    let mut free_from = i32::MIN;
    for &budget in &picture.budgets {
        let at = across(budget);
        panel.draw(&PathElement::new([(at, bottom), (at, bottom + 4)], INK))?;
        // Budgets that are close together: a label only where there is room.
        if at >= free_from {
            panel.draw(&Text::new(size(budget), (at, bottom + 8), text(14, HPos::Center, VPos::Top)))?;
            free_from = at + 56;
        }
    }
    panel.draw(&Text::new("memory", ((LEFT + right) / 2, bottom + 28), text(14, HPos::Center, VPos::Top)))?;
    panel.draw(&PathElement::new([(LEFT, TOP), (LEFT, bottom), (right, bottom)], INK))?;

    for (number, method) in picture.methods.iter().enumerate() {
        let points = picture.points(method, metric);
        let path: Vec<(i32, i32)> = points.iter().map(|(budget, spread)| (across(*budget), up(spread.mean))).collect();
        panel.draw(&PathElement::new(path.clone(), colour(number).stroke_width(2)))?;
        for ((x, y), (_, spread)) in path.into_iter().zip(points) {
            panel.draw(&PathElement::new([(x, up(spread.least)), (x, up(spread.most))], colour(number)))?;
            draw_mark(panel, number, (x, y))?;
        }
    }
    Ok(())
}

/// A method's mark: with its colour it is one of thirty.
pub(super) fn draw_mark<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    number: usize,
    at: (i32, i32),
) -> DrawResult<B> {
    let style = colour(number).filled();
    // Neighbours in the list differ in both.
    match (number + number / 10) % 3 {
        0 => area.draw(&Circle::new(at, 5, style)),
        1 => area.draw(&Rectangle::new([(at.0 - 4, at.1 - 4), (at.0 + 4, at.1 + 4)], style)),
        _ => area.draw(&TriangleMarker::new(at, 6, style)),
    }
}
