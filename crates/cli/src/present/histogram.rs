//! The frequency distribution in a few lines of text: both scales logarithmic.

use std::collections::BTreeMap;

use crate::show::count;

/// Lines at most.
const LINES: u32 = 12;
/// Cells of the longest bar.
const CELLS: f64 = 32.0;

/// Number of keys with counts from `low` to `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bin {
    pub low: u64,
    pub high: u64,
    pub keys: u64,
}

/// Sorts counts into bins that each reach a power of two further, or of four, eight …, so that few
/// lines do. Starts with the first that holds a key.
pub fn bins(histogram: &BTreeMap<u64, u64>) -> Vec<Bin> {
    let Some((&largest, _)) = histogram.last_key_value() else { return Vec::new() };
    let largest = largest.max(1);
    let step = (largest.ilog2() + 1).div_ceil(LINES);
    let mut bins: Vec<Bin> = (0..=largest.ilog2() / step)
        .map(|bin| {
            let low = 1 << (bin * step);
            let high = 1u64.checked_shl((bin + 1) * step).map_or(u64::MAX, |next| next - 1);
            Bin { low, high: high.min(largest), keys: 0 }
        })
        .collect();
    for (&value, &keys) in histogram {
        bins[(value.max(1).ilog2() / step) as usize].keys += keys;
    }
    let empty = bins.iter().take_while(|bin| bin.keys == 0).count();
    bins.split_off(empty)
}

/// One line a bin: range, number of keys, bar.
pub fn lines(bins: &[Bin]) -> Vec<String> {
    let label = |bin: &Bin| {
        if bin.low == bin.high { count(bin.low) } else { format!("{}–{}", count(bin.low), count(bin.high)) }
    };
    let labels: Vec<String> = bins.iter().map(label).collect();
    let wide = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let most = bins.iter().map(|bin| bin.keys).max().unwrap_or(0);
    let deep = count(most).len();
    let line = |(bin, label): (&Bin, &String)| {
        let bar = bar((bin.keys as f64).ln_1p() / (most as f64).ln_1p() * CELLS);
        format!("{label:>wide$}  {:>deep$} {bar}", count(bin.keys)).trim_end().to_owned()
    };
    bins.iter().zip(&labels).map(line).collect()
}

/// A bar of so many cells, to the eighth.
fn bar(cells: f64) -> String {
    let eighths = (cells.max(0.0) * 8.0).round() as usize;
    let tip = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + tip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_every_key_once() {
        for largest in [1u64, 2, 3, 100, 4095, 4096, 1 << 40, u64::MAX] {
            let histogram = BTreeMap::from([(1, 5), (largest, 7), (largest / 2 + 1, 1)]);
            let bins = bins(&histogram);
            assert!(bins.len() <= LINES as usize);
            assert_eq!(bins.iter().map(|bin| bin.keys).sum::<u64>(), histogram.values().sum::<u64>());
            assert!(bins.windows(2).all(|pair| pair[0].high + 1 == pair[1].low));
            assert_eq!((bins[0].low, bins.last().unwrap().high), (1, largest));
        }
        assert_eq!(bins(&BTreeMap::from([(100, 2)])), [Bin { low: 64, high: 100, keys: 2 }]);
        assert_eq!(bins(&BTreeMap::new()), []);
    }

    #[test]
    fn bars_are_logarithmic() {
        let shown = lines(&bins(&BTreeMap::from([(1, 99), (2, 9), (5, 1)])));
        assert_eq!(shown[0], format!("  1  99 {}", "█".repeat(32)));
        assert_eq!(shown[1], format!("2–3   9 {}", "█".repeat(16)));
        assert_eq!(shown[2], "4–5   1 ████▉");
        assert_eq!(bar(1.0 + 3.0 / 8.0), "█▍");
    }
}
