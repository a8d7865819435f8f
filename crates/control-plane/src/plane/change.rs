//! The data plane goes over to another configuration, or to a new cycle.

use std::sync::Arc;

use ucl_data_plane::{Config, Opening};

use super::{ControlPlane, Fault, Mode, SettingsError};
use crate::appended::Appended;
use crate::delta::{Delta, Sums};
use crate::exports::{Exports, reported_slots};
use crate::key_state::{KeyState, RaisedFloors};
use crate::open_epoch::OpenEpoch;
use crate::sealed::{End, Past, Sealed};
use crate::segment::{ReportError, Segment};
use crate::view::upper_bounds;
use crate::window::Window;

impl ControlPlane {
    /// Checks that the decoder could go on with a data plane of this configuration. Ask before
    /// [`DataPlane::change`](ucl_data_plane::DataPlane::change).
    pub fn check_change(&self, config: &Config) -> Result<(), SettingsError> {
        Mode::new(&self.settings, config.shape.geometry())?;
        // Whether there is room: once the data plane has changed it is too late for an error.
        let _room = (Segment::new(*config)?, OpenEpoch::new(reported_slots(config))?);
        Ok(())
    }

    /// The sealed segments, oldest first.
    pub fn sealed(&self) -> impl Iterator<Item = &Segment> {
        self.past.sealed.iter().chain(self.appended.as_slice()).map(|sealed| &*sealed.segment)
    }

    /// Drops the oldest sealed segment: answers and bounds count from then on what came after it
    /// ([`QueryView::since`](crate::QueryView::since)). Whether there was one to drop.
    ///
    /// ```
    /// use ucl_control_plane::{ControlPlane, Settings};
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// # let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// # let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, Settings::default())?);
    /// data.insert(b"key1", 5, &mut control)?;
    /// data.change(Config { seed: 2.into(), ..config }, &mut control)?;
    /// data.insert(b"key1", 2, &mut control)?;
    /// assert_eq!(control.view(|sink| data.peek(sink))?.estimate(b"key1").estimate, 7);
    /// assert!(control.drop_oldest_segment()?);
    /// let view = control.view(|sink| data.peek(sink))?;
    /// assert_eq!((view.since(), view.estimate(b"key1").estimate), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the control plane has failed before.
    pub fn drop_oldest_segment(&mut self) -> Result<bool, Fault> {
        self.freeze_appended()?;
        Ok(Arc::make_mut(&mut self.past).drop_oldest())
    }

    pub(super) fn accept_open(&mut self, config: &Config, opening: Opening) -> Result<(), Fault> {
        let format = self.registry.format();
        if format != config.keys {
            return Err(ReportError::Key { want: format.slot_bytes(), got: config.keys.slot_bytes() }.into());
        }
        match opening {
            Opening::Change => self.change(config),
            Opening::Reset { keep_weights } => self.start_cycle(config, keep_weights),
        }
    }

    fn change(&mut self, config: &Config) -> Result<(), Fault> {
        if !self.segment.is_cut() {
            return Err(ReportError::NotCut.into());
        }
        let sealed = self.seal(config)?;
        let sealed = self.appended.push(sealed, &self.segment, &self.settings);
        if !sealed.is_empty() {
            self.end_appending(sealed, config)?;
        }
        self.open.open_segment(reported_slots(config)).map_err(ReportError::from)?;
        match &mut self.exports {
            Some(exports) => exports.restart_table(config),
            None => self.exports = Exports::new(config),
        }
        self.open.give_columns(0.., &self.registry, &mut self.segment);
        (0..self.keys.len()).for_each(|key| self.keys.update(key, KeyState::left_behind));
        Ok(())
    }

