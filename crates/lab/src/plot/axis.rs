//! Axes: positions of values, and choice of ticks.

use super::numbers::{decades, tick};

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear scale from 0.
    Linear,
    /// Logarithmic scale.
    Log,
}

/// Axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Label with the unit.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Values and texts of the ticks; chosen automatically if empty.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Creates a linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, ticks: Vec::new() }
    }

    /// Creates a logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Log, ticks: Vec::new() }
    }

    /// Returns the axis with these ticks.
    pub fn with_ticks(self, ticks: impl IntoIterator<Item = (f64, String)>) -> Self {
        Self { ticks: ticks.into_iter().collect(), ..self }
    }

    /// Fits the axis to figures. `snug` ends at the figures themselves, otherwise at round numbers.
    pub(super) fn fit(&self, figures: impl Iterator<Item = f64>, snug: bool) -> Fitted<'_> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for figure in figures.filter(|figure| figure.is_finite() && (self.scale == Scale::Linear || *figure > 0.0)) {
            (low, high) = (low.min(figure), high.max(figure));
        }
        let (low, high) = match self.scale {
            _ if high < low => (0.1, 1.0),
            Scale::Linear if snug => (low, if high > low { high } else { low + 1.0 }),
            Scale::Linear => {
                let top = if high > 0.0 { high } else { 1.0 };
                let step = step(top);
                (low.min(0.0), (top / step).ceil() * step)
            }
            Scale::Log if snug => (low, if high > low { high } else { low * 10.0 }),
            Scale::Log => {
                let floor = 10f64.powf((low.log10() - 0.05).floor());
                (floor, 10f64.powf((high.log10() - 1e-9).ceil()).max(floor * 10.0))
            }
        };
        Fitted { axis: self, low, high }
    }
}

/// 1, 2 or 5 times a power of ten, so that about five steps lead from 0 to `top`.
fn step(top: f64) -> f64 {
    let rough = top / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|&step| step >= rough * 0.999).unwrap_or(rough)
}

/// An axis whose ends are known.
pub(super) struct Fitted<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
}

impl Fitted<'_> {
    /// Where a figure is, from 0 to 1.
    pub(super) fn share(&self, figure: f64) -> f64 {
        let share = match self.axis.scale {
            Scale::Linear => (figure - self.low) / (self.high - self.low),
            Scale::Log => (figure.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        if !self.axis.ticks.is_empty() {
            return self.axis.ticks.clone();
        }
        let inside = |x: &f64| *x >= self.low * 0.999_999 && *x <= self.high * 1.000_001;
        match self.axis.scale {
            Scale::Linear => {
                let step = step(self.high - self.low.min(0.0));
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last).map(|n| n as f64 * step).map(|x| (x, plain(x))).collect()
            }
            Scale::Log => {
                let (down, up) = (10f64.powf(self.low.log10().floor()), 10f64.powf(self.high.log10().ceil()));
                let whole = decades(down, up);
                let few = whole.iter().filter(|x| inside(x)).count() < 3;
                let parts: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let all = whole.iter().flat_map(|&x| parts.iter().map(move |part| x * part));
                all.filter(inside).map(|x| (x, tick(x))).collect()
            }
        }
    }
}

/// `0.25`, `30`, `20000`: a tick of a linear axis.
fn plain(x: f64) -> String {
    format!("{}", (x * 1e9).round() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_end_at_round_numbers() {
        let axis = Axis::linear("s");
        let fitted = axis.fit([3.0, 47.0].into_iter(), false);
        assert_eq!((fitted.low, fitted.high), (0.0, 50.0));
        let ticks: Vec<String> = fitted.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(fitted.share(25.0), 0.5);
    }

    #[test]
    fn logarithmic_axes_leave_out_what_has_no_place() {
        let axis = Axis::log("B");
        let fitted = axis.fit([0.0, 0.02, 3.0, f64::NAN].into_iter(), false);
        assert!((fitted.low - 0.01).abs() < 1e-12 && (fitted.high - 10.0).abs() < 1e-9);
        assert_eq!((fitted.share(0.0), fitted.share(1e9)), (0.0, 1.0));
        assert_eq!(fitted.ticks().len(), 4);
        let narrow = axis.fit([2.0, 60.0].into_iter(), true);
        let ticks: Vec<String> = narrow.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks, ["2", "5", "10", "20", "50"], "few powers of ten: 2 and 5 help");
    }

    #[test]
    fn nothing_to_fit_is_no_reason_to_fail() {
        for axis in [Axis::log(""), Axis::linear("")] {
            let fitted = axis.fit(std::iter::empty(), false);
            assert!(fitted.share(0.5).is_finite() && !fitted.ticks().is_empty());
        }
    }
}
