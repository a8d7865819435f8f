//! The three plots of the report.

use std::collections::BTreeMap;

use super::svg::{Anchor, LogAxis, Svg};
use super::{Findings, LEARNED, PLOTTED};
use crate::show::{count, figure};

/// Estimated against true counts, a panel a method. Keys are gathered into cells, the size of a dot
/// tells how many.
pub fn estimated_against_true(findings: &Findings) -> String {
    const PANEL: f64 = 400.0;
    const PLOT: f64 = 310.0;
    const CELLS_PER_DECADE: f64 = 14.0;
    let panels = &findings.contenders[..PLOTTED];
    let rows = panels.len().div_ceil(2);
    let mut svg = Svg::new(2.0 * PANEL, rows as f64 * (PANEL - 8.0));
    let top = largest(findings) * 1.3;
    for (i, contender) in panels.iter().enumerate() {
        let left = (i % 2) as f64 * PANEL + 62.0;
        let above = (i / 2) as f64 * (PANEL - 8.0) + 34.0;
        let x = LogAxis::new(1.0, top, left, left + PLOT);
        // Below 1 there is room for the keys that are answered with 0.
        let y = LogAxis::new(0.3, top, above + PLOT, above);
        svg.text(left, above - 12.0, Anchor::Start, "title", contender.name);
        svg.frame(x, y);
        svg.text(left - 6.0, y.at(0.3) + 3.5, Anchor::End, "tick", "0");
        svg.line((x.at(1.0), y.at(1.0)), (x.at(top), y.at(top)), "diagonal");

        let mut cells = BTreeMap::<(i64, i64), u64>::new();
        let cell = |value: u64| (((value as f64).log10() * CELLS_PER_DECADE).round()) as i64;
        for (key, truth) in findings.stream.truth().iter() {
            let estimate = contender.system.estimate(key).estimate;
            *cells.entry((cell(truth), if estimate == 0 { i64::MIN } else { cell(estimate) })).or_default() += 1;
        }
        let value = |cell: i64| if cell == i64::MIN { 0.0 } else { 10f64.powf(cell as f64 / CELLS_PER_DECADE) };
        for ((truth, estimate), keys) in cells {
            let title = format!(
                "{} keys: true about {}, estimated about {}",
                count(keys),
                figure(value(truth)),
                figure(value(estimate))
            );
            let radius = 1.3 + 0.62 * (keys as f64).ln();
            svg.dot((x.at(value(truth)), y.at(value(estimate))), radius, &format!("dot s{i}"), &title);
        }
        svg.text(left + PLOT / 2.0, above + PLOT + 34.0, Anchor::Middle, "label", "true count");
        svg.upright_text(left - 44.0, above + PLOT / 2.0, "estimate");
    }
    svg.finish("Estimated against true counts")
}

