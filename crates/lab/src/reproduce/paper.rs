//! The figures that the paper prints, from `data/paper.csv`: each with the label of its table.

use std::sync::OnceLock;

/// Figure that the paper prints.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// Label of the table or figure in the paper's source.
    pub label: String,
    /// Name of the dataset.
    pub dataset: String,
    /// Memory budget, as in `64KB`.
    pub memory: String,
    /// Name of the method in this crate.
    pub method: String,
    /// Name of the measured figure.
    pub figure: String,
    /// Printed value.
    pub value: f64,
}

/// Returns all printed figures.
pub fn printed() -> &'static [Printed] {
    static PRINTED: OnceLock<Vec<Printed>> = OnceLock::new();
    PRINTED.get_or_init(|| {
        let lines = include_str!("../../data/paper.csv").lines().skip(1);
        lines
            .filter_map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let [label, dataset, memory, method, figure, value] = cells[..] else { return None };
                let [label, dataset, memory, method, figure] =
                    [label, dataset, memory, method, figure].map(str::to_owned);
                Some(Printed { label, dataset, memory, method, figure, value: value.parse().ok()? })
            })
            .collect()
    })
}

/// Returns one printed figure.
///
/// ```
/// use ucl_lab::reproduce::paper;
/// assert_eq!(paper::value("entropy", "retail", "64KB", "ucl-learned", "entropy_error"), Some(22.20));
/// assert_eq!(paper::value("entropy", "retail", "64KB", "exact-map", "entropy_error"), None);
/// ```
pub fn value(label: &str, dataset: &str, memory: &str, method: &str, figure: &str) -> Option<f64> {
    let fits = |printed: &&Printed| {
        printed.label == label
            && printed.dataset == dataset
            && printed.memory == memory
            && printed.method == method
            && printed.figure == figure
    };
    printed().iter().find(fits).map(|printed| printed.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let lines = include_str!("../../data/paper.csv").lines().count() - 1;
        assert_eq!(printed().len(), lines);
        let of = |label: &str| printed().iter().filter(|printed| printed.label == label).count();
        assert_eq!((of("entropy"), of("entropy_zipf"), of("tab:eae_es")), (3 * 8 * 8, 4 * 8 * 8, 3 * 8 * 4));
        assert_eq!((of("entropy_ab"), of("tab:burst")), (7, 32));
    }
}
