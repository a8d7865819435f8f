//! The half that sees the stream: a data plane and the encoder of its reports.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver as Channel, channel};

use ucl_data_plane::mirrored::Allowance;
use ucl_data_plane::{Config, CounterIndex, InsertError, Memory, Report, ReportSink};
#[cfg(feature = "state")]
use ucl_wire::EncoderState;
use ucl_wire::{Encoder, Uplink};

use crate::builder::{BuildError, Builder};
use crate::epochs::Epochs;
use crate::key::Key;
use crate::plane::AnyPlane;
use crate::sink::Sink;
use crate::sketch::Out;
#[cfg(feature = "state")]
use crate::state::LoadError;

/// A message on its way to a [`Station`](crate::Station).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The message.
    pub bytes: Vec<u8>,
    /// True if the message ends an epoch: after it the station can answer.
    pub ends_epoch: bool,
}

/// The device's half of a sketch: counts a stream in a fixed memory and writes messages for the
/// [`Station`](crate::Station) that answers.
///
/// ```
/// use ucl_sketch::{Settings, Station, UclSketch};
///
/// let mut device = UclSketch::builder().memory("16KB").seed(1).device()?;
/// let mut station = Station::new(Settings::default());
/// for word in "to be or not to be".split(' ') {
///     device.insert(word.as_bytes(), 1)?;
/// }
/// device.cut();
/// while let Some(message) = device.next_message() {
///     station.receive(&message.bytes)?; // over any link that keeps order and loses nothing
/// }
/// assert_eq!(station.view_at_cut()?.estimate("be").count, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It never ends an epoch by itself: call [`Device::cut`]. [`Builder::plan`] tells when epochs
/// should end; where that is by load, [`Device::room`] tells how soon.
pub struct Device {
    pub(crate) plane: AnyPlane,
    pub(crate) encoder: Encoder<Out>,
    messages: Channel<Vec<u8>>,
    outgoing: VecDeque<Outgoing>,
    outgoing_bytes: usize,
    pub(crate) held: Option<Held>,
}

/// Carries that wait for the link, added up by counter. Empty until the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(pub(crate) Vec<i64>);

impl Held {
    fn add(&mut self, counters: usize, at: CounterIndex, times: i64) {
        if self.0.is_empty() {
            self.0 = vec![0; counters];
        }
        // Modulo 2^64, as all sums of carries.
        let sum = &mut self.0[at.0 as usize];
        *sum = sum.wrapping_add(times);
    }

    /// Bytes that the carries take.
    fn price(&self) -> u64 {
        self.0.iter().filter(|&&times| times != 0).count() as u64 * AnyPlane::CARRY_BYTES
    }
}

/// Sends reports to the encoder, except carries that are held back.
struct Outlet<'a> {
    encoder: &'a mut Encoder<Out>,
    held: Option<&'a mut Held>,
}

