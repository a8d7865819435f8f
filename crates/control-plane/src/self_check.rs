//! How far to trust the estimates, when nobody knows the truth.
//!
//! Decode without the last row of counters, and see how well the estimates predict that row
//! ([`ucl_equations::left_out`]): the share of the row's weight that they put into the wrong
//! counters. It needs no ground truth, and it grows and shrinks with the true error, which it is
//! not: errors of keys that share a counter cancel in it, and an estimate from one row less is
//! worse than the one that answers. `docs/self-check.md` has both side by side.
//!
//! - Classic decoders are asked again, once, when [`QueryView::self_check`] is called: it costs one
//!   more decoding.
//! - Delta checks one epoch of every block as it goes, the one of most weight, and reports the
//!   share over all of them. With the rule `generations`, whose epochs end by load, it leaves out
//!   an eighth of the last row: these epochs need the rest.
//! - The network would have to be trained again, so its twin answers
//!   ([`judge`](crate::decoder::judge)): as of the last training, and only where the fallback is
//!   [`Fallback::WhenBetter`](crate::Fallback::WhenBetter).

use ucl_data_plane::Geometry;
use ucl_equations::{Columns, Rows, em, left_out};

use crate::decoder::classic::Classic;
use crate::decoder::{DecodeError, Decoder, DecoderKind, LinearSystem};
use crate::registry::KeyId;
use crate::view::QueryView;

/// The outcome of [`QueryView::self_check`].
///
/// ```
/// use ucl_control_plane::{DecoderKind, SelfCheck};
/// let check = SelfCheck { residual: 0.031, decoder: DecoderKind::Em };
/// assert_eq!(check.to_string(), "about 3.1% off (good below 1%)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfCheck {
    /// The share of a left-out row's weight that lands in the wrong counters: 0 is perfect.
    pub residual: f64,
    /// The decoder that was checked.
    pub decoder: DecoderKind,
}

impl std::fmt::Display for SelfCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.residual;
        let digits = if percent < 1.0 { 2 } else { 1 };
        write!(f, "about {percent:.digits$}% off (good below 1%)")
    }
}

/// What a view keeps for its check.
#[derive(Clone, Debug)]
pub(crate) enum Check {
    /// The decoder has told already; `None` if it cannot.
    Told(Option<f64>),
    /// Input of a second decoding: the key of each column, its least count, and EM's options.
    Ask { keys: Vec<KeyId>, known: Vec<f64>, em: em::Options },
}

impl QueryView {
    /// Measures how well the estimates predict counters that they have not seen; `None` where that
    /// cannot be told (a sketch of one row, no counters used yet, a network without its twin). See
    /// the [module](crate::self_check).
    ///
    /// ```
    /// use ucl_control_plane::{ControlPlane, Settings};
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// # let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
    /// for i in 0..90_000u64 {
    ///     data.insert(&((i * i % 50_021) as u32).to_le_bytes(), 1, &mut control)?;
    /// }
    /// let view = control.view(|sink| data.peek(sink))?;
    /// let check = view.self_check()?.unwrap();
    /// assert!(check.residual > 0.0 && check.residual < 0.5, "{check}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn self_check(&self) -> Result<Option<SelfCheck>, DecodeError> {
        let decoder = self.answered_by();
        let residual = match self.check() {
            Check::Told(residual) => *residual,
            Check::Ask { keys, known, em } => {
                let Some(mut classic) = Classic::new(decoder, *em) else { return Ok(None) };
                // The mapping is pure, so the columns need not be kept.
                let (segment, counters) = self.segment_at_cut();
                let mut again = segment.empty_like();
                keys.iter().for_each(|&key| {
                    again.ensure_column(key, self.registry().identity_of(key));
                });
                let y: Vec<f64> = counters.to_vec().into_iter().map(|y| y as f64).collect();
                let geometry = segment.config().shape.geometry();
                residual(again.columns(), geometry, &y, |columns, geometry, counters| {
                    classic.decode(&LinearSystem { columns, geometry, counters, known })
                })?
            }
        };
        Ok(residual.map(|residual| SelfCheck { residual, decoder }))
    }
}

/// The relative residual on the last row of an estimate that has not seen it; `None` if there is no
/// row to spare or nothing in it.
pub(crate) fn residual(
    columns: &Columns,
    geometry: Geometry,
    y: &[f64],
    mut decode: impl FnMut(&Columns, Geometry, &[f64]) -> Result<Vec<f64>, DecodeError>,
) -> Result<Option<f64>, DecodeError> {
    let rows = Rows { rows: geometry.rows.into(), width: geometry.width as usize };
    let last = rows.rows - 1;
    if last == 0 || columns.is_empty() || y[rows.row(last)].iter().all(|&y| y == 0.0) {
        return Ok(None);
    }
    let degree = geometry.degree - geometry.per_row();
    let fewer = Geometry { rows: last as u16, degree, ..geometry };
    left_out::residual(columns, rows, y, Some(&[last]), |part| decode(part.columns, fewer, part.y)).map(Some)
}
