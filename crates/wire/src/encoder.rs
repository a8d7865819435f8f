//! The sending side: a sink for reports that writes messages.

use alloc::vec::Vec;

use ucl_data_plane::mirrored::Pieces;
use ucl_data_plane::{Config, CounterIndex, Cut, Opening, Report, ReportSink};

use crate::entropy::values::Scratch;
use crate::exports::ExportFrames;
use crate::message::{Header, Kind, frame, put_header};
use crate::sections::carries::{self, CARRY_BYTES};
use crate::sections::keys::Keys;
use crate::sections::slots::{SlotReport, Slots};
use crate::sections::{cut, segment};
use crate::{DEFAULT_BUFFER, MAX_BUFFER, WireError};

/// Bytes sent so far, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Uplink {
    /// Reported keys and their flags.
    pub keys: u64,
    /// Carries of overflowed counters.
    pub carries: u64,
    /// Changed slots of the heavy part; all that a mirrored table sends.
    pub slots: u64,
    /// Counters at cuts.
    pub counters: u64,
    /// Everything else: frames, headers, totals, checksums, configurations.
    pub headers: u64,
    /// Number of messages.
    pub messages: u64,
}

impl Uplink {
    /// Total bytes sent.
    pub fn total(&self) -> u64 {
        self.keys + self.carries + self.slots + self.counters + self.headers
    }
}

/// Collects reports and writes them as messages: one for each cut, and one whenever the collected
/// reports reach the buffer's limit. The limit bounds the memory of the sender.
///
/// ```
/// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
/// use ucl_wire::{Encoder, Receiver};
///
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let mut plane = DataPlane::<4>::new(config)?;
/// let mut link = Vec::new(); // a queue, a socket, a file
/// let mut encoder = Encoder::new(7, config, |message: &[u8]| link.push(message.to_vec()))?;
/// for key in 0..20_000u32 {
///     plane.insert(&(key % 5_000).to_le_bytes(), 1, &mut encoder)?;
/// }
/// plane.cut(&mut encoder);
/// let sent = encoder.uplink().total();
///
/// let mut receiver = Receiver::new(7);
/// for message in &link {
///     receiver.receive(message)?;
/// }
/// assert_eq!(sent, link.iter().map(|message| message.len() as u64).sum());
/// assert_eq!(receiver.expects().epoch, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Encoder<F> {
    config: Config,
    pub(crate) next: Header,
    pub(crate) keys: Keys,
    pub(crate) carries: Vec<(CounterIndex, i64)>,
    pub(crate) slots: Slots,
    pub(crate) limit: usize,
    pub(crate) uplink: Uplink,
    scratch: Scratch,
    body: Vec<u8>,
    message: Vec<u8>,
    /// Frames the message of a mirrored table that is under way.
    frames: Option<ExportFrames>,
    /// Bytes of its pieces so far.
    exported: usize,
    out: F,
}

impl<F: FnMut(&[u8])> Encoder<F> {
    /// Creates the encoder of a stream and opens its first segment. The first message goes to `out`
    /// at once.
    ///
    /// # Errors
    /// If the configuration is invalid, or has more counters than a message can hold.
    pub fn new(stream: u64, config: Config, out: F) -> Result<Self, WireError> {
        let mut encoder = Self::resume(Header { stream, ..Header::default() }, config, out)?;
        encoder.send_open(Opening::Change);
        Ok(encoder)
    }

    /// Creates an encoder that continues a stream in the same segment, from [`Encoder::next`] of an
    /// earlier encoder.
    ///
    /// # Errors
    /// If the configuration is invalid, or has more counters than a message can hold.
    pub fn resume(next: Header, config: Config, out: F) -> Result<Self, WireError> {
        segment::check(&config)?;
        Ok(Self {
            config,
            next,
            keys: Keys::new(config.keys),
            carries: Vec::new(),
            slots: Slots::new(config.keys),
            limit: DEFAULT_BUFFER,
            uplink: Uplink::default(),
            scratch: Scratch::default(),
            body: Vec::new(),
            message: Vec::new(),
            frames: None,
            exported: 0,
            out,
        })
    }

