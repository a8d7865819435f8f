//! The half that answers: a receiver of messages and the control plane behind it.

use std::fmt;

use ucl_control_plane::{ControlPlane, Fault, QueryView, Settings, SettingsError};
use ucl_data_plane::{Config, HeavyKind, Inconsistent, KeyFormat, Memory, Opening, Report};
use ucl_wire::{MAX_COUNTERS, Message, Receiver, WireError};

use crate::key::Key;
use crate::view::View;

/// The station's half of a sketch: reads the messages of one [`Device`](crate::Device) in order,
/// and answers.
///
/// ```
/// use ucl_sketch::{Refused, Settings, Station, UclSketch};
///
/// let mut device = UclSketch::builder().memory("16KB").seed(1).device()?;
/// let mut station = Station::new(Settings::default());
/// device.insert(b"tea", 3)?;
/// device.cut();
/// let messages: Vec<_> = std::iter::from_fn(|| device.next_message()).collect();
/// for (message, left) in messages.iter().zip((0..messages.len()).rev()) {
///     assert_eq!(station.receive(&message.bytes)?, left == 0); // the last one ends the epoch
/// }
/// assert_eq!(station.view_at_cut()?.estimate("tea").count, 3);
/// assert!(matches!(station.receive(&messages[0].bytes), Err(Refused::Message(_)))); // a second time
/// assert_eq!(station.view_at_cut()?.estimate("tea").count, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The configuration comes in the first message. Messages may be hostile: see
/// [`Station::with_counter_limit`] and [`Prepared::most_new_keys`].
pub struct Station {
    pub(crate) settings: Settings,
    pub(crate) receiver: Receiver,
    pub(crate) control: Option<ControlPlane>,
    pub(crate) most_counters: usize,
}

/// A message that a station does not take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The message cannot be read, or is not the one that comes next. The station is as it was.
    #[error(transparent)]
    Message(#[from] WireError),
    /// The configuration cannot be decoded with these settings. The station is as it was.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Decoding such a device would take too long or too much. The station is as it was.
    #[error(transparent)]
    Unfit(#[from] Inconsistent),
    /// The message shows counters in mid-epoch, which only a device beside its station has a use
    /// for. The station is as it was.
    #[error("the message is a peek at an open epoch")]
    Peek,
    /// The content contradicts the messages before it: the station has failed and gives no more
    /// answers.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Messages that a station has read and checked, to be applied together.
#[derive(Debug)]
pub struct Prepared {
    receiver: Receiver,
    messages: Vec<Message>,
    most_new_keys: usize,
    epochs: u64,
    ends_epoch: bool,
}

impl Prepared {
    /// The most keys that become known when the messages are applied.
    pub fn most_new_keys(&self) -> usize {
        self.most_new_keys
    }

    /// Epochs that the messages end.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    /// Returns true if the last message ends an epoch.
    pub fn ends_epoch(&self) -> bool {
        self.ends_epoch
    }

    /// The configuration in which the messages end.
    pub fn config(&self) -> Option<&Config> {
        self.receiver.segment()
    }
}

impl fmt::Debug for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Station").field("epochs", &self.epochs()).field("keys", &self.keys()).finish_non_exhaustive()
    }
}

/// The most keys that a message of a mirrored table can bring: as many as it has records, and at a
/// cut the first holders of all slots.
fn most_newcomers(config: &Config) -> usize {
    match config.shape.heavy {
        HeavyKind::Mirrored(table) => table.most_records() + table.slots(),
        _ => 0,
    }
}

impl Station {
    /// Creates a station that expects the first message of a device, and decodes as the settings
    /// say. Their seed comes from the device.
    pub fn new(settings: Settings) -> Self {
        Self { settings, receiver: Receiver::new(0), control: None, most_counters: MAX_COUNTERS }
    }

    /// Sets the largest number of counters of a device that is read; a larger one is refused. Its
    /// memory here grows with them.
    pub fn with_counter_limit(mut self, counters: usize) -> Self {
        self.most_counters = counters;
        self.receiver = self.receiver.with_counter_limit(counters);
        self
    }

