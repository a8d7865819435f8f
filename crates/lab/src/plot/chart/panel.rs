//! One panel in pixels.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::super::lines::draw_mark;
use super::super::page::{DrawResult, INK, PALE, colour, figure, text};
use super::{Axis, Content, Line, Panel};
use crate::summary::Spread;

pub(super) const LINES_HEIGHT: u32 = 340;
const LEFT: i32 = 78;
const RIGHT: i32 = 28;
const TOP: i32 = 40;
const BOTTOM: i32 = 54;
/// Between a tick's text and the next.
const TICK_ROOM: i32 = 8;

const BAR: i32 = 26;
const NAMES: i32 = 170;
const FIGURES: i32 = 84;

pub(super) fn bars_height(bars: usize) -> u32 {
    (TOP + BOTTOM - 10) as u32 + BAR as u32 * bars as u32
}

pub(super) fn draw<B: DrawingBackend>(panel: &Panel, names: &[&str], area: &DrawingArea<B, Shift>) -> DrawResult<B> {
    match &panel.content {
        Content::Lines { x, y, lines } => draw_lines(&panel.title, x, y, lines, names, area),
        Content::Bars { x, bars } => draw_bars(&panel.title, x, bars, area),
    }
}

fn draw_lines<B: DrawingBackend>(
    title: &str,
    x: &Axis,
    y: &Axis,
    lines: &[Line],
    names: &[&str],
    area: &DrawingArea<B, Shift>,
) -> DrawResult<B> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (across, up) = (
        x.fit(points().map(|point| point.x), true),
        y.fit(points().flat_map(|point| [point.y.least, point.y.mean, point.y.most]), false),
    );
    let (width, height) = area.dim_in_pixel();
    let (right, bottom) = (width as i32 - RIGHT, height as i32 - BOTTOM);
    // A little room, so that no mark sits on the frame.
    let column = |figure: f64| LEFT + 14 + (across.share(figure) * f64::from(right - LEFT - 28)).round() as i32;
    let line = |figure: f64| bottom - (up.share(figure) * f64::from(bottom - TOP)).round() as i32;

    area.draw(&Text::new(title.to_owned(), (LEFT - 40, 12), text(16, HPos::Left, VPos::Top)))?;
    for (figure, words) in up.ticks() {
        let at = line(figure);
        area.draw(&PathElement::new([(LEFT, at), (right, at)], PALE))?;
        area.draw(&Text::new(words, (LEFT - 8, at), text(14, HPos::Right, VPos::Center)))?;
    }
    let mut free_from = i32::MIN;
    for (figure, words) in across.ticks() {
        let at = column(figure);
        area.draw(&PathElement::new([(at, bottom), (at, bottom + 4)], INK))?;
        let half = words.chars().count() as i32 * 4;
        if at - half >= free_from {
            area.draw(&Text::new(words, (at, bottom + 8), text(14, HPos::Center, VPos::Top)))?;
            free_from = at + half + TICK_ROOM;
        }
    }
    let middle = ((LEFT + right) / 2, bottom + 28);
    area.draw(&Text::new(x.label.clone(), middle, text(14, HPos::Center, VPos::Top)))?;
    area.draw(&PathElement::new([(LEFT, TOP), (LEFT, bottom), (right, bottom)], INK))?;

    // Many points (a loss curve) are a line without marks.
    let marked = lines.iter().all(|line| line.points.len() <= 40);
    for drawn in lines {
        let number = names.iter().position(|name| *name == drawn.name).unwrap_or(0);
        let path: Vec<(i32, i32)> = drawn.points.iter().map(|point| (column(point.x), line(point.y.mean))).collect();
        area.draw(&PathElement::new(path.clone(), colour(number).stroke_width(2)))?;
        if !marked {
            continue;
        }
        for (&at, point) in path.iter().zip(&drawn.points) {
            area.draw(&PathElement::new([(at.0, line(point.y.least)), (at.0, line(point.y.most))], colour(number)))?;
            draw_mark(area, number, at)?;
        }
    }
    Ok(())
}

fn draw_bars<B: DrawingBackend>(
    title: &str,
    x: &Axis,
    bars: &[(String, Spread)],
    area: &DrawingArea<B, Shift>,
) -> DrawResult<B> {
    let across = x.fit(bars.iter().flat_map(|(_, spread)| [spread.least, spread.mean, spread.most]), false);
    let (width, _) = area.dim_in_pixel();
    let (left, right) = (NAMES, width as i32 - FIGURES);
    let bottom = TOP + BAR * bars.len() as i32;
    let column = |figure: f64| left + (across.share(figure) * f64::from(right - left)).round() as i32;
    area.draw(&Text::new(title.to_owned(), (24, 12), text(16, HPos::Left, VPos::Top)))?;
    let mut free_from = i32::MIN;
    for (figure, words) in across.ticks() {
        let at = column(figure);
        area.draw(&PathElement::new([(at, TOP), (at, bottom)], PALE))?;
        let half = words.chars().count() as i32 * 4;
        if at - half >= free_from {
            area.draw(&Text::new(words, (at, bottom + 6), text(14, HPos::Center, VPos::Top)))?;
            free_from = at + half + TICK_ROOM;
        }
    }
    for (number, (name, spread)) in bars.iter().enumerate() {
        let (top, end) = (TOP + BAR * number as i32 + 4, TOP + BAR * (number as i32 + 1) - 4);
        let middle = (top + end) / 2;
        area.draw(&Text::new(name.clone(), (left - 8, middle), text(14, HPos::Right, VPos::Center)))?;
        let tip = column(spread.mean);
        area.draw(&Rectangle::new([(left, top), (tip, end)], colour(number).filled()))?;
        let (least, most) = (column(spread.least), column(spread.most));
        if least < most {
            area.draw(&PathElement::new([(least, middle), (most, middle)], INK))?;
        }
        let behind = (tip.max(most) + 6, middle);
        area.draw(&Text::new(figure(spread.mean), behind, text(14, HPos::Left, VPos::Center)))?;
    }
    area.draw(&PathElement::new([(left, TOP), (left, bottom)], INK))
}