    /// Sets how many bytes of reports are collected before a message is sent without waiting for
    /// the cut. The default is [`DEFAULT_BUFFER`], the maximum [`MAX_BUFFER`]. A smaller buffer
    /// costs a few more bytes of uplink.
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        self.limit = bytes.min(MAX_BUFFER);
        self
    }

    /// Returns how many bytes of reports are collected before a message is sent without waiting for
    /// the cut.
    pub fn buffer(&self) -> usize {
        self.limit
    }

    /// Returns the configuration of the segment.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the header of the next message.
    pub fn next(&self) -> Header {
        self.next
    }

    /// Bytes sent so far.
    pub fn uplink(&self) -> Uplink {
        self.uplink
    }

    /// Bytes of memory held by collected reports and encoding buffers.
    pub fn memory(&self) -> usize {
        self.keys.memory()
            + self.slots.memory()
            + self.carries.capacity() * CARRY_BYTES
            + self.scratch.memory()
            + self.body.capacity()
            + self.message.capacity()
    }

    /// Sends the collected reports without waiting for the cut.
    pub fn flush(&mut self) {
        if self.collected() > 0 {
            self.send_reports(None);
        }
    }

    /// Closes the segment and opens the next one with another configuration. Call this after a cut:
    /// reports collected since then still belong to the old segment, but its counters are not sent
    /// again.
    ///
    /// # Errors
    /// If the configuration is invalid, or has more counters than a message can hold. Nothing is
    /// written then.
    pub fn open_segment(&mut self, config: Config) -> Result<(), WireError> {
        self.open(config, Opening::Change)
    }

    fn open(&mut self, config: Config, opening: Opening) -> Result<(), WireError> {
        segment::check(&config)?;
        self.flush();
        self.config = config;
        self.keys = Keys::new(config.keys);
        self.slots = Slots::new(config.keys);
        self.next.segment += 1;
        self.send_open(opening);
        Ok(())
    }

    #[inline]
    fn collected(&self) -> usize {
        self.keys.bytes() + self.slots.bytes() + self.carries.len() * CARRY_BYTES
    }

    #[inline]
    fn keep_within_limit(&mut self) {
        if self.collected() >= self.limit {
            self.make_room();
        }
    }

    #[cold]
    fn make_room(&mut self) {
        // Carries of hot counters come again and again: adding them up may be all that is needed.
        carries::compact(&mut self.carries);
        if self.collected() >= self.limit / 2 {
            self.flush();
        }
    }

    fn send_open(&mut self, opening: Opening) {
        self.body.clear();
        put_header(&self.next, &mut self.body);
        let kind = match opening {
            Opening::Change => Kind::SegmentOpen,
            Opening::Reset { keep_weights } => {
                self.body.push(keep_weights.into());
                Kind::Reset
            }
        };
        segment::write(&self.config, &mut self.body);
        self.send(kind, Uplink::default());
    }

    fn send_reports(&mut self, cut: Option<&Cut<'_>>) {
        let Self { body, scratch, .. } = self;
        let mut parts = Uplink::default();
        body.clear();
        put_header(&self.next, body);
        let mut section = |part: &mut u64, write: &mut dyn FnMut(&mut Scratch, &mut Vec<u8>)| {
            let start = body.len();
            write(scratch, body);
            *part += (body.len() - start) as u64;
        };
        section(&mut parts.keys, &mut |scratch, out| self.keys.write(&self.config, scratch, out));
        carries::compact(&mut self.carries);
        section(&mut parts.carries, &mut |scratch, out| carries::write(&self.carries, &self.config, scratch, out));
        section(&mut parts.slots, &mut |scratch, out| self.slots.write(scratch, out));
        if let Some(cut) = cut {
            section(&mut 0, &mut |_, out| cut::write_totals(&cut.totals, out));
            section(&mut parts.counters, &mut |scratch, out| cut::write_counters(cut.counters, scratch, out));
        }
        self.keys.clear();
        self.carries.clear();
        self.slots.clear();
        let kind = match cut {
            None => Kind::Partial,
            Some(cut) if cut.reset => Kind::Cut,
            Some(_) => Kind::Peek,
        };
        self.send(kind, parts);
        self.next.epoch += u64::from(kind == Kind::Cut);
    }

    /// Frames a piece of what a mirrored table sends; the message goes out when it ends.
    fn export(&mut self, piece: Pieces<'_>) {
        let frames = self.frames.get_or_insert_with(|| {
            self.message.clear();
            ExportFrames::new(self.next)
        });
        let message = &mut self.message;
        frames.write(piece, &mut |bytes| message.extend_from_slice(bytes));
        match piece {
            Pieces::Bytes(bytes) => {
                self.exported += bytes.len();
                self.uplink.slots += bytes.len() as u64;
            }
            Pieces::End { .. } => {
                self.frames = None;
                self.uplink.headers += (self.message.len() - self.exported) as u64;
                self.exported = 0;
                self.uplink.messages += 1;
                self.next.seq += 1;
                (self.out)(&self.message);
            }
        }
    }

    fn send(&mut self, kind: Kind, parts: Uplink) {
        frame(kind, &self.body, &mut self.message);
        let sum = &mut self.uplink;
        sum.keys += parts.keys;
        sum.carries += parts.carries;
        sum.slots += parts.slots;
        sum.counters += parts.counters;
        sum.headers += self.message.len() as u64 - parts.total();
        sum.messages += 1;
        self.next.seq += 1;
        (self.out)(&self.message);
    }
}

/// # Panics
/// If a report does not fit the configuration: the encoder was given another one than the data
/// plane. If a segment is opened that [`check_config`](crate::check_config) refuses.
impl<F: FnMut(&[u8])> ReportSink for Encoder<F> {
    // Reports are rare beside items: a call, so that the loop which inserts stays small.
    #[inline(never)]
    fn report(&mut self, report: Report<'_>) {
        match report {
            Report::Key { key, flags } => self.keys.push(key, flags),
            Report::Carry { at, times } => self.carries.push((at, times)),
            Report::Slot { slot, holder, count } => {
                let change = SlotReport { slot, holder, count };
                if !self.slots.push(change) {
                    // Slots ascend within a message: one that does not starts another.
                    self.flush();
                    let pushed = self.slots.push(change);
                    debug_assert!(pushed, "an empty list takes any slot");
                }
            }
            Report::Export(piece) => return self.export(piece),
            Report::Cut(cut) => {
                let shape = &self.config.shape;
                let counters = shape.geometry().counters();
                let bits = shape.counter_bits;
                assert!(
                    cut.counters.len() == counters
                        && cut.counters.bits() == bits
                        && cut.counters.signed() == shape.signed(),
                    "a cut's counters must be the configured {counters} {bits} ones",
                );
                self.send_reports(Some(&cut));
                return;
            }
            Report::Open { config, opening } => {
                self.open(*config, opening).expect("a configuration that was checked");
                return;
            }
        }
        self.keep_within_limit();
    }
}
