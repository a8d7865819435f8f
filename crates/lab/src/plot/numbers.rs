//! Sizes, figures and ticks as text.

/// Returns a size as text, as in `64KB`.
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

/// Returns a figure with three significant digits, as in `0.0123`, `1.23`, `1,235`.
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
