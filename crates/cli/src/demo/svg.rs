//! Just enough SVG for log-log plots.
//!
//! By hand rather than by a plotting library: the page's own style sheet then colours everything
//! (dark mode included), text stays text in the reader's font, and no font needs to be embedded.

use std::fmt::Write;

/// One direction of a plot: a logarithmic scale, onto pixels.
#[derive(Clone, Copy, Debug)]
pub struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// Values `low..high` onto pixels `from..to`.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self { low: low.log10(), high: high.log10().max(low.log10() + 1e-9), from, to }
    }

    /// Returns the position of a value. What is beyond the scale sits at its end.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(1e-300).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten on the scale.
    fn decades(&self) -> Vec<i32> {
        ((self.low - 1e-6).ceil() as i32..=(self.high + 1e-6).floor() as i32).collect()
    }
}

/// A drawing in the making.
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
}

/// Side of its point on which text lies.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Self {
        Self { body: String::new(), width, height }
    }

    // Writing to a string cannot fail, so the results below are let go.

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ =
            writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{text}</text>"#);
    }

    /// Text that reads upwards.
    pub fn upright_text(&mut self, x: f64, y: f64, text: &str) {
        let _ = writeln!(
            self.body,
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="middle" class="label">{text}</text>"#
        );
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(self.body, r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#);
    }

    pub fn dot(&mut self, at: (f64, f64), radius: f64, class: &str, title: &str) {
        let (x, y) = at;
        let _ = writeln!(
            self.body,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.2}" class="{class}"><title>{title}</title></circle>"#
        );
    }

    pub fn path(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(self.body, r#"<polyline points="{}" class="{class}"/>"#, points.join(" "));
    }

    /// Grid lines and numbers for both axes.
    pub fn frame(&mut self, x: LogAxis, y: LogAxis) {
        let every = |decades: &[i32]| decades.len().div_ceil(7).max(1);
        let (across, up) = (x.decades(), y.decades());
        for &power in across.iter().step_by(every(&across)) {
            let at = x.at(10f64.powi(power));
            self.line((at, y.from), (at, y.to), "grid");
            self.text(at, y.from + 16.0, Anchor::Middle, "tick", &decade(power));
        }
        for &power in up.iter().step_by(every(&up)) {
            let at = y.at(10f64.powi(power));
            self.line((x.from, at), (x.to, at), "grid");
            self.text(x.from - 6.0, at + 3.5, Anchor::End, "tick", &decade(power));
        }
    }

    pub fn finish(self, title: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>",
            self.width, self.height, self.body
        )
    }
}

fn decade(power: i32) -> String {
    match power {
        -3..=-1 => format!("{:.*}", -power as usize, 10f64.powi(power)),
        0..=2 => format!("{}", 10i64.pow(power as u32)),
        3..=5 => format!("{}K", 10i64.pow(power as u32 - 3)),
        6..=8 => format!("{}M", 10i64.pow(power as u32 - 6)),
        _ => format!("1e{power}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_logarithmic_and_never_leave_the_plot() {
        let axis = LogAxis::new(1.0, 1000.0, 0.0, 300.0);
        assert!((axis.at(10.0) - 100.0).abs() < 1e-9);
        assert_eq!((axis.at(0.0), axis.at(1e9)), (0.0, 300.0));
        assert_eq!(axis.decades(), [0, 1, 2, 3]);
        assert_eq!([-2, 0, 4, 6].map(decade), ["0.01", "1", "10K", "1M"]);
    }
}
