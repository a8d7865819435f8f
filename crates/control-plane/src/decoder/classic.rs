//! Decoders that need no training.

use ucl_equations::{ColumnId, Rows, Workspace, em, lsmr, lsqr, map, omp};

use super::{DecodeError, Decoder, DecoderKind, LinearSystem};

/// A decoder that sees one set of counters and nothing else.
///
/// ```
/// use ucl_control_plane::{DecoderKind, decoder::classic::Classic};
/// assert!(Classic::new(DecoderKind::Lsmr, Default::default()).is_some());
/// assert!(Classic::new(DecoderKind::Learned, Default::default()).is_none());
/// ```
pub struct Classic {
    kind: DecoderKind,
    workspace: Workspace,
    em: em::Options,
}

impl Classic {
    /// The classic decoder of a kind; `None` for those that are not classic.
    pub fn new(kind: DecoderKind, em: em::Options) -> Option<Self> {
        let classic = !kind.is_trained() && kind != DecoderKind::Delta;
        classic.then(|| Self { kind, workspace: Workspace::default(), em })
    }
}

impl Decoder for Classic {
    fn kind(&self) -> DecoderKind {
        self.kind
    }

    fn decode(&mut self, system: &LinearSystem<'_>) -> Result<Vec<f64>, DecodeError> {
        let columns = system.columns;
        let y = system.counters;
        let mut x = vec![0.0; columns.len()];
        match self.kind {
            DecoderKind::Cm => count_min(system, &mut x),
            DecoderKind::Map => {
                let rows = Rows { rows: system.geometry.rows.into(), width: system.geometry.width as usize };
                map::map(columns, rows, y, &mut x)?;
            }
            DecoderKind::Lsqr => {
                lsqr::lsqr(columns, y, &lsqr::Options::default(), &mut x)?;
            }
            DecoderKind::Lsmr => {
                lsmr::lsmr(columns, y, &lsmr::Options::default(), &mut x)?;
            }
            DecoderKind::Omp => {
                omp::omp(columns, y, &omp::Options::default(), &mut x)?;
            }
            DecoderKind::Em => {
                // Where counters outnumber keys the solution has many zeros, and EM comes near
                // those slowly. (Peeling first is exact and at once, but not as robust: a counter
                // that a lost key shares goes whole to a known one. Kosarak, 64KB, one snapshot:
                // AAE 0.086 that way, 0.0015 this way.)
                let longer = if columns.counters() > columns.len() { 4 } else { 1 };
                let options = em::Options { iterations: self.em.iterations * longer, ..self.em };
                x = system.em(None, &options, &mut self.workspace)?;
            }
            DecoderKind::Learned | DecoderKind::Refined | DecoderKind::Delta => unreachable!("not classic"),
        }
        Ok(x)
    }
}

/// The minimum of a key's counters (Cormode and Muthukrishnan 2005); with signs, their median
/// (Charikar et al. 2002).
fn count_min(system: &LinearSystem<'_>, x: &mut [f64]) {
    let mut values = Vec::new();
    for (id, x) in (0u32..).map(ColumnId).zip(x) {
        let indices = system.columns.indices(id).iter().enumerate();
        values.clear();
        values.extend(
            indices.map(|(e, &at)| system.counters[at as usize] * f64::from(system.columns.coefficient(id, e))),
        );
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        *x = match (system.geometry.signed, values.len() % 2) {
            (false, _) => values[0],
            (true, 1) => values[middle],
            (true, _) => (values[middle - 1] + values[middle]) / 2.0,
        };
    }
}
