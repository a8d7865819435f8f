//! From decoded messages back to reports, so that a control plane needs not know how they came.

use ucl_data_plane::{Config, Counters, Cut, OutOfMemory, Report, ReportSink};

use crate::message::EpochReports;

impl EpochReports {
    /// Hands every report to `sink`, in the order of the data plane: keys, carries, slots, cut. (Keys and carries
    /// alternate there; what they add up to is the same.)
    ///
    /// # Errors
    /// If there is no memory for the counters of a cut. Then the cut was not handed on.
    pub fn replay(&self, segment: &Config, sink: &mut impl ReportSink) -> Result<(), OutOfMemory> {
        for (key, flags) in self.keys.iter() {
            sink.report(Report::Key { key, flags });
        }
        for &(at, times) in &self.carries {
            sink.report(Report::Carry { at, times });
        }
        for change in self.slots.iter() {
            sink.report(Report::Slot { slot: change.slot, holder: change.holder, count: change.count });
        }
        if let Some(cut) = &self.cut {
            let shape = &segment.shape;
            let counters = Counters::from_remainders(&cut.counters, shape.counter_bits, shape.signed())?;
            sink.report(Report::Cut(Cut { totals: cut.totals, counters: &counters, reset: cut.reset }));
        }
        Ok(())
    }
}
