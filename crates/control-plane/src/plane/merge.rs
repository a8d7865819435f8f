//! Two control planes become one.
//!
//! Keys unite, counters and decoded totals add up, sealed segments stand side by side. For the
//! heavy parts it is the data planes that decide who keeps a slot
//! ([`DataPlane::merge`](ucl_data_plane::DataPlane::merge)): the other one's holders are remembered
//! until the next cut or peek tells who is still there; whoever is not, entered the sketch.
//!
//! - *Delta*: every epoch was decoded on its own side, and the totals add.
//! - *Learned*: the weights of the first stay. The window starts again, for its snapshots are of
//!   half the counters; where the other one brings columns that the network has not seen, the
//!   classic decoder answers until it is trained again.
//! - Time series: both streams are taken to run side by side and to end now, so that their last
//!   epochs are one.

use std::sync::Arc;

use ucl_data_plane::MergeError;
use ucl_equations::ColumnId;

use super::{ControlPlane, Fault, Mode};
use crate::key_state::KeyState;
use crate::registry::{KeyId, Registry};
use crate::segment::ReportError;
use crate::window::Window;

impl ControlPlane {
    /// Checks that [`ControlPlane::merge`] would succeed.
    pub fn check_merge(&self, other: &Self) -> Result<(), MergeError> {
        self.segment.config().check_merge(other.segment.config())?;
        if self.registry.format().any_length() {
            MergeError::unless_equal("first seed", &self.registry.digest_key(), &other.registry.digest_key())?;
        }
        MergeError::unless_same("decoder", &self.settings.decoder, &other.settings.decoder)
    }

    /// Knows from now on what both knew. [`ControlPlane::check_merge`] comes before, and both have
    /// just received a cut; right after, the data planes must be merged, into this one as the sink.
    /// The other one is left with its epochs decoded.
    ///
    /// ```
    /// use ucl_control_plane::{ControlPlane, Settings};
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// let device = || Ok::<_, Box<dyn std::error::Error>>((DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?));
    /// let ((mut data, mut control), (mut other_data, mut other)) = (device()?, device()?);
    /// data.insert(b"key1", 5, &mut control)?;
    /// other_data.insert(b"key1", 2, &mut other)?;
    /// data.cut(&mut control);
    /// other_data.cut(&mut other);
    /// control.check_merge(&other)?;
    /// control.merge(&mut other)?;
    /// data.merge(&other_data, &mut control)?;
    /// assert_eq!(control.view(|sink| data.peek(sink))?.estimate(b"key1").estimate, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &mut Self) -> Result<(), Fault> {
        for plane in [&mut *self, &mut *other] {
            if let Some(fault) = &plane.fault {
                return Err(fault.clone());
            }
            if !plane.segment.is_cut() || !plane.open.moved.is_empty() {
                return Err(ReportError::NotCut.into());
            }
            plane.freeze_appended()?;
            if let Mode::Delta(delta) = &mut plane.mode {
                delta.decode_pending(&plane.segment, &plane.settings.em)?;
                while delta.series.fold_last() {}
            }
        }
        let ids = Registry::to_write(&mut self.registry).merge(&other.registry);
        let id = |theirs: KeyId| ids[theirs.0 as usize];
        self.keys.grow(self.registry.len(), KeyState::default());
        for (theirs, &ours) in other.keys.iter().zip(&ids) {
            self.keys.update(ours.0 as usize, |state| {
                state.reported(theirs.entered(), theirs.hot());
                if theirs.floor() > 0 {
                    state.raise_floor(theirs.floor());
                }
            });
        }
        let known = self.segment.columns().len();
        let alone = self.segment.cumulative().clone();
        let registry = &self.registry;
        self.segment.merge(&other.segment, id, |ours| registry.identity_of(ours));
        let columns = self.segment.columns();
        self.since_cut = true;
        self.open.merge(&other.open, columns.len(), id);
        match (&mut self.mode, &other.mode) {
            (Mode::Delta(delta), Mode::Delta(more)) => {
                // The other one's column of each of ours.
                let mut theirs = vec![None; columns.len()];
                for (column, key) in (0u32..).map(ColumnId).zip(other.segment.keys()) {
                    if let Some(ours) = self.segment.column_of(id(*key)) {
                        theirs[ours.0 as usize] = Some(column);
                    }
                }
                delta.totals.merge(&alone, &more.totals, other.segment.cumulative(), columns, &theirs);
                delta.series.merge(&more.series, id);
            }
            (Mode::Learned { network, .. }, _) if columns.len() > known => network.unsettle(),
            _ => {}
        }
        if let (Some(ours), Some(theirs)) = (&mut self.exports, &other.exports) {
            ours.merge(theirs, &ids, self.registry.len());
        }
        self.window = Window::new(self.window.length());
        Arc::make_mut(&mut self.past).merge(&other.past, &ids);
        self.cuts += other.cuts;
        self.decoding += other.decoding;
        Ok(())
    }
}
