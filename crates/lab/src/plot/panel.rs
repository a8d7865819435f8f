//! One panel in pixels.

use super::canvas::{At, Canvas, INK, Level, PALE, Side, Words};
use super::numbers::figure;
use super::style::Styles;
use super::{Axis, Content, Line, Panel};
use crate::summary::Spread;

const LINES_HEIGHT: u32 = 340;
const LEFT: i32 = 78;
const RIGHT: i32 = 28;
const TOP: i32 = 40;
const BOTTOM: i32 = 54;
/// Between a tick's text and the next.
const TICK_ROOM: i32 = 8;
/// From one name at the end of a line to the next, at least.
const NAME_STEP: i32 = 15;

const BAR: i32 = 26;
const NAMES: i32 = 170;
const FIGURES: i32 = 84;

const TITLE: Words = Words { size: 16, side: Side::After, level: Level::Below, colour: INK };

fn bars_height(bars: usize) -> u32 {
    (TOP + BOTTOM - 10) as u32 + BAR as u32 * bars as u32
}

pub(super) fn height(panel: &Panel) -> u32 {
    match &panel.content {
        Content::Lines { .. } => LINES_HEIGHT,
        Content::Bars { bars, .. } => bars_height(bars.len()),
    }
}

/// Draws a panel of this width at the canvas's origin.
pub(super) fn draw(panel: &Panel, styles: &Styles<'_>, width: i32, canvas: &mut Canvas) {
    match &panel.content {
        Content::Lines { x, y, lines } => draw_lines(&panel.title, (x, y), lines, styles, width, canvas),
        Content::Bars { x, bars } => draw_bars(&panel.title, x, bars, styles, width, canvas),
    }
}

/// About as wide as that many letters of the names and ticks are.
fn room(letters: usize) -> i32 {
    letters as i32 * 8
}

fn draw_lines(
    title: &str,
    (x, y): (&Axis, &Axis),
    lines: &[Line],
    styles: &Styles<'_>,
    width: i32,
    canvas: &mut Canvas,
) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = x.fit(points().map(|point| point.x), true);
    let up = y.fit(points().flat_map(|point| [point.y.least, point.y.mean, point.y.most]), false);
    // One line needs no name.
    let named = styles.names().len() > 1;
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let right = width - RIGHT - if named { room(longest) } else { 0 };
    let bottom = LINES_HEIGHT as i32 - BOTTOM;
    // A little room, so that no mark sits on the frame.
    let column = |figure: f64| LEFT + 14 + (across.share(figure) * f64::from(right - LEFT - 28)).round() as i32;
    let line = |figure: f64| bottom - (up.share(figure) * f64::from(bottom - TOP)).round() as i32;

    canvas.words(title, (LEFT - 40, 12), TITLE);
    for (figure, words) in up.ticks() {
        let at = line(figure);
        canvas.path(&[(LEFT, at), (right, at)], PALE, 1);
        canvas.words(&words, (LEFT - 8, at), Words::new(14, Side::Before, Level::Beside));
    }
    let mut free_from = i32::MIN;
    for (figure, words) in across.ticks() {
        let at = column(figure);
        canvas.path(&[(at, bottom), (at, bottom + 4)], INK, 1);
        let half = room(words.chars().count()) / 2;
        if at - half >= free_from {
            canvas.words(&words, (at, bottom + 8), Words::new(14, Side::Around, Level::Below));
            free_from = at + half + TICK_ROOM;
        }
    }
    let middle = ((LEFT + right) / 2, bottom + 28);
    canvas.words(&x.label, middle, Words::new(14, Side::Around, Level::Below));
    canvas.path(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], INK, 1);

    // Many points (a loss curve) are a line without marks.
    let marked = lines.iter().all(|line| line.points.len() <= 40);
    // Rivals first, so that ours lie on top.
    let (behind, before): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| styles.style(&line.name).rival);
    let mut ends: Vec<(At, &Line)> = Vec::new();
    for drawn in behind.into_iter().chain(before) {
        let style = styles.style(&drawn.name);
        let path: Vec<At> = drawn.points.iter().map(|point| (column(point.x), line(point.y.mean))).collect();
        canvas.path(&path, style.colour, if style.rival { 1 } else { 2 });
        ends.extend(path.last().map(|&end| (end, drawn)));
        if !marked {
            continue;
        }
        for (&at, point) in path.iter().zip(&drawn.points) {
            canvas.path(&[(at.0, line(point.y.least)), (at.0, line(point.y.most))], style.colour, 1);
            canvas.mark(style.mark, at, style.colour);
        }
    }
    if named {
        ends.sort_by_key(|(end, _)| end.1);
        let heights: Vec<i32> = ends.iter().map(|(end, _)| end.1).collect();
        for ((end, line), height) in ends.iter().zip(apart(&heights, NAME_STEP, TOP, bottom)) {
            let colour = styles.style(&line.name).colour;
            // To a name that had to give way, or whose line ends early.
            canvas.path(&[*end, (right + 4, height)], colour, 1);
            let words = Words { colour, ..Words::new(14, Side::After, Level::Beside) };
            canvas.words(&line.name, (right + 8, height), words);
        }
    }
}

