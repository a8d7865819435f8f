//! OMP, orthogonal matching pursuit (Pati, Rezaiifar & Krishnaprasad 1993; Tropp & Gilbert 2007):
//! the sparse decoder of SeqSketch and HistSketch.
//!
//! Start with the residual `r = y` and no atoms. Take the column that correlates best with what is
//! left, `k = argmax |⟨a_k, r⟩| / ‖a_k‖` (the first, where several do), add it to the atoms, fit
//! `y` by all atoms in the least-squares sense, and let `r` be what that fit leaves. Every other
//! column is estimated as 0, so OMP suits a few heavy keys above nothing; on the long tail of a
//! real stream it explains heavy counters by the few keys it may name.
//!
//! **Stopping.** After [`atoms`](Options::atoms) (one per ten keys by default, as the paper's
//! experiments have it); when `‖r‖₂ <= tolerance · ‖y‖₂`; or when no column is left that correlates
//! with `r` and is independent of the atoms.
//!
//! **Cost.** The fit uses a Cholesky factor of the atoms' Gram matrix that grows by one row per
//! atom: `k²` operations for atom `k`. Columns have a handful of entries, so correlations cost
//! `degree` operations a column, where a dense implementation pays for every counter.
//!
//! ```
//! use ucl_equations::{Columns, omp};
//!
//! let mut columns = Columns::ones(6, 2);
//! columns.push(&[0, 3]);
//! columns.push(&[1, 3]);
//! columns.push(&[2, 5]);
//! let mut x = [0.0; 3];
//! let options = omp::Options { atoms: Some(2), ..Default::default() };
//! let info = omp::omp(&columns, &[9.0, 0.0, 4.0, 9.0, 0.0, 4.0], &options, &mut x)?;
//! assert_eq!(info.iterations, 2);
//! assert!((x[0] - 9.0).abs() < 1e-12 && x[1] == 0.0 && (x[2] - 4.0).abs() < 1e-12);
//! # Ok::<(), ucl_equations::Error>(())
//! ```

use crate::cholesky::Cholesky;
use crate::columns::{ColumnId, Columns};
use crate::dense;
use crate::error::{Error, check_finite, check_len, check_option};
use crate::info::{Info, Stop};
use crate::products::gather_with;

/// Share of a column that must be new for it to count as independent of the atoms.
const INDEPENDENT: f64 = 1e-12;

/// Stopping rules of OMP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Largest number of atoms. The default is one per ten columns, rounded up.
    pub atoms: Option<usize>,
    /// Tolerance: OMP stops when `‖r‖₂ <= tolerance · ‖y‖₂`. With 0 it chooses all atoms.
    pub tolerance: f64,
}

/// Estimates all columns: writes the fitted value of each atom to `out`, and 0 elsewhere.
///
/// # Errors
/// If a slice has the wrong length, if a number is not finite, or if an option is impossible.
pub fn omp(columns: &Columns, y: &[f64], options: &Options, out: &mut [f64]) -> Result<Info, Error> {
    check_len("y", columns.counters(), y.len())?;
    check_len("out", columns.len(), out.len())?;
    check_finite("y", y)?;
    columns.check_finite()?;
    check_option("tolerance", options.tolerance)?;
    out.fill(0.0);
    let limit = options.atoms.unwrap_or(columns.len().div_ceil(10));
    let mut pursuit = Pursuit::new(columns, y);
    let stop = pursuit.run(limit, options.tolerance);
    for (atom, &value) in pursuit.atoms.iter().zip(&pursuit.fit) {
        out[atom.0 as usize] = value;
    }
    Ok(Info::of(columns, out, y, pursuit.atoms.len(), stop))
}