    /// Decodes and closes the open segment, and opens another.
    fn seal(&mut self, config: &Config) -> Result<Sealed, Fault> {
        let sums = if let Mode::Delta(delta) = &mut self.mode {
            delta.decode_pending(&self.segment, &self.settings.em)?;
            delta.totals.restart().into_sums()
        } else {
            let decoded = self.decode_closed_epochs()?;
            let cumulative = self.segment.cumulative();
            let uppers = upper_bounds(&self.segment, |at| cumulative.get(at), self.segment.sketch_weight());
            Sums::of(decoded, uppers)
        };
        let OpenEpoch { items, weight, smallest_weight, .. } = self.open;
        // Exact counts go on like those that the heavy part holds.
        let held = self.open.heavy.iter().chain(self.exports.iter().flat_map(Exports::iter)).collect();
        let end = End { stream: 0, through: self.past.streams, items, weight, held };
        let open = Segment::new(*config).map_err(ReportError::from)?;
        let segment = std::mem::replace(&mut self.segment, open);
        Ok(Sealed::new(segment, &sums, &self.keys, smallest_weight, end))
    }

    /// Decodes the appended segments together with the open one, gives them their estimates, and
    /// returns those of the open one.
    fn decode_closed_epochs(&mut self) -> Result<Vec<f64>, Fault> {
        let cumulative = self.segment.cumulative().to_vec();
        let decoded = self.decode_snapshot(&cumulative, &RaisedFloors::default(), self.open.smallest_weight)?;
        self.appended = decoded.appended;
        Ok(decoded.estimates)
    }

    /// Appended segments are sealed from now on. The counters of the open one go on alone, and so
    /// the window starts again.
    pub(super) fn freeze_appended(&mut self) -> Result<(), Fault> {
        if self.appended.is_empty() {
            return Ok(());
        }
        self.decode_closed_epochs()?;
        let sealed = self.appended.take();
        let config = *self.segment.config();
        self.end_appending(sealed, &config)
    }

    /// These segments are decoded no more, and what comes is of another system than what the
    /// decoder has seen.
    fn end_appending(&mut self, sealed: Vec<Arc<Sealed>>, config: &Config) -> Result<(), Fault> {
        Arc::make_mut(&mut self.past).sealed.extend(sealed);
        self.window = Window::new(self.window.length());
        Ok(self.restart_network(config, true)?)
    }

    /// The network's columns stand for other keys. Its weights stay, if they are to and if the
    /// counters have the same shape.
    pub(super) fn restart_network(&mut self, config: &Config, keep_weights: bool) -> Result<(), SettingsError> {
        let geometry = config.shape.geometry();
        let mode = match &mut self.mode {
            Mode::Learned { network, .. } if keep_weights && network.fits(geometry) => {
                network.unsettle();
                return Ok(());
            }
            Mode::Learned { network, .. } => {
                let generation = network.generation();
                match Mode::new(&self.settings, geometry)? {
                    Mode::Learned { network, fallback } => {
                        Mode::Learned { network: Box::new(network.succeeding(generation)), fallback }
                    }
                    other => other,
                }
            }
            Mode::Classic(_) | Mode::Delta(_) => return Ok(self.settings.decoder.supports(&geometry)?),
        };
        self.mode = mode;
        Ok(())
    }

    /// All counts start from zero; nothing is known any more but, if they are to be kept, the
    /// network's weights.
    fn start_cycle(&mut self, config: &Config, keep_weights: bool) -> Result<(), Fault> {
        self.restart_network(config, keep_weights)?;
        if let Mode::Delta(delta) = &mut self.mode {
            *delta = Delta::new(self.settings.retain_epochs);
        }
        self.registry = Arc::new(self.registry.emptied());
        self.keys.clear();
        self.segment = Segment::new(*config).map_err(ReportError::from)?;
        self.open = OpenEpoch::new(reported_slots(config)).map_err(ReportError::from)?;
        self.exports = Exports::new(config);
        self.window = Window::new(self.window.length());
        self.past = Arc::new(Past::default());
        self.appended = Appended::default();
        Ok(())
    }
}
