//! What a data plane says of itself when it is asked, and nothing changes by it.

use ucl_data_plane::{CutTotals, Report, ReportSink};

/// Takes what a data plane's `peek` reports.
///
/// ```
/// use ucl_control_plane::{ControlPlane, Peek, Settings};
/// use ucl_data_plane::DataPlane;
/// # use ucl_data_plane::{Config, KeyFormat, ReportRule, Shape};
/// # let shape = Shape::PAPER_64KB;
/// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::New, seed: 1.into() };
/// let (data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
/// let view = control.view(|peek: &mut Peek| data.peek(peek))?;
/// assert_eq!(view.items(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Peek {
    /// Slots that changed since the last cut: their number, holder and count.
    pub(crate) slots: Vec<(u32, Option<Vec<u8>>, u64)>,
    /// The remainders.
    pub(crate) counters: Vec<i64>,
    pub(crate) totals: CutTotals,
}

impl ReportSink for Peek {
    fn report(&mut self, report: Report<'_>) {
        match report {
            Report::Slot { slot, holder, count } => self.slots.push((slot, holder.map(<[u8]>::to_vec), count)),
            Report::Cut(cut) => {
                self.counters = cut.counters.to_vec();
                self.totals = cut.totals;
            }
            Report::Key { .. } | Report::Carry { .. } | Report::Open { .. } => {
                debug_assert!(false, "a peek brings slots and counters only");
            }
        }
    }
}
