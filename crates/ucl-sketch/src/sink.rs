//! One type for all receivers of reports.

use ucl_data_plane::{Report, ReportSink};

/// Any receiver of reports: a control plane, a pipeline, an encoder.
///
/// The planes are compiled for each type of receiver: seven times the insert paths of all sizes of
/// keys and all heavy parts. Through this type they are compiled once. A report costs a virtual
/// call more, and there are far fewer reports than items.
pub(crate) struct Sink<'a>(pub &'a mut dyn ReportSink);

impl ReportSink for Sink<'_> {
    #[inline]
    fn report(&mut self, report: Report<'_>) {
        self.0.report(report);
    }
}