    /// Reads one message. Returns whether it ended an epoch.
    ///
    /// # Errors
    /// If the message is refused. Only after [`Refused::Fault`] has the station changed.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, Refused> {
        let prepared = self.prepare([message])?;
        let ends_epoch = prepared.ends_epoch;
        self.apply(prepared)?;
        Ok(ends_epoch)
    }

    /// Reads the next messages and checks them, and changes nothing yet. A caller that must not
    /// lose what it has acknowledged writes them down before it applies them.
    ///
    /// # Errors
    /// If a message is refused.
    pub fn prepare<'a>(&self, messages: impl IntoIterator<Item = &'a [u8]>) -> Result<Prepared, Refused> {
        let mut receiver = self.receiver.clone();
        let mut most_new_keys = 0;
        let mut ends_epoch = false;
        let mut read = Vec::new();
        for bytes in messages {
            let epoch = receiver.expects().epoch;
            let message = receiver.receive(bytes)?;
            ends_epoch = receiver.expects().epoch != epoch;
            match &message {
                Message::SegmentOpen(config) | Message::Reset { config, .. } => {
                    self.settings_for(config).check(config)?;
                }
                Message::Reports(reports) => {
                    if reports.cut.as_ref().is_some_and(|cut| !cut.reset) {
                        return Err(Refused::Peek);
                    }
                    most_new_keys += reports.keys.len() + reports.slots.len();
                }
                Message::Export(_) => most_new_keys += receiver.segment().map_or(0, most_newcomers),
            }
            read.push(message);
        }
        let epochs = receiver.expects().epoch - self.receiver.expects().epoch;
        Ok(Prepared { receiver, messages: read, most_new_keys, epochs, ends_epoch })
    }

    /// Applies messages that were prepared, with nothing applied in between.
    ///
    /// # Errors
    /// If they contradict those before. The station has failed then.
    pub fn apply(&mut self, prepared: Prepared) -> Result<(), Refused> {
        for message in &prepared.messages {
            self.take(message)?;
        }
        self.receiver = prepared.receiver;
        Ok(())
    }

    fn take(&mut self, message: &Message) -> Result<(), Refused> {
        let Some(control) = &mut self.control else {
            let config = *message.opens().ok_or(WireError::UnknownSegment { segment: 0 })?;
            self.control = Some(ControlPlane::new(config, self.settings_for(&config))?);
            return Ok(());
        };
        let opening = match message {
            Message::SegmentOpen(_) => Opening::Change,
            Message::Reset { keep_weights, .. } => Opening::Reset { keep_weights: *keep_weights },
            Message::Reports(reports) => {
                let segment = *control.segment().config();
                if let Err(error) = reports.replay(&segment, control) {
                    control.fail(error.to_string());
                }
                return control.fault().map_or(Ok(()), |fault| Err(fault.clone().into()));
            }
            Message::Export(export) => {
                export.replay(control);
                return control.fault().map_or(Ok(()), |fault| Err(fault.clone().into()));
            }
        };
        let config = message.opens().expect("only reports open nothing");
        Ok(control.accept(Report::Open { config, opening })?)
    }

    fn settings_for(&self, config: &Config) -> Settings {
        Settings { seed: config.seed.folded(), ..self.settings.clone() }
    }

    /// Returns the counts at the last cut.
    ///
    /// # Errors
    /// If nothing has come yet, an epoch has begun whose cut has not come, or the station has
    /// failed.
    pub fn view_at_cut(&mut self) -> Result<View, Fault> {
        Ok(View::new(self.query_view()?))
    }

    /// Returns the counts at the last cut by keys of another type.
    ///
    /// # Errors
    /// As [`Station::view_at_cut`].
    pub fn view_at_cut_of<K: Key>(&mut self) -> Result<View<K>, Fault> {
        Ok(View::new(self.query_view()?))
    }

    /// Returns the counts at the last cut by key numbers.
    ///
    /// # Errors
    /// As [`Station::view_at_cut`].
    pub fn query_view(&mut self) -> Result<QueryView, Fault> {
        self.control.as_mut().ok_or_else(|| Fault::Link("no message has come yet".into()))?.view_at_cut()
    }

    /// Returns the format of the device's keys in its slots, once the first message has come.
    pub fn key_format(&self) -> Option<KeyFormat> {
        self.config().map(|config| config.keys)
    }

    /// The device's configuration, once the first message has come.
    pub fn config(&self) -> Option<&Config> {
        self.receiver.segment()
    }

    /// Epochs that have ended.
    pub fn epochs(&self) -> u64 {
        self.receiver.expects().epoch
    }

    /// Keys that are known.
    pub fn keys(&self) -> usize {
        self.control.as_ref().map_or(0, |control| control.registry().len())
    }

    /// Bytes by part.
    pub fn memory(&self) -> Memory {
        self.control.as_ref().map_or_else(Memory::default, ControlPlane::memory)
    }

    /// The control plane, once the first message has come.
    pub fn control(&self) -> Option<&ControlPlane> {
        self.control.as_ref()
    }
}
