//! One incarnation of a stream, as the collector knows it.

use std::collections::VecDeque;
use std::sync::Arc;

use ucl_link::{Envelope, Identity, Judgement, Received, Sequence, Unseen};
use ucl_sketch::{ControlPlane, Fault, LoadError, Refused, SaveError, Settings, Station};

use crate::answers::EpochInfo;
use crate::checkpoint::{Checkpoint, NewerState};
use crate::snapshot::Part;

pub(crate) struct Life {
    pub identity: Identity,
    pub format: String,
    pub sequence: Sequence,
    pub station: Station,
    /// Times of the last epochs, oldest first.
    pub epochs: VecDeque<EpochInfo>,
    pub unseen: Option<Unseen>,
    /// Bytes of all envelopes taken.
    pub uplink_bytes: u64,
    /// Reason why no more epochs are taken, if so.
    pub ended: Option<String>,
    /// Envelopes that are in each of the two states on disk.
    pub covered: [u64; 2],
    /// Bytes of the station after its last epoch.
    pub memory: usize,
    part: Option<Arc<Part>>,
}

impl Life {
    pub fn new(identity: Identity, decoding: &Settings) -> Self {
        Self {
            identity,
            format: String::new(),
            sequence: Sequence::default(),
            station: Station::new(decoding.clone()),
            epochs: VecDeque::new(),
            unseen: None,
            uplink_bytes: 0,
            ended: None,
            covered: [0; 2],
            memory: 0,
            part: None,
        }
    }

    /// What was written down, or `None` if it contradicts itself or the settings.
    ///
    /// # Errors
    /// If a newer version wrote it.
    pub fn restore(checkpoint: Checkpoint, decoding: &Settings) -> Result<Option<Self>, NewerState> {
        let Checkpoint { identity, format, sequence, epochs, unseen, station, uplink_bytes } = checkpoint;
        let station = match Station::from_bytes(&station, decoding.clone()) {
            Ok(station) => station,
            Err(LoadError::NewerVersion { .. }) => return Err(NewerState),
            Err(_) => return Ok(None),
        };
        let memory = station.memory().total();
        // One envelope is one epoch.
        let agrees = station.epochs() == sequence.next();
        let new = || Self::new(identity, decoding);
        Ok(agrees.then(|| Self { format, sequence, station, epochs, unseen, uplink_bytes, memory, ..new() }))
    }

    /// A device with more counters is refused from now on.
    pub fn with_counter_limit(self, counters: usize) -> Self {
        Self { station: self.station.with_counter_limit(counters), ..self }
    }

    pub fn checkpoint(&self) -> Result<Checkpoint, SaveError> {
        Ok(Checkpoint {
            identity: self.identity.clone(),
            format: self.format.clone(),
            sequence: self.sequence.clone(),
            epochs: self.epochs.clone(),
            unseen: self.unseen,
            station: self.station.to_bytes()?,
            uplink_bytes: self.uplink_bytes,
        })
    }

    /// Applies an envelope from the log, if it comes next.
    pub fn replay(&mut self, received: &Received<'_>, kept_epochs: usize) {
        if self.ended.is_some() || self.sequence.judge(received) != Judgement::Next {
            return;
        }
        let prepared = self.station.prepare(received.envelope.messages.iter().copied());
        let applied = prepared.and_then(|prepared| self.station.apply(prepared));
        match applied {
            Ok(()) => self.took(received, None, kept_epochs),
            Err(why) => self.ended = Some(why.to_string()),
        }
    }

    /// Notes an envelope whose messages the station has applied.
    pub fn took(&mut self, received: &Received<'_>, received_ms: Option<i64>, kept_epochs: usize) {
        let Envelope { format, seq, times, items, unseen, .. } = &received.envelope;
        self.sequence.take(received);
        if self.format != *format {
            (*format).clone_into(&mut self.format);
        }
        let weight = self.station.control().map(ControlPlane::weight);
        self.epochs.push_back(EpochInfo { seq: *seq, items: *items, weight, times: *times, received_ms });
        // One more than is kept: the oldest tells where the next one began.
        while self.epochs.len() > kept_epochs.saturating_add(1) {
            self.epochs.pop_front();
        }
        self.uplink_bytes = self.uplink_bytes.saturating_add(received.bytes.len() as u64);
        self.unseen = match (self.unseen, *unseen) {
            (Some(before), Some(unseen)) => Some(before.and(unseen)),
            (before, unseen) => before.or(unseen),
        };
        self.memory = self.station.memory().total();
        self.part = None;
    }

    /// The counts at the last cut.
    pub fn part(&mut self) -> Result<Arc<Part>, Fault> {
        if let Some(part) = &self.part {
            return Ok(Arc::clone(part));
        }
        let part = Arc::new(Part {
            identity: self.identity.clone(),
            format: self.format.clone(),
            view: self.station.query_view()?,
            epochs: self.epochs.iter().copied().collect(),
            unseen: self.unseen,
        });
        self.part = Some(Arc::clone(&part));
        Ok(part)
    }

    /// Returns true if a state with everything is on the disk.
    pub fn is_covered(&self) -> bool {
        self.covered.contains(&self.sequence.next())
    }
}

/// What a refused envelope means for its sender.
pub(crate) fn is_for_good(refused: &Refused, first: bool) -> bool {
    // A device that is too large, or that cannot be decoded here, is the operator's to mend.
    !(first && matches!(refused, Refused::Message(_) | Refused::Settings(_) | Refused::Unfit(_)))
}