struct Pursuit<'a> {
    columns: &'a Columns,
    y: &'a [f64],
    /// `1 / ‖a‖` of every column.
    inverse_norms: Vec<f64>,
    correlations: Vec<f64>,
    residual: Vec<f64>,
    atoms: Vec<ColumnId>,
    chosen: Vec<bool>,
    factor: Cholesky,
    /// `L⁻¹ A_Sᵀ y`, which grows with the factor.
    z: Vec<f64>,
    /// The atoms' values.
    fit: Vec<f64>,
    /// Which atoms touch a counter, as (atom, next) links from `heads`: only they correlate with a
    /// new atom there.
    heads: Vec<u32>,
    links: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

impl<'a> Pursuit<'a> {
    fn new(columns: &'a Columns, y: &'a [f64]) -> Self {
        let ids = (0..columns.len() as u32).map(ColumnId);
        let inverse = |id| {
            let squared: f64 = columns.squared_norm(id);
            if squared > 0.0 { 1.0 / squared.sqrt() } else { 0.0 }
        };
        Self {
            columns,
            y,
            inverse_norms: ids.map(inverse).collect(),
            correlations: vec![0.0; columns.len()],
            residual: y.to_vec(),
            atoms: Vec::new(),
            chosen: vec![false; columns.len()],
            factor: Cholesky::default(),
            z: Vec::new(),
            fit: Vec::new(),
            heads: vec![NONE; columns.counters()],
            links: Vec::new(),
        }
    }

    fn run(&mut self, limit: usize, tolerance: f64) -> Stop {
        let mass = dense::norm(self.y);
        if mass == 0.0 || self.columns.is_empty() {
            return Stop::Trivial;
        }
        while self.atoms.len() < limit {
            let Some((atom, correlation)) = self.best() else { return Stop::Exhausted };
            if correlation <= f64::EPSILON * mass || !self.add(atom) {
                return Stop::Exhausted;
            }
            self.refit();
            if dense::norm(&self.residual) <= tolerance * mass {
                return Stop::Solved;
            }
        }
        Stop::Limit
    }

    /// The column that correlates best with the residual, the first of several.
    fn best(&mut self) -> Option<(ColumnId, f64)> {
        gather_with(self.columns, &self.residual, &mut self.correlations, |sum, _| sum);
        let mut best = None;
        let mut most = 0.0;
        for (k, (correlation, inverse)) in self.correlations.iter().zip(&self.inverse_norms).enumerate() {
            let size = (correlation * inverse).abs();
            if size > most && !self.chosen[k] {
                (best, most) = (Some(ColumnId(k as u32)), size);
            }
        }
        best.map(|id| (id, most))
    }

    /// Adds an atom to the factor; `false` if it is dependent on the others.
    fn add(&mut self, atom: ColumnId) -> bool {
        let mut gram = vec![0.0; self.atoms.len()];
        let indices = self.columns.indices(atom);
        for &counter in indices {
            let mut link = self.heads[counter as usize];
            while link != NONE {
                let (other, next) = self.links[link as usize];
                gram[other as usize] = self.columns.inner(self.atoms[other as usize], atom);
                link = next;
            }
        }
        if !self.factor.push(&gram, self.columns.squared_norm(atom), INDEPENDENT) {
            return false;
        }
        for &counter in indices {
            let head = &mut self.heads[counter as usize];
            self.links.push((self.atoms.len() as u32, *head));
            *head = self.links.len() as u32 - 1;
        }
        let along_y: f64 = (0..indices.len())
            .map(|entry| f64::from(self.columns.coefficient(atom, entry)) * self.y[indices[entry] as usize])
            .sum();
        self.z.push(self.factor.forward(&self.z, along_y));
        self.atoms.push(atom);
        self.chosen[atom.0 as usize] = true;
        true
    }

    /// Fits `y` by the atoms, and leaves what the fit does not explain.
    fn refit(&mut self) {
        self.fit.clone_from(&self.z);
        self.factor.backward(&mut self.fit);
        self.residual.copy_from_slice(self.y);
        for (&atom, value) in self.atoms.iter().zip(&self.fit) {
            for (entry, &counter) in self.columns.indices(atom).iter().enumerate() {
                self.residual[counter as usize] -= f64::from(self.columns.coefficient(atom, entry)) * value;
            }
        }
    }
}
