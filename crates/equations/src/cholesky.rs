//! A Cholesky factor that grows by one row and column at a time.

use crate::dense;

/// The lower triangle `L` of `G = L Lᵀ`, rows one after another without gaps: row `i` has `i + 1`
/// entries. Both triangular solves then run along rows, forwards as dot products and backwards as
/// additions of multiples.
#[derive(Debug, Default)]
pub(crate) struct Cholesky {
    packed: Vec<f64>,
    len: usize,
}

/// Returns the index at which row `i` starts.
fn start(i: usize) -> usize {
    i * (i + 1) / 2
}

impl Cholesky {
    /// Adds the row `(g, diagonal)` to `G`; refused (`false`) if the new row is dependent on those
    /// before, that is if less than `tolerance · diagonal` of it is new.
    pub fn push(&mut self, g: &[f64], diagonal: f64, tolerance: f64) -> bool {
        let end = self.packed.len();
        self.packed.extend_from_slice(g);
        let (rows, row) = self.packed.split_at_mut(end);
        // Zeros before the first atom that shares a counter stay zeros.
        let first = row.iter().position(|&v| v != 0.0).unwrap_or(row.len());
        for i in first..row.len() {
            let (known, rest) = row.split_at_mut(i);
            let factor = &rows[start(i)..start(i + 1)];
            rest[0] = (rest[0] - dense::dot(&factor[first..i], &known[first..])) / factor[i];
        }
        let pivot = diagonal - dense::sum_of_squares(row);
        if pivot <= tolerance * diagonal {
            self.packed.truncate(end);
            return false;
        }
        self.packed.push(pivot.sqrt());
        self.len += 1;
        true
    }

    /// The next entry of `z` in `L z = b`, given those before: the row pushed last against them.
    pub fn forward(&self, z: &[f64], b: f64) -> f64 {
        let row = &self.packed[start(self.len - 1)..];
        (b - dense::dot(&row[..z.len()], z)) / row[z.len()]
    }

    /// Solves `Lᵀ t = z` in place.
    pub fn backward(&self, z: &mut [f64]) {
        for i in (0..self.len).rev() {
            let row = &self.packed[start(i)..start(i + 1)];
            let (before, rest) = z.split_at_mut(i);
            rest[0] /= row[i];
            dense::add_scaled(before, -rest[0], &row[..i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_small_system() {
        // G = [[4,2,0],[2,5,1],[0,1,3]], G t = b with t = (1,2,3).
        let mut factor = Cholesky::default();
        let mut z = Vec::new();
        for (g, diagonal, b) in [(vec![], 4.0, 8.0), (vec![2.0], 5.0, 15.0), (vec![0.0, 1.0], 3.0, 11.0)] {
            assert!(factor.push(&g, diagonal, 1e-12));
            z.push(factor.forward(&z, b));
        }
        factor.backward(&mut z);
        for (found, exact) in z.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - exact).abs() < 1e-14);
        }
    }

    #[test]
    fn refuses_a_dependent_row() {
        let mut factor = Cholesky::default();
        assert!(factor.push(&[], 4.0, 1e-12));
        assert!(!factor.push(&[4.0], 4.0, 1e-12));
        assert!(factor.push(&[2.0], 5.0, 1e-12));
    }
}
