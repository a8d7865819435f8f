//! The data plane goes over to another configuration, or to a new cycle.

use std::sync::Arc;

use ucl_data_plane::{Config, Opening};

use super::{ControlPlane, Fault, Mode, SettingsError, decode_snapshot, joint};
use crate::decoder::System;
use crate::delta;
use crate::heavy::HeavyMirror;
use crate::sealed::{ChangeKind, End, Past, Sealed};
use crate::segment::{ReportError, Segment};
use crate::series::Series;
use crate::view::upper_bounds;
use crate::window::Window;

impl ControlPlane {
    /// Whether the decoder could go on with a data plane of this configuration. Ask before
    /// [`DataPlane::change`](ucl_data_plane::DataPlane::change).
    pub fn check_change(&self, config: &Config) -> Result<(), SettingsError> {
        Mode::new(&self.settings, config.shape.geometry())?;
        // Whether there is room: once the data plane has changed it is too late for an error.
        let _room = (Segment::new(*config)?, HeavyMirror::new(config.shape.slots)?);
        Ok(())
    }

    /// The sealed segments, oldest first.
    pub fn sealed(&self) -> impl Iterator<Item = &Segment> {
        self.past.sealed.iter().chain(&self.appended).map(|sealed| &*sealed.segment)
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
    pub fn drop_oldest_segment(&mut self) -> Result<bool, Fault> {
        self.freeze_appended()?;
        Ok(Arc::make_mut(&mut self.past).drop_oldest())
    }

    pub(super) fn accept_open(&mut self, config: &Config, opening: Opening) -> Result<(), Fault> {
        let (want, got) = (self.registry.format().slot_bytes(), config.keys.slot_bytes());
        if self.registry.format() != config.keys {
            return Err(ReportError::Key { want, got }.into());
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
        let geometry = config.shape.geometry();
        let former = self.segment.config().shape.geometry();
        let append = self.settings.change == ChangeKind::PaperColumns
            && geometry == former
            && !matches!(self.mode, Mode::Delta { .. });
        let held: Arc<[_]> = self.heavy.iter().collect();
        self.seal(config, Arc::clone(&held))?;
        if !append {
            let sealed = std::mem::take(&mut self.appended);
            Arc::make_mut(&mut self.past).sealed.extend(sealed);
            self.window = Window::new(self.window.length());
            self.restart_network(config, true)?;
        }
        // Who still holds a slot will be told at the next cut; until then nobody does.
        self.heavy = HeavyMirror::new(config.shape.slots).map_err(ReportError::from)?;
        self.heavy_changes.extend(held.iter().map(|held| (held.key, -(held.count as i64))));
        self.moved = held.to_vec();
        for state in &mut self.keys {
            state.left_behind();
        }
        self.forget_epoch();
        Ok(())
    }

    /// Puts the open segment with the appended ones, all decoded, and opens another.
    fn seal(&mut self, config: &Config, held: Arc<[crate::heavy::Held]>) -> Result<(), Fault> {
        let (decoded, uppers) = if let Mode::Delta { totals, pending, series } = &mut self.mode {
            totals.add_block(&self.segment, pending, &self.settings.em, series)?;
            pending.clear();
            totals.restart().into_sums()
        } else {
            let decoded = self.freeze_appended_with_open()?;
            (decoded, upper_bounds(&self.segment, &self.segment.cumulative().to_vec(), self.segment.sketch_weight()))
        };
        let (items, weight) = self.at_cut;
        let open = Segment::new(*config).map_err(ReportError::from)?;
        let segment = std::mem::replace(&mut self.segment, open);
        let end = End { stream: 0, through: self.past.streams, items, weight, held };
        let sealed = Sealed::new(segment, &decoded, &uppers, &self.keys, self.smallest_weight, end);
        self.appended.push(Arc::new(sealed));
        Ok(())
    }

    /// Decodes the appended segments together with the open one, gives them their estimates, and returns those of the open
    /// one.
    fn freeze_appended_with_open(&mut self) -> Result<Vec<f64>, Fault> {
        let columns = joint::columns(&self.appended, self.segment.columns());
        let counters = joint::counters(&self.appended, self.segment.cumulative().to_vec());
        let counters: Vec<f64> = counters.iter().map(|&c| c as f64).collect();
        let geometry = self.segment.config().shape.geometry();
        let known = joint::lowers(&self.appended, &self.segment, &self.keys, self.smallest_weight);
        let system = System { columns: &columns, geometry, counters: &counters, known: &known };
        let (mut decoded, ..) = decode_snapshot(&mut self.mode, &self.settings, &system)?;
        let mut rest = &decoded[..];
        for sealed in &mut self.appended {
            let (estimates, later) = rest.split_at(sealed.segment.columns().len());
            *sealed = Arc::new(sealed.with_estimates(estimates));
            rest = later;
        }
        let open = decoded.len() - rest.len();
        Ok(decoded.split_off(open))
    }

    /// Appended segments are sealed from now on. The counters of the open one go on alone, and so the window starts again.
    pub(super) fn freeze_appended(&mut self) -> Result<(), Fault> {
        if self.appended.is_empty() {
            return Ok(());
        }
        self.freeze_appended_with_open()?;
        let sealed = std::mem::take(&mut self.appended);
        Arc::make_mut(&mut self.past).sealed.extend(sealed);
        self.window = Window::new(self.window.length());
        let config = *self.segment.config();
        Ok(self.restart_network(&config, true)?)
    }

    /// The network's columns stand for other keys. Its weights stay, if they are to and if the counters have the same shape.
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
            Mode::Classic(_) | Mode::Delta { .. } => return Ok(self.settings.decoder.supports(&geometry)?),
        };
        self.mode = mode;
        Ok(())
    }

    /// All counts start from zero; nothing is known any more but, if they are to be kept, the network's weights.
    fn start_cycle(&mut self, config: &Config, keep_weights: bool) -> Result<(), Fault> {
        self.restart_network(config, keep_weights)?;
        if let Mode::Delta { totals, pending, series } = &mut self.mode {
            *totals = delta::Totals::default();
            pending.clear();
            *series = Series::new(self.settings.retain_epochs);
        }
        self.registry = Arc::new(self.registry.emptied());
        self.keys.clear();
        self.segment = Segment::new(*config).map_err(ReportError::from)?;
        self.heavy = HeavyMirror::new(config.shape.slots).map_err(ReportError::from)?;
        self.window = Window::new(self.window.length());
        self.past = Arc::new(Past::default());
        self.appended.clear();
        self.moved.clear();
        self.heavy_changes.clear();
        self.smallest_weight = 0;
        self.at_cut = (0, 0);
        self.forget_epoch();
        Ok(())
    }

    /// A segment starts: no column is there yet, and the new Bloom filter has lost no key.
    fn forget_epoch(&mut self) {
        self.columns_at_cut = 0;
        self.evicted.clear();
        self.late.clear();
        self.found_again = 0;
    }
}
