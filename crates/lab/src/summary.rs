//! Mean and spread of results over several seeds.

use crate::row::Row;

/// Mean and spread of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean of the values.
    pub mean: f64,
    /// Sample standard deviation of the values (divided by `n - 1`); 0 for a single value.
    pub deviation: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

impl Spread {
    /// Returns the mean and spread of several values; `None` if there are none.
    ///
    /// ```
    /// use ucl_lab::Spread;
    /// let spread = Spread::of([1.0, 2.0, 6.0]).unwrap();
    /// assert_eq!((spread.mean, spread.least, spread.most), (3.0, 1.0, 6.0));
    /// assert!((spread.deviation - 7f64.sqrt()).abs() < 1e-12);
    /// assert_eq!(Spread::of([]), None);
    /// ```
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let figures: Vec<f64> = figures.into_iter().collect();
        let n = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / n;
        let squares: f64 = figures.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = if figures.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        let least = figures.iter().copied().reduce(f64::min)?;
        let most = figures.iter().copied().reduce(f64::max)?;
        Some(Self { mean, deviation, least, most })
    }
}

/// Rows of all seeds of one method on one stream with one budget.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    rows: Vec<&'a Row>,
}

impl<'a> Summary<'a> {
    /// Groups rows by stream, budget and method, in the order of their first occurrence.
    pub fn of(rows: &'a [Row]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in rows {
            let same = |group: &&mut Self| {
                let first = group.first();
                first.method == row.method && first.input == row.input && first.memory_budget == row.memory_budget
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.rows.push(row),
                None => groups.push(Self { rows: vec![row] }),
            }
        }
        groups
    }

    /// Returns the row of the first seed, for properties that do not depend on the seed.
    pub fn first(&self) -> &'a Row {
        self.rows[0]
    }

    /// Number of seeds.
    pub fn seeds(&self) -> usize {
        self.rows.len()
    }

    /// Returns the mean and spread of a figure over the rows that have it.
    pub fn spread(&self, figure: impl Fn(&Row) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rows.iter().filter_map(|row| figure(row)))
    }

    /// Returns the sum of a number over the rows that have it.
    pub fn total(&self, number: impl Fn(&Row) -> Option<u64>) -> u64 {
        self.rows.iter().filter_map(|row| number(row)).sum()
    }

    /// Total bound violations over all seeds.
    pub fn violations(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.bound_violations).reduce(|a, b| a + b)
    }

    /// Returns the first error.
    pub fn error(&self) -> Option<&'a str> {
        self.rows.iter().find_map(|row| row.error.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str, memory_budget: usize, seed: u64, aae: Option<f64>) -> Row {
        let error = aae.is_none().then(|| format!("seed {seed} failed"));
        Row { method: method.into(), memory_budget, seed, aae, bound_violations: Some(seed), error, ..Row::default() }
    }

    #[test]
    fn seeds_are_drawn_together_and_nothing_else_is() {
        let rows = [
            row("cm", 1, 0, Some(1.0)),
            row("cm", 1, 1, Some(3.0)),
            row("cs", 1, 0, Some(5.0)),
            row("cm", 2, 0, Some(9.0)),
            row("cm", 1, 2, None),
        ];
        let summaries = Summary::of(&rows);
        let means: Vec<_> = summaries.iter().map(|s| s.spread(|row| row.aae).map(|spread| spread.mean)).collect();
        assert_eq!(means, [Some(2.0), Some(5.0), Some(9.0)]);
        assert_eq!(summaries[0].seeds(), 3);
        assert_eq!(summaries[0].violations(), Some(3));
        assert_eq!(summaries[0].error(), Some("seed 2 failed"));
        assert_eq!(summaries[1].error(), None);
    }
}