/// The mean relative error of keys of like frequency, a line a method.
pub fn error_by_frequency(findings: &Findings) -> String {
    const WIDTH: f64 = 800.0;
    const HEIGHT: f64 = 380.0;
    /// Errors below this are drawn here, at 0: nothing is left to see of them.
    const FLOOR: f64 = 4e-6;
    let contenders = &findings.contenders[..PLOTTED];
    let curves: Vec<Vec<(f64, f64)>> =
        contenders.iter().map(|contender| relative_errors(findings, contender)).collect();
    let worst = curves.iter().flatten().map(|&(_, error)| error).fold(1.0, f64::max);
    let x = LogAxis::new(1.0, largest(findings) * 1.1, 62.0, WIDTH - 130.0);
    let y = LogAxis::new(FLOOR, worst * 1.5, HEIGHT - 50.0, 14.0);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    svg.frame(x, y);
    svg.line((x.at(1.0), y.at(FLOOR)), (x.at(f64::MAX), y.at(FLOOR)), "grid");
    svg.text(x.at(1.0) - 6.0, y.at(FLOOR) + 3.5, Anchor::End, "tick", "0");
    // Names stand at the right ends of their lines, pushed apart where these are close.
    let mut names: Vec<(f64, usize)> = Vec::new();
    for (i, curve) in curves.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            curve.iter().map(|&(truth, error)| (x.at(truth), y.at(error.max(FLOOR)))).collect();
        svg.path(&points, &format!("curve s{i}"));
        for (point, (truth, error)) in points.iter().zip(curve) {
            let title =
                format!("{}: keys of about {}: relative error {}", contenders[i].name, figure(*truth), figure(*error));
            svg.dot(*point, 3.0, &format!("mark s{i}"), &title);
        }
        names.extend(points.last().map(|&(_, at)| (at, i)));
    }
    names.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lowest = f64::INFINITY;
    for (at, i) in names {
        let at = at.min(lowest - 16.0);
        lowest = at;
        svg.text(WIDTH - 122.0, at + 4.0, Anchor::Start, &format!("name s{i}"), contenders[i].name);
    }
    svg.text((WIDTH - 68.0) / 2.0, HEIGHT - 12.0, Anchor::Middle, "label", "true count");
    svg.upright_text(14.0, HEIGHT / 2.0 - 18.0, "mean relative error");
    svg.finish("Mean relative error by frequency")
}

/// Mean true count and mean relative error per octave of true counts.
fn relative_errors(findings: &Findings, contender: &super::Contender) -> Vec<(f64, f64)> {
    let mut bins = BTreeMap::<i64, (f64, f64, f64)>::new();
    for (key, truth) in findings.stream.truth().iter() {
        let error = truth.abs_diff(contender.system.estimate(key).estimate) as f64 / truth as f64;
        let (keys, logs, errors) = bins.entry(((truth as f64).log2()).floor() as i64).or_default();
        *keys += 1.0;
        *logs += (truth as f64).ln();
        *errors += error;
    }
    bins.into_values().map(|(keys, logs, errors)| ((logs / keys).exp(), errors / keys)).collect()
}

/// The loss of the network, epoch by epoch.
pub fn loss_curve(findings: &Findings) -> String {
    const WIDTH: f64 = 800.0;
    const HEIGHT: f64 = 300.0;
    let losses = findings.contenders[LEARNED].system.extras().losses;
    let extreme = |f: fn(f64, f64) -> f64, start| losses.iter().copied().fold(start, f);
    let low = extreme(f64::min, f64::INFINITY).max(1e-12);
    let high = extreme(f64::max, 0.0).max(1e-11);
    let y = LogAxis::new(low / 1.3, high * 1.3, HEIGHT - 50.0, 14.0);
    let left = 62.0;
    let right = WIDTH - 20.0;
    let across = |epoch: usize| left + (right - left) * epoch as f64 / losses.len().max(2).saturating_sub(1) as f64;
    let mut svg = Svg::new(WIDTH, HEIGHT);
    // The vertical scale is that of a frame; the horizontal one counts epochs.
    svg.frame(LogAxis::new(1.2, 1.3, left, right), y);
    for epoch in (0..losses.len()).step_by((losses.len() / 6).max(1)) {
        svg.text(across(epoch), HEIGHT - 34.0, Anchor::Middle, "tick", &(epoch + 1).to_string());
    }
    let points: Vec<(f64, f64)> = losses.iter().enumerate().map(|(epoch, &loss)| (across(epoch), y.at(loss))).collect();
    svg.path(&points, &format!("curve s{LEARNED}"));
    svg.text((left + right) / 2.0, HEIGHT - 12.0, Anchor::Middle, "label", "epoch");
    svg.upright_text(14.0, HEIGHT / 2.0 - 18.0, "loss");
    svg.finish("Loss of the network by epoch")
}

/// The largest true count.
fn largest(findings: &Findings) -> f64 {
    findings.stream.truth().top(1).first().map_or(10.0, |&(_, count)| count as f64)
}