/// Heights in the same order, near the wanted ones (which ascend) and at least `step` apart,
/// between `top` and `bottom` if they fit there.
fn apart(wanted: &[i32], step: i32, top: i32, bottom: i32) -> Vec<i32> {
    let mut heights = wanted.to_vec();
    let mut free_from = top;
    for height in &mut heights {
        *height = free_from.max(*height);
        free_from = *height + step;
    }
    let mut free_to = bottom;
    for height in heights.iter_mut().rev() {
        *height = free_to.min(*height);
        free_to = *height - step;
    }
    heights
}

fn draw_bars(title: &str, x: &Axis, bars: &[(String, Spread)], styles: &Styles<'_>, width: i32, canvas: &mut Canvas) {
    let across = x.fit(bars.iter().flat_map(|(_, spread)| [spread.least, spread.mean, spread.most]), false);
    let left = NAMES;
    let right = width - FIGURES;
    let bottom = TOP + BAR * bars.len() as i32;
    let column = |figure: f64| left + (across.share(figure) * f64::from(right - left)).round() as i32;
    canvas.words(title, (24, 12), TITLE);
    let mut free_from = i32::MIN;
    for (figure, words) in across.ticks() {
        let at = column(figure);
        canvas.path(&[(at, TOP), (at, bottom)], PALE, 1);
        let half = room(words.chars().count()) / 2;
        if at - half >= free_from {
            canvas.words(&words, (at, bottom + 6), Words::new(14, Side::Around, Level::Below));
            free_from = at + half + TICK_ROOM;
        }
    }
    for (number, (name, spread)) in bars.iter().enumerate() {
        let top = TOP + BAR * number as i32 + 4;
        let middle = top + (BAR - 8) / 2;
        canvas.words(name, (left - 8, middle), Words::new(14, Side::Before, Level::Beside));
        let tip = column(spread.mean);
        canvas.bar((left, top), (tip - left, BAR - 8), styles.style(name).colour);
        let (least, most) = (column(spread.least), column(spread.most));
        if least < most {
            canvas.path(&[(least, middle), (most, middle)], INK, 1);
        }
        let behind = (tip.max(most) + 6, middle);
        canvas.words(&figure(spread.mean), behind, Words::new(14, Side::After, Level::Beside));
    }
    canvas.path(&[(left, TOP), (left, bottom)], INK, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_where_there_is_room() {
        assert_eq!(apart(&[50, 100, 200], 15, 40, 286), [50, 100, 200]);
        assert_eq!(apart(&[50, 50, 52], 15, 40, 286), [50, 65, 80]);
        assert_eq!(apart(&[280, 286, 286], 15, 40, 286), [256, 271, 286]);
    }

    proptest! {
        #[test]
        fn names_never_lie_on_each_other(mut wanted in prop::collection::vec(40i32..=286, 0..16)) {
            wanted.sort_unstable();
            let heights = apart(&wanted, 15, 40, 286);
            prop_assert!(heights.is_sorted_by(|a, b| b - a >= 15));
            prop_assert!(heights.iter().all(|height| (40..=286).contains(height)));
        }
    }
}
