//! The mirrored table, as a measured system: exact, at the price of its uplink.

use ucl_data_plane::mirrored::{Mirror, MirroredPart, MirroredShape, Pieces};
use ucl_sketch::{InsertError, KeyFormat, Memory};
use ucl_streams::{Batch, ExactCounts};
use ucl_wire::{ExportReader, ExportWriter};

use crate::system::{Answer, Extras, Pass, Request, System, SystemError};

/// A device with a [`MirroredPart`], and a server that knows its messages alone.
pub struct Exact {
    device: Box<dyn Device>,
    link: ExportWriter,
    server: Server,
    key_bytes: usize,
    interval: Option<u64>,
    totals: (u64, u64),
    cuts: u64,
    pass: Pass,
}

/// What rebuilds the counts.
struct Server {
    mirror: Mirror,
    reader: ExportReader,
    waiting: Vec<u8>,
    counts: ExactCounts,
}

/// A part for keys of some size.
trait Device {
    fn insert(&mut self, key: &[u8], weight: u64, out: &mut dyn FnMut(Pieces<'_>)) -> bool;
    fn cut(&mut self, out: &mut dyn FnMut(Pieces<'_>));
    fn memory(&self) -> Memory;
}

impl<const N: usize> Device for MirroredPart<N> {
    fn insert(&mut self, key: &[u8], weight: u64, mut out: &mut dyn FnMut(Pieces<'_>)) -> bool {
        key.try_into().map(|key| Self::insert(self, key, weight, &mut out)).is_ok()
    }

    fn cut(&mut self, mut out: &mut dyn FnMut(Pieces<'_>)) {
        Self::cut(self, &mut out);
    }

    fn memory(&self) -> Memory {
        Self::memory(self)
    }
}

impl Exact {
    /// A table in the requested budget.
    pub fn new(request: &Request<'_>) -> Result<Self, SystemError> {
        let KeyFormat::Fixed(bytes) = request.keys else {
            return Err(SystemError::Keys { method: "ucl-exact", keys: request.keys });
        };
        let bytes = usize::from(bytes);
        let too_small = || ucl_zoo::Error::Budget { budget: request.budget, least: least(bytes) };
        let shape = MirroredShape::within(request.budget, bytes).ok_or_else(too_small)?;
        let seed = u128::from(request.seed).into();
        let device: Box<dyn Device> = match bytes {
            4 => Box::new(MirroredPart::<4>::new(shape, seed)),
            8 => Box::new(MirroredPart::<8>::new(shape, seed)),
            13 => Box::new(MirroredPart::<13>::new(shape, seed)),
            _ => Box::new(MirroredPart::<16>::new(shape, seed)),
        };
        let mirror = Mirror::new(shape, bytes, seed);
        Ok(Self {
            device,
            link: ExportWriter::default(),
            server: Server { mirror, reader: ExportReader::default(), waiting: Vec::new(), counts: ExactCounts::new() },
            key_bytes: bytes,
            interval: request.options.interval.flatten(),
            totals: (0, 0),
            cuts: 0,
            pass: request.pass,
        })
    }

    fn cut(&mut self) -> Result<(), SystemError> {
        self.link.set_totals(self.totals.0, self.totals.1);
        let (link, waiting) = (&mut self.link, &mut self.server.waiting);
        self.device.cut(&mut |piece| link.write(piece, &mut |bytes| waiting.extend_from_slice(bytes)));
        self.cuts += 1;
        self.deliver()
    }

    /// What was sent reaches the server.
    fn deliver(&mut self) -> Result<(), SystemError> {
        let Server { mirror, reader, waiting, counts } = &mut self.server;
        if self.pass == Pass::Speed {
            waiting.clear();
            return Ok(());
        }
        let mut rest = &waiting[..];
        while !rest.is_empty() {
            let (export, later) = match reader.read(rest) {
                Ok(read) => read,
                Err(ucl_wire::WireError::Truncated { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            mirror.read(&export.bytes, export.totals.is_some(), |key, count| counts.insert(key, count));
            rest = later;
        }
        let read = waiting.len() - rest.len();
        waiting.drain(..read);
        Ok(())
    }
}

/// The smallest budget that a table fits in.
fn least(key_bytes: usize) -> usize {
    (1..).map(|bytes| bytes * 64).find(|&bytes| MirroredShape::within(bytes, key_bytes).is_some()).unwrap_or(usize::MAX)
}

impl System for Exact {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        for (key, weight) in batch.items() {
            let (link, waiting) = (&mut self.link, &mut self.server.waiting);
            let mut send = |piece: Pieces<'_>| link.write(piece, &mut |bytes| waiting.extend_from_slice(bytes));
            if !self.device.insert(key, weight, &mut send) {
                return Err(InsertError::KeySize { want: self.key_bytes, got: key.len() }.into());
            }
            self.totals.0 += 1;
            self.totals.1 += weight;
            if self.interval.is_some_and(|interval| self.totals.0.is_multiple_of(interval)) {
                self.cut()?;
            }
        }
        self.deliver()
    }

    fn finish(&mut self) -> Result<(), SystemError> {
        self.cut()
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        let count = self.server.counts.get(key);
        Answer { estimate: count, bounds: Some((count, count)) }
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        Some(self.server.counts.get(key) > 0)
    }

    fn memory(&self) -> Memory {
        self.device.memory()
    }

    fn extras(&self) -> Extras {
        Extras {
            uplink_bytes: Some(self.link.sent()),
            control_bytes: Some(self.server.mirror.memory() + self.server.counts.exact_map_bytes()),
            snapshots: Some(self.cuts),
            interval: self.interval,
            ..Extras::default()
        }
    }
}