impl ReportSink for Outlet<'_> {
    #[inline]
    fn report(&mut self, report: Report<'_>) {
        match (report, &mut self.held) {
            (Report::Carry { at, times }, Some(held)) => {
                held.add(self.encoder.config().shape.geometry().counters(), at, times);
            }
            (report, _) => self.encoder.report(report),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("config", self.config())
            .field("items", &self.items())
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

impl<K: Key> Builder<K> {
    /// Builds the device's half alone. Decoder and settings only decide which sizes are planned:
    /// decoding is the [`Station`](crate::Station)'s. [`Builder::execution`] has no effect.
    ///
    /// # Errors
    /// As [`Builder::build`], and if the sketch is too large to be sent.
    pub fn device(self) -> Result<Device, BuildError> {
        let (config, epochs) = self.plan()?;
        let allowance = self.allowance(&config)?;
        let mut device = Device::new(config)?;
        if let Some(allowance) = allowance {
            device.plane.set_allowance(allowance);
        }
        if epochs == Epochs::ByLoad {
            device.watch_load()?;
        }
        Ok(device)
    }
}

impl Device {
    /// Creates a device of this configuration.
    ///
    /// # Errors
    /// If the configuration is beyond its limits, or too large to be sent.
    pub fn new(config: Config) -> Result<Self, BuildError> {
        let plane = AnyPlane::new(config)?;
        let (sender, messages) = channel();
        let encoder = Encoder::new(0, config, out(sender))?;
        Ok(Self::assemble(plane, encoder, messages, None))
    }

    /// Watches the load of epochs, so that [`Device::room`] can tell when they should end. For a
    /// device that has counted nothing yet; it takes a few hundred bytes of its own, which
    /// [`Builder::plan`] leaves room for where it answers [`Epochs::ByLoad`]. A mirrored table has
    /// no load.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn watch_load(&mut self) -> Result<(), BuildError> {
        Ok(self.plane.watch_load()?)
    }

    #[cfg(feature = "state")]
    pub(crate) fn restore(plane: AnyPlane, state: EncoderState, held: Option<Held>) -> Result<Self, LoadError> {
        let (sender, messages) = channel();
        let encoder = Encoder::restore(*plane.config(), state, out(sender))?;
        Ok(Self::assemble(plane, encoder, messages, held))
    }

    fn assemble(plane: AnyPlane, encoder: Encoder<Out>, messages: Channel<Vec<u8>>, held: Option<Held>) -> Self {
        let mut device = Self { plane, encoder, messages, outgoing: VecDeque::new(), outgoing_bytes: 0, held };
        device.plane.hold_names(device.held.is_some());
        device.collect(false);
        device
    }

    /// Sets how many bytes of reports are collected before a message is written without waiting for
    /// the cut (64KB). A smaller buffer needs less memory and costs a few more bytes of uplink.
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        self.encoder = self.encoder.with_buffer(bytes);
        self
    }

    /// Inserts one item.
    ///
    /// # Errors
    /// If the key does not fit the sketch, the weight is 0 or above 2^63 - 1, or the total weight
    /// would pass 2^63. The device is then as it was.
    #[inline]
    pub fn insert(&mut self, key: &[u8], weight: u64) -> Result<(), InsertError> {
        let Self { plane, encoder, held, .. } = self;
        plane.insert(key, weight, &mut Sink(&mut Outlet { encoder, held: held.as_mut() }))
    }

    /// Inserts many keys of one size laid end to end, with their weights if not all are 1.
    ///
    /// # Errors
    /// If the bytes are not whole keys, keys of this size do not fit the sketch, there is not one
    /// weight for each key, a weight is 0 or above 2^63 - 1, or the weight of the stream would pass
    /// 2^63. Then none of the items counts.
    pub fn insert_batch(&mut self, key_bytes: usize, keys: &[u8], weights: Option<&[u64]>) -> Result<(), InsertError> {
        let count = match (keys.len().checked_div(key_bytes), weights) {
            (Some(count), _) if count * key_bytes == keys.len() => count,
            (None, Some(weights)) if keys.is_empty() => weights.len(),
            _ => return Err(InsertError::Ragged { bytes: keys.len(), key_bytes }),
        };
        self.plane.check_batch(key_bytes, count, weights)?;
        let Self { plane, encoder, held, .. } = self;
        let mut outlet = Outlet { encoder, held: held.as_mut() };
        plane.insert_batch(key_bytes, count, keys, weights, &mut Sink(&mut outlet))
    }

    /// Returns the number of items that may be inserted before this is asked again, whatever they
    /// are, for the epoch to be decoded well; 0 if it should end now. `None` if epochs do not end
    /// by load.
    ///
    /// ```
    /// use ucl_sketch::{DecoderKind, UclSketch};
    /// let mut device = UclSketch::builder().decoder(DecoderKind::Delta).memory("16KB").device()?;
    /// let mut until = device.room().unwrap_or(u64::MAX);
    /// for i in 0..50_000u32 {
    ///     device.insert(&i.to_le_bytes(), 1)?;
    ///     until -= 1;
    ///     if until == 0 {
    ///         if device.room() == Some(0) {
    ///             device.cut();
    ///         }
    ///         until = device.room().unwrap_or(u64::MAX);
    ///     }
    /// }
    /// assert!(device.epoch() > 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn room(&self) -> Option<u64> {
        self.plane.room()
    }

    /// Sets what may go up the link from now on; returns false if nothing can be held back, because
    /// the mode is not [`Mode::Budget`](crate::Mode::Budget).
    pub fn set_allowance(&mut self, allowance: Allowance) -> bool {
        self.plane.set_allowance(allowance)
    }

    /// Adds to what may go up the link, in [`Mode::Budget`](crate::Mode::Budget): as much as it can
    /// take in the next second, say.
    pub fn grant(&mut self, bytes: u64) {
        self.plane.grant(bytes);
    }

    /// Takes from what may go up the link: envelopes and heads of requests, say.
    pub fn spend(&mut self, bytes: u64) {
        self.plane.spend(bytes);
    }

    /// Returns false if [`Device::cut`] would send more than what may go up the link now, in
    /// [`Mode::Budget`](crate::Mode::Budget).
    pub fn affords_cut(&self) -> bool {
        self.plane.affords_cut(self.held.as_ref().map_or(0, Held::price))
    }

    /// What may go up the link, in [`Mode::Budget`](crate::Mode::Budget).
    pub fn allowance(&self) -> Option<&Allowance> {
        self.plane.allowance()
    }

    /// Returns the weight that a sketch absorbed because the link had no room for it, in
    /// [`Mode::Budget`](crate::Mode::Budget).
    pub fn absorbed(&self) -> u64 {
        self.plane.absorbed()
    }

    /// Ends the epoch: its last message is ready. Carries that were held back go out first.
    pub fn cut(&mut self) {
        self.hold(false);
        self.plane.cut(&mut Sink(&mut self.encoder));
        self.collect(true);
    }

    /// Holds carries back from now on, added up by counter, or sends them; and forgets no name
    /// meanwhile. A mirrored table of mode budget sends nothing. While the link is down and the
    /// epoch cannot end, this keeps the messages of an epoch of any length within a bound: eight
    /// bytes per counter here, and the names of the keys that the filter lets through.
    pub fn hold(&mut self, hold: bool) {
        self.plane.hold_names(hold);
        match (hold, self.held.take()) {
            (true, held) => self.held = Some(held.unwrap_or_default()),
            (false, Some(held)) => {
                self.plane.spend(held.price());
                let Held(carries) = held;
                for (at, times) in (0..).zip(carries).filter(|&(_, times)| times != 0) {
                    self.encoder.report(Report::Carry { at: CounterIndex(at), times });
                }
            }
            (false, None) => {}
        }
    }

    /// Returns true if carries are held back.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the largest number of bytes that [`Device::cut_bound`] can come to while carries are
    /// held back, beside the messages that wait.
    pub fn largest_cut(&self) -> usize {
        let shape = &self.config().shape;
        let counters = shape.geometry().counters();
        let counter_bytes = counters * shape.counter_bits.bits() as usize / 8;
        let slots = shape.slots as usize * (16 + self.config().keys.slot_bytes());
        // The encoder's buffers, filled and in use.
        8 * self.encoder.buffer() + 3 * counter_bytes + 2 * slots + 16 * counters + 4_096
    }

    /// Removes and returns the oldest message.
    pub fn next_message(&mut self) -> Option<Outgoing> {
        self.collect(false);
        let message = self.outgoing.pop_front()?;
        self.outgoing_bytes -= message.bytes.len();
        Some(message)
    }

    /// Moves what the encoder wrote to the queue; the last one ends an epoch if `cut`.
    fn collect(&mut self, cut: bool) {
        for bytes in self.messages.try_iter() {
            self.outgoing_bytes += bytes.len();
            self.outgoing.push_back(Outgoing { bytes, ends_epoch: false });
        }
        if let Some(last) = self.outgoing.back_mut().filter(|_| cut) {
            last.ends_epoch = true;
        }
    }

    /// Returns the messages that wait to be taken, oldest first.
    pub fn waiting(&mut self) -> impl ExactSizeIterator<Item = &Outgoing> {
        self.collect(false);
        self.outgoing.iter()
    }

    /// Returns the largest number of bytes that the messages of the epoch could have if it ended
    /// now, those included that wait.
    pub fn cut_bound(&mut self) -> usize {
        self.collect(false);
        let config = self.config();
        let shape = &config.shape;
        let counters = shape.geometry().counters();
        let counter_bytes = counters * shape.counter_bits.bits() as usize / 8;
        // A changed slot takes its number, a flag, a count of up to ten bytes and its holder.
        let slots = shape.slots as usize * (16 + config.keys.slot_bytes());
        // A carry takes up to 15 bytes, and most take one or two. Blocks that do not shrink are
        // raw.
        let carried = self.held.as_ref().map_or(0, |held| held.0.iter().filter(|&&times| times != 0).count());
        self.outgoing_bytes + self.encoder.memory() + counter_bytes + slots + 15 * carried + counters / 8 + 4_096
    }

    /// Returns the number of bytes of the messages that wait to be taken.
    pub fn waiting_bytes(&mut self) -> usize {
        self.collect(false);
        self.outgoing_bytes
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        self.plane.config()
    }

    /// Returns the number of items inserted so far.
    pub fn items(&self) -> u64 {
        self.plane.items()
    }

    /// Returns the total weight of all items inserted.
    pub fn weight(&self) -> u64 {
        self.plane.weight()
    }

    /// Returns the number of epochs that have ended.
    pub fn epoch(&self) -> u64 {
        self.encoder.next().epoch
    }

    /// Returns the memory of the data plane, by part.
    pub fn memory(&self) -> Memory {
        self.plane.memory()
    }

    /// Returns the number of bytes of all messages so far.
    pub fn uplink(&self) -> Uplink {
        self.encoder.uplink()
    }
}

fn out(sender: std::sync::mpsc::Sender<Vec<u8>>) -> Out {
    Box::new(move |message: &[u8]| {
        // The device holds both ends.
        let _ = sender.send(message.to_vec());
    })
}
